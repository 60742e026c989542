// The section of the table: search field, counts that filter, columns on demand, CSV.
starters.push((root) => {
  const table = element("table");
  if (!table) { return null; }
  const frame = element("table-frame"), field = element("filter");
  const state = {rows: [], columns: USUAL.slice(), column: remembered("sort") || "number", descending: false};
  const grid = makeGrid(table, frame, state);
  if (state.column.startsWith("-")) { state.column = state.column.slice(1); state.descending = true; }
  if (!COLUMNS[state.column]) { state.column = "number"; }
  const wanted = (remembered("cols") || "").split(",").filter((name) => COLUMNS[name]);
  if (wanted.length) { state.columns = wanted; }

  function drawHead() {
    const line = table.tHead.rows[0];
    line.textContent = "";
    for (const name of state.columns) {
      const head = line.appendChild(make("th", COLUMNS[name].number ? "number" : "", word(COLUMNS[name].title)));
      head.scope = "col";
      head.dataset.column = name;
      head.setAttribute("aria-sort", name !== state.column ? "none" : state.descending ? "descending" : "ascending");
      headerButton(head, () => {
        state.descending = state.column === name ? !state.descending : Boolean(COLUMNS[name].down);
        state.column = name;
        remember("sort", name === "number" && !state.descending ? "" : (state.descending ? "-" : "") + name);
        drawHead();
        refresh(true);
        line.querySelector(`[data-column="${name}"] button`).focus({preventScroll: true});
      });
    }
    table.setAttribute("aria-colcount", state.columns.length);
  }
  function markButtons() {
    const chosen = statusesOf(tokenValue(field.value, "s"));
    for (const button of every(root, "[data-status]")) {
      button.setAttribute("aria-pressed", String(chosen.includes(button.dataset.status.replace(" ", ""))));
    }
    element("filter-phase").value = data.phases.includes(tokenValue(field.value, "p")) ? tokenValue(field.value, "p") : "";
    const step = tokenValue(field.value, "step");
    element("filter-step").value = Array.from(element("filter-step").options, (option) => option.value).includes(step) ? step : "";
  }
  function refresh(top) {
    state.rows = sortedRows(matchingRows(field.value), state.column, state.descending);
    table.setAttribute("aria-rowcount", state.rows.length + 1);
    if (top) { frame.scrollTop = 0; }
    grid.draw(true);
    const places = {shown: grouped(state.rows.length), total: grouped(records.length)};
    element("shown").textContent = state.rows.length === records.length ? word("grid_all", places) : word("grid_some", places);
    element("nothing").textContent = state.rows.length > 0 ? "" : unmatchedText(field.value);
    frame.hidden = state.rows.length === 0;
    markButtons();
  }
  function search(query) {
    field.value = query;
    remember("q", query.trim());
    refresh(true);
  }
  function showFirst() {
    if (data.focus < 0) { frame.scrollTop = 0; return; }
    if (!grid.show(data.focus)) { search(""); grid.show(data.focus); }
  }
  function offer(select_, values, text) {
    for (const value of values) {
      const option = select_.appendChild(make("option", "", text(value)));
      option.value = value === data.initStep ? "init" : value;
    }
  }
  function move(by, test) {
    const from = state.rows.indexOf(selection.row);
    for (let place = from < 0 ? (by > 0 ? 0 : state.rows.length - 1) : from + by; place >= 0 && place < state.rows.length; place += by) {
      if (test(state.rows[place])) { select(records.name(state.rows[place]), state.rows[place], "table"); grid.show(state.rows[place]); frame.scrollIntoView({block: "nearest"}); return; }
    }
  }
  const above = (row) => ["origin", "propagated", "nonfinite"].includes(records.status(row));

  for (const button of every(root, "[data-status]")) {
    button.addEventListener("click", () => {
      const name = button.dataset.status.replace(" ", ""), chosen = statusesOf(tokenValue(field.value, "s"));
      const left = chosen.includes(name) ? chosen.filter((each) => each !== name) : chosen.concat([name]);
      search(withToken(field.value, "s", left.join(",")));
    });
  }
  let waiting = 0;
  field.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => search(field.value), records.length > 20000 ? 120 : 0);
  });
  offer(element("filter-phase"), data.phases.filter((_, place) => records.of.phase.includes(place)), phaseText);
  offer(element("filter-step"), Array.from(records.starts.keys()), stepText);
  element("filter-phase").addEventListener("change", () => search(withToken(field.value, "p", element("filter-phase").value)));
  element("filter-step").addEventListener("change", () => search(withToken(field.value, "step", element("filter-step").value)));
  element("clear").addEventListener("click", () => {
    state.column = "number";
    state.descending = false;
    remember("sort", "");
    drawHead();
    search("");
    showFirst();
  });
  if (element("to-first")) { element("to-first").addEventListener("click", showFirst); }
  element("csv").addEventListener("click", () => {
    const lines = state.rows.map((row) => state.columns.map((name) => csvValue(name, row)));
    save("tensors.csv", csvText([state.columns].concat(lines)));
  });
  for (const button of every(root, "[data-query]")) {
    const rows = matchingRows(button.dataset.query).length;
    button.hidden = rows === 0;
    button.textContent = word(button.dataset.words || (rows === 1 ? "show_row" : "show_rows"), {count: grouped(rows)});
    button.addEventListener("click", () => { search(button.dataset.query); goTo("records", true); });
  }
  const chooser = element("columns");
  for (const name of Object.keys(COLUMNS)) {
    const label = chooser.appendChild(make("label", "check")), box = label.appendChild(make("input"));
    box.type = "checkbox";
    box.checked = state.columns.includes(name);
    label.appendChild(document.createTextNode(word(COLUMNS[name].title)));
    box.addEventListener("change", () => {
      const chosen = Object.keys(COLUMNS).filter((each) => (each === name ? box.checked : state.columns.includes(each)));
      state.columns = chosen.length ? chosen : ["number"];
      remember("cols", state.columns.join() === USUAL.join() ? "" : state.columns.join());
      drawHead();
      grid.draw(true);
    });
  }
  table.tBodies[0].addEventListener("click", (event) => {
    const line = event.target.closest("tr[data-row]");
    if (line) { select(records.name(Number(line.dataset.row)), Number(line.dataset.row), "table"); }
  });
  const listen = () => {
    if (selection.from === "table" || !grid.show(selection.row)) { grid.draw(true); }
  };
  listeners.push(listen);
  Object.assign(shortcuts, {
    j: () => move(1, () => true), k: () => move(-1, () => true), n: () => move(1, above), p: () => move(-1, above),
  });
  searchFor = (query) => { search(query); goTo("records", true); };
  field.value = remembered("q") || "";
  drawHead();
  refresh(false);
  if (!field.value && state.column === "number") { showFirst(); }
  return () => { listeners = []; clearTimeout(waiting); };
});
let searchFor = () => {};
function csvValue(name, row) {
  const column = COLUMNS[name], value = (column.csv || (column.number ? column.key : column.text))(row);
  if (typeof value !== "number" || Number.isInteger(value)) { return value; }
  return Number.isNaN(value) ? "" : Number.isFinite(value) ? Number(value.toPrecision(records.known(row) ? 7 : 3)) : special(value);
}
