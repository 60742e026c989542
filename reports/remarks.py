"""Sentences around a comparison: what to keep in mind, how it was judged and what could not be seen."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

from align import wording
from align.records import Detail, Phase, Status
from align.reports.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from align.records import DiffResult, RunInfo, TimelineRow
    from align.reports.phrases import Phrases


def notes(result: DiffResult, phrases: Phrases) -> tuple[str, ...]:
    """What a reader has to know before believing the verdict, one sentence each."""
    sides = (
        (phrases["reference"], result.reference, result.reference_timeline),
        (phrases["candidate"], result.candidate, result.candidate_timeline),
    )
    return (*_same(result, phrases), *(sentence for side in sides for sentence in _side_notes(*side, phrases)))


def _same(result: DiffResult, phrases: Phrases) -> Iterator[str]:
    """A comparison of a run with itself says nothing of two runs."""
    if os.path.realpath(result.reference_path) == os.path.realpath(result.candidate_path):
        yield phrases["note_same_file"]
    elif result.reference.started and result.reference == result.candidate:
        yield phrases["note_same_run"]


def _side_notes(side: str, run: RunInfo, timeline: tuple[TimelineRow, ...], phrases: Phrases) -> Iterator[str]:
    if run.simulated:
        yield phrases["note_simulated"].format(side=side)
    if run.outcome == "unfinished":
        last = timeline[-1].step if timeline else run.steps_seen - 1
        key = "note_unfinished" if last >= 0 else "note_unfinished_empty"
        yield phrases[key].format(side=side, step=last)
    elif run.outcome.startswith("exception"):
        yield phrases["note_exception"].format(side=side, outcome=visible(run.outcome).rstrip("."))
    if run.parameters_on and run.parameters_on.split(":")[0] != run.device_type:
        found = visible(run.parameters_on)
        yield phrases["note_moved"].format(side=side, found=found, asked=visible(run.device_type))
    for note in run.notes:
        yield phrases["note_trouble"].format(side=side, note=visible(note))


def judged(result: DiffResult, phrases: Phrases) -> tuple[str, ...]:
    """How the pairs were judged: the measure, the limit, the unit roundoffs and the counts."""
    sentences = [phrases["judged_measure"]]
    limits = Counter(comparison.limit for comparison in result.comparisons if comparison.limit > 0)
    if limits:
        sentences.append(phrases["judged_limit"].format(limit=wording.times(limits.most_common(1)[0][0])))
    units = Counter(comparison.unit for comparison in result.comparisons if comparison.unit > 0)
    if units:
        shares = [
            phrases["judged_unit"].format(unit=wording.relative(unit), count=wording.count(number))
            for unit, number in sorted(units.items())
        ]
        sentences.append(phrases["judged_units"].format(units=", ".join(shares)))
    sentences.append(phrases["judged_equal"])
    if any(comparison.key.phase is Phase.PARAM for comparison in result.comparisons):
        sentences.append(phrases["judged_parameters"])
    sentences.append(_counts_sentence(result, phrases))
    sentences.append(phrases["judged_floor"].format(method=visible(result.resolution.floor_method)))
    return tuple(sentences)


def _counts_sentence(result: DiffResult, phrases: Phrases) -> str:
    return phrases["judged_counts"].format(
        paired=wording.count(len(result.comparisons)),
        reference=wording.count(len(result.only_reference)),
        candidate=wording.count(len(result.only_candidate)),
    )


def confidence(result: DiffResult, phrases: Phrases) -> str:
    """The smallest effect that would have been seen, in one sentence."""
    effect = result.resolution.smallest_visible_effect
    if Detail.STATS in {result.reference.detail, result.candidate.detail}:
        return phrases["statistics_only"]
    if effect is None:
        return phrases["no_visible_effect"]
    precision = visible(result.resolution.precision)
    return phrases["visible_effect"].format(precision=precision, effect=wording.relative(effect))


def unseen(result: DiffResult, phrases: Phrases) -> tuple[str, ...]:
    """What this comparison could not have seen, one sentence each."""
    sentences = [confidence(result, phrases)]
    for side, run in ((phrases["Reference"], result.reference), (phrases["Candidate"], result.candidate)):
        if run.detail == Detail.STATS:
            sentences.append(phrases["unseen_stats"].format(side=side))
        if run.phases and set(run.phases) < {str(phase) for phase in Phase}:
            sentences.append(phrases["unseen_phases"].format(side=side, phases=visible(", ".join(run.phases))))
    if max(result.reference.world_size, result.candidate.world_size) > 1:
        world = max(result.reference.world_size, result.candidate.world_size)
        sentences.append(phrases["unseen_ranks"].format(rank=result.reference.rank, world=world))
    skipped = sum(comparison.status is Status.NOT_JUDGED for comparison in result.comparisons)
    if skipped:
        sentences.append(phrases["unseen_not_judged"].format(count=wording.count(skipped)))
    return tuple(sentences)
