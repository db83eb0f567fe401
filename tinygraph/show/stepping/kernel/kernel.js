
// A launch of a kernel: lanes of warps, shared memory as banks, global memory as sectors.
// data.py says what shell.data holds.
(() => {
const {data, $, make, tip} = shell;
const WARP = 32, SECTOR = 32, WORD = 4, MOST_SECTORS = 16, MOST_ROWS = 33;
const VERBS = {
  code: "compute", read: "read", write: "write", atomic: "update", barrier: "come to the gate",
  meet: "meet", exchange: "exchange values",
};
const count = mask => { let n = 0; for (let m = mask >>> 0; m; m &= m - 1) n++; return n; };
const has = (mask, lane) => (mask >>> lane & 1) === 1;
const lanesOf = mask => [...Array(WARP).keys()].filter(lane => has(mask, lane));
const plural = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;
const warps = Math.ceil(data.threads / WARP);
const whole = warp => {  // the lanes that a warp has: the last one may be partly filled
  const n = Math.min(WARP, data.threads - warp * WARP);
  return n === WARP ? 0xffffffff : 2 ** n - 1;
};
let room = 4;  // characters in a cell
function shown(value) {  // in so many characters, as exactly as they allow
  if (value === null || value === undefined) return "";
  if (typeof value !== "number") return typeof value === "boolean" ? String(+value) : value;
  const short = text => text.replace(/e\+?/, "e").replace(/^(-?)0\./, "$1.");
  let text = String(value);
  for (let digits = room; short(text).length > room && digits > 0; digits--) {
    text = String(+value.toPrecision(digits));
    if (short(text).length > room) text = value.toExponential(digits - 1);
  }
  return short(text);
}
function threadName(thread) {
  const [x, y] = data.block;
  const at = [thread % x, Math.floor(thread / x) % y, Math.floor(thread / x / y)];
  return data.block[2] > 1 ? `(${at})` : data.block[1] > 1 ? `(${at.slice(0, 2)})` : String(thread);
}
function element(array, index) {  // x[17], of several axes x[1, 3]
  if (!array.shape || array.shape.length < 2) return `${array.name}[${index}]`;
  const at = [];
  let rest = index;
  for (let k = array.shape.length - 1; k >= 0; k--) {
    at.unshift(rest % array.shape[k]);
    rest = Math.floor(rest / array.shape[k]);
  }
  return `${array.name}[${at.join(", ")}]`;
}

// ---- one block of one run: its steps, and what is so after each of them -----------------------
let block = null;  // what is drawn
function load() {
  const order = +(shell.option("order") || 0) && data.runs.length > 1 ? 1 : 0, run = data.runs[order];
  const number = Math.max(0, run.blocks.findIndex(b => b.number === +shell.option("block")));
  if (block && block.order === order && block.number === number) return;
  const given = run.blocks[number];
  block = {...given, run, order, number, states: [], totals: [], memory: null, done: -1};
  const none = new Array(warps).fill(0);
  let now = {waiting: none, left: none, lost: given.absent};
  for (const step of given.steps) {
    const next = {waiting: [...now.waiting], left: [...now.left], lost: [...now.lost]};
    if (step.kind === "barrier") next.waiting[step.warp] |= step.lanes;
    if (step.kind === "open") next.waiting.fill(0);
    if (step.left) next.left[step.warp] |= step.left;
    if (step.lost) next.lost[step.warp] |= step.lost;
    block.states.push(now = next);
  }
  prepareChoice();
}
function remember(at) {  // what memory holds after step `at`
  if (!block.memory || at < block.done) {
    block.done = -1;
    block.memory = data.arrays.map((array, a) => {
      const cells = new Array(Math.ceil(array.bytes / array.element));
      for (const [begin, values] of block.initial[a]) values.forEach((v, k) => cells[begin + k] = v);
      return cells;
    });
  }
  while (block.done < at) {
    const step = block.steps[++block.done];
    if (step.stored) for (const [index, value] of step.stored) block.memory[step.array][index] = value;
  }
  return block.memory;
}
// Which elements a step touches: {element: lanes}
function touched(step) {
  const found = new Map();
  if (step.array === undefined) return found;
  const array = data.arrays[step.array];
  lanesOf(step.lanes).forEach((lane, k) => {
    const first = Math.floor(step.offsets[k] / array.element);
    const last = Math.floor((step.offsets[k] + step.size - 1) / array.element);
    for (let e = first; e <= last; e++) found.set(e, [...(found.get(e) || []), lane]);
  });
  return found;
}

// ---- words --------------------------------------------------------------------------------------
function who(step) {
  const n = count(step.lanes), all = count(whole(step.warp));
  if (n === 1 && all > 1) return `lane ${lanesOf(step.lanes)[0]} of warp ${step.warp}`;
  return n === all ? `all ${n} lanes of warp ${step.warp}` : `${n} of ${all} lanes of warp ${step.warp}`;
}
function headline(step) {
  if (step.kind === "open") return `all ${plural(step.come, "thread")} that are left have come: the gate opens`;
  if (step.kind === "stop") {
    const array = data.arrays[step.array];
    return `${who(step)} is stopped: it goes for ` +
      (array ? step.offsets.map(o => element(array, Math.floor(o / array.element))).join(", ") : "memory of no array");
  }
  const s = count(step.lanes) === 1 ? VERBS[step.kind].replace(/^(\w+)/, "$1s") : VERBS[step.kind];
  const what = step.array === undefined ? step.call ? ` by ${step.call}` : "" : " " + data.arrays[step.array].name;
  return `${who(step)} ${s}${what}`;
}
function costWords(step) {
  if (!step.cost) return "";
  const [took, least] = step.cost, array = data.arrays[step.array];
  if (array.space === "shared")
    return took > least ? `Bank conflict: the request takes ${took} turns, ${least} would do.`
      : `No bank conflict: the request takes ${plural(took, "turn")}.`;
  const bytes = new Set(step.offsets).size * step.size;
  return `${plural(bytes, "byte")} ${bytes === 1 ? "is" : "are"} needed, ${plural(took, "sector")} of 32 bytes ` +
    `${took === 1 ? "is" : "are"} moved` + (took > least ? `, ${took * SECTOR} bytes; ${plural(least, "sector")} would do.` : ": as few as can be.");
}
function restWords(step, state) {
  if (step.warp === undefined) return "";
  const left = state.left[step.warp] & ~step.lanes, waits = state.waiting[step.warp] & ~step.lanes;
  const lost = state.lost[step.warp] & ~(step.lanes | waits);
  const other = whole(step.warp) & ~(step.lanes | left | waits | lost);
  return [
    [other, n => `${n} ${n === 1 ? "is" : "are"} elsewhere in the code`],
    [waits, n => `${n} wait${n === 1 ? "s" : ""} at the gate`],
    [left, n => `${n} ${n === 1 ? "has" : "have"} left`],
    [lost, n => `${n} never had ${n === 1 ? "its" : "their"} turn: the launch was stopped`],
  ].filter(([mask]) => mask).map(([mask, text]) => text(count(mask))).join(", ");
}
const upper = text => text[0].toUpperCase() + text.slice(1);

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
    if (rest) choice.append(make("span", "soft", `${rest} more of ${data.blocks} are not recorded`));
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
    const box = $("code"), top = row.offsetTop - box.offsetTop;
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
    for (const text of [sum.step.line, `${sum.space} ${sum.verb}`, sum.step.size, sum.requests,
      plural(sum.took, unit), sum.least]) row.append(make("td", "", text));
    if (sum.took > sum.least) row.children[4].className = "hot";
    return row;
  }));
}

