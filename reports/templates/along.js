// The difference along one step in execution order; the plain figures show one step of it.
const ALONG = {forward: ["input", "forward", "loss"], backward: ["backward", "gradient", "update"], init: ["init"]};
const MOST_MARKS = 2000;

starters.push(() => {
  const canvas = element("along");
  if (!canvas) { return null; }
  const stepField = element("along-step"), sideField = element("along-side"), measureField = element("along-measure"), said = element("along-said");
  const left = 64, right = 16, top = 18, bottom = 40, tall = 300;
  let rows = [], wide = 900, low = 0.1, high = 10, at = 0, focused = false;
  for (const step of records.starts.keys()) {
    const option = stepField.appendChild(make("option", "", stepText(step)));
    option.value = step;
  }
  const begin = Number(remembered("step") || (data.focus >= 0 ? records.step[data.focus] : Array.from(records.starts.keys()).find((step) => step !== data.initStep)));
  stepField.value = records.starts.has(begin) ? begin : Array.from(records.starts.keys())[0];

  function relative() { return measureField.value === "relative"; }
  function sizeOf(row) { return relative() ? (records.flags[row] & 64 ? records.value("relative", row) : NaN) : records.scaled(row); }
  function explained(row) { return relative() ? records.value("floor", row) * Math.max(1, records.limit(row)) : data.limit; }
  function sides() {
    const range = records.starts.get(Number(stepField.value)) || [0, 0], phases = new Set();
    for (let row = range[0]; row < range[1]; row += 1) { phases.add(records.phase(row)); }
    return Object.keys(ALONG).filter((side) => ALONG[side].some((phase) => phases.has(phase)));
  }
  function offerSides(wanted) {
    const there = sides();
    sideField.textContent = "";
    for (const side of there) { sideField.appendChild(make("option", "", word(`panel_${side}`))).value = side; }
    sideField.value = there.includes(wanted) ? wanted : there[0];
  }
  function take() {
    const range = records.starts.get(Number(stepField.value)) || [0, 0], phases = ALONG[sideField.value] || [];
    rows = [];
    for (let row = range[0]; row < range[1]; row += 1) { if (phases.includes(records.phase(row))) { rows.push(row); } }
    let least = relative() ? 1 : 0.1, most = relative() ? 1e-6 : 100;
    for (const row of rows) {
      const size = sizeOf(row);
      if (!Number.isFinite(size) || size <= 0) { continue; }
      most = Math.max(most, size);
      least = Math.min(least, Math.max(size, relative() ? 1e-12 : 0.1));
    }
    low = Math.pow(10, Math.floor(Math.log10(least)));
    high = Math.pow(10, Math.ceil(Math.log10(most * 1.5)));
    at = rows.includes(selection.row) ? rows.indexOf(selection.row) : Math.max(0, rows.indexOf(data.first));
  }
  function x(place) { return left + (wide - left - right) * (place + 0.5) / Math.max(1, rows.length); }
  function y(times) {
    const share = Math.log10(Math.max(low, Math.min(high, times)) / low) / Math.log10(high / low);
    return top + (tall - top - bottom) * (1 - share);
  }
  function axes(pen) {
    const line = (value, dash, tone) => {
      pen.strokeStyle = tone;
      pen.setLineDash(dash);
      pen.beginPath();
      pen.moveTo(left, y(value));
      pen.lineTo(wide - right, y(value));
      pen.stroke();
      pen.setLineDash([]);
    };
    const step = (wide - left - right) / Math.max(1, rows.length);
    pen.fillStyle = color("--band");
    if (relative()) {
      rows.forEach((row, place) => { const up = explained(row); if (up > low) { pen.fillRect(x(place) - step / 2, y(up), step + 0.6, y(low) - y(up)); } });
    } else {
      pen.fillRect(left, y(data.limit), wide - left - right, y(low) - y(data.limit));
    }
    pen.lineWidth = 1;
    pen.fillStyle = color("--muted");
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    const decades = Math.round(Math.log10(high / low)), between = Math.ceil(decades / 7);
    for (let decade = 0; decade <= decades; decade += between) {
      const value = low * Math.pow(10, decade);
      line(value, [], color("--rule"));
      if (!relative() && Math.abs(y(value) - y(data.limit)) < 13) { continue; }
      pen.fillText(relative() ? `1e${Math.round(Math.log10(value))}` : word("times", {number: value < 1 ? String(value) : grouped(value)}), left - 6, y(value));
    }
    if (relative()) { return; }
    line(data.limit, [3, 3], color("--limit"));
    pen.fillText(word("times", {number: String(data.limit)}), left - 6, y(data.limit));
  }
  function blocks(pen) {
    // Names of the parts of the model, where they begin: as many as have room.
    const numbered = rows.map((row) => records.name(row).split(".").findIndex((part) => /^\d+$/.test(part))).find((place) => place >= 0);
    const depth = numbered === undefined ? 2 : numbered + 1;
    let before = "", free = left;
    pen.textAlign = "left";
    pen.textBaseline = "top";
    rows.forEach((row, place) => {
      const part = records.name(row).split(".").slice(0, depth).join(".");
      if (part === before) { return; }
      before = part;
      const from = x(place) - (wide - left - right) / Math.max(1, rows.length) / 2;
      pen.strokeStyle = color("--rule");
      pen.beginPath();
      pen.moveTo(from, tall - bottom);
      pen.lineTo(from, tall - bottom + 5);
      pen.stroke();
      const text = shortName(part, 20), width = pen.measureText(text).width;
      if (from >= free && from + width < wide) { pen.fillStyle = color("--muted"); pen.fillText(text, from, tall - bottom + 7); free = from + width + 10; }
    });
    pen.textAlign = "center";
    pen.fillText(word("axis_order"), (left + wide) / 2, tall - 14);
  }
  function mark(pen, place) {
    const row = rows[place], status = records.status(row), times = sizeOf(row), px = x(place);
    if (status === "nonfinite") {
      pen.strokeStyle = color("--error");
      pen.lineWidth = 1.8;
      pen.beginPath();
      pen.moveTo(px - 4, top - 4); pen.lineTo(px + 4, top + 4); pen.moveTo(px + 4, top - 4); pen.lineTo(px - 4, top + 4);
      pen.stroke();
      return;
    }
    if (!Number.isFinite(times)) {
      pen.strokeStyle = color("--muted");
      pen.lineWidth = 1;
      pen.beginPath();
      pen.moveTo(px, tall - bottom); pen.lineTo(px, tall - bottom - 6);
      pen.stroke();
      return;
    }
    const py = y(times);
    if (row === data.first || status === "origin") {
      pen.fillStyle = color("--error");
      const half = row === data.first ? 5.5 : 4;
      if (row === data.first) { pen.fillRect(px - half, py - half, 2 * half, 2 * half); return; }
      pen.beginPath();
      pen.moveTo(px, py - half - 1); pen.lineTo(px + half + 1, py); pen.lineTo(px, py + half + 1); pen.lineTo(px - half - 1, py);
      pen.fill();
    } else if (status === "propagated") {
      pen.strokeStyle = color("--inherited");
      pen.lineWidth = 1.3;
      pen.beginPath();
      pen.arc(px, py, 3, 0, 7);
      pen.stroke();
    } else {
      pen.fillStyle = color("--explained");
      pen.beginPath();
      pen.arc(px, py, 2, 0, 7);
      pen.fill();
    }
  }
  function band(pen) {
    // Too many marks: from the least to the most of each column of pixels, and the marks above the limit.
    const columns = 600, plain_ = color("--explained");
    pen.fillStyle = plain_;
    for (let column = 0; column < columns; column += 1) {
      let least = Infinity, most = -Infinity;
      const to = Math.floor((column + 1) * rows.length / columns);
      for (let place = Math.floor(column * rows.length / columns); place < to; place += 1) {
        const times = sizeOf(rows[place]);
        if (Number.isFinite(times) && !["propagated", "origin"].includes(records.status(rows[place]))) { least = Math.min(least, times); most = Math.max(most, times); }
      }
      if (most >= least) { pen.fillRect(x(column * rows.length / columns), y(most), Math.max(1, (wide - left - right) / columns), Math.max(1.5, y(least) - y(most))); }
    }
  }
  function draw() {
    const ratio = window.devicePixelRatio || 1, pen = canvas.getContext("2d");
    wide = Math.max(560, canvas.parentNode.clientWidth - 2);
    canvas.width = wide * ratio;
    canvas.height = tall * ratio;
    canvas.style.width = `${wide}px`;
    canvas.style.height = `${tall}px`;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.font = `12px ${getComputedStyle(document.body).fontFamily}`;
    axes(pen);
    blocks(pen);
    const many = rows.length > MOST_MARKS, later = [];
    if (many) { band(pen); }
    for (let place = 0; place < rows.length; place += 1) {
      const status = records.status(rows[place]);
      if (rows[place] === data.first || status === "origin" || status === "nonfinite") { later.push(place); continue; }
      if (!many || (status === "propagated" && place % Math.ceil(rows.length / MOST_MARKS) === 0)) { mark(pen, place); }
    }
    for (const place of later) { mark(pen, place); }
    if (focused && rows.length) {
      const times = sizeOf(rows[at]);
      pen.strokeStyle = color("--link");
      pen.lineWidth = 2;
      pen.beginPath();
      pen.arc(x(at), Number.isFinite(times) ? y(times) : tall - bottom - 3, 8, 0, 7);
      pen.stroke();
    }
  }
  function sentence(place) {
    const row = rows[place];
    if (row === undefined) { return word("along_none"); }
    return word("along_mark", {name: `${records.name(row)} ${records.slot(row)}`, status: statusText(records.status(row)), text: rowTimesText(row) || differenceText(row)});
  }
  function summary() {
    let largest = -1, within = 0, above = 0;
    rows.forEach((row, place) => {
      const times = records.scaled(row);
      if (["origin", "propagated", "nonfinite"].includes(records.status(row))) { above += 1; } else { within += 1; }
      if (Number.isFinite(times) && (largest < 0 || times > records.scaled(rows[largest]))) { largest = place; }
    });
    canvas.setAttribute("aria-label", word("along_summary", {within: grouped(within), above: grouped(above), largest: sentence(largest < 0 ? undefined : largest)}));
    said.textContent = sentence(at);
  }
  function again() { take(); draw(); summary(); }
  function moveTo(place) {
    at = Math.max(0, Math.min(rows.length - 1, place));
    said.textContent = sentence(at);
    announce(said.textContent);
    draw();
  }
  function seek(by) {
    for (let place = at + by; place >= 0 && place < rows.length; place += by) {
      if (["origin", "propagated", "nonfinite"].includes(records.status(rows[place]))) { moveTo(place); return; }
    }
  }
  canvas.addEventListener("keydown", (event) => {
    const runs = {
      ArrowRight: () => moveTo(at + 1), ArrowLeft: () => moveTo(at - 1), Home: () => moveTo(0), End: () => moveTo(rows.length - 1),
      "]": () => seek(1), "[": () => seek(-1), Enter: choose, " ": choose,
    };
    if (runs[event.key]) { event.preventDefault(); runs[event.key](); }
  });
  function choose() { if (rows.length) { select(records.name(rows[at]), rows[at], "along"); } }
  function nearest(event) {
    const box = canvas.getBoundingClientRect(), px = event.clientX - box.left, py = event.clientY - box.top;
    let best = -1, distance = 400;
    const guess = Math.round((px - left) / (wide - left - right) * rows.length - 0.5), reach = Math.ceil(rows.length / (wide - left) * 12) + 1;
    for (let place = Math.max(0, guess - reach); place < Math.min(rows.length, guess + reach + 1); place += 1) {
      const times = sizeOf(rows[place]), far = Math.pow(x(place) - px, 2) + Math.pow((Number.isFinite(times) ? y(times) : tall - bottom - 3) - py, 2);
      if (far < distance) { distance = far; best = place; }
    }
    return best;
  }
  canvas.addEventListener("mousemove", (event) => { const place = nearest(event); if (place >= 0) { said.textContent = sentence(place); } });
  canvas.addEventListener("click", (event) => { const place = nearest(event); if (place >= 0) { moveTo(place); choose(); } });
  canvas.addEventListener("focus", () => { focused = true; draw(); });
  canvas.addEventListener("blur", () => { focused = false; draw(); });
  stepField.addEventListener("change", () => { remember("step", stepField.value); offerSides(sideField.value); again(); });
  sideField.addEventListener("change", again);
  measureField.addEventListener("change", () => { remember("measure", relative() ? "" : "times"); again(); });
  listeners.push(() => {
    if (selection.from === "along" || selection.row < 0) { return; }
    const place = rows.indexOf(selection.row);
    if (place >= 0) { at = place; said.textContent = sentence(at); draw(); }
  });
  measureField.value = remembered("measure") === "times" ? "times" : "relative";
  offerSides(data.first >= 0 ? Object.keys(ALONG).find((side) => ALONG[side].includes(records.phase(data.first))) : "forward");
  again();
  let waiting = 0;
  const resized = () => { clearTimeout(waiting); waiting = setTimeout(draw, 100); };
  document.addEventListener("align-theme", draw);
  window.addEventListener("resize", resized);
  return () => { document.removeEventListener("align-theme", draw); window.removeEventListener("resize", resized); };
});
