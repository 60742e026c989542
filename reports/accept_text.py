"""Terminal text of an acceptance: the verdict, what is missed, every criterion, what was compared and what was not."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

from align import wording
from align.acceptance_records import Outcome
from align.reports.accept_phrases import accept_language
from align.reports.accept_values import ROLES, badge, failing, limit_text, measured_text, name_of, result_key
from align.reports.language import ENGLISH, Language
from align.reports.lines import STYLES, WIDTH, Line, Screen, columns, cut, plain, print_lines, wrapped
from align.reports.visible import shortened, visible
from align.sentences import joined, say

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from align.acceptance_records import AcceptResult, Criterion, Limit
    from align.curve_records import Curves

INDENT = "  "
MOST = 3
"""So many entries of a list fit on a screen beside all criteria."""
COLUMNS = ("number", "criterion", "measured", "limit", "result")
RIGHT = frozenset({0, 2, 3})
"""The columns of numbers."""


def accept_text(result: AcceptResult, language: Language = ENGLISH, width: int = WIDTH, *, whole: bool = False) -> str:
    """The text of an acceptance without colour: what fits on a screen, or the whole."""
    return plain(_lines(result, accept_language(language), Screen(width, whole)))


def print_acceptance(
    result: AcceptResult, stream: IO[str], language: Language = ENGLISH, *, whole: bool = False
) -> None:
    """Write the text to a stream, with colour when it is a terminal."""
    words = accept_language(language)
    print_lines(lambda screen: _lines(result, words, screen), stream, whole=whole)


def _lines(result: AcceptResult, language: Language, screen: Screen) -> Iterator[Line]:
    yield from _head(result, language, screen)
    yield from _missed(failing(result), language, screen)
    yield from _table(result.criteria, language)
    yield from _listed("accept_remarks", _remarks(result, language), language, screen)
    if screen.whole:
        yield from _listed("accept_to_measure", _to_measure(result, language), language, screen)
        yield from _listed("accept_sources", _sources(result, language), language, screen)
    yield from _listed("accept_compared", _compared(result, language), language, screen, most=MOST + 2)
    yield from _listed("accept_notes", [_said(note, language) for note in result.notes], language, screen)
    yield from _together("accept_not_covered", result.not_covered, language, screen)


def _head(result: AcceptResult, language: Language, screen: Screen) -> Iterator[Line]:
    heading = language["accept_heading"].format(
        reference=shortened(result.reference.path), candidate=shortened(result.candidate.path)
    )
    yield from wrapped(heading, screen.width, style=STYLES[ROLES[result.verdict]], first=f"{badge(result, language)}  ")
    if result.title or result.project:
        yield from wrapped(visible(", ".join(filter(None, (result.title, result.project)))), screen.width)
    yield from wrapped(_said(result.summary, language), screen.width)


def _missed(missed: Sequence[Criterion], language: Language, screen: Screen) -> Iterator[Line]:
    """What fails, above everything; the first stands in the summary already, with its advice."""
    if len(missed) < 2:  # noqa: PLR2004 - one is told by the summary
        return
    yield "", ""
    yield f"{language['accept_missed']} ({wording.count(len(missed))})", "bold"
    shown = missed if screen.whole else missed[: MOST + 1]
    for criterion in shown:
        if screen.whole:
            yield from wrapped(_told(criterion, language), screen.width, INDENT * 2, first=INDENT)
        else:
            line = _headed(criterion, criterion.sentence, language)
            yield cut(f"{INDENT}{line}", screen.width), STYLES["error"]
    if len(shown) < len(missed):
        yield INDENT + language["accept_more"].format(count=wording.count(len(missed) - len(shown))), ""


def _table(criteria: Sequence[Criterion], language: Language) -> Iterator[Line]:
    yield "", ""
    heads = [language[f"accept_col_{column}"] for column in COLUMNS]
    cells = [heads, *(_cells(number, each, language) for number, each in enumerate(criteria, 1))]
    for line, criterion in zip(columns(cells, RIGHT), (None, *criteria), strict=True):
        yield f"{INDENT}{line}", "bold" if criterion is None else _style(criterion)


def _cells(number: int, criterion: Criterion, language: Language) -> list[str]:
    return [
        str(number),
        visible(name_of(criterion, language)),
        measured_text(criterion, language),
        limit_text(criterion, language),
        language[result_key(criterion)],
    ]


def _style(criterion: Criterion) -> str:
    if criterion.outcome is Outcome.FAIL:
        return STYLES["error" if criterion.required else "warning"]
    return STYLES["warning"] if criterion.remark else ""


def _remarks(result: AcceptResult, language: Language) -> list[str]:
    return [_said(each, language) for each in result.deviations]


def _to_measure(result: AcceptResult, language: Language) -> list[str]:
    """How each criterion that was not measured can be."""
    return [_told(each, language) for each in result.criteria if each.outcome is Outcome.NOT_MEASURED]


def _sources(result: AcceptResult, language: Language) -> list[str]:
    """Where each limit is from."""
    return [
        _headed(each, say("{}, {}", limit_text(each, language), _source(each.limit, language)), language)
        for each in result.criteria
        if each.limit is not None
    ]


def _source(limit: Limit, language: Language) -> str:
    return limit.source or language["accept_project_limit"]


def _compared(result: AcceptResult, language: Language) -> list[str]:
    steps = result.reference.steps
    counted = language["accept_steps"].format(
        count=wording.plural(result.steps, "step"), first=str(int(steps[0])), last=str(int(steps[-1])),
        window=wording.count(result.window),
    )  # fmt: skip
    lines = [counted]
    for side, curves in (("reference", result.reference), ("candidate", result.candidate)):
        lines.append(
            language["accept_taken"].format(
                side=language[f"accept_{side}"], path=shortened(curves.path), columns=_taken(curves, language)
            )
        )
    if result.floors:
        lines.append(language["accept_floors"].format(paths=", ".join(map(shortened, result.floors))))
    key = "accept_policy_file" if result.policy.path else "accept_policy"
    lines.append(language[key].format(name=shortened(result.policy.name), path=shortened(result.policy.path)))
    return lines


def _taken(curves: Curves, language: Language) -> str:
    """Which columns of a file were taken for what."""
    return ", ".join(
        language["accept_column"].format(quantity=language[f"quantity_{quantity}"], column=shortened(name))
        for quantity, name in curves.taken.items()
    ) or str(curves.kind)


def _listed(
    key: str, entries: Sequence[str], language: Language, screen: Screen, *, most: int = MOST
) -> Iterator[Line]:
    """A list under a title, cut to what fits on a screen."""
    if not entries:
        return
    yield "", ""
    yield language[key], "bold"
    shown = entries if screen.whole else entries[:most]
    for entry in shown:
        if screen.whole:
            yield from wrapped(entry, screen.width, INDENT * 2, first=INDENT)
        else:
            yield from _shortly(entry, screen.width)
    if len(shown) < len(entries):
        yield INDENT + language["accept_more"].format(count=wording.count(len(entries) - len(shown))), ""


def _shortly(entry: str, width: int) -> Iterator[Line]:
    """An entry in two lines at most."""
    lines = list(wrapped(entry, width, INDENT * 2, first=INDENT))
    yield from lines[:1]
    if len(lines) > 1:
        rest = " ".join(line.strip() for line, _ in lines[1:])
        yield cut(f"{INDENT * 2}{rest}", width), ""


def _together(key: str, entries: Iterable[str], language: Language, screen: Screen) -> Iterator[Line]:
    """A list of short sentences as one paragraph."""
    text = joined(" ", entries)
    yield "", ""
    yield from wrapped(visible(language.headed(language[key], text)), screen.width, INDENT)


def _told(criterion: Criterion, language: Language) -> str:
    """A criterion with what it found and what to do."""
    parts = [part for part in (criterion.sentence, criterion.advice) if part]
    return _headed(criterion, joined(" ", parts), language)


def _headed(criterion: Criterion, text: str, language: Language) -> str:
    return visible(language.headed(name_of(criterion, language), text))


def _said(text: str, language: Language) -> str:
    return visible(language.said(text))
