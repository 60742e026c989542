"""What one tensor is to another, from values: whole records and whole phrases compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from align.relations import (
    Circumstances,
    Relation,
    RelationKind,
    Side,
    Values,
    contents_of_values,
    describe,
    relate_values,
)

Array = NDArray[Any]
K = RelationKind

ROWS, COLUMNS = 48, 64
FACTORS = {"world size": 8.0, "accumulation steps": 8.0, "loss scale": 65536.0}


def matrix(seed: int = 0, shape: tuple[int, ...] = (ROWS, COLUMNS)) -> Array:
    """A heavy-tailed matrix, as trained weights are; it looks like no default initialisation."""
    return np.random.default_rng(seed).standard_t(4, shape).astype(np.float32)


def noisy(array: Array, noise: float, seed: int = 7) -> Array:
    """The array with dense noise of this relative L2."""
    rms = float(np.sqrt(np.mean(np.square(array))))
    return (array + noise * rms * np.random.default_rng(seed).standard_normal(array.shape)).astype(np.float32)


def related(ours: Array, theirs: Array, noise: float = 0.0, earlier: Mapping[str, Array] | None = None) -> Relation:
    """The relation of two arrays."""
    known = Circumstances(noise, {name: Values(array) for name, array in (earlier or {}).items()}, FACTORS)
    return relate_values(Values(ours), Values(np.array(theirs, order="C")), known)


def changed(places: Any, value: float) -> Array:
    """The matrix with some elements set."""
    array = matrix()
    array[places] = value
    return array


GROUPED = np.concatenate([part.reshape(8, -1) for part in np.split(np.arange(ROWS), [32, 40])], axis=1).reshape(-1)
TOLD = {
    "equal": (matrix(), "equal"),
    "nan": (changed((0, 5), np.nan), "not finite in the candidate"),
    "zeros": (np.zeros_like(matrix()), "all zeros in the candidate"),
    "fp16": (matrix().astype(np.float16).astype(np.float32), "the reference rounded to fp16"),
    "cut off": (
        (matrix().view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32),
        "the reference rounded to bf16 (cut off, not rounded)",
    ),
    "sign": (-matrix(), "the reference with its sign flipped"),
    "twice": (2 * matrix(), "2 times the reference"),
    "world size": (matrix() / 8, "0.125 times the reference (1/world size or 1/accumulation steps)"),
    "loss scale": (matrix() * 65536, "65,536 times the reference (loss scale)"),
    "odd factor": (matrix() * np.float32(1.1), "1.1 times the reference"),
    "negative factor": (matrix() * np.float32(-8), "-8 times the reference (world size or accumulation steps)"),
    "offset": (matrix() + np.float32(1), "the reference plus 1.000 everywhere"),
    "transposed": (matrix().T, "the reference transposed by [1, 0]"),
    "reshaped": (matrix().reshape(-1), "the values of the reference in another shape"),
    "reversed": (matrix()[::-1], "the rows of the reference in reversed order"),
    "rolled": (np.roll(matrix(), 3, 1), "the columns of the reference rolled by 3"),
    "exchanged": (matrix()[[2, 1, 0, *range(3, ROWS)]], "the reference with rows 0 and 2 exchanged"),
    "interleaved": (
        matrix().reshape(3, 4, 4, COLUMNS).swapaxes(1, 2).reshape(ROWS, COLUMNS),
        "the rows of the reference, split into 3 x 4 x 4, with the 4 and the 4 exchanged",
    ),
    "grouped": (
        matrix()[GROUPED],
        "the rows of the reference between stacked parts and 8 groups of 4 + 1 + 1 blocks",
    ),
    "shuffled": (
        matrix()[np.random.default_rng(1).permutation(ROWS)],
        "the rows of the reference in another order (48 of 48 moved)",
    ),
    "scattered": (
        np.random.default_rng(1).permutation(matrix().reshape(-1)).reshape(ROWS, COLUMNS),
        "the values of the reference in another order",
    ),
    "one element": (changed((1, 1), 9.0), "the reference but for 1 element (65)"),
    "a row": (changed(3, 1.5), "the reference but for row 3"),
    "columns": (changed((slice(None), slice(4, 7)), 0.5), "the reference but for columns 4 to 6"),
    "a run": (
        np.concatenate([matrix().reshape(-1)[:100], np.zeros(80), matrix().reshape(-1)[180:]])
        .reshape(ROWS, COLUMNS)
        .astype(np.float32),
        "the reference but for 80 elements from 100 to 179 of the flat tensor",
    ),
    "other draw": (matrix(1), "another draw of the same distribution"),
    "other distribution": (
        np.random.default_rng(2).uniform(0.0, 9.0, (ROWS, COLUMNS)).astype(np.float32) - np.float32(4.5),
        "unrelated to the reference",
    ),
    "default": (
        np.random.default_rng(3).normal(0.0, 0.02, (ROWS, COLUMNS)).astype(np.float32),
        "at its default initialisation in the candidate (normal, deviation 0.02)",
    ),
    "drifted": (noisy(matrix(), 0.2), "near the reference, relative L2 0.20"),
    "other shape": (matrix()[:40], "of shape [40, 64], [48, 64] in the reference"),
}


@pytest.mark.parametrize("name", TOLD)
def test_a_relation_is_told(name: str) -> None:
    theirs, said = TOLD[name]
    assert describe(related(matrix(), theirs)) == said


def test_equal_bits_and_equal_values_are_told_apart() -> None:
    ours, theirs = changed((0, 0), 0.0), changed((0, 0), -0.0)
    assert related(ours, ours.copy()).kind is K.EQUAL
    assert describe(related(ours, theirs)) == "equal in value, with other bits (-0.0 or another NaN)"


def test_nan_at_the_same_places_is_no_difference() -> None:
    ours = changed((0, 5), np.nan)
    assert related(ours, ours.copy()).kind is K.EQUAL
    assert related(ours, 2 * ours).factor is not None
    assert describe(related(ours, 2 * ours)) == "2 times the reference"


@pytest.mark.parametrize("noise", [1e-6, 1e-3, 2e-2])
def test_relations_are_seen_through_noise(noise: float) -> None:
    said = {
        "healthy": noisy(matrix(), noise),
        "twice": noisy(2 * matrix(), noise),
        "sign": noisy(-matrix(), noise),
        "moved": noisy(matrix()[::-1], noise),
        "transposed": noisy(matrix().T, noise),
        "constant": noisy(matrix() + 3, noise),
        "a row": noisy(changed(3, 9.0), noise),
        "an element": noisy(changed((1, 1), 90.0), noise),
    }
    assert {
        name: describe(related(matrix(), theirs, noise)).partition(", relative")[0] for name, theirs in said.items()
    } == {
        "healthy": "within noise",
        "twice": "2 times the reference",
        "sign": "the reference with its sign flipped",
        "moved": "the rows of the reference in reversed order",
        "transposed": "the reference transposed by [1, 0]",
        "constant": describe(related(matrix(), said["constant"], noise)),
        "a row": "the reference but for row 3",
        "an element": "the reference but for 1 element (65)",
    }
    assert related(matrix(), said["constant"], noise).offset == pytest.approx(3.0, rel=0.01)


@pytest.mark.parametrize(
    ("factor", "noise", "kind"),
    [(1.1, 0.02, K.SCALED), (1.1, 0.2, K.WITHIN_NOISE), (1.01, 0.02, K.WITHIN_NOISE), (1.01, 0.001, K.SCALED)],
)
def test_a_factor_inside_the_noise_is_told_where_it_is_nearly_all_of_the_difference(
    factor: float, noise: float, kind: RelationKind
) -> None:
    assert related(matrix(), noisy(factor * matrix(), noise), noise).kind is kind


@pytest.mark.parametrize("seed", range(20))
def test_more_noise_than_was_calibrated_is_never_laid_on_a_cause(seed: int) -> None:
    found = related(matrix(), noisy(matrix(), 0.03, seed), 0.005)
    assert found.kind is K.DRIFTED
    flips = noisy(matrix(), 1e-3, seed)
    flips[seed] = noisy(matrix(), 0.05, seed)[seed]
    assert related(matrix(), flips, 2e-3).kind in {K.WITHIN_NOISE, K.DRIFTED}


def test_a_tensor_of_an_earlier_step_is_stale() -> None:
    before, now = noisy(matrix(), 0.1, 1), matrix()
    assert (
        describe(related(now, before, earlier={"step 3 of the reference": before})) == "that of step 3 of the reference"
    )
    again = noisy(before, 1e-3)
    assert related(now, again, 1e-3, {"before": before}).kind is K.STALE
    assert related(now, noisy(now, 1e-3), 1e-3, {"before": before}).kind is K.WITHIN_NOISE
    assert related(now, matrix(5), 1e-3, {"before": before}).kind is K.OTHER_SEED


def test_short_formats_are_compared_as_numbers() -> None:
    array = matrix()
    bits = ((array.view(np.uint32) + 0x8000) >> 16).astype(np.uint16)
    short = Values(bits, "bfloat16")
    found = relate_values(Values(array), short)
    assert (found.kind, found.format, found.side) == (K.CAST, "bfloat16", Side.CANDIDATE)
    wide = Values(short.numbers())
    assert describe(relate_values(short, wide)) == "equal in value, in bf16 in the reference"
    turned = Values(np.ascontiguousarray(bits.T), "bfloat16")
    assert describe(relate_values(Values(array), turned)) == (
        "the reference transposed by [1, 0] (rounded to bfloat16 too)"
    )


def test_gains_near_one_are_not_taken_for_rounded_ones() -> None:
    gains = (1 + 0.05 * np.random.default_rng(0).standard_normal(64)).astype(np.float32)
    assert describe(related(gains, np.ones_like(gains))) == "at its default initialisation in the candidate (ones)"
    assert related(np.ones_like(gains), gains).side is Side.REFERENCE


@pytest.mark.parametrize(
    ("draw", "look"),
    [
        (lambda generator: generator.uniform(-0.125, 0.125, (48, 64)), "uniform within 1/sqrt(fan in)"),
        (lambda generator: generator.normal(0.0, 0.02, (48, 64)), "normal, deviation 0.02"),
        (lambda generator: generator.normal(0.0, 1.0, (48, 64)), "normal, deviation 1"),
        (lambda generator: generator.uniform(-0.13, 0.13, (48, 64)), ""),
        (lambda generator: generator.normal(0.0, 0.5, (48, 64)), ""),
        (lambda generator: generator.standard_t(4, (48, 64)), ""),
        (lambda _: np.ones(64), "ones"),
        (lambda _: np.zeros(64), "zeros"),
    ],
)
def test_default_initialisations_are_known(draw: Any, look: str) -> None:
    array = draw(np.random.default_rng(0)).astype(np.float32)
    assert contents_of_values(Values(array)).initial == look


def test_whole_numbers_are_related_too() -> None:
    tokens = np.random.default_rng(0).integers(0, 1000, (16, 32))
    assert describe(related(tokens, np.roll(tokens, 1, 0))) == "the rows of the reference rolled by 1"
    assert describe(related(tokens, tokens + 1)) == "the reference plus 1.000 everywhere"
    assert describe(related(tokens, tokens.astype(np.int32))) == "equal in value, in int32 in the candidate"


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(1e-3, 1e3), st.booleans())
def test_any_factor_is_found(seed: int, factor: float, negative: bool) -> None:
    factor = -factor if negative else factor
    ours = np.random.default_rng(seed).standard_normal((6, 9))
    found = related(ours, factor * ours)
    if abs(factor - 1.0) > 1e-6:
        assert found.kind is (K.SIGN_FLIPPED if abs(factor + 1.0) <= 1e-6 else K.SCALED)
        assert found.factor is not None
        assert found.factor.raw == pytest.approx(factor, rel=1e-9)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 2))
def test_any_permutation_is_found(seed: int, dimension: int) -> None:
    generator = np.random.default_rng(seed)
    ours = generator.standard_normal((5, 6, 7))
    order = generator.permutation(ours.shape[dimension])
    found = related(ours, np.take(ours, order, dimension))
    if np.array_equal(order, np.arange(order.size)):
        assert found.kind is K.EQUAL
        return
    assert found.kind is K.PERMUTED
    assert found.order is not None
    assert found.order.dimension == dimension
    assert dict(found.order.examples) == {
        place: int(order[place]) for place in np.flatnonzero(order != np.arange(order.size))[:5].tolist()
    }


@settings(max_examples=150, deadline=None)
@example(8525)  # one of the draws does not look like a normal one
@given(st.integers(0, 2**32 - 1))
def test_two_draws_are_never_more_than_another_seed(seed: int) -> None:
    generator = np.random.default_rng(seed)
    ours, theirs = generator.standard_normal((2, 12, 15))
    assert related(ours, theirs, 1e-2).kind in {K.OTHER_SEED, K.UNRELATED}


@pytest.mark.parametrize("noise", [0.0, 0.02, 0.2])
def test_few_numbers_are_no_proof(noise: float) -> None:
    generator = np.random.default_rng(1)
    for count in (1, 2, 3, 4, 6) * 40:
        ours, theirs = generator.standard_normal((2, count))
        assert related(ours, theirs, noise).kind in {K.UNRELATED, K.DRIFTED, K.WITHIN_NOISE}


def test_scalars_and_empty_tensors_are_related() -> None:
    assert describe(related(np.float32(2.0) * np.ones(()), np.ones(()))) == (
        "0.5 times the reference (an added constant fits as well)"
    )
    assert related(np.zeros((0, 3)), np.zeros((0, 3))).kind is K.EQUAL
    half = Values(np.array(0x3F80, dtype=np.uint16), "bfloat16")
    assert relate_values(half, Values(np.array(0xFF80, dtype=np.uint16), "bfloat16")).kind is K.NONFINITE


def test_other_pictures_are_not_near_because_all_are_bright() -> None:
    ours, theirs = np.random.default_rng(0).uniform(0.6, 1.0, (2, 8, 300))
    assert related(ours, theirs).kind is K.OTHER_SEED
