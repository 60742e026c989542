// The table of all entries of two checkpoints: only the rows in sight are elements.
const entriesData = JSON.parse(element("align-data").textContent);
const entriesCount = entriesData.relation.length;
const ENTRY_ROWS_AROUND = 8;

function candidateOf(row) { return entriesData.candidate[row] === 0 ? entriesData.reference[row] : entriesData.candidate[row]; }
function relationOf(row) { return entriesData.relations[entriesData.relation[row]]; }
function spoken(column, row) {
  const texts = entriesData[column][language()];
  return texts.words[texts.places[row]];
}
const ENTRY_COLUMNS = {
  reference: {title: "reference", name: true, text: (row) => entriesData.reference[row]},
  relation: {title: "entry_relation", text: (row) => entriesData.words[language()][entriesData.relation[row]], key: (row) => entriesData.relation[row]},
  candidate: {title: "candidate", name: true, text: candidateOf},
  said: {title: "entry_said", text: (row) => spoken("said", row)},
  way: {title: "entry_way", text: (row) => spoken("way", row)},
  relative: {
    title: "entry_relative", number: true, down: true, text: (row) => entriesData.written[row],
    key: (row) => (entriesData.relative[row] === null ? (entriesData.written[row] ? Infinity : NaN) : entriesData.relative[row]),
    csv: (row) => (entriesData.relative[row] === null ? entriesData.written[row] : entriesData.relative[row]),
  },
  reference_kind: {title: "entry_reference_kind", text: (row) => entriesData.kinds[entriesData.kind[row]][0]},
  candidate_kind: {title: "entry_candidate_kind", text: (row) => entriesData.kinds[entriesData.kind[row]][1]},
};
const ENTRY_NAMES = Object.keys(ENTRY_COLUMNS);

function sortedEntries(rows, name, descending) {
  if (name === "") { return rows; }
  const column = ENTRY_COLUMNS[name], sign = descending ? -1 : 1;
  const keys = new Map(rows.map((row) => [row, column.key ? column.key(row) : column.text(row)]));
  const missing = (key) => key === "" || Number.isNaN(key);
  const collator = new Intl.Collator("en", {numeric: true});
  const order = (one, other) => (typeof one === "string" ? collator.compare(one, other) : one === other ? 0 : one < other ? -1 : 1);
  return rows.slice().sort((one, other) => {
    // What is not there stands behind, whichever way it is sorted.
    const left = keys.get(one), right = keys.get(other);
    if (missing(left) || missing(right)) { return missing(left) - missing(right) || one - other; }
    return sign * order(left, right) || one - other;
  });
}
function matchingEntries(query, relations) {
  const wanted = query.trim().toLowerCase().split(/\s+/).filter(Boolean), found = [];
  for (let row = 0; row < entriesCount; row += 1) {
    if (relations.length && !relations.includes(relationOf(row))) { continue; }
    if (wanted.length) {
      const text = ENTRY_NAMES.map((name) => ENTRY_COLUMNS[name].text(row)).join("\n").toLowerCase();
      if (!wanted.every((part) => text.includes(part))) { continue; }
    }
    found.push(row);
  }
  return found;
}
function unmatchedEntries(query, relations) {
  const chosen = relations.map((each) => entriesData.words[language()][entriesData.relations.indexOf(each)]);
  const parts = query.trim().split(/\s+/).filter(Boolean);
  if (parts.some((part) => !matchingEntries(part, []).length) || !chosen.length) {
    return nothingText(parts, (part) => matchingEntries(part, []).length > 0);
  }
  return nothingText(parts.concat(chosen), () => true);
}
function entryCell(line, name, row) {
  const cell = line.insertCell(), column = ENTRY_COLUMNS[name], text = column.text(row);
  if (column.number) { cell.className = "number"; }
  if (column.name) {
    const cut = text.length > 120 ? `${text.slice(0, 58)}...${text.slice(-59)}` : text;
    const inner = cell.appendChild(make("bdi", "name", cut));
    if (cut !== text) { inner.title = text; }
  } else if (name === "relation") {
    const role = entriesData.roles[entriesData.relation[row]], badge = cell.appendChild(make("span", `badge ${role}`));
    badge.appendChild(make("span", "", entriesData.signs[role])).setAttribute("aria-hidden", "true");
    badge.appendChild(document.createTextNode(` ${text}`));
  } else {
    cell.textContent = text;
    if (name === "said") { cell.title = text; }
  }
}

