"""What tests share: texts to compare with, and a browser to open pages in."""

from __future__ import annotations

import gc
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from tests.browsing import Pages

os.environ["ALIGN_LANG"] = "en"  # tests read English, wherever they run

# The same examples each time, on machines of any speed; `--hypothesis-profile default` looks for others.
settings.register_profile("fixed", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("fixed")

GOLDEN = Path(__file__).parent / "golden"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the texts of tests/golden anew")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compares a text with the one kept under tests/golden, or keeps it with --update-golden."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"tests/golden/{name} is missing: run pytest --update-golden and read what it wrote"
        assert text == path.read_text(encoding="utf-8")

    return compare


@pytest.fixture(scope="module", autouse=True)
def _imported() -> None:
    """Take what is imported by now out of what is collected: a recorder looks through all objects that live."""
    gc.collect()
    gc.freeze()


def chromium() -> str:
    """The path of a Chromium; without one the tests that need it are skipped."""
    program = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if program is None:
        sentence = "No Chromium is installed, so pages cannot be opened; install the package chromium"
        if os.environ.get("CI") == "true":
            pytest.fail(sentence)
        pytest.skip(sentence)
    return program


@pytest.fixture(scope="session")
def pages() -> Iterator[Pages]:
    """Pages in a Chromium that can be pressed, typed into and measured; started once."""
    program = chromium()
    from playwright.sync_api import sync_playwright

    from tests.browsing import Pages

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        yield Pages(started)
        started.close()


LONG = (
    "test_benign_pairs.py",
    "test_ways_of_training.py",
    "test_bit_identity.py",
    "test_npu_capture.py",
    "test_capture_command.py",
    "test_workloads.py",
    "test_npu_sim.py",
    "test_cases_forward.py",
    "test_localization.py",
    "test_page.py",
    "test_capture_overhead.py",
    "test_page_inspect.py",
    "test_figures.py",
    "test_progress_line.py",
)
"""Files of a minute and more: they start first, so that no process is left alone with one at the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: LONG.index(item.path.name) if item.path.name in LONG else len(LONG))
