"""The formulas of optimizers element by element: what a state must be, and what a parameter is moved along.

As torch's own optimizers compute them, whether foreach, fused or one by one. A setting that torch does not have,
`eps_inside`, asks what an epsilon inside the square root would give, as TensorFlow's RMSprop has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

EPS_INSIDE = "eps_inside"

Values: TypeAlias = NDArray[np.float64]
States: TypeAlias = Mapping[str, Values]
"""The states of one parameter that are known, by their names."""


class Settings(NamedTuple):
    """The settings of the group that a parameter is in, and how often it has been updated."""

    kind: str
    values: Mapping[str, Any]
    updates: float

    def number(self, name: str) -> float:
        """A setting that is a number; 0 where it is not set."""
        value = self.values.get(name, 0.0)
        return float(value) if isinstance(value, (int, float)) else 0.0


def root(square: Values, group: Mapping[str, Any]) -> Values:
    """What an update is divided by: the root of the mean square, and epsilon."""
    eps = float(group.get("eps") or 0.0)
    positive = np.maximum(square, 0.0)
    return np.sqrt(positive + eps) if group.get(EPS_INSIDE) else np.sqrt(positive) + eps


def divided(one: Values, other: Values) -> Values:
    """A quotient, 0 where the divisor is."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(other > 0.0, one / other, 0.0)


def states(settings: Settings, gradient: Values, after: States, before: States) -> Iterator[tuple[str, Values]]:
    """The states of RMSprop and Adagrad as they should be after the step, those of which enough is known."""
    first = settings.updates == 1.0
    if settings.kind == "Adagrad":
        known = "sum" in after and "sum" in before
        if known or (first and "sum" in after and not settings.number("initial_accumulator_value")):
            yield "sum", before.get("sum", np.zeros_like(gradient)) + gradient**2
        return
    zero = np.zeros_like(gradient) if first else None
    alpha = settings.number("alpha")
    for name, value in (("square_avg", gradient**2), ("grad_avg", gradient)):
        old = before.get(name, zero)
        if old is not None and name in after:
            yield name, alpha * old + (1.0 - alpha) * value
    step, old = _rmsprop(settings, gradient, after), before.get("momentum_buffer", zero)
    if step is not None and old is not None and "momentum_buffer" in after:
        yield "momentum_buffer", settings.number("momentum") * old + step


def direction(settings: Settings, gradient: Values, after: States) -> Values | None:
    """What RMSprop and Adagrad move a parameter along, before the rate; None where a state is not known."""
    if settings.kind == "Adagrad":
        if "sum" not in after:
            return None
        slower = 1.0 + (settings.updates - 1.0) * settings.number("lr_decay")
        return divided(gradient, root(after["sum"], settings.values)) / slower
    return after.get("momentum_buffer") if settings.number("momentum") else _rmsprop(settings, gradient, after)


def _rmsprop(settings: Settings, gradient: Values, after: States) -> Values | None:
    square = after.get("square_avg")
    if square is None or (settings.values.get("centered") and "grad_avg" not in after):
        return None
    if settings.values.get("centered"):
        square = square - after["grad_avg"] ** 2
    return divided(gradient, root(square, settings.values))
