// What every page can do: state in the address, language, theme, keys, copying, printing.
const page = document.getElementById("page");
const starters = [];
const shortcuts = {};
const allWords = JSON.parse(element("align-words").textContent);
let endings = [];
let pristine = {};
let titles = {};

function element(id) { return document.getElementById(id); }
function every(root, selector) { return Array.from(root.querySelectorAll(selector)); }
function make(tag, className, text) {
  const node = document.createElement(tag);
  if (className) { node.className = className; }
  if (text !== undefined) { node.textContent = text; }
  return node;
}
function language() { return document.documentElement.lang; }
function word(key, places) {
  const text = allWords[language()][key];
  return text.replace(/\{(\w+)\}/g, (all, name) => places && name in places ? String(places[name]) : all);
}
function grouped(number, places) {
  return number.toLocaleString("en-US", {minimumFractionDigits: places || 0, maximumFractionDigits: places || 0});
}
// Why a search finds nothing: the first word that nothing has, else that nothing has all of them.
function nothingText(words, found) {
  const alone = words.find((each) => !found(each));
  if (alone !== undefined) { return word("nothing_word", {word: alone}); }
  return words.length ? word("nothing_together", {words: words.map((each) => `'${each}'`).join(", ")}) : word("nothing");
}
function announce(text) { element("live").textContent = text; }

// The address is `#section?key=value&...`: what a reader sees can be sent to someone else.
function address() {
  const parts = location.hash.slice(1).split("?");
  const values = {};
  for (const pair of (parts[1] || "").split("&")) {
    if (!pair) { continue; }
    const place = pair.indexOf("=");
    try { values[decodeURIComponent(pair.slice(0, place))] = decodeURIComponent(pair.slice(place + 1)); } catch (error) { continue; }
  }
  return {section: parts[0], values: values};
}
function addressOf(section, values) {
  const pairs = Object.keys(values).map((key) => `${encodeURIComponent(key)}=${encodeURIComponent(values[key])}`);
  return `#${section}${pairs.length ? `?${pairs.join("&")}` : ""}`;
}
function putAddress(hash, added) {
  try {
    history[added ? "pushState" : "replaceState"](null, "", hash);
  } catch (error) {
    location.replace(hash);
  }
}
function remembered(key) { return address().values[key]; }
function remember(key, value) {
  const now = address();
  if (value === undefined || value === null || value === "") { delete now.values[key]; } else { now.values[key] = String(value); }
  putAddress(addressOf(now.section, now.values), false);
}
function stored(key) {
  try { return localStorage.getItem(`align.${key}`); } catch (error) { return null; }
}
function store(key, value) {
  try { localStorage.setItem(`align.${key}`, value); } catch (error) { return; }
}

function goTo(id, added) {
  const target = element(id);
  if (!target) { return; }
  for (let node = target; node; node = node.parentElement) { if (node.tagName === "DETAILS") { node.open = true; } }
  if (added) { putAddress(addressOf(id, address().values), true); }
  target.scrollIntoView();
  if (!target.hasAttribute("tabindex")) { target.tabIndex = -1; }
  target.focus({preventScroll: true});
}
function followLinks(root) {
  for (const link of every(root, 'a[href^="#"]')) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      goTo(link.getAttribute("href").slice(1), true);
    });
  }
}

function showTheme() {
  const dark = document.documentElement.dataset.theme === "dark";
  element("theme").textContent = word(dark ? "theme_light" : "theme_dark");
}
function switchTheme() {
  const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  store("theme", theme);
  remember("theme", theme);
  showTheme();
  document.dispatchEvent(new Event("align-theme"));
}

function sectionInView() {
  const sections = every(page, "main section[id]").filter((section) => section.getBoundingClientRect().top < 120);
  return sections.length ? sections[sections.length - 1] : null;
}
function switchLanguage(kept) {
  const codes = Object.keys(pristine);
  const wanted = codes.find((code) => code !== language());
  if (!wanted) { return; }
  const section = sectionInView(), offset = section && section.getBoundingClientRect().top;
  endBody();
  while (page.firstChild) { page.removeChild(page.firstChild); }
  page.appendChild(pristine[wanted].cloneNode(true));
  document.documentElement.lang = wanted;
  document.title = titles[wanted];
  if (kept) {
    store("language", wanted);
    remember("lang", wanted);
  }
  startBody();
  if (section) { scrollBy(0, element(section.id).getBoundingClientRect().top - offset); }
  if (kept && element("language")) { element("language").focus({preventScroll: true}); }
}

