"""Documents back into results, one function for each command."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

from align.acceptance_records import AcceptResult
from align.checkpoint_records import CheckpointResult, CheckpointSide, EntryRow
from align.records import (
    DiffResult,
    Divergence,
    Exponents,
    Finding,
    Health,
    InspectResult,
    ModuleInfo,
    Pairing,
    Place,
    Reply,
    Resolution,
    RunInfo,
    Shown,
    Table,
    TimelineRow,
    Verdict,
)
from align.reports.reading.acceptance import read_acceptance
from align.reports.reading.columns import read_columns, read_rows
from align.reports.reading.comparisons import read_comparisons, read_keys, read_shape
from align.reports.reading.values import (
    SPECIAL,
    Misread,
    below,
    mapping,
    read_as,
    read_key,
    read_record,
    sequence,
    shown,
)
from align.sentences import say

T = TypeVar("T")
Result: TypeAlias = DiffResult | InspectResult | CheckpointResult | AcceptResult

SIDES = ("reference", "candidate")


def read_document(found: Mapping[str, Any]) -> Result:
    """The result that a document of format `align/1` holds; raises Misread where a value of it is wrong."""
    command = found.get("command", _guessed(found))
    if not isinstance(command, str) or command not in READERS:
        raise Misread("command", say("is {}, not one of {}", shown(command), ", ".join(READERS)))
    return READERS[command](found)


def _guessed(found: Mapping[str, Any]) -> str:
    """The command of a document that does not tell it, as earlier versions wrote them."""
    marks = {"checkpoints": "checkpoint", "criteria": "accept", "replies": "inspect"}
    return next((command for key, command in marks.items() if key in found), "diff")


def _diff(found: Mapping[str, Any]) -> DiffResult:
    runs = mapping(found.get("runs"), "runs")
    lines = mapping(found.get("timeline"), "timeline")
    ours, theirs = (read_rows(TimelineRow, lines.get(side), f"timeline.{side}") for side in SIDES)
    return DiffResult(
        reference_path=_path(runs, "reference"),
        candidate_path=_path(runs, "candidate"),
        reference=read_record(RunInfo, runs.get("reference"), "runs.reference"),
        candidate=read_record(RunInfo, runs.get("candidate"), "runs.candidate"),
        verdict=read_key(Verdict, found, "verdict"),
        summary=read_key(str, found, "summary"),
        first_divergence=read_key(Divergence | None, found, "first_divergence"),
        findings=read_key(tuple[Finding, ...], found, "findings"),
        resolution=read_key(Resolution, found, "resolution"),
        comparisons=read_comparisons(found.get("records"), "records"),
        only_reference=read_keys(found.get("only_reference"), "only_reference"),
        only_candidate=read_keys(found.get("only_candidate"), "only_candidate"),
        counts=read_key(Mapping[str, int], found, "counts"),
        reference_timeline=ours,
        candidate_timeline=theirs,
        modules=read_rows(ModuleInfo, found.get("modules"), "modules"),
        pairing=read_key(Pairing, found, "pairing"),
        exponents=_exponents(found),
    )


def _inspection(found: Mapping[str, Any]) -> InspectResult:
    runs = mapping(found.get("runs"), "runs")
    lines = mapping(found.get("timeline"), "timeline")
    paths = read_key(tuple[str, ...], found, "paths")
    if not paths:
        raise Misread("paths", say("is empty"))
    return InspectResult(
        paths=paths,
        run=read_record(RunInfo, runs.get("candidate"), "runs.candidate"),
        verdict=read_key(Health, found, "verdict"),
        summary=read_key(str, found, "summary"),
        findings=read_key(tuple[Finding, ...], found, "findings"),
        replies=read_key(tuple[Reply, ...], found, "replies"),
        timeline=read_rows(TimelineRow, lines.get("candidate"), "timeline.candidate"),
        modules=read_rows(ModuleInfo, found.get("modules"), "modules"),
        counts=read_key(Mapping[str, int], found, "counts"),
        first=read_key(Place | None, found, "first_divergence"),
        tables=_listed(_table, found, "tables"),
        captured=read_key(tuple[int, ...], found, "captured"),
        exponents=_exponents(found),
    )


def _table(value: Any, place: str) -> Table:
    """A table whose numbers are numbers again: the words nan and inf in a column of text are text."""
    table = read_record(Table, value, place)
    text = [column.shown in {Shown.TEXT, Shown.NAME} for column in table.columns]
    for number, row in enumerate(table.rows):
        if len(row) != len(text):
            raise Misread(f"{place}.rows[{number}]", say("has {} cells, not {}", len(row), len(text)))
    rows = tuple(
        tuple(SPECIAL.get(cell, cell) if isinstance(cell, str) and not is_text else cell for cell, is_text in pairs)
        for pairs in (zip(row, text, strict=True) for row in table.rows)
    )
    return replace(table, rows=rows)


def _checkpoints(found: Mapping[str, Any]) -> CheckpointResult:
    sides = mapping(found.get("checkpoints"), "checkpoints")
    return CheckpointResult(
        reference=read_record(CheckpointSide, sides.get("reference"), "checkpoints.reference"),
        candidate=read_record(CheckpointSide, sides.get("candidate"), "checkpoints.candidate"),
        verdict=read_key(Verdict, found, "verdict"),
        summary=read_key(str, found, "summary"),
        findings=read_key(tuple[Finding, ...], found, "findings"),
        first_divergence=read_key(Divergence | None, found, "first_divergence"),
        rows=_entries(found.get("records")),
        only_reference=read_key(tuple[str, ...], found, "only_reference"),
        only_candidate=read_key(tuple[str, ...], found, "only_candidate"),
        renamed=_listed(_renaming, found, "renamed"),
        counts=read_key(Mapping[str, int], found, "counts"),
        notes=read_key(tuple[str, ...], found, "notes"),
    )


def _renaming(value: Any, place: str) -> tuple[str, int]:
    """A rule in one line, and how many entries it renames."""
    rule = mapping(value, place)
    return read_as(str, rule.get("rule"), f"{place}.rule"), read_as(int, rule.get("entries"), f"{place}.entries")


def _entries(value: Any) -> tuple[EntryRow, ...]:
    table = read_columns(value, "records")
    texts = [table.texts(name) for name in ("reference", "candidate", "relation", "said", "paired_by")]
    dtypes = [table.texts(f"{side}_dtype") for side in SIDES]
    shapes = [table.words(f"{side}_shape", read_shape) for side in SIDES]
    places = table.counts("candidate_place")
    columns = (*texts, table.numbers("relative_l2"), *dtypes, *shapes, places)
    return tuple(EntryRow(*row) for row in zip(*columns, strict=True))


def _listed(read: Callable[[Any, str], T], found: Mapping[str, Any], key: str) -> tuple[T, ...]:
    """The entries of a list, each read by a function of its own."""
    return tuple(read(each, below(key, number)) for number, each in enumerate(sequence(found.get(key), key)))


def _exponents(found: Mapping[str, Any]) -> tuple[Exponents, ...]:
    """What earlier versions did not write."""
    return read_as(tuple[Exponents, ...], found.get("exponents", []), "exponents")  # type: ignore[no-any-return]


def _path(runs: Mapping[str, Any], side: str) -> str:
    run = mapping(runs.get(side), f"runs.{side}")
    return read_as(str, run.get("path"), f"runs.{side}.path")  # type: ignore[no-any-return]


READERS: Mapping[str, Callable[[Mapping[str, Any]], Result]] = {
    "diff": _diff,
    "inspect": _inspection,
    "checkpoint": _checkpoints,
    "accept": read_acceptance,
}
