// The section of the model: the tree, drawn anew when something opens, and its keys.
starters.push((root) => {
  const box = element("tree");
  if (!box) { return null; }
  const tree = moduleTree(), field = element("tree-search"), only = element("tree-above");
  const open = new Set([""].concat(tree.children.filter((node) => node.children.length && tree.children.length < 3 && !node.path.startsWith("\u0000")).map((node) => node.path)));
  let lines = [], active = null, typed = "", typedAt = 0;
  if (data.first >= 0) { for (const path of pathTo(tree, records.name(data.first))) { open.add(path); } }

  function visibleLines() {
    const wanted = field.value.trim() ? glob(field.value.trim()) : null, above = only.checked, listed = [];
    const keep = (node) => (!above || ["first", "nonfinite", "origin", "propagated"].includes(node.state)) &&
      (!wanted || matches(node));
    const matches = (node) => (!node.group && (wanted.test(node.path) || wanted.test(node.className))) || node.children.some(matches);
    const walk = (node, level) => {
      const children = (wanted || node.group ? node.children : foldedChildren(node)).filter(keep);
      children.forEach((child, place) => {
        const inner = child.children.filter(keep).length > 0;
        const opened = inner && (open.has(child.path) || (wanted !== null && child.children.some(matches)));
        listed.push({node: child, level, place: place + 1, siblings: children.length, inner, opened});
        if (opened) { walk(child, child.group ? level : level + 1); }
      });
    };
    walk(tree, 1);
    return listed;
  }
  function numberText(node) {
    if (node.state === "nonfinite" && node.origin < 0) { return word("status_nonfinite"); }
    if (node.origin < 0 && node.relative >= 0) { return relativeText(node.relative); }
    const times = worst(node);
    if (times >= 0) { return timesText(times); }
    return node.state === "notseen" ? word("tree_notseen") : statusText(node.state === "first" ? "origin" : node.state);
  }
  function stateText(node) {
    if (node.path && data.first >= 0 && node.path === records.name(data.first)) { return word("tree_first"); }
    if (node.state === "first") { return word("tree_first_inside"); }
    return node.state === "notseen" ? "" : statusText(node.state);
  }
  function lineOf(entry) {
    const node = entry.node, line = make("div", `treeline${node.group ? " group" : ""}`);
    line.setAttribute("role", "treeitem");
    line.setAttribute("aria-level", entry.level);
    line.setAttribute("aria-posinset", entry.place);
    line.setAttribute("aria-setsize", entry.siblings);
    if (entry.inner) { line.setAttribute("aria-expanded", String(entry.opened)); }
    line.setAttribute("aria-selected", String(selection.module === node.path && !node.group));
    line.tabIndex = -1;
    line.style.paddingInlineStart = `${0.3 + 1.1 * (entry.level - 1)}rem`;
    const arrow = line.appendChild(make("span", "arrow", entry.inner ? (entry.opened ? "\u25be" : "\u25b8") : ""));
    arrow.setAttribute("aria-hidden", "true");
    const sign = data.signs[node.state === "first" ? "origin" : node.state] || "|";
    line.appendChild(make("span", "sign", sign)).setAttribute("aria-hidden", "true");
    line.appendChild(make("bdi", "name", shortName(node.label, 80)));
    if (node.className) { line.appendChild(make("span", "class muted", shortName(node.className, 40))); }
    const state = line.appendChild(make("span", "state", stateText(node)));
    if (node.state === "first") { state.classList.add("firstmark"); }
    line.appendChild(make("span", "times", numberText(node)));
    const swatch = line.appendChild(make("span", `swatch${node.origin < 0 && node.propagated >= 0 ? " inherited" : ""}`));
    swatch.setAttribute("aria-hidden", "true");
    swatch.style.background = worst(node) >= 0 ? `var(--heat-${classOf(worst(node))})` : "transparent";
    return line;
  }
  function draw(focus) {
    lines = visibleLines();
    box.textContent = "";
    for (const entry of lines) { entry.element = box.appendChild(lineOf(entry)); }
    element("tree-nothing").textContent = lines.length > 0 ? "" : nothingText([field.value.trim()].filter(Boolean), () => false);
    const now = lines.find((entry) => active !== null && entry.node.path === active) || lines[0];
    if (now) {
      active = now.node.path;
      now.element.tabIndex = 0;
      if (focus) { now.element.focus({preventScroll: true}); now.element.scrollIntoView({block: "nearest"}); }
    }
  }
  function choose(entry) {
    active = entry.node.path;
    if (entry.node.group) { toggle(entry); return; }
    select(entry.node.path, entry.node.row, "tree");
    draw(true);
  }
  function toggle(entry) {
    if (!entry.inner) { return; }
    if (open.has(entry.node.path)) { open.delete(entry.node.path); } else { open.add(entry.node.path); }
    active = entry.node.path;
    draw(true);
  }
  function moveTo(place) {
    const entry = lines[Math.max(0, Math.min(lines.length - 1, place))];
    if (entry) { active = entry.node.path; draw(true); }
  }
  function onKey_(event) {
    const place = lines.findIndex((entry) => entry.node.path === active), entry = lines[place];
    if (!entry || event.ctrlKey || event.altKey || event.metaKey) { return; }
    const parent = () => { let up = place - 1; while (up > 0 && lines[up].level >= entry.level) { up -= 1; } return up; };
    const runs = {
      ArrowDown: () => moveTo(place + 1), ArrowUp: () => moveTo(place - 1), Home: () => moveTo(0), End: () => moveTo(lines.length - 1),
      ArrowRight: () => (entry.inner && !entry.opened ? toggle(entry) : entry.inner ? moveTo(place + 1) : null),
      ArrowLeft: () => (entry.opened ? toggle(entry) : moveTo(parent())),
      Enter: () => choose(entry), " ": () => choose(entry),
      "*": () => { for (const each of lines.filter((other) => other.level === entry.level && other.inner)) { open.add(each.node.path); } draw(true); },
    };
    if (runs[event.key]) { event.preventDefault(); event.stopPropagation(); runs[event.key](); return; }
    if (event.key.length === 1 && /[\w<.]/.test(event.key)) {
      event.preventDefault();
      event.stopPropagation();
      typed = Date.now() - typedAt < 700 ? typed + event.key.toLowerCase() : event.key.toLowerCase();
      typedAt = Date.now();
      const begins = (each) => each.node.label.toLowerCase().startsWith(typed);
      const from = typed.length > 1 ? place : place + 1;
      const next = lines.slice(from).concat(lines.slice(0, from)).find(begins);
      if (next) { moveTo(lines.indexOf(next)); }
    }
  }
  function expandWorst() {
    const seek = (node) => node.children.filter((child) => child.state === node.state).sort((one, other) => worst(other) - worst(one))[0];
    let node = tree;
    while (node && node.children.length) { open.add(node.path); node = seek(node); }
    if (!node) { return; }
    for (const group of allGroups()) { if (group.children.includes(node) || group.children.some((each) => node.path.startsWith(`${each.path}.`))) { open.add(group.path); } }
    active = node.path;
    field.value = "";
    select(node.path, node.row, "tree");
    draw(true);
  }
  function allGroups() {
    const groups = [];
    const walk = (node) => { for (const child of node.group ? node.children : foldedChildren(node)) { if (child.group) { groups.push(child); } walk(child); } };
    walk(tree);
    return groups;
  }
  function reveal() {
    if (selection.from === "tree" || !selection.module) { draw(false); return; }
    for (const path of pathTo(tree, selection.module)) { open.add(path); }
    for (const group of allGroups()) {
      if (group.children.some((each) => selection.module === each.path || selection.module.startsWith(`${each.path}.`))) { open.add(group.path); }
    }
    active = selection.module;
    draw(false);
    const entry = lines.find((each) => each.node.path === active);
    if (entry) { box.scrollTop = entry.element.offsetTop - box.clientHeight / 3; }
  }

  box.addEventListener("keydown", onKey_);
  box.addEventListener("click", (event) => {
    const line = event.target.closest(".treeline"), entry = lines.find((each) => each.element === line);
    if (!entry) { return; }
    if (event.target.classList.contains("arrow")) { toggle(entry); } else { choose(entry); }
  });
  field.addEventListener("input", () => draw(false));
  only.addEventListener("change", () => draw(false));
  element("tree-worst").addEventListener("click", expandWorst);
  shortcuts.e = expandWorst;
  listeners.push(reveal);
  const kept = remembered("row") === undefined ? -1 : rowOfNumber(Number(remembered("row")));
  if (!selection.module && kept >= 0) {
    Object.assign(selection, {module: records.name(kept), row: kept, from: "tree"});
    for (const path of pathTo(tree, selection.module)) { open.add(path); }
  }
  if (!selection.module && data.first >= 0) { Object.assign(selection, {module: records.name(data.first), row: data.first, from: "tree"}); }
  active = selection.module || null;
  draw(false);
  const first = lines.find((entry) => entry.node.path === active);
  if (first) { box.scrollTop = first.element.offsetTop - box.clientHeight / 3; }
  return null;
});
