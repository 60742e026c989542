"""Pairs of simulated loss curves, each with one known fault or none.

The reference falls from 10.5 to 2.5 and has a noise of 3 % that is that of its batches, so that the candidate has the
same. The candidate differs from it besides by what a healthy device does: a deviation that begins at 0 and grows to a
size at which it stays, half of which is carried over from step to step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from align.curve_records import CurveKind, Curves, Quantity

Values = NDArray[np.float64]

BATCH_NOISE = 0.03
HEALTHY = 0.004
GROWTH = 100
"""The deviation has grown after so many steps."""
KEPT = 0.5
"""So much of a deviation is carried over to the next step."""


class Right(Enum):
    """What an acceptance should say."""

    PASS = "passes"  # noqa: S105 - no password
    REMARK = "may pass"
    FAIL = "fails"


@dataclass(frozen=True)
class Simulated:
    """A kind of pair: its name, what is right to say, and how the candidate is made of a healthy one."""

    name: str
    right: Right
    change: Callable[[Values, np.random.Generator], Values]
    healthy: float = HEALTHY


def simulate(case: Simulated, count: int, seed: int) -> tuple[Curves, Curves]:
    """One pair of `count` steps."""
    random = np.random.default_rng(seed)
    reference = course(count) * (1 + BATCH_NOISE * random.standard_normal(count))
    deviation = case.healthy * (1 - np.exp(-np.arange(count) / GROWTH)) * _carried(random.standard_normal(count))
    candidate = case.change(reference * (1 + deviation), random)
    return curves("reference", reference), curves("candidate", candidate)


def curves(name: str, loss: Values, first: int = 0) -> Curves:
    """A run that recorded its loss only."""
    steps = np.arange(first, first + len(loss), dtype=np.int64)
    lost = ~np.isfinite(loss)
    return Curves(name, CurveKind.CSV, steps, {Quantity.LOSS: loss}, lost, np.zeros(len(loss), dtype=np.bool_))


def course(count: int) -> Values:
    """A loss without noise."""
    steps = np.arange(count)
    return np.asarray(2.5 + 8.0 * np.exp(-steps / (0.15 * count)))


def _carried(noise: Values) -> Values:
    """Noise of the same size with a memory."""
    made = np.empty_like(noise)
    last = 0.0
    for place, value in enumerate(noise):
        last = KEPT * last + float(np.sqrt(1 - KEPT**2)) * float(value)
        made[place] = last
    return made


def _unchanged(loss: Values, random: np.random.Generator) -> Values:  # noqa: ARG001
    return loss


def _first_step(loss: Values, random: np.random.Generator) -> Values:  # noqa: ARG001
    changed: Values = loss.copy()
    changed[0] *= 1.01
    return changed


def _factor(factor: float) -> Callable[[Values, np.random.Generator], Values]:
    return lambda loss, _: loss * factor


def _late_bias(size: float) -> Callable[[Values, np.random.Generator], Values]:
    """A bias that is there from the 100th step on."""
    return lambda loss, _: loss * (1 + size * np.clip(np.arange(len(loss)) / GROWTH, 0, 1))


def _drift(size: float) -> Callable[[Values, np.random.Generator], Values]:
    """Nothing in the first half, then a difference that grows to the end."""
    return lambda loss, _: loss * (1 + size * np.clip(2 * np.arange(len(loss)) / len(loss) - 1, 0, 1))


def _spikes(number: int) -> Callable[[Values, np.random.Generator], Values]:
    def change(loss: Values, random: np.random.Generator) -> Values:
        changed: Values = loss.copy()
        places = np.linspace(0.15, 0.95, number) * len(loss) + random.integers(0, 5, number)
        for place in places.astype(int):
            changed[place : place + 3] *= np.array([2.0, 1.6, 1.3])[: len(loss) - place]
        return changed

    return change


def _shifted(loss: Values, random: np.random.Generator) -> Values:
    """The batches of one step before; the course of training is that of the step."""
    batches = loss / course(len(loss))
    moved = np.concatenate(([1 + BATCH_NOISE * random.standard_normal()], batches[:-1]))
    return course(len(loss)) * moved


def _shuffled(loss: Values, random: np.random.Generator) -> Values:
    return course(len(loss)) * (1 + BATCH_NOISE * random.standard_normal(len(loss)))


def _diverging(loss: Values, random: np.random.Generator) -> Values:  # noqa: ARG001
    away = np.clip(np.arange(len(loss)) - 0.6 * len(loss), 0, None) / len(loss)
    return np.asarray(loss * np.exp(5 * away))


def _stalled(loss: Values, random: np.random.Generator) -> Values:  # noqa: ARG001
    still = course(len(loss))
    place = int(0.1 * len(loss))
    held = np.where(np.arange(len(loss)) < place, 1.0, still[place] / still)
    return np.asarray(loss * held)


def _lost(loss: Values, random: np.random.Generator) -> Values:
    changed: Values = loss.copy()
    changed[int(random.integers(len(loss) // 10, len(loss)))] = np.nan
    return changed


CASES = (
    Simulated("healthy device, 0.1 %", Right.PASS, _unchanged, 0.001),
    Simulated("healthy device, 0.4 %", Right.PASS, _unchanged, 0.004),
    Simulated("healthy device, 0.8 %", Right.PASS, _unchanged, 0.008),
    Simulated("first step +1 %", Right.FAIL, _first_step),
    Simulated("+0.3 % everywhere", Right.REMARK, _factor(1.003)),
    Simulated("+1 % everywhere", Right.FAIL, _factor(1.01)),
    Simulated("bias 0.3 %", Right.REMARK, _late_bias(0.003)),
    Simulated("bias 0.6 %", Right.FAIL, _late_bias(0.006)),
    Simulated("bias 1 %", Right.FAIL, _late_bias(0.01)),
    Simulated("bias 3 %", Right.FAIL, _late_bias(0.03)),
    Simulated("late drift to 1 %", Right.FAIL, _drift(0.01)),
    Simulated("late drift to 3 %", Right.FAIL, _drift(0.03)),
    Simulated("5 more spikes", Right.FAIL, _spikes(5)),
    Simulated("15 more spikes", Right.FAIL, _spikes(15)),
    Simulated("batches one step late", Right.FAIL, _shifted),
    Simulated("batches in another order", Right.FAIL, _shuffled),
    Simulated("runs away", Right.FAIL, _diverging),
    Simulated("stalls", Right.FAIL, _stalled),
    Simulated("one NaN", Right.FAIL, _lost),
)
"""The kinds of pairs, healthy ones first."""

BY_NAME: Mapping[str, Simulated] = {case.name: case for case in CASES}
