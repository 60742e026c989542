"""Two tensors in memory, made ready to be related: as numbers, with what is not finite set aside, and their sums."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from align.hashing import hash_bytes
from align.relations.draws import FEWEST, Spread, initial_look, sample_of
from align.relations.formats import FORMATS, rounded, unit_of
from align.relations.multisets import multiset_hash, slice_hashes
from align.relations.relation import Basis, Contents, Factor, Relation, RelationKind
from align.relations.sums import Sums, sums_of
from align.value_types import as_numbers

Numbers = NDArray[np.float64]

ARITHMETIC = 1e-7
"""Residuals below are those of our own float64 sums."""

SIMPLE_RESIDUAL = 0.05

MOST_LEFT, MOST_LEFT_OF_FEW = 0.5, 0.2
"""However noisy a tensor is, an explanation leaves no more: of 4 random numbers a factor leaves less than a half in one
of 15 draws, less than a fifth in one of 200."""

NOISE_OF_PAIR = 2.5
"""A residual may be so many times the calibrated noise: that of a healthy pair varies from pair to pair."""


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """An array with torch's name of its dtype; bfloat16 and float8 as bits (`align.value_types`) or as exact floats."""

    array: NDArray[Any]
    dtype: str = ""

    @property
    def name(self) -> str:
        """Torch's name of the dtype, that of the array where none was given."""
        return self.dtype or str(self.array.dtype)

    def numbers(self) -> NDArray[Any]:
        """The values as numpy numbers; a complex number is its two parts along one more dimension."""
        found = np.asarray(self.array if self.array.dtype.kind == "f" else as_numbers(self.array, self.name))
        if found.dtype.kind == "c":
            return np.stack([found.real, found.imag], axis=-1)
        return found


def contents_of_values(values: Values) -> Contents:
    """One tensor by itself: statistics, order-blind hash, the default initialisation it looks like."""
    numbers = values.numbers()
    wide = numbers.astype(np.float64)
    finite = wide[np.isfinite(wide)]
    contents = Contents(
        values.name,
        values.array.shape,
        *_moments(finite),
        zeros=int(np.count_nonzero(finite == 0.0)),
        nonfinite=int(wide.size - finite.size),
        multiset=multiset_hash(numbers),
        hash=hash_bytes(values.array),
    )
    spread = Spread(finite.size, contents.minimum, contents.maximum, contents.mean, contents.deviation)
    look = "" if contents.nonfinite else initial_look(spread, numbers.shape, sample_of(wide), unit_of(values.name))
    return replace(contents, initial=look)


def _moments(finite: Numbers) -> tuple[float, float, float, float, float]:
    """Minimum, maximum, mean, standard deviation, norm."""
    if not finite.size:
        return 0.0, 0.0, 0.0, 0.0, 0.0
    return (
        float(finite.min()),
        float(finite.max()),
        float(finite.mean()),
        float(finite.std()),
        float(np.sqrt(finite @ finite)),
    )


def simple(noise: float, before: float) -> float:
    """What a simple explanation may leave of a noisy difference (telling.SIMPLE_RESIDUAL)."""
    return min(SIMPLE_RESIDUAL, before / 10.0) if noise > 0.0 else 0.0


