"""What a record may have inherited: of the size of the differences before it, of each aspect, of measured floors."""

from __future__ import annotations

import math
from dataclasses import replace

from align import aspects, floors, flow, metrics
from align.ahead import Ahead
from align.aspects import Structure
from align.expectation import Expectation, Surroundings
from align.flow import Flow, width_of
from align.pairing import Pair
from align.records import Aspect
from align.tolerance import Precision

MOST_SAMPLES = 128
"""Over 310 healthy steps a loss differed by at most 0.66 of the outputs' error over the root of their number of rows;
rows may have more in common in larger batches."""


class Inheritance:
    """The differences of one step so far: their size, each aspect, and how far they were above measured floors.

    `with_multiples` says that floors were measured. The very same tensors at another point differ by as
    much, and are measured once.
    """

    def __init__(self, around: Surroundings, *, with_multiples: bool) -> None:
        self.around = around
        self._common, self._peaks = (replace(around, flow=Flow(around.flow.carried)) for _ in range(2))
        self._multiples = replace(around, flow=Flow()) if with_multiples else None
        self._errors: dict[tuple[int, int], float] = {}
        self._structures: dict[tuple[int, int], Structure | None] = {}

    def look_ahead(self, ahead: Ahead) -> None:
        """Take what later records tell."""
        for around in (self.around, self._common, self._peaks, self._multiples):
            if around is not None:
                around.flow.ahead = ahead

    def error(self, pair: Pair, scale: float) -> float | None:
        """The relative L2 difference of a pair."""
        source = _sources(pair)
        if source is not None and source in self._errors:
            return self._errors[source]
        return metrics.relative_l2(pair, scale)

    def structure(self, pair: Pair, error: float, scale: float) -> Structure | None:
        """The aspects of a pair's difference."""
        source = _sources(pair)
        if source is not None and source in self._structures:
            return self._structures[source]
        return aspects.structure(pair, error, scale) if error > 0.0 else Structure()

    def of_size(self, pair: Pair, expected: Expectation) -> float:
        """The error already there; of a tensor that was seen before, on both sides, all of it."""
        source = _sources(pair)
        if source is None or source not in self._errors:
            return expected.error
        return max(expected.error, self._errors[source])

    def of_loss(self, pair: Pair, expected: Expectation, precision: Precision) -> float:
        """The error that a loss inherits: a mean over samples averages noise out, and keeps what they have in common.

        It may be computed in the `precision` of the outputs, whatever its own dtype. Without samples that were seen, or
        where the aspects of their differences are not known, it is all of it.
        """
        sources = self.around.flow.caller(pair.reference).sources
        if not sources:
            return expected.error
        last = sources[-1]
        samples = min(max(last.numel // width_of(last.shape), 1), MOST_SAMPLES)
        common = floors.expect(pair.reference, self._common).error
        noise = max(expected.error, precision.unit) / math.sqrt(samples)
        return max(noise, min(common, expected.error))

    def of_aspect(self, pair: Pair, aspect: Aspect) -> float:
        """The same of one aspect."""
        around = self._peaks if aspect is Aspect.PEAK else self._common
        error = floors.expect(pair.reference, around).error
        source = _sources(pair)
        known = self._structures.get(source) if source is not None else None
        return max(error, known.handed_on(aspect)) if known is not None else error

    def of_multiple(self, pair: Pair) -> float:
        """How far what the record is made from was above its measured floor, at most."""
        return floors.expect(pair.reference, self._multiples).error if self._multiples is not None else 0.0

    def learn(
        self, pair: Pair, error: float, structure: Structure | None = None, multiple: float | None = None
    ) -> None:
        """Add a record; where the aspects of its difference are not known, each may be all of it.

        `multiple` is the difference over the measured floor.
        """
        orders = (pair.reference.order, pair.candidate.order)
        self._errors[orders], self._structures[orders] = error, structure
        flow.learn(self.around.flow, pair, error)
        for aspect, around in ((Aspect.SCALE, self._common), (Aspect.PEAK, self._peaks)):
            flow.learn(around.flow, pair, error if structure is None else structure.handed_on(aspect))
        if self._multiples is not None:
            unknown = math.inf if math.isinf(error) else 0.0
            flow.learn(self._multiples.flow, pair, unknown if multiple is None else multiple)


def _sources(pair: Pair) -> tuple[int, int] | None:
    ours, theirs = pair.reference.same_as, pair.candidate.same_as
    return None if ours is None or theirs is None else (ours, theirs)
