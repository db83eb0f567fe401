
// ---- memory -------------------------------------------------------------------------------------
function cellOf(array, a, index, memory, lanes, step, marked) {
  const value = memory[a][index] ?? undefined;  // null: bytes that nobody has noted
  const space = array.element === 8 ? 7 : room, text = value === undefined ? "" : shown(value, space);
  const [cls, verb] = {read: ["r", "read"], stop: ["x", "wanted"]}[step.kind] || ["w", "wrote"];
  const cell = make("span", lanes ? cls : "", text);
  if (text.length > space) cell.classList.add("tiny");
  if (value === undefined) cell.classList.add("none");
  if (marked.has(index)) cell.classList.add("racy");
  cell.dataset.index = index;
  if (value !== undefined) cell.dataset.value = value;
  cell.tip = () => `${element(array, index)} = ${value === undefined ? "nobody has written it" : value}` +
    (lanes ? `; lane${lanes.length > 1 ? "s" : ""} ${lanes.join(", ")} ${verb}` : "");
  return cell;
}
function drawShared(array, a, step, memory, marked) {
  const mine = step.array === a && step.offsets, hit = mine ? touched(step) : new Map();
  const perWord = Math.max(1, Math.floor(WORD / array.element)), words = Math.max(1, Math.ceil(array.element / WORD));
  const box = make("section", "memory shared");
  box.append(make("h3", "", `shared ${array.name}: ${array.type}, 32 banks of 4 bytes` + (mine && step.cost && step.cost[0] > step.cost[1] ? ` – conflict, ${step.cost[0]} turns` : "")));
  const total = Math.ceil(array.bytes / (WORD * WARP)), perRow = WORD * WARP / array.element;
  const grid = make("div", "banks" + (total > 8 ? " tall" : "")), depth = new Array(WARP).fill(0), seen = new Set();
  const bands = [make("div", "band"), make("div", "band")];  // 16 banks each, beside or below each other
  const bandOf = index => bands[Math.floor(index * array.element / WORD) % WARP < WARP / 2 ? 0 : 1];
  const skip = rows => bands.forEach(band => band.append(make("small", "gap", `… ${plural(rows, "row")} …`)));
  grid.append(...bands);
  if (mine && step.cost) step.offsets.forEach(offset => {
    for (let byte = 0; byte < step.size; byte += WORD) seen.add(Math.floor((offset + byte) / WORD));
  });
  seen.forEach(word => depth[word % WARP]++);
  const most = Math.max(...depth);
  depth.forEach((d, bank) => {
    const head = make("em", d > 1 && step.cost[0] > step.cost[1] ? "hot" : d ? "hit" : "", d > 1 ? "×" + d : bank);
    head.tip = () => `bank ${bank}` + (d ? `: ${plural(d, "word")} wanted` : "");
    if (d > 1) head.dataset.depth = d;
    bands[bank < WARP / 2 ? 0 : 1].append(head);
  });
  const rowOf = index => Math.floor(index * array.element / (WORD * WARP));
  const wanted = new Set(total <= MOST_ROWS ? Array(total).keys() : [...hit.keys()].map(rowOf));
  if (!wanted.size) for (let k = 0; k < Math.min(4, total); k++) wanted.add(k);
  let last = -1;
  for (const row of [...wanted].sort((p, q) => p - q)) {
    if (row > last + 1) skip(row - last - 1);
    last = row;
    for (let index = Math.ceil(row * perRow); index < Math.min((row + 1) * perRow, array.bytes / array.element); index += perWord) {
      const cell = perWord === 1 ? cellOf(array, a, index, memory, hit.get(index), step, marked) : make("span", "parts");
      if (perWord > 1) for (let k = 0; k < perWord && (index + k) * array.element < array.bytes; k++)
        cell.append(cellOf(array, a, index + k, memory, hit.get(index + k), step, marked));
      if (words > 1) cell.classList.add("wide" + Math.min(words, 8));
      bandOf(index).append(cell);
    }
  }
  if (last < total - 1) skip(total - 1 - last);
  box.append(scroller(grid, `shared ${array.name} by bank`), ...outside(array, hit, array.bytes / array.element));
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
  const total = size ? sectorOf(size - 1) + 1 : 0, asked = new Set();
  if (mine) step.offsets.forEach(offset => {
    for (let s = Math.floor((offset + array.base) / SECTOR); s <= Math.floor((offset + array.base + step.size - 1) / SECTOR); s++) asked.add(s);
  });
  const moved = mine && step.cost ? asked : new Set();
  let wanted = asked;
  if (mine && !step.cost)  // stopped: what is there of it, and the end that it goes beyond
    wanted = new Set([...asked].map(s => Math.max(0, Math.min(s, total - 1))).slice(0, total ? MOST_SECTORS : 0));
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
  const far = [...hit.keys()].filter(index => index < 0 || index >= size);
  if (!far.length) return [];
  const lie = far.length === 1 ? "lies" : "lie";
  return [make("p", "outside", `${range(array, far)} ${lie} outside: the array has ${plural(size, "element")}, 0 to ${size - 1}`)];
}
