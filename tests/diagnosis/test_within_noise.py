"""AL406: what an aligned pair can and cannot show."""

from __future__ import annotations

from pathlib import Path

from align.records import Severity, Verdict
from tests.builders import diff_files
from tests.numpy_run import make


def test_equal_runs_are_said_to_be_equal(tmp_path: Path) -> None:
    path = make(tmp_path / "a.h5")
    result = diff_files(path, path)
    assert (result.verdict, result.summary) == (
        Verdict.ALIGNED,
        "Aligned: 444 tensors over steps 0-1 are equal.",
    )
    assert [(finding.label, finding.severity) for finding in result.findings] == [("within-noise", Severity.NOTE)]


def test_the_largest_difference_is_named(tmp_path: Path) -> None:
    result = diff_files(make(tmp_path / "a.h5", steps=1), make(tmp_path / "b.h5", steps=1, pieces=4))
    finding = result.findings[0]
    assert result.summary.startswith(
        f"Aligned: {finding.evidence['judged']} tensors over step 0 stay below the limit of 7x the floor; the largest "
        "is "
    )
    assert f" at {finding.where.name} {finding.where.slot}." in result.summary
    assert 0 < finding.evidence["largest_times_floor"] < 7
    assert result.resolution.precision == "fp32"


def test_a_coarse_precision_says_what_it_cannot_show(tmp_path: Path) -> None:
    reference = make(tmp_path / "a.h5", steps=1, bfloat16=True)
    result = diff_files(reference, make(tmp_path / "b.h5", steps=1, pieces=4, bfloat16=True))
    effect, factor = result.resolution.smallest_visible_effect, result.resolution.smallest_visible_factor
    assert effect is not None
    assert factor is not None
    assert result.summary == (
        f"Aligned as far as bf16 can show: an effect below {effect * 100:.1f} % of a module's output would not have "
        f"been seen; a common factor that is {factor * 100:.1f} % off would have been."
    )
    assert result.findings[0].advice == (
        "Repeat both runs in fp32 to see smaller effects; of a parameter's gradient, one below 75.5 % would not have "
        "been seen."
    )
