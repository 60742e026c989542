"""Which module of one run is which module of another where their names differ.

Names that are equal are pairs. Where a module holds numbered modules and the runs have other numbers of them (one more
layer in a Sequential), those are aligned first, by what is in them. What then has no partner is aligned in the order
in which the modules ran, by how alike they are; names that are equal below modules that are pairs come first.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from align.matching.alignment import FORBIDDEN, MOST_CELLS, Matrix, align_sequences, equal, likeness
from align.matching.likeness import likenesses, scores_of, start_alike, words_of
from align.matching.looks import Look, Looks
from align.matching.rules import is_root

SMALLEST_GAIN = 0.5
"""Two modules are a possible pair where more speaks for it than against it."""
SMALLEST_CONFIDENCE = 0.7
"""A pair below it is not taken: its modules stay alone, and --map can pair them."""
CLEAR_MARGIN = 0.1
"""A pair is unambiguous where the best alignment without it is worse by so much of a score."""
SAME_CHILDREN = 0.9
FEWEST_CHILDREN = 2
"""Modules are a pair where so large a share of the children of both, and so many, are pairs of each other."""
ENDS = (0, 1)
"""The first and the last call of each module."""


class Method:
    """Why two names are a pair."""

    RULE = "rule"
    ROOT = "root"
    ALIGNED = "aligned"


@dataclass(frozen=True, slots=True)
class NameMatch:
    """Two names that are a pair though they are not equal; `by` are the likenesses that speak for it."""

    reference: str
    candidate: str
    method: str
    confidence: float = 1.0
    by: tuple[str, ...] = ()


class NameAligner:
    """The names of two runs while they are being paired; `matches` are those found so far, by the reference's name."""

    def __init__(self, ours: Looks, theirs: Looks, given: Sequence[NameMatch] = ()) -> None:
        self.ours, self.theirs = ours, theirs
        self.matches = {match.reference: match for match in given}
        self._taken = {match.candidate for match in given}
        self._trees = tuple(_tree(looks.by_name) for looks in (ours, theirs))
        self._orders = tuple(tuple(looks.ordered(end) for end in ENDS) for looks in (ours, theirs))
        self._starts_alike = start_alike(ours, theirs)
        self.too_many = False

    def run(self) -> dict[str, NameMatch]:
        """Pair all that can be: equal names, numbered modules, lone roots, then the rest by their likeness."""
        self._descend("", "")
        self._pair_lone_roots()
        self._pair_by_weights()
        self._pair_by_children()
        self._align_rest()
        self._pair_by_children()
        if self._starts_alike:
            self._align_changed()
        return self.matches

    def _take(self, ours: str, theirs: str, confidence: float = 1.0, by: tuple[str, ...] = ()) -> None:
        if ours in self.matches or theirs in self._taken:
            return
        alike = ours == theirs
        self.matches[ours] = (
            NameMatch(ours, theirs, "") if alike else NameMatch(ours, theirs, Method.ALIGNED, confidence, by)
        )
        self._taken.add(theirs)

    # Equal names, and numbered modules

    def _descend(self, ours: str, theirs: str, confidence: float = 1.0) -> None:
        """Pair what stands below two places of the trees of names."""
        left, right = self._trees[0].get(ours, {}), self._trees[1].get(theirs, {})
        for one, other, sure in self._children(ours, theirs):
            name, answer = left[one], right[other]
            surest = min(confidence, sure)
            if name in self.ours.by_name and answer in self.theirs.by_name:
                self._take(name, answer, surest, ("order", "class", "parameter shapes"))
            self._descend(name, answer, surest)

    def _children(self, ours: str, theirs: str) -> Iterator[tuple[str, str, float]]:
        left, right = self._trees[0].get(ours, {}), self._trees[1].get(theirs, {})
        numbers = [[part for part in side if part.isdecimal()] for side in (left, right)]
        shifted = bool(numbers[0] and numbers[1]) and set(numbers[0]) != set(numbers[1])
        for part in left:
            if part in right and not (shifted and part.isdecimal()):
                yield part, part, 1.0
        if shifted:
            yield from self._numbered(ours, theirs, numbers)

    def _numbered(self, ours: str, theirs: str, numbers: Sequence[list[str]]) -> Iterator[tuple[str, str, float]]:
        """Align the numbered modules of two places by what is in them."""
        sides = [sorted(side, key=int) for side in numbers]
        contents = [
            [self._content(side, f"{place}.{number}".removeprefix(".")) for number in sides[side]]
            for side, place in enumerate((ours, theirs))
        ]
        gains = np.array([[_numbered_gain(one, other) for other in contents[1]] for one in contents[0]])
        same = equal(sides[0], sides[1])
        if self._starts_alike:
            strangers = np.array([[one.is_stranger(other) for other in contents[1]] for one in contents[0]])
            gains[strangers & (same == 0.0)] = FORBIDDEN
        # Of several that fit as well the one of the same number.
        gains += 1e-3 * same
        for row, column, margin in align_sequences(gains):
            sure = 0.5 + 0.5 * min(1.0, margin / CLEAR_MARGIN)
            if sides[0][row] == sides[1][column] or sure >= SMALLEST_CONFIDENCE:
                yield sides[0][row], sides[1][column], sure

    def _content(self, side: int, place: str) -> _Content:
        looks = (self.ours, self.theirs)[side].by_name
        shapes: set[tuple[object, ...]] = set()
        weights: set[tuple[str, int]] = set()
        waiting = [place]
        while waiting:
            name = waiting.pop()
            waiting += self._trees[side].get(name, {}).values()
            look = looks.get(name)
            if look is not None:
                shapes.add((name[len(place) :], look.class_name, look.shapes))
                weights.update((name[len(place) :], digest) for digest in look.weights)
        return _Content(frozenset(shapes), frozenset(weights))

    # Roots

    def _pair_lone_roots(self) -> None:
        """Pair the only unpaired root of each side, unless a module looks more like it than the other root does."""
        ours, theirs = ([name for name in side if is_root(name)] for side in self._free())
        if len(ours) != 1 or len(theirs) != 1:
            return
        looks = self.ours.by_name[ours[0]], self.theirs.by_name[theirs[0]]
        others = [
            self.theirs.by_name[name].class_name == looks[0].class_name for name in self._free()[1] if name != theirs[0]
        ] + [self.ours.by_name[name].class_name == looks[1].class_name for name in self._free()[0] if name != ours[0]]
        if any(others) and looks[0].class_name != looks[1].class_name:
            return
        self.matches[ours[0]] = NameMatch(ours[0], theirs[0], Method.ROOT, 1.0, ("place",))
        self._taken.add(theirs[0])
        self._descend(ours[0], theirs[0])

    def _free(self) -> tuple[list[str], list[str]]:
        """The names without a partner."""
        return (
            [name for name in self.ours.by_name if name not in self.matches],
            [name for name in self.theirs.by_name if name not in self._taken],
        )

    # By likeness

    def _align_rest(self) -> None:
        ours, theirs = self._free()
        if not ours or not theirs:
            return
        if len(ours) * len(theirs) > MOST_CELLS:
            self.too_many = True
            return
        known = self._partners()
        first = {match.reference: match.candidate for match in self._aligned(known)}
        self._pair_children({**first, **known})
        for _ in range(2):
            for match in self._aligned({**first, **self._partners()}):
                self._take(match.reference, match.candidate, match.confidence, match.by)
        self._pair_children(self._partners())

    def _align_changed(self) -> None:
        """Pair what has the place of another module though it starts from other weights: they may be wrong."""
        self._starts_alike = False
        partners = self._partners()
        for match in self._aligned(partners) if not self.too_many else ():
            if "parent" in match.by:
                self._take(match.reference, match.candidate, match.confidence, match.by)

    def _partners(self) -> dict[str, str]:
        return {name: match.candidate for name, match in self.matches.items()}

    def _aligned(self, parents: Mapping[str, str]) -> list[NameMatch]:
        """The confident pairs of the best alignment, in the order of the first or of the last calls."""
        best: tuple[float, list[NameMatch]] = (0.0, [])
        for end in ENDS:
            ours = [name for name in self._orders[0][end] if name not in self.matches]
            theirs = [name for name in self._orders[1][end] if name not in self._taken]
            if not ours or not theirs:
                return []
            total, found = self._aligned_at(end, ours, theirs, parents)
            if total > best[0] + CLEAR_MARGIN:
                best = (total, found)
        return best[1]

    def _aligned_at(
        self, end: int, ours: Sequence[str], theirs: Sequence[str], parents: Mapping[str, str]
    ) -> tuple[float, list[NameMatch]]:
        scores, reasons = self._scores(ours, theirs, parents, end)
        total, found = 0.0, []
        for row, column, margin in align_sequences(scores - SMALLEST_GAIN):
            total += float(scores[row, column]) - SMALLEST_GAIN
            confidence = float(scores[row, column]) * min(1.0, margin / CLEAR_MARGIN)
            if confidence >= SMALLEST_CONFIDENCE:
                by = ("order", *words_of(reasons[row, column]))
                found.append(NameMatch(ours[row], theirs[column], Method.ALIGNED, confidence, by))
        return total, found

    def _pair_children(self, parents: Mapping[str, str]) -> None:
        """Pair what has one name below two modules that are a pair, whatever the order in which it runs."""
        images = dict(parents)
        ours, others = self._free()
        free = set(others)
        for name in sorted(ours, key=lambda each: each.count(".")):
            parent = self.ours.parent(name)
            if not parent or parent not in images:
                continue
            answer = _below(images[parent], name if parent == self.ours.root else name[len(parent) + 1 :], self.theirs)
            if answer not in free:
                continue
            score, reasons = self._score(name, answer, images)
            if score >= SMALLEST_CONFIDENCE:
                images[name] = answer
                free.discard(answer)
                self._take(name, answer, score, reasons)

    def _score(self, ours: str, theirs: str, parents: Mapping[str, str]) -> tuple[float, tuple[str, ...]]:
        """How alike two modules are, and in what, by their first or by their last calls."""
        found = [self._scores([ours], [theirs], parents, end) for end in ENDS]
        scores, reasons = max(found, key=lambda each: float(each[0][0, 0]))
        return float(scores[0, 0]), words_of(reasons[0, 0])

    def _pair_by_children(self) -> None:
        """Pair modules whose children are pairs of each other, from the innermost outwards."""
        while True:
            partners = self._partners()
            votes: Counter[tuple[str, str]] = Counter()
            for ours, theirs in partners.items():
                parents = self.ours.parent(ours), self.theirs.parent(theirs)
                if all(parents) and parents[0] not in self.matches and parents[1] not in self._taken:
                    votes[parents] += 1
            totals = Counter[str](), Counter[str]()
            for pair, count in votes.items():
                totals[0][pair[0]] += count
                totals[1][pair[1]] += count
            before = len(self.matches)
            for (ours, theirs), count in votes.items():
                if FEWEST_CHILDREN <= count >= SAME_CHILDREN * max(totals[0][ours], totals[1][theirs]):
                    score, reasons = self._score(ours, theirs, {})
                    if score > SMALLEST_GAIN:
                        self._take(ours, theirs, max(score, SMALLEST_CONFIDENCE), ("children", *reasons))
            if len(self.matches) == before:
                return

    def _pair_by_weights(self) -> None:
        """Pair what starts from weights that are equal to the bit, and only once on each side, whatever the order.

        A name that is clearly more like another that could be meant is left to the alignment: weights may have been
        exchanged when they were converted.
        """
        sides: list[dict[object, list[Look]]] = []
        for names, looks in zip(self._free(), (self.ours, self.theirs), strict=True):
            sides.append(defaultdict(list))
            for look in map(looks.by_name.__getitem__, names):
                if look.weights:
                    sides[-1][look.weights, look.shapes].append(look)
        words: dict[object, set[str]] = defaultdict(set)
        for look in map(self.theirs.by_name.__getitem__, self._free()[1]):
            words[look.shapes].add(look.last)
        for content, found in sides[0].items():
            answers = sides[1].get(content, [])
            if len(found) != 1 or len(answers) != 1:
                continue
            (ours,), (theirs,) = found, answers
            likest = max(likeness(ours.last, word) for word in words[ours.shapes])
            if likeness(ours.last, theirs.last) >= likest - CLEAR_MARGIN:
                alike = ("class",) if ours.class_name == theirs.class_name else ()
                self._take(ours.name, theirs.name, 1.0, ("initial weights", *alike, "parameter shapes"))

    def _scores(
        self, ours: Sequence[str], theirs: Sequence[str], parents: Mapping[str, str], end: int
    ) -> tuple[Matrix, NDArray[np.uint16]]:
        left, right = [self.ours.by_name[name] for name in ours], [self.theirs.by_name[name] for name in theirs]
        alike = self._parents_alike(ours, theirs, parents)
        return scores_of(alike.shape, likenesses(left, right, alike, end, same_start=self._starts_alike))

    def _parents_alike(self, ours: Sequence[str], theirs: Sequence[str], parents: Mapping[str, str]) -> Matrix:
        """1 where the modules around are a pair, 0 where either of them is one of another pair."""
        back = {answer: name for name, answer in parents.items()}
        left, right = [self.ours.parent(name) for name in ours], [self.theirs.parent(name) for name in theirs]
        forth = equal([parents.get(parent) for parent in left], right)
        return np.where(np.isnan(forth), equal(left, [back.get(parent) for parent in right]), forth)


