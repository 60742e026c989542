"""AL703: what the rates of one run are to those of the other."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from align.records import TimelineRow
from align.schedules import ScheduleKind, schedule_between


def rows(rate: Callable[[int], float], steps: int = 20) -> list[TimelineRow]:
    return [TimelineRow(step, 1.0, rate(step), math.nan, 1.0, 0.1, False, False, 1, "SGD") for step in range(steps)]


def falling(step: float) -> float:
    return max(0.0, 0.1 * (1.0 - step / 64.0))


def cosine(step: float) -> float:
    return 0.05 * (1.0 + math.cos(math.pi * step / 64.0))


@pytest.mark.parametrize("schedule", [falling, cosine])
@pytest.mark.parametrize(
    ("change", "kind", "number"),
    [
        (lambda rate: lambda step: rate(4 * step), ScheduleKind.FASTER, 4),
        (lambda rate: lambda step: rate(step / 2), ScheduleKind.SLOWER, 2),
        (lambda rate: lambda step: 8 * rate(step), ScheduleKind.TIMES, 8),
        (lambda rate: lambda step: rate(step + 1), ScheduleKind.SHIFTED, 1),
        (lambda rate: lambda step: rate(max(step - 2, -2)), ScheduleKind.SHIFTED, -2),
    ],
)
def test_the_relation_is_found(
    schedule: Callable[[float], float],
    change: Callable[[Callable[[float], float]], Callable[[float], float]],
    kind: ScheduleKind,
    number: float,
) -> None:
    found = schedule_between(rows(schedule), rows(change(schedule)))
    assert found is not None
    assert found.kind is kind
    assert found.number == pytest.approx(number)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (falling, falling),
        (falling, cosine),
        (falling, lambda step: falling(step) * (1.0 + step / 7.0)),
        (falling, lambda step: falling(4 * step) * (1.001 if step == 3 else 1.0)),
    ],
    ids=["equal", "another form", "drifting", "but for one step"],
)
def test_other_schedules_have_none(ours: Callable[[int], float], theirs: Callable[[int], float]) -> None:
    assert schedule_between(rows(ours), rows(theirs)) is None


def test_few_steps_tell_nothing() -> None:
    assert schedule_between(rows(falling, 2), rows(lambda step: falling(4 * step), 2)) is None


def test_constant_rates_are_a_factor_and_no_pace() -> None:
    found = schedule_between(rows(lambda _: 0.1), rows(lambda _: 0.2))
    assert found is not None
    assert (found.kind, found.steps) == (ScheduleKind.TIMES, 20)
    assert found.number == pytest.approx(2.0)
