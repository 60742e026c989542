"""Which elements of a tensor differ beyond noise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from align.diagnosis.pair.forward import wrong_elements
from align.wrong_part import WrongPart, wrong_part
from tests.builders import Array

FLOOR = 2.0**-20
SHAPE = (4, 10, 20)
REFERENCE = np.random.default_rng(0).normal(size=SHAPE)


def noisy(array: Array, seed: int = 1) -> Array:
    """The array with noise as large as the floor."""
    noise = np.random.default_rng(seed).normal(size=array.shape)
    return np.asarray(array + FLOOR * noise * np.sqrt(np.mean(array**2)))


def changed(*place: slice | int) -> Array:
    result = noisy(REFERENCE)
    result[place] = np.random.default_rng(2).normal(size=result[place].shape)
    return result


def flat(start: int, stop: int) -> Array:
    result = noisy(REFERENCE).reshape(-1)
    result[start:stop] = np.random.default_rng(2).normal(size=stop - start)
    return result.reshape(SHAPE)


def growing() -> Array:
    size = 10.0 ** np.linspace(-4, -1, 10)[None, :, None]
    return REFERENCE * (1 + size * np.sign(np.random.default_rng(2).normal(size=SHAPE)))


ALL = slice(None)


@pytest.mark.parametrize(
    ("candidate", "sentence"),
    [
        (changed(ALL, ALL, slice(16, 20)),
         " Only columns 16 to 19 of 20, the last, differ beyond rounding; the others agree."),
        (changed(ALL, ALL, 3), " Only column 3 of 20 differs beyond rounding; the others agree."),
        (changed(ALL, slice(2, 5)),
         " Only places 2 to 4 of 10 along dimension 1 differ beyond rounding; the others agree."),
        (flat(30, 75), " Only elements 30 to 74 of 800 (in row-major order) differ beyond rounding; the others agree."),
        (flat(133, 134), " Only element 133 of 800 (in row-major order) differs beyond rounding; the others agree."),
        (growing(), " The relative difference grows along dimension 1, from 1.6e-4 to 0.073."),
        (changed(ALL), ""),
        (noisy(REFERENCE), ""),
    ],
    ids=["last columns", "a column", "places", "a run", "an element", "growing", "all", "noise"],
)  # fmt: skip
def test_the_wrong_elements_are_told(candidate: Array, sentence: str) -> None:
    assert wrong_elements.told(wrong_part(REFERENCE, candidate, FLOOR)) == sentence


def test_what_is_not_known_is_not_told() -> None:
    assert wrong_elements.told(None) == ""
    assert wrong_elements.evidence(None) == {}
    assert wrong_part(REFERENCE, np.full(SHAPE, np.nan), FLOOR) is None
    assert wrong_part(np.zeros((0, 3)), np.zeros((0, 3)), FLOOR) is None


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2), st.data())
def test_a_slice_of_foreign_values_is_found_again(dimension: int, data: st.DataObject) -> None:
    length = SHAPE[dimension]
    start = data.draw(st.integers(0, length - 1))
    stop = data.draw(st.integers(start + 1, min(start + length // 2, length)))
    place: list[slice | int] = [ALL] * 3
    place[dimension] = slice(start, stop)
    found = wrong_part(REFERENCE, changed(*place), FLOOR)
    assert found is not None
    assert (found.dimension, found.start, found.stop) == (dimension, start, stop)
    assert found.count <= REFERENCE.size * (stop - start) // length


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 799), st.integers(1, 400))
def test_a_run_of_foreign_values_is_found_again(start: int, length: int) -> None:
    stop = min(start + length, REFERENCE.size)
    found = wrong_part(REFERENCE, flat(start, stop), FLOOR)
    assert found is not None
    assert found.run == (start, stop)
    assert not found.zeros


def test_values_that_resemble_the_right_ones_are_known() -> None:
    def part(values: Array) -> WrongPart:
        candidate = REFERENCE.copy()
        candidate.reshape(-1)[30:75] = values
        found = wrong_part(REFERENCE, candidate, FLOOR)
        assert found is not None
        return found

    right = REFERENCE.reshape(-1)[30:75]
    assert part(right * 0.5).similarity == pytest.approx(1.0)
    assert abs(part(np.random.default_rng(4).normal(size=45)).similarity) < 0.5
    assert part(right * 0.0).zeros
