"""Pages opened in a real Chromium that has no network, as a reader opens a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

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

    def violations(self, rules: dict[str, Any] = RULES) -> list[str]:
        """What axe-core finds against its rules: the rule and the first element."""
        found = Axe().run(self.page, options=rules).response["violations"]
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
    """A headless Chromium; each page has a profile of its own."""

    browser: Browser

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
        context = self.browser.new_context(
            offline=True,
            color_scheme=scheme,
            viewport={"width": width, "height": 900},
            java_script_enabled=scripts,
            accept_downloads=True,
        )
        context.set_default_timeout(20_000)
        page = context.new_page()
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on(
            "request",
            lambda request: (
                said.append(request.url) if not request.url.startswith(("file:", "data:", "blob:")) else None
            ),
        )
        page.goto(path.as_uri() + address)
        try:
            yield Opened(page, said)
        finally:
            context.close()
