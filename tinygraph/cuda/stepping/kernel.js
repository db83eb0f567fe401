
// ---- beside the steps: which block, which order, the source --------------------------------------
function prepareChoice() {
  const choice = $("choice");
  choice.replaceChildren();
  if (block.run.blocks.length > 1 || data.blocks > 1) {
    const label = make("label", "", "block "), select = make("select");
    block.run.blocks.forEach(b => {
      const option = make("option", "", `${b.name}${b.jumps.length ? " – a mistake" : ""}`);
      option.value = b.number;
      option.selected = b === block.run.blocks[block.number];
      select.append(option);
    });
    select.onchange = () => shell.option("block", select.value);
    label.append(select);
    choice.append(label);
    const rest = data.blocks - block.run.blocks.length;
    if (rest) choice.append(make("span", "soft", `${rest} more of ${data.blocks} ${rest === 1 ? "is" : "are"} not recorded`));
  }
  if (data.runs.length > 1) {
    const group = make("span", "order");
    group.setAttribute("role", "group");
    group.setAttribute("aria-label", "order of the threads");
    data.runs.forEach((run, k) => {
      const button = make("button", k === block.order ? "on" : "", run.order);
      button.setAttribute("aria-pressed", k === block.order);
      button.onclick = () => shell.option("order", k);
      group.append(button);
    });
    choice.append(group);
  }
  $("notes").replaceChildren(...data.notes.concat(block.notes).map(text => make("p", "note", text)));
}
let file = null;
function drawSource(step) {
  const wanted = step.file || 0;
  if (file !== wanted) {
    file = wanted;
    $("file").textContent = data.files[file].name;
    $("code").replaceChildren(...data.files[file].lines.map((text, k) => {
      const row = make("li");
      row.append(make("i", "", k + 1), make("code", "", text || " "));
      return row;
    }));
  }
  const rows = $("code").children;
  for (const row of $("code").querySelectorAll(".now, .other, .wrong")) row.className = "";
  for (const found of block.run.findings)
    for (const place of [found.place, found.other])
      if (place && place.file === file && rows[place.line - 1]) rows[place.line - 1].classList.add("wrong");
  const row = step.line && rows[step.line - 1];
  if (row) {
    row.className = "now " + step.kind + (row.classList.contains("wrong") ? " wrong" : "");
    const box = $("code"), top = row.offsetTop;  // in the box, for that is positioned
    if (top < box.scrollTop + 20 || top > box.scrollTop + box.clientHeight - 40)
      box.scrollTop = top - box.clientHeight / 2;
  }
}
function drawTotals(at) {
  const sums = new Map();
  for (const step of block.steps.slice(0, at + 1)) {
    if (!step.cost) continue;
    const space = data.arrays[step.array].space === "shared" ? "shared" : "global";
    const verb = {read: "load", write: "store", atomic: "atomic"}[step.kind];
    const key = [step.file || 0, step.line, space, verb, step.size].join();
    const sum = sums.get(key) || {step, space, verb, requests: 0, took: 0, least: 0};
    sum.requests++;
    sum.took += step.cost[0];
    sum.least += step.cost[1];
    sums.set(key, sum);
  }
  const rows = [...sums.values()].sort((a, b) => (a.step.file || 0) - (b.step.file || 0) || a.step.line - b.step.line);
  $("totals").replaceChildren(...rows.map(sum => {
    const row = make("tr");
    row.dataset.key = [sum.step.line, sum.space, sum.verb, sum.step.size].join(" ");
    const unit = sum.space === "shared" ? "turn" : "sector";
    const file = data.files.length > 1 ? `${data.files[sum.step.file || 0].name}:` : "";
    for (const text of [file + sum.step.line, `${sum.space} ${sum.verb}`, sum.step.size, sum.requests,
      plural(sum.took, unit), sum.least]) row.append(make("td", "", text));
    if (sum.took > sum.least) row.children[4].className = "hot";
    return row;
  }));
}

