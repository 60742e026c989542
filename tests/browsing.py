"""Pages opened in a real Chromium that has no network, as a reader opens a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Error, Page, Request

RULES = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}}
CONTRAST = {"runOnly": {"type": "rule", "values": ["color-contrast"]}}
"""What is asked of axe-core: all of WCAG 2.1 AA, or what another theme can change."""


@dataclass(frozen=True)
class Opened:
    """A page that is open. `said` is what it wrote to the console, what failed in it and what it asked the network."""

    page: Page
    said: list[str]

    def text(self, selector: str) -> str:
        """The text that is seen of an element."""
        return self.page.locator(selector).first.inner_text()

    def cells(self, selector: str = "#table tbody tr") -> list[list[str]]:
        """The text of the cells of rows."""
        script = "rows => rows.map(row => Array.from(row.cells, cell => cell.innerText.trim()))"
        found: list[list[str]] = self.page.locator(selector).evaluate_all(script)
        return found

    def violations(self, rules: dict[str, Any] = RULES, within: str = "body") -> list[str]:
        """What axe-core finds against its rules, in the whole page or a part: the rule and the first element."""
        from axe_playwright_python.sync_playwright import Axe

        found = Axe().run(self.page, within, {**rules, "resultTypes": ["violations"]}).response["violations"]
        return [f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in found]

    def too_wide(self) -> list[str]:
        """The elements that stand out of the window, those in a frame that scrolls apart."""
        script = """() => Array.from(document.querySelectorAll("body *")).filter(node =>
            !node.closest(".scroll, .tree, .detail, .skip, .unseen, template") && node.getBoundingClientRect().width > 0
            && node.getBoundingClientRect().right > document.documentElement.clientWidth + 1
        ).map(node => node.tagName + " " + node.className)"""
        found: list[str] = self.page.evaluate(script)
        return found


@dataclass(frozen=True)
class Pages:
    """A headless Chromium; each window has a profile of its own, and is used again once nothing is left in it."""

    browser: Browser
    idle: dict[bool, list[Page]] = field(default_factory=lambda: {True: [], False: []})
    """The windows that show nothing, by whether they run scripts."""

    @contextmanager
    def open(
        self,
        path: Path,
        *,
        address: str = "",
        scheme: Literal["light", "dark"] = "light",
        width: int = 1280,
        scripts: bool = True,
    ) -> Iterator[Opened]:
        """Open a file; `address` is what stands behind its name, from `#` on."""
        page = self.idle[scripts].pop() if self.idle[scripts] else self._window(scripts=scripts)
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(media="null", color_scheme=scheme)
        said: list[str] = []
        with _listened(page, said):
            page.goto(path.as_uri() + address)
            yield Opened(page, said)
        _cleared(page)
        self.idle[scripts].append(page)

    def _window(self, *, scripts: bool) -> Page:
        context = self.browser.new_context(offline=True, java_script_enabled=scripts, accept_downloads=True)
        context.set_default_timeout(20_000)
        return context.new_page()


@contextmanager
def _listened(page: Page, said: list[str]) -> Iterator[None]:
    """Write down what the page says, what fails in it and what it asks the network."""

    def asked(request: Request) -> None:
        if not request.url.startswith(("file:", "data:", "blob:")):
            said.append(request.url)

    def told(message: ConsoleMessage) -> None:
        said.append(message.text)

    def failed(error: Error) -> None:
        said.append(str(error))

    page.on("console", told)
    page.on("pageerror", failed)
    page.on("request", asked)
    try:
        yield
    finally:
        page.remove_listener("console", told)
        page.remove_listener("pageerror", failed)
        page.remove_listener("request", asked)


def _cleared(page: Page) -> None:
    """Leave nothing of what the page kept and what it was allowed."""
    page.evaluate("() => localStorage.clear()")
    page.context.clear_permissions()
    page.goto("about:blank")
