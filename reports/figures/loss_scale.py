"""The loss scale over the steps of one run or of two, with the skipped steps and what made them so."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from align import wording
from align.reports.figures.canvas import (
    CANDIDATE,
    DASHED,
    INK,
    KEPT,
    MUTED,
    REFERENCE,
    drawing,
    note_in,
    power_of_two,
    stacked,
    step_axis,
    worded,
)
from align.reports.figures.fitting import Zone, draw_zone, fitting_scales, zone_mark
from align.reports.figures.lines import Line, changes, some, spans, thinned
from align.reports.figures.picture import (
    DOWN,
    UP,
    Cell,
    Mark,
    Picture,
    Title,
    Valued,
    mark_field,
    mark_line,
    mark_shape,
)
from align.reports.figures.scale_runs import ScaleRun, Skip, captured_steps, runs_of
from align.reports.figures.two_runs import DASHES, shade
from align.reports.visible import visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from markupsafe import Markup

    from align.records import DiffResult, InspectResult
    from align.reports.language import Language

NAME = "fig-loss-scale"
HEIGHT = 2.6
MOST_ROWS = 40
MOST_NUMBERS = 12
"""Numbers of causes beside marks; of more skips each cause is numbered once."""


def scale_picture(result: DiffResult | InspectResult, phrases: Language) -> Picture:
    """The loss scales of both runs in one picture, or that of one run; the skips stand in the table."""
    runs, captured = runs_of(result, phrases), captured_steps(result)
    title = phrases["figure_scale"]
    known = [run for run in runs if run.known]
    if not known:
        return Picture(NAME, title, phrases["figure_scale_none"])
    if all(len(run.line.steps) < 2 and not run.skips for run in known):  # noqa: PLR2004 - two points make a line
        first = phrases.said(wording.loss_scale(float(known[0].line.values[0])))
        return Picture(NAME, title, phrases["figure_scale_one"].format(first=first))
    numbers, zone = _numbers(known), fitting_scales(result)
    rows = _rows(known, numbers, phrases)
    return Picture(
        NAME,
        title,
        _sentence(runs, numbers, phrases),
        _drawn(known, numbers, spans(captured), zone, phrases),
        (*_legend(known, captured=bool(captured), pair=len(runs) > 1, phrases=phrases), *zone_mark(zone, phrases)),
        _titles(phrases) if rows else (),
        tuple(rows[:MOST_ROWS]),
        max(0, len(rows) - MOST_ROWS),
    )


def _numbers(runs: Sequence[ScaleRun]) -> dict[str, int]:
    """A number for each cause, in the order of the steps."""
    ordered = sorted((skip for run in runs for skip in run.skips if skip.cause), key=lambda skip: skip.step)
    return {cause: number for number, cause in enumerate(dict.fromkeys(skip.cause for skip in ordered), 1)}


def _sentence(runs: Sequence[ScaleRun], numbers: Mapping[str, int], phrases: Language) -> str:
    said = [_course(run, phrases) for run in runs]
    if numbers:
        said.append(phrases["figure_scale_number"])
    return phrases["figure_between"].join(said)


def _course(run: ScaleRun, phrases: Language) -> str:
    side = "" if run.side == "run" else phrases[f"figure_{run.side}"]
    side = side[:1].upper() + side[1:]
    if not run.known:
        return phrases["figure_scale_side_none"].format(side=side)
    skips, growths = len(run.skips), len(run.growths)
    return phrases["figure_scale_course_run" if run.side == "run" else "figure_scale_course"].format(
        side=side,
        first=phrases.said(wording.loss_scale(float(run.line.values[0]))),
        first_step=wording.count(int(run.line.steps[0])),
        last=phrases.said(wording.loss_scale(_last(run))),
        skips=phrases[f"figure_skips_{_how_many(skips)}"].format(
            count=wording.count(skips),
            total=wording.count(run.total),
            step=wording.count(run.skips[0].step) if run.skips else "",
        ),
        growths=phrases[f"figure_growths_{_how_many(growths)}"].format(count=wording.count(growths)),
    )


def _last(run: ScaleRun) -> float:
    """The scale that is left in the end, where a skip in the last step has told it."""
    last = run.skips[-1] if run.skips else None
    if last is not None and last.step == int(run.line.steps[-1]) and last.after is not None:
        return last.after
    return float(run.line.values[-1])


def _how_many(number: int) -> str:
    return "none" if not number else "one" if number == 1 else "many"


def _titles(phrases: Language) -> tuple[Title, ...]:
    return (
        Title("#"),
        Title(phrases["figure_side"], Cell.TEXT),
        Title(phrases["figure_step"]),
        Title(phrases["figure_before"]),
        Title(phrases["figure_after"]),
        Title(phrases["figure_first_nonfinite"], Cell.NAME),
    )


def _rows(runs: Sequence[ScaleRun], numbers: Mapping[str, int], phrases: Language) -> list[tuple[str, ...]]:
    skips = sorted(((skip, run.side) for run in runs for skip in run.skips), key=lambda entry: entry[0].step)
    return [
        (
            str(numbers[skip.cause]) if skip.cause else "",
            phrases[f"figure_{side}"],
            str(skip.step),
            _scale(skip.before, phrases),
            phrases["figure_unknown"] if skip.after is None else _scale(skip.after, phrases),
            visible(skip.cause) or phrases["figure_no_cause" if skip.captured else "figure_not_captured"],
        )
        for skip, side in skips
    ]


def _scale(scale: float, phrases: Language) -> Valued:
    return Valued(phrases.said(wording.loss_scale(scale)), scale)


@dataclass(frozen=True, slots=True)
class Trace:
    """What is drawn of one run: the stepped line, its growths, its skips with the numbers of their causes (0: none)."""

    side: str
    line: Line
    growths: tuple[tuple[int, float], ...]
    skips: tuple[tuple[int, float, int], ...]


def _drawn(
    runs: Sequence[ScaleRun],
    numbers: Mapping[str, int],
    captured: tuple[tuple[int, int], ...],
    zone: Zone | None,
    phrases: Language,
) -> Markup:
    words = {"@y0": phrases["figure_scale_axis"], "@x": phrases["figure_step"]}
    words |= {f"@c{number}@": str(number) for number in numbers.values()}
    return worded(_drawing(tuple(_trace(run, numbers) for run in runs), captured, zone), words)


def _trace(run: ScaleRun, numbers: Mapping[str, int]) -> Trace:
    shown = thinned(changes(run.line))
    scale_of = dict(zip(run.line.steps.tolist(), run.line.values.tolist(), strict=True))
    growths = some(np.asarray(run.growths, dtype=np.int64)).tolist()
    skips = [skip for known in (True, False) for skip in _some([s for s in run.skips if bool(s.cause) is known])]
    return Trace(
        run.side,
        Line(shown.steps, np.where(shown.values > 0, shown.values, np.nan), shown.lost),
        tuple((step, scale_of[step]) for step in growths),
        tuple((skip.step, skip.before, numbers.get(skip.cause, 0)) for skip in skips),
    )


def _some(skips: Sequence[Skip]) -> list[Skip]:
    return [skips[place] for place in some(np.arange(len(skips))).tolist()]


@lru_cache(KEPT)
def _drawing(traces: tuple[Trace, ...], captured: tuple[tuple[int, int], ...], zone: Zone | None) -> str:
    figure, (axes,) = stacked([HEIGHT])
    low = min(int(trace.line.steps[0]) for trace in traces)
    high = max(int(trace.line.steps[-1]) for trace in traces)
    shade(axes, captured, (low, high))
    axes.set_yscale("log", base=2)
    axes.yaxis.set_major_formatter(lambda value, _: power_of_two(value))
    axes.yaxis.get_major_locator().set_params(numticks=6)
    axes.minorticks_off()
    for trace in traces:
        _draw_trace(axes, trace)
    draw_zone(axes, zone)
    _room(axes, traces, zone)
    step_axis(axes, low, high)
    return drawing(figure, NAME)


def _room(axes: Any, traces: Sequence[Trace], zone: Zone | None) -> None:
    """A power of two of room above and below, so that marks are not cut and a constant scale has an axis."""
    known = np.concatenate([*(trace.line.known for trace in traces), np.asarray(zone or (), dtype=np.float64)])
    if len(known):
        axes.set_ylim(float(known.min()) / 2.0, float(known.max()) * 3.0)


def _draw_trace(axes: Any, trace: Trace) -> None:
    colour = REFERENCE if trace.side == "reference" else CANDIDATE
    dashes: Any = DASHED if trace.side == "candidate" else "-"
    axes.step(trace.line.steps, trace.line.values, where="mid", color=colour, linewidth=1.5, linestyle=dashes)
    hollow = {"linestyle": "none", "markerfacecolor": "none"}
    _draw_marks(axes, trace.growths, marker="^", markersize=4, color=MUTED, **hollow)
    known = [(step, scale) for step, scale, number in trace.skips if number]
    unknown = [(step, scale) for step, scale, number in trace.skips if not number]
    _draw_marks(axes, known, marker="v", markersize=6, color=colour, linestyle="none")
    _draw_marks(axes, unknown, marker="v", markersize=6, color=colour, **hollow)
    told: set[int] = set()
    away, lift = ((0, -5), "top") if trace.side == "reference" else ((0, 5), "bottom")
    for step, scale, number in trace.skips:
        if number and (len(known) <= MOST_NUMBERS or number not in told):
            told.add(number)
            note_in(axes, f"@c{number}@", (step, scale), xytext=away, ha="center", va=lift, color=INK)


def _draw_marks(axes: Any, points: Sequence[tuple[int, float]], **style: Any) -> None:
    if points:
        axes.plot(*zip(*points, strict=True), **style)


def _legend(runs: Sequence[ScaleRun], *, captured: bool, pair: bool, phrases: Language) -> tuple[Mark, ...]:
    marks = []
    for run in runs:
        variable = "--reference" if run.side == "reference" else "--candidate"
        marks.append(mark_line(variable, phrases[f"figure_{run.side}"], DASHES if run.side == "candidate" else ""))
    skips = [skip for run in runs for skip in run.skips]
    if any(skip.cause for skip in skips):
        marks.append(mark_shape(DOWN, "--candidate", phrases["figure_skip_cause"]))
    if any(not skip.cause for skip in skips):
        marks.append(mark_shape(DOWN, "--candidate", phrases["figure_skip"], filled=False))
    if any(run.growths for run in runs):
        marks.append(mark_shape(UP, "--muted", phrases["figure_growth"], filled=False))
    if captured:
        marks.append(mark_field("--band", phrases["figure_compared" if pair else "figure_captured"]))
    return tuple(marks)
