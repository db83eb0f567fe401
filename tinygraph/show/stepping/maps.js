
// ---- arrays as maps ------------------------------------------------------------------------
// Small arrays are cells with numbers, larger ones pictures; the last two axes make an image, the
// axes before it a grid of images.  Elements are counted in row-major order, as they are stored.
const bytesOf = text => Uint8Array.from(atob(text), c => c.charCodeAt(0));
const KINDS = {f4: Float32Array, f8: Float64Array, i4: Int32Array, u1: Uint8Array};
const opened = new Map();

function arrayOf(id) {
  if (!opened.has(id)) {
    const entry = shell.data.arrays[id], bytes = bytesOf(entry.data);
    let values = new KINDS[entry.code](bytes.buffer);
    const count = entry.kept.reduce((a, b) => a * b, 1);
    if (values.length === 1 && count > 1) values = new KINDS[entry.code](count).fill(values[0]);
    const far = Math.max(Math.abs(entry.low), Math.abs(entry.high));
    opened.set(id, {...entry, values, far, signed: entry.low < 0});
  }
  return opened.get(id);
}
function bitsOf(values) {
  const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  let text = "";
  for (let k = 0; k < bytes.length; k += 8192) text += String.fromCharCode(...bytes.subarray(k, k + 8192));
  return btoa(text);
}
// the shortest decimal number that is this float32
function exact(v, code) {
  if (code !== "f4" || !Number.isFinite(v)) return String(v);
  for (let digits = 1; digits <= 9; digits++) {
    const short = +v.toPrecision(digits);
    if (Math.fround(short) === v) return String(short);
  }
  return String(v);
}
function layout(shape) {
  // axes of length 1 tell nothing where they would make an image a line: (6, 1, 8) is a matrix
  if (shape.length > 2 && shape.slice(-2).includes(1)) shape = shape.filter(n => n > 1);
  const sizes = [...shape], count = shape.reduce((a, b) => a * b, 1);
  if (count > 12 && count === Math.max(...shape) && (count > 64 || count === shape[0])) {  // a long line
    const width = count <= 80 ? 10 : 64, height = Math.ceil(count / width);
    return {width, height, images: 1, columns: 1, across: width, down: height, gap: 0, flat: true, note: `in rows of ${width}`};
  }
  while (sizes.length < 2) sizes.unshift(1);
  const width = sizes.pop(), height = sizes.pop(), images = sizes.reduce((a, b) => a * b, 1);
  let columns = sizes.length ? sizes[sizes.length - 1] : 1;
  if (columns === 1 || images === columns) columns = images <= 8 ? images : Math.ceil(Math.sqrt(images));
  else if (columns > 16) columns = [16, 15, 14, 13, 12, 11, 10, 9, 8].find(n => columns % n === 0) || 16;
  while (images / columns > 6 && columns * 2 <= 16) columns *= 2;  // several samples in a row
  const gap = images > 1 && width * height > 1 ? 1 : 0;
  const across = columns * (width + gap) - gap, down = Math.ceil(images / columns) * (height + gap) - gap;
  return {width, height, images, columns, across, down, gap, flat: shape.length < 3, note: ""};
}
function shapeText(shape) {
  return shape.length ? shape.join(" × ") : "one number";
}
function indexOf(shape, at) {
  const index = shape.map(() => 0);
  for (let k = shape.length - 1; k >= 0; k--) { index[k] = at % shape[k]; at = Math.floor(at / shape[k]); }
  return index;
}
function indexText(shape, at) {
  return shape.length ? `[${indexOf(shape, at).join(", ")}]` : "";
}

// A map has: element; array; value(i); name; mark(list of [element, weight]); and onpoint, which
// is told the element under the pointer, or null.
function makeMap(id, title, note, alike) {
  const array = alike ? {...arrayOf(id), ...scaleOf(alike)} : arrayOf(id), where = layout(array.kept), box = shell.make("figure", "array");
  const whole = array.kept.join() === array.shape.join();
  const part = whole ? "" : `, shown ${shapeText(array.kept)}`;
  const range = array.values.length === 1 ? "" : `${shell.number(array.low)} … ${shell.number(array.high)}`;
  const facts = [`${array.dtype} ${shapeText(array.shape)}${part}`, range, where.note, note];
  box.dataset.array = id;
  box.dataset.code = array.code;
  box.dataset.shape = array.kept.join();
  box.dataset.bits = bitsOf(array.values);
  const caption = shell.make("figcaption");
  caption.append(shell.make("h3", "", title), shell.make("div", whole ? "facts" : "facts cut", facts.filter(f => f).join(" · ")));
  const map = {element: box, array, name: title, onpoint: null, value: i => exact(array.values[i], array.code)};
  const few = array.values.length <= 80 && where.across <= 12;
  const body = array.values.length ? (few ? cells : picture)(map, where) : shell.make("p", "", "no elements");
  box.append(caption, body);
  return map;
}

