"""AL310 and AL205: what must be equal and is not."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from align.records import Severity, Verdict
from tests.builders import Array, diff_files
from tests.numpy_run import Fault, make
from tests.said import told


def test_weights_that_no_other_rule_tells_of_are_counted_and_related(tmp_path: Path) -> None:
    changes: dict[str, Fault] = {"head.weight": lambda weight: weight * 0.0}
    result = diff_files(make(tmp_path / "a.h5", steps=1), make(tmp_path / "b.h5", steps=1, initial=changes))
    assert [finding.label for finding in result.findings] == ["initial-weights-differ"]
    assert (result.findings[0].severity, result.summary) == (
        Severity.ERROR,
        "The initial weights differ in 1 of 34 tensors: all zeros in the candidate. No module was judged.",
    )
    assert result.first_divergence is not None
    assert result.first_divergence.step == -1


def test_weights_equal_but_for_rounding_are_a_note(tmp_path: Path) -> None:
    changes = {"head.weight": lambda weight: weight * (1 + 2.0**-23)}
    result = diff_files(make(tmp_path / "a.h5", steps=1), make(tmp_path / "b.h5", steps=1, initial=changes))
    assert result.verdict is Verdict.ALIGNED
    finding = result.findings[0]
    assert (finding.label, finding.severity) == ("initial-weights-differ", Severity.NOTE)
    assert finding.summary.startswith(
        "1 of 34 initial tensors is equal but for rounding; the largest difference is 1.2e-7 in head.weight."
    )


def test_another_batch_is_named_with_its_step(tmp_path: Path) -> None:
    result = diff_files(make(tmp_path / "a.h5"), make(tmp_path / "b.h5", data_seed=7))
    assert [finding.label for finding in result.findings] == ["data-differs"]
    assert result.summary == "The batches of step 0 differ (tokens); the model was not judged."


def test_a_batch_that_differs_after_the_runs_parted_is_a_warning(tmp_path: Path) -> None:
    def second_batch_differs(path: Path) -> Path:
        seen: list[int] = []

        def batch(tokens: Array) -> Array:
            seen.append(1)
            return tokens if len(seen) == 1 else (tokens + 1) % 50

        return make(path, batch=batch, faults={(0, "forward head"): lambda a: a * 1.5})

    result = diff_files(make(tmp_path / "a.h5"), second_batch_differs(tmp_path / "b.h5"))
    assert told(result) == [
        ("origin-module", Severity.ERROR),
        ("data-differs", Severity.WARNING),
    ]


def test_other_targets_clear_the_model(tmp_path: Path) -> None:
    candidate = make(tmp_path / "b.h5", steps=1, targets=lambda target: np.roll(target, -1, axis=1))
    result = diff_files(make(tmp_path / "a.h5", steps=1), candidate)
    assert [finding.label for finding in result.findings] == ["labels-differ"]
    assert result.summary == (
        "Step 0, loss: the logits agree, the targets handed to the loss differ. No module is to blame."
    )
