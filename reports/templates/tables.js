// Ordinary tables: sorted by their headers, filtered, counted, saved as CSV.
const FEW_ROWS = 8;

function cellValue(row, column) {
  const cell = row.cells[column];
  if (!cell) { return ""; }
  return cell.dataset.value !== undefined ? cell.dataset.value : cell.textContent.trim();
}
function comparable(text) {
  if (text === "") { return null; }
  const number = Number(text.replace(/,/g, ""));
  return Number.isNaN(number) ? text : number;
}
function inOrder(one, other) {
  // Numbers before words, what is empty behind both.
  const rank = (value) => (value === null ? 2 : typeof value === "number" ? 0 : 1);
  if (rank(one) !== rank(other)) { return rank(one) - rank(other); }
  if (typeof one === "string") { return one.localeCompare(other, "en", {numeric: true}); }
  return one === other ? 0 : one < other ? -1 : 1;
}
function csvCell(value) {
  const text = String(value);
  const guarded = /^[=+\-@\t\r]/.test(text) && !Number.isFinite(Number(text)) ? `'${text}` : text;
  return /[",\n\r]/.test(guarded) ? `"${guarded.replace(/"/g, '""')}"` : guarded;
}
function csvText(lines) { return lines.map((cells) => cells.map(csvCell).join(",")).join("\r\n") + "\r\n"; }

function headerButton(head, run) {
  // A printed header that is repeated on the next page shows no buttons: there the word stands in.
  const button = make("button", "sort"), printed = make("span", "printed", head.textContent.trim());
  button.type = "button";
  button.textContent = printed.textContent;
  head.textContent = "";
  head.appendChild(printed);
  head.appendChild(button);
  button.addEventListener("click", run);
}
function sortTable(table, rows, column, descending) {
  const body = table.tBodies[0];
  const values = new Map(rows.map((row) => [row, comparable(cellValue(row, column))]));
  const sorted = rows.slice().sort((one, other) => {
    const left = values.get(one), right = values.get(other);
    if (left === null || right === null) { return inOrder(left, right); }
    return (descending ? -1 : 1) * inOrder(left, right);
  });
  for (const row of sorted) { body.appendChild(row); }
  every(table.tHead, "th").forEach((head, place) => {
    head.setAttribute("aria-sort", place === column ? (descending ? "descending" : "ascending") : "none");
  });
}
function tableTools(table, rows) {
  const tools = make("div", "table-tools screen-only"), field = make("input"), shown = make("span", "shown");
  const label = make("label"), save_ = make("button", "", word("csv")), nothing = make("p", "nothing");
  field.type = "search";
  field.autocomplete = "off";
  field.spellcheck = false;
  save_.type = "button";
  save_.title = word("csv_how");
  shown.setAttribute("role", "status");
  nothing.setAttribute("role", "status");
  label.appendChild(make("span", "", word("rows_filter")));
  label.appendChild(field);
  for (const part of [label, shown, save_]) { tools.appendChild(part); }
  const place = table.closest(".scroll") || table;
  place.parentNode.insertBefore(tools, place);
  place.parentNode.insertBefore(nothing, place.nextSibling);
  const narrow = () => {
    const wanted = field.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    let matching = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !wanted.every((part) => text.includes(part));
      matching += row.hidden ? 0 : 1;
    }
    shown.textContent = word("rows_of", {shown: grouped(matching), total: grouped(rows.length)});
    const any = (part) => rows.some((row) => row.textContent.toLowerCase().includes(part));
    nothing.textContent = matching > 0 ? "" : nothingText(wanted, any);
    table.hidden = matching === 0;
  };
  field.addEventListener("input", narrow);
  save_.addEventListener("click", () => {
    const titles = every(table.tHead, "th").map((head) => (head.querySelector(".printed") || head).textContent.trim());
    const lines = Array.from(table.tBodies[0].rows).filter((row) => !row.hidden)
      .map((row) => titles.map((title, column) => cellValue(row, column)));
    save(`${table.dataset.csv || "table"}.csv`, csvText([titles].concat(lines)));
  });
  narrow();
}
// Called after all other starts: they may fill tables.
function startTables(root) {
  for (const table of every(root, "table.sortable")) {
    const rows = Array.from(table.tBodies[0].rows);
    every(table.tHead, "th").forEach((head, column) => {
      if (head.textContent.trim() === "") { return; }
      headerButton(head, () => {
        const before = head.getAttribute("aria-sort");
        const descending = before === "none" ? head.classList.contains("number") : before === "ascending";
        sortTable(table, rows, column, descending);
      });
      head.setAttribute("aria-sort", "none");
    });
    const tools = table.dataset.tools || (rows.length >= FEW_ROWS ? "always" : "none");
    if (tools !== "none") { tableTools(table, rows); }
  }
}
