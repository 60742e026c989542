"""What the figures draw: the tensors of one step as points, curves thinned. No drawing here."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from align.records import INIT_STEP, Phase, Status
from align.reports import rows
from align.reports.visible import shortened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from align.records import Comparison, DiffResult

BAND_FROM = 1000
"""From so many tensors on, single marks hide one another and make a figure of 100 KB: a band spans each stretch."""
STRETCHES = 600
"""Stretches of tensors, about as many as the figure has columns."""
MOST_MARKS = 300
"""Marks beside a band."""
AXIS_LETTERS = 110
"""Letters of a label that have room along the axis."""
LABEL_LETTERS = 16
LONGEST_LABEL = 70
MOST_BLOCKS = 120
"""Begins of blocks that are drawn as lines; more would be a grey field."""
MOST_STEPS = 1500

PANELS: dict[str, tuple[Phase, ...]] = {
    "panel_init": (Phase.INIT,),
    "panel_forward": (Phase.INPUT, Phase.FORWARD, Phase.LOSS),
    "panel_backward": (Phase.BACKWARD, Phase.GRADIENT, Phase.UPDATE),
}


@dataclass(frozen=True, slots=True)
class Point:
    """One tensor of a panel, or the one that differs most of a stretch.

    `relative` is None where the difference has no number, `floor` and `band`, the limit above it, where there is no
    floor. `lowest` is the smallest difference of the stretch, `label` the name of the tensor, safe to show.
    """

    place: int
    relative: float | None
    band: float | None
    status: Status
    first: bool
    floor: float | None = None
    times: float | None = None
    lowest: float | None = None
    label: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture: points in execution order, and where the blocks of the model begin.

    `tensors` is the number of all tensors, `total` of those with a difference, `inherited` of those that inherit one.
    Of many, `points` are stretches and `marks` the tensors that stand out; else both are the same.
    """

    name: str
    total: int
    points: tuple[Point, ...]
    labels: tuple[tuple[int, str], ...]
    first_label: str
    captured: bool
    tensors: int = 0
    marks: tuple[Point, ...] = ()
    blocks: tuple[int, ...] = ()
    inherited: int = 0

    @property
    def banded(self) -> bool:
        """Whether the points are stretches."""
        return self.tensors > BAND_FROM

    @property
    def drawable(self) -> bool:
        """Whether any tensor has a difference to draw."""
        return any(point.relative is not None or point.status is Status.NONFINITE for point in self.points)

    @property
    def has_first(self) -> bool:
        """Whether the first difference of the run is here."""
        return any(point.first for point in self.points)


def shown_step(result: DiffResult) -> int | None:
    """The step to draw: the one of the first tensor that differs, else the one closest to its limit, else the first."""
    focus = rows.focus_index(result)
    if focus is not None:
        return result.comparisons[focus].key.step
    return min((pair.key.step for pair in result.comparisons), default=None)


def make_panels(result: DiffResult) -> tuple[Panel, ...]:
    """The panels of the shown step: the initial weights alone, or forward and backward."""
    step = shown_step(result)
    if step is None:
        return ()
    first = rows.first_index(result)
    pairs = [(index == first, pair) for index, pair in enumerate(result.comparisons) if pair.key.step == step]
    names = ["panel_init"] if step == INIT_STEP else ["panel_forward", "panel_backward"]
    return tuple(_panel(name, [entry for entry in pairs if entry[1].key.phase in PANELS[name]]) for name in names)


def _panel(name: str, pairs: Sequence[tuple[bool, Comparison]]) -> Panel:
    points = [_point(place, pair, first=first) for place, (first, pair) in enumerate(pairs)]
    banded = len(points) > BAND_FROM
    starts = _block_starts([pair.key.name for _, pair in pairs])
    return Panel(
        name=name,
        total=sum(point.relative is not None for point in points),
        points=tuple(_stretched(points) if banded else points),
        labels=_block_labels(starts, len(points)),
        first_label=next((point.label for point in points if point.first), ""),
        captured=bool(pairs),
        tensors=len(points),
        inherited=sum(point.status is Status.PROPAGATED for point in points),
        marks=tuple(_standing_out(points) if banded else points),
        blocks=tuple(place for place, _ in starts) if len(starts) <= MOST_BLOCKS else (),
    )


