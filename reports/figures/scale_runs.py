"""The loss scale of each run, step by step: what was skipped and why, what raised it. No drawing here."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from align.records import INIT_STEP, Curve, DiffResult, InspectResult, Phase, Shown
from align.reports.figures.lines import Line, make_line
from align.reports.rows import slot_text
from align.reports.visible import shortened

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from align.records import Comparison, TensorKey, TensorRecord, TimelineRow
    from align.reports.language import Language

LONGEST_CAUSE = 90


@dataclass(frozen=True, slots=True)
class Skip:
    """One skipped step: the scale of it and the one it left, None where that is not known; its cause, or an empty text.

    `captured` says whether the tensors of the step are known.
    """

    step: int
    before: float
    after: float | None
    cause: str
    captured: bool


@dataclass(frozen=True, slots=True, eq=False)
class ScaleRun:
    """The loss scale of one run: `side` is `reference`, `candidate` or `run`, `growths` the steps that raised it."""

    side: str
    line: Line
    skips: tuple[Skip, ...]
    growths: tuple[int, ...]
    total: int

    @property
    def known(self) -> bool:
        """Whether any step has a scale."""
        return len(self.line.steps) > 0


def runs_of(result: DiffResult | InspectResult, phrases: Language) -> tuple[ScaleRun, ...]:
    """The loss scales of both runs, the reference first, or of the one run."""
    return _of_pair(result, phrases) if isinstance(result, DiffResult) else (_of_run(result, phrases),)


def captured_steps(result: DiffResult | InspectResult) -> set[int]:
    """The steps whose tensors are known."""
    if isinstance(result, DiffResult):
        return {pair.key.step for pair in result.comparisons if pair.key.step != INIT_STEP}
    return set(result.captured)


def _of_pair(result: DiffResult, phrases: Language) -> tuple[ScaleRun, ...]:
    captured = captured_steps(result)
    found = []
    for side, rows in (("reference", result.reference_timeline), ("candidate", result.candidate_timeline)):
        first = _first_nonfinite(result.comparisons, side, rows)
        causes = {step: f"{phrases.word(str(key.phase))}: {_tensor(key)}" for step, key in first.items()}
        found.append(_run(side, rows, causes, captured))
    return tuple(found)


def _of_run(result: InspectResult, phrases: Language) -> ScaleRun:
    """The causes of one run are those that the inspection has found."""
    causes: dict[int, str] = {}
    for table in result.tables:
        kinds = [column.shown for column in table.columns]
        if table.curve is not Curve.LOSS_SCALE or kinds[:1] != [Shown.COUNT] or Shown.NAME not in kinds:
            continue
        place = kinds.index(Shown.NAME)
        for row in table.rows:
            if isinstance(row[0], int) and row[place]:
                causes.setdefault(row[0], shortened(phrases.said(row[place]), LONGEST_CAUSE))
    return _run("run", result.timeline, causes, set(result.captured))


def _run(side: str, rows: Sequence[TimelineRow], causes: Mapping[int, str], captured: set[int]) -> ScaleRun:
    scaled = sorted((row for row in rows if not math.isnan(row.loss_scale)), key=lambda row: row.step)
    line = make_line([row.step for row in scaled], [row.loss_scale for row in scaled])
    skips = tuple(
        Skip(
            row.step,
            row.loss_scale,
            None if math.isnan(row.loss_scale_after) else row.loss_scale_after,
            causes.get(row.step, ""),
            row.step in captured,
        )
        for row in scaled
        if row.skipped
    )
    growths = tuple(row.step for row in scaled if row.loss_scale_after > row.loss_scale)
    return ScaleRun(side, line, skips, growths, len(scaled))


def _tensor(key: TensorKey) -> str:
    return shortened(f"{key.name} {slot_text(key)}", LONGEST_CAUSE)


def _first_nonfinite(comparisons: Iterable[Comparison], side: str, rows: Sequence[TimelineRow]) -> dict[int, TensorKey]:
    """The first tensor of each skipped step that is not finite and is so in skipped steps only: masks are meant."""
    skipped = {row.step: row.skipped for row in rows}
    meant: set[tuple[Phase, str, str]] = set()
    seen: dict[int, list[TensorKey]] = defaultdict(list)
    for pair in comparisons:
        record: TensorRecord = getattr(pair, side)
        key = pair.key
        if key.phase is Phase.INPUT or record.stats is None or not record.stats.nonfinite:
            continue
        if skipped.get(key.step):
            seen[key.step].append(key)
        else:
            meant.add((key.phase, key.name, key.slot))
    first = {
        step: next((key for key in keys if (key.phase, key.name, key.slot) not in meant), None)
        for step, keys in seen.items()
    }
    return {step: key for step, key in first.items() if key is not None}
