"""Ask `align diff` about each pair and hold its answer against what is true."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.localization.plan import Pair

Found = TypeVar("Found")

ANYWHERE = "*"
INCOMPARABLE = "incomparable"
LEAST_EFFECT = 4.0 * 2.0**-24
"""A fault must move some tensor by so much, in relative L2, against the same device without it; else it is none."""


@dataclass(frozen=True, slots=True)
class Exceeding:
    """A place that a lower limit would accuse, and above which share of the product's limit it lies."""

    share: float
    phase: str
    name: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a rule says of one pair.

    `phase` and `name` are the place that it blames. `share` is the largest quotient of times floor and limit, at
    `nearest`; more than 1 is a difference. `exceeding` are the places that lower limits would accuse, in execution
    order, where a rule tells them.
    """

    pair: Pair
    verdict: str
    phase: str = ""
    name: str = ""
    share: float = 0.0
    nearest: str = ""
    code: str = ""
    summary: str = ""
    exceeding: tuple[Exceeding, ...] = ()

    @property
    def detected(self) -> bool:
        """Whether the runs were said to differ."""
        return self.verdict == "diverged"

    @property
    def exact(self) -> bool:
        """Whether the place is a right answer."""
        return self.detected and any(
            phase == self.phase and name in {ANYWHERE, self.name} for phase, name in self.pair.answers
        )

    @property
    def right(self) -> bool:
        """Whether the answer is as it should be: the place of a fault, or that nothing is wrong."""
        return self.verdict == "aligned" if self.pair.benign else self.exact

    @property
    def compared(self) -> bool:
        """Whether there was an answer at all."""
        return self.verdict != INCOMPARABLE


class NotCompared(RuntimeError):
    """`align` could not compare two captures; the message is its own."""


def ask(reference: Path, candidate: Path, options: Sequence[str] = ()) -> dict[str, Any]:
    """What `align diff REFERENCE CANDIDATE --json -` prints; raises NotCompared where it cannot tell."""
    from align.cli import main

    said, noted = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(noted):
        words = ["diff", str(reference), str(candidate), "--json", "-", *options]
        main(words, prog_name="align", standalone_mode=False)
    if not said.getvalue():
        raise NotCompared(noted.getvalue().strip())
    found: dict[str, Any] = json.loads(said.getvalue())
    return found


def judge(pair: Pair, work: Path, options: Sequence[str] = ()) -> Judgement:
    """The two-file rule."""
    try:
        return read_answer(pair, ask(work / pair.reference, work / pair.candidate, options))
    except NotCompared as error:
        return Judgement(pair, INCOMPARABLE, summary=str(error))


def read_answer(pair: Pair, answer: Mapping[str, Any]) -> Judgement:
    """The judgement in the JSON of a comparison."""
    first = answer["first_divergence"]
    phase = name = code = ""
    if first is not None:
        phase, name = first["phase"], first["name"]
    blamed = [finding for finding in answer["findings"] if finding["severity"] == "error"][:1]
    for finding in blamed:
        where, code = finding["where"], finding["code"]
        phase, name = where["phase"] or phase, where["name"] or name
    share, nearest = _largest_share(answer["records"])
    return Judgement(pair, answer["verdict"], phase, name, share, nearest, code, answer["summary"])


def _largest_share(records: Mapping[str, Any]) -> tuple[float, str]:
    largest, nearest = 0.0, ""
    for row in rows(records):
        times, limit = row["times_floor"], row["limit"]
        if isinstance(times, (int, float)) and isinstance(limit, (int, float)) and limit and times / limit > largest:
            largest = times / limit
            nearest = f"{row['step']} {row['phase']} {row['name']} {row['slot']} #{row['call']}"
    return largest, nearest


def rows(table: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The rows of a table that the JSON holds as columns; words stand in its dictionaries."""
    words, columns = table["dictionaries"], table["columns"]
    values = [[words[name][code] for code in codes] if name in words else codes for name, codes in columns.items()]
    for row in zip(*values, strict=True):
        yield dict(zip(columns, row, strict=True))


def judge_all(judge_one: Callable[[Pair], Found], pairs: Sequence[Pair], processes: int = 2) -> list[Found]:
    """All pairs, in worker processes."""
    if not pairs:
        return []
    with ProcessPoolExecutor(min(processes, len(pairs))) as pool:
        return list(pool.map(judge_one, pairs, chunksize=4))


def effect(pair: Pair, work: Path) -> float:
    """How much a fault changes what its own device computes: the largest relative L2 difference of any tensor."""
    found = 0.0
    for row in rows(ask(work / pair.clean, work / pair.candidate)["records"]):
        error = row["relative_l2"]
        if error is not None and row["phase"] != "input":
            found = max(found, float(error))
    return found


def line(found: Judgement) -> str:
    """One line on a judgement that is not as it should be."""
    pair = found.pair
    what = "missed" if not found.detected else "FALSE" if pair.benign else "wrong"
    what = what if found.compared else "failed"
    truth = " | ".join(f"{phase} {name}" for phase, name in pair.answers) or "nothing is wrong"
    said = f"{found.code} {found.phase} {found.name}" if found.detected else f"{found.verdict} {found.summary[:80]}"
    return f"{what:6} {pair.name} [{pair.device}]: {said}; truth: {truth}; share {found.share:.2f} at {found.nearest}"
