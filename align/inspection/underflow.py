"""Gradients too small for float16: where they fade away in a step, and the loss scales that would fit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from align.fp16_range import FADING, FLOAT16, QUANTUM, SMALLEST_NORMAL, STARVED, error_of, is_zero
from align.inspection.view import RunView, StepView
from align.loss_scales import loss_scale_of
from align.records import Phase, TensorKey, TensorRecord, TimelineRow
from align.tolerance import is_float

LARGEST_EXPONENT = 15.99
"""log2 of the greatest float16 number, 65504."""
HEADROOM = 2
"""Doublings that a scale leaves to the greatest gradient (numerics)."""

FINE = 0.05
"""At a loss scale that works, no tensor's error is above this."""
ERROR_SHARE = 0.2
WARNING_SHARE = 0.05
"""Shares of the parameters whose gradients are made of starved ones (numerics: zeros above 20 % harm, 5 % warn)."""

FLUSH_ELEMENTS = 1000
"""Where so many elements lie in the octave above the subnormals, about as many lie below it."""

DUST = 1.5
"""Of a tensor whose greatest number is the smallest that there is, nothing but zeros and that one number is left."""

NO_SCALE = 2.0**-10
"""Below this loss scale the gradient of the loss itself can be 0 in float16 though the loss is not."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One float16 gradient: shares of zeros in it and of subnormals among the rest, its error, the scale it needs."""

    key: TensorKey
    zeros: float
    subnormals: float
    error: float
    largest: float
    needs: float

    @property
    def starved(self) -> bool:
        """Whether little of it is left."""
        return self.error >= STARVED


@dataclass(frozen=True, slots=True)
class Lost:
    """A parameter whose gradient is all 0, and the gradient it is made of, the last that is not 0."""

    key: TensorKey
    faded: TensorKey | None
    faded_error: float


@dataclass(frozen=True, slots=True)
class StepUnderflow:
    """The float16 gradients of one step in the order of the backward, and what was lost of the parameters'.

    `scale` is the loss scale, 1 for none. `starved` is the share of the parameters' elements whose gradients are made
    of starved ones. `lowest` and `highest` are the loss scales, powers of two, that these gradients would fit into;
    `lowest` above `highest`: none does.
    """

    step: int
    scale: float
    layers: tuple[Layer, ...]
    lost: tuple[Lost, ...]
    parameters: int
    starved: float
    lowest: float
    highest: float

    @property
    def worst(self) -> Layer:
        """The gradient with the greatest error."""
        return max(self.layers, key=lambda layer: layer.error)

    @property
    def harmful(self) -> bool:
        """Whether parameters lost their gradients, or many have a starved one."""
        return bool(self.lost) or self.starved >= ERROR_SHARE

    @property
    def notable(self) -> bool:
        """Whether some parameters have a starved gradient."""
        return self.harmful or self.starved >= WARNING_SHARE


@dataclass(frozen=True, slots=True)
class Underflow:
    """All captured steps that have float16 gradients and were not skipped; `flushes` says that no subnormal is left."""

    steps: tuple[StepUnderflow, ...]
    flushes: bool
    near_subnormal: int

    @property
    def worst(self) -> StepUnderflow | None:
        """The step with most lost gradients, then with most starved ones, then with the greatest error."""
        return max(self.steps, key=lambda step: (len(step.lost), step.starved, step.worst.error), default=None)


def underflow(view: RunView) -> Underflow:
    """Measure every captured step of a run."""
    rows = {row.step: row for row in view.timeline}
    steps = [view.step(number) for number in view.steps]
    near, subnormal = flushed_counts(record for step in steps for record in short_gradients(step))
    flushes = near >= FLUSH_ELEMENTS and subnormal == 0
    measured = (measure(step, rows.get(step.step), flushes=flushes) for step in steps)
    return Underflow(tuple(step for step in measured if step is not None), flushes, near)


def measure(step: StepView, row: TimelineRow | None, *, flushes: bool = False) -> StepUnderflow | None:
    """Measure one step; None without float16 gradients, and where something in them is not finite."""
    records = list(short_gradients(step))
    skipped = row is not None and (row.skipped or row.nonfinite)
    if not records or skipped or any(record.stats is not None and record.stats.nonfinite for record in records):
        return None
    scale = loss_scale_of(row)
    quantum = SMALLEST_NORMAL if flushes else QUANTUM
    layers = tuple(layer for record in records if (layer := layer_of(record, scale, quantum)) is not None)
    gradients = [record for record in step.by_phase[Phase.GRADIENT] if record.stats is not None]
    entering = _entering(step, quantum)
    lost = tuple(_lost(step, gradients, entering, row, quantum))
    total = sum(record.numel for record in gradients)
    starved = sum(record.numel for record in gradients if entering.get(record.key.name, (None, 0.0))[1] >= STARVED)
    if not layers and not lost:
        return None
    largest = max((record.stats.absolute_maximum for record in records if record.stats is not None), default=0.0)
    return StepUnderflow(
        step.step,
        scale,
        layers or (Layer(records[0].key, 1.0, 0.0, 1.0, 0.0, math.inf),),
        lost,
        len(gradients),
        starved / total if total else 0.0,
        max((layer.needs for layer in layers), default=math.nan),
        2.0 ** (math.floor(LARGEST_EXPONENT - math.log2(largest / scale)) - HEADROOM) if largest > 0.0 else math.nan,
    )


