"""Timelines of loss scales and float16 gradients as captures hold them, for the tests of the rules on loss scales."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from align.commands import inspect_files
from align.records import Fact, FactValue, Finding, InspectResult, Phase, TensorKey, TensorRecord, TimelineRow
from tests.builders import Array, record_of, write_capture

SCALER = "GradScaler"
SMALLEST_NORMAL = 2.0**-14


@dataclass(frozen=True)
class Scaler:
    """A gradient scaler as torch's: what it does to its scale over steps of which some overflow."""

    start: float = 65536.0
    growth_interval: int = 2000
    growth_factor: float = 2.0
    backoff_factor: float = 0.5

    def rows(
        self, steps: int, overflows: Collection[int] = (), *, nonfinite: Collection[int] = ()
    ) -> list[TimelineRow]:
        """The timeline; `nonfinite` are the steps whose loss itself is not finite."""
        found, scale, good = [], self.start, 0
        for step in range(steps):
            skipped = step in overflows
            after, good = (scale * self.backoff_factor, 0) if skipped else (scale, good + 1)
            if good == self.growth_interval:
                after, good = scale * self.growth_factor, 0
            found.append(row(step, scale, after, skipped=skipped, nonfinite=step in nonfinite))
            scale = after
        return found

    def facts(self, step: int, **more: FactValue) -> list[Fact]:
        """The settings as a captured step tells them, and what else is given."""
        settings = {
            "growth_interval": self.growth_interval,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
        }
        return [fact(step, Phase.SCALER, SCALER, slot, value) for slot, value in {**settings, **more}.items()]


def row(
    step: int, scale: float, after: float = math.nan, *, skipped: bool = False, nonfinite: bool = False, **more: Any
) -> TimelineRow:
    """One step of a timeline."""
    loss = math.nan if nonfinite else 1.0
    given = TimelineRow(step, loss, 1e-3, scale, math.nan, 0.1, skipped, nonfinite, 1, "Adam", loss_scale_after=after)
    return replace(given, **more)


def fact(step: int, phase: Phase, name: str, slot: str, value: FactValue, call: int = 0) -> Fact:
    """One fact of a step."""
    return Fact(TensorKey(step, phase, name, slot, call=call), value)


def half(step: int, name: str, slot: str, array: Array, phase: Phase = Phase.BACKWARD, **more: Any) -> TensorRecord:
    """The record of a gradient in float16, with what the capture counts in it; a device may flush (`flush`)."""
    with np.errstate(over="ignore"):
        short = array.astype(np.float16)
    if more.pop("flush", False):
        short = np.where(np.abs(short.astype(np.float64)) < SMALLEST_NORMAL, np.float16(0.0), short)
    size = np.abs(short.astype(np.float64))
    record = record_of(TensorKey(step, phase, name, slot), short, **more)
    assert record.stats is not None
    subnormals = int(np.count_nonzero((size > 0.0) & (size < SMALLEST_NORMAL)))
    codes = (np.ascontiguousarray(short).view(np.uint16) >> 10) & 31
    counts = np.bincount(codes.reshape(-1), minlength=32).astype(np.int64)
    return replace(record, stats=replace(record.stats, subnormals=subnormals), exponents=counts)


def single(step: int, phase: Phase, name: str, slot: str, array: Array) -> TensorRecord:
    """The record of a tensor in float32."""
    return record_of(TensorKey(step, phase, name, slot), array.astype(np.float32))


def inspected(
    path: Path,
    timeline: Sequence[TimelineRow],
    steps: Mapping[int, Sequence[TensorRecord]] | None = None,
    facts: Mapping[int, Sequence[Fact]] | None = None,
) -> InspectResult:
    """Write a capture and inspect it as `align inspect` does; steps with facts and no records get one."""
    filled = {step: list((steps or {}).get(step, ())) for step in sorted({*(steps or {}), *(facts or {})})}
    for step, records in filled.items():
        if not records:
            records.append(single(step, Phase.LOSS, "loss", "value", np.ones(())))
    write_capture(path, filled, timeline=timeline, facts=facts)
    return inspect_files(str(path))


def told(result: InspectResult, *labels: str) -> list[Finding]:
    """The findings of these labels."""
    return [finding for finding in result.findings if finding.label in labels]


def replies(result: InspectResult) -> dict[str, tuple[str, str]]:
    """State and sentence of each question."""
    return {reply.question: (str(reply.state), reply.sentence) for reply in result.replies}


def labels(findings: Iterable[Finding]) -> list[tuple[str, str]]:
    """Label and severity of each finding."""
    return [(finding.label, str(finding.severity)) for finding in findings]
