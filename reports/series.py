"""What the figures draw: the tensors of one step as points, and the losses as curves. No drawing here."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from align.records import INIT_STEP, Phase, Status
from align.reports import rows
from align.reports.visible import shortened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from align.records import Comparison, DiffResult, TimelineRow

MOST_MARKS = 800
"""Marks of one panel; more would make the page slow and say no more."""
AXIS_LETTERS = 110
"""Letters of a label that have room along the axis."""
LABEL_LETTERS = 16
MOST_STEPS = 1500

PANELS: dict[str, tuple[Phase, ...]] = {
    "panel_init": (Phase.INIT,),
    "panel_forward": (Phase.INPUT, Phase.FORWARD, Phase.LOSS),
    "panel_backward": (Phase.BACKWARD, Phase.GRADIENT, Phase.UPDATE),
}


@dataclass(frozen=True, slots=True)
class Point:
    """One tensor of a panel; `relative` is None where the difference has no number, `band` where there is no floor."""

    place: int
    relative: float | None
    band: float | None
    status: Status
    first: bool


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture: points in execution order, and where the blocks of the model begin."""

    name: str
    total: int
    points: tuple[Point, ...]
    labels: tuple[tuple[int, str], ...]
    first_label: str
    captured: bool

    @property
    def drawable(self) -> bool:
        """Whether any tensor has a difference to draw."""
        return any(point.relative is not None or point.status is Status.NONFINITE for point in self.points)

    @property
    def has_first(self) -> bool:
        """Whether the first difference of the run is here."""
        return any(point.first for point in self.points)


def shown_step(result: DiffResult) -> int | None:
    """The step to draw: the one of the first divergence, else the one closest to its limit, else the first."""
    if result.first_divergence is not None:
        return result.first_divergence.step
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
    label = next((f"{pair.key.name} {rows.slot_text(pair.key)}" for first, pair in pairs if first), "")
    return Panel(
        name=name,
        total=sum(point.relative is not None for point in points),
        points=tuple(_thinned(points)),
        labels=_block_labels([pair.key.name for _, pair in pairs]),
        first_label=shortened(label, 70),
        captured=bool(pairs),
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
    return Point(place, difference if drawn else None, band, status, first)


def _thinned(points: Sequence[Point]) -> list[Point]:
    """All points, or the largest of each stretch; the first difference always stays."""
    if len(points) <= MOST_MARKS:
        return list(points)
    kept = []
    for number in range(MOST_MARKS):
        stretch = points[number * len(points) // MOST_MARKS : (number + 1) * len(points) // MOST_MARKS]
        kept.append(max(stretch, key=_weight))
    return kept


def _weight(point: Point) -> tuple[bool, bool, float]:
    return point.first, point.status is Status.NONFINITE, point.relative or 0.0


def _block_labels(names: Sequence[str]) -> tuple[tuple[int, str], ...]:
    """Where each block of the model begins, thinned so that the labels have room."""
    starts: list[tuple[int, str]] = []
    for place, name in enumerate(names):
        block = _block(name)
        if not starts or starts[-1][1] != block:
            starts.append((place, block))
    spaced: list[tuple[int, str]] = []
    for place, block in starts:
        if spaced and place - spaced[-1][0] < (len(spaced[-1][1]) + 2) * len(names) / AXIS_LETTERS:
            # Numbered blocks tell more than the few modules around them.
            if _numbered(spaced[-1][1]) or not _numbered(block):
                continue
            spaced.pop()
        if spaced and place + len(block) * len(names) / AXIS_LETTERS > len(names):
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


@dataclass(frozen=True, slots=True)
class Curves:
    """The losses of both runs over their steps, and the range of steps whose tensors were compared."""

    reference: tuple[tuple[int, float], ...]
    candidate: tuple[tuple[int, float], ...]
    compared: tuple[int, int] | None

    @property
    def drawable(self) -> bool:
        """Whether a curve has two points to join."""
        return any(sum(math.isfinite(loss) for _, loss in curve) > 1 for curve in (self.reference, self.candidate))

    @property
    def recorded(self) -> bool:
        """Whether any loss was seen."""
        return any(math.isfinite(loss) for curve in (self.reference, self.candidate) for _, loss in curve)


def make_curves(result: DiffResult) -> Curves:
    """The loss curves of a comparison."""
    steps = [pair.key.step for pair in result.comparisons if pair.key.step != INIT_STEP]
    return Curves(
        reference=_losses(result.reference_timeline),
        candidate=_losses(result.candidate_timeline),
        compared=(min(steps), max(steps)) if steps else None,
    )


def _losses(timeline: Sequence[TimelineRow]) -> tuple[tuple[int, float], ...]:
    return curve([(row.step, row.loss) for row in timeline])


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
