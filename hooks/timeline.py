"""One row for every step of the run, read from the device only when its numbers have arrived."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from align.capture_file import CaptureWriter
from align.records import TimelineRow

SECONDS_BETWEEN_WRITES = 1.0
UNKNOWN = math.nan


@dataclass(slots=True, eq=False)
class Number:
    """A number that may still be on its way from a device."""

    value: float = UNKNOWN
    host: torch.Tensor | None = None
    event: Any = None

    @property
    def ready(self) -> bool:
        """Whether reading it would not wait."""
        return self.event is None or bool(self.event.query())

    def read(self) -> float:
        """The number, waiting for its device if it must."""
        if self.host is not None:
            if self.event is not None:
                self.event.synchronize()
            self.value, self.host, self.event = float(self.host.float().mean()), None, None
        return self.value


def number_from(source: torch.Tensor | float | None) -> Number:
    """Take a Python number or a tensor's present value, without waiting for the tensor's device."""
    if source is None:
        return Number()
    if not isinstance(source, torch.Tensor):
        return Number(float(source))
    with torch.no_grad():
        value = source.detach()
        if value.device.type == "cpu":
            return Number(float(value.float().mean()))
        host = torch.empty(value.shape, dtype=value.dtype).pin_memory(value.device.type)
        host.copy_(value, non_blocking=True)
        event = getattr(torch, value.device.type).Event()
        event.record()
        return Number(host=host, event=event)


@dataclass(slots=True, eq=False)
class OpenRow:
    """The row of a step whose numbers are still being gathered."""

    step: int
    losses: list[Number] = field(default_factory=list)
    factors: list[object] = field(default_factory=list)
    learning_rate: Number = field(default_factory=Number)
    loss_scale: Number = field(default_factory=Number)
    loss_scale_after: Number = field(default_factory=Number)
    clip_norm: Number = field(default_factory=Number)
    clip_limit: Number = field(default_factory=Number)
    overflow: Number = field(default_factory=Number)
    found_inf: list[Number] = field(default_factory=list)
    gradient_norm: Callable[[], float] | None = None
    clips_l2: bool = False
    seconds: float = UNKNOWN
    skipped: bool = False
    micros: int = 0
    optimizers: list[str] = field(default_factory=list)

    @property
    def ready(self) -> bool:
        """Whether all numbers have arrived."""
        numbers = (
            *self.losses, self.learning_rate, self.loss_scale, self.loss_scale_after, self.clip_norm,
            self.clip_limit, self.overflow, *self.found_inf,
        )  # fmt: skip
        return all(number.ready for number in numbers)

    def finished(self) -> TimelineRow:
        """The row as the file keeps it."""
        losses = [number.read() for number in self.losses]
        found_inf = any(number.read() > 0 for number in self.found_inf)
        return TimelineRow(
            step=self.step,
            loss=self._loss(losses),
            learning_rate=self.learning_rate.read(),
            loss_scale=self.loss_scale.read(),
            gradient_norm=self.gradient_norm() if self.gradient_norm else self._norm_after_clipping(),
            seconds=self.seconds,
            skipped=self.skipped or found_inf,
            nonfinite=any(not math.isfinite(loss) for loss in losses),
            micros=self.micros,
            optimizer=", ".join(dict.fromkeys(self.optimizers)),
            loss_scale_after=self.loss_scale_after.read(),
            clip_norm=self.clip_norm.read(),
            clip_limit=self.clip_limit.read(),
            overflow=self.overflow.read() > 0,
        )

    def _loss(self, losses: list[float]) -> float:
        """The mean, or the sum where the script itself has divided each by how many there are."""
        if not losses:
            return UNKNOWN
        divided = [isinstance(factor, float) and math.isclose(factor * len(losses), 1.0) for factor in self.factors]
        return sum(losses) if divided and all(divided) else sum(losses) / len(losses)

    def _norm_after_clipping(self) -> float:
        """What torch leaves of a Euclidean norm: limit / (norm + 1e-6) of it, at most all."""
        if not self.clips_l2:
            return UNKNOWN
        norm, limit = self.clip_norm.read(), self.clip_limit.read()
        return norm * min(1.0, limit / (norm + 1e-6)) if math.isfinite(norm) else norm


class Timeline:
    """Gathers the rows and writes them about once a second."""

    def __init__(self, writer: CaptureWriter) -> None:
        self._writer = writer
        self._closed: list[OpenRow] = []
        self._last_write = time.monotonic()
        self._last_close: float | None = None
        self.row = OpenRow(0)

    def close_step(self) -> None:
        """The current step is over; begin the row of the next one. About once a second rows go to the file."""
        now = time.monotonic()
        if self._last_close is not None:
            self.row.seconds = now - self._last_close
        self._last_close = now
        self._closed.append(self.row)
        self.row = OpenRow(self.row.step + 1)
        if now - self._last_write >= SECONDS_BETWEEN_WRITES:
            self.write(wait=False)

    def write(self, *, wait: bool) -> None:
        """Bring the finished rows into the file; without `wait`, only those whose numbers have arrived."""
        self.append(wait=wait)
        self._writer.flush()

    def append(self, *, wait: bool) -> None:
        """The same, but readers see them with the next step or flush."""
        rows = []
        while self._closed and (wait or self._closed[0].ready):
            rows.append(self._closed.pop(0).finished())
        if rows:
            self._writer.append_timeline(rows)
        self._last_write = time.monotonic()
