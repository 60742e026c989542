"""The tensors of a comparison for the page's own script: names once, numbers in packed columns.

A tensor's name, slot, dtype, shape, ... are a *structure*; the steps of a run share them, so that a step is a list of
structures, held once for all steps that are alike. The script reads it in `records.js`.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from align import wording
from align.records import INIT_STEP, Aspect, Phase, Status
from align.reports import rows
from align.reports.kept_rows import STARTS, kept_rows, usual_limit
from align.reports.packed import Places, exact, integers, logarithmic
from align.reports.templating import script_safe
from align.reports.visible import shortened, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from align.records import Comparison, DiffResult, Finding, TensorRecord, TensorStats

EXACT_ROWS = 20_000
"""Up to here every number is a float32; above, two bytes hold it to 0.2 %."""
NAME_LETTERS = 10_000
DETAILED = 2000
"""Rows of a large comparison whose numbers and statistics are exact at most."""
STATUSES = tuple(Status)
ASPECTS = tuple(Aspect)
PHASES = tuple(Phase)
EQUAL, MEASURED, BELOW, UNEQUAL, NOT_COMPARED = range(5)
"""What stands in the place of the difference: see `difference_text`."""
DIFFERENCE_BITS, TIMES_BIT = 3, 64


def page_data(result: DiffResult, shown: Sequence[int]) -> str:
    """The JSON for the page; `shown` are the rows of its plain table, which the script shows with the same numbers."""
    return script_safe(collected(result, shown))


def collected(result: DiffResult, shown: Sequence[int]) -> dict[str, Any]:
    """The data as plain values."""
    first, focus = rows.first_index(result), rows.focus_index(result)
    kept = kept_rows(result.comparisons, first)
    pairs = [result.comparisons[place] for place in kept]
    places = {place: row for row, place in enumerate(kept)} if len(pairs) < len(result.comparisons) else None
    where = (lambda place: place) if places is None else (lambda place: places.get(place, -1))
    few = len(pairs) <= EXACT_ROWS
    detailed = [] if few else _detailed(pairs, [where(place) for place in shown])
    return {
        "length": len(pairs),
        "total": len(result.comparisons),
        "numbers": None if places is None else integers(list(kept)),
        "first": -1 if first is None else where(first),
        "focus": -1 if focus is None else where(focus),
        "initStep": INIT_STEP,
        "signs": {str(status): sign for status, sign in rows.STATUS_SIGNS.items()},
        "limit": usual_limit(pairs),
        **_structures(pairs),
        "flags": integers([_flags(pair) for pair in pairs]),
        "aspects": _aspects(pairs),
        "columns": _columns(pairs, exact if few else logarithmic, _NUMBERS if few else _ALWAYS),
        "detailed": integers(detailed) if detailed else None,
        "details": _columns([pairs[row] for row in detailed], exact, _NUMBERS) if detailed else {},
        "nonfinite": _nonfinite(pairs, None if few else set(detailed)),
        "modules": _modules(result),
        "findings": [_finding(finding) for finding in result.findings],
        "files": [visible(result.reference_path), visible(result.candidate_path)],
    }


def _structures(pairs: Sequence[Comparison]) -> dict[str, Any]:
    """The distinct structures as columns, and the steps as lists of them."""
    structures = Places()
    ids = np.fromiter((structures(_structure(pair)) for pair in pairs), dtype=np.int64, count=len(pairs))
    phases, names, slots, micros, calls, ours, theirs, units, limits, others = _transposed(structures.values(), 10)
    name, slot, kind, other = Places(_stored), Places(_stored), Places(), Places(_stored)
    columns = {
        "phase": integers([PHASES.index(each) for each in phases]),
        "name": integers([name(each) for each in names]),
        "slot": integers([slot(each) for each in slots]),
        "micro": integers(micros),
        "call": integers(calls),
        "reference": integers([kind(each) for each in ours]),
        "candidate": integers([kind(each) for each in theirs]),
        "unit": exact(units),
        "limit": exact(limits),
        "other": integers([other(each) for each in others]),
    }
    return {
        "phases": [str(phase) for phase in PHASES],
        "statuses": [str(status) for status in STATUSES],
        "names": name.values(),
        "slots": slot.values(),
        "kinds": [_kind(each) for each in kind.values()],
        "others": other.values(),
        "structures": {"length": len(phases), **columns},
        **_steps(pairs, ids),
    }


def _transposed(lines: Sequence[Sequence[Any]], width: int) -> list[list[Any]]:
    """The columns of lines of equal length."""
    return [[line[place] for line in lines] for place in range(width)]


def _structure(pair: Comparison) -> tuple[Any, ...]:
    key, answer, ours, theirs = pair.key, pair.candidate.key, pair.reference, pair.candidate
    alike = key.owner == (answer.name, answer.slot)
    other = "" if alike else f"{answer.name} {rows.slot_text(answer)}"
    sides = (ours.dtype, ours.shape), (theirs.dtype, theirs.shape)
    return (key.phase, key.name, key.slot, key.micro, key.call, *sides, pair.unit, pair.limit, other)


def _kind(kind: tuple[str, tuple[int, ...]]) -> str:
    dtype, lengths = kind
    return f"{wording.dtype(dtype)} {wording.shape(lengths) if lengths else 'scalar'}"


def _stored(text: str) -> str:
    return shortened(text, NAME_LETTERS)


def _steps(pairs: Sequence[Comparison], ids: Any) -> dict[str, Any]:
    sequences: dict[bytes, int] = {}
    packed: list[dict[str, str]] = []
    steps: list[list[int]] = []
    start = 0
    for step, group in groupby(pairs, key=lambda pair: pair.key.step):
        end = start + sum(1 for _ in group)
        part = ids[start:end]
        known = sequences.setdefault(part.tobytes(), len(sequences))
        if known == len(packed):
            packed.append(integers(part))
        steps.append([step, known, end - start])
        start = end
    return {"sequences": packed, "steps": steps}


def _flags(pair: Comparison) -> int:
    """The status, what stands in the place of the difference, and whether there is a number of times the floor."""
    measured = pair.times_floor is not None and bool(pair.relative_l2) and not rows.is_equal(pair)
    return STATUSES.index(pair.status) | _difference(pair) << DIFFERENCE_BITS | (TIMES_BIT if measured else 0)


def _difference(pair: Comparison) -> int:
    if rows.is_equal(pair):
        return EQUAL
    if pair.relative_l2 is None:
        return UNEQUAL if rows.is_unequal(pair) else NOT_COMPARED
    return BELOW if pair.relative_l2 == 0 else MEASURED


def _relative(pair: Comparison) -> float | None:
    """The difference, or the resolution that it is below."""
    return rows.resolution(pair) if pair.relative_l2 == 0 else pair.relative_l2


def _aspects(pairs: Sequence[Comparison]) -> dict[str, Any] | None:
    """The rows whose number of times the floor is that of another aspect than the size."""
    odd = [(row, pair) for row, pair in enumerate(pairs) if pair.aspect is not Aspect.SIZE]
    if not odd:
        return None
    return {
        "words": [str(aspect) for aspect in ASPECTS],
        "rows": integers([row for row, _ in odd]),
        "aspect": integers([ASPECTS.index(pair.aspect) for _, pair in odd]),
        "times": exact(pair.times_floor for _, pair in odd),
    }


def _columns(
    pairs: Sequence[Comparison],
    pack: Callable[[Iterable[float | None]], dict[str, str] | None],
    numbers: Mapping[str, Callable[[Comparison], float | None]],
) -> dict[str, Any]:
    columns = {name: pack(map(number, pairs)) for name, number in numbers.items()}
    return {name: column for name, column in columns.items() if column is not None}


def _of_stats(side: str, number: Callable[[TensorStats], float]) -> Callable[[Comparison], float | None]:
    """A number of the statistics of one side, None of tensors that are no floats or have none."""

    def of(pair: Comparison) -> float | None:
        record: TensorRecord = getattr(pair, side)
        stats = record.stats
        if stats is None or stats.count == stats.nonfinite or "float" not in record.dtype:
            return None
        return number(stats)

    return of


_STATISTICS: Mapping[str, Callable[[TensorStats], float]] = {
    "mean": lambda stats: stats.mean,
    "rms": lambda stats: stats.rms,
    "zeros": lambda stats: stats.zeros / stats.count,
    "subnormals": lambda stats: stats.subnormals / stats.count,
}
_SIDES = ("reference", "candidate")
_ALWAYS: Mapping[str, Callable[[Comparison], float | None]] = {
    "relative": _relative,
    "floor": lambda pair: pair.floor or None,
    "reference_largest": lambda pair: rows.largest(pair.reference),
    "candidate_largest": lambda pair: rows.largest(pair.candidate),
}
_NUMBERS: Mapping[str, Callable[[Comparison], float | None]] = {
    **_ALWAYS,
    **{f"{side}_{name}": _of_stats(side, number) for side in _SIDES for name, number in _STATISTICS.items()},
}


def _detailed(pairs: Sequence[Comparison], shown: Sequence[int]) -> list[int]:
    """The rows whose numbers stay exact: those of the plain table, and where differences start."""
    starts = [row for row, pair in enumerate(pairs) if pair.status in STARTS]
    return sorted({*(row for row in shown if row >= 0), *starts[: DETAILED - len(shown)]})


def _nonfinite(pairs: Sequence[Comparison], counted: set[int] | None) -> dict[str, Any] | None:
    """The rows with NaN or Inf: how many on each side, 1 where only that there are some is kept."""
    odd = [
        (row, counts) for row, pair in enumerate(pairs) if any(counts := [*_odd(pair.reference), *_odd(pair.candidate)])
    ]
    if not odd:
        return None
    if counted is not None:
        odd = [(row, counts if row in counted else [min(1, each) for each in counts]) for row, counts in odd]
    names = [f"{side}_{what}" for side in _SIDES for what in ("nans", "infs")]
    columns = {name: integers([counts[place] for _, counts in odd]) for place, name in enumerate(names)}
    return {"rows": integers([row for row, _ in odd]), "counted": counted is None, **columns}


def _odd(record: TensorRecord) -> tuple[int, int]:
    stats = record.stats
    return (0, 0) if stats is None else (stats.nans, stats.positive_infs + stats.negative_infs)


def _modules(result: DiffResult) -> dict[str, Any]:
    """The classes of the modules, in the order in which they were made."""
    classes = Places(shortened)
    places = [classes(module.class_name) for module in result.modules]
    names = [_stored(module.name) for module in result.modules]
    return {"names": names, "class": places, "classes": classes.values()}


def _finding(finding: Finding) -> dict[str, Any]:
    """Where a finding points, so that its rows can be shown."""
    where = finding.where
    return {
        "label": visible(finding.label),
        "severity": str(finding.severity),
        "step": where.step,
        "phase": None if where.phase is None else str(where.phase),
        "name": _stored(where.name),
        "slot": None if where.slot is None else _stored(where.slot),
        "micro": where.micro,
        "call": where.call,
    }