// ---- threads ------------------------------------------------------------------------------------
function state(step, now, warp, lane) {
  if (!has(whole(warp), lane)) return "absent";
  if (step.warp === warp && has(step.lanes, lane)) return step.kind;
  if (has(now.left[warp], lane)) return "left";
  if (has(now.waiting[warp], lane)) return "waits";
  if (has(now.lost[warp], lane)) return "lost";
  return step.warp === warp ? "elsewhere" : "idle";
}
const STATES = {
  code: "computes", read: "reads", write: "writes", atomic: "updates", barrier: "comes to the gate",
  meet: "meets its warp", exchange: "exchanges a value", left: "has left the kernel", stop: "is stopped",
  waits: "waits at the gate", lost: "never had its turn: the launch was stopped", elsewhere: "is elsewhere in the code", idle: "can go on", absent: "does not exist",
};
function drawWarps(step, now, marked) {
  const box = make("section", "warps"), gate = now.waiting.some(m => m) ? "closed" : step.kind === "open" ? "open" : "";
  const waits = now.waiting.reduce((sum, mask) => sum + count(mask), 0);
  const grid = make("div", "grid");
  for (let warp = 0; warp < warps; warp++) {
    const row = make("div", "warp" + (warp === step.warp ? " now" : ""));
    row.append(make("span", "name", `warp ${warp}`));
    for (let lane = 0; lane < WARP; lane++) {
      const kind = state(step, now, warp, lane), thread = warp * WARP + lane;
      const cell = make("b", kind, lane);
      cell.dataset.tip = kind === "absent" ? "no thread: the block ends before" : `thread ${threadName(thread)}, lane ${lane}: ${STATES[kind]}`;
      for (const [cls, number] of marked) if (number === thread) cell.classList.add(cls);
      row.append(cell);
    }
    if (gate) row.append(make("i", "gate " + gate));
    grid.append(row);
  }
  const text = gate === "closed" ? `: ${waits} of ${data.threads} threads wait at the gate` : gate ? ": the gate is open" : "";
  box.append(make("h3", "", `threads of the block${text}`), scroll(grid, "threads of the block, by warp and lane"));
  return box;
}
function scroll(body, label) {
  const box = make("div", "scroll");
  box.tabIndex = 0;
  box.setAttribute("role", "img");
  box.setAttribute("aria-label", label);
  box.append(body);
  return box;
}
// What each lane of the step has: the element, its value, its variables.
function drawRegisters(step) {
  const rows = [];
  const lanes = step.lanes === undefined ? [] : lanesOf(step.lanes);
  if (step.array !== undefined) {
    const array = data.arrays[step.array];
    rows.push([`${array.name}[ ]`, lanes.map((_, k) => Math.floor(step.offsets[k] / array.element)), lanes]);
  }
  if (step.values) rows.push([{read: "gets", write: "puts", atomic: "leaves"}[step.kind], step.values, lanes, step.odd]);
  for (const [name, values] of step.rows || []) rows.push([name, values, lanes]);
  for (const [name, values, from] of step.locals || []) rows.push([name, values, lanesOf(from)]);
  if (!rows.length) return null;
  const grid = make("div", "grid registers");
  const head = make("div", "warp");
  head.append(make("span", "name", `warp ${step.warp}`));
  for (let lane = 0; lane < WARP; lane++) head.append(make("b", has(step.lanes, lane) ? step.kind : "idle", lane));
  grid.append(head);
  for (const [name, values, at, odd] of rows) {
    const row = make("div", "warp");
    row.dataset.name = name;
    row.append(make("span", "name", name));
    for (let lane = 0; lane < WARP; lane++) {
      const k = at.indexOf(lane), value = k < 0 ? undefined : values[k];
      const text = Array.isArray(value) ? value.map(shown).join(" ") : shown(value);
      const cell = make("u", k < 0 ? "none" : "", text);
      if (k >= 0) {
        cell.dataset.value = value;
        cell.dataset.tip = `lane ${lane}: ${name} ${Array.isArray(value) ? value.join(", ") : value}`;
        if (odd && odd.includes(k)) {
          cell.className = "odd";
          cell.dataset.tip += "; not what the cell holds here: in this run another thread came in between";
        }
      }
      row.append(cell);
    }
    grid.append(row);
  }
  const box = make("section");
  box.append(make("h3", "", "what these lanes have"), scroll(grid, "values of the lanes"));
  return box;
}

