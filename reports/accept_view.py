"""The view of an acceptance document: every string that is printed and signed, in the order of reading."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from align import wording
from align.acceptance_records import Outcome
from align.reports.accept_values import (
    RESULT_ROLES,
    ROLES,
    badge,
    failing,
    limit_text,
    measured_text,
    name_of,
    result_key,
)
from align.reports.visible import shortened, visible
from align.sentences import joined

if TYPE_CHECKING:
    from collections.abc import Iterator

    from align.acceptance_records import AcceptResult, Criterion
    from align.curve_records import Curves
    from align.records import RunInfo
    from align.reports.language import Language

SOFTWARE = ("torch", "torch_npu", "cann", "cuda", "cudnn", "python")
"""The libraries that a document names; the JSON has all."""
NUMBER_FLAGS = ("matmul_allow_tf32", "cudnn_allow_tf32", "npu_matmul_allow_hf32", "npu_conv_allow_hf32")
"""Switches that let products be rounded further than their dtype."""
SIGNERS = ("tested", "reviewed", "approved")
DECISIONS = ("accepted", "conditions", "rejected")
ID_DIGITS = 12
GROUP = 8
"""Digits of a hash between two places where its line may break."""


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """One line of what was compared: a title, and what both runs have; `pieces` are those of a hash."""

    title: str
    reference: str
    candidate: str
    differs: bool = False
    hashed: bool = False

    @property
    def pieces(self) -> tuple[list[str], list[str]]:
        """Both hashes in groups of digits."""
        return _groups(self.reference), _groups(self.candidate)


@dataclass(frozen=True, slots=True)
class Line:
    """One criterion. `told` is what has to be said under it: what failed and where, or how to measure it."""

    number: str
    name: str
    measured: str
    limit: str
    source: str
    role: str
    result: str
    required: bool
    told: str


@dataclass(frozen=True, slots=True)
class AcceptSheet:
    """Everything that an acceptance document says."""

    role: str
    badge: str
    title: str
    document: str
    model: str
    project: str
    made: str
    version: str
    sentence: str
    counts: str
    simulated: tuple[str, ...]
    uncovered: str
    compared: tuple[ComparedRow, ...]
    policy: str
    policy_hash: tuple[str, ...]
    policy_text: str
    failing: tuple[Line, ...]
    lines: tuple[Line, ...]
    deviations: tuple[str, ...]
    notes: tuple[str, ...]
    limits: tuple[str, ...]
    unseen: tuple[str, ...]


def make_sheet(result: AcceptResult, t: Language) -> AcceptSheet:
    """The view of an acceptance; `t` has the words of acceptance."""
    lines = tuple(_line(number, each, t) for number, each in enumerate(result.criteria, 1))
    missed = [result.criteria.index(each) for each in failing(result)]
    return AcceptSheet(
        role=ROLES[result.verdict],
        badge=badge(result, t),
        title=_title(result, t),
        document=document_id(result),
        model=shortened(result.title),
        project=shortened(result.project),
        made=visible(result.made),
        version=visible(result.align_version),
        sentence=_said(result.summary, t),
        counts=_counts(result, t),
        simulated=tuple(_simulated(result, t)),
        uncovered=t.said(joined(" ", [_said(each, t) for each in result.not_covered])),
        compared=tuple(_compared(result, t)),
        policy=_policy(result, t),
        policy_hash=tuple(_groups(visible(result.policy.sha256))),
        policy_text=visible_lines(result.policy.text),
        failing=tuple(lines[place] for place in missed),
        lines=lines,
        deviations=tuple(_said(each, t) for each in result.deviations),
        notes=tuple(_said(each, t) for each in result.notes),
        limits=tuple(_limits(result, t)),
        unseen=tuple(_unseen(result, t)),
    )


def document_id(result: AcceptResult) -> str:
    """The name of the document, made from the hashes of both files and the policy and from what was judged.

    The same inputs give the same name, whenever and wherever they are judged.
    """
    judged = [
        (
            each.code,
            str(each.outcome),
            _digits(each.measured),
            _digits(None if each.limit is None else each.limit.value),
        )
        for each in result.criteria
    ]
    parts = (result.reference.sha256, result.candidate.sha256, result.policy.sha256, str(result.steps), repr(judged))
    digest = hashlib.sha256("\n".join(parts).encode("utf-8", "backslashreplace")).hexdigest()
    return f"align-accept-{digest[:ID_DIGITS]}"


def _digits(number: float | None) -> str:
    """The number to six digits: sums differ in their last ones from machine to machine."""
    return "-" if number is None else f"{number:.6g}"


def _title(result: AcceptResult, t: Language) -> str:
    files = f"{_file(result.reference.path)} {t['against']} {_file(result.candidate.path)}"
    return f"{t[f'accept_{result.verdict}']} {document_id(result)} - {files} - align"


def _file(path: str) -> str:
    return shortened(PurePath(path).name)


def _said(text: str, t: Language) -> str:
    return visible(t.said(text))


def _line(number: int, criterion: Criterion, t: Language) -> Line:
    told: list[str] = []
    if criterion.outcome is not Outcome.PASS or criterion.remark:
        told = [_said(text, t) for text in (criterion.sentence, criterion.advice) if text]
    source = ""
    if criterion.limit is not None:
        source = _said(criterion.limit.source, t) or t["accept_project_limit"]
    return Line(
        number=str(number),
        name=visible(name_of(criterion, t)),
        measured=measured_text(criterion, t),
        limit=limit_text(criterion, t),
        source=source,
        role=RESULT_ROLES[result_key(criterion)],
        result=t[result_key(criterion)],
        required=criterion.required,
        told=t.said(joined(" ", told)) if told else "",
    )


def _counts(result: AcceptResult, t: Language) -> str:
    """How many of the required criteria are met, and how many could not be measured."""
    required = [each.outcome for each in result.criteria if each.required]
    others = [each.outcome for each in result.criteria if not each.required]
    return t["document_counts"].format(
        met=wording.count(required.count(Outcome.PASS)),
        required=wording.count(len(required)),
        open=wording.count(required.count(Outcome.NOT_MEASURED)),
        others=wording.count(others.count(Outcome.NOT_MEASURED)),
    )


def _simulated(result: AcceptResult, t: Language) -> Iterator[str]:
    for side, run in zip(("reference", "candidate"), result.runs, strict=True):
        if run is not None and run.simulated:
            yield t["note_simulated"].format(side=t[side])


def _compared(result: AcceptResult, t: Language) -> Iterator[ComparedRow]:
    """What was compared, line by line."""
    ours, theirs = result.reference, result.candidate
    yield ComparedRow(t["document_file"], _path(ours), _path(theirs))
    hashes = [visible(each.sha256) or t["not_recorded"] for each in (ours, theirs)]
    yield ComparedRow("sha256", hashes[0], hashes[1], hashed=True)
    for title, written in (("device", _device), ("software", _software), ("precision", _precision)):
        one, other = (t["document_no_run"] if run is None else written(run, t) for run in result.runs)
        yield ComparedRow(t[f"document_{title}"], one, other, differs=one != other)
    counts = [_steps(result, number, t) for number in result.recorded]
    yield ComparedRow(t["document_steps"], counts[0], counts[1])
    yield ComparedRow(t["document_columns"], _columns(ours, t), _columns(theirs, t))


def _path(curves: Curves) -> str:
    return f"{shortened(curves.path)} ({curves.kind})"


def _device(run: RunInfo, t: Language) -> str:
    count = f"{run.device_count} x " if run.device_count > 1 else ""
    kind = f"{run.device_type}, {t['simulated']}" if run.simulated else run.device_type
    ranks = f", {t['document_ranks'].format(count=run.world_size)}" if run.world_size > 1 else ""
    return visible(f"{count}{run.device_name} ({kind}){ranks}" if run.device_name else f"{count}{kind}{ranks}")


def _software(run: RunInfo, t: Language) -> str:
    known = {name.lower(): version for name, version in run.versions.items()}
    told = [f"{name} {known[name]}" for name in SOFTWARE if name in known]
    return visible(", ".join(told)) or t["not_recorded"]


def _precision(run: RunInfo, t: Language) -> str:
    told = t["document_autocast"].format(dtype=wording.dtype(run.autocast)) if run.autocast else t["document_plain"]
    switched = [name for name in NUMBER_FLAGS if run.flags.get(name) is True]
    return visible(f"{told}; {', '.join(switched)}" if switched else told)


def _steps(result: AcceptResult, recorded: int, t: Language) -> str:
    steps = result.reference.steps
    return t["document_steps_of"].format(
        first=str(int(steps[0])), last=wording.count(int(steps[-1])), count=wording.count(result.steps),
        recorded=wording.count(recorded),
    )  # fmt: skip


def _columns(curves: Curves, t: Language) -> str:
    told = [f"{t[f'quantity_{quantity}']}: {shortened(name, 40)}" for quantity, name in curves.taken.items()]
    return "; ".join(told) or str(curves.kind)


def _policy(result: AcceptResult, t: Language) -> str:
    if result.policy.path:
        return t["document_policy_file"].format(name=shortened(result.policy.name), path=shortened(result.policy.path))
    return t["document_policy_built_in"].format(name=shortened(result.policy.name))


def _limits(result: AcceptResult, t: Language) -> Iterator[str]:
    """How the limits were chosen."""
    yield t["document_limits_policy"].format(name=shortened(result.policy.name))
    yield t["document_limits_window"].format(window=wording.count(result.window))
    if result.floors:
        yield t["document_limits_floors"].format(
            count=wording.count(len(result.floors)), paths=", ".join(map(_file, result.floors))
        )
    else:
        yield t["document_limits_no_floor"]
    if result.preliminary:
        yield t["document_limits_steps"].format(
            steps=wording.count(result.steps), minimum=wording.count(result.policy.minimum_steps)
        )


def _unseen(result: AcceptResult, t: Language) -> Iterator[str]:
    """What could not be seen: what this record does not cover, and what was not measured."""
    yield from (_said(each, t) for each in result.not_covered)
    open_ones = [name_of(each, t) for each in result.criteria if each.outcome is Outcome.NOT_MEASURED]
    if open_ones:
        yield t["document_unseen_open"].format(criteria="; ".join(map(visible, open_ones)))


def visible_lines(text: str) -> str:
    """A text of several lines, safe to show."""
    return "\n".join(visible(line) for line in text.splitlines())


def _groups(digits: str) -> list[str]:
    return [digits[start : start + GROUP] for start in range(0, len(digits), GROUP)]
