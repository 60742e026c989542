"""The canvas of all figures: matplotlib as SVG that takes its colours and words from the page.

Nothing that a user has named reaches matplotlib: figures are drawn with tokens (`@y`, `@first`), and the words take
their places in the finished SVG. The colours are stand-ins that no other part of a figure has; the page's variables
take their place, so that one figure serves light, dark and print.
"""

from __future__ import annotations

import io
import math
import re
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from align.reports.figures.svg_text import shortened

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

INK, MUTED, REFERENCE, CANDIDATE, LIMIT = "#010101", "#010102", "#010103", "#010104", "#010105"
ERROR, BAND, RULE, INHERITED, EXPLAINED, PAGE = "#010106", "#010107", "#010108", "#010109", "#01010a", "#01010b"
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
    PAGE: "--page",
}
WIDTH = 10.0
"""Inches; pages scale it to their own width."""
KEPT = 4
"""Drawings that each kind of figure keeps, for the page's other language."""
SMALL = 9
"""Points of the text along axes."""
DASHED = (0, (4, 2))
DOTTED = (0, (1, 1.6))
LARGEST_PLAIN_TICK = 1e5
MOST_DIGITS = 15
"""More a float64 does not hold."""
SMALLEST_PLAIN_TICK = 1e-3
HEAD = r'<svg viewBox="\1" aria-hidden="true" focusable="false">'


def new_figure(height: float) -> tuple[Any, Any]:
    """An empty figure of matplotlib with its axes, in the manner of the page; `@x` and `@y` stand for the titles."""
    figure, (axes,) = stacked([height])
    axes.set_title("@y", loc="left", fontsize=SMALL, color=MUTED)
    return figure, axes


def stacked(heights: Sequence[float]) -> tuple[Any, list[Any]]:
    """A figure with axes below one another over the same x; `@y0`, `@y1` ... stand for titles, `@x` for that of x."""
    figure = empty_figure(sum(heights))
    column = figure.subplots(len(heights), 1, sharex=True, squeeze=False, gridspec_kw={"height_ratios": list(heights)})
    axes = [each for (each,) in column]
    for number, each in enumerate(axes):
        plain_axes(each)
        each.set_title(f"@y{number}", loc="left", fontsize=SMALL, color=MUTED)
        each.grid(visible=True, axis="y", color=RULE, linewidth=0.5)
    axes[-1].set_xlabel("@x", fontsize=SMALL, color=MUTED, loc="right")
    return figure, axes


def empty_figure(height: float) -> Any:
    """A figure of matplotlib without axes, its height in inches."""
    # matplotlib takes half a second to import: only the page pays for it.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    figure.patch.set_alpha(0)
    return figure


def plain_axes(axes: Any) -> None:
    """Axes in the manner of the page: two thin lines, muted labels, nothing behind."""
    axes.patch.set_alpha(0)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(RULE)
    axes.tick_params(colors=MUTED, labelcolor=MUTED, labelsize=SMALL, which="both")
    axes.set_axisbelow(True)


def step_axis(axes: Any, low: float, high: float) -> None:
    """The axis of steps: whole numbers, half a step of room on both sides, thousands with a comma."""
    axes.set_xlim(low - 0.5, high + 0.5)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")


def logarithmic(axes: Any) -> None:
    """A logarithmic axis of values with at most six labels."""
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda value, _: short_number(value))
    axes.yaxis.get_major_locator().set_params(numticks=6)
    axes.minorticks_off()


def note_in(axes: Any, text: str, place: tuple[float, float], **style: Any) -> None:
    """A short text at a place in the data, which takes no room of its own."""
    options = {"xytext": (0, 0), "textcoords": "offset points", "fontsize": SMALL, "color": MUTED, **style}
    axes.annotate(text, place, annotation_clip=False, **options).set_in_layout(False)


def short_number(value: float) -> str:
    """A tick: `0.01`, `25`, `1e-6`."""
    size = abs(value)
    if size == 0 or SMALLEST_PLAIN_TICK <= size <= LARGEST_PLAIN_TICK:
        return f"{value:g}"
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{float(mantissa):g}e{int(exponent)}"


def number_axis(axes: Any) -> None:
    """A linear axis of values with at most six labels, each with as many digits as tell it from the others."""
    axis = axes.yaxis
    axis.get_major_locator().set_params(nbins=6)
    axis.set_major_formatter(lambda value, _: apart(value, axis.get_majorticklocs()))


def apart(value: float, ticks: Sequence[float]) -> str:
    """A tick among others: `1.00002` and `1.000025` where five digits would be the same."""
    different = len(set(ticks))
    if len({short_number(tick) for tick in ticks}) == different:
        return short_number(value)
    known = (digits for digits in range(6, MOST_DIGITS) if len({f"{tick:.{digits}g}" for tick in ticks}) == different)
    return f"{value:.{next(known, MOST_DIGITS)}g}"


def power_of_two(value: float) -> str:
    """A tick of a loss scale: `2^16`."""
    return f"2^{round(math.log2(value))}" if value > 0 else "0"


def drawing(figure: Any, prefix: str) -> str:
    """The figure as SVG for a page: its own ids, the page's colours, no size and no address, tokens for words.

    `prefix` begins every id and is unique within a page. Drawing costs a fifth of a second and is the same in every
    language: functions that draw keep what they have drawn last, and `worded` puts in the words.
    """
    from matplotlib import rc_context

    stream = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "align", "axes.unicode_minus": False}):
        metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(stream, format="svg", transparent=True, metadata=metadata)
    text = stream.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>|<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r'<svg [^>]*?viewBox="([^"]*)"[^>]*>', HEAD, text, count=1)
    text = shortened(text)
    text = re.sub(r'(?:xlink:)?href="#', f'href="#{prefix}-', text)
    text = text.replace(' id="', f' id="{prefix}-').replace("url(#", f"url(#{prefix}-")
    text = re.sub(r"font: ([^;\"]*?)'[^;\"]*", r"font: \1sans-serif", text)
    for stand_in, name in COLOURS.items():
        text = text.replace(stand_in, f"var({name})")
    return text.strip()


def worded(drawn: str, words: Mapping[str, str]) -> Markup:
    """A drawing with words in the places of its tokens, as one element of a page."""
    for token in sorted(words, key=len, reverse=True):
        drawn = drawn.replace(f">{token}<", f">{escape(words[token])}<")
    return Markup(drawn)  # noqa: S704 - made here: the only foreign strings in it were escaped one line above
