"""The table of tensors for the page's own script: columns whose numbers are already rounded as they are shown."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from align import wording
from align.records import INIT_STEP, Status
from align.reports import rows
from align.reports.columns import columnar, rounded
from align.reports.visible import shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from align.records import Comparison, DiffResult, TensorRecord
    from align.reports.language import Language

_WORDS = (
    "init_step",
    "cell_equal",
    "cell_not_compared",
    "absolute_maximum",
    "rows_shown",
    "rows_matching",
    "rows_none",
    *(f"status_{status}" for status in Status),
)


def page_data(result: DiffResult, start: int, phrases: Language) -> str:
    """The JSON for the page; `start` is the row at which its table opens."""
    data = {
        **columnar(_TEXTS, _NUMBERS, result.comparisons),
        "start": start,
        "first": rows.first_index(result),
        "words": {name: phrases[name] for name in _WORDS},
        "signs": {str(status): sign for status, sign in rows.STATUS_SIGNS.items()},
        "initStep": INIT_STEP,
    }
    return script_safe(json.dumps(data, allow_nan=False, ensure_ascii=True, separators=(",", ":")))


def script_safe(text: str) -> str:
    """JSON that cannot end the script element it stands in."""
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _shown(value: float | None, digits: int) -> float | str | None:
    """The number to the digits that the table shows."""
    if value is None or math.isfinite(value):
        number = rounded(value, digits)
        return int(number) if number is not None and number == int(number) else number
    return wording.relative(value)


def _relative(pair: Comparison) -> float | str | None:
    """The difference; 0 says equal, and a negative number that it is below that resolution."""
    if rows.is_equal(pair):
        return 0
    return _shown(-rows.resolution(pair) if pair.relative_l2 == 0 else pair.relative_l2, 2)


def _times(pair: Comparison) -> float | str | None:
    if pair.times_floor is None or not pair.relative_l2 or rows.is_equal(pair):
        return None
    return round(pair.times_floor, 1) if pair.times_floor < 9.95 else _shown(pair.times_floor, 3)  # noqa: PLR2004 - same


def _largest(record: TensorRecord) -> float | str | None:
    magnitude = rows.largest(record)
    if magnitude is None:
        return None
    return round(magnitude) if 1e4 <= magnitude < 1e6 else _shown(magnitude, 4)  # noqa: PLR2004 - as wording.value


_TEXTS: Mapping[str, Callable[[Comparison], str]] = {
    "phase": lambda pair: str(pair.key.phase),
    "name": lambda pair: shortened(pair.key.name),
    "slot": lambda pair: shortened(rows.slot_text(pair.key)),
    "status": lambda pair: str(pair.status),
    "reference": lambda pair: rows.kind_text(pair.reference),
    "candidate": lambda pair: rows.kind_text(pair.candidate),
}
_NUMBERS: Mapping[str, Callable[[Comparison], Any]] = {
    "step": lambda pair: pair.key.step,
    "relative": _relative,
    "floor": lambda pair: _shown(pair.floor, 2),
    "times": _times,
    "reference_largest": lambda pair: _largest(pair.reference),
    "candidate_largest": lambda pair: _largest(pair.candidate),
}
