"""Single operators, measured elsewhere against a standard: a table with a limit in every row."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from align import wording
from align.acceptance.case import Case, OperatorResult
from align.acceptance.policy import Setting
from align.acceptance.telling import Found, judged, not_measured
from align.acceptance_records import Criterion, Limit, Measure
from align.curve_files.shown import shown
from align.errors import CurveError
from align.sentences import say

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "op": ("op", "operator", "name", "api", "api name"),
    "dtype": ("dtype", "data type", "type"),
    "ratio": ("ratio", "measured ratio", "measured", "value"),
    "limit": ("limit", "threshold", "allowed"),
    "source": ("source", "standard"),
}
NEEDED = ("op", "ratio", "limit")
SHOWN = 5
MANY = 100
AT_MOST = "at most"


def read_operators(path: str) -> tuple[OperatorResult, ...]:
    """Read a CSV or TSV file with the columns op, ratio and limit, and perhaps dtype and source.

    Raises CurveError for a file that cannot be read, and for a row without numbers or with a limit that is none.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or say("it is not UTF-8 text")
        raise CurveError(
            say(
                "Cannot read the operators in '{}': {}. Name a CSV file with the columns op, ratio and limit.",
                path,
                reason,
            )
        ) from error
    head, _, _ = text.partition("\n")
    delimiter = max(",;\t", key=head.count)
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    except csv.Error as error:
        raise CurveError(
            say(
                "Cannot read the operators in '{}': {}. Write a CSV file with the columns op, ratio and limit.",
                path,
                error,
            )
        ) from error
    columns = _columns(path, [cell.strip() for cell in rows[0]] if rows else [])
    found = tuple(
        _result(path, columns, number, row) for number, row in enumerate(rows[1:], 2) if any(map(str.strip, row))
    )
    if not found:
        raise CurveError(say("Cannot read the operators in '{}': there is no row below its names of columns.", path))
    return found


def _columns(path: str, names: Sequence[str]) -> dict[str, int]:
    """Where each column stands."""
    plain = [name.lower().replace("_", " ") for name in names]
    places = {
        column: plain.index(said)
        for column, synonyms in COLUMNS.items()
        for said in reversed(synonyms)
        if said in plain
    }
    missing = [column for column in NEEDED if column not in places]
    if missing:
        raise CurveError(
            say(
                "Cannot read the operators in '{}': there is no column {} in its first line ({}). Write the "
                "columns op, dtype, ratio, limit and source.",
                path,
                wording.listing([repr(one) for one in missing]),
                ", ".join(names)[:200],
            )
        )
    return places


def _result(path: str, columns: Mapping[str, int], number: int, row: Sequence[str]) -> OperatorResult:
    cells = {column: row[place].strip() if place < len(row) else "" for column, place in columns.items()}
    values = []
    for column in ("ratio", "limit"):
        place = say("'{}' in line {}, column '{}',", shown(cells[column]), number, column)
        try:
            values.append(float(cells[column]))
        except ValueError as error:
            raise CurveError(
                say("Cannot read the operators in '{}': {} is no number. Write numbers such as 1.25.", path, place)
            ) from error
        # An infinite limit would pass whatever was measured; a ratio that is not finite is beyond every limit.
        if values[-1] < 0 or (column == "limit" and not math.isfinite(values[-1])):
            raise CurveError(
                say(
                    "Cannot read the operators in '{}': {} is no size. Write numbers from 0 on, such as 1.25.",
                    path,
                    place,
                )
            )
    return OperatorResult(cells["op"], cells.get("dtype", ""), values[0], values[1], cells.get("source", ""))


def operators(case: Case, setting: Setting) -> Criterion:
    """Whether every operator is within its own limit; the one nearest to it, or farthest beyond, is named."""
    if case.operators is None:
        return not_measured(
            setting,
            Measure.NUMBER,
            say("Single operators were not held against a standard."),
            say(
                "Run the operator standard for the operators of this model, and give its results by `--ops FILE`, a "
                "CSV file with the columns op, dtype, ratio, limit."
            ),
        )
    missed = [each for each in case.operators if not each.met]
    worst = max(case.operators, key=_share)
    sentence = say(
        "{} of {} are within their limits; {} has {} of {} allowed.",
        wording.count(len(case.operators) - len(missed)),
        wording.plural(len(case.operators), "operator"),
        _named(worst),
        wording.value(worst.measured),
        wording.value(worst.limit),
    )
    if missed:
        names = [_named(each) for each in sorted(missed, key=_share, reverse=True)]
        sentence = say("{} Beyond them: {}.", sentence, wording.listing(names[:SHOWN], len(names)))
    limit = Limit(worst.limit, AT_MOST, worst.source or setting.source or say("the file of operators"))
    evidence = {"missed": [_named(each) for each in missed[:MANY]], "operators": len(case.operators)}
    found = Found(worst.measured, Measure.NUMBER, sentence, evidence)
    advice = say("Run these operators alone with the same inputs on both devices, and on the CPU in fp64.")
    return judged(setting, found, advice, limit=limit, passed=not missed)


def _share(result: OperatorResult) -> float:
    """The measured value in limits."""
    if math.isnan(result.measured) or math.isnan(result.limit):
        return math.inf
    if result.limit <= 0:
        return math.inf if result.measured > result.limit else 1.0
    return result.measured / result.limit


def _named(result: OperatorResult) -> str:
    return f"{result.name} {result.dtype}".strip()
