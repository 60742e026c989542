"""All answers of one model; a process of its own can make them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.relations.cases import Answer, Case, by_records, by_values
from benchmarks.relations.gradient_cases import of_gradients
from benchmarks.relations.material import Material, make
from benchmarks.relations.model_cases import ModelAnswer, of_model, related
from benchmarks.relations.weight_cases import of_weights


def all_cases(material: Material) -> Iterator[Case]:
    """Every case of one model."""
    generator = np.random.default_rng(5)
    yield from of_weights(material, generator)
    yield from of_gradients(material, generator)


@dataclass(frozen=True, slots=True)
class Measured:
    """All answers of one model."""

    values: list[Answer]
    records: list[Answer]
    models_by_values: list[ModelAnswer]
    models_by_records: list[ModelAnswer]


def measure(model: str, steps: int) -> Measured:
    """Make the cases of one model and relate them."""
    material = make(model, steps)
    chosen = list(all_cases(material))
    return Measured(
        [by_values(case) for case in chosen],
        [by_records(case) for case in chosen],
        [related(case, from_records=False) for case in of_model(material)],
        [related(case, from_records=True) for case in of_model(material)],
    )
