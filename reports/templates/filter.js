// The words of the search field: `mlp s:origin p:forward t:>7 step:0-3 f:1`.
const TOKEN = /(?:[^\s"]+|"[^"]*")+/g;

function tokensOf(query) { return (query.match(TOKEN) || []).map((token) => token.replace(/"/g, "")); }
function rangesOf(text) {
  return text.split(",").filter(Boolean).map((part) => {
    if (part === "init" || part === word("init_step")) { return [data.initStep, data.initStep]; }
    const [low, high] = part.split(/-(?=\d)/);
    return [Number(low), Number(high === undefined ? low : high)];
  });
}
function glob(text) { return new RegExp(text.replace(/[.+?^${}()|[\]\\]/g, "\\$&").replace(/\*/g, ".*"), "i"); }
function compared(text) {
  const found = /^(>=|<=|>|<|=)?(.+)$/.exec(text), sign = found ? found[1] || ">=" : ">=", limit = found ? Number(found[2].replace(/[x,]/g, "")) : NaN;
  return {">": (value) => value > limit, ">=": (value) => value >= limit, "<": (value) => value < limit, "<=": (value) => value <= limit, "=": (value) => value === limit}[sign];
}
function statusesOf(text) {
  return text.split(",").map((each) => each.toLowerCase().replace(/[\s_-]/g, "")).filter(Boolean);
}
function statusTest(text) {
  const wanted = statusesOf(text), names = data.statuses.map((status) => [status.replace(" ", ""), statusText(status)]);
  const chosen = data.statuses.map((_, place) => wanted.some((each) => names[place].some((name) => name === each)));
  return (row) => chosen[records.flags[row] & 7] || (row === data.first && wanted.includes("first"));
}
function phaseTest(text) {
  const wanted = text.toLowerCase().split(",").filter(Boolean);
  const chosen = data.phases.map((phase) => wanted.some((each) => phase.startsWith(each) || phaseText(phase) === each));
  return (row) => chosen[records.of.phase[records.structure[row]]];
}
function textTest(text) {
  // Names are the same in every step: each is tested once.
  const expression = glob(text);
  const matching = Array.from({length: records.of.length}, (_, kind) =>
    expression.test(`${data.names[records.of.name[kind]]} ${records.slotOf(kind)} ${data.others[records.of.other[kind]]}`));
  return (row) => matching[records.structure[row]];
}
function exactTest(name) {
  const wanted = data.names.indexOf(name);
  return (row) => records.nameId(row) === wanted;
}
function tokenTest(token) {
  const colon = token.indexOf(":"), key = colon > 0 ? token.slice(0, colon).toLowerCase() : "", rest = token.slice(colon + 1);
  if (key === "s") { return statusTest(rest); }
  if (key === "p") { return phaseTest(rest); }
  if (key === "t") { const test = compared(rest); return (row) => test(records.times(row)); }
  if (key === "m") { return exactTest(rest); }
  if (key === "f") {
    return findingTests[Number(rest) - 1] || (() => false);
  }
  if (key === "step") {
    const ranges = rangesOf(rest);
    return (row) => ranges.some((range) => range[0] <= records.step[row] && records.step[row] <= range[1]);
  }
  return textTest(token);
}
function matchingRows(query) {
  const tests = tokensOf(query).map(tokenTest), rows = [];
  for (let row = 0; row < records.length; row += 1) {
    if (tests.every((test) => test(row))) { rows.push(row); }
  }
  return rows;
}
// Why no row matches, and what its key takes where it is one that the table does not know.
const KEYS = ["s", "p", "t", "step", "f", "m"];
function someRow(token) {
  const test = tokenTest(token);
  for (let row = 0; row < records.length; row += 1) { if (test(row)) { return true; } }
  return false;
}
function unmatchedText(query) {
  const tokens = tokensOf(query), lone = tokens.find((token) => !someRow(token)) || "", colon = lone.indexOf(":");
  return [nothingText(tokens, someRow), colon > 0 ? keyText(lone.slice(0, colon).toLowerCase(), lone.slice(colon + 1)) : ""]
    .filter(Boolean).join(word("nothing_space"));
}
function keyText(key, rest) {
  const steps = Array.from(records.starts.keys(), stepText);
  if (!KEYS.includes(key)) { return word("nothing_key", {key: `${key}:`, keys: KEYS.map((each) => `${each}:`).join(", ")}); }
  if (key === "s") {
    const names = ["first"].concat(data.statuses.map((status) => status.replace(" ", "")));
    return word("nothing_status", {known: names.filter((name) => someRow(`s:${name}`)).join(", ")});
  }
  if (key === "p") { return word("nothing_phase", {known: data.phases.filter((_, place) => records.of.phase.includes(place)).join(", ")}); }
  if (key === "t") { return /\d/.test(rest) ? "" : word("nothing_times"); }
  if (key === "step") {
    const known = steps.length > 12 ? `${steps.slice(0, 3).join(", ")} \u2026 ${steps[steps.length - 1]}` : steps.join(", ");
    return word("nothing_step", {known: known});
  }
  const last = data.findings.length;
  return key === "f" && last && !findingTests[Number(rest) - 1] ? word("nothing_finding", {last: last}) : "";
}
// The query with the tokens of one key replaced, or taken away where there is no value.
function withToken(query, key, value) {
  const kept = tokensOf(query).filter((token) => !token.toLowerCase().startsWith(`${key}:`)).map(quoted);
  return kept.concat(value ? [quoted(`${key}:${value}`)] : []).join(" ");
}
function tokenValue(query, key) {
  const found = tokensOf(query).find((token) => token.toLowerCase().startsWith(`${key}:`));
  return found ? found.slice(key.length + 1) : "";
}
function quoted(token) { return /\s/.test(token) ? `"${token}"` : token; }
