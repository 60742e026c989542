"""The rules that the benchmark measures: those of the product, through its command line, and those of peers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.localization import judging, replays
from benchmarks.localization.judging import Judgement
from benchmarks.localization.plan import Pair, floors_of, replay_of

DEFAULT_LIMIT = 7.0
MARGIN = 1.35
"""A limit stands so far above the largest healthy pair that it was chosen on."""

TWO_FILES, VALUES, PERTURBED, REPLAY = "two-files", "values", "perturbed", "replay"
OURS = (TWO_FILES, VALUES, PERTURBED, REPLAY)

WITH_VALUES = (VALUES, REPLAY)
"""Rules that need the values of all tensors."""

LABELS = {
    TWO_FILES: "two files, from sketches",
    VALUES: "two files, with values",
    PERTURBED: "with a perturbed floor",
    REPLAY: "replay",
}

Rule = Callable[[Pair], Judgement]


@dataclass(frozen=True, slots=True)
class Folders:
    """Where the captures are: those with sketches, and those with values."""

    sketches: Path
    values: Path


def rule(name: str, folders: Folders, limit: float | None = None, options: Sequence[str] = ()) -> Rule:
    """The judge of one of the product's rules; `limit` is what stands in the place of the default limit."""
    given = [*options, *(["--limit", f"{limit:.6g}"] if limit is not None else [])]
    if name == REPLAY:
        return partial(replays.judge_for_any_limit, work=folders.values)
    if name == PERTURBED:
        return partial(_with_floor, work=folders.sketches, options=given)
    work = folders.values if name == VALUES else folders.sketches
    return partial(judging.judge, work=work, options=given)


def can_judge(name: str, pair: Pair, folders: Folders) -> bool:
    """Whether the captures that a rule needs of a pair are there."""
    folder = folders.values if name in WITH_VALUES else folders.sketches
    needed = [pair.reference, pair.candidate, *(floors_of(pair) if name == PERTURBED else ())]
    if name == REPLAY:
        needed += [replay_of(pair.reference), replay_of(pair.candidate)]
    return all((folder / path).exists() for path in needed)


def _with_floor(pair: Pair, work: Path, options: Sequence[str]) -> Judgement:
    floors = [word for path in floors_of(pair) for word in ("--floor", str(work / path))]
    return judging.judge(pair, work, [*floors, *options])


def left_out(name: str, model: str, found: Sequence[Judgement], folders: Folders, processes: int) -> list[Judgement]:
    """Judge the pairs of one model with a limit chosen on the healthy pairs of the others."""
    limit = limit_without(model, found)
    some = [each for each in found if each.pair.model == model]
    if name == REPLAY:
        return [replays.with_limit(each, limit / DEFAULT_LIMIT) for each in some]
    able = [each.pair for each in some if can_judge(name, each.pair, folders)]
    return judging.judge_all(rule(name, folders, limit), able, processes)


def limit_without(model: str, found: Sequence[Judgement]) -> float:
    """The limit that the healthy pairs of all other models suggest."""
    shares = [each.share for each in found if each.pair.benign and each.pair.model != model]
    return MARGIN * DEFAULT_LIMIT * max(shares, default=1 / MARGIN)
