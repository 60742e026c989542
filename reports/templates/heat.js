// Modules by steps: the worst tensor of each, one cell each.
// What starts in a cell hides what it inherits.
const HEAT_ORDER = {nonfinite: 0, origin: 1, propagated: 2, within: 3, equal: 4, "not judged": 5};
const MOST_HEAT_ROWS = 600, DEPTH_OF_GROUPS = 3, WORST_CELLS = 50;
// Of cells far above the usual classes the upper four share a logarithmic scale: from the tenth part of the cells above
// the limit to the largest, each at least twice as wide as what it holds begins at.
const FAR_ABOVE = 1e5, FAR_ABOVE_LIMIT = 100, LOW_SHARE = 0.1, NARROWEST = 2;
function heatLimits(times) {
  const limit = CLASS_LIMITS[2], above = Array.from(times).filter((value) => value >= limit).sort((one, other) => one - other);
  const top = above.length ? above[above.length - 1] : 0;
  if (top < Math.max(FAR_ABOVE, FAR_ABOVE_LIMIT * limit)) { return {ends: CLASS_LIMITS, top: NaN}; }
  const pace = Math.max(NARROWEST, Math.pow(top / above[Math.floor(LOW_SHARE * above.length)], 0.25));
  const ends = [3, 2, 1].map((classes) => Number((top / Math.pow(pace, classes)).toPrecision(1)));
  return {ends: CLASS_LIMITS.slice(0, 3).concat(ends), top};
}
function heatClassTexts(scale) {
  const ends = scale.ends.map((end) => (end < 1e7 ? grouped(end, end % 1 ? 1 : 0) : scientific(end, 0)));
  const top = Number.isNaN(scale.top) ? word("class_above", {low: ends[5]}) : word("class_top", {low: ends[5], high: plainTimes(scale.top)});
  const between = ends.slice(0, 5).map((end, place) => word("class_between", {low: end, high: ends[place + 1]}));
  return [word("class_below", {high: ends[0]}), ...between, top];
}

function heatCells(sizeOf) {
  const steps = Array.from(records.starts.keys()).filter((step) => step !== data.initStep);
  const names = data.names.map((name) => ({name, first: 1e9, judged: false}));
  for (let row = 0; row < records.length; row += 1) {
    const each = names[records.nameId(row)];
    if (records.step[row] === data.initStep) { continue; }
    if (row < each.first) { each.first = row; }
    if (records.flags[row] & 64 || records.status(row) === "nonfinite") { each.judged = true; }
  }
  const judged = names.filter((each) => each.judged).sort((one, other) => one.first - other.first);
  const grouped_ = judged.length > MOST_HEAT_ROWS;
  const label = (name) => (grouped_ ? name.split(".").slice(0, DEPTH_OF_GROUPS).join(".") : name);
  const labels = Array.from(new Set(judged.map((each) => label(each.name))));
  const placeOf = new Map(labels.map((text, place) => [text, place])), columnOf = new Map(steps.map((step, place) => [step, place]));
  const worstRow = new Int32Array(labels.length * steps.length).fill(-1), times = new Float32Array(labels.length * steps.length).fill(-1);
  const bad = new Uint8Array(labels.length * steps.length);
  const rowOfName = data.names.map((name) => placeOf.get(label(name)));
  for (let row = 0; row < records.length; row += 1) {
    const line = rowOfName[records.nameId(row)], column = columnOf.get(records.step[row]);
    if (line === undefined || column === undefined) { continue; }
    const cell = line * steps.length + column, status = records.status(row), known = worstRow[cell];
    const its = Number.isFinite(sizeOf(row)) ? sizeOf(row) : -1, better = known < 0 ? 1 : HEAT_ORDER[records.status(known)] - HEAT_ORDER[status];
    if (better > 0 || (better === 0 && its > times[cell]) || row === data.first) {
      worstRow[cell] = row;
      times[cell] = its;
    }
    if (status === "nonfinite") { bad[cell] = 1; }
  }
  return {steps, labels, times, bad, worstRow, grouped: grouped_, modules: judged.length};
}