function scaleOf(ids) {  // one scale of colours for several arrays
  const arrays = ids.map(arrayOf);
  return {far: Math.max(...arrays.map(array => array.far)), signed: arrays.some(array => array.signed)};
}
function share(array, v) {
  return array.far && array.values.length > 1 ? v / array.far : 0;
}
function cells(map, where) {
  const {array} = map, grid = shell.make("div", "cells"), spans = [];
  const between = k => where.gap && k % (where.width + 1) === where.width;
  const widths = [...Array(where.across).keys()].map(k => between(k) ? ".4rem" : "minmax(2.4rem, max-content)");
  grid.style.gridTemplateColumns = widths.join(" ");
  array.values.forEach((v, i) => {
    const span = shell.make("span", "", shell.number(v)), t = share(array, v), [x, y] = placeOf(where, i);
    span.style.gridColumn = x + 1;
    span.style.gridRow = y + 1;
    span.style.background = shell.colour(t, array.signed);
    span.style.color = shell.ink(t, array.signed);
    span.onpointerenter = event => map.onpoint && map.onpoint(i, event);
    spans.push(span);
    grid.append(span);
  });
  grid.onpointerleave = () => map.onpoint && map.onpoint(null);
  map.mark = marks => {
    spans.forEach(span => span.classList.remove("marked"));
    for (const [i] of marks) if (spans[i]) spans[i].classList.add("marked");
  };
  const scroll = shell.make("div", "scroll");
  scroll.append(grid);
  return scroll;
}
function placeOf(where, i) {
  const size = where.width * where.height, image = Math.floor(i / size), rest = i % size;
  return [
    (image % where.columns) * (where.width + where.gap) + rest % where.width,
    Math.floor(image / where.columns) * (where.height + where.gap) + Math.floor(rest / where.width),
  ];
}
function picture(map, where) {
  const {array} = map, canvas = shell.make("canvas"), marks = shell.make("canvas", "marks");
  const room = Math.min(760, shell.$("panel").clientWidth - 8);
  let wide = Math.max(1, Math.min(16, Math.floor(room / where.across))), high = Math.max(1, Math.min(16, Math.floor(360 / where.down)));
  if (where.flat) high = Math.min(high, Math.max(wide, 10));
  else wide = high = Math.min(wide, high);
  for (const each of [canvas, marks]) {
    each.style.width = where.across * wide + "px";
    each.style.height = where.down * high + "px";
  }
  canvas.width = where.across;
  canvas.height = where.down;
  const ink = canvas.getContext("2d"), pixels = ink.createImageData(where.across, where.down);
  array.values.forEach((v, i) => {
    const [x, y] = placeOf(where, i), at = 4 * (y * where.across + x);
    pixels.data.set(shell.mix(share(array, v), array.signed), at);
    pixels.data[at + 3] = 255;
  });
  ink.putImageData(pixels, 0, 0);
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `${map.name}: ${shapeText(array.shape)}, from ${shell.number(array.low)} to ${shell.number(array.high)}`);
  const hold = shell.make("div", "picture"), scroll = shell.make("div", "scroll");
  hold.onpointermove = event => {
    const frame = canvas.getBoundingClientRect();
    const x = Math.floor((event.clientX - frame.left) / wide), y = Math.floor((event.clientY - frame.top) / high);
    const column = Math.floor(x / (where.width + where.gap)), row = Math.floor(y / (where.height + where.gap));
    const inX = x % (where.width + where.gap), inY = y % (where.height + where.gap);
    const i = (row * where.columns + column) * where.width * where.height + inY * where.width + inX;
    const inside = column < where.columns && inX < where.width && inY < where.height && i >= 0 && i < array.values.length;
    if (map.onpoint) map.onpoint(inside ? i : null, event);
  };
  hold.onpointerdown = hold.onpointermove;
  hold.onpointerleave = () => map.onpoint && map.onpoint(null);
  map.mark = list => {
    const scale = devicePixelRatio || 1;
    marks.width = where.across * wide * scale;
    marks.height = where.down * high * scale;
    const pen = marks.getContext("2d");
    pen.scale(scale, scale);
    pen.lineWidth = Math.min(wide, high) > 5 ? 2 : 1;
    pen.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--mark");
    for (const [i] of list) {
      if (i >= array.values.length) continue;
      const [x, y] = placeOf(where, i);
      pen.strokeRect(x * wide + .5, y * high + .5, Math.max(1, wide - 1), Math.max(1, high - 1));
    }
  };
  hold.append(canvas, marks);
  scroll.append(hold);
  return scroll;
}

