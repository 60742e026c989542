"""Two tensors read in blocks, side by side: their sums, where they differ, which formats lie between them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from align.relations.both import Compared, Numbers, Values
from align.relations.formats import FORMATS, Shortening, cut_off, rounded, unit_of
from align.relations.multisets import hashes_of_codes, place_weights, value_codes
from align.relations.relation import Basis
from align.relations.sources import ELEMENTS, Summary, TensorSource, pieces
from align.relations.sums import Sums, sums_of

INDICES = 16


class Streamed(Compared):
    """Two tensors of one shape after one pass over both."""

    basis = Basis.BLOCKS

    def __init__(
        self, sources: tuple[TensorSource, TensorSource], summaries: tuple[Summary, Summary], noise: float
    ) -> None:
        super().__init__((summaries[0].contents, summaries[1].contents), noise)
        self.sources = sources
        self.summaries = summaries
        self._sums = Sums()
        self.other_classes = 0
        self.differing = 0
        self.first: list[int] = []
        self.last = -1
        self.by_slice = [np.zeros(length) for length in sources[0].shape]
        self.formats = _shortenings(self.contents[0].dtype, self.contents[1].dtype)
        if self.same_shape:
            self._pass()

    @property
    def sums(self) -> Sums:
        """The sums over the elements that are finite on both sides."""
        return self._sums

    @cached_property
    def samples(self) -> tuple[Numbers, Numbers]:
        """Sorted samples of both."""
        ours, theirs = (np.sort(each.sample[np.isfinite(each.sample)]) for each in self.summaries)
        return ours, theirs

    def sums_with(self, earlier: TensorSource) -> Sums:
        """The sums of an earlier tensor and the candidate's: one more pass over the candidate."""
        total = Sums()
        for ours, theirs in zip(pieces(earlier), pieces(self.sources[1]), strict=True):
            mine, others = (each.numbers.astype(np.float64).reshape(-1) for each in (ours, theirs))
            good = np.isfinite(mine) & np.isfinite(others)
            total += sums_of(mine[good], others[good])
        return total

    def slice_hashes(self, short: str) -> tuple[list[NDArray[np.uint64]], list[NDArray[np.uint64]]]:
        """The hashes of all slices of both, one pass over each; rounded to the format `short` if it is not empty."""
        ours, theirs = (_slice_hashes(source, short) for source in self.sources)
        return ours, theirs

    def _pass(self) -> None:
        for box, (raw_ours, raw_theirs) in _boxes(self.sources):
            good = np.isfinite(raw_ours) & np.isfinite(raw_theirs)
            if not good.all():
                self.other_classes += int(np.count_nonzero(_classes(raw_ours) != _classes(raw_theirs)))
            self._sums += sums_of(raw_ours[good], raw_theirs[good])
            ours, theirs = (np.where(good, each, 0.0) for each in (raw_ours, raw_theirs))
            difference = theirs - ours
            self._where(box.start, difference)
            self.formats = [each for each in self.formats if _fits(ours, theirs, each)]
            squares = np.square(difference).reshape(box.shape)
            for dimension, (first, length) in enumerate(zip(box.corner, box.shape, strict=True)):
                others = tuple(other for other in range(squares.ndim) if other != dimension)
                self.by_slice[dimension][first : first + length] += squares.sum(axis=others)

    def _where(self, start: int, difference: Numbers) -> None:
        places = np.flatnonzero(difference)
        if places.size:
            self.differing += int(places.size)
            self.first += [start + int(place) for place in places[: INDICES - len(self.first)]]
            self.last = start + int(places[-1])


class _Box:
    """A part of a tensor that is contiguous in row-major order and has a shape of its own."""

    def __init__(self, start: int, corner: tuple[int, ...], shape: tuple[int, ...]) -> None:
        self.start = start
        self.corner = corner
        self.shape = shape
        self.stop = start + math.prod(shape)


def boxes(shape: tuple[int, ...], elements: int = ELEMENTS) -> Iterator[_Box]:
    """A tensor cut into boxes of at most so many elements, each contiguous."""
    cut = next((place for place in range(len(shape)) if math.prod(shape[place + 1 :]) <= elements), 0)
    if not shape or math.prod(shape) == 0:
        if not shape:
            yield _Box(0, (), ())
        return
    rest = shape[cut + 1 :]
    size = math.prod(rest)
    step = max(elements // size, 1)
    start = 0
    for lead in np.ndindex(*shape[:cut]):
        for first in range(0, shape[cut], step):
            length = min(step, shape[cut] - first)
            corner = (*(int(place) for place in lead), first, *(0 for _ in rest))
            yield _Box(start, corner, (*(1 for _ in lead), length, *rest))
            start += length * size


def _boxes(sources: tuple[TensorSource, TensorSource]) -> Iterator[tuple[_Box, tuple[Numbers, Numbers]]]:
    for box in boxes(sources[0].shape):
        ours, theirs = (_numbers(source, box) for source in sources)
        yield box, (ours, theirs)


def _numbers(source: TensorSource, box: _Box) -> Numbers:
    raw = source.read(box.start, box.stop)
    return Values(raw, source.dtype).numbers().astype(np.float64)


def _slice_hashes(source: TensorSource, short: str) -> list[NDArray[np.uint64]]:
    totals = [np.zeros(length, dtype=np.uint64) for length in source.shape]
    for box in boxes(source.shape):
        numbers = _numbers(source, box)
        codes = value_codes(rounded(numbers, FORMATS[short]) if short else numbers).reshape(box.shape)
        weights = [place_weights(length, first) for first, length in zip(box.corner, box.shape, strict=True)]
        for total, first, found in zip(totals, box.corner, hashes_of_codes(codes, weights), strict=True):
            total[first : first + found.size] += found
    return totals


def _shortenings(ours: str, theirs: str) -> list[Shortening]:
    """Every format and way that may lie between both, those of the coarser dtype first; none for integers."""
    if 0.0 in {unit_of(ours), unit_of(theirs)}:
        return []
    order = sorted((ours, theirs), key=unit_of, reverse=True)
    names = dict.fromkeys([*(name for name in order if name in FORMATS), *FORMATS])
    return [Shortening(name, short, cut) for name in names for cut in (False, True) for short in (True, False)]


def _fits(ours: Numbers, theirs: Numbers, way: Shortening) -> bool:
    full, short = (ours, theirs) if way.candidate_short else (theirs, ours)
    change = cut_off if way.cut else rounded
    step = max(full.size // 256, 1)
    return all(np.array_equal(change(full[::each], FORMATS[way.name]), short[::each]) for each in (step, 1))


def _classes(numbers: Numbers) -> NDArray[np.int8]:
    found = np.isnan(numbers).astype(np.int8)
    found[np.isposinf(numbers)] = 2
    found[np.isneginf(numbers)] = 3
    return found
