"""Which calls and micro-steps answer each other where the runs have other numbers of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from align.matching.alignment import align_sequences
from align.pairing import PairedStep, pair_names, pair_records
from align.records import Phase, TensorKey, TensorRecord
from tests.builders import Array, record_of

RANDOM = np.random.default_rng(0)
TENSORS = [RANDOM.normal(size=(8, 40)).astype(np.float32) for _ in range(12)]
"""Each another one: the sketches of two of them are as far from each other as from zero."""


def _call(
    name: str, number: int, tensor: Array, *, micro: int = 0, within: str = "", within_call: int = 0
) -> list[TensorRecord]:
    return [
        record_of(
            TensorKey(0, Phase.FORWARD, name, slot, micro, number), values, within=within, within_call=within_call
        )
        for slot, values in (("input.0", tensor), ("output.0", 2 * tensor))
    ]


def _calls(name: str, tensors: Sequence[int], *, micro: int = 0) -> list[TensorRecord]:
    return [each for number, place in enumerate(tensors) for each in _call(name, number, TENSORS[place], micro=micro)]


def _paired(ours: Sequence[TensorRecord], theirs: Sequence[TensorRecord]) -> PairedStep:
    def ordered(records: Sequence[TensorRecord]) -> list[TensorRecord]:
        return [replace(record, order=order) for order, record in enumerate(records)]

    names = pair_names((record.key.name for record in ours), (record.key.name for record in theirs))
    return pair_records(0, ordered(ours), ordered(theirs), names)


def _numbers(paired: PairedStep, slot: str = "input.0") -> list[tuple[int, int]]:
    return [
        (pair.reference.key.call, pair.candidate.key.call)
        for pair in paired.pairs
        if pair.key.phase is Phase.FORWARD and pair.key.slot == slot
    ]


@settings(max_examples=60, deadline=None)
@given(kept=st.lists(st.booleans(), min_size=1, max_size=12), faulty=st.integers(0, 11))
def test_calls_that_one_run_does_not_make_shift_no_others(kept: list[bool], *, faulty: int) -> None:
    left = [place for place, keep in enumerate(kept) if keep]
    paired = _paired(_calls("cell", range(len(kept))), _calls("cell", left))
    expected = [(place, number) for number, place in enumerate(left)]
    assert _numbers(paired) == expected
    assert [key.call for key in paired.only_reference] == [
        place for place, keep in enumerate(kept) if not keep for _ in "io"
    ]
    # A call whose input differs is still the call that it is.
    wrong = [_call("cell", number, TENSORS[place] * (3 if place == faulty else 1)) for number, place in enumerate(left)]
    assert _numbers(_paired(_calls("cell", range(len(kept))), [each for call in wrong for each in call])) == expected


@settings(max_examples=60, deadline=None)
@given(gains=st.lists(st.lists(st.floats(-1, 1), min_size=4, max_size=4), min_size=1, max_size=4))
def test_an_alignment_is_the_best_of_all(gains: list[list[float]]) -> None:
    table = np.array(gains)

    def best(row: int, column: int) -> float:
        if row == len(table) or column == table.shape[1]:
            return 0.0
        paired = max(table[row, column], 0.0) + best(row + 1, column + 1)
        return float(max(paired, best(row + 1, column), best(row, column + 1)))

    found = align_sequences(table)
    assert sum(table[match.row, match.column] for match in found) == pytest.approx(best(0, 0))
    assert [match[:2] for match in found] == sorted(match[:2] for match in found)
    for match in found:
        without = table.copy()
        without[match.row, match.column] = -1.0
        others = sum(without[other.row, other.column] for other in align_sequences(without))
        assert match.margin == pytest.approx(best(0, 0) - others)


def test_equally_many_calls_are_pairs_in_order_whatever_they_hold() -> None:
    paired = _paired(_calls("cell", [0, 1, 2]), _calls("cell", [2, 0, 1]))
    assert _numbers(paired) == [(0, 0), (1, 1), (2, 2)]
    assert not paired.shifts


def test_calls_of_equal_content_keep_their_numbers() -> None:
    assert _numbers(_paired(_calls("cell", [0, 0]), _calls("cell", [0, 0, 0]))) == [(0, 0), (1, 1)]


def test_a_call_that_a_backward_came_through_is_no_pass_without_gradient() -> None:
    def trained(number: int) -> list[TensorRecord]:
        gradient = record_of(TensorKey(0, Phase.BACKWARD, "cell", "grad_output.0", 0, number), TENSORS[5])
        return [*_call("cell", number, TENSORS[0]), gradient]

    assert _numbers(_paired(trained(0), [*_call("cell", 0, TENSORS[0]), *trained(1)])) == [(0, 1)]
    assert _numbers(_paired(trained(0), [*trained(0), *_call("cell", 1, TENSORS[0])])) == [(0, 0)]


def test_another_shape_tells_calls_apart() -> None:
    small = _call("cell", 0, TENSORS[1][:, :20])
    paired = _paired(_calls("cell", [0]), [*small, *_call("cell", 1, TENSORS[2])])
    assert _numbers(paired) == [(0, 1)]


def test_calls_inside_a_call_that_has_no_answer_have_none() -> None:
    def block(number: int, tensor: Array) -> list[TensorRecord]:
        # The inner module gives no hint of its own: its inputs are those of the other call.
        inner = [
            _call("block.act", 2 * number + place, TENSORS[9], within="block", within_call=number) for place in (0, 1)
        ]
        return [*_call("block", number, tensor), *(each for call in inner for each in call)]

    ours = block(0, TENSORS[0])
    theirs = [*block(0, TENSORS[5]), *block(1, TENSORS[0])]
    paired = _paired(ours, theirs)
    found = {(pair.key.name, pair.key.call): pair.candidate.key.call for pair in paired.pairs}
    assert found == {("block", 0): 1, ("block.act", 0): 2, ("block.act", 1): 3}
    assert {(match.name, match.totals) for match in paired.shifts.matches} == {("block", (1, 2)), ("block.act", (2, 4))}


def test_gradients_follow_the_calls_that_they_are_of() -> None:
    def back(number: int, place: int) -> TensorRecord:
        key = TensorKey(0, Phase.BACKWARD, "cell", "grad_output.0", 0, number)
        return record_of(key, TENSORS[place])

    ours = [*_calls("cell", [0, 1]), back(1, 7), back(0, 8)]
    theirs = [*_calls("cell", [5, 0, 1]), back(2, 7), back(1, 8)]
    paired = _paired(ours, theirs)
    found = [(pair.key.call, pair.candidate.key.call) for pair in paired.pairs if pair.key.phase is Phase.BACKWARD]
    assert found == [(1, 2), (0, 1)]


def test_a_micro_step_more_shifts_no_others() -> None:
    def micro(number: int, place: int) -> list[TensorRecord]:
        tokens = np.full((2, 3), place)
        batch = record_of(TensorKey(0, Phase.INPUT, "tokens", "value", number), tokens, within="net")
        loss = record_of(TensorKey(0, Phase.LOSS, "loss", "value", number), np.float32(place).reshape(()))
        weight = record_of(TensorKey(0, Phase.GRADIENT, "net", "weight", number), TENSORS[place])
        return [batch, *_call("net", 0, TENSORS[place], micro=number), loss, weight]

    update = record_of(TensorKey(0, Phase.UPDATE, "net", "weight"), TENSORS[0])
    ours = [*micro(0, 3), *micro(1, 4), update]
    theirs = [*micro(0, 9), *micro(1, 3), *micro(2, 4), update]
    paired = _paired(ours, theirs)
    assert not paired.only_reference
    assert {(pair.key.micro, pair.candidate.key.micro) for pair in paired.pairs} == {(0, 1), (1, 2), (0, 0)}
    assert [pair.key.phase for pair in paired.pairs if pair.candidate.key.micro == 0] == [Phase.UPDATE]
    (match,) = paired.shifts.matches
    assert (match.name, match.pairs, match.totals) == ("", ((0, 1), (1, 2)), (2, 3))
    assert match.confidence == pytest.approx(1.0)


def test_a_tensor_of_another_name_is_paired_by_its_values() -> None:
    def seen(phase: Phase, slot: str, tensor: Array) -> TensorRecord:
        return record_of(TensorKey(0, phase, "net", slot), tensor)

    ours = [seen(Phase.FORWARD, "output.logits", TENSORS[0]), seen(Phase.FORWARD, "output.more", TENSORS[1]),
            seen(Phase.BACKWARD, "grad_output.logits", TENSORS[2])]  # fmt: skip
    theirs = [seen(Phase.FORWARD, "output.0", TENSORS[3]), seen(Phase.FORWARD, "output.1", TENSORS[0] * 1.01),
              seen(Phase.BACKWARD, "grad_output.1", TENSORS[4])]  # fmt: skip
    paired = _paired(ours, theirs)
    assert [(pair.reference.key.slot, pair.candidate.key.slot) for pair in paired.pairs] == [
        ("output.logits", "output.1"),
        ("grad_output.logits", "grad_output.1"),
    ]
    assert [key.slot for key in paired.only_reference] == ["output.more"]


def test_what_a_model_is_given_is_paired_by_its_shapes_under_other_names() -> None:
    def given(names: Sequence[str], values: Sequence[int]) -> list[TensorRecord]:
        return [
            record_of(TensorKey(0, Phase.INPUT, name, "value"), np.full((2, 3), value))
            for name, value in zip(names, values, strict=True)
        ]

    paired = _paired(given(["ids", "mask"], [1, 2]), given(["tokens", "keep"], [5, 2]))
    assert [(pair.reference.key.name, pair.candidate.key.name) for pair in paired.pairs] == [
        ("ids", "tokens"),
        ("mask", "keep"),
    ]
