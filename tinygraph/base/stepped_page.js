"use strict";
// What pages that are stepped through share.  A page calls shell.run({count, draw}) at its end:
// draw(at) draws step `at`, from 0, and returns a sentence that a screen reader says.
//
//   shell.data                    what the page was made with
//   shell.$(id)                   an element by its id
//   shell.make(tag, class, text)  a new element; shell.svg(tag, attributes) one of SVG
//   shell.number(v)               a number in few digits
//   shell.colour(t, signed)       "rgb()" of t in -1..1: blue, page, red; or of 0..1 in grey
//   shell.mix(t, signed)          the same as [red, green, blue]
//   shell.ink(t, signed)          black or white, what can be read on that colour
//   shell.tip(event, text)        a note beside the pointer; without text it goes away
//   shell.go(at)                  draw that step; shell.at() which one is drawn
//   shell.option(name, value)     what the address has behind the step, #step=3&block=1; with a
//                                 value, set it and draw again
const shell = (() => {
  const $ = id => document.getElementById(id);
  const data = JSON.parse($("data").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");

  function make(tag, cls, text) {
    const element = document.createElement(tag);
    if (cls) element.className = cls;
    if (text !== undefined) element.textContent = text;
    return element;
  }
  function svg(tag, attributes) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
    return element;
  }
  function number(v) {
    if (Number.isInteger(v) && Math.abs(v) < 1e6 || !Number.isFinite(v)) return String(v);
    const far = Math.abs(v) >= 1e4 || Math.abs(v) < 1e-3;
    return far ? v.toExponential(1) : String(+v.toPrecision(3));
  }

  function mix(t, signed) {
    if (!Number.isFinite(t)) return [190, 60, 200];
    const near = Math.min(1, Math.abs(t));
    const zero = dark.matches ? [36, 41, 47] : [248, 248, 248];
    const grey = dark.matches ? [238, 238, 238] : [24, 28, 34];
    const end = !signed ? grey : t < 0 ? [47, 102, 214] : [208, 62, 46];
    return zero.map((z, k) => Math.round(z + (end[k] - z) * near));
  }
  const colour = (t, signed) => `rgb(${mix(t, signed)})`;
  function ink(t, signed) {
    const [r, g, b] = mix(t, signed);
    return r * .3 + g * .59 + b * .11 > 130 ? "#14171b" : "#ffffff";
  }

  function tip(event, text) {
    const box = $("tip");
    box.hidden = !text;
    if (!text) return;
    box.textContent = text;
    const right = innerWidth - box.offsetWidth - 8, below = innerHeight - box.offsetHeight - 8;
    box.style.left = Math.max(4, Math.min(event.clientX + 14, right)) + "px";
    box.style.top = Math.max(4, Math.min(event.clientY + 12, below)) + "px";
  }

  // ---- which step --------------------------------------------------------------------------
  let page = null, at = 0, timer = null;
  const address = new Map();

  function readAddress() {
    address.clear();
    for (const part of location.hash.slice(1).split("&")) {
      const [name, value] = part.split("=");
      if (name && value !== undefined) address.set(name, decodeURIComponent(value));
    }
    const step = address.get("step");
    return page.named?.(step) ?? (parseInt(step, 10) || 1) - 1;
  }
  function writeAddress() {
    address.set("step", at + 1);
    const parts = [...address].map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
    try { history.replaceState(null, "", "#" + parts.join("&")); } catch { /* in a sealed frame */ }
  }
  function go(to) {
    at = Math.max(0, Math.min(page.count - 1, to));
    tip(null, "");
    $("said").textContent = page.draw(at);
    $("slider").max = page.count;
    $("slider").value = at + 1;
    $("where").textContent = `step ${at + 1} of ${page.count}`;
    document.documentElement.dataset.step = at + 1;
    writeAddress();
  }
  function option(name, value) {
    if (value !== undefined) { address.set(name, value); go(at); }
    return address.get(name);
  }
  function stop() {
    clearInterval(timer);
    timer = null;
    $("play").classList.remove("on");
  }
  function play() {
    if (timer) { stop(); return; }
    if (at === page.count - 1) go(0);
    $("play").classList.add("on");
    timer = setInterval(() => at < page.count - 1 ? go(at + 1) : stop(), 800);
  }
  const by = {first: () => 0, back: () => at - 1, next: () => at + 1, last: () => page.count - 1};
  const keys = {Home: "first", ArrowLeft: "back", ArrowRight: "next", End: "last"};

  function run(given) {
    page = given;
    for (const [name, to] of Object.entries(by)) $(name).onclick = () => { stop(); go(to()); };
    $("play").onclick = play;
    $("slider").oninput = event => { stop(); go(event.target.value - 1); };
    addEventListener("keydown", event => {
      const tag = event.target.tagName;
      if (event.altKey || event.ctrlKey || event.metaKey || tag === "INPUT" || tag === "SELECT") return;
      if (event.key === " " && tag !== "BUTTON" && tag !== "SUMMARY") play();
      else if (keys[event.key]) { stop(); go(by[keys[event.key]]()); }
      else return;
      event.preventDefault();
    });
    addEventListener("hashchange", () => { stop(); go(readAddress()); });
    dark.addEventListener("change", () => go(at));
    let width = innerWidth;
    addEventListener("resize", () => { if (width !== innerWidth) { width = innerWidth; go(at); } });
    go(readAddress());
  }
  return {data, $, make, svg, number, mix, colour, ink, tip, go, at: () => at, option, run};
})();
