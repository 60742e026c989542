"""The registry of rules, its order, and the page that describes the codes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from align.comparison import Walk
from align.diagnosis import rule
from align.diagnosis.labels import LABELS
from align.diagnosis.registry import JOB_RULES, PAIR_RULES, RUN_RULES
from align.errors import UsageError
from align.records import Finding
from tests.builders import walk_files
from tests.numpy_run import make

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "findings.md"


def known_labels() -> set[tuple[str, str]]:
    return {(known.code, known.label) for book in (PAIR_RULES, RUN_RULES, JOB_RULES) for known in book.all()}


def test_codes_and_labels_are_those_of_the_table() -> None:
    assert known_labels() <= set(LABELS.items())
    assert len(set(LABELS.values())) == len(LABELS)
    assert all(re.fullmatch(r"AL[1-8]\d\d", code) for code in LABELS)


def test_a_code_is_given_once() -> None:
    def find(_: Walk) -> Iterator[Finding]:
        return iter(())

    message = (
        "Cannot register rule AL401 of tests.diagnosis.test_registry.test_a_code_is_given_once.<locals>.find: "
        "align.diagnosis.pair.forward.origin_module.find has that code. Give one of them another."
    )
    PAIR_RULES.all()
    with pytest.raises(UsageError, match=f"^{re.escape(message)}$"):
        rule("AL401", "another-origin")(find)


def test_an_installed_package_adds_its_rules_through_the_same_door(tmp_path: Path) -> None:
    package = tmp_path / "their_rules-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: their-rules\nVersion: 1.0\n", encoding="utf-8")
    (package / "entry_points.txt").write_text("[align.rules]\nlayers = their_rules\n", encoding="utf-8")
    source = """
        from align.diagnosis import rule
        from align.records import Finding, Severity

        @rule("XX001", "always-there")
        def find(walk):
            yield Finding("XX001", "always-there", Severity.NOTE, f"Steps {walk.steps}.", "Nothing.")
        """
    (tmp_path / "their_rules.py").write_text(textwrap.dedent(source), encoding="utf-8")
    path = make(tmp_path / "run.h5", steps=1)
    script = f"""
        from align.capture_file import open_capture
        from align.comparison import compare
        from align.diagnosis import diagnose
        with open_capture({str(path)!r}) as run:
            print(*((finding.code, finding.summary) for finding in diagnose(compare(run, run)).findings))
        """
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], env=environment, capture_output=True, text=True, check=True
    )
    number = len(walk_files(path, path).comparisons)
    expected = f"('AL406', 'Aligned: {number} tensors over step 0 are equal.') ('XX001', 'Steps (0,).')"
    assert done.stdout.strip() == expected


def test_every_code_has_its_paragraph() -> None:
    headings = re.findall(r"^## (AL\d+) `([a-z-]+)`$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert sorted(headings) == sorted(known_labels())
