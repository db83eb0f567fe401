
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
  code: "computes", read: "reads", write: "writes", atomic: "updates", barrier: "comes to the barrier",
  meet: "meets its warp", exchange: "exchanges a value", left: "has left the kernel", stop: "is stopped",
  waits: "waits at the barrier", lost: wasLost(1), elsewhere: "is elsewhere in the code", idle: "can go on", absent: "does not exist",
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
      cell.tip = () => kind === "absent" ? "no thread: the block ends before"
        : `thread ${threadName(thread)}, lane ${lane}: ${STATES[kind]}`;
      for (const [cls, number] of marked) if (number === thread) cell.classList.add(cls);
      row.append(cell);
    }
    if (gate) row.append(make("i", "gate " + gate));
    grid.append(row);
  }
  const text = gate === "closed" ? `: ${waits} of ${data.threads} threads wait at the barrier` : gate ? ": the barrier is open" : "";
  box.append(make("h3", "", `threads of the block${text}`), scroller(grid, "threads of the block, by warp and lane"));
  return box;
}
function scroller(body, label) {
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
  const same = [];  // what all lanes of the step have alike
  for (const [name, values] of step.rows || []) {
    const isMask = lanes.length > 1 && typeof values[0] === "string" && values.every(value => value === values[0]);
    if (isMask) same.push([name, values[0]]);  // too long for the cell of a lane
    else rows.push([name, values, lanes]);
  }
  for (const [name, values] of variables(step)) {
    if (lanes.length > 1 && values.every(value => value === values[0])) same.push([name, values[0]]);
    else rows.push([name, values, lanes]);
  }
  if (!rows.length && !same.length) return null;
  const grid = make("div", "grid registers");
  const head = make("div", "warp");
  head.append(make("span", "name", `warp ${step.warp}`));
  const there = whole(step.warp);  // the last warp may be partly filled
  for (let lane = 0; lane < WARP; lane++)
    head.append(make("b", has(step.lanes, lane) ? step.kind : has(there, lane) ? "idle" : "absent", lane));
  grid.append(head);
  for (const [name, values, at, odd] of rows) {
    const row = make("div", "warp");
    row.dataset.name = name;
    const label = make("span", "name", name);
    label.tip = () => name;  // it may be cut
    row.append(label);
    for (let lane = 0; lane < WARP; lane++) {
      const k = at.indexOf(lane), value = k < 0 ? undefined : values[k];
      const text = Array.isArray(value) ? value.map(shown).join(" ") : shown(value);
      const cell = make("u", k < 0 ? "none" : text.length > room ? "tiny" : "", text);
      if (k >= 0) {
        cell.dataset.value = value;
        const isOdd = odd && odd.includes(k);
        cell.tip = () => `lane ${lane}: ${name} ${Array.isArray(value) ? value.join(", ") : value}` +
          (isOdd ? "; not what the cell holds here: in this run another thread came in between" : "");
        if (isOdd) cell.className = "odd";
      }
      row.append(cell);
    }
    grid.append(row);
  }
  const box = make("section");
  box.append(make("h3", "", "what these lanes have"));
  if (rows.length) box.append(scroller(grid, "values of the lanes"));
  if (step.odd)
    box.append(make("p", "same", "framed in red: not what the cell holds at this step; in the run another thread came in between"));
  if (same.length) {
    const line = make("p", "same", "alike in all of them: ");
    for (const [name, value] of same) {
      const item = make("code", "", `${name} = ${value}`);
      item.dataset.name = name;
      item.dataset.value = value;
      line.append(item);
    }
    box.append(line);
  }
  return box;
}
