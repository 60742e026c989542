"""The figures of the page, drawn by matplotlib as SVG that takes its colours and words from the page."""

from __future__ import annotations

import io
import math
import re
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from align.records import Status

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from align.reports.language import Language
    from align.reports.series import Curves, Panel, Point

# Stand-ins that no other part of a figure has: the page's own colours take their place, so that one figure
# serves light, dark and print.
INK, MUTED, REFERENCE, CANDIDATE, LIMIT = "#010101", "#010102", "#010103", "#010104", "#010105"
ERROR, BAND, RULE, INHERITED, EXPLAINED = "#010106", "#010107", "#010108", "#010109", "#01010a"
COLOURS = {
    INK: "--ink",
    MUTED: "--muted",
    REFERENCE: "--reference",
    CANDIDATE: "--candidate",
    LIMIT: "--limit",
    ERROR: "--error",
    BAND: "--band",
    RULE: "--rule",
    INHERITED: "--inherited",
    EXPLAINED: "--explained",
}
MOST_MARKED_STEPS = 40
"""Curves with fewer steps mark each of them."""


def panel_figure(panel: Panel, number: int, phrases: Language) -> Markup:
    """The differences of one panel in execution order."""
    words: dict[str, str] = {"@y": phrases["axis_relative"], "@x": phrases["axis_order"], "@first": panel.first_label}
    figure, axes = new_figure(2.9)
    low, high = _limits(panel.points)
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    span = max((point.place for point in panel.points), default=0)
    axes.set_xlim(-0.02 * span - 0.5, 1.02 * span + 0.5)
    _draw_band(axes, panel.points, low)
    _draw_marks(axes, panel.points)
    _draw_first(axes, panel.points, span)
    axes.set_xticks([place for place, _ in panel.labels])
    tokens = [f"@{place}@" for place, _ in panel.labels]
    axes.set_xticklabels(tokens, ha="left")
    words.update(zip(tokens, (label for _, label in panel.labels), strict=True))
    axes.yaxis.set_major_formatter(lambda value, _: _power(value))
    return as_svg(figure, f"d{number}", words)


def loss_figure(curves: Curves, phrases: Language) -> Markup:
    """The losses of both runs."""
    figure, axes = new_figure(2.6)
    if curves.compared is not None:
        axes.axvspan(curves.compared[0] - 0.5, curves.compared[1] + 0.5, color=BAND, linewidth=0)
    styles: tuple[tuple[Sequence[tuple[int, float]], dict[str, Any]], ...] = (
        (curves.reference, {"color": REFERENCE, "marker": "o", "markersize": 4}),
        (curves.candidate, {"color": CANDIDATE, "marker": "s", "markersize": 4, "linestyle": (0, (4, 2))}),
    )
    for curve, style in styles:
        if len(curve) > MOST_MARKED_STEPS:
            style["marker"] = None
        axes.plot([step for step, _ in curve], [loss for _, loss in curve], linewidth=1.5, **style)
        lost = [step for step, loss in curve if not math.isfinite(loss)]
        edge = axes.get_xaxis_transform()
        axes.plot(lost, [0.97] * len(lost), linestyle="none", marker="x", color=style["color"], transform=edge)
    steps = [step for curve in (curves.reference, curves.candidate) for step, _ in curve]
    axes.set_xlim(min(steps) - 0.5, max(steps) + 0.5)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.ticklabel_format(useOffset=False, style="plain")
    return as_svg(figure, "loss", {"@y": phrases["axis_loss"], "@x": phrases["axis_step"]})


def new_figure(height: float) -> tuple[Any, Any]:
    """An empty figure of matplotlib with its axes, in the manner of the page; `@x` and `@y` stand for the titles."""
    # matplotlib takes half a second to import: only the page pays for it.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, height), layout="constrained")
    axes = figure.add_subplot()
    figure.patch.set_alpha(0)
    axes.patch.set_alpha(0)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(RULE)
    axes.tick_params(colors=MUTED, labelcolor=MUTED, labelsize=9, which="both")
    axes.set_title("@y", loc="left", fontsize=9, color=MUTED)
    axes.set_xlabel("@x", fontsize=9, color=MUTED, loc="right")
    axes.grid(visible=True, axis="y", color=RULE, linewidth=0.5)
    axes.set_axisbelow(True)
    return figure, axes


