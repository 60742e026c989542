"""The records of a comparison of two checkpoints, which reports print."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from align.records import Divergence, Finding, Verdict


@dataclass(frozen=True, slots=True)
class EntryRow:
    """One entry of the reference and its answer, or a merged tensor and its parts.

    `relation` is a word of `align.relations.RelationKind`, or `stacked`, `grouped`, `merged` for merged tensors;
    `said` is the relation as a phrase. `way` says how the two were paired, `relative_l2` how far apart they are.
    `candidate_place` is the place of the answer in the order of its file, None for merged tensors; the rows stand in
    the order of the reference.
    """

    reference: str
    candidate: str
    relation: str
    said: str = ""
    way: str = "name"
    relative_l2: float | None = None
    reference_dtype: str = ""
    candidate_dtype: str = ""
    reference_shape: tuple[int, ...] = ()
    candidate_shape: tuple[int, ...] = ()
    candidate_place: int | None = None


@dataclass(frozen=True, slots=True)
class CheckpointSide:
    """One checkpoint in the head of a report: its path, what it is, entries, bytes of their values."""

    path: str
    what: str
    entries: int
    size: int


@dataclass(frozen=True, slots=True, eq=False)
class CheckpointResult:
    """All that `align checkpoint` knows; text and JSON are renderings of it.

    `renamed` are rules in one line and how many names each explains. `counts` says how many entries were compared and
    how many of them are in each relation.
    """

    reference: CheckpointSide
    candidate: CheckpointSide
    verdict: Verdict
    summary: str
    findings: tuple[Finding, ...] = ()
    first_divergence: Divergence | None = None
    rows: tuple[EntryRow, ...] = ()
    only_reference: tuple[str, ...] = ()
    only_candidate: tuple[str, ...] = ()
    renamed: tuple[tuple[str, int], ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
