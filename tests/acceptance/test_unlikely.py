"""Odd pairs: one file twice, copies, NaN in the reference, single losses far apart, two quantities, foreign repeats."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from align.acceptance_records import Acceptance, Outcome
from align.cli import main
from align.curve_records import Quantity
from align.errors import ComparisonError
from tests.acceptance.runs import judge, of, pair, perturbed, run, write_csv


def test_one_file_twice_is_told() -> None:
    reference = replace(run(pair()[0]), sha256="ab")
    assert judge(reference, reference).deviations == (
        "Both files are the same, byte by byte: a run was compared with itself.",
    )


def test_a_copied_log_is_told() -> None:
    losses = pair()[0]
    (said,) = judge(losses, losses.copy()).deviations
    assert said == (
        "The losses of both logs are equal in every digit at all 1,000 steps, as those of two devices hardly ever "
        "are: is one log a copy of the other?"
    )


def test_nan_of_the_reference_is_told() -> None:
    ours, theirs = pair()
    ours[[7, 900]], theirs[900] = np.nan, np.nan
    result = judge(ours, theirs)
    assert result.verdict is Acceptance.PASS
    (said,) = result.deviations
    assert said == (
        "The reference's loss is NaN or Inf at 2 steps, first at step 7, and the candidate's too at 1 of them: no "
        "loss was compared there."
    )


def test_single_losses_that_windows_hide_are_told() -> None:
    ours, theirs = pair(3000)
    theirs[[900, 1500]] = 0.0
    result = judge(ours, theirs)
    assert result.verdict is Acceptance.PASS
    assert len(result.deviations) == 1
    assert result.deviations[0].startswith("Single losses are far apart at 2 steps, most at step ")
    assert result.deviations[0].endswith(" in the reference and 0.0000 in the candidate.")


@pytest.mark.parametrize("swapped", [False, True])
def test_a_perplexity_is_not_held_against_a_loss(*, swapped: bool) -> None:
    ours, theirs = pair()
    high, low = run(np.exp(ours), "gpu.csv"), run(theirs, "npu.csv")
    with pytest.raises(ComparisonError) as found:
        judge(*((low, high) if swapped else (high, low)))
    assert str(found.value) == (
        "Cannot compare 'gpu.csv' and 'npu.csv': 'loss' of the first is a perplexity, and 'loss' of the second is its "
        "logarithm. Choose the same quantity of both with --column loss=NAME."
    )


def test_another_training_is_no_repeat() -> None:
    ours, theirs = pair()
    foreign = run(pair(seed=9)[0], "other.csv")
    result = judge(ours, theirs * 1.03, floors=[foreign])
    assert result.verdict is Acceptance.FAIL
    assert (
        "other.csv differs from the reference by more than rounding from the first steps on, and does not go together "
        "with it: it was trained from other weights or on other batches, is no repeat and was left out."
    ) in result.notes
    assert of(result, "mean-error").limit == of(judge(ours, theirs), "mean-error").limit
    assert judge(ours, theirs, floors=[perturbed(ours, 0.001, 1)]).notes == ()


def test_no_finite_loss_is_not_too_few_steps() -> None:
    result = judge([np.nan] * 100, [np.nan] * 100)
    assert result.verdict is Acceptance.UNKNOWN
    assert result.summary == (
        "Cannot tell: 9 required criteria could not be measured. At no common step are both losses finite: 50 such "
        "steps are needed. See what is not finite with `align inspect`."
    )
    assert "1 common step is too few to tell: 50 are needed." in judge([2.0], [2.0]).summary


def test_a_loss_that_is_0_throughout() -> None:
    result = judge(np.zeros(1000), np.linspace(3.0, 1.0, 1000))
    assert result.notes == (
        "The reference's loss begins at 0: differences are relative to 0.0500 where the loss is smaller.",
    )


def test_losses_near_0_do_not_hide_that_the_others_go_together() -> None:
    ours = np.array([1e-6, 0.0] * 500)
    assert of(judge(ours, ours), "data-order").measured == pytest.approx(1.0)


def test_digits_too_few_for_the_first_loss() -> None:
    ours, theirs = (np.round(np.linspace(4.0, 1.0, 1000) * size, 1) for size in (1.0, 1.001))
    found = of(judge(ours, theirs), "first-loss")
    assert str(found.outcome) == "not measured"
    assert found.sentence == (
        "Step 0: the loss is 4.0000 in the reference and 4.0000 in the candidate, 0.0 % apart. The files print no "
        "more digits than that, of which the last is 2.50 % of the loss."
    )
    assert found.advice == "Print more digits of the loss in both runs."


def test_what_reading_tells_names_the_file() -> None:
    ours, theirs = (run(each, path) for each, path in zip(pair(), ("gpu.csv", "npu.csv"), strict=True))
    result = judge(replace(ours, notes=("It was cut.",)), replace(theirs, notes=("It was cut.",)))
    assert result.notes == ("gpu.csv: It was cut.", "npu.csv: It was cut.")
    assert Quantity.LOSS in result.reference.columns


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--json", "npu.csv"], "Cannot write --json to 'npu.csv': that file is read. Name another file."),
        (["--html", "./gpu.csv"], "Cannot write --html to './gpu.csv': that file is read. Name another file."),
        (
            ["--floor", "repeat.csv", "--markdown", "repeat.csv"],
            "Cannot write --markdown to 'repeat.csv': that file is read. Name another file.",
        ),
        (
            ["--json", "out", "--html", "out"],
            "Cannot write --json and --html to one file, 'out'. Name a file for each.",
        ),
    ],
    ids=["candidate", "reference", "repeat", "one for two"],
)
def test_no_report_replaces_what_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], arguments: list[str],
    sentence: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    ours, theirs = pair(200)
    files = [write_csv(Path(name), {"loss": each}) for name, each in (("gpu.csv", ours), ("npu.csv", theirs))]
    files.append(write_csv(Path("repeat.csv"), {"loss": ours * 1.0001}))
    before = [file.read_bytes() for file in files]
    with pytest.raises(SystemExit) as ended:
        main(["accept", "gpu.csv", "npu.csv", *arguments])
    assert ended.value.code == 2
    assert capfd.readouterr().err == f"align: {sentence}\n"
    assert [file.read_bytes() for file in files] == before
    assert not Path("out").exists()


def test_what_nan_has_left_tells_nothing_of_the_end() -> None:
    ours, theirs = pair()
    theirs[500:] = np.nan

    result = judge(ours, theirs)

    assert result.verdict is Acceptance.FAIL
    assert result.summary.startswith("Missed: 1 of ")
    sentence = (
        "500 of 1,000 steps of the candidate have no finite loss, the first of them step 500: what remains tells "
        "nothing."
    )
    hollow = {each.code for each in result.criteria if each.sentence == sentence}
    assert {"divergence", "worst-window", "bias", "mean-error", "spikes"} <= hollow
    assert {each.outcome for each in result.criteria if each.code in hollow} == {Outcome.NOT_MEASURED}


def test_remarks_are_named_beside_a_pass() -> None:
    losses = pair()[0]
    result = judge(losses, losses.copy())
    assert result.verdict is Acceptance.PASS
    assert result.summary.endswith(" Read the 1 remark below before you sign.")