starters.push((root) => {
  const canvas = element("heat");
  if (!canvas) { return null; }
  const measureField = element("heat-measure");
  const apart = (row) => (records.status(row) === "propagated" ? records.inUnits(row) : records.scaled(row));
  const take = () => heatCells(measureField.value === "times" ? records.scaled : apart);
  let cells = take(), {times, bad, worstRow} = cells, scale = heatLimits(times);
  const {steps, labels} = cells, width = steps.length, height = labels.length;
  if (width < 2 || height === 0) {
    // Nothing was measured: the plain picture says that all is equal.
    root.querySelectorAll("#heat-part .static-only").forEach((node) => node.classList.remove("static-only"));
    return null;
  }
  element("heat-section").hidden = false;
  let at = [0, 0];
  const first = data.first >= 0 ? [Math.max(0, steps.indexOf(records.step[data.first])), labelOf(records.name(data.first))] : null;
  if (first && first[1] >= 0) { at = first.slice(); }
  const left = 190, top = 22, side = Math.max(7, Math.min(64, Math.floor((Math.min(1100, canvas.parentNode.clientWidth || 900) - left) / width)));
  const tall = Math.max(4, Math.min(18, Math.floor(560 / height)));
  let focused = false;

  function labelOf(name) {
    const exact = labels.indexOf(name);
    return exact >= 0 ? exact : labels.indexOf(name.split(".").slice(0, DEPTH_OF_GROUPS).join("."));
  }
  function draw() {
    const ratio = window.devicePixelRatio || 1, pen = canvas.getContext("2d"), colors = classColors();
    canvas.width = (left + side * width + 2) * ratio;
    canvas.height = (top + tall * height + 2) * ratio;
    canvas.style.width = `${left + side * width + 2}px`;
    canvas.style.height = `${top + tall * height + 2}px`;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.font = `${Math.max(9, Math.min(12, tall))}px ${getComputedStyle(document.body).fontFamily}`;
    for (let line = 0; line < height; line += 1) {
      for (let column = 0; column < width; column += 1) { cell(pen, colors, line, column); }
    }
    pen.fillStyle = color("--ink");
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    const every_ = Math.max(1, Math.ceil(12 / tall));
    for (let line = 0; line < height; line += every_) { pen.fillText(shortName(labels[line], 30), left - 6, top + tall * (line + 0.5), left - 8); }
    pen.textAlign = "center";
    const between = Math.max(1, Math.ceil(30 / side));
    for (let column = 0; column < width; column += between) { pen.fillText(String(steps[column]), left + side * (column + 0.5), top / 2); }
    pen.strokeStyle = color("--ink");
    pen.lineWidth = 1.5;
    if (first && first[1] >= 0) {
      pen.strokeRect(left + side * first[0], top, side, tall * height);
      pen.strokeRect(left, top + tall * first[1], side * width, tall);
    }
    if (focused) {
      pen.strokeStyle = color("--link");
      pen.lineWidth = 2.5;
      pen.strokeRect(left + side * at[0] - 1, top + tall * at[1] - 1, side + 2, tall + 2);
    }
  }
  function cell(pen, colors, line, column) {
    const place = line * width + column, x = left + side * column, y = top + tall * line, w = side - 1, h = Math.max(1, tall - (tall > 5 ? 1 : 0));
    if (worstRow[place] < 0) {
      pen.strokeStyle = color("--rule");
      pen.lineWidth = 1;
      pen.beginPath();
      for (let along = 0; along < w; along += 4) { pen.moveTo(x + along, y + h); pen.lineTo(Math.min(x + w, x + along + h), y + Math.max(0, h - (w - along))); }
      pen.stroke();
      return;
    }
    pen.fillStyle = times[place] >= 0 ? colors[classOf(times[place], scale.ends)] : records.status(worstRow[place]) === "propagated" ? color("--muted") : colors[0];
    const inherited = records.status(worstRow[place]) === "propagated" && !bad[place];
    const inset = inherited ? [Math.max(1, w * 0.2), h > 5 ? h * 0.25 : 1] : [0, 0];
    pen.fillRect(x + inset[0], y + inset[1], w - 2 * inset[0], Math.max(1, h - 2 * inset[1]));
    if (bad[place]) {
      pen.strokeStyle = color("--ink");
      pen.lineWidth = 1.5;
      pen.beginPath();
      pen.moveTo(x + 1, y + 1);
      pen.lineTo(x + w - 1, y + h - 1);
      pen.moveTo(x + w - 1, y + 1);
      pen.lineTo(x + 1, y + h - 1);
      pen.stroke();
    }
  }
  function drawClasses() {
    const list = element("heat-classes");
    list.textContent = "";
    heatClassTexts(scale).forEach((text, place) => {
      const line = list.appendChild(make("li")), swatch = line.appendChild(make("span", "swatch"));
      swatch.style.background = `var(--heat-${place})`;
      swatch.setAttribute("aria-hidden", "true");
      line.appendChild(document.createTextNode(` ${text}${place === 3 ? ` \u2013 ${word("class_limit")}` : ""}`));
    });
  }
  function sentence(line, column) {
    const place = line * width + column, row = worstRow[place];
    const text = row < 0 ? word("tree_notseen") : bad[place] ? word("status_nonfinite") : times[place] >= 0 ? heatText(row) : statusText(records.status(row));
    return word("heat_cell", {name: labels[line], step: stepText(steps[column]), text});
  }
  function heatText(row) {
    const text = records.status(row) === "propagated" ? `${statusText("propagated")}, ${differenceText(row)}` : rowTimesText(row);
    return text || statusText(records.status(row));
  }
  function say() {
    const text = sentence(at[1], at[0]);
    element("heat-said").textContent = text;
    canvas.setAttribute("aria-label", text);
  }
  function choose() {
    const row = worstRow[at[1] * width + at[0]];
    if (row >= 0) { select(records.name(row), row, "heat"); }
  }
  function placeOf(event) {
    const box = canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - left) / side), line = Math.floor((event.clientY - box.top - top) / tall);
    return column >= 0 && column < width && line >= 0 && line < height ? [column, line] : null;
  }
  canvas.addEventListener("keydown", (event) => {
    const moves = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1], PageUp: [0, -10], PageDown: [0, 10], Home: [-width, 0], End: [width, 0]};
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(); return; }
    const move = moves[event.key];
    if (!move) { return; }
    event.preventDefault();
    at = [Math.max(0, Math.min(width - 1, at[0] + move[0])), Math.max(0, Math.min(height - 1, at[1] + move[1]))];
    draw();
    say();
  });
  canvas.addEventListener("focus", () => { focused = true; draw(); say(); });
  canvas.addEventListener("blur", () => { focused = false; draw(); });
  canvas.addEventListener("mousemove", (event) => {
    const place = placeOf(event);
    if (place) { element("heat-said").textContent = sentence(place[1], place[0]); canvas.title = sentence(place[1], place[0]); }
  });
  canvas.addEventListener("click", (event) => { const place = placeOf(event); if (place) { at = place; draw(); say(); choose(); } });
  worstTable();
  function worstTable() {
    const body = element("heat-table").tBodies[0];
    const rank = (place) => HEAT_ORDER[records.status(worstRow[place])];
    const order = Array.from(times.keys()).filter((place) => worstRow[place] >= 0 && (bad[place] || times[place] >= 0))
      .sort((one, other) => rank(one) - rank(other) || times[other] - times[one]).slice(0, WORST_CELLS);
    for (const place of order) {
      const line = body.insertRow(), row = worstRow[place];
      line.insertCell().appendChild(make("bdi", "name", shortName(labels[Math.floor(place / width)], 120)));
      const step = line.insertCell(), number = line.insertCell();
      step.className = number.className = "number";
      step.textContent = stepText(steps[place % width]);
      number.textContent = bad[place] ? word("status_nonfinite") : rowTimesText(row) || timesText(times[place]);
      if (!bad[place]) { number.dataset.value = times[place]; }
      line.insertCell().textContent = statusText(records.status(row));
      const relative = line.insertCell();
      relative.className = "number";
      relative.textContent = differenceText(row);
      if (relativeKey(row) >= 0) { relative.dataset.value = relativeKey(row); }
    }
  }
  element("heat-how").textContent = word(cells.grouped ? "heat_groups" : "heat_modules", {rows: grouped(height), modules: grouped(cells.modules), steps: grouped(width)});
  say();
  draw();
  drawClasses();
  measureField.addEventListener("change", () => {
    cells = take();
    ({times, bad, worstRow} = cells);
    scale = heatLimits(times);
    say();
    draw();
    drawClasses();
  });
  const again = () => draw();
  document.addEventListener("align-theme", again);
  return () => document.removeEventListener("align-theme", again);
});