function openHelp() {
  const help = element("help");
  help.hidden = false;
  element("help-button").setAttribute("aria-expanded", "true");
  element("help-close").focus();
}
function closeHelp() {
  if (element("help").hidden) { return; }
  element("help").hidden = true;
  element("help-button").setAttribute("aria-expanded", "false");
  element("help-button").focus();
}
function keepInside(event) {
  if (event.key !== "Tab") { return; }
  const inside = every(element("help"), "button, input");
  const first = inside[0], last = inside[inside.length - 1];
  const from = event.shiftKey ? first : last, to = event.shiftKey ? last : first;
  if (document.activeElement === from) { event.preventDefault(); to.focus(); }
}
function keysAreOn() { return stored("keys") !== "off"; }
function onKey(event) {
  if (event.key === "Escape") { closeHelp(); return; }
  const typing = event.target.closest && event.target.closest('input:not([type="checkbox"]), select, textarea');
  if (typing || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || !keysAreOn()) { return; }
  const run = shortcuts[event.key];
  if (!run || (!element("help").hidden && event.key !== "?")) { return; }
  event.preventDefault();
  run();
}

function copyText(text) {
  const said = (done) => announce(word(done ? "copied" : "copy_failed"));
  const byHand = () => {
    const field = page.appendChild(make("textarea", "unseen"));
    field.value = text;
    field.select();
    said(document.execCommand("copy"));
    page.removeChild(field);
  };
  if (navigator.clipboard) { navigator.clipboard.writeText(text).then(() => said(true), byHand); } else { byHand(); }
}
function save(name, text) {
  // The mark at its begin tells spreadsheets that it is UTF-8.
  const link = make("a");
  link.href = URL.createObjectURL(new Blob(["\ufeff", text], {type: "text/csv;charset=utf-8"}));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function showFirstMarks(root) {
  // On a narrow screen a figure is wider than its frame: bring the first difference into sight.
  for (const frame of every(root, "figure .scroll")) {
    const mark = frame.querySelector('[id$="-first"]');
    if (!mark) { continue; }
    const place = mark.getBoundingClientRect().left - frame.getBoundingClientRect().left;
    frame.scrollLeft = Math.max(0, place - frame.clientWidth / 2);
  }
}
function startBody() {
  for (const key of Object.keys(shortcuts)) { delete shortcuts[key]; }
  Object.assign(shortcuts, {"?": () => (element("help").hidden ? openHelp() : closeHelp()), d: switchTheme, l: () => switchLanguage(true)});
  shortcuts["/"] = () => {
    const fields = every(page, 'input[type="search"]').filter((field) => field.offsetParent);
    const main = fields.find((field) => field.classList.contains("main-search")) || fields[0];
    if (main) { main.focus(); main.scrollIntoView({block: "center"}); }
  };
  if (element("language")) { element("language").addEventListener("click", () => switchLanguage(true)); }
  element("theme").addEventListener("click", switchTheme);
  element("print").addEventListener("click", () => window.print());
  element("help-button").addEventListener("click", openHelp);
  element("help-close").addEventListener("click", closeHelp);
  element("help").addEventListener("keydown", keepInside);
  element("keys-on").checked = keysAreOn();
  element("keys-on").addEventListener("change", () => store("keys", element("keys-on").checked ? "on" : "off"));
  for (const button of every(page, "button[data-copy]")) {
    button.addEventListener("click", () => copyText(element(button.dataset.copy).textContent));
  }
  followLinks(page);
  showTheme();
  showFirstMarks(page);
  endings = starters.concat([startTables]).map((begin) => begin(page)).filter(Boolean);
  document.documentElement.dataset.ready = "";
  performance.mark("align-ready");
}
function endBody() {
  for (const end of endings) { end(); }
  endings = [];
}
function openAll() {
  for (const folded of every(page, "details:not([open]):not(.twin)")) { folded.open = true; folded.dataset.opened = ""; }
}
function foldAgain() {
  for (const opened of every(page, "details[data-opened]")) { opened.open = false; delete opened.dataset.opened; }
}
function copyOf(nodes) {
  const copy = document.createDocumentFragment();
  for (const node of Array.from(nodes)) { copy.appendChild(node.cloneNode(true)); }
  return copy;
}
function start() {
  const other = element("other-language");
  if (other) {
    pristine = {[language()]: copyOf(page.childNodes), [other.lang]: other.content};
    titles = {[language()]: document.title, [other.lang]: other.dataset.title};
  }
  const wanted = remembered("lang") || stored("language");
  if (wanted && wanted !== language() && pristine[wanted]) { switchLanguage(false); } else { startBody(); }
  document.addEventListener("keydown", onKey);
  window.addEventListener("popstate", () => goTo(address().section, false));
  window.addEventListener("beforeprint", openAll);
  window.addEventListener("afterprint", foldAgain);
  if (address().section) { goTo(address().section, false); }
}
