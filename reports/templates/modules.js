// The modules of the model as a tree, each with the worst of its tensors over all steps.
const STATES = ["first", "nonfinite", "origin", "propagated", "within", "equal", "not judged", "notseen"];
const OUTSIDE = ["input", "loss", "rng", "scaler"];
const KINDS = ["origin", "propagated", "within", "relative"];
const FOLD_FROM = 3;

function newNode(label, path, parent) {
  return {label, path, parent, children: [], className: "", own: false, origin: -1, propagated: -1, within: -1, relative: -1, state: "notseen", row: -1, order: 1e9};
}
function worse(one, other) { return STATES.indexOf(one) <= STATES.indexOf(other) ? one : other; }

function moduleTree() {
  const root = newNode("", "", null), byPath = new Map([["", root]]);
  const main = data.modules.names.find((name) => name.startsWith("<")) || "";
  const top = main ? add(root, main, main) : root;
  function add(parent, label, path) {
    const node = newNode(label, path, parent);
    parent.children.push(node);
    byPath.set(path, node);
    return node;
  }
  // `a.b.c` stands below `a.b`; what begins with another root in angle brackets stands beside the first.
  function nodeOf(path) {
    const known = byPath.get(path);
    if (known) { return known; }
    const dot = path.startsWith("<") ? path.indexOf(".", path.indexOf(">")) < 0 ? -1 : path.lastIndexOf(".") : path.lastIndexOf(".");
    if (dot <= 0) { return add(path.startsWith("<") ? root : top, path, path); }
    return add(nodeOf(path.slice(0, dot)), path.slice(dot + 1), path);
  }
  data.modules.names.forEach((name, place) => { nodeOf(name).className = data.modules.classes[data.modules.class[place]]; });
  const outside = newNode(word("tree_outside"), "\u0000outside", root);
  for (let row = 0; row < records.length; row += 1) { count(row); }
  function count(row) {
    const name = records.name(row);
    let node = byPath.get(name);
    if (!node) {
      const parent = OUTSIDE.includes(records.phase(row)) ? outside : null;
      node = parent ? add(parent, name, name) : nodeOf(name);
    }
    const status = row === data.first ? "first" : records.status(row);
    const times = status === "propagated" ? records.inUnits(row) : records.scaled(row);
    node.own = true;
    node.order = Math.min(node.order, row);
    const kind = status === "first" || status === "nonfinite" || status === "origin" ? "origin" : status === "propagated" ? "propagated" : "within";
    if (times > node[kind]) { node[kind] = times; }
    if (status === "propagated") { node.relative = Math.max(node.relative, relativeKey(row) || 0); }
    if (node.row < 0 || STATES.indexOf(status) < STATES.indexOf(node.state)) { node.row = row; }
    node.state = worse(status, node.state);
  }
  if (outside.children.length) { root.children.unshift(outside); }
  gather(root);
  return root;
}
function gather(node) {
  node.size = 1;
  node.ownState = node.state;
  for (const child of node.children) {
    gather(child);
    node.size += child.size;
    node.order = Math.min(node.order, child.order);
    node.state = worse(child.state, node.state);
    for (const kind of KINDS) { node[kind] = Math.max(node[kind], child[kind]); }
  }
}
// Equal siblings as one: of one class, in one state, with as many modules inside.
function foldedChildren(node) {
  const alike = (one, other) => one.className === other.className && one.state === other.state && one.size === other.size &&
    one.state !== "first" && (one.state === "propagated" || classOf(worst(one)) === classOf(worst(other))) && (one.className !== "" || one.size > 1);
  const shown = [];
  let begin = 0;
  while (begin < node.children.length) {
    let end = begin + 1;
    while (end < node.children.length && alike(node.children[begin], node.children[end])) { end += 1; }
    const these = node.children.slice(begin, end);
    if (these.length >= FOLD_FROM) { shown.push(folded(node, these)); } else { shown.push(...these); }
    begin = end;
  }
  return shown;
}
function folded(parent, these) {
  const first = these[0], last = these[these.length - 1];
  const node = newNode(word("tree_folded", {first: first.label, last: last.label, count: grouped(these.length)}), `${parent.path}\u0000${first.label}`, parent);
  for (const kind of KINDS) { node[kind] = Math.max(...these.map((each) => each[kind])); }
  return Object.assign(node, {children: these, className: first.className, state: first.state, group: true, order: first.order, row: -1});
}
function worst(node) { return node.origin >= 0 ? node.origin : node.propagated >= 0 ? node.propagated : node.within; }
function pathTo(root, name) {
  const found = [];
  const walk = (node) => {
    if (node.path === name && !node.group) { return true; }
    if (node.children.some(walk)) { found.push(node.path); return true; }
    return false;
  };
  walk(root);
  return found;
}
