// The tensors of a comparison: columns as `page_data.py` has packed them, and how their numbers are written.
const data = JSON.parse(element("align-data").textContent);

function unpacked(column) {
  if (!column) { return null; }
  const letters = atob(column.data), bytes = new Uint8Array(letters.length);
  for (let place = 0; place < letters.length; place += 1) { bytes[place] = letters.charCodeAt(place); }
  const kinds = {u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, f4: Float32Array, log: Int16Array};
  const values = new kinds[column.kind](bytes.buffer);
  if (column.kind !== "log") { return values; }
  const numbers = new Float32Array(values.length);
  for (let place = 0; place < values.length; place += 1) { numbers[place] = LOGARITHMS[values[place] + 32768]; }
  return numbers;
}
function fromLogarithm(code) {
  if (code === 32767) { return Infinity; }
  if (code === 32766 || code === -32768) { return NaN; }
  return code === -32767 ? 0 : Math.pow(10, code / 1000);
}
function unpackedAll(columns) {
  const all = {};
  for (const name of Object.keys(columns)) { all[name] = unpacked(columns[name]); }
  return all;
}

const LOGARITHMS = Float32Array.from({length: 65536}, (_, place) => fromLogarithm(place - 32768));

const records = (() => {
  const length = data.length, step = new Int32Array(length), structure = new Uint32Array(length), starts = new Map();
  const sequences = data.sequences.map(unpacked);
  let row = 0;
  for (const [number, sequence, count] of data.steps) {
    if (!starts.has(number)) { starts.set(number, [row, row + count]); }
    starts.get(number)[1] = row + count;
    step.fill(number, row, row + count);
    structure.set(sequences[sequence], row);
    row += count;
  }
  const {length: kinds, ...columns} = data.structures;
  const of = unpackedAll(columns);
  of.length = kinds;
  const numbers = unpackedAll(data.columns), details = unpackedAll(data.details);
  const detailed = new Map();
  if (data.detailed) { unpacked(data.detailed).forEach((each, place) => detailed.set(each, place)); }
  const flags = unpacked(data.flags), aspects = new Map(), odd = new Map();
  if (data.aspects) {
    const kind = unpacked(data.aspects.aspect), times = unpacked(data.aspects.times);
    unpacked(data.aspects.rows).forEach((each, place) => aspects.set(each, [data.aspects.words[kind[place]], times[place]]));
  }
  const nonfinite = data.nonfinite && {
    reference_nans: unpacked(data.nonfinite.reference_nans), reference_infs: unpacked(data.nonfinite.reference_infs),
    candidate_nans: unpacked(data.nonfinite.candidate_nans), candidate_infs: unpacked(data.nonfinite.candidate_infs),
  };
  if (nonfinite) { unpacked(data.nonfinite.rows).forEach((each, place) => odd.set(each, place)); }
  const order = data.numbers && unpacked(data.numbers);
  const self = {length, step, structure, starts, of, flags, nonfinite};
  self.number = (row) => (order ? order[row] : row);
  // A number of a row, exact where that is known; NaN where nothing is.
  self.value = (name, row) => {
    const place = detailed.get(row);
    if (place !== undefined && details[name]) { return details[name][place]; }
    return numbers[name] ? numbers[name][row] : NaN;
  };
  self.known = (row) => !data.detailed || detailed.has(row);
  self.status = (row) => data.statuses[flags[row] & 7];
  self.difference = (row) => (flags[row] >> 3) & 7;
  self.phase = (row) => data.phases[of.phase[structure[row]]];
  self.name = (row) => data.names[of.name[structure[row]]];
  self.nameId = (row) => of.name[structure[row]];
  self.limit = (row) => (of.limit ? of.limit[structure[row]] : 0);
  self.aspect = (row) => (aspects.has(row) ? aspects.get(row)[0] : "");
  self.times = (row) => {
    if (!(flags[row] & 64)) { return NaN; }
    return aspects.has(row) ? aspects.get(row)[1] : self.value("relative", row) / self.value("floor", row);
  };
  // Times the floor on a scale on which every tensor's limit is the usual one.
  self.scaled = (row) => self.times(row) * (data.limit / (self.limit(row) || data.limit));
  // The difference in units of rounding: what is inherited is seen at its size.
  self.inUnits = (row) => (of.unit && of.unit[structure[row]] > 0 && (flags[row] & 64) ? self.value("relative", row) / of.unit[structure[row]] : NaN);
  self.odd = (side, what, row) => (odd.has(row) ? nonfinite[`${side}_${what}`][odd.get(row)] : 0);
  self.slotOf = (kind) => {
    const extra = [["micro", of.micro[kind]], ["call", of.call[kind]]].filter((each) => each[1]).map((each) => each.join(" "));
    return data.slots[of.slot[kind]] + (extra.length ? ` (${extra.join(", ")})` : "");
  };
  self.slot = (row) => self.slotOf(structure[row]);
  self.find = (number, test) => {
    const range = starts.get(number) || [0, 0];
    for (let row = range[0]; row < range[1]; row += 1) { if (test(row)) { return row; } }
    return -1;
  };
  return self;
})();

