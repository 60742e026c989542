"""The figures of one run: a value over its steps, with the steps that were captured, skipped or went wrong."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from align.records import Curve
from align.reports.figures.canvas import BAND, CANDIDATE, ERROR, INK, KEPT, LIMIT, drawing, new_figure, worded
from align.reports.figures.two_runs import MOST_MARKED_STEPS

if TYPE_CHECKING:
    from markupsafe import Markup

    from align.reports.language import Language
    from align.reports.run_series import RunCurve

HEIGHT = 2.4
BASE = 2
"""Loss scales are powers of two."""


def curve_figure(curve: RunCurve, phrases: Language) -> Markup:
    """One curve with its marks."""
    words = {"@y": phrases[f"curve_{curve.curve}"], "@x": phrases["axis_step"]}
    return worded(_drawing(replace(curve, sentence="")), words)


@lru_cache(KEPT)
def _drawing(curve: RunCurve) -> str:
    figure, axes = new_figure(HEIGHT)
    steps = [step for step, _ in curve.points]
    low, high = min(steps), max(steps)
    for first, last in curve.captured:
        axes.axvspan(max(first, low) - 0.5, min(last, high) + 0.5, color=BAND, linewidth=0)
    _scale(axes, curve)
    _draw(axes, curve)
    edge = axes.get_xaxis_transform()
    mark = {"linestyle": "none", "color": ERROR, "transform": edge, "clip_on": False}
    axes.plot(curve.skipped, [0.03] * len(curve.skipped), marker="v", markersize=5, **mark)
    axes.plot(curve.lost, [0.97] * len(curve.lost), marker="x", markersize=6, **mark)
    if curve.first is not None and low <= curve.first <= high:
        axes.axvline(curve.first, color=ERROR, linewidth=0.8, linestyle=(0, (2, 2)), gid="first")
    axes.set_xlim(low - 0.5, high + 0.5)
    axes.xaxis.get_major_locator().set_params(integer=True)
    return drawing(figure, f"fig-run-{curve.curve.value.replace('_', '-')}")


def _scale(axes: Any, curve: RunCurve) -> None:
    """The axis of the values: powers of two for a loss scale, logarithms for what is far apart."""
    if curve.curve is Curve.LOSS_SCALE and all(value > 0 for _, value in curve.points if math.isfinite(value)):
        axes.set_yscale("log", base=BASE)
        axes.yaxis.set_major_formatter(lambda value, _: f"2^{round(math.log2(value))}")
        axes.yaxis.get_major_locator().set_params(numticks=6)
        axes.minorticks_off()
    elif curve.logarithmic:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.yaxis.get_major_locator().set_params(numticks=6)
        if curve.curve is Curve.SECONDS:
            axes.yaxis.get_major_locator().set_params(subs=(1.0, 2.0, 5.0))
            axes.minorticks_off()
    else:
        axes.ticklabel_format(useOffset=False, style="plain")


def _draw(axes: Any, curve: RunCurve) -> None:
    steps, values = zip(*curve.points, strict=True)
    marker = "o" if len(steps) <= MOST_MARKED_STEPS else None
    if curve.curve is Curve.LOSS_SCALE:
        axes.step(steps, values, where="mid", color=CANDIDATE, linewidth=1.5)
    elif curve.curve is Curve.SECONDS:
        axes.plot(steps, values, linestyle="none", marker="o", markersize=3, color=CANDIDATE)
    else:
        axes.plot(steps, values, color=CANDIDATE, linewidth=1.5, marker=marker, markersize=4)
    for first, last, level in curve.levels:
        axes.plot([first - 0.5, last + 0.5], [level, level], color=INK, linewidth=1.2, linestyle=(0, (4, 2)), zorder=3)
    if len(curve.levels) > 1:
        axes.axvline(curve.levels[1][0] - 0.5, color=INK, linewidth=0.9, linestyle=(0, (6, 2, 1, 2)))
    if curve.limit:
        axes.plot(*zip(*curve.limit, strict=True), color=LIMIT, linewidth=1.2, linestyle=":")
    if not any(math.isfinite(value) for value in values):
        axes.set_yticks([])
    axes.tick_params(axis="x", labelcolor=INK)
