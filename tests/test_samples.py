"""What the samples of two runs are to each other, and whether labels moved, from hashes alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from align.labels_moved import LabelShift, label_shift
from align.samples import SampleKind, SampleRelation, relate_samples

REFERENCE = [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]]
NOTHING = SampleRelation(SampleKind.OTHER, 12)


@pytest.mark.parametrize(
    ("candidate", "expected"),
    [
        (REFERENCE, replace(NOTHING, kind=SampleKind.SAME, common=12, whole=True)),
        (
            [[2, 1, 3, 4], [5, 6, 7, 8], [9, 10, 12, 11]],
            replace(NOTHING, kind=SampleKind.ORDER_IN_BATCH, common=12, moved=4, whole=True),
        ),
        (
            [[5, 6, 7, 8], [9, 10, 11, 12], [13, 14, 15, 16]],
            replace(NOTHING, kind=SampleKind.SHIFTED, common=8, shift=4, overlap=8),
        ),
        (
            [[20, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]],
            replace(NOTHING, kind=SampleKind.SHIFTED, common=11, shift=-1, overlap=11),
        ),
        (
            [[1, 2, 3, 4], [6, 7, 8, 9], [10, 11, 12, 13]],
            replace(NOTHING, kind=SampleKind.GAPS, common=11, overlap=11, missing=1),
        ),
        (
            [[1, 2, 3, 4], [1, 2, 3, 4], [5, 6, 7, 8]],
            replace(NOTHING, kind=SampleKind.GAPS, common=8, overlap=8, repeated=4),
        ),
        (
            [[1, 2, 3, 4], [25, 6, 7, 8], [9, 10, 11, 12]],
            replace(NOTHING, kind=SampleKind.GAPS, common=11, overlap=11, missing=1, extra=1),
        ),
        ([[9, 2, 5, 1], [4, 6, 17, 8], [3, 10, 11, 12]], replace(NOTHING, kind=SampleKind.ORDER, common=5)),
        ([[9, 2, 5, 1], [4, 6, 7, 8], [3, 10, 11, 12]], replace(NOTHING, kind=SampleKind.ORDER, common=12, whole=True)),
        # Samples at their own places say nothing of an order, and one at another place may be a blank one.
        ([[1, 2, 3, 4], [21, 22, 23, 24], [25, 26, 27, 28]], NOTHING),
        ([[21, 22, 23, 24], [25, 26, 27, 28], [29, 30, 31, 1]], replace(NOTHING, common=1)),
        # Rows that are mostly one and the same name no samples.
        ([[7, 7, 7, 7], [7, 7, 7, 1], [2, 7, 7, 7]], replace(NOTHING, kind=SampleKind.UNKNOWN)),
    ],
    ids=["same", "in the batch", "ahead", "behind", "missing", "repeated", "changed", "some", "shuffled", "other",
         "one", "alike"],
)  # fmt: skip
def test_samples_are_related(candidate: list[list[int]], expected: SampleRelation) -> None:
    assert relate_samples(REFERENCE, candidate) == expected


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 5), st.integers(2, 6), st.integers(1, 4), st.randoms(use_true_random=False))
def test_a_shift_is_found_in_both_directions(steps: int, size: int, shift: int, random: object) -> None:
    steps += 1 + shift
    stream = list(range(100, 100 + (steps + shift) * size))
    random.shuffle(stream)  # type: ignore[attr-defined]
    batches = [stream[start : start + size] for start in range(0, len(stream), size)]
    ahead, behind = relate_samples(batches[:steps], batches[shift:]), relate_samples(batches[shift:], batches[:steps])
    assert (ahead.kind, ahead.shift) == (SampleKind.SHIFTED, shift * size)
    assert (behind.kind, behind.shift) == (SampleKind.SHIFTED, -shift * size)


@settings(max_examples=100, deadline=None)
@given(st.permutations(list(range(24))))
def test_a_shuffled_epoch_is_an_order_and_nothing_is_missing(stream: list[int]) -> None:
    reference = [list(range(start, start + 6)) for start in range(0, 24, 6)]
    found = relate_samples(reference, [stream[start : start + 6] for start in range(0, 24, 6)])
    assert found.kind in {SampleKind.ORDER, SampleKind.ORDER_IN_BATCH, SampleKind.SAME}
    assert (found.missing, found.repeated) == (0, 0)


WORDS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3]


def test_labels_that_moved_are_told_with_how_many_agree() -> None:
    assert label_shift(WORDS, [*WORDS[1:], 0], frozenset({0})) == LabelShift(1, 15, 15)
    assert label_shift(WORDS, [0, 0, *WORDS[:-2]], frozenset({0})) == LabelShift(-2, 14, 14)


@pytest.mark.parametrize(
    ("reference", "candidate"),
    [
        (WORDS, WORDS),
        (WORDS, WORDS[::-1]),
        (WORDS[:7], [*WORDS[1:7], 0]),
        ([0, 1] * 8, [1, 0] * 8),
        ([1] * 15 + [2], [1] * 16),
        (WORDS, [*WORDS[1:]]),
    ],
    ids=["equal", "turned", "too few", "two classes by turns", "mostly one class", "another length"],
)
def test_labels_that_did_not_move_are_not_called_so(reference: list[int], candidate: list[int]) -> None:
    assert label_shift(reference, candidate) is None
