"""Magnitudes of tensors against what their format can hold: a histogram of exponents for each."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from align import wording
from align.records import Phase, TensorKey
from align.reports.figures.canvas import (
    BAND,
    CANDIDATE,
    DASHED,
    DOTTED,
    KEPT,
    LIMIT,
    MUTED,
    REFERENCE,
    drawing,
    empty_figure,
    plain_axes,
    short_number,
    worded,
)
from align.reports.figures.exponent_bars import RANGES, Window, edges_of, limits_of, shares_of, sides_of, window_of
from align.reports.figures.picture import Cell, Mark, Picture, Title, Valued, mark_field, mark_line
from align.reports.figures.two_runs import DASHES
from align.reports.rows import slot_text
from align.reports.visible import shortened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markupsafe import Markup

    from align.records import DiffResult, Exponents, InspectResult, Magnitudes
    from align.reports.language import Language

NAME = "fig-exponents"
NO_KEY = TensorKey(0, Phase.GRADIENT, "", "")
COLUMNS = 3
PANEL_HEIGHT = 2.3
SMALL = 8
LONGEST_TITLE = 44
SMALLEST_SHARE = 1e-8


def exponent_picture(result: DiffResult | InspectResult, phrases: Language) -> Picture:
    """One panel for each tensor that the result names, zones of the format behind it; one run or both."""
    title = phrases["figure_exponents"]
    shown = [entry for entry in result.exponents if all(side.dtype in RANGES for side in sides_of(entry))]
    if not shown:
        return Picture(NAME, title, phrases["figure_exponents_none"])
    pair = any(entry.reference is not None for entry in shown)
    return Picture(
        NAME,
        title,
        _sentence(shown, result, phrases),
        _drawn(tuple(shown), phrases),
        _legend(phrases, pair=pair),
        _titles(phrases),
        tuple(_row(entry, phrases) for entry in shown),
    )


def _label(entry: Exponents, longest: int = LONGEST_TITLE) -> str:
    return shortened(f"{entry.key.name} {slot_text(entry.key)}", longest)


def _sentence(shown: Sequence[Exponents], result: DiffResult | InspectResult, phrases: Language) -> str:
    lead = shown[0]
    words = {"name": _label(lead, 70), "step": wording.count(lead.key.step), **_shares(lead.candidate, "", phrases)}
    if lead.reference is None:
        said = [phrases["figure_exponents_lead"].format(**words)]
    else:
        words |= _shares(lead.reference, "_reference", phrases)
        said = [phrases["figure_exponents_both"].format(**words)]
    if _is_first(lead, result):
        said.append(phrases["figure_exponents_first"])
    many = "figure_exponents_more" if len(shown) > 1 else "figure_exponents_one"
    said.append(phrases[many].format(count=wording.count(len(shown))))
    if any(not side.codes for entry in shown for side in sides_of(entry)):
        said.append(phrases["figure_exponents_strip"])
    return phrases["figure_between"].join(said)


def _is_first(entry: Exponents, result: DiffResult | InspectResult) -> bool:
    first = getattr(result, "first_divergence", None)
    if first is None:
        return False
    key = entry.key
    return bool((key.step, key.phase, key.name, key.slot) == (first.step, first.phase, first.name, first.slot))


def _shares(side: Magnitudes, suffix: str, phrases: Language) -> dict[str, str]:
    counts = {"zeros": side.zeros, "subnormals": side.subnormals, "nonfinite": side.nonfinite}
    return {f"{name}{suffix}": _share(number, side.count, phrases) for name, number in counts.items()}


def _share(number: int, count: int, phrases: Language) -> str:
    return phrases.said(wording.percent(number / count)) if number else "0"


def _titles(phrases: Language) -> tuple[Title, ...]:
    return (
        Title(phrases["figure_tensor"], Cell.NAME),
        Title(phrases["figure_step"]),
        Title(phrases["figure_dtype"], Cell.TEXT),
        *(Title(phrases[f"figure_{name}"]) for name in ("zeros", "subnormals", "normals", "nonfinite")),
        Title(phrases["figure_largest_value"]),
    )


def _row(entry: Exponents, phrases: Language) -> tuple[str, ...]:
    """The shares of both runs, the reference's before the slash; once where they are written alike.

    Sorted by the candidate's.
    """
    sides = [_cells(side, phrases) for side in sides_of(entry)]
    both = (_joined(cells) for cells in zip(*sides, strict=True))
    return (_label(entry, 120), str(entry.key.step), *both)


def _cells(side: Magnitudes, phrases: Language) -> tuple[str, ...]:
    normal = side.count - side.zeros - side.subnormals - side.nonfinite
    shares = (
        Valued(_share(number, side.count, phrases), number / side.count)
        for number in (side.zeros, side.subnormals, normal, side.nonfinite)
    )
    return (wording.dtype(side.dtype), *shares, Valued(phrases.said(wording.value(side.largest)), side.largest))


def _joined(cells: Sequence[str]) -> str:
    text = cells[-1] if len(set(cells)) == 1 else " / ".join(cells)
    return Valued(text, cells[-1].value) if isinstance(cells[-1], Valued) else text


def _drawn(shown: tuple[Exponents, ...], phrases: Language) -> Markup:
    words = {
        "@z0": phrases["figure_zone_zero"],
        "@z1": phrases["figure_zone_subnormal"],
        "@z2": phrases["figure_zone_normal"],
        "@z3": phrases["figure_zone_beyond"],
        "@x": phrases["figure_exponents_x"],
        "@y": phrases["figure_exponents_axis"],
        **{f"@m{number}@": f"{_label(entry)} ({'/'.join(_dtypes(entry))})" for number, entry in enumerate(shown)},
    }
    # The names are no part of what is drawn.
    bare = tuple(replace(entry, key=NO_KEY) for entry in shown)
    return worded(_drawing(bare), words)


@lru_cache(KEPT)
def _drawing(shown: tuple[Exponents, ...]) -> str:
    columns = min(COLUMNS, len(shown))
    rows = math.ceil(len(shown) / columns)
    figure = empty_figure(PANEL_HEIGHT * rows)
    low = _lowest(shown)
    for number, entry in enumerate(shown):
        axes = figure.add_subplot(rows, columns, number + 1)
        plain_axes(axes)
        axes.set_title(f"@m{number}@", loc="left", fontsize=SMALL, color=MUTED)
        _draw_panel(axes, entry, low)
    figure.supxlabel("@x", fontsize=SMALL, color=MUTED)
    figure.supylabel("@y", fontsize=SMALL, color=MUTED)
    return drawing(figure, NAME)


def _dtypes(entry: Exponents) -> list[str]:
    return list(dict.fromkeys(wording.dtype(side.dtype) for side in sides_of(entry)))


def _lowest(shown: Sequence[Exponents]) -> float:
    """The lower end of the axis of shares: a power of ten below the smallest share that a panel shows."""
    shares = [
        number / side.count
        for entry in shown
        for side in sides_of(entry)
        for number in (side.zeros, side.subnormals, side.nonfinite, *side.codes)
        if number
    ]
    return float(10.0 ** math.floor(math.log10(max(min(shares, default=0.1), SMALLEST_SHARE)) - 0.1))


def _draw_panel(axes: Any, entry: Exponents, low: float) -> None:
    window = window_of(entry)
    axes.set_yscale("log")
    axes.set_ylim(low, 3.0 / low**0.05)
    axes.set_xlim(window.zero[0] - 1, window.beyond[1] + 1)
    axes.axvspan(window.subnormal, window.normal, color=BAND, linewidth=0)
    for edge in limits_of(entry, window):
        axes.axvline(edge, color=LIMIT, linewidth=1, linestyle=DOTTED)
    _draw_bars(axes, entry, window, low)
    _label_zones(axes, window)
    axes.set_xticks([place for place in range(window.normal, window.end + 1) if place % 8 == 0])
    axes.xaxis.set_major_formatter(lambda value, _: f"2^{value:.0f}")
    axes.yaxis.set_major_formatter(lambda value, _: f"{short_number(100.0 * value)} %")
    axes.yaxis.get_major_locator().set_params(numticks=5)
    axes.minorticks_off()
    axes.tick_params(labelsize=SMALL)


def _draw_bars(axes: Any, entry: Exponents, window: Window, low: float) -> None:
    """The reference filled and grey, the candidate as an outline over it; one run alone filled."""
    edges = edges_of(window)
    if entry.reference is None:
        axes.stairs(shares_of(entry.candidate, window), edges, baseline=low, fill=True, color=CANDIDATE, alpha=0.6)
        return
    axes.stairs(shares_of(entry.reference, window), edges, baseline=low, fill=True, color=REFERENCE, alpha=0.35)
    style = {"color": CANDIDATE, "linewidth": 1.5, "linestyle": DASHED}
    axes.stairs(shares_of(entry.candidate, window), edges, baseline=low, **style)


def _label_zones(axes: Any, window: Window) -> None:
    centres = (
        ("@z0", sum(window.zero) / 2, "center"),
        ("@z1", (window.subnormal + window.normal) / 2, "center"),
        ("@z2", (window.normal + window.end) / 2, "center"),
        ("@z3", window.beyond[1] + 1, "right"),
    )
    for token, place, side in centres:
        axes.text(
            place, 0.98, token, transform=axes.get_xaxis_transform(), ha=side, va="top", fontsize=7, color=MUTED
        ).set_in_layout(False)


def _legend(phrases: Language, *, pair: bool) -> tuple[Mark, ...]:
    marks = [mark_field("--band", phrases["figure_zone_subnormal"])]
    if pair:
        marks.insert(0, mark_line("--candidate", phrases["figure_candidate"], DASHES))
        marks.insert(0, mark_field("--reference", phrases["figure_reference"]))
    return tuple(marks)
