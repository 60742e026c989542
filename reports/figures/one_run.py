"""The curves of one run as pictures: loss, gradient norm, time per step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from align.records import Curve
from align.reports.figures.picture import CROSS, DOWN, Mark, Picture, mark_field, mark_line, mark_shape
from align.reports.figures.run_curve import curve_figure
from align.reports.run_series import RunCurve, make_curves

if TYPE_CHECKING:
    from align.records import InspectResult
    from align.reports.language import Language


def run_pictures(result: InspectResult, phrases: Language) -> tuple[Picture, ...]:
    """Loss, gradient norm and seconds of one run over its steps; none without a timeline."""
    curves = [curve for curve in make_curves(result, phrases) if curve.curve is not Curve.LOSS_SCALE]
    return tuple(_picture(curve, phrases) for curve in curves)


def _picture(curve: RunCurve, phrases: Language) -> Picture:
    name, title = f"fig-run-{curve.curve.replace('_', '-')}", phrases[f"curve_{curve.curve}"]
    if not curve.drawable:
        return Picture(name, title, curve.sentence)
    return Picture(name, title, curve.sentence, curve_figure(curve, phrases), _legend(curve, phrases))


def _legend(curve: RunCurve, phrases: Language) -> tuple[Mark, ...]:
    marks = []
    if curve.captured:
        marks.append(mark_field("--band", phrases["mark_captured"]))
    if curve.skipped:
        marks.append(mark_shape(DOWN, "--error", phrases["mark_skipped"]))
    if curve.lost:
        marks.append(mark_shape(CROSS, "--error", phrases["mark_not_finite"], filled=False))
    if curve.first is not None:
        marks.append(mark_line("--error", phrases["mark_first_wrong"], "2 2"))
    if curve.levels:
        marks.append(mark_line("--ink", phrases["mark_median"], "4 2"))
    if len(curve.levels) > 1:
        marks.append(mark_line("--ink", phrases["mark_cliff"], "6 2 1 2"))
    if curve.limit:
        marks.append(mark_line("--limit", phrases["mark_limit"], "2 2"))
    return tuple(marks)
