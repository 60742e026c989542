// The panel of what is selected: numbers of one tensor, the others of its module, and how it went over the steps.
starters.push(() => {
  const box = element("detail");
  if (!box) { return null; }

  function definition(list, title, text) {
    const pair = list.appendChild(make("div"));
    pair.appendChild(make("dt", "", title));
    pair.appendChild(make("dd", "", text));
  }
  function button(text, run) {
    const made = make("button", "", text);
    made.type = "button";
    made.addEventListener("click", run);
    return made;
  }
  function sidesTable(row) {
    const table = make("table", "plain sides"), head = table.createTHead().insertRow(), body = table.createTBody();
    for (const title of ["", word("col_reference"), word("col_candidate")]) {
      const cell = head.appendChild(make(title ? "th" : "td", title ? "number" : "", title));
      if (title) { cell.scope = "col"; }
    }
    const line = (title, texts) => {
      if (texts.every((text) => text === "")) { return; }
      const made = body.insertRow(), name = made.appendChild(make("th", "", title));
      name.scope = "row";
      for (const text of texts) { made.appendChild(make("td", "number", text)); }
    };
    const sides = ["reference", "candidate"], number = (name, write) => sides.map((side) => {
      const value = records.value(`${side}_${name}`, row);
      return Number.isNaN(value) ? "" : write(value);
    });
    line(word("detail_kind"), sides.map((side) => data.kinds[records.of[side][records.structure[row]]]));
    line(word("detail_largest"), number("largest", valueText));
    line(word("detail_mean"), number("mean", valueText));
    line(word("detail_rms"), number("rms", valueText));
    line(word("detail_zeros"), number("zeros", percentText));
    line(word("detail_subnormals"), number("subnormals", percentText));
    for (const [what, name] of [["nans", "NaN"], ["infs", "Inf"]]) {
      if (sides.some((side) => records.odd(side, what, row))) { line(name, sides.map((side) => grouped(records.odd(side, what, row)))); }
    }
    return table;
  }
  function tensorsOf(name, row) {
    const step = row >= 0 ? records.step[row] : Array.from(records.starts.keys())[0], range = records.starts.get(step) || [0, 0], rows = [];
    const id = data.names.indexOf(name);
    for (let each = range[0]; each < range[1]; each += 1) { if (records.nameId(each) === id) { rows.push(each); } }
    return rows;
  }
  function tensorList(rows, row) {
    const list = make("ul", "tensors");
    for (const each of rows.slice(0, 40)) {
      const item = list.appendChild(make("li")), open = item.appendChild(button("", () => select(records.name(each), each, "detail")));
      open.className = "tensor";
      open.setAttribute("aria-pressed", String(each === row));
      open.appendChild(make("span", "sign", data.signs[records.status(each)])).setAttribute("aria-hidden", "true");
      open.appendChild(make("bdi", "name", shortName(records.slot(each), 60)));
      open.appendChild(make("span", "muted", ` ${phaseText(records.phase(each))}, ${statusText(records.status(each))}`));
      open.appendChild(make("span", "times", rowTimesText(each) || differenceText(each)));
    }
    if (rows.length > 40) { list.appendChild(make("li", "muted", word("and_more", {count: grouped(rows.length - 40)}))); }
    return list;
  }
  function overSteps(row) {
    const kind = records.structure[row], line = make("ol", "spark"), steps = Array.from(records.starts.keys()).filter((step) => step !== data.initStep);
    const shown = steps.slice(0, 60);
    for (const step of shown) {
      const same = (other) => {
        const its = records.structure[other];
        return its === kind || (records.of.name[its] === records.of.name[kind] && records.of.slot[its] === records.of.slot[kind] &&
          records.of.phase[its] === records.of.phase[kind] && records.of.call[its] === records.of.call[kind] && records.of.micro[its] === records.of.micro[kind]);
      };
      const found = records.find(step, same), times = found < 0 ? NaN : records.scaled(found);
      const text = found < 0 ? word("tree_notseen") : rowTimesText(found) || differenceText(found);
      const item = line.appendChild(make("li")), mark = item.appendChild(make("span", "swatch"));
      mark.style.background = Number.isNaN(times) ? "transparent" : `var(--heat-${classOf(times)})`;
      mark.setAttribute("aria-hidden", "true");
      item.appendChild(make("span", "", word("detail_step", {step: stepText(step), text})));
      if (found === row) { item.classList.add("chosen"); }
    }
    return line;
  }
  function show() {
    box.textContent = "";
    const name = selection.module;
    if (!name) { box.appendChild(make("p", "muted", word("detail_none"))); return; }
    const place = data.modules.names.indexOf(name), title = box.appendChild(make("h3"));
    title.appendChild(make("bdi", "name", shortName(name, 300)));
    if (place >= 0) { title.appendChild(make("span", "class muted", ` ${data.modules.classes[data.modules.class[place]]}`)); }
    const rows = tensorsOf(name, selection.row);
    const row = selection.row >= 0 ? selection.row : rows.length ? rows[0] : -1;
    const tools = box.appendChild(make("div", "buttons"));
    tools.appendChild(button(word("detail_copy"), () => copyText(name)));
    if (data.names.includes(name)) { tools.appendChild(button(word("detail_rows"), () => searchFor(quoted(`m:${name}`)))); }
    tools.appendChild(button(word("detail_command"), () => copyText(`align show ${shellWord(data.files[1])} ${shellWord(name)}`)));
    if (row < 0) { box.appendChild(make("p", "muted", word("detail_without"))); return; }
    const list = box.appendChild(make("dl", "evidence")), found = findingsOf(row);
    box.insertBefore(make("p", "", word("detail_where", {step: records.step[row] === data.initStep ? word("before_training") : word("step", {step: records.step[row]}), phase: phaseText(records.phase(row)), slot: records.slot(row)})), list);
    definition(list, word("col_status"), statusText(records.status(row)));
    definition(list, word("col_relative"), differenceText(row));
    if (records.flags[row] & 64) { definition(list, word("col_times"), rowTimesText(row)); }
    if (records.value("floor", row) > 0) { definition(list, word("col_floor"), relativeText(records.value("floor", row))); }
    if (records.limit(row) > 0) { definition(list, word("col_limit"), timesText(records.limit(row))); }
    if (unitOf(row) > 0) { definition(list, word("col_unit"), relativeText(unitOf(row))); }
    if (found.length) {
      const line = box.appendChild(make("p"));
      for (const number of found) {
        const link = line.appendChild(make("a", "", word("detail_finding", {number, label: data.findings[number - 1].label})));
        link.href = `#f-${number}`;
        line.appendChild(document.createTextNode(" "));
      }
      followLinks(line);
    }
    const other = data.others[records.of.other[records.structure[row]]];
    if (other) { box.appendChild(make("p", "", word("detail_other", {name: other}))); }
    box.appendChild(sidesTable(row));
    if (!records.known(row)) { box.appendChild(make("p", "muted", word("detail_rounded"))); }
    if (records.starts.size > 1) {
      box.appendChild(make("h4", "", word("detail_steps")));
      box.appendChild(overSteps(row));
    }
    if (rows.length > 1) {
      box.appendChild(make("h4", "", word("detail_tensors", {step: stepText(records.step[row])})));
      box.appendChild(tensorList(rows, row));
    }
  }
  listeners.push(() => { show(); remember("row", selection.row >= 0 && selection.row !== data.first ? records.number(selection.row) : ""); if (selection.row >= 0) { announce(`${selection.module} ${records.slot(selection.row)}: ${rowTimesText(selection.row) || differenceText(selection.row)}`); } });
  show();
  return null;
});
function shellWord(text) { return /^[\w./:-]+$/.test(text) ? text : `'${text.replace(/'/g, "'\\''")}'`; }
