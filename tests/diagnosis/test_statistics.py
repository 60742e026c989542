"""Captures with statistics only: what they show is told as a fact, and nobody is blamed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from align import wording
from align.records import Origin, Severity, Verdict
from align.reports.text import diff_text
from tests.builders import Array, diff_files
from tests.numpy_run import make


def _negated(array: Array) -> Array:
    return -array


def _shifted(array: Array) -> Array:
    return np.roll(array, 1, axis=-2)


@pytest.mark.parametrize(
    ("point", "fault"),
    [
        ("forward blocks.0.norm1", _negated),
        ("forward blocks.0.norm1", _shifted),
        ("between blocks.1.attn", _shifted),
        ("backward blocks.1.attn.k", _negated),
        ("backward loss", lambda array: array * 1.5),
        ("loss", lambda array: array * 1.5),
        ("update", lambda array: array * 1.5),
    ],
)
def test_nothing_is_said_with_certainty(tmp_path: Path, point: str, fault: object) -> None:
    reference = make(tmp_path / "a.h5", steps=1, detail="stats")
    result = diff_files(reference, make(tmp_path / "b.h5", steps=1, detail="stats", faults={(0, point): fault}))
    first = result.first_divergence
    assert first is not None
    assert first.origin is Origin.UNKNOWN
    finding = result.findings[0]
    assert (finding.severity, finding.where.name) == (Severity.ERROR, first.name)
    assert "Its inputs agree" not in result.summary
    assert result.summary == (
        f"Step 0, {first.phase}: {first.name} {first.slot} is the first tensor whose statistics differ: relative L2 at "
        f"least {wording.relative(first.relative_l2)}. Statistics do not see signs or order, so the difference may "
        "have "
        "entered earlier: no module is blamed."
    )
    assert finding.advice == (
        "Capture both runs with `align capture --detail sketch` (the default) and compare again: sketches see signs "
        "and "
        "order, and tell where a difference enters."
    )


def test_an_agreement_of_statistics_says_how_far_it_goes(tmp_path: Path) -> None:
    reference = make(tmp_path / "a.h5", detail="stats")
    result = diff_files(reference, make(tmp_path / "b.h5", pieces=4))
    judged = result.findings[-1].evidence["judged"]
    assert result.verdict is Verdict.ALIGNED
    assert result.resolution.smallest_visible_effect is None
    assert result.summary == (
        f"Aligned as far as statistics can show: the sizes of {judged} tensors over steps 0-1 agree within the floor; "
        "signs and order were not compared."
    )
    assert (
        "note: Only statistics were captured: what changes signs or order, or leaves norm and mean alike,\n"
        "would not have been seen.\n"
    ) in diff_text(result)