def short_gradients(step: StepView) -> Iterator[TensorRecord]:
    """The float16 gradients of a step, each tensor once."""
    for phase in (Phase.BACKWARD, Phase.GRADIENT):
        for record in step.by_phase[phase]:
            if record.dtype == FLOAT16 and record.same_as is None and record.stats is not None and record.numel:
                yield record


def flushed_counts(records: Iterable[TensorRecord]) -> tuple[int, int]:
    """How many elements lie in the octave above the subnormals, and how many are subnormal."""
    near = subnormal = 0
    for record in records:
        if record.exponents is not None and record.stats is not None:
            near += int(record.exponents[1])
            subnormal += record.stats.subnormals
    return near, subnormal


def layer_of(record: TensorRecord, scale: float, quantum: float = QUANTUM) -> Layer | None:
    """One gradient measured; None where too few of its elements are not 0."""
    error, stats = error_of(record, quantum), record.stats
    if error is None or stats is None:
        return None
    elements = stats.count - stats.zeros
    needs = 2.0 ** math.ceil(math.log2(scale * error / FINE))
    return Layer(
        record.key, stats.zeros / stats.count, stats.subnormals / elements, error, stats.absolute_maximum / scale, needs
    )


def _entering(step: StepView, quantum: float) -> Mapping[str, tuple[TensorRecord, float]]:
    """The gradient that enters each module, with its error (of zeros 0); of several calls the least."""
    found: dict[str, tuple[TensorRecord, float]] = {}
    for record in step.by_phase[Phase.BACKWARD]:
        if not record.key.slot.startswith("grad_output") or record.dtype != FLOAT16 or record.stats is None:
            continue
        error = error_of(record, quantum)
        if error is None:
            error = 0.0
        if record.key.name not in found or error < found[record.key.name][1]:
            found[record.key.name] = (record, error)
    return found


def _lost(
    step: StepView,
    gradients: Iterable[TensorRecord],
    entering: Mapping[str, tuple[TensorRecord, float]],
    row: TimelineRow | None,
    quantum: float,
) -> Iterator[Lost]:
    """The parameters whose gradients are all 0 because what they are made of faded away in float16."""
    zeros = [record for record in gradients if is_float(record.dtype) and is_zero(record)]
    if not zeros:
        return
    last, scale = _last_before_zeros(step, quantum), loss_scale_of(row)
    for record in zeros:
        source = entering.get(record.key.name)
        if source is None:
            continue
        faded, error = source
        if not is_zero(faded):
            if error >= FADING and _has_numbers(step, record.key.name):
                yield Lost(record.key, faded.key, error)
        elif last is not None:
            before, error = last
            if error >= FADING and before.order < faded.order:
                yield Lost(record.key, before.key, error)
        elif scale <= NO_SCALE and row is not None and math.isfinite(row.loss) and row.loss != 0.0:
            yield Lost(record.key, None, 1.0)


def _last_before_zeros(step: StepView, quantum: float) -> tuple[TensorRecord, float] | None:
    """The last float16 gradient with numbers before the first of zeros, with its error; None where all are zeros."""
    last: TensorRecord | None = None
    for record in step.by_phase[Phase.BACKWARD]:
        if record.dtype != FLOAT16 or record.stats is None or not record.numel:
            continue
        if is_zero(record):
            break
        last = record
    if last is None:
        return None
    error = error_of(last, quantum)
    if error is None:
        error = 1.0 if quantum == QUANTUM and _is_dust(last) else 0.0
    return last, error


def _is_dust(record: TensorRecord) -> bool:
    """Whether the greatest element is the smallest number that there is, so that nothing finer can be left of it."""
    return record.stats is not None and 0.0 < record.stats.absolute_maximum <= DUST * QUANTUM


def _has_numbers(step: StepView, name: str) -> bool:
    """Whether anything but 0 has entered a module: of an input of zeros its weight has a gradient of zeros."""
    inputs = [
        record
        for record in step.by_phase[Phase.FORWARD]
        if record.key.name == name and record.key.slot.startswith("input")
    ]
    return not inputs or any(not is_zero(record) for record in inputs)