def _point(place: int, pair: Comparison, *, first: bool) -> Point:
    difference = pair.relative_l2
    known = difference is not None and math.isfinite(difference) and difference > 0
    drawn = known and pair.status is not Status.NOT_JUDGED
    band = pair.floor * max(pair.limit, 1.0) if pair.floor > 0 else None
    # A first difference without a number (another shape, NaN) is still marked.
    status = Status.NONFINITE if first and not drawn else pair.status
    if difference == 0 and status is Status.WITHIN:
        status = Status.EQUAL
    times = pair.times_floor if known else None
    label = shortened(f"{pair.key.name} {rows.slot_text(pair.key)}", LONGEST_LABEL)
    floor = pair.floor if pair.floor > 0 else None
    return Point(place, difference if drawn else None, band, status, first, floor, times, label=label)


def _stretched(points: Sequence[Point]) -> list[Point]:
    """The tensor of each stretch that differs most; the first difference always stays."""
    kept = []
    for number in range(STRETCHES):
        stretch = points[number * len(points) // STRETCHES : (number + 1) * len(points) // STRETCHES]
        smallest = min((point.relative for point in stretch if point.relative is not None), default=None)
        kept.append(replace(max(stretch, key=_weight), lowest=smallest))
    return kept


def _weight(point: Point) -> tuple[bool, bool, float]:
    return point.first, point.status is Status.NONFINITE, point.relative or 0.0


def _standing_out(points: Sequence[Point]) -> list[Point]:
    """The tensors that keep a mark beside a band: the first, the non-finite, and what lies above its limit."""
    chosen = [point for point in points if point.status is Status.NONFINITE or _above(point)]
    kept = [chosen[number * len(chosen) // MOST_MARKS] for number in range(MOST_MARKS)] if chosen else []
    marked = [*(point for point in points if point.first), *(chosen if len(chosen) <= MOST_MARKS else kept)]
    return sorted({point.place: point for point in marked}.values(), key=lambda point: point.place)


def _above(point: Point) -> bool:
    return point.relative is not None and point.band is not None and point.relative > point.band


def _block_starts(names: Sequence[str]) -> list[tuple[int, str]]:
    """Where each block of the model begins."""
    starts: list[tuple[int, str]] = []
    for place, name in enumerate(names):
        block = _block(name)
        if not starts or starts[-1][1] != block:
            starts.append((place, block))
    return starts


def _block_labels(starts: Sequence[tuple[int, str]], total: int) -> tuple[tuple[int, str], ...]:
    """The begins of blocks, thinned so that their labels have room."""
    spaced: list[tuple[int, str]] = []
    for place, block in starts:
        if spaced and place - spaced[-1][0] < (len(spaced[-1][1]) + 2) * total / AXIS_LETTERS:
            # Numbered blocks tell more than the few modules around them.
            if _numbered(spaced[-1][1]) or not _numbered(block):
                continue
            spaced.pop()
        if spaced and place + len(block) * total / AXIS_LETTERS > total:
            continue
        spaced.append((place, shortened(block, LABEL_LETTERS)))
    return tuple(spaced)


def _numbered(block: str) -> bool:
    return block[-1:].isdigit()


def _block(name: str) -> str:
    """The block of a module: its path up to the first number, the last two parts of that."""
    parts = name.split(".")
    number = next((place for place, part in enumerate(parts) if part.isdigit()), None)
    return ".".join(parts[max(0, number - 1) : number + 1]) if number is not None else parts[0]


def curve(points: Sequence[tuple[int, float]]) -> tuple[tuple[int, float], ...]:
    """All points, or the lowest and the highest of each stretch of steps, in their order."""
    if len(points) <= MOST_STEPS:
        return tuple(points)
    kept = []
    stretches = MOST_STEPS // 2
    for number in range(stretches):
        stretch = points[number * len(points) // stretches : (number + 1) * len(points) // stretches]
        known = [entry for entry in stretch if math.isfinite(entry[1])] or stretch[:1]
        kept.extend(sorted({min(known, key=lambda entry: entry[1]), max(known, key=lambda entry: entry[1])}))
    return tuple(kept)
