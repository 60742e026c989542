"""The sections of the page of an inspection: each asks something of the run, with its answers, pictures and tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from align.records import Curve, State
from align.reports.run_tables import ShownTable, make_table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from align.records import InspectResult
    from align.reports.figures import Picture
    from align.reports.inspect_view import Answer
    from align.reports.language import Language


@dataclass(frozen=True, slots=True)
class Contents:
    """What stands in a section: the replies, tables and pictures by their names, in their order there."""

    questions: tuple[str, ...]
    tables: tuple[str, ...] = ()
    pictures: tuple[str, ...] = ()


SECTIONS: Mapping[str, Contents] = {
    "birth": Contents(("finite numbers",), ("nonfinite_steps", "nonfinite_producer", "nonfinite_later")),
    "scale": Contents(("loss scale", "skipped steps", "clipping"), ("loss_scale_moves",), ("fig-loss-scale",)),
    "underflow": Contents(("fp16 range",), ("fp16_range", "fp16_scales")),
    "learns": Contents(("loss", "parameters"), ("learning",), ("fig-run-loss", "fig-run-gradient-norm")),
    "updates": Contents(("optimizer",), ("optimizer_replay", "unmoved")),
    "headroom": Contents(("headroom",), ("headroom",)),
    "again": Contents(("recompute",), ("recomputed",)),
    "jobs": Contents(("ranks", "samples", "weights", "masks", "gradients", "norm"), ("ranks",)),
    "start": Contents(("checkpoint", "data")),
    "seconds": Contents(("step time",), (), ("fig-run-seconds",)),
    "formats": Contents((), (), ("fig-exponents",)),
}
"""The sections in the order of the page: what went wrong first, why nothing is learned, the rest."""

OF_CURVES: Mapping[Curve, str] = {
    Curve.LOSS: "learns",
    Curve.GRADIENT_NORM: "learns",
    Curve.LOSS_SCALE: "scale",
    Curve.SECONDS: "seconds",
}
"""Where the tables of other analyses stand that name a curve."""


@dataclass(frozen=True, slots=True)
class Section:
    """One section, all texts written."""

    anchor: str
    title: str
    lead: str
    answers: tuple[Answer, ...]
    pictures: tuple[Picture, ...]
    tables: tuple[ShownTable, ...]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to see, and no question that could have been answered."""
        drawn = any(picture.drawn for picture in self.pictures)
        return not (drawn or self.tables or any(answer.state is not State.ABSENT for answer in self.answers))


def make_sections(
    result: InspectResult, answers: Iterable[Answer], pictures: Iterable[Picture], phrases: Language
) -> tuple[Section, ...]:
    """The sections of a page; tables that none of them names have one each, behind the others."""
    said = dict(zip((str(reply.question) for reply in result.replies), answers, strict=True))
    drawn = {picture.name: picture for picture in pictures}
    named = {name for contents in SECTIONS.values() for name in contents.tables}
    others = [table for table in result.tables if table.name not in named]
    by_name = {table.name: make_table(table, phrases) for table in result.tables}
    found = []
    for anchor, contents in SECTIONS.items():
        beside = [by_name[table.name] for table in others if table.curve and OF_CURVES[table.curve] == anchor]
        section = Section(
            anchor,
            phrases[f"inspect_{anchor}"],
            phrases[f"inspect_{anchor}_lead"],
            tuple(said[question] for question in contents.questions if question in said),
            tuple(drawn[name] for name in contents.pictures if name in drawn),
            (*(by_name[name] for name in contents.tables if name in by_name), *beside),
        )
        if not section.is_empty:
            found.append(section)
    alone = [by_name[table.name] for table in others if not table.curve]
    found += [Section(f"t-{number}", table.title, "", (), (), (table,)) for number, table in enumerate(alone, 1)]
    return tuple(found)
