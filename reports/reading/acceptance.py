"""The document of an acceptance back into its result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from align.acceptance_records import Acceptance, AcceptResult, Criterion, Outcome, PolicyInfo
from align.curve_records import CurveKind, Curves, Quantity
from align.records import RunInfo
from align.reports.reading.values import (
    MOST,
    Misread,
    below,
    mapping,
    number,
    read_as,
    read_key,
    read_record,
    read_word,
    sequence,
)
from align.sentences import say

SIDES = ("reference", "candidate")
OF_RUN = "align_version"
"""A key of every captured run: logs know nothing of theirs."""


def read_acceptance(found: Mapping[str, Any]) -> AcceptResult:
    """The acceptance that a document holds; raises Misread where a value of it is wrong."""
    ours, theirs = (_curves(found, side) for side in SIDES)
    if len(ours.steps) != len(theirs.steps) or not len(ours.steps):
        raise Misread("curves", say("has {} and {} steps, not as many of both", len(ours.steps), len(theirs.steps)))
    recorded = mapping(found.get("recorded"), "recorded")
    result = AcceptResult(
        reference=ours,
        candidate=theirs,
        policy=read_key(PolicyInfo, found, "policy"),
        verdict=read_key(Acceptance, found, "verdict"),
        summary=read_key(str, found, "summary"),
        criteria=read_key(tuple[Criterion, ...], found, "criteria"),
        steps=read_key(int, found, "steps"),
        preliminary=read_key(bool, found, "preliminary"),
        window=read_key(int, found, "window"),
        deviations=read_key(tuple[str, ...], found, "deviations"),
        not_covered=read_key(tuple[str, ...], found, "not_covered"),
        notes=read_key(tuple[str, ...], found, "notes"),
        title=read_key(str, found, "title"),
        project=read_key(str, found, "project"),
        made=read_key(str, found, "made"),
        align_version=read_key(str, found, "align_version"),
        floors=read_key(tuple[str, ...], found, "floors"),
        recorded=(_count(recorded, "reference"), _count(recorded, "candidate")),
    )
    _check_verdict(result)
    return result


def _check_verdict(result: AcceptResult) -> None:
    """Raise Misread where the verdict is not that of the criteria, or the steps are not those of the curves."""
    outcomes = {each.outcome for each in result.criteria if each.required}
    verdict = Acceptance.PASS if outcomes and Outcome.NOT_MEASURED not in outcomes else Acceptance.UNKNOWN
    verdict = Acceptance.FAIL if Outcome.FAIL in outcomes else verdict
    if result.verdict is not verdict:
        raise Misread("verdict", say("is '{}', but the criteria come to '{}'", result.verdict, verdict))
    for run in (result.reference, result.candidate):
        if len(run.steps) != result.steps or (np.diff(run.steps) <= 0).any():
            raise Misread("curves", say("are not of {} rising steps", result.steps))
    if result.preliminary is not (result.steps < result.policy.minimum_steps):
        raise Misread(
            "preliminary",
            say(
                "is {}, with {} steps of {}", str(result.preliminary).lower(), result.steps, result.policy.minimum_steps
            ),
        )


def _curves(found: Mapping[str, Any], side: str) -> Curves:
    place, at = f"runs.{side}", f"curves.{side}"
    run = mapping(mapping(found.get("runs"), "runs").get(side), place)
    table = mapping(mapping(found.get("curves"), "curves").get(side), at)
    steps = sequence(table.get("step"), below(at, "step"))
    for row, step in enumerate(steps):
        if type(step) is not int or not -MOST <= step < MOST:
            raise Misread(f"{at}.step[{row}]", say("is {}, not the number of a step", f"{step!r:.40}"))
    flags = {name: _column(table, name, len(steps), at) for name in ("nonfinite", "skipped")}
    taken = mapping(run.get("taken"), below(place, "taken"))
    return Curves(
        path=read_as(str, run.get("path"), below(place, "path")),
        kind=read_as(CurveKind, run.get("kind"), below(place, "kind")),
        steps=np.array(steps, np.int64),
        columns={
            quantity: _numbers(_column(table, str(quantity), len(steps), at), below(at, str(quantity)))
            for quantity in Quantity
            if str(quantity) in table
        },
        nonfinite=np.array([read_as(bool, flag, at) for flag in flags["nonfinite"]], np.bool_),
        skipped=np.array([read_as(bool, flag, at) for flag in flags["skipped"]], np.bool_),
        taken={_quantity(name, place): read_as(str, column, place) for name, column in taken.items()},
        sha256=read_as(str, run.get("sha256"), below(place, "sha256")),
        run=read_record(RunInfo, run, place) if OF_RUN in run else None,
        notes=read_as(tuple[str, ...], run.get("curve_notes", []), below(place, "curve_notes")),
    )


def _column(table: Mapping[str, Any], name: str, length: int, place: str) -> list[Any]:
    column = sequence(table.get(name), below(place, name))
    if len(column) != length:
        raise Misread(below(place, name), say("has {} rows, not {}", len(column), length))
    return column


def _numbers(column: list[Any], place: str) -> NDArray[np.float64]:
    """A column of numbers; words stand for those that JSON cannot hold."""
    plain = all(type(value) is float for value in column)
    listed = column if plain else [number(value, f"{place}[{row}]") for row, value in enumerate(column)]
    try:
        return np.array(listed, np.float64)
    except OverflowError as error:
        raise Misread(place, say("holds a number that is too large")) from error


def _quantity(name: str, place: str) -> Quantity:
    return read_word(Quantity, name, below(place, "taken"))


def _count(recorded: Mapping[str, Any], side: str) -> int:
    count: int = read_as(int, recorded.get(side), f"recorded.{side}")
    return count
