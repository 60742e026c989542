"""One answer for a model, and a part of the benchmark of benchmarks/relations, small enough for every run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from align.relations import (
    Circumstances,
    ModelKind,
    ModelRelation,
    RelationKind,
    Side,
    Values,
    aggregate,
    contents_of_values,
    describe_model,
    relate_values,
)
from benchmarks.relations import cases, model_cases
from benchmarks.relations.material import Material, make
from benchmarks.relations.measuring import all_cases

Tensors = Mapping[str, NDArray[Any]]
M = ModelKind

STEPS = 40
EVERY = 6
"""One case in so many: about 400."""


def initial(seed: int) -> dict[str, NDArray[Any]]:
    """The weights of a small new model."""
    generator = np.random.default_rng(seed)
    layers = {
        f"layers.{layer}": {
            "weight": generator.normal(0.0, 0.02, (32, 32)),
            "norm.weight": np.ones(32),
            "norm.bias": np.zeros(32),
        }
        for layer in range(4)
    }
    return {
        f"{layer}.{name}": array.astype(np.float32) for layer, held in layers.items() for name, array in held.items()
    }


def trained(seed: int) -> dict[str, NDArray[Any]]:
    """What a training makes of it."""
    generator = np.random.default_rng(100 + seed)
    return {
        name: (array + 0.05 * generator.standard_t(4, array.shape)).astype(np.float32)
        for name, array in initial(seed).items()
    }


def whole(ours: Tensors, theirs: Tensors, noise: float = 0.0) -> ModelRelation:
    """The relation of two models."""
    known = Circumstances[Values](noise, factors={"world size": 4.0})
    both = {
        name: relate_values(Values(array), Values(theirs[name]), known)
        for name, array in ours.items()
        if name in theirs
    }
    alone = [
        {name: contents_of_values(Values(array)) for name, array in side.items() if name not in both}
        for side in (ours, theirs)
    ]
    return aggregate(both, *alone)


def mixed(names: str) -> dict[str, NDArray[Any]]:
    """A trained model of which the tensors that begin like this are new."""
    fresh = initial(2)
    return {name: fresh[name] if name.startswith(names) else array for name, array in trained(1).items()}


def turned(tensors: Tensors) -> dict[str, NDArray[Any]]:
    """The weights of each layer under the name of the next."""
    names = [name for name in tensors if name.endswith(".weight") and "norm" not in name]
    return dict(tensors) | {name: tensors[names[place - 1]] for place, name in enumerate(names)}


WHOLE = {
    "equal": (trained(1), trained(1), "equal"),
    "other seed": (initial(1), initial(2), "another draw of the same distributions in 4 of 12 tensors"),
    "not loaded": (trained(1), initial(2), "at the defaults of a new model in the candidate"),
    "not loaded, own start": (initial(1), trained(1), "at the defaults of a new model in the reference"),
    "partly loaded": (
        trained(1),
        mixed("layers.2"),
        "at the defaults of a new model in the candidate in 3 of 12 tensors",
    ),
    "another training": (trained(1), trained(2), "unrelated to those of the reference"),
    "scaled": (
        trained(1),
        {name: array / 4 for name, array in trained(1).items()},
        "0.25 times those of the reference (1/world size)",
    ),
    "sign": (
        trained(1),
        {name: -array for name, array in trained(1).items()},
        "those of the reference with their sign flipped",
    ),
    "cast": (
        trained(1),
        {name: array.astype(np.float16).astype(np.float32) for name, array in trained(1).items()},
        "rounded to fp16 in the candidate",
    ),
    "keys": (
        trained(1),
        turned(trained(1)),
        (
            "those of the reference under other names (4 tensors, layers.0.weight is layers.1.weight, "
            "layers.1.weight is layers.2.weight, layers.2.weight is layers.3.weight and 1 more)"
        ),
    ),
    "renamed": (
        {"a": trained(1)["layers.0.weight"], "b": trained(1)["layers.1.weight"]},
        {"x.b": trained(1)["layers.1.weight"], "x.a": trained(1)["layers.0.weight"]},
        "those of the reference under other names (2 tensors, a is x.a and b is x.b)",
    ),
    "one tensor": (
        trained(1),
        trained(1) | {"layers.1.weight": trained(1)["layers.1.weight"] * np.float32(2)},
        "different in 1 of 12 tensors",
    ),
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_model_gets_one_answer(name: str) -> None:
    ours, theirs, said = WHOLE[name]
    assert describe_model(whole(ours, theirs)) == said


def test_what_was_not_loaded_is_named() -> None:
    found = whole(trained(1), mixed("layers.2"))
    assert (found.kind, found.side) == (M.PARTIALLY_LOADED, Side.CANDIDATE)
    assert found.names == ("layers.2.weight", "layers.2.norm.weight", "layers.2.norm.bias")
    assert found.equal == 9


def test_one_odd_tensor_is_no_other_seed() -> None:
    found = whole(trained(1), trained(1) | {"layers.1.weight": trained(2)["layers.1.weight"]})
    assert (found.kind, found.names) == (M.SOME_TENSORS, ("layers.1.weight",))


def test_a_new_head_on_both_sides_is_another_draw_of_that_head_only() -> None:
    heads = [initial(seed)["layers.0.weight"] for seed in (5, 6)]
    found = whole(trained(1) | {"head": heads[0]}, trained(1) | {"head": heads[1]})
    assert describe_model(found) == (
        "another draw of the same distributions in 1 of 13 tensors "
        "(the other tensors agree: only these were drawn anew)"
    )


def test_rounding_that_moves_all_gradients_alike_is_no_factor() -> None:
    noise = 0.02
    generator = np.random.default_rng(0)
    theirs = {
        name: (1.03 * array + noise * array.std() * generator.standard_normal(array.shape)).astype(np.float32)
        for name, array in trained(1).items()
    }
    assert whole(trained(1), theirs, noise).kind is M.WITHIN_NOISE
    doubled = {name: 2 * array for name, array in theirs.items()}
    found = whole(trained(1), doubled, noise)
    assert (found.kind, found.factor.snapped if found.factor else None) == (M.SCALED, 2.0)


def test_nothing_to_compare_is_unknown() -> None:
    assert aggregate({}).kind is M.UNKNOWN


@pytest.fixture(scope="module", params=["gru"])
def material(request: pytest.FixtureRequest) -> Material:
    return make(request.param, STEPS)


def some(material: Material) -> Iterator[cases.Case]:
    return (case for number, case in enumerate(all_cases(material)) if number % EVERY == 0)


@pytest.mark.parametrize("way", [cases.by_values, cases.by_records])
def test_relations_of_real_tensors_are_told_right(material: Material, way: Any) -> None:
    answers = [way(case) for case in some(material)]
    wrong = [f"{answer.family}: {answer.name}: {answer.said}" for answer in answers if not answer.right]
    assert len(answers) > 150
    assert len(wrong) <= 0.01 * len(answers), wrong


def test_no_healthy_tensor_is_accused(material: Material) -> None:
    healthy = [case for case in all_cases(material) if case.kind is RelationKind.WITHIN_NOISE]
    assert len(healthy) > 50
    assert [answer.said for answer in map(cases.by_values, healthy) if not answer.right] == []


@pytest.mark.parametrize("from_records", [False, True], ids=["values", "records"])
def test_models_are_told_right(material: Material, *, from_records: bool) -> None:
    chosen = [
        case
        for number, case in enumerate(model_cases.of_model(material))
        if not case.noise or number % 3 == from_records
    ]
    answers = [model_cases.related(case, from_records=from_records) for case in chosen]
    assert [f"{answer.family}: {answer.said}" for answer in answers if not answer.right] == []
