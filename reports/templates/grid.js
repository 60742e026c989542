// The table of all tensors: only the rows in sight are elements.
const ROWS_AROUND = 8;
const COLUMNS = {
  number: {number: true, title: "col_number", text: (row) => grouped(records.number(row)), key: (row) => row, csv: (row) => records.number(row)},
  step: {number: true, title: "col_step", text: (row) => stepText(records.step[row]), key: (row) => records.step[row]},
  phase: {title: "col_phase", text: (row) => phaseText(records.phase(row)), key: (row) => records.of.phase[records.structure[row]], csv: (row) => records.phase(row)},
  module: {title: "col_module", name: true, text: (row) => records.name(row), words: (kind) => data.names[records.of.name[kind]]},
  tensor: {title: "col_tensor", name: true, text: (row) => records.slot(row), words: (kind) => records.slotOf(kind)},
  status: {title: "col_status", text: (row) => statusText(records.status(row)), key: (row) => STATUS_RANK[records.status(row)], csv: (row) => records.status(row)},
  times: {number: true, down: true, title: "col_times", text: rowTimesText, key: records.times},
  relative: {number: true, down: true, title: "col_relative", text: differenceText, key: relativeKey, csv: (row) => (relativeKey(row) > 0 ? relativeKey(row) : differenceText(row))},
  floor: {number: true, down: true, title: "col_floor", text: (row) => (records.value("floor", row) > 0 ? relativeText(records.value("floor", row)) : ""), key: (row) => records.value("floor", row)},
  reference: {title: "col_reference", text: (row) => sideText("reference", row), words: (kind) => data.kinds[records.of.reference[kind]]},
  candidate: {title: "col_candidate", text: (row) => sideText("candidate", row), words: (kind) => data.kinds[records.of.candidate[kind]]},
  finding: {number: true, title: "col_finding", text: (row) => findingsOf(row).join(", "), key: (row) => findingsOf(row)[0] || NaN},
  limit: {number: true, title: "col_limit", text: (row) => (records.limit(row) ? timesText(records.limit(row)) : ""), key: records.limit},
  unit: {number: true, title: "col_unit", text: (row) => (unitOf(row) > 0 ? relativeText(unitOf(row)) : ""), key: unitOf},
  micro: {number: true, title: "col_micro", text: (row) => String(records.of.micro[records.structure[row]]), key: (row) => records.of.micro[records.structure[row]]},
  call: {number: true, title: "col_call", text: (row) => String(records.of.call[records.structure[row]]), key: (row) => records.of.call[records.structure[row]]},
  reference_largest: sideColumn("reference", "largest", valueText),
  candidate_largest: sideColumn("candidate", "largest", valueText),
  reference_rms: sideColumn("reference", "rms", valueText),
  candidate_rms: sideColumn("candidate", "rms", valueText),
  mean_change: changeColumn("mean"),
  norm_change: changeColumn("rms"),
  reference_zeros: sideColumn("reference", "zeros", percentText),
  candidate_zeros: sideColumn("candidate", "zeros", percentText),
  reference_subnormals: sideColumn("reference", "subnormals", percentText),
  candidate_subnormals: sideColumn("candidate", "subnormals", percentText),
  reference_nans: countColumn("reference", "nans"),
  candidate_nans: countColumn("candidate", "nans"),
  reference_infs: countColumn("reference", "infs"),
  candidate_infs: countColumn("candidate", "infs"),
  other: {title: "col_other", name: true, text: (row) => data.others[records.of.other[records.structure[row]]], words: (kind) => data.others[records.of.other[kind]]},
};
const USUAL = ["number", "step", "phase", "module", "tensor", "status", "times", "relative", "floor", "reference", "candidate"];
const STATUS_RANK = {origin: 0, nonfinite: 1, propagated: 2, within: 3, equal: 4, "not judged": 5};

function unitOf(row) { return records.of.unit ? records.of.unit[records.structure[row]] : NaN; }
function relativeKey(row) {
  const kind = records.difference(row);
  return kind === EQUAL ? 0 : kind >= UNEQUAL ? NaN : kind === BELOW ? 0 : records.value("relative", row);
}
function sideColumn(side, name, write) {
  const value = (row) => records.value(`${side}_${name}`, row);
  return {number: true, down: true, title: `col_${side}_${name}`, text: (row) => (Number.isNaN(value(row)) ? "" : write(value(row))), key: value};
}
function changeColumn(name) {
  const value = (row) => {
    const ours = records.value(`reference_${name}`, row), theirs = records.value(`candidate_${name}`, row);
    return ours === 0 ? (theirs === 0 ? 0 : NaN) : Math.abs(theirs - ours) / Math.abs(ours);
  };
  return {number: true, down: true, title: name === "mean" ? "col_mean_change" : "col_norm_change", text: (row) => (Number.isNaN(value(row)) ? "" : relativeText(value(row))), key: value};
}
function countColumn(side, what) {
  const count = (row) => records.odd(side, what, row);
  return {number: true, down: true, title: `col_${side}_${what}`, text: (row) => (count(row) ? grouped(count(row)) : ""), key: count};
}
// The test whether a row is what a finding points to; each structure is looked at once.
const findingTests = data.findings.map((finding) => {
  const {of} = records, name = finding.name ? data.names.indexOf(finding.name) : -1;
  if (name < 0) { return () => false; }
  const fits = Array.from({length: of.length}, (_, kind) => of.name[kind] === name &&
    (finding.phase === null || data.phases[of.phase[kind]] === finding.phase) &&
    (finding.slot === null || (data.slots[of.slot[kind]] === finding.slot && of.call[kind] === finding.call && of.micro[kind] === finding.micro)));
  return (row) => fits[records.structure[row]] && (finding.step === null || finding.step === records.step[row]);
});
function findingsOf(row) {
  const found = [];
  findingTests.forEach((test, place) => { if (test(row)) { found.push(place + 1); } });
  return found;
}

