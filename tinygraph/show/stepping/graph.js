
// ---- a step of a graph ---------------------------------------------------------------------
const {nodes, steps, plan} = shell.data;
const PHASES = {
  forward: "forward", seed: "backward begins", backward: "backward", leaf: "a leaf keeps its gradient",
  update: "update", write: "written",
};
const named = n => `${n} ${nodes[n].name}`;

// which nodes are done, and have a gradient, after each step: the first step that did so
const doneAt = new Map(), gradedAt = new Map();
steps.forEach((step, at) => {
  const mark = (map, n) => { if (!map.has(n)) map.set(n, at); };
  if (step.phase === "forward") [step.node, ...nodes[step.node].inputs].forEach(n => mark(doneAt, n));
  else if (step.phase !== "write") mark(gradedAt, step.node);
  (step.sent || []).forEach(term => mark(gradedAt, term.to));
});
// what the forward of each node has saved
const savedBy = new Map(steps.filter(step => step.phase === "forward").map(step => [step.node, step.saved]));

function formulaBox(number, part) {
  const formulas = shell.data.formulas[number], box = shell.make("pre");
  box.tabIndex = 0;
  box.append(shell.make("span", "title", formulas.title));
  for (const line of formulas.lines) {
    box.append("\n");
    for (const [text, belongs] of line) {
      const words = text.trimEnd();
      box.append(belongs === part ? shell.make("b", "", words) : words, text.slice(words.length));
    }
  }
  return box;
}
function row(...maps) {
  const box = shell.make("div", "row");
  box.append(...maps.map(map => map.element || map));
  return box;
}
// `alike` are arrays whose colours are to be compared with this one's
function labelled(id, title, short, note, alike) {
  const map = makeMap(id, title, note, alike);
  map.short = short;
  return map;
}
// a sign and the array behind it: they stay together where a row is broken
function term(sign, map) {
  const box = shell.make("div", "term");
  box.append(shell.make("span", "sign", sign), map.element);
  return box;
}
function savedMaps(saved, title) {
  return saved.map(s => labelled(s.array, title, "saved", s.is ? `${s.is} itself` : ""));
}
const inputName = (node, k) => nodes[node.inputs[k]].name;

function forward(step, node, panel) {
  const inputs = node.inputs.map((n, k) => {
    const note = nodes[n].state ? "as this step leaves it" : "";
    return labelled(nodes[n].value, `input ${k + 1}: ${nodes[n].name} (${n})`, inputName(node, k), note);
  });
  const output = labelled(node.value, "output", "y");
  const saved = savedMaps(step.saved, "saved for backward");
  const all = [...inputs, output, ...saved];
  inputs.forEach((map, k) => pointable(map, all, null));
  saved.forEach(map => pointable(map, all, null));
  pointable(output, all, i => explained(node.origins, output, inputs, i));
  panel.append(row(...inputs), row(output));
  if (saved.length) panel.append(row(...saved));
  if (node.forms && node.forms.length) panel.append(...threeForms(node.forms));
  const came = node.inputs.map(n => nodes[n].name).join(", ");
  return `${named(step.node)} is computed from ${came}`;
}
function explained(origins, output, inputs, i) {
  if (!origins) return null;
  const found = originsOf(origins, output.array, inputs.map(map => map.array), i);
  if (!found) return [[], 0, `(where it comes from is recorded for the first ${origins.rows} numbers)`];
  const terms = found.filter(([, j]) => j >= 0).map(([k, j, factor]) => [factor, inputs[k], j]);
  const more = found.length - terms.length + (origins.hidden ? origins.hidden[i] : 0);
  return [terms, more, "changes with"];
}
function threeForms(forms) {
  const maps = forms.map(form => labelled(form.array, form.title, form.title.split(",")[0].replace(/^(the|its) /, "")));
  forms.forEach((form, k) => pointable(maps[k], maps, i => explained(form.origins, maps[k], form.of.map(at => maps[at]), i)));
  const product = [maps[2], shell.make("span", "sign", "@"), shell.make("span", "sign soft", "columns"), term("=", maps[3])];
  return [shell.make("h2", "part", "The same as a matrix product"), row(maps[0], term("→", maps[1])), row(...product)];
}