// ---- mistakes -----------------------------------------------------------------------------------
// [block, step] where the other thread of a mistake has touched the element, as far as it is recorded
function otherAccess(found, at) {
  if (!found.otherAt || found.index === null) return null;
  const [number, thread] = found.otherAt, there = block.run.blocks.find(b => b.number === number);
  if (!there) return null;
  const same = there.number === block.run.blocks[block.number].number, lane = thread % WARP;
  const isOther = (step, k) => {
    if (same && k === at || step.warp !== Math.floor(thread / WARP) || !has(step.lanes, lane) || step.array === undefined) return false;
    if (data.arrays[step.array].name !== found.array || found.other && step.line !== found.other.line) return false;
    if (step.kind === "read" && block.steps[at].kind === "read") return false;  // two reads are no race
    return (touched(step).get(found.index) || []).includes(lane);
  };
  const before = there.steps.slice(0, same ? at : undefined).findLastIndex(isOther);
  const to = before >= 0 ? before : there.steps.findIndex(isOther);
  return to < 0 ? null : [there, to, same];
}
function drawFinding(found, at) {
  const box = make("section", "found here");
  const head = make("h3", "", found.kind), other = otherAccess(found, at);
  box.append(head, make("pre", "", found.message));
  if (other) {
    const [there, to, same] = other;
    const button = make("button", "wrong", `the other thread's access: ${same ? "" : `block ${there.name}, `}step ${to + 1}`);
    button.onclick = () => { if (!same) shell.option("block", there.number); shell.go(to); };
    box.append(button);
  }
  return box;
}
// Where the mistakes of the run are seen: {found, there, to, words}, first those of this block.  One
// that no step has, such as an element that nobody wrote, is seen at the end.
function placesOfFindings() {
  const here = block.run.blocks[block.number], last = block.steps.length - 1;
  const places = block.run.findings.map((found, k) => {
    for (const there of block.run.blocks)
      for (const [number, to] of there.jumps)
        if (number === k) return {found, there, to, words: `${there === here ? "at" : `in block ${there.name},`} step ${to + 1}`};
    return {found, there: here, to: last, words: found.block === null ? "at the end" : "in a part that is not recorded"};
  });
  const far = place => (place.there === here ? 0 : 1e9) + place.to;
  return places.sort((a, b) => far(a) - far(b));
}
function drawFindings(at) {
  const here = block.run.blocks[block.number], boxes = [], row = make("p", "jumps");
  for (const {found, there, to, words} of placesOfFindings()) {
    if (there === here && to === at) { boxes.push(drawFinding(found, at)); continue; }
    const button = make("button", "wrong", `${found.kind} ${words}`);
    button.onclick = () => { if (there !== here) shell.option("block", there.number); shell.go(to); };
    row.append(button);
  }
  if (row.children.length) boxes.push(row);
  return boxes;
}
function drawOutcome() {
  if (!data.outcome.length) return [];
  const box = make("section", "outcome"), table = make("table"), head = make("tr");
  for (const text of ["element", ...data.runs.map(run => run.order)]) head.append(make("th", "", text));
  table.append(head);
  for (const [name, ...values] of data.outcome) {
    const row = make("tr");
    [name, ...values].forEach(text => row.append(make("td", "", text)));
    table.append(row);
  }
  box.append(make("h3", "", `two orders of the threads, two outcomes${data.more ? ` (the first of ${data.outcome.length + data.more})` : ""}`), table);
  return [box];
}

// How much can be written into the cell of a lane, and how large.
function fit() {
  const look = getComputedStyle($("panel")), of = name => parseFloat(look.getPropertyValue(name)), rem = 16;
  const width = Math.min($("panel").clientWidth, 72 * rem) - of("--label") * rem - of("--side");
  const inside = width / of("--lanes") - 3.5;  // borders, and the gap
  room = Math.max(3, Math.min(7, Math.floor(inside / 4.9)));
  $("panel").style.setProperty("--digits", Math.max(7, Math.min(9.5, inside / room / .545)) + "px");
}
function draw(at) {
  load();
  at = Math.min(at, block.steps.length - 1);
  const step = block.steps[at], now = block.states[at], memory = remember(at);
  const here = block.run.blocks[block.number];
  const finding = placesOfFindings().find(place => place.there === here && place.to === at)?.found;
  const marked = finding && finding.block === here.number ? [["culprit", finding.thread], ["other", finding.otherThread]] : [];
  const racy = name => new Set(block.run.findings.filter(f => f.array === name && f.index !== null).map(f => f.index));
  fit();
  drawTotals(at);
  drawSource(step);  // behind the table, which takes room from it
  const title = make("h2"), line = step.line ? `Line ${step.line}` : "";
  title.append(make("span", "kind " + step.kind, line || "barrier"), " " + upper(headline(step)));
  const rest = restWords(step, now), cost = costWords(step);
  const facts = make("p", "cost" + (step.cost && step.cost[0] > step.cost[1] ? " hot" : ""), cost);
  const parts = [title];
  if (cost) parts.push(facts);
  if (rest) parts.push(make("p", "soft", upper(rest) + "."));
  parts.push(...drawFindings(at), drawWarps(step, now, marked));
  const registers = drawRegisters(step);
  if (registers) parts.push(registers);
  for (const [isShared, drawn] of [[true, drawShared], [false, drawGlobal]])
    data.arrays.forEach((array, a) => {
      if (array.used && (array.space === "shared") === isShared) parts.push(drawn(array, a, step, memory, racy(array.name)));
    });
  if (at === block.steps.length - 1 || finding) parts.push(...drawOutcome());
  $("panel").replaceChildren(...parts);
  return [`${line}: ${headline(step)}.`, cost, rest ? rest + "." : "", finding ? `${finding.kind}: ${finding.message}` : ""].filter(t => t).join(" ");
}
$("panel").classList.toggle("cut", data.cut);
$("totals").closest("details").open = matchMedia("(min-width: 52rem)").matches;
$("panel").addEventListener("mousemove", event => tip(event, event.target.tip ? event.target.tip() : ""));
$("panel").addEventListener("mouseleave", event => tip(event, ""));
// `#step=mistake`: the first one of the block, or of the launch
function named(step) {
  load();
  const place = step === "mistake" && placesOfFindings()[0];
  if (!place) return undefined;
  if (place.there !== block.run.blocks[block.number]) shell.option("block", place.there.number);
  return place.to;
}
shell.run({get count() { load(); return block.steps.length; }, draw, named});
