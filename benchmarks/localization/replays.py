"""Judge a pair by its replays, as `align replay` does; the replays themselves were made through the command line.

The replay of a reference serves all of its candidates here, where `align replay` makes it again for each.
"""

from __future__ import annotations

import json
import math
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import align
from align.commands import judge_replay_files
from align.comparison import compare
from align.errors import AlignError
from align.records import Origin
from align.replay import Replayed, judge_replays
from align.reports.json_report import diff_json
from align.walk import Suspect
from benchmarks.localization.judging import INCOMPARABLE, Exceeding, Judgement, read_answer
from benchmarks.localization.plan import SCRIPT, Pair, replay_of

PRECISION = "fp64"
"""What `align replay` computes in when nothing else is asked for."""

LEAST_SHARE = 0.4
"""Limits are not lowered below this part of the product's."""


def judge(pair: Pair, work: Path) -> Judgement:
    """The replay rule on captures and replays that are there."""
    sides = [(work / path, work / replay_of(path)) for path in (pair.reference, pair.candidate)]
    return read_answer(pair, json.loads(diff_json(judge_replay_files(sides[0], sides[1], str(SCRIPT)))))


def judge_for_any_limit(pair: Pair, work: Path) -> Judgement:
    """The same, with all places that lower limits would accuse.

    The errors of a replay are local: a limit decides which of them count, and changes none.
    """
    try:
        found = judge(pair, work)
    except AlignError as error:
        return Judgement(pair, INCOMPARABLE, summary=str(error))
    with ExitStack() as stack:
        ours, theirs = (_opened(path, work, stack) for path in (pair.reference, pair.candidate))
        walk = judge_replays(compare(ours.capture, theirs.capture, ()), ours, theirs, times=LEAST_SHARE)
        suspects = [suspect for result in walk.results for suspect in result.suspects]
        return replace(found, exceeding=tuple(map(_exceeding, suspects)))


def _opened(path: str, work: Path, stack: ExitStack) -> Replayed:
    files = (stack.enter_context(align.open(work / each)) for each in (path, replay_of(path)))
    return Replayed(*files)


def with_limit(found: Judgement, times: float) -> Judgement:
    """What would have been said with limits so many times the product's; `found` has all places."""
    by_value = found.code in {"", "AL401", "AL402"}
    if not by_value or not found.compared:
        return found
    for each in found.exceeding:
        if each.share > times:
            return replace(found, verdict="diverged", phase=each.phase, name=each.name)
    return replace(found, verdict="aligned", phase="", name="")


def _exceeding(suspect: Suspect) -> Exceeding:
    comparison, times = suspect.comparison, suspect.comparison.times_floor
    share = times / comparison.limit * LEAST_SHARE if times is not None and comparison.limit else math.inf
    name = suspect.owner if suspect.origin is Origin.FUNCTIONAL else comparison.key.name
    return Exceeding(share, str(comparison.key.phase), name)