// ---- what a number comes from --------------------------------------------------------------
const SPAN = 4096, LISTED = 8;

// rows of a node as typed arrays: see origins.py
function rowsOf(origins) {
  if (!origins.opened) {
    origins.opened = {
      start: new Uint32Array(bytesOf(origins.start).buffer),
      place: new Uint16Array(bytesOf(origins.place).buffer),
      factor: new Float32Array(bytesOf(origins.factor).buffer),
    };
  }
  return origins.opened;
}
// The element at a place of one box of an array, counted in another box; -1 where it is not in it.
function moved(at, from, to) {
  const index = indexOf(from, at);
  return index.every((n, k) => n < to[k]) ? index.reduce((sum, n, k) => sum * to[k] + n, 0) : -1;
}
const cornerOf = array => array.corner || array.kept;
// [input, its element, coefficient] of element i of `output`; null where nothing is known of it.
// The element is -1 where the page does not have it.
function originsOf(origins, output, inputs, i) {
  const row = moved(i, output.kept, cornerOf(output));
  if (row >= origins.rows) return null;
  const {start, place, factor} = rowsOf(origins), found = [];
  for (let k = start[row]; k < start[row + 1]; k++) {
    const input = Math.floor(place[k] / SPAN), array = inputs[input];
    found.push([input, moved(place[k] % SPAN, cornerOf(array), array.kept), factor[k]]);
  }
  return found;
}
// [element of `output`, coefficient] of all rows that read element i of an input, `array`
function usesOf(origins, input, array, output, i) {
  const {start, place, factor} = rowsOf(origins), found = [];
  const wanted = input * SPAN + moved(i, array.kept, cornerOf(array));
  for (let row = 0; row < origins.rows; row++)
    for (let k = start[row]; k < start[row + 1]; k++)
      if (place[k] === wanted) found.push([moved(row, cornerOf(output), output.kept), factor[k]]);
  return found;
}
// "0.5 × x[0, 2] + ...": terms are [coefficient, map, element]
function termsText(terms, more) {
  const lines = terms.slice(0, LISTED).map(([factor, map, i]) =>
    `${shell.number(factor)} × ${map.short}${indexText(map.array.kept, i)}  (${shell.number(map.array.values[i])})`);
  const left = terms.length - LISTED + more;
  if (terms.length > LISTED) lines.push(`and ${left} more`);
  else if (more) lines.push(`and ${more} that are not shown`);
  return lines.join("\n");
}
// each map shows the element under the pointer; `explain(i)` gives [terms, more] or null
function pointable(map, others, explain) {
  map.onpoint = (i, event) => {
    others.forEach(other => other.mark && other.mark([]));
    if (i === null) { map.mark([]); shell.tip(null, ""); return; }
    let text = `${map.short || map.name}${indexText(map.array.kept, i)} = ${map.value(i)}`;
    const found = explain && explain(i);
    if (found) {
      const [terms, more, head] = found, marks = new Map();
      for (const [factor, other, at] of terms) marks.set(other, [...(marks.get(other) || []), [at, factor]]);
      marks.forEach((list, other) => other.mark && other.mark(list));
      text += `\n${head}${terms.length ? "\n" + termsText(terms, more) : ""}`;
    }
    map.mark([[i, 1]]);
    shell.tip(event, text);
  };
}