class Compared:
    """What the steps ask of two tensors, however many of their values are in memory."""

    basis = Basis.VALUES

    def __init__(self, contents: tuple[Contents, Contents], noise: float) -> None:
        self.contents = contents
        self.noise = noise
        self.unit = max(unit_of(each.dtype) for each in contents)

    @property
    def sums(self) -> Sums:
        """The sums over the elements that are finite on both sides."""
        raise NotImplementedError

    @property
    def samples(self) -> tuple[Numbers, Numbers]:
        """Sorted samples of both."""
        raise NotImplementedError

    @property
    def same_shape(self) -> bool:
        """Whether both have one shape."""
        return self.contents[0].shape == self.contents[1].shape

    @property
    def tolerance(self) -> float:
        """Up to this relative L2 a difference is noise (four times the calibrated noise)."""
        return max(4.0 * self.noise, 1e-12)

    def fits(self, residual: float, before: float) -> bool:
        """Whether this is all that noise and rounding leave of an explanation that holds.

        Both relative to the candidate's norm; `before` is the difference without the explanation. Where there is noise,
        a simple explanation may also leave 5 % of the tensor and a tenth of the difference.
        """
        allowed = max(NOISE_OF_PAIR * self.noise, 2.0 * self.unit, ARITHMETIC)
        most = MOST_LEFT if self.sums.count >= FEWEST else MOST_LEFT_OF_FEW
        return residual <= min(max(allowed, simple(self.noise, before)), most)

    def answer(self, kind: RelationKind, **more: Any) -> Relation:
        """A relation of this kind, with what is known of every pair of one shape."""
        if not self.same_shape:
            return Relation(kind, self.basis, *self.contents, noise=self.noise, **more)
        sums = self.sums
        facts = {
            "relative_l2": sums.relative_l2,
            "residual": sums.relative_l2,
            "correlation": sums.correlation,
            "factor": Factor(sums.factor) if sums.ours_squared > 0.0 and sums.theirs_squared > 0.0 else None,
        }
        return Relation(kind, self.basis, *self.contents, noise=self.noise, **{**facts, **more})


class Both(Compared):
    """Two tensors in memory; everything costly is made when it is first asked for."""

    def __init__(self, reference: Values, candidate: Values, noise: float) -> None:
        super().__init__((contents_of_values(reference), contents_of_values(candidate)), noise)
        self.values = (reference, candidate)

    @cached_property
    def numbers(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Both as numpy numbers in their shapes."""
        return self.values[0].numbers(), self.values[1].numbers()

    @cached_property
    def wide(self) -> tuple[Numbers, Numbers]:
        """Both as float64 in their shapes; what is not finite on either side is 0 on both."""
        ours, theirs = (each.astype(np.float64) for each in self.numbers)
        bad = ~(np.isfinite(ours) & np.isfinite(theirs))
        if bad.any():
            ours[bad] = theirs[bad] = 0.0
        return ours, theirs

    @cached_property
    def flat(self) -> tuple[Numbers, Numbers]:
        """The numbers that are finite on both sides, in row-major order."""
        ours, theirs = (each.astype(np.float64).reshape(-1) for each in self.numbers)
        good = np.isfinite(ours) & np.isfinite(theirs)
        return (ours, theirs) if good.all() else (ours[good], theirs[good])

    @cached_property
    def sums(self) -> Sums:
        """The sums over `flat`."""
        return sums_of(*self.flat)

    @cached_property
    def samples(self) -> tuple[Numbers, Numbers]:
        """Sorted samples of both."""
        return sample_of(self.flat[0]), sample_of(self.flat[1])

    @cached_property
    def levelled(self) -> tuple[NDArray[Any], NDArray[Any], str]:
        """Both as numbers of the coarser dtype, and its name where one had to be rounded to it."""
        ours, theirs = self.numbers
        names = [each.name for each in self.values]
        short = max(names, key=unit_of)
        if names[0] == names[1] or short not in FORMATS or 0.0 in map(unit_of, names):
            return ours, theirs, ""
        coarse = FORMATS[short]
        return rounded(ours.astype(np.float64), coarse), rounded(theirs.astype(np.float64), coarse), short

    @cached_property
    def same_values(self) -> bool:
        """Whether both hold the same values, in any order, once they are of one dtype."""
        if self.levelled[2]:
            return multiset_hash(self.levelled[0]) == multiset_hash(self.levelled[1])
        return self.contents[0].multiset == self.contents[1].multiset

    @cached_property
    def slice_hashes(self) -> tuple[list[NDArray[np.uint64]], list[NDArray[np.uint64]]]:
        """The hashes of all slices of both, once they are of one dtype."""
        return slice_hashes(self.levelled[0]), slice_hashes(self.levelled[1])