const EQUAL = 0, BELOW = 2, UNEQUAL = 3, NOT_COMPARED = 4;
const CLASS_LIMITS = [1, 2, data.limit || 7, 30, 300, 1e4];

function plain(number, digits) {
  const exponent = Number(number.toExponential(digits - 1).split("e")[1]);
  return grouped(Number(number.toPrecision(digits)), Math.max(0, digits - 1 - exponent));
}
function scientific(number, places) { return number.toExponential(places).replace("e+", "e"); }
function special(number) { return Number.isNaN(number) ? "NaN" : number > 0 ? "Inf" : "-Inf"; }
function relativeText(number) {
  if (!Number.isFinite(number)) { return special(number); }
  if (number === 0) { return "0"; }
  return number >= 0.01 && number < 1000 ? plain(number, 2) : scientific(number, 1);
}
function plainTimes(number) {
  if (!Number.isFinite(number)) { return special(number); }
  return number < 9.95 ? number.toFixed(1) : number < 1e7 ? plain(number, 3) : scientific(number, 1);
}
function timesText(number) { return word("times", {number: plainTimes(number)}); }
function valueText(number) {
  const size = Math.abs(number);
  if (!Number.isFinite(number)) { return special(number); }
  if (number === 0) { return "0"; }
  if (size >= 1e-3 && size < 1e6) { return size < 1e4 ? plain(number, 4) : grouped(Math.round(number)); }
  return scientific(number, 3);
}
function percentText(share) {
  const percent = share * 100;
  return word("percent", {number: percent === 0 || percent >= 0.1 ? percent.toFixed(1) : relativeText(percent)});
}
function stepText(step) { return step === data.initStep ? word("init_step") : String(step); }
function phaseText(phase) { return word(`phase:${phase}`); }
function statusText(status) { return word(`status_${status}`); }
function rowTimesText(row) {
  const times = records.times(row), aspect = records.aspect(row);
  if (!(records.flags[row] & 64)) { return ""; }
  return aspect ? `${timesText(times)} (${word(`aspect_${aspect}`)})` : timesText(times);
}
function differenceText(row) {
  const kind = records.difference(row);
  if (kind === EQUAL) { return word("cell_equal"); }
  if (kind === UNEQUAL) { return word("cell_differs"); }
  if (kind === NOT_COMPARED) { return word("cell_not_compared"); }
  return (kind === BELOW ? "< " : "") + relativeText(records.value("relative", row));
}
function kindText(side, row) {
  const parts = [data.kinds[records.of[side][records.structure[row]]]];
  for (const [what, name] of [["nans", "NaN"], ["infs", "Inf"]]) {
    const count = records.odd(side, what, row);
    if (count) { parts.push(data.nonfinite.counted || records.known(row) ? `${grouped(count)} ${name}` : name); }
  }
  return parts.join(", ");
}
function sideText(side, row) {
  const largest = records.value(`${side}_largest`, row);
  return Number.isNaN(largest) ? kindText(side, row) : `${kindText(side, row)}, ${word("absolute_maximum", {value: valueText(largest)})}`;
}
function rowOfNumber(number) {
  for (let row = 0; row < records.length; row += 1) { if (records.number(row) === number) { return row; } }
  return -1;
}
function shortName(text, limit) {
  if (text.length <= limit) { return text; }
  const head = Math.floor((limit - 1) / 2);
  return `${text.slice(0, head)}\u2026${text.slice(text.length - (limit - 1 - head))}`;
}

// The seven classes of times the floor; the fourth begins at the limit.
function classOf(times, limits) {
  const ends = limits || CLASS_LIMITS;
  let number = 0;
  while (number < ends.length && times >= ends[number]) { number += 1; }
  return number;
}
function color(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }
function classColors() { return [0, 1, 2, 3, 4, 5, 6].map((each) => color(`--heat-${each}`)); }

// What is selected: a module and one of its tensors; every part of the page listens.
const selection = {module: "", row: -1, from: ""};
let listeners = [];
function select(module, row, from) {
  selection.module = module;
  selection.row = row;
  selection.from = from;
  for (const listen of listeners) { listen(); }
}