function gradientOf(n) {
  return `d loss / d ${nodes[n].name}`;
}
function backward(step, node, panel) {
  const note = step.hooked ? "as a hook has changed it" : "";
  const upstream = labelled(step.grad, `upstream gradient: ${gradientOf(step.node)}`, "gy", note), all = [upstream];
  pointable(upstream, all, null);
  panel.append(row(upstream));
  for (const term of step.sent) {
    const name = `g ${nodes[term.to].name}`;
    if (term.before === null) {
      const map = labelled(term.grad, `to input ${term.input + 1}: ${gradientOf(term.to)}`, name);
      all.push(map);
      pointable(map, all, i => given(node, term.input, map, upstream, i));
      panel.append(row(map));
    } else panel.append(...added(term, all, map => i => given(node, term.input, map, upstream, i)));
  }
  const saved = savedMaps(savedBy.get(step.node) || [], "from forward: saved");
  saved.forEach(map => pointable(map, [...all, ...saved], null));
  if (saved.length) panel.append(row(...saved));
  const to = step.sent.map(term => nodes[term.to].name + (term.before === null ? "" : ", where it is added"));
  return `${named(step.node)} passes its gradient to ${to.join(" and ") || "nobody"}`;
}
// a gradient that is added to what a node has had before
function added(sent, all, explain) {
  const alike = [sent.before, sent.grad, sent.total];
  const maps = ["so far", "from here", "together"].map((title, k) => labelled(alike[k], title, title, "", alike));
  all.push(...maps);
  const [before, grad, total] = maps;
  pointable(before, all, null);
  pointable(grad, all, explain && explain(grad));
  pointable(total, all, i => [[[1, before, i], [1, grad, i]], 0, "is the sum of"]);
  const sum = shell.make("div", "sum");
  sum.append(before.element, term("+", grad), term("=", total));
  const where = sent.input === undefined ? "" : `to input ${sent.input + 1}: `;
  return [shell.make("h3", "", `${where}${gradientOf(sent.to)}, which has several uses: their gradients are added (in one scale of colours)`), sum];
}
// an element of a gradient is the upstream gradient times the coefficients of those that read it
function given(node, input, map, upstream, i) {
  const origins = node.origins;
  if (!origins) return null;
  const uses = usesOf(origins, input, map.array, upstream.array, i).filter(([at]) => at >= 0);
  const terms = uses.map(([at, factor]) => [factor, upstream, at]);
  const partly = origins.rows < upstream.array.shape.reduce((a, b) => a * b, 1) || origins.hidden;
  return [terms, 0, partly ? `is the sum over all uses; of the first ${origins.rows} numbers these` : "is the sum of"];
}

function seed(step, node, panel) {
  const all = [labelled(step.grad, "d loss / d loss", "gy"), labelled(node.value, "the loss", "loss")];
  all.forEach(map => pointable(map, all, null));
  panel.append(row(...all));
  return `backward begins at ${named(step.node)}`;
}
function leaf(step, node, panel) {
  const all = [], value = labelled(node.value, "its value", nodes[step.node].name);
  if (step.before === null) {
    const grad = labelled(step.grad, `.grad: ${gradientOf(step.node)}`, "grad");
    all.push(grad);
    pointable(grad, all, null);
    panel.append(row(grad));
  } else panel.append(...added({to: step.node, before: step.before, grad: step.grad, total: step.total}, all, null));
  all.push(value);
  pointable(value, all, null);
  panel.append(row(value));
  return `${named(step.node)} keeps its gradient`;
}
function update(step, node, panel) {
  const short = nodes[step.node].name;
  const alike = [step.before, step.after];
  const before = labelled(step.before, "before", short, "", alike), grad = labelled(step.grad, "gradient", "grad", step.changed ? "not as backward has left it" : "");
  const after = labelled(step.after, "after", `${short} after`, "", alike);
  const state = step.state.map(s => [
    ...(s.before === null || s.before === undefined ? [] : [labelled(s.before, `${s.name}, before`, s.name)]),
    labelled(s.after, `${s.name}, after`, `${s.name} after`),
  ]);
  const all = [before, grad, after, ...state.flat()];
  // element by element: all maps show the same one
  all.forEach(map => {
    map.onpoint = (i, event) => {
      all.forEach(other => other.mark && other.mark(i === null ? [] : [[i, 1]]));
      shell.tip(event, i === null ? "" : all.map(m => `${m.short}${indexText(m.array.kept, i)} = ${m.value(i)}`).join("\n"));
    };
  });
  panel.append(row(before, grad));
  if (state.length) panel.append(row(...state.flat()));
  panel.append(row(after));
  return `${step.rule} changes ${named(step.node)}`;
}
function write(step, node, panel) {
  const alike = [step.before, step.after];
  const all = ["before", "after"].map((title, k) => labelled(alike[k], title, title, "", alike));
  all.forEach(map => pointable(map, all, null));
  panel.append(row(...all));
  return `${named(step.node)} gets another value`;
}
const draws = {forward, seed, backward, leaf, update, write};

