
// A launch of a kernel: which block is drawn, what is so after each of its steps, and the words for
// it.  data.py says what shell.data holds.
const {data, $, make, tip} = shell;
const WARP = 32, SECTOR = 32, WORD = 4, MOST_SECTORS = 16, MOST_ROWS = 33;
const VERBS = {
  code: "compute", read: "read", write: "write", atomic: "update", barrier: "come to the barrier",
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
function shown(value, space = room) {  // in so many characters, as exactly as they allow
  if (value === null || value === undefined) return "";
  if (typeof value !== "number") return typeof value === "boolean" ? String(+value) : value;
  const short = text => text.replace(/e\+?/, "e").replace(/^(-?)0\./, "$1.");
  let text = String(value);
  if (value < 0) space++;
  if (Number.isInteger(value) && text.length <= 4) return text;
  for (let digits = space; short(text).length > space && digits > 0; digits--) {
    text = String(+value.toPrecision(digits));
    if (short(text).length > space) text = value.toExponential(digits - 1);
  }
  return short(text);
}
function threadName(thread) {
  const [x, y] = data.block;
  const at = [thread % x, Math.floor(thread / x) % y, Math.floor(thread / x / y)];
  return data.block[2] > 1 ? `(${at})` : data.block[1] > 1 ? `(${at.slice(0, 2)})` : String(thread);
}
function range(array, indices) {  // x[3], or x[3] ... x[8]
  const [low, high] = [Math.min(...indices), Math.max(...indices)];
  return low === high ? element(array, low) : `${element(array, low)} … ${element(array, high)}`;
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
  block = {...given, run, order, number, states: [], memory: null, held: null, done: -1};
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
    block.held = new Map();
    block.memory = data.arrays.map((array, a) => {
      const cells = new Array(Math.ceil(array.bytes / array.element));
      for (const [begin, values] of block.initial[a]) values.forEach((v, k) => cells[begin + k] = v);
      return cells;
    });
  }
  while (block.done < at) {
    const step = block.steps[++block.done];
    for (const [variable, mask, values] of step.set || [])
      lanesOf(mask).forEach((lane, k) => {
        const thread = step.warp * WARP + lane;
        if (!block.held.has(thread)) block.held.set(thread, new Map());
        block.held.get(thread).set(variable, values[k]);
      });
    if (step.stored) for (const [index, value] of step.stored) block.memory[step.array][index] = value;
  }
  return block.memory;
}
// What the variables of the function of a step hold, by lane: [[name, values]].
function variables(step) {
  if (step.lanes === undefined || !step.line) return [];
  const begins = new Map();  // where a function's first variable is declared
  for (const [, name, line] of data.variables) begins.set(name, Math.min(line, begins.get(name) ?? line));
  const around = [...begins].filter(([, line]) => line <= step.line).sort((a, b) => b[1] - a[1])[0];
  if (!around) return [];
  const found = new Map();
  data.variables.forEach(([name, within, line], k) => {
    if (within !== around[0] || line > step.line) return;
    const held = lanesOf(step.lanes).map(lane => block.held.get(step.warp * WARP + lane)?.get(k));
    if (held.some(value => value !== undefined)) found.set(name, held);
  });
  return [...found];
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
  if (n === 1) return `lane ${lanesOf(step.lanes)[0]} of warp ${step.warp}`;
  return n === all ? `all ${n} lanes of warp ${step.warp}` : `${n} of ${all} lanes of warp ${step.warp}`;
}
function headline(step) {
  if (step.kind === "open") return `all ${plural(step.come, "thread")} that are left have come: the barrier opens`;
  if (step.kind === "stop") {
    const array = data.arrays[step.array];
    const are = count(step.lanes) === 1 ? "is stopped: it goes" : "are stopped: they go";
    return `${who(step)} ${are} for ${array ? range(array, step.offsets.map(o => Math.floor(o / array.element))) : "memory of no array"}`;
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
    [waits, n => `${n} wait${n === 1 ? "s" : ""} at the barrier`],
    [left, n => `${n} ${n === 1 ? "has" : "have"} left`],
    [lost, n => `${n} ${wasLost(n)}`],
  ].filter(([mask]) => mask).map(([mask, text]) => text(count(mask))).join(", ");
}
// why a thread goes no further, though it has not left
const wasLost = n => data.cut ? `${n === 1 ? "is" : "are"} not recorded any further`
  : `never had ${n === 1 ? "its" : "their"} turn: the launch was stopped`;
const upper = text => text[0].toUpperCase() + text.slice(1);
