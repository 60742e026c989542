"""What one tensor is to another, from records and from blocks: the same cases as from values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from align.hashing import BlockHash, hash_bytes
from align.records import Phase, TensorKey, TensorRecord
from align.relations import (
    ArraySource,
    Basis,
    Circumstances,
    RelationKind,
    Values,
    describe,
    relate_records,
    relate_sources,
    relate_values,
    same_bits,
    summarize,
)
from align.sketch import sketch_array
from tests.builders import record_of, statistics_of
from tests.test_relations import FACTORS, TOLD, matrix, noisy

K = RelationKind
KEY = TensorKey(0, Phase.GRADIENT, "layers.0", "weight")

SEEN_OTHERWISE = {
    "reversed": K.REORDERED,
    "rolled": K.REORDERED,
    "exchanged": K.REORDERED,
    "interleaved": K.REORDERED,
    "grouped": K.REORDERED,
    "shuffled": K.REORDERED,
    "a row": K.DRIFTED,
    "columns": K.DRIFTED,
    "a run": K.DRIFTED,
}
"""What records say of differences whose places they do not hold."""


def record(array: Any) -> TensorRecord:
    """The record of a gradient: statistics and a sketch, no hash."""
    return record_of(KEY, np.array(array, order="C"))


@pytest.mark.parametrize("name", TOLD)
def test_records_tell_what_values_tell_but_for_places(name: str) -> None:
    theirs, _ = TOLD[name]
    known = Circumstances[Values](factors=FACTORS)
    expected = relate_values(Values(matrix()), Values(np.array(theirs, order="C")), known).kind
    found = relate_records(record(matrix()), record(theirs), Circumstances(factors=FACTORS))
    assert found.kind is SEEN_OTHERWISE.get(name, expected), describe(found)
    assert found.basis is Basis.RECORDS


@pytest.mark.parametrize("name", TOLD)
def test_blocks_tell_what_values_tell(name: str) -> None:
    theirs, said = TOLD[name]
    sources = [ArraySource(Values(each)) for each in (matrix(), np.array(theirs, order="C"))]
    found = relate_sources(sources[0], sources[1], Circumstances(factors=FACTORS), in_memory=0)
    assert describe(found) == said
    assert found.basis is Basis.BLOCKS


def test_small_tensors_are_recovered_from_their_sketches() -> None:
    array = matrix(0, (10, 20))
    found = relate_records(record(array), record(array[::-1]))
    assert describe(found) == "the rows of the reference in reversed order"
    assert found.basis is Basis.RECORDS


@pytest.mark.parametrize("noise", [1e-6, 1e-2])
def test_sketches_see_factor_sign_and_staleness_through_noise(noise: float) -> None:
    before = record(matrix(3))
    known = Circumstances(noise, {"step 2": before}, FACTORS)
    said = {
        "within noise": noisy(matrix(), noise),
        "0.125 times the reference (1/world size or 1/accumulation steps)": noisy(matrix() / 8, noise),
        "the reference with its sign flipped": noisy(-matrix(), noise),
        "that of step 2": noisy(matrix(3), noise),
        "all zeros in the candidate": np.zeros_like(matrix()),
        "another draw of the same distribution": matrix(4),
    }
    found = {each: describe(relate_records(record(matrix()), record(array), known)) for each, array in said.items()}
    assert {each: text.partition(", relative")[0] for each, text in found.items()} == {each: each for each in said}


def test_statistics_alone_tell_a_factor_and_no_order() -> None:
    def without_sketch(array: Any) -> TensorRecord:
        return replace(record(array), sketch=None)

    found = relate_records(without_sketch(matrix()), without_sketch(-2 * matrix()))
    assert describe(found) == "-2 times the reference (by statistics, which see no order)"
    found = relate_records(without_sketch(matrix()), without_sketch(matrix()[::-1]))
    assert describe(found) == (
        "of a relation that cannot be told (there is no hash, and statistics see neither signs nor order; capture with "
        "--detail sketch)"
    )
    found = relate_records(replace(record(matrix()), stats=None), record(matrix()))
    assert describe(found) == "of a relation that cannot be told (one of the records has no statistics)"


def test_a_difference_too_small_for_a_sketch_shows_in_the_hash() -> None:
    ours = replace(record(matrix()), hash=1)
    found = relate_records(ours, replace(ours, hash=2))
    assert found.kind is K.EQUAL_BUT_BITS
    assert relate_records(ours, ours).kind is K.EQUAL


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 700), st.sampled_from(["float32", "float16", "int64", "uint8"]))
def test_a_summary_is_that_of_the_whole_array(seed: int, count: int, dtype: str) -> None:
    array = (50 * np.random.default_rng(seed).standard_normal(count)).astype(dtype)
    found = summarize(ArraySource(Values(array)), with_sketch=True)
    assert found.hash == hash_bytes(array)
    assert np.array_equal(found.sketch if found.sketch is not None else [], sketch_array(array))
    expected = statistics_of(array)
    assert replace(found.stats, total=0.0, total_squares=0.0, subnormals=0) == replace(
        expected, total=0.0, total_squares=0.0
    )
    assert found.stats.total == pytest.approx(expected.total)


def test_a_large_tensor_is_read_in_blocks() -> None:
    generator = np.random.default_rng(0)
    ours = generator.standard_t(4, (700, 900)).astype(np.float32)
    order = generator.permutation(700)
    theirs = ours.copy()
    theirs[650:] = 0
    said = {
        "rows": (ours[order], "the rows of the reference in another order (699 of 700 moved)"),
        "turned": (np.ascontiguousarray(ours.T), "the reference transposed by [1, 0]"),
        "part": (theirs, "the reference but for rows 650 to 699"),
        "scaled": (ours / 8, "0.125 times the reference (1/world size or 1/accumulation steps)"),
    }
    for array, text in said.values():
        found = relate_sources(
            ArraySource(Values(ours)), ArraySource(Values(array)), Circumstances(factors=FACTORS), in_memory=0
        )
        assert describe(found) == text
    assert same_bits(ArraySource(Values(ours)), ArraySource(Values(ours.copy())))
    assert not same_bits(ArraySource(Values(ours)), ArraySource(Values(theirs)))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 200_000))
def test_a_hash_of_parts_is_that_of_the_whole(seed: int, size: int) -> None:
    generator = np.random.default_rng(seed)
    array = generator.integers(0, 256, size).astype(np.uint8)
    hasher = BlockHash()
    start = 0
    while start < size:
        stop = start + int(generator.integers(1, 90_000))
        hasher.add(array[start:stop])
        start = stop
    assert hasher.finish() == hash_bytes(array)
