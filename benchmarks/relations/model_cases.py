"""Cases of whole models: one answer for all tensors."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from align.relations import (
    Circumstances,
    ModelKind,
    ModelRelation,
    Relation,
    RelationKind,
    Side,
    Values,
    aggregate,
    contents_of_record,
    contents_of_values,
    relate_records,
    relate_values,
)
from benchmarks.relations.cases import FACTORS, record_of
from benchmarks.relations.material import Material, Tensors

M = ModelKind
PARTS = (0.1, 0.3, 0.5)

Checks = Callable[[ModelRelation], bool]


@dataclass(frozen=True, slots=True, eq=False)
class ModelCase:
    """Two models, what is known around them, the right answer, and another that is as right."""

    family: str
    name: str
    kind: ModelKind
    reference: Mapping[str, Values]
    candidate: Mapping[str, Values]
    noise: Mapping[str, float] = field(default_factory=dict)
    earlier: Mapping[str, Values] = field(default_factory=dict)
    check: Checks = lambda _: True
    or_else: Checks = lambda _: False


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """What was said of a case, and whether it is right."""

    family: str
    name: str
    truth: ModelKind
    said: ModelKind
    right: bool


def related(case: ModelCase, *, from_records: bool) -> ModelAnswer:
    """Relate every tensor that both have, then the model."""
    relate = _by_records if from_records else _by_values
    both = [name for name in case.reference if name in case.candidate]
    relations = {name: relate(case, name) for name in both}
    missing, extra = (
        {name: _contents(values, from_records=from_records) for name, values in side.items() if name not in both}
        for side in (case.reference, case.candidate)
    )
    found = aggregate(relations, missing, extra)
    right = (found.kind is case.kind and case.check(found)) or case.or_else(found)
    return ModelAnswer(case.family, case.name, case.kind, found.kind, right)


def _by_values(case: ModelCase, name: str) -> Relation:
    earlier = {"the step before": case.earlier[name]} if name in case.earlier else {}
    known = Circumstances(case.noise.get(name, 0.0), earlier, FACTORS)
    return relate_values(case.reference[name], case.candidate[name], known)


def _by_records(case: ModelCase, name: str) -> Relation:
    hashed = not case.noise
    earlier = {"the step before": record_of(case.earlier[name], hashed=hashed)} if name in case.earlier else {}
    known = Circumstances(case.noise.get(name, 0.0), earlier, FACTORS)
    ours, theirs = (record_of(side[name], hashed=hashed) for side in (case.reference, case.candidate))
    return relate_records(ours, theirs, known)


def _contents(values: Values, *, from_records: bool) -> Any:
    if from_records:
        return contents_of_record(record_of(values, hashed=True))
    return contents_of_values(values)


def of_model(material: Material) -> Iterator[ModelCase]:
    """Every case of one model."""
    yield from _same_and_drawn(material)
    yield from _partly(material)
    yield from _keys(material)
    yield from _changed(material)
    yield from _gradients(material)


def _case(
    family: str, material: Material, kind: ModelKind, ours: Tensors, theirs: Mapping[str, NDArray[Any]], **more: Any
) -> ModelCase:
    return ModelCase(family, material.model, kind, _values(ours), _values(theirs), **more)


def _values(tensors: Mapping[str, NDArray[Any]]) -> dict[str, Values]:
    return {
        name: Values(array if array.flags.c_contiguous else np.array(array, order="C"))
        for name, array in tensors.items()
    }


def _same_and_drawn(material: Material) -> Iterator[ModelCase]:
    first, second = material.seeds
    trained = material.trained
    yield _case("equal", material, M.EQUAL, trained, dict(trained))
    yield _case("other seed", material, M.OTHER_SEED, first, second)
    yield _case("other seed", material, M.OTHER_SEED, second, first)
    for fresh in (first, second):
        yield _case("not loaded", material, M.NOT_LOADED, trained, fresh, check=_side(Side.CANDIDATE))
        yield _case("not loaded", material, M.NOT_LOADED, fresh, trained, check=_side(Side.REFERENCE))
    yield _case("another training", material, M.UNRELATED, trained, material.other)
    drifted = _floats(trained, lambda array, draw: array + 0.3 * _rms(array) * draw.standard_normal(array.shape))
    yield _case("trained on", material, M.DRIFTED, trained, drifted)


def _partly(material: Material) -> Iterator[ModelCase]:
    modules = sorted({name.rpartition(".")[0] for name in material.trained})
    for number, share in enumerate(PARTS):
        generator = np.random.default_rng(number)
        chosen = set(generator.choice(modules, max(1, int(share * len(modules))), replace=False).tolist())
        names = {name for name in material.trained if name.rpartition(".")[0] in chosen}
        mixed = {name: (material.seeds[1] if name in names else material.trained)[name] for name in material.trained}
        differing = {name for name in names if not np.array_equal(mixed[name], material.trained[name])}
        told = _is_told(material, differing)
        yield _case(
            f"partly loaded, {share:.0%} left out", material, M.PARTIALLY_LOADED, material.trained, mixed,
            check=_names(differing, Side.CANDIDATE if told else None),
        )  # fmt: skip
        yield _case(
            f"partly loaded, {share:.0%} left out", material, M.PARTIALLY_LOADED, mixed, material.trained,
            check=_names(differing, Side.REFERENCE if told else None),
        )  # fmt: skip


def _is_told(material: Material, names: set[str]) -> bool:
    return any(material.seeds[1][name].ndim == 1 for name in names)


def _keys(material: Material) -> Iterator[ModelCase]:
    trained = material.trained
    shapes: dict[tuple[int, ...], list[str]] = {}
    for name, array in trained.items():
        if array.ndim > 1:
            shapes.setdefault(array.shape, []).append(name)
    moved = dict(trained)
    for names in shapes.values():
        for name, other in zip(names, [*names[1:], names[0]], strict=True):
            moved[name] = trained[other]
    yield _case("keys exchanged", material, M.PERMUTED_KEYS, trained, moved)
    renamed = {f"model.{name}": array for name, array in trained.items()}
    yield _case("keys renamed", material, M.PERMUTED_KEYS, trained, renamed, check=lambda found: not found.others)


def _changed(material: Material) -> Iterator[ModelCase]:
    trained = material.trained
    half = _floats(trained, lambda array, _: array.astype(np.float16).astype(np.float32))
    yield _case("rounded to fp16", material, M.CAST, trained, half, check=_format("float16"))
    short = _floats(trained, lambda array, _: (array.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32))
    yield _case("cut off to bf16", material, M.CAST, trained, short, check=_format("bfloat16"))
    zeros = _floats(trained, lambda array, _: np.zeros_like(array))
    yield _case("all zeros", material, M.ALL_ZERO, trained, zeros, check=_side(Side.CANDIDATE))
    earlier = _values(material.before)
    yield _case("one step behind", material, M.STALE, trained, material.before, earlier=earlier)
    transposed = {name: array.T if array.ndim == 2 else array for name, array in trained.items()}
    if sum(array.ndim > 2 for array in trained.values()) == 0:
        yield _case("transposed", material, M.REORDERED, trained, transposed)
    name = next(name for name, array in trained.items() if array.ndim > 1)
    broken = dict(trained)
    broken[name] = trained[name].copy()
    broken[name][1] *= np.float32(1.5)
    yield _case("one tensor", material, M.SOME_TENSORS, trained, broken, check=_names({name}, None))


def _gradients(material: Material) -> Iterator[ModelCase]:
    for precision, gradients in material.gradients.items():
        noise = {name: gradients.noise(name) for name in gradients.reference}
        ours, theirs = gradients.reference, gradients.candidate

        def case(
            family: str,
            kind: ModelKind,
            candidate: Mapping[str, NDArray[Any]],
            *,
            ours: Tensors = ours,
            noise: Mapping[str, float] = noise,
            precision: str = precision,
            **more: Any,
        ) -> ModelCase:
            return _case(f"{precision} gradients, {family}", material, kind, ours, candidate, noise=noise, **more)

        middle = statistics.median(noise.values())
        yield case("within noise", M.WITHIN_NOISE, theirs)
        for meaning, number in (
            ("2", 2.0),
            ("1/world size", 0.125),
            ("loss scale", 65536.0),
            ("1.1", 1.1),
            ("1.02", 1.02),
        ):
            scaled = {name: array * np.float32(number) for name, array in theirs.items()}
            if abs(_median_factor(ours, scaled) - 1.0) <= 2.0 * middle:
                # No more than what rounding does to all gradients at once: some tensors may show it, the model cannot.
                yield case(f"times {meaning}, hidden", M.WITHIN_NOISE, scaled, or_else=_some_scaled)
            else:
                yield case(f"times {meaning}", M.SCALED, scaled, check=_factor(number, max(0.01, 2.0 * middle)))
        yield case("sign flipped", M.SIGN_FLIPPED, {name: -array for name, array in theirs.items()})
        zeros = {name: np.zeros_like(array) for name, array in theirs.items()}
        yield case("all zeros", M.ALL_ZERO, zeros, check=_side(Side.CANDIDATE))
        infinite = {name: np.full_like(array, np.nan) for name, array in theirs.items()}
        yield case("NaN", M.NONFINITE, infinite, check=_side(Side.CANDIDATE))
        earlier = _values(gradients.before)
        yield case("one step behind", M.STALE, gradients.candidate_before, earlier=earlier)


def _floats(tensors: Tensors, change: Callable[[Any, np.random.Generator], Any]) -> dict[str, NDArray[Any]]:
    generator = np.random.default_rng(11)
    return {
        name: change(array, generator).astype(np.float32) if array.dtype.kind == "f" else array
        for name, array in tensors.items()
    }


def _rms(array: NDArray[Any]) -> float:
    return float(np.sqrt(np.mean(np.square(array))))


def _median_factor(ours: Tensors, theirs: Mapping[str, NDArray[Any]]) -> float:
    """The median over all tensors of the factor that they really have."""
    pairs = [(ours[name].astype(np.float64).reshape(-1), theirs[name].reshape(-1)) for name in ours]
    return statistics.median(float(mine @ other / (mine @ mine)) for mine, other in pairs if np.any(mine))


def _side(side: Side) -> Checks:
    return lambda found: found.side is side


def _format(name: str) -> Checks:
    return lambda found: found.format == name


def _names(names: set[str], side: Side | None) -> Checks:
    return lambda found: set(found.names) == names and (side is None or found.side is side)


def _some_scaled(found: ModelRelation) -> bool:
    return found.kind is M.SOME_TENSORS and set(found.kinds) == {RelationKind.SCALED}


def _factor(number: float, tolerance: float) -> Checks:
    def check(found: ModelRelation) -> bool:
        return found.factor is not None and abs(found.factor.value / number - 1.0) <= tolerance

    return check
