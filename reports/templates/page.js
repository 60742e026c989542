"use strict";
(function () {
  // On a narrow screen a figure is wider than its frame: bring the first difference into sight.
  Array.prototype.forEach.call(document.querySelectorAll("figure .scroll"), function (frame) {
    var mark = frame.querySelector('[id$="-first"]');
    if (!mark) { return; }
    var place = mark.getBoundingClientRect().left - frame.getBoundingClientRect().left;
    frame.scrollLeft = Math.max(0, place - frame.clientWidth / 2);
  });

  var data = JSON.parse(document.getElementById("align-data").textContent);
  var table = document.getElementById("table");
  if (!table) { return; }
  document.documentElement.classList.add("scripted");
  var columns = data.columns, texts = data.dictionaries, words = data.words, size = 200;
  var body = table.tBodies[0];
  var state = {text: "", statuses: {}, phase: "", step: "", column: "number", descending: false, offset: data.start};
  var matching = [];

  function element(id) { return document.getElementById(id); }
  function text(column, row) { return texts[column] ? texts[column][columns[column][row]] : columns[column][row]; }
  function grouped(number, places) {
    return number.toLocaleString("en-US", {minimumFractionDigits: places, maximumFractionDigits: places});
  }
  function plain(number, digits) {
    var exponent = Number(number.toExponential(digits - 1).split("e")[1]);
    return grouped(number, Math.max(0, digits - 1 - exponent));
  }
  function scientific(number, places) { return number.toExponential(places).replace("e+", "e"); }
  function relative(number) {
    if (typeof number === "string") { return number; }
    if (number === 0) { return "0"; }
    return number >= 0.01 && number < 1000 ? plain(number, 2) : scientific(number, 1);
  }
  function times(number) {
    if (number === null) { return ""; }
    if (typeof number === "string") { return number + "x"; }
    if (number < 9.95) { return number.toFixed(1) + "x"; }
    return (number < 1e7 ? plain(number, 3) : scientific(number, 1)) + "x";
  }
  function magnitude(number) {
    if (typeof number === "string") { return number; }
    if (number === 0) { return "0"; }
    if (number >= 1e-3 && number < 1e6) { return number < 1e4 ? plain(number, 4) : grouped(number, 0); }
    return scientific(number, 3);
  }
  function side(name, row) {
    var largest = columns[name + "_largest"][row], kind = text(name, row);
    return largest === null ? kind : kind + ", " + words.absolute_maximum.replace("{value}", magnitude(largest));
  }
  function difference(row) {
    var value = columns.relative[row];
    if (value === null) { return words.cell_not_compared; }
    if (value < 0) { return "< " + relative(-value); }
    return value === 0 ? words.cell_equal : relative(value);
  }
  function stepWord(step) { return step === data.initStep ? words.init_step : String(step); }

  function cell(line, content, kind) {
    var node = line.insertCell();
    if (kind === "name") {
      node = node.appendChild(document.createElement("bdi"));
      node.className = "name";
    } else if (kind) {
      node.className = kind;
    }
    node.textContent = content;
    return node;
  }
  function statusCell(line, status) {
    var node = cell(line, "", "status"), sign = node.appendChild(document.createElement("span"));
    sign.className = "sign";
    sign.setAttribute("aria-hidden", "true");
    sign.textContent = data.signs[status];
    node.appendChild(document.createTextNode(" " + words["status_" + status]));
  }
  function addRow(row) {
    var line = body.insertRow(), floor = columns.floor[row];
    if (row === data.first) { line.className = "first"; }
    cell(line, row, "number");
    cell(line, stepWord(columns.step[row]), "number");
    cell(line, text("phase", row));
    cell(line, text("name", row), "name");
    cell(line, text("slot", row), "name");
    statusCell(line, text("status", row));
    cell(line, times(columns.times[row]), "number");
    cell(line, difference(row), "number");
    cell(line, floor === 0 ? "" : relative(floor), "number");
    cell(line, side("reference", row));
    cell(line, side("candidate", row));
  }

  function matcher(pattern) {
    var escaped = pattern.trim().replace(/[.+?^${}()|[\]\\]/g, "\\$&").replace(/\*/g, ".*");
    var expression = new RegExp(escaped, "i");
    return function (row) { return expression.test(text("name", row) + " " + text("slot", row)); };
  }
  function choose() {
    var named = matcher(state.text), anyStatus = Object.keys(state.statuses).length === 0;
    matching = [];
    for (var row = 0; row < data.length; row += 1) {
      if ((anyStatus || state.statuses[text("status", row)]) &&
          (state.phase === "" || text("phase", row) === state.phase) &&
          (state.step === "" || columns.step[row] === Number(state.step)) && named(row)) { matching.push(row); }
    }
  }
  function rank(row) {
    var name = {module: "name", tensor: "slot"}[state.column] || state.column;
    if (name === "number") { return row; }
    var value = text(name, row);
    if (value === null) { return -2; }
    if (value === "NaN" || value === "Inf") { return Infinity; }
    return value;
  }
  function sort() {
    if (state.column === "number" && !state.descending) { return; }
    var direction = state.descending ? -1 : 1;
    matching.sort(function (one, other) {
      var left = rank(one), right = rank(other);
      if (left === right) { return one - other; }
      return (left < right ? -1 : 1) * direction;
    });
  }
  function draw() {
    var last = Math.min(state.offset + size, matching.length);
    body.textContent = "";
    for (var place = state.offset; place < last; place += 1) { addRow(matching[place]); }
    var sentence = matching.length === data.length ? words.rows_shown : words.rows_matching;
    element("shown").textContent = matching.length === 0 ? words.rows_none : sentence
      .replace("{first}", grouped(state.offset + 1, 0)).replace("{last}", grouped(last, 0))
      .replace("{matching}", grouped(matching.length, 0)).replace("{total}", grouped(data.length, 0));
    element("previous").disabled = state.offset === 0;
    element("next").disabled = last >= matching.length;
  }
  function refresh(offset) { choose(); sort(); state.offset = offset; draw(); }
  function move(by) {
    state.offset = Math.max(0, Math.min(state.offset + by, matching.length - 1));
    draw();
    table.parentNode.scrollTop = 0;
  }
  function showFirst() {
    var line = body.querySelector("tr.first");
    if (line) { table.parentNode.scrollTop = Math.max(0, line.offsetTop - table.parentNode.clientHeight / 3); }
  }
  function reset() {
    state.text = state.phase = state.step = "";
    state.statuses = {};
    state.column = "number";
    state.descending = false;
    element("filter").value = element("filter-phase").value = element("filter-step").value = "";
    Array.prototype.forEach.call(document.querySelectorAll("[data-status]"), function (button) {
      button.setAttribute("aria-pressed", "false");
    });
    markSort();
    refresh(data.start);
    showFirst();
  }
  function markSort() {
    Array.prototype.forEach.call(table.querySelectorAll("th"), function (head) {
      var order = state.descending ? "descending" : "ascending";
      head.setAttribute("aria-sort", head.dataset.column === state.column ? order : "none");
    });
  }
  function offer(select, values, wordOf) {
    values.forEach(function (value) {
      var option = select.appendChild(document.createElement("option"));
      option.value = value;
      option.textContent = wordOf(value);
    });
  }

  Array.prototype.forEach.call(table.querySelectorAll("th"), function (head) {
    var button = document.createElement("button"), word = document.createElement("span"), column = head.dataset.column;
    button.type = "button";
    button.textContent = word.textContent = head.textContent;
    word.className = "word";
    head.textContent = "";
    // A printed header that is repeated on the next page shows no buttons: there the word stands in.
    head.appendChild(word);
    head.appendChild(button);
    button.addEventListener("click", function () {
      var largestFirst = ["times", "relative", "floor"].indexOf(column) >= 0;
      state.descending = state.column === column ? !state.descending : largestFirst;
      state.column = column;
      markSort();
      refresh(0);
    });
  });
  Array.prototype.forEach.call(document.querySelectorAll("[data-status]"), function (button) {
    button.addEventListener("click", function () {
      var status = button.dataset.status;
      if (state.statuses[status]) { delete state.statuses[status]; } else { state.statuses[status] = true; }
      button.setAttribute("aria-pressed", String(Boolean(state.statuses[status])));
      refresh(0);
    });
  });
  element("filter").addEventListener("input", function () { state.text = element("filter").value; refresh(0); });
  element("filter-phase").addEventListener("change", function () { state.phase = element("filter-phase").value; refresh(0); });
  element("filter-step").addEventListener("change", function () { state.step = element("filter-step").value; refresh(0); });
  element("clear").addEventListener("click", reset);
  element("previous").addEventListener("click", function () { move(-size); });
  element("next").addEventListener("click", function () { move(size); });
  if (element("to-first")) { element("to-first").addEventListener("click", reset); }
  offer(element("filter-phase"), texts.phase, String);
  offer(element("filter-step"), Array.from(new Set(columns.step)).sort(function (a, b) { return a - b; }), stepWord);
  window.addEventListener("beforeprint", function () {
    Array.prototype.forEach.call(document.querySelectorAll("details"), function (details) { details.open = true; });
  });
  markSort();
  refresh(data.start);
  showFirst();
}());
