(function () {
  // Before anything is drawn: the theme that the address or an earlier page asks for.
  var root = document.documentElement, theme = (/[?&]theme=(dark|light)/.exec(location.hash) || [])[1];
  try { theme = theme || localStorage.getItem("align.theme"); } catch (error) { theme = theme || null; }
  root.dataset.theme = theme === "dark" || theme === "light" ? theme
    : matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  root.classList.add("scripted");
  // Where the other script cannot start, as in a very old browser, the page is read as without script.
  addEventListener("error", function () { if (!root.dataset.ready) { root.classList.remove("scripted"); } });
}());
