"""The pages on an inspection say what the program says: the outputs in them are real, the keys are all there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from align.commands import inspect_files
from align.reports.inspect_json import inspect_document
from align.reports.inspect_text import inspect_text
from align.reports.json_report import document
from tests import inspect_samples, report_samples
from tests.running import CASES, ROOT, capture_all

PAGE = ROOT / "docs" / "inspecting.md"
KEYS = ROOT / "docs" / "json.md"
SHOWN = ("where_sqrt", "overflow_collapse")


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("shown")
    paths = {name: folder / f"{name}.h5" for name in SHOWN}
    capture_all("cpu", [(path, [CASES / f"{name}.py", "--variant", "bad"]) for name, path in paths.items()])
    return paths


def without_device(text: str) -> str:
    """The text without its first lines, which name the device and the versions of this machine."""
    return text.partition("captured\n")[2]


@pytest.mark.parametrize("name", SHOWN)
def test_the_output_shown_is_that_of_the_program(
    name: str, captures: dict[str, Path], request: pytest.FixtureRequest
) -> None:
    head = f"$ align inspect {name}.h5\n"
    page = PAGE.read_text(encoding="utf-8")
    said = inspect_text(inspect_files(str(captures[name])))
    block = re.compile(rf"^```\n{re.escape(head)}(.*?)^```$", re.DOTALL | re.MULTILINE)
    if request.config.getoption("--update-golden"):
        page = block.sub(lambda _: f"```\n{head}{said}```", page)
        PAGE.write_text(page, encoding="utf-8")

    (shown,) = block.findall(page)

    assert without_device(shown) == without_device(said)


def test_every_key_of_the_json_is_listed() -> None:
    diff, rest = KEYS.read_text(encoding="utf-8").split("## Of `align inspect`")
    inspection = rest.partition("\n## ")[0]

    for part, keys in (
        (diff, document(report_samples.diverged())),
        (inspection, inspect_document(inspect_samples.nan())),
    ):
        listed = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", part, re.MULTILINE)
        assert re.findall(r"`(\w+)`", " ".join(listed)) == list(keys)


def test_every_key_of_what_the_json_lists_is_named() -> None:
    text = KEYS.read_text(encoding="utf-8")

    for made in (document(report_samples.diverged()), inspect_document(inspect_samples.nan())):
        for name in ("first_divergence", "findings", "replies", "tables", "resolution"):
            entry = made.get(name)
            keys = entry[0] if isinstance(entry, list) else entry
            for key in json.loads(json.dumps(keys)) or ():
                assert f"`{key}`" in text, f"{name}: {key}"
