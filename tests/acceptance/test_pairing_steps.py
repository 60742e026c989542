"""Which steps of two runs are compared: other numberings, other lengths, other intervals."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from align.acceptance.pairing import numbering_shift, pair_curves
from align.curve_records import CurveKind, Quantity
from align.errors import ComparisonError
from tests.acceptance.runs import run

FROM_ZERO = (
    "{} counts its steps from 0 and {} from 1: steps that are the same update were compared, and are named by the "
    "reference's numbers."
)


def steps(first: int, last: int, every: int = 1) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.arange(first, last + 1, every, dtype=np.int64)


@pytest.mark.parametrize(
    ("reference", "candidate", "shift"),
    [
        ((0, 999), (1, 1000), -1),
        ((1, 1000), (0, 999), 1),
        ((0, 999), (1, 500), -1),
        ((0, 999), (0, 999), 0),
        ((0, 999), (1, 999), 0),
        ((1, 1000), (1, 1000), 0),
        ((0, 999), (500, 1499), 0),
        ((0, 999), (10, 1000, 10), -1),
        ((10, 1000, 10), (0, 999), 1),
        ((0, 999), (10, 990, 10), 0),
        ((0, 990, 10), (10, 1000, 10), 0),
        ((0, 990, 10), (1, 991, 10), -1),
        ((0, 990, 10), (1, 1000), 0),
    ],
    ids=str,
)
def test_the_ranges_say_who_counts_from_one(reference: tuple[int, ...], candidate: tuple[int, ...], shift: int) -> None:
    assert numbering_shift(steps(*reference), steps(*candidate)) == shift


def test_the_same_updates_are_compared_where_one_run_counts_from_one() -> None:
    loss = np.linspace(3.0, 1.0, 100)
    pair = pair_curves(run(loss, "gpu.csv"), run(loss, "npu.csv", first=1))
    assert pair.steps.tolist() == list(range(100))
    assert pair.candidate.steps.tolist() == list(range(100))
    assert np.array_equal(pair.candidate.columns[Quantity.LOSS], loss)
    assert pair.notes == (FROM_ZERO.format("gpu.csv", "npu.csv"),)
    pair = pair_curves(run(loss, "gpu.csv", first=1), run(loss, "npu.csv"))
    assert pair.steps.tolist() == list(range(1, 101))
    assert pair.notes == (FROM_ZERO.format("npu.csv", "gpu.csv"),)


def test_captures_always_count_alike() -> None:
    first, second = (
        replace(run([3.0, 2.0, 1.0], path, first=begin), kind=CurveKind.CAPTURE)
        for path, begin in (("gpu.h5", 0), ("npu.h5", 1))
    )
    assert pair_curves(first, second).steps.tolist() == [1, 2]


def test_other_lengths_and_intervals_are_told() -> None:
    pair = pair_curves(run(range(1000), "gpu.csv"), run(range(60), "npu.csv", every=10))
    assert pair.steps.tolist() == list(range(0, 600, 10))
    assert pair.recorded == (1000, 60)
    assert pair.notes == ("Of 1,000 steps in the log of the reference, 60 were compared: steps 0-590 (60 of them).",)


def test_only_steps_with_a_loss_count_and_nan_is_one() -> None:
    reference = run([3.0, np.nan, 2.0, 1.0])
    reference = replace(reference, nonfinite=np.array([False, False, False, False]))
    candidate = run([3.0, 2.5, np.nan, 1.0])
    pair = pair_curves(reference, candidate)
    assert pair.steps.tolist() == [0, 2, 3]
    assert pair.candidate.nonfinite.tolist() == [False, True, False]


def test_wanted_steps() -> None:
    pair = pair_curves(run(range(10)), run(range(10)), (2, 5))
    assert pair.steps.tolist() == [2, 3, 4]
    assert pair.notes == (
        "Of 10 steps in the log of the reference, 3 were compared: steps 2-4.",
        "Of 10 steps in the log of the candidate, 3 were compared: steps 2-4.",
    )


@pytest.mark.parametrize(
    ("candidate", "wanted", "sentence"),
    [
        (
            run([1.0, 2.0], "npu.csv", first=5),
            (None, None),
            (
                "Cannot compare 'gpu.csv' and 'npu.csv': no step is in both; the first records steps 0-1, the second "
                "steps 5-6. Name logs of the same steps."
            ),
        ),
        (
            run([1.0, 2.0], "npu.csv"),
            (7, None),
            (
                "Cannot compare 'gpu.csv' and 'npu.csv' at --steps 7:: they have steps 0-1 in common. "
                "Ask for steps within."
            ),
        ),
        (
            replace(run([1.0], "npu.csv"), columns={}),
            (None, None),
            (
                "Cannot judge 'npu.csv': it records no loss. Name the column that is the loss by `--column loss=NAME`, "
                "or another file of this run."
            ),
        ),
    ],
    ids=["no common step", "none wanted", "no loss"],
)
def test_what_cannot_be_compared_is_said(candidate: object, wanted: object, sentence: str) -> None:
    with pytest.raises(ComparisonError, match=f"^{re.escape(sentence)}$"):
        pair_curves(run([1.0, 2.0], "gpu.csv"), candidate, wanted)  # type: ignore[arg-type]


@given(
    st.lists(st.integers(0, 60), min_size=1, max_size=40, unique=True),
    st.lists(st.integers(0, 60), min_size=1, max_size=40, unique=True),
)
def test_common_steps_are_those_of_both(ours: list[int], theirs: list[int]) -> None:
    sides = [
        replace(run([float(step) for step in sorted(each)]), steps=np.array(sorted(each), dtype=np.int64))
        for each in (ours, theirs)
    ]
    shift = numbering_shift(sides[0].steps, sides[1].steps)
    common = sorted(set(ours) & {step + shift for step in theirs})
    if not common:
        with pytest.raises(ComparisonError, match="no step is in both"):
            pair_curves(sides[0], sides[1])
        return
    pair = pair_curves(sides[0], sides[1])
    assert pair.steps.tolist() == common
    assert pair.reference.columns[Quantity.LOSS].tolist() == common
    assert pair.candidate.columns[Quantity.LOSS].tolist() == [step - shift for step in common]
