"""Cases made of gradients with the benign noise of a device over every change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from align.relations import Relation, RelationKind, Side, Values
from benchmarks.relations.cases import FACTORS, Case
from benchmarks.relations.material import Array, Material

K = RelationKind
REORDERED = frozenset({K.REORDERED})
FACTOR = {
    "2": 2.0,
    "1/world size": 1.0 / FACTORS["world size"],
    "loss scale": FACTORS["loss scale"],
    "1.1": 1.1,
    "1.01": 1.01,
}
SIMPLE = 2.0
NOTHING_ELSE = 0.5
"""Gradients that are zero but for rounding (a bias before a batch norm, of keys): nothing is known of them."""

LARGEST_NOISE = 0.1
"""Beyond, another order and a single row are below the noise of most elements."""


def of_gradients(material: Material, generator: np.random.Generator) -> Iterator[Case]:
    """All families over all gradients of all classes."""
    for precision, gradients in material.gradients.items():
        for name, ours in gradients.reference.items():
            noise = gradients.noise(name)
            if not np.any(ours) or noise == 0.0:
                continue
            label = f"{material.model} {name}"
            theirs = gradients.candidate[name]

            def case(
                family: str,
                kind: RelationKind,
                candidate: NDArray[Any],
                *,
                label: str = label,
                ours: Array = ours,
                noise: float = noise,
                precision: str = precision,
                **more: Any,
            ) -> Case:
                return Case(
                    f"{precision} gradient, {family}", label, kind, Values(ours),
                    Values(np.ascontiguousarray(candidate)), noise, hashed=False, **more,
                )  # fmt: skip

            yield case("within noise", K.WITHIN_NOISE, theirs)
            if ours.size < 4 or noise > NOTHING_ELSE:
                continue
            for meaning, number in FACTOR.items():
                check = _near(number, 3.0 * noise)
                yield case(f"times {meaning}", K.SCALED, theirs * np.float32(number), check=check)
            yield case("sign flipped", K.SIGN_FLIPPED, -theirs)
            earlier = {"the step before": Values(gradients.before[name])}
            yield case("the step before", K.STALE, gradients.candidate_before[name], earlier=earlier)
            rms = float(np.sqrt(np.mean(np.square(ours))))
            yield case("constant added", K.OFFSET, theirs + np.float32(5.0 * rms))
            zeros = np.zeros_like(theirs)
            yield case("all zeros", K.ALL_ZERO, zeros, check=lambda found: found.side is Side.CANDIDATE)
            yield from _places(case, theirs, rms, noise, generator)


def _places(
    case: Callable[..., Case], theirs: Array, rms: float, noise: float, generator: np.random.Generator
) -> Iterator[Case]:
    if theirs.size >= 100:
        place = int(generator.integers(theirs.size))
        changed = theirs.copy()
        changed.flat[place] += np.float32(30.0 * rms)
        yield case("one element", K.FEW_ELEMENTS, changed, check=lambda found: found.part.indices == (place,))
    if theirs.ndim < 2 or noise > LARGEST_NOISE or theirs.shape[0] < 10 or theirs.size // theirs.shape[0] < 8:
        return
    row = int(np.argsort(np.square(theirs.reshape(theirs.shape[0], -1)).sum(axis=1))[theirs.shape[0] // 2])
    changed = theirs.copy()
    changed[row] *= np.float32(10.0)
    check = _row(row)
    parts = frozenset({K.FEW_ELEMENTS, K.DRIFTED, K.UNRELATED})
    yield case("one row", K.FEW_SLICES, changed, check=check, by_records=parts)
    rows = np.square(theirs.reshape(theirs.shape[0], -1)).sum(axis=1)
    if rows.min() < 1e-4 * rows.max():
        return  # rows of noise have no order
    order = generator.permutation(theirs.shape[0])
    some = frozenset({K.REORDERED, K.UNRELATED, K.OTHER_SEED, K.DRIFTED})
    yield case("rows moved", K.PERMUTED, theirs[order], by_records=some)
    if theirs.shape[1] > 1:
        axes = (1, 0, *range(2, theirs.ndim))
        known = frozenset({K.REORDERED, K.OTHER_SHAPE, K.UNRELATED, K.OTHER_SEED})
        yield case("transposed", K.TRANSPOSED, theirs.transpose(axes), by_records=known)


def _near(number: float, tolerance: float) -> Callable[[Relation], bool]:
    def check(found: Relation) -> bool:
        return found.factor is not None and abs(found.factor.value / number - 1.0) <= max(tolerance, 1e-6)

    return check


def _row(row: int) -> Callable[[Relation], bool]:
    return lambda found: found.part is not None and found.part.dimension == 0 and found.part.indices == (row,)