function sortedRows(rows, column, descending) {
  const by = COLUMNS[column], keys = new Float64Array(records.length);
  if (by.key) {
    for (const row of rows) { keys[row] = by.key(row); }
  } else {
    const words = Array.from({length: records.of.length}, (_, kind) => by.words(kind));
    const ranks = new Map(Array.from(new Set(words)).sort((one, other) => one.localeCompare(other, "en", {numeric: true})).map((text, rank) => [text, rank]));
    const rankOf = Float64Array.from(words, (text) => ranks.get(text));
    for (const row of rows) { keys[row] = rankOf[records.structure[row]]; }
  }
  if (column === "number" && !descending) { return rows; }
  // What has no number stands behind, whichever way it is sorted.
  const sign = descending ? -1 : 1;
  for (const row of rows) { keys[row] = Number.isNaN(keys[row]) ? Infinity : sign * keys[row]; }
  return rows.slice().sort((one, other) => (keys[one] === keys[other] ? one - other : keys[one] < keys[other] ? -1 : 1));
}

function gridCell(line, name, row) {
  const cell = line.insertCell(), column = COLUMNS[name], text = column.text(row);
  if (column.number) { cell.className = "number"; }
  if (column.name) {
    const inner = cell.appendChild(make("bdi", "name", shortName(text, 120)));
    if (text.length > 120) { inner.title = shortName(text, 1000); }
  } else if (name === "status") {
    cell.className = "status";
    const sign = cell.appendChild(make("span", "sign", data.signs[records.status(row)]));
    sign.setAttribute("aria-hidden", "true");
    cell.appendChild(document.createTextNode(` ${text}`));
  } else {
    cell.textContent = text;
  }
}

// Draws the rows of `state.rows` that are in sight into a table in a frame that scrolls.
function makeGrid(table, frame, state) {
  const body = table.tBodies[0];
  let height = 0, drawn = "";
  const spacer = (lines) => {
    const line = body.insertRow(), cell = line.insertCell();
    line.className = "spacer";
    line.setAttribute("aria-hidden", "true");
    cell.colSpan = state.columns.length;
    cell.style.height = `${lines * height}px`;
  };
  const line = (place) => {
    const row = state.rows[place], node = body.insertRow();
    node.dataset.row = row;
    node.setAttribute("aria-rowindex", place + 2);
    if (row === data.first) { node.className = "first"; }
    if (row === selection.row) { node.setAttribute("aria-selected", "true"); node.classList.add("chosen"); }
    for (const name of state.columns) { gridCell(node, name, row); }
  };
  const grid = {};
  grid.draw = (again) => {
    const total = state.rows.length;
    const sight = Math.ceil((frame.clientHeight || 560) / (height || 26));
    const begin = Math.max(0, Math.min(Math.floor(frame.scrollTop / (height || 26)) - ROWS_AROUND, total - sight));
    const end = Math.min(total, begin + sight + 2 * ROWS_AROUND);
    const what = `${begin} ${end}`;
    if (what === drawn && !again) { return; }
    drawn = what;
    body.textContent = "";
    if (begin) { spacer(begin); }
    for (let place = begin; place < end; place += 1) { line(place); }
    if (end < total) { spacer(total - end); }
    if (!height && body.rows.length) {
      height = body.rows[0].getBoundingClientRect().height;
      if (end < total && height) { grid.draw(true); }
    }
  };
  grid.show = (row) => {
    const place = state.rows.indexOf(row);
    if (place < 0) { return false; }
    const top = place * (height || 26);
    if (top < frame.scrollTop || top > frame.scrollTop + frame.clientHeight - 3 * (height || 26)) {
      frame.scrollTop = Math.max(0, top - frame.clientHeight * 0.4);
    }
    grid.draw(true);
    return true;
  };
  frame.addEventListener("scroll", () => requestAnimationFrame(() => grid.draw(false)), {passive: true});
  return grid;
}
