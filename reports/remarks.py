"""Sentences around a comparison: what to keep in mind, how it was judged and what could not be seen."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import PurePath
from typing import TYPE_CHECKING

from align import wording
from align.records import Detail, Phase, Status, Verdict
from align.reports.pairing_remarks import pairing_notes
from align.reports.visible import visible
from align.sentences import joined

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from align.records import DiffResult, RunInfo, TimelineRow
    from align.reports.language import Language


COMPARED = frozenset(str(phase) for phase in Phase) - {"optimizer", "scaler", "rng"}
"""The phases whose tensors are compared; the others only explain, and older captures do not have them."""

BEFORE_FORWARD = frozenset({Phase.INIT, Phase.INPUT})
"""Phases in which no module has computed: how small an effect could be seen says nothing of runs that part there."""

HASH_DIGITS = 12
"""Digits of the hash of a script that are told; the facts have all."""

TWO_FILES = "two files"
"""How the method begins where no floor was given."""


def notes(result: DiffResult, phrases: Language) -> tuple[str, ...]:
    """What a reader has to know before believing the verdict, one sentence each."""
    sides = (
        (phrases["reference"], result.reference, result.reference_timeline),
        (phrases["candidate"], result.candidate, result.candidate_timeline),
    )
    return (
        *_measured_floor(result, phrases),
        *_same(result, phrases),
        *_scripts(result, phrases),
        *(sentence for side in sides for sentence in side_notes(*side, phrases)),
        *pairing_notes(result, phrases),
    )


def _measured_floor(result: DiffResult, phrases: Language) -> Iterator[str]:
    """By what the floor was measured; what two files tell of it needs no word."""
    method = result.resolution.floor_method
    if not method.startswith(TWO_FILES):
        yield phrases["judged_floor"].format(method=visible(phrases.said(method)))


def _same(result: DiffResult, phrases: Language) -> Iterator[str]:
    """A comparison of a run with itself says nothing of two runs."""
    if os.path.realpath(result.reference_path) == os.path.realpath(result.candidate_path):
        yield phrases["note_same_file"]
    elif result.reference.started and result.reference == result.candidate:
        yield phrases["note_same_run"]


def _scripts(result: DiffResult, phrases: Language) -> Iterator[str]:
    """Runs that part and were not made by one script: what parts them may stand there."""
    hashes = (result.reference.script_hash, result.candidate.script_hash)
    if result.verdict is not Verdict.ALIGNED and all(hashes) and hashes[0] != hashes[1]:
        reference, candidate = (visible(each[:HASH_DIGITS]) for each in hashes)
        yield phrases["note_scripts"].format(reference=reference, candidate=candidate)


def comparable(result: DiffResult, phrases: Language) -> str:
    """What was done on purpose to make both runs comparable."""
    sides = ((phrases["reference"], result.reference), (phrases["candidate"], result.candidate))
    return made_comparable(sides, phrases)


def made_comparable(sides: Sequence[tuple[str | None, RunInfo]], phrases: Language) -> str:
    """What was done on purpose to make runs comparable, in one sentence; empty where nothing was.

    Each side is a word for it and its run; a single run needs no word.
    """
    parts = [*_taken(sides, phrases), *_switched(sides, phrases)]
    return phrases["made_comparable"].format(what=joined("; ", parts)) if parts else ""


def _taken(sides: Sequence[tuple[str | None, RunInfo]], phrases: Language) -> Iterator[str]:
    """Which run took its weights and batches from which capture."""
    for side, run in sides:
        sources: dict[str, list[str]] = {}
        for name, taken in (("init_from", "init_tensors"), ("batches_from", "batches_taken")):
            source = run.same_start.get(name)
            # What was asked for and not found is told among the troubles.
            if source and run.same_start.get(taken) != 0:
                things = sources.setdefault(visible(PurePath(str(source)).name), [])
                things.append(phrases["same_init_from"] if name == "init_from" else _batches(run, phrases))
        for file, things in sources.items():
            what = joined(phrases["same_and"], things)
            if side is None:
                yield phrases["same_taken_here"].format(what=what, file=file)
                continue
            # "its 1 of 3 batches" is no English.
            sentence = "same_taken_some" if things[0][0].isdecimal() else "same_taken"
            yield phrases[sentence].format(side=side, what=what, file=file)


def _batches(run: RunInfo, phrases: Language) -> str:
    """The batches that a run took, and how many of those it asked for where it did not get all."""
    taken, missed = run.same_start.get("batches_taken"), run.same_start.get("batches_missed")
    what = phrases["same_batches_from"]
    if isinstance(taken, int) and isinstance(missed, int) and missed > 0:
        what = phrases["same_some_batches"].format(taken=wording.count(taken), total=wording.count(taken + missed))
    return joined("", (what, phrases["same_own_targets"] if "batches_as" in run.same_start else ""))


def _switched(sides: Sequence[tuple[str | None, RunInfo]], phrases: Language) -> Iterator[str]:
    """Switches and the seed, with the side where they are not those of both."""
    for name in ("no_dropout", "deterministic"):
        on = [side for side, run in sides if run.same_start.get(name)]
        if on:
            yield joined("", (phrases[f"same_{name}"], _where(on, sides, phrases)))
    seeds = [(side, run.same_start["seed"]) for side, run in sides if run.same_start.get("seed") is not None]
    for seed in dict.fromkeys(seed for _, seed in seeds):
        with_it = [side for side, other in seeds if other == seed]
        named = phrases["same_seed"].format(seed=visible(str(seed)))
        yield joined("", (named, _where(with_it, sides, phrases)))


def _where(on: Sequence[str | None], sides: Sequence[tuple[str | None, RunInfo]], phrases: Language) -> str:
    if len(sides) == 1:
        return ""
    return phrases["same_in_both"] if len(on) == len(sides) else phrases["same_in_one"].format(side=on[0])


def side_notes(
    side: str | None, run: RunInfo, timeline: tuple[TimelineRow, ...], phrases: Language, *, ended: bool = True
) -> Iterator[str]:
    """What a reader has to know of one run, named by a word; a run that stands alone needs none.

    How it ended is left out where that is told elsewhere (not `ended`).
    """
    for key, words in _troubles(run, timeline, ended=ended):
        prefix = "note_run" if side is None else "note"
        yield phrases[f"{prefix}_{key}"].format(side=side, **words)


def _troubles(
    run: RunInfo, timeline: tuple[TimelineRow, ...], *, ended: bool
) -> Iterator[tuple[str, dict[str, object]]]:
    if run.simulated:
        yield "simulated", {}
    if ended and run.outcome == "unfinished":
        last = timeline[-1].step if timeline else run.steps_seen - 1
        yield ("unfinished", {"step": last}) if last >= 0 else ("unfinished_empty", {})
    elif ended and run.outcome.startswith(("exception", "exit code")):
        yield "exception", {"outcome": visible(run.outcome).rstrip(".")}
    if run.parameters_on and run.parameters_on.split(":")[0] != run.device_type:
        yield "moved", {"found": visible(run.parameters_on), "asked": visible(run.device_type)}
    for note in run.notes:
        yield "trouble", {"note": visible(note)}


def judged(result: DiffResult, phrases: Language) -> tuple[str, ...]:
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
        sentences.append(phrases["judged_units"].format(units=joined(", ", shares)))
    sentences.append(phrases["judged_equal"])
    if any(comparison.key.phase is Phase.PARAM for comparison in result.comparisons):
        sentences.append(phrases["judged_parameters"])
    sentences.append(_counts_sentence(result, phrases))
    sentences.append(phrases["judged_floor"].format(method=visible(phrases.said(result.resolution.floor_method))))
    return tuple(sentences)


def _counts_sentence(result: DiffResult, phrases: Language) -> str:
    return phrases["judged_counts"].format(
        paired=wording.count(len(result.comparisons)),
        reference=wording.count(len(result.only_reference)),
        candidate=wording.count(len(result.only_candidate)),
    )


def confidence(result: DiffResult, phrases: Language) -> str:
    """The smallest effect that would have been seen, in one sentence; none where runs part before the forward pass."""
    effect = result.resolution.smallest_visible_effect
    if Detail.STATS in {result.reference.detail, result.candidate.detail}:
        return phrases["statistics_only"]
    if effect is None:
        first = result.first_divergence
        return "" if first and first.phase in BEFORE_FORWARD else phrases["no_visible_effect"]
    precision = visible(phrases.word(result.resolution.precision))
    return phrases["visible_effect"].format(precision=precision, effect=wording.relative(effect))


def unseen(result: DiffResult, phrases: Language) -> tuple[str, ...]:
    """What this comparison could not have seen, one sentence each."""
    sentences = [confidence(result, phrases) or phrases["no_visible_effect"]]
    for side, run in ((phrases["Reference"], result.reference), (phrases["Candidate"], result.candidate)):
        if run.detail == Detail.STATS:
            sentences.append(phrases["unseen_stats"].format(side=side))
        if run.phases and not set(run.phases) >= COMPARED:
            sentences.append(phrases["unseen_phases"].format(side=side, phases=visible(phrases.listed(run.phases))))
    if max(result.reference.world_size, result.candidate.world_size) > 1:
        world = max(result.reference.world_size, result.candidate.world_size)
        compared = result.counts.get("ranks", 1)
        known = phrases["unseen_ranks" if compared == 1 else "unseen_ranks_later"]
        sentences.append(known.format(rank=result.reference.rank, world=world, count=compared))
    skipped = sum(comparison.status is Status.NOT_JUDGED for comparison in result.comparisons)
    if skipped:
        sentences.append(phrases["unseen_not_judged"].format(count=wording.count(skipped)))
    return tuple(sentences)