starters.push((root) => {
  const table = element("entries-table"), frame = element("entries-frame"), field = element("entries-filter");
  const body = table.tBodies[0], asked = remembered("sort") || "";
  const state = {rows: [], column: asked.replace(/^-/, ""), descending: asked.startsWith("-"), relations: []};
  let height = 0, drawn = "";
  if (!ENTRY_COLUMNS[state.column]) { state.column = ""; }
  state.relations = (remembered("c") || "").split(",").filter((name) => entriesData.relations.includes(name));
  field.value = remembered("q") || "";

  function spacer(lines) {
    const line = body.insertRow(), cell = line.insertCell();
    line.className = "spacer";
    line.setAttribute("aria-hidden", "true");
    cell.colSpan = ENTRY_NAMES.length;
    cell.style.height = `${lines * height}px`;
  }
  function draw(again) {
    const total = state.rows.length, sight = Math.ceil((frame.clientHeight || 560) / (height || 28));
    const begin = Math.max(0, Math.min(Math.floor(frame.scrollTop / (height || 28)) - ENTRY_ROWS_AROUND, total - sight));
    const end = Math.min(total, begin + sight + 2 * ENTRY_ROWS_AROUND), what = `${begin} ${end}`;
    if (what === drawn && !again) { return; }
    drawn = what;
    body.textContent = "";
    if (begin) { spacer(begin); }
    for (let place = begin; place < end; place += 1) {
      const line = body.insertRow();
      line.setAttribute("aria-rowindex", place + 2);
      for (const name of ENTRY_NAMES) { entryCell(line, name, state.rows[place]); }
    }
    if (end < total) { spacer(total - end); }
    if (!height && body.rows.length) {
      height = body.rows[0].getBoundingClientRect().height;
      if (height && end < total) { draw(true); }
    }
  }
  function drawHead() {
    const line = table.tHead.rows[0];
    line.textContent = "";
    for (const name of ENTRY_NAMES) {
      const head = line.appendChild(make("th", ENTRY_COLUMNS[name].number ? "number" : "", word(ENTRY_COLUMNS[name].title)));
      head.scope = "col";
      head.dataset.column = name;
      head.setAttribute("aria-sort", name !== state.column ? "none" : state.descending ? "descending" : "ascending");
      headerButton(head, () => {
        state.descending = state.column === name ? !state.descending : Boolean(ENTRY_COLUMNS[name].down);
        state.column = name;
        remember("sort", (state.descending ? "-" : "") + name);
        drawHead();
        refresh();
        line.querySelector(`[data-column="${name}"] button`).focus({preventScroll: true});
      });
    }
  }
  function refresh() {
    state.rows = sortedEntries(matchingEntries(field.value, state.relations), state.column, state.descending);
    table.setAttribute("aria-rowcount", state.rows.length + 1);
    frame.scrollTop = 0;
    draw(true);
    element("entries-shown").textContent = word("entries_shown", {shown: grouped(state.rows.length), total: grouped(entriesCount)});
    element("entries-nothing").textContent = state.rows.length > 0 ? "" : unmatchedEntries(field.value, state.relations);
    frame.hidden = state.rows.length === 0;
    for (const button of every(root, "button[data-relation]")) {
      button.setAttribute("aria-pressed", String(state.relations.includes(button.dataset.relation)));
    }
  }
  function narrow(query, relations) {
    field.value = query;
    state.relations = relations;
    remember("q", query.trim());
    remember("c", relations.join(","));
    refresh();
  }
  for (const button of every(root, "button[data-relation]")) {
    button.addEventListener("click", () => {
      const name = button.dataset.relation, chosen = state.relations;
      narrow(field.value, chosen.includes(name) ? chosen.filter((each) => each !== name) : chosen.concat([name]));
      if (button.dataset.place === "overview") { element("entries").scrollIntoView(); }
    });
  }
  field.addEventListener("input", () => narrow(field.value, state.relations));
  element("entries-clear").addEventListener("click", () => narrow("", []));
  element("entries-csv").addEventListener("click", () => {
    const titles = ENTRY_NAMES.map((name) => word(ENTRY_COLUMNS[name].title));
    const cell = (name, row) => (ENTRY_COLUMNS[name].csv || ENTRY_COLUMNS[name].text)(row);
    save("entries.csv", csvText([titles].concat(state.rows.map((row) => ENTRY_NAMES.map((name) => cell(name, row))))));
  });
  frame.addEventListener("scroll", () => requestAnimationFrame(() => draw(false)), {passive: true});
  drawHead();
  refresh();
  return null;
});