class _Content(NamedTuple):
    """What is in a numbered module: names below it, classes and shapes; and the initial weights."""

    shapes: frozenset[tuple[object, ...]]
    weights: frozenset[tuple[str, int]]

    def is_stranger(self, other: _Content) -> bool:
        """Whether both have weights and not one in common."""
        return bool(self.weights and other.weights) and self.weights.isdisjoint(other.weights)


def _numbered_gain(ours: _Content, theirs: _Content) -> float:
    """How alike two numbered modules are: the share of what is in them, and of equal weights."""
    shapes = _share(ours.shapes, theirs.shapes)
    if ours.shapes and theirs.shapes and shapes == 0.0:
        return FORBIDDEN
    return 0.25 + 0.75 * shapes + _share(ours.weights, theirs.weights)


def _share(ours: frozenset[object], theirs: frozenset[object]) -> float:
    together = len(ours | theirs)
    return len(ours & theirs) / together if together else 0.0


def _below(parent: str, rest: str, looks: Looks) -> str:
    return rest if parent == looks.root else f"{parent}.{rest}"


def _tree(names: Iterable[str]) -> dict[str, dict[str, str]]:
    """For each place its parts and the places they lead to; places that are no modules (lists of them) included."""
    tree: dict[str, dict[str, str]] = {"": {}}
    for name in names:
        place = ""
        for part in name.split("."):
            below = f"{place}.{part}" if place else part
            tree[place][part] = below
            tree.setdefault(below, {})
            place = below
    return tree