// ---- memory -------------------------------------------------------------------------------------
function cellOf(array, a, index, memory, lanes, step, marked) {
  const value = memory[a][index];
  const cell = make("span", lanes ? (step.kind === "read" ? "r" : "w") : "", value === undefined ? "" : shown(value));
  if (value === undefined) cell.classList.add("none");
  if (marked.has(index)) cell.classList.add("racy");
  cell.dataset.index = index;
  if (value !== undefined) cell.dataset.value = value;
  const does = lanes ? `; lane${lanes.length > 1 ? "s" : ""} ${lanes.join(", ")} ${step.kind === "read" ? "read" : "wrote"}` : "";
  cell.dataset.tip = `${element(array, index)} = ${value === undefined ? "nobody has written it" : value}${does}`;
  return cell;
}
function drawShared(array, a, step, memory, marked) {
  const mine = step.array === a && step.offsets, hit = mine ? touched(step) : new Map();
  const perWord = Math.max(1, Math.floor(WORD / array.element)), words = Math.max(1, Math.ceil(array.element / WORD));
  const box = make("section", "memory shared");
  box.append(make("h3", "", `shared ${array.name}: ${array.type}, 32 banks of 4 bytes` + (mine && step.cost && step.cost[0] > step.cost[1] ? ` – conflict, ${step.cost[0]} turns` : "")));
  const grid = make("div", "banks"), depth = new Array(WARP).fill(0), seen = new Set();
  if (mine && step.cost) step.offsets.forEach(offset => {
    for (let byte = 0; byte < step.size; byte += WORD) seen.add(Math.floor((offset + byte) / WORD));
  });
  seen.forEach(word => depth[word % WARP]++);
  const most = Math.max(...depth);
  depth.forEach((d, bank) => {
    const head = make("em", d > 1 && step.cost[0] > step.cost[1] ? "hot" : d ? "hit" : "", d > 1 ? "×" + d : bank);
    head.dataset.tip = `bank ${bank}` + (d ? `: ${plural(d, "word")} wanted` : "");
    if (d > 1) head.dataset.depth = d;
    grid.append(head);
  });
  const total = Math.ceil(array.bytes / (WORD * WARP)), perRow = WORD * WARP / array.element;
  const rowOf = index => Math.floor(index * array.element / (WORD * WARP));
  const wanted = new Set(total <= MOST_ROWS ? Array(total).keys() : [...hit.keys()].map(rowOf));
  if (!wanted.size) for (let k = 0; k < Math.min(4, total); k++) wanted.add(k);
  let last = -1;
  for (const row of [...wanted].sort((p, q) => p - q)) {
    if (row > last + 1) grid.append(make("small", "gap", `… ${plural(row - last - 1, "row")} …`));
    last = row;
    for (let index = Math.ceil(row * perRow); index < Math.min((row + 1) * perRow, array.bytes / array.element); index += perWord) {
      const cell = perWord === 1 ? cellOf(array, a, index, memory, hit.get(index), step, marked) : make("span", "parts");
      if (perWord > 1) for (let k = 0; k < perWord && (index + k) * array.element < array.bytes; k++)
        cell.append(cellOf(array, a, index + k, memory, hit.get(index + k), step, marked));
      if (words > 1) cell.classList.add("wide" + Math.min(words, 8));
      grid.append(cell);
    }
  }
  if (last < total - 1) grid.append(make("small", "gap", `… ${plural(total - 1 - last, "row")} …`));
  box.append(scroll(grid, `shared ${array.name} by bank`), ...outside(array, hit, array.bytes / array.element));
  return box;
}
let lastTouched = null;
function drawGlobal(array, a, step, memory, marked) {
  const mine = step.array === a && step.offsets, hit = mine ? touched(step) : new Map();
  const perSector = Math.max(1, Math.floor(SECTOR / array.element));
  const sectorOf = index => Math.floor((index * array.element + array.base) / SECTOR);
  const box = make("section", "memory global" + (mine ? "" : " rest"));
  const size = Math.ceil(array.bytes / array.element);
  box.append(make("h3", "", `${array.space} ${array.name}: ${array.type}, ${plural(size, "element")}` + (mine && step.cost ? ` – ${plural(step.cost[0], "sector")} moved` : "")));
  const moved = new Set();
  if (mine && step.cost) step.offsets.forEach(offset => {
    for (let s = Math.floor((offset + array.base) / SECTOR); s <= Math.floor((offset + array.base + step.size - 1) / SECTOR); s++) moved.add(s);
  });
  const total = size ? sectorOf(size - 1) + 1 : 0;
  let wanted = moved;
  if (total <= MOST_SECTORS) wanted = new Set(Array(total).keys());
  else if (!mine) wanted = new Set([...block.steps.slice(0, shell.at()).findLast(s => s.array === a)?.offsets || [0]].map(o => Math.floor((o + array.base) / SECTOR)).filter(s => s >= 0 && s < total).slice(0, 8));
  const grid = make("div", `sectors of${perSector > 8 ? 32 : perSector}`);
  let last = -1;
  for (const sector of [...wanted].sort((p, q) => p - q)) {
    if (sector > last + 1) grid.append(make("small", "gap", `… ${plural(sector - last - 1, "sector")} …`));
    last = sector;
    const frame = make("div", "sector" + (moved.has(sector) ? " moved" : ""));
    frame.dataset.sector = sector;
    const begin = Math.max(0, Math.ceil((sector * SECTOR - array.base) / array.element));
    for (let k = begin; k < size && sectorOf(k) === sector; k++) frame.append(cellOf(array, a, k, memory, hit.get(k), step, marked));
    grid.append(frame);
  }
  if (last < total - 1) grid.append(make("small", "gap", `… ${plural(total - 1 - last, "sector")} …`));
  box.append(grid, ...outside(array, hit, size));
  return box;
}
function outside(array, hit, size) {  // elements that the array does not have
  return [...hit.keys()].filter(index => index < 0 || index >= size).map(index => {
    const cell = make("p", "outside", `${array.name}[${index}] lies outside: the array has ${plural(size, "element")}, 0 to ${size - 1}`);
    cell.dataset.index = index;
    return cell;
  });
}