// ---- the picture beside it -----------------------------------------------------------------
// Thousands of elements: what they say is read once, and their classes are set where they change.
const number = (element, name) => +element.dataset[name];
const worn = (element, rest) => ({element, own: element.getAttribute("class"), now: "", ...rest});
const boxes = [...document.querySelectorAll("#graph .node")].map(element => worn(element, {number: number(element, "number")}));
const edges = [...document.querySelectorAll("#graph .edge, #graph .trunk")].map(element => worn(element, {
  from: number(element, "from"), to: number(element, "to"),
  isTrunk: element.classList.contains("trunk"), begins: element.dataset.trunk !== undefined,
}));
const planned = [...document.querySelectorAll("#plan .node")].map(element => worn(element, {stands: plan[element.dataset.number] || []}));
function wear(item, ...classes) {
  const now = classes.filter(cls => cls).map(cls => " " + cls).join("");
  if (now !== item.now) item.element.setAttribute("class", item.own + now);
  item.now = now;
}

function light(at) {
  const step = steps[at], ahead = step.phase === "forward", sent = new Set((step.sent || []).map(term => term.to));
  const reached = (map, n) => map.has(n) && map.get(n) <= at;
  let current = null;
  const takes = ahead ? new Set(nodes[step.node].inputs) : sent;
  for (const box of boxes) {
    const n = box.number, now = n === step.node;
    wear(box, (now || reached(doneAt, n)) && "done", reached(gradedAt, n) && "graded", now && "now", now && !ahead && "back", takes.has(n) && "takes");
    if (now) current = box.element;
  }
  const lit = new Set(edges.filter(edge => edge.begins && edge.to === step.node && (ahead || sent.has(edge.from))).map(edge => edge.from));
  for (const edge of edges) {
    const mine = edge.isTrunk ? lit.has(edge.from) : edge.to === step.node && (ahead || sent.has(edge.from));
    wear(edge, reached(doneAt, edge.isTrunk ? edge.from : edge.to) && "done", mine && (ahead ? "forth" : "back"));
  }
  for (const box of planned) {
    const mine = box.stands.includes(step.node);
    wear(box, mine && "now", mine && !ahead && "back");
    if (mine) show(box.element, shell.$("plan"));
  }
  if (current) show(current, shell.$("graph"));
}
// bring a box into the part of its picture that can be seen
function show(box, scroller) {
  const frame = scroller.getBoundingClientRect(), at = box.getBoundingClientRect();
  if (at.top < frame.top + 10 || at.bottom > frame.bottom - 10) scroller.scrollTop += at.top - frame.top - (frame.height - at.height) / 2;
  if (at.left < frame.left || at.right > frame.right) scroller.scrollLeft += at.left - frame.left - (frame.width - at.width) / 2;
}
for (const {element, number: n} of boxes) {
  element.onclick = () => {
    const about = step => step.node === n;
    const later = steps.findIndex((step, at) => at > shell.at() && about(step)), first = steps.findIndex(about);
    const used = steps.findIndex(step => nodes[step.node].inputs.includes(n));
    shell.go(later >= 0 ? later : first >= 0 ? first : Math.max(0, used));
  };
}
for (const {element, stands} of planned) {
  element.onclick = () => {
    const at = steps.findIndex(step => stands.includes(step.node));
    if (at >= 0) shell.go(at);
  };
}
// as wide as drawn where there is room, and never so narrow that text cannot be read
for (const picture of document.querySelectorAll("#graph svg, #plan svg")) {
  const width = +picture.getAttribute("width");
  picture.style.maxWidth = width + "px";
  picture.style.minWidth = Math.min(width, Math.max(260, .6 * width)) + "px";
}

shell.run({count: steps.length, draw: at => {
  const step = steps[at], node = nodes[step.node], panel = shell.$("panel");
  panel.replaceChildren();
  panel.className = step.phase === "forward" ? "ahead" : "backwards";
  const head = shell.make("h2");
  head.append(shell.make("span", "phase", PHASES[step.phase]), named(step.node) + " ");
  const about = step.phase === "update" ? `${step.rule}: ${step.settings}` : node.op || node.kind;
  head.append(shell.make("small", "", about));
  panel.append(head);
  if (step.phase === "update") panel.append(formulaBox(step.formulas, "forward"));
  else if (node.formulas !== null && step.phase !== "seed") panel.append(formulaBox(node.formulas, step.phase === "forward" ? "forward" : "backward"));
  const words = draws[step.phase](step, node, panel);
  if (at === 0) panel.append(shell.make("p", "facts", "Point at a number, and see what it comes from. Keys: left, right, Home, End, space."));
  light(at);
  return words;
}});
