"""What the ranks of a job hold of each parameter and what their optimizers take: the same, or each its own.

Whether ranks are replicas of one model is nowhere written down: experts, tensor parallel parts and pipeline stages
differ by design. So nothing is taken for granted: a parameter counts as shared where it begins with the same values on
several ranks (of numbers, not of one constant), or where all of them take the very same gradient of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import TypeVar

from align import metrics
from align.equality import Answer, judge_equality
from align.inspection.view import RunView
from align.optimizer_records import by_owner
from align.pairing import Pair
from align.records import Owner, Phase, TensorRecord, Word
from align.sentences import say

Found = TypeVar("Found")

SAME = 1e-4
"""Gradients that were reduced together are one on all ranks: equal to the bit in the healthy jobs of the tests (gloo);
the margin is for devices whose reductions differ by rank."""

APART = 0.01
"""Gradients of other samples are further apart: by 0.98 and more in the jobs of the tests that do not reduce."""

SHARDED = ("dtensor", "meta", "fake")
SHARDING_WRAPPERS = ("FullyShardedDataParallel", "FSDP", "fully_shard")
"""Words in the names of wrappers that keep a part of each parameter on a rank."""


class Likeness(Word):
    """What two ranks hold at one point."""

    SAME = "same"
    APART = "apart"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Held:
    """One parameter or buffer before step 0: the records of the ranks that hold it, by place of the rank.

    `groups` are the ranks that hold the same values, each at least one; `constant` says that all elements are one
    number, as zeros and ones are: then equal values do not speak for replicas. `shape_differs` and `split` are parts.
    """

    owner: Owner
    records: Mapping[int, TensorRecord]
    groups: tuple[tuple[int, ...], ...]
    constant: bool
    split: bool

    @property
    def equal(self) -> bool:
        """Whether all ranks that hold it hold the same."""
        return len(self.groups) == 1

    @property
    def differing(self) -> tuple[int, ...]:
        """The ranks that do not hold what most do; of equally many those that stand behind."""
        return tuple(sorted(rank for group in self.groups[1:] for rank in group))


@dataclass(frozen=True, slots=True)
class Taken:
    """What the optimizers of two or more ranks take of one parameter in a step."""

    step: int
    owner: Owner
    records: Mapping[int, TensorRecord]
    likeness: Likeness
    distance: float | None
    nonzero: bool


@dataclass(frozen=True)
class Holdings:
    """What the ranks of a job hold and take. `views` are the captures in the order of ranks."""

    views: tuple[RunView, ...]
    held: Mapping[Owner, Held] = field(default_factory=dict)

    @cached_property
    def steps(self) -> tuple[int, ...]:
        """The steps that all ranks captured and took alike: of one optimizer, skipped on none."""
        common = set(self.views[0].steps).intersection(*(view.steps for view in self.views[1:]))
        rows = [{row.step: row for row in view.timeline} for view in self.views]
        return tuple(step for step in sorted(common) if _alike([each.get(step) for each in rows]))

    @cached_property
    def sharded(self) -> bool:
        """Whether a wrapper keeps only a part of each parameter on a rank."""
        wrappers = [str(view.run.flags.get("parallel_wrappers", "")) for view in self.views]
        return any(name in text for text in wrappers for name in SHARDING_WRAPPERS)

    @cached_property
    def shared(self) -> tuple[Held, ...]:
        """What several ranks hold alike, in numbers that are not all one: the parameters of replicas."""
        return tuple(
            held for held in self.held.values()
            if not held.constant and not held.split and any(len(group) > 1 for group in held.groups)
        )  # fmt: skip

    @cached_property
    def trained(self) -> frozenset[Owner]:
        """The parameters that an optimizer of any rank takes a gradient of."""
        return frozenset(
            owner for view in self.views for step in view.steps for owner in records_of(view, step, Phase.UPDATE)
        )

    @cached_property
    def taken(self) -> tuple[Taken, ...]:
        """What ranks that hold the same values take of them, step by step."""
        return () if self.sharded else tuple(_taken(self, lambda held: held.groups))

    @cached_property
    def taken_by_all(self) -> tuple[Taken, ...]:
        """What all ranks that hold a parameter take of it, also where they hold other values."""
        return () if self.sharded else tuple(_taken(self, lambda held: (tuple(held.records),)))

    @cached_property
    def replicas(self) -> bool:
        """Whether all ranks train one whole model: each parameter begins alike, and none is a part of another."""
        whole = [held for held in self.held.values() if held.owner in self.trained]
        everywhere = all(len(held.records) == len(self.views) for held in whole)
        begin = bool(whole) and everywhere and all(held.equal and not held.split for held in whole)
        return begin and not self.sharded and any(not held.constant for held in whole)


def holdings_of(views: Sequence[RunView]) -> Holdings:
    """Read the initial values of all ranks of a job."""
    records: dict[Owner, dict[int, TensorRecord]] = {}
    for rank, view in enumerate(views):
        for record in view.initial:
            records.setdefault(record.key.owner, {})[rank] = record
    return Holdings(tuple(views), {owner: _held(owner, these) for owner, these in records.items()})


def likeness(one: TensorRecord, other: TensorRecord) -> tuple[Likeness, float | None]:
    """Whether two ranks hold the same gradient, and how far they are apart (relative L2)."""
    pair = Pair(one, other)
    if not pair.same_shape or one.stats is None or other.stats is None:
        return Likeness.UNKNOWN, None
    if one.stats.nonfinite or other.stats.nonfinite or not max(one.stats.norm, other.stats.norm) > 0.0:
        return Likeness.UNKNOWN, None
    distance = 0.0 if metrics.identical(pair) else metrics.relative_l2(pair)
    if distance is None or distance > APART:
        return (Likeness.UNKNOWN if distance is None else Likeness.APART), distance
    # Without sketches it is a lower bound, which does not tell that they agree.
    return (Likeness.SAME if distance <= SAME and metrics.has_sketches(pair) else Likeness.UNKNOWN), distance


def is_part(record: TensorRecord) -> bool:
    """Whether a record says by itself that it is a part of a distributed tensor."""
    return record.layout.startswith(SHARDED)


def _held(owner: Owner, records: Mapping[int, TensorRecord]) -> Held:
    shapes = {record.shape for record in records.values()}
    groups: list[list[int]] = []
    for rank, record in records.items():
        home = next((group for group in groups if _equal(records[group[0]], record)), None)
        if home is None:
            groups.append([rank])
        else:
            home.append(rank)
    groups.sort(key=lambda group: (-len(group), group))
    first = next(iter(records.values()))
    constant = first.stats is not None and first.stats.minimum == first.stats.maximum
    split = len(shapes) > 1 or any(is_part(record) for record in records.values())
    return Held(owner, records, tuple(tuple(group) for group in groups), constant, split)


def _equal(one: TensorRecord, other: TensorRecord) -> bool:
    return judge_equality(Pair(one, other)).answer in {Answer.EQUAL, Answer.CLOSE}


def _alike(rows: Sequence[object]) -> bool:
    known = [row for row in rows if row is not None]
    if len(known) < len(rows):
        return False
    return len({getattr(row, "optimizer", "") for row in known}) == 1 and not any(
        getattr(row, "skipped", False) for row in known
    )


def of_two_ranks(holdings: Holdings, find: Callable[[Holdings, tuple[int, int]], Found | None]) -> Found | None:
    """What is found on the first two ranks that have it, by their places."""
    pairs = combinations(range(len(holdings.views)), 2)
    return next((found for pair in pairs if (found := find(holdings, pair)) is not None), None)


def records_of(view: RunView, step: int, phase: Phase) -> dict[Owner, TensorRecord]:
    """The records of a phase of parameters by parameter, of several micro-steps the last."""
    return by_owner(view.step(step).by_phase[phase])


def _taken(holdings: Holdings, grouped: Callable[[Held], Iterable[tuple[int, ...]]]) -> Iterator[Taken]:
    for step in holdings.steps:
        sides = [records_of(view, step, Phase.UPDATE) for view in holdings.views]
        for owner, held in holdings.held.items():
            for group in () if held.split else grouped(held):
                records = {rank: sides[rank][owner] for rank in group if owner in sides[rank]}
                if len(records) > 1 and not any(is_part(record) for record in records.values()):
                    yield _compared(step, owner, records)


def _compared(step: int, owner: Owner, records: Mapping[int, TensorRecord]) -> Taken:
    first, *others = records.values()
    found = [likeness(first, other) for other in others]
    states = {state for state, _ in found}
    state = next(iter(states)) if len(states) == 1 else Likeness.APART if Likeness.APART in states else Likeness.UNKNOWN
    distances = [distance for _, distance in found if distance is not None]
    nonzero = all(record.stats is not None and record.stats.norm > 0.0 for record in records.values())
    return Taken(step, owner, records, state, max(distances, default=None), nonzero)


def names_of(owners: Iterable[Owner]) -> list[str]:
    """`fc weight`, in order, each once."""
    return list(dict.fromkeys(say("{} {}", name, slot) for name, slot in owners))