def _limits(points: Sequence[Point]) -> tuple[float, float]:
    """The range of the axis in whole powers of ten, with room above for the label of the first difference."""
    values = [value for point in points for value in (point.relative, point.band) if value is not None and value > 0]
    if not values:
        return 1e-9, 1.0
    low = 10 ** math.floor(math.log10(min(values)) - 0.3)
    return low, 10 ** math.ceil(math.log10(max(values)) + 0.9)


def _draw_band(axes: Any, points: Sequence[Point], low: float) -> None:
    places = [point.place for point in points if point.band is not None]
    edge = [point.band for point in points if point.band is not None]
    axes.fill_between(places, low, edge, step="mid", color=BAND, linewidth=0)
    axes.step(places, edge, where="mid", color=LIMIT, linewidth=1, linestyle=":")


def _draw_marks(axes: Any, points: Sequence[Point]) -> None:
    styles: Mapping[Status, dict[str, Any]] = {
        Status.WITHIN: {"marker": "o", "markersize": 3, "color": EXPLAINED},
        Status.PROPAGATED: {"marker": "o", "markersize": 4, "markerfacecolor": "none", "color": INHERITED},
        Status.ORIGIN: {"marker": "s", "markersize": 6, "color": ERROR},
    }
    for status, style in styles.items():
        chosen = [point for point in points if point.status is status and not point.first]
        chosen = [point for point in chosen if point.relative is not None]
        axes.plot([point.place for point in chosen], [point.relative for point in chosen], linestyle="none", **style)
    on_edges = ((Status.NONFINITE, 0.96, "x", ERROR), (Status.EQUAL, 0.02, "|", MUTED))
    for status, height, marker, colour in on_edges:
        places = [point.place for point in points if point.status is status]
        heights = [height] * len(places)
        axes.plot(places, heights, linestyle="none", marker=marker, color=colour, transform=axes.get_xaxis_transform())


def _draw_first(axes: Any, points: Sequence[Point], span: int) -> None:
    """The square of the first difference, its name beside it and a line down to its place."""
    first = next((point for point in points if point.first), None)
    if first is None:
        return
    axes.axvline(first.place, color=ERROR, linewidth=0.8, linestyle=(0, (2, 2)), gid="first")
    if first.relative is not None:
        axes.plot([first.place], [first.relative], linestyle="none", marker="s", markersize=9, color=ERROR)
    right = first.place > span / 2
    axes.annotate(
        "@first",
        (first.place, 0.96),
        xycoords=axes.get_xaxis_transform(),
        xytext=(-9 if right else 9, 0),
        textcoords="offset points",
        ha="right" if right else "left",
        va="top",
        fontsize=10,
        fontweight="bold",
        color=INK,
        annotation_clip=False,
    ).set_in_layout(False)


def _power(value: float) -> str:
    """A tick of the logarithmic axis: `1e-6`, `0.01`, `1`."""
    return f"{value:g}" if 0.01 <= value <= 100 else f"1e{round(math.log10(value))}"  # noqa: PLR2004


def as_svg(figure: Any, prefix: str, words: Mapping[str, str]) -> Markup:
    """The figure as one element of the page: its own ids, the page's colours, no size and no address."""
    from matplotlib import rc_context

    stream = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "align", "axes.unicode_minus": False}):
        metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(stream, format="svg", transparent=True, metadata=metadata)
    text = stream.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>|<!--.*?-->", "", text, flags=re.DOTALL)
    head = r'<svg viewBox="\1" aria-hidden="true" focusable="false">'
    text = re.sub(r'<svg [^>]*?viewBox="([^"]*)"[^>]*>', head, text, count=1)
    text = re.sub(r'(?:xlink:)?href="#', f'href="#{prefix}-', text)
    text = text.replace(' id="', f' id="{prefix}-').replace("url(#", f"url(#{prefix}-")
    text = re.sub(r"font: ([^;\"]*?)'[^;\"]*", r"font: \1sans-serif", text)
    for stand_in, name in COLOURS.items():
        text = text.replace(stand_in, f"var({name})")
    for token in sorted(words, key=len, reverse=True):
        text = text.replace(f">{token}<", f">{escape(words[token])}<")
    return Markup(text)  # noqa: S704 - made here: the only foreign strings in it were escaped one line above
