"""Cases made of weights, which must be equal: no noise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from align.relations import OrderKind, Relation, RelationKind, Side, Values
from align.relations.formats import FORMATS, rounded
from benchmarks.relations.cases import Case
from benchmarks.relations.material import Array, Material

K = RelationKind
REORDERED = frozenset({K.REORDERED})
LESS_THAN_A_PART = frozenset({K.FEW_ELEMENTS, K.DRIFTED})
"""What a sketch says of a few slices: that few elements differ, or that the tensors are near."""

FEWEST = 32


def of_weights(material: Material, generator: np.random.Generator) -> Iterator[Case]:
    """All families over all float tensors of the trained model."""
    for name, array in material.trained.items():
        if array.dtype.kind != "f":
            yield from _integers(f"{material.model} {name}", array, generator)
            continue
        label = f"{material.model} {name}"
        yield from _alike(label, array, generator)
        if array.size >= 4 and np.unique(array).size > 3:
            yield from _casts(label, array)
            yield from _changes(label, array)
            yield from _places(label, array, generator)
            yield from _orders(label, array, generator)
            yield from _origins(label, name, material, generator)


def _case(family: str, label: str, kind: RelationKind, ours: NDArray[Any], theirs: NDArray[Any], **more: Any) -> Case:
    return Case(family, label, kind, Values(ours), Values(np.array(theirs, order="C")), **more)


def _alike(label: str, array: Array, generator: np.random.Generator) -> Iterator[Case]:
    yield _case("equal", label, K.EQUAL, array, array.copy())
    ours, theirs = array.copy(), array.copy()
    place = int(generator.integers(array.size))
    ours.flat[place], theirs.flat[place] = 0.0, -0.0
    yield _case("equal, other bits", label, K.EQUAL_BUT_BITS, ours, theirs)
    for value in (np.nan, np.inf):
        theirs = array.copy()
        theirs.flat[place] = value
        yield _case("one NaN or Inf", label, K.NONFINITE, array, theirs, check=_side(Side.CANDIDATE))
    if np.any(array):
        zeros = np.zeros_like(array)
        yield _case("all zeros", label, K.ALL_ZERO, array, zeros, check=_side(Side.CANDIDATE))
        yield _case("all zeros", label, K.ALL_ZERO, zeros, array, check=_side(Side.REFERENCE))


def _integers(label: str, array: NDArray[Any], generator: np.random.Generator) -> Iterator[Case]:
    yield _case("integers equal", label, K.EQUAL, array, array.copy())
    tokens = generator.integers(0, 1000, (16, 32))
    other = generator.integers(0, 1000, (16, 32))
    unknown = frozenset({K.UNKNOWN})
    yield _case(
        "integers, rows moved", label, K.PERMUTED, tokens, tokens[generator.permutation(16)], by_records=REORDERED
    )
    yield _case("integers, other draw", label, K.OTHER_SEED, tokens, other, by_records=unknown)
    yield _case("integers shifted", label, K.OFFSET, tokens, tokens + 1, by_records=unknown)


def _casts(label: str, array: Array) -> Iterator[Case]:
    for name in ("bfloat16", "float16", "float8_e4m3fn", "float8_e5m2"):
        short = rounded(array.astype(np.float64), FORMATS[name]).astype(np.float32)
        if np.unique(short).size < 2 or np.array_equal(short, array):
            continue

        def check(found: Relation, name: str = name) -> bool:
            return found.format == name

        yield _case(f"rounded to {name}", label, K.CAST, array, short, check=check)
        yield _case(f"rounded to {name}", label, K.CAST, short, array, check=check)
    short = rounded(array.astype(np.float64), FORMATS["bfloat16"]).astype(np.float32)
    bits = (short.view(np.uint32) >> 16).astype(np.uint16)
    yield Case("bf16 and fp32", label, K.CAST, Values(array), Values(bits, "bfloat16"), check=_format("bfloat16"))
    half = array.astype(np.float16)
    if np.any(half):
        yield Case("fp16 and fp32", label, K.CAST, Values(array), Values(half), check=_format("float16"))


def _changes(label: str, array: Array) -> Iterator[Case]:
    for number in (2.0, 0.125, 1.1, 1.01, 1.0001, 65536.0):
        theirs = array * np.float32(number)
        yield _case(f"times {number:g}", label, K.SCALED, array, theirs, check=_factor(number))
    yield _case("sign flipped", label, K.SIGN_FLIPPED, array, -array)
    rms = float(np.sqrt(np.mean(np.square(array))))
    for added in (1.0, 0.1 * rms):
        theirs = array + np.float32(added)
        yield _case("constant added", label, K.OFFSET, array, theirs, check=_offset(added))


def _places(label: str, array: Array, generator: np.random.Generator) -> Iterator[Case]:
    rms = float(np.sqrt(np.mean(np.square(array))))
    for count in (1, 20):
        if count <= 0.02 * array.size:
            theirs = array.copy()
            places = generator.choice(array.size, count, replace=False)
            theirs.flat[places] += np.float32(rms)
            check = _part(None, set(places.tolist()))
            yield _case(f"{count} elements", label, K.FEW_ELEMENTS, array, theirs, check=check)
    if array.size >= 400:
        start = int(generator.integers(array.size - 40))
        theirs = array.copy()
        theirs.reshape(-1)[start : start + 20] = 0.0
        if np.all(array.reshape(-1)[start : start + 20]):
            kinds = frozenset({K.FEW_ELEMENTS, K.DRIFTED})
            yield _case("a run of zeros", label, K.FEW_ELEMENTS, array, theirs, by_records=kinds)
    for dimension, length in enumerate(array.shape):
        if array.ndim > 1 and length >= 10 and array.size // length >= 8:
            theirs = np.moveaxis(array.copy(), dimension, 0)
            place = int(generator.integers(length))
            theirs[place] *= np.float32(1.5)
            theirs = np.moveaxis(theirs, 0, dimension)
            check = _part(dimension, {place})
            yield _case("one slice", label, K.FEW_SLICES, array, theirs, check=check, by_records=LESS_THAN_A_PART)


def _orders(label: str, array: Array, generator: np.random.Generator) -> Iterator[Case]:
    length = array.shape[0]
    rows: dict[OrderKind, NDArray[np.int64]] = {}
    if length >= 8:
        rows = {
            OrderKind.GENERAL: generator.permutation(length),
            OrderKind.REVERSED: np.arange(length)[::-1],
            OrderKind.ROLLED: np.roll(np.arange(length), 3),
            OrderKind.EXCHANGED: np.array([2, 1, 0, *range(3, length)]),
        }
    if length % 16 == 0 and length >= 32:
        rows[OrderKind.SWAPPED_AXES] = np.arange(length).reshape(4, length // 4).T.reshape(-1)
        parts = np.split(np.arange(length), [length // 2, 3 * length // 4])
        rows[OrderKind.GROUPED] = np.concatenate([part.reshape(2, -1) for part in parts], axis=1).reshape(-1)
    for how, order in rows.items():
        if not np.array_equal(array[order], array):
            yield _case(
                f"rows, {how}", label, K.PERMUTED, array, array[order], check=_order(0, how), by_records=REORDERED
            )
    if array.ndim > 1 and array.shape[1] >= 8:
        order = generator.permutation(array.shape[1])
        check = _order(1, OrderKind.GENERAL)
        yield _case("columns", label, K.PERMUTED, array, array[:, order], check=check, by_records=REORDERED)
    if array.ndim > 1 and min(array.shape[:2]) > 1:
        axes = (1, 0, *range(2, array.ndim))
        theirs = np.ascontiguousarray(array.transpose(axes))
        check = _axes(axes)
        yield _case("transposed", label, K.TRANSPOSED, array, theirs, check=check, by_records=REORDERED)
        bits = (
            rounded(theirs.astype(np.float64), FORMATS["bfloat16"]).astype(np.float32).view(np.uint32) >> 16
        ).astype(np.uint16)
        yield Case(
            "transposed and bf16", label, K.TRANSPOSED, Values(array), Values(bits, "bfloat16"), check=check,
            by_records=frozenset({K.OTHER_SHAPE, K.UNRELATED, K.REORDERED, K.OTHER_SEED}),
        )  # fmt: skip
        flat = array.reshape(-1)[generator.permutation(array.size)].reshape(array.shape)
        yield _case("all elements", label, K.REORDERED, array, flat)
        yield _case("another shape", label, K.RESHAPED, array, array.reshape(-1), by_records=REORDERED)


def _origins(label: str, name: str, material: Material, generator: np.random.Generator) -> Iterator[Case]:
    array, before = material.trained[name], material.before[name]
    first, second = (seed[name] for seed in material.seeds)
    if not np.array_equal(array, before):
        earlier = {"the step before": Values(before)}
        yield _case("the step before", label, K.STALE, array, before.copy(), earlier=earlier)
    rms = float(np.sqrt(np.mean(np.square(array))))
    if array.size >= FEWEST:
        noisy = array + np.float32(0.3 * rms) * generator.standard_normal(array.shape).astype(np.float32)
        yield _case("drifted", label, K.DRIFTED, array, noisy)
    if np.unique(first).size == 1 and first.size > 1:
        if np.any(first):
            yield _case("not loaded, constant", label, K.NOT_LOADED, array, first, check=_side(Side.CANDIDATE))
            yield _case("not loaded, constant", label, K.NOT_LOADED, first, array, check=_side(Side.REFERENCE))
        return
    if array.size < FEWEST:
        return
    if not np.array_equal(first, second):
        yield _case("other seed", label, K.OTHER_SEED, first, second)
    if array.ndim > 1:
        yield from _not_loaded(label, array, second)
        heavy = (generator.standard_normal(array.shape) ** 3 * rms).astype(np.float32)
        yield _case("unrelated", label, K.UNRELATED, array, heavy, by_records=frozenset({K.NOT_LOADED}))


def _not_loaded(label: str, array: Array, fresh: Array) -> Iterator[Case]:
    """A trained matrix against the initial one of another seed."""
    yield _case("not loaded, matrix", label, K.NOT_LOADED, array, fresh, check=_side(Side.CANDIDATE))
    yield _case("not loaded, matrix", label, K.NOT_LOADED, fresh, array, check=_side(Side.REFERENCE))


def _side(side: Side) -> Callable[[Relation], bool]:
    return lambda found: found.side is side


def _format(name: str) -> Callable[[Relation], bool]:
    return lambda found: found.format == name and found.side is Side.CANDIDATE


def _factor(number: float) -> Callable[[Relation], bool]:
    def check(found: Relation) -> bool:
        return found.factor is not None and abs(found.factor.value / number - 1.0) <= 1e-6

    return check


def _offset(number: float) -> Callable[[Relation], bool]:
    return lambda found: found.offset is not None and abs(found.offset / number - 1.0) <= 1e-3


def _part(dimension: int | None, places: set[int]) -> Callable[[Relation], bool]:
    def check(found: Relation) -> bool:
        part = found.part
        return (
            part is not None
            and part.dimension == dimension
            and part.count == len(places)
            and set(part.indices) <= places
        )

    return check


def _order(dimension: int, how: OrderKind) -> Callable[[Relation], bool]:
    return lambda found: found.order is not None and (found.order.dimension, found.order.how) == (dimension, how)


def _axes(axes: tuple[int, ...]) -> Callable[[Relation], bool]:
    return lambda found: found.axes == axes
