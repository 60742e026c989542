"""Run the rules over the pairs: captures with sketches are kept, those with values go again after their use."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from benchmarks.localization import judging, peers, plan, replays, rules
from benchmarks.localization.capturing import make_captures, make_replays
from benchmarks.localization.judging import Exceeding, Judgement
from benchmarks.localization.plan import Capture, Pair
from benchmarks.localization.rules import Folders

Planned = Sequence[tuple[Pair, tuple[Capture, ...]]]

WITH_VALUES = ("--detail", "tensors")


def judge_sketches(
    name: str, pairs: Sequence[Pair], folders: Folders, processes: int, options: Sequence[str] = ()
) -> list[Judgement]:
    """One rule on captures that are there; pairs that lack some are left out."""
    able = [pair for pair in pairs if rules.can_judge(name, pair, folders)]
    return judging.judge_all(rules.rule(name, folders, options=options), able, processes)


def judge_values(names: Sequence[str], planned: Planned, folders: Folders, processes: int, *, kept: bool) -> None:
    """The rules that need values, and peers: captured for one model and class at a time, judged and deleted.

    Where captures are `kept` they are used again; a pair takes about 20 MB.
    """
    done = 0
    for some in _portions(plan.shortened(planned)):
        if not kept:
            shutil.rmtree(folders.values, ignore_errors=True)
        _make(some, folders, processes, replayed=rules.REPLAY in names)
        found: dict[str, list[Judgement]] = {}
        pairs = [plan.with_answers(pair, folders.values) for pair, _ in some]
        for name in names:
            found[name] = judging.judge_all(rules.rule(name, folders), pairs, processes)
        if rules.VALUES in names:
            for each in judging.judge_all(partial(peers.judge, work=folders.values), pairs, processes):
                for name, judgement in each.items():
                    found.setdefault(name, []).append(judgement)
        for name, judged in found.items():
            save(name, judged, folders.sketches)
        done += len(some)
        print(f"with values: {done} of {len(planned)} pairs", file=sys.stderr, flush=True)
    if not kept:
        shutil.rmtree(folders.values, ignore_errors=True)


def _make(some: Planned, folders: Folders, processes: int, *, replayed: bool) -> None:
    """The captures with values of some pairs, and their replays where they are wanted."""
    folders.values.mkdir(parents=True, exist_ok=True)
    for checkpoint in folders.sketches.glob("*.pt"):
        link = folders.values / checkpoint.name
        if not link.exists():
            link.symlink_to(checkpoint)
    wanted = plan.distinct(
        each for pair, captures in some for each in captures if each.path in {pair.reference, pair.candidate}
    )
    make_captures(wanted, folders.values, WITH_VALUES, processes)
    if replayed:
        make_replays(wanted, folders.values, replays.PRECISION, processes)


def _portions(planned: Planned) -> Iterator[Planned]:
    for key in dict.fromkeys((pair.model, pair.precision) for pair, _ in planned):
        yield [each for each in planned if (each[0].model, each[0].precision) == key]


def effects(pairs: Sequence[Pair], folders: Folders, processes: int) -> list[str]:
    """The faults that change nothing that float32 can hold; they are none, and there must be none of them."""
    faulty = [pair for pair in pairs if not pair.benign and (folders.sketches / pair.clean).exists()]
    found = judging.judge_all(partial(judging.effect, work=folders.sketches), faulty, processes)
    return [pair.name for pair, effect in zip(faulty, found, strict=True) if effect < judging.LEAST_EFFECT]


def save(name: str, found: Sequence[Judgement], work: Path) -> None:
    """Keep the judgements of a rule, in the place of those of the same pairs, so that tables need not judge again."""
    folder = work / "judged"
    folder.mkdir(exist_ok=True)
    new = {each.pair.name for each in found}
    others = [each for each in load(name, work) if each.pair.name not in new]
    text = json.dumps([asdict(each) for each in (*others, *found)], indent=1)
    (folder / f"{name}.json").write_text(text, encoding="utf-8")


def load(name: str, work: Path) -> list[Judgement]:
    """The judgements that were kept, none where there are none."""
    path = work / "judged" / f"{name}.json"
    if not path.exists():
        return []
    rows = json.loads(path.read_text(encoding="utf-8"))
    return [
        Judgement(
            **{**row, "pair": plan.pair_of(row["pair"]), "exceeding": tuple(Exceeding(**e) for e in row["exceeding"])}
        )
        for row in rows
    ]