// ---- mistakes -----------------------------------------------------------------------------------
function drawFinding(found, here) {
  const box = make("section", "found" + (here ? " here" : ""));
  const head = make("h3", "", found.kind);
  box.append(head, make("pre", "", found.message));
  return box;
}
function drawFindings(at) {
  const step = block.steps[at], boxes = [];
  (step.findings || []).forEach(k => boxes.push(drawFinding(block.run.findings[k], true)));
  const jumps = block.jumps.filter(([, to]) => to !== at);
  if (jumps.length) {
    const row = make("p", "jumps");
    for (const [k, to] of jumps) {
      const button = make("button", "wrong", `${block.run.findings[k].kind} at step ${to + 1}`);
      button.onclick = () => shell.go(to);
      row.append(button);
    }
    boxes.push(row);
  }
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

function draw(at) {
  load();
  at = Math.min(at, block.steps.length - 1);
  const step = block.steps[at], now = block.states[at], memory = remember(at);
  const finding = step.findings && block.run.findings[step.findings[0]];
  const marked = finding ? [["culprit", finding.thread], ["other", finding.otherThread]] : [];
  const racy = name => new Set(block.run.findings.filter(f => f.array === name && f.index !== null).map(f => f.index));
  room = Math.max(3, Math.min(7, Math.floor((Math.max($("panel").clientWidth, 800) - 75) / 32 / 5.2 - .5)));
  drawSource(step);
  drawTotals(at);
  const title = make("h2"), line = step.line ? `Line ${step.line}` : "";
  title.append(make("span", "kind " + step.kind, line || "gate"), " " + upper(headline(step)));
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
      if ((array.space === "shared") === isShared) parts.push(drawn(array, a, step, memory, racy(array.name)));
    });
  if (at === block.steps.length - 1 || finding) parts.push(...drawOutcome());
  $("panel").replaceChildren(...parts);
  return [`${line}: ${headline(step)}.`, cost, rest ? rest + "." : "", finding ? `${finding.kind}: ${finding.message}` : ""].filter(t => t).join(" ");
}
$("panel").addEventListener("mousemove", event => {
  const cell = event.target.closest("[data-tip]");
  tip(event, cell ? cell.dataset.tip : "");
});
$("panel").addEventListener("mouseleave", event => tip(event, ""));
shell.run({get count() { load(); return block.steps.length; }, draw});
})();
