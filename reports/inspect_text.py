"""Terminal text of an inspection: the verdict, what each question found, the findings with what to do."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

from align.records import State
from align.reports.card_lines import Above, findings_and_notes
from align.reports.inspect_view import Answer, InspectPage, make_inspect_page
from align.reports.language import ENGLISH, Language
from align.reports.lines import STYLES, WIDTH, Line, Screen, cut, fitted, plain, print_lines, wrapped
from align.reports.wide import is_wide, padded, width
from align.sentences import joined

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from align.records import InspectResult

MARK_STYLES = {
    State.GOOD: "",
    State.ODD: STYLES["warning"],
    State.BAD: STYLES["error"],
    State.UNKNOWN: "",
    State.ABSENT: "",
}
QUESTION_WIDTH = 24
ROOM = 22
"""Lines that the questions may take of a screen, so that findings have as many."""


def inspect_text(result: InspectResult, phrases: Language = ENGLISH, width: int = WIDTH, *, whole: bool = False) -> str:
    """The text of an inspection without colour: what fits on a screen, or the whole."""
    return plain(_lines(make_inspect_page(result, phrases), phrases, Screen(width, whole)))


def print_inspection(
    result: InspectResult, stream: IO[str], phrases: Language = ENGLISH, *, whole: bool = False
) -> None:
    """Write the text to a stream, with colour when it is a terminal."""
    page = make_inspect_page(result, phrases)
    print_lines(lambda screen: _lines(page, phrases, screen), stream, whole=whole)


def _lines(page: InspectPage, phrases: Language, screen: Screen) -> Iterator[Line]:
    above = [*_head(page, phrases, screen), *_questions(page.answers, phrases, screen)]
    yield from above
    said = frozenset({page.sentence, page.next_step})
    yield from findings_and_notes(page.cards, page.notes, Above(len(above), said), screen, phrases)


def _head(page: InspectPage, phrases: Language, screen: Screen) -> Iterator[Line]:
    where = phrases["on_device"].format(path=page.path, device=page.device)
    yield from wrapped(
        phrases.headed(where, page.steps_line), screen.width, style=STYLES[page.role], first=f"{page.verdict}  "
    )
    yield from wrapped(page.sentence, screen.width)
    if page.next_step:
        yield from wrapped(phrases.headed(phrases["next_step"], page.next_step), screen.width, style="bold")
    yield from wrapped(page.comparable, screen.width)


def _questions(answers: Sequence[Answer], phrases: Language, screen: Screen) -> Iterator[Line]:
    """One entry a question; what is not to be asked of this run is named in one line."""
    if not answers:
        return
    yield "", ""
    yield phrases["questions"], "bold"
    asked = [answer for answer in answers if screen.whole or answer.state is not State.ABSENT]
    size = min(QUESTION_WIDTH, max((width(answer.question) for answer in asked), default=0))
    marks = _marks(phrases)
    entries = [list(_entry(answer, marks[answer.state], size, screen)) for answer in asked]
    if not screen.whole:
        forms = [
            [entry] if answer.state in {State.ODD, State.BAD} else [_cut(entry, screen), entry]
            for answer, entry in zip(asked, entries, strict=True)
        ]
        entries = [list(entry) for entry in fitted(forms, ROOM)]
    for entry in entries:
        yield from entry
    absent = [answer.question for answer in answers if answer.state is State.ABSENT and not screen.whole]
    if absent:
        sentence = phrases["questions_absent"].format(questions=joined(", ", absent))
        begin = f"  {marks[State.ABSENT]}  "
        yield from wrapped(sentence, screen.width, " " * width(begin), first=begin)


def _marks(phrases: Language) -> dict[State, str]:
    """The word or sign of each state, all of one width."""
    marks = {state: phrases[f"mark_{state}"] for state in State}
    widest = max(map(width, marks.values()))
    return {state: padded(mark, widest) for state, mark in marks.items()}


def _entry(answer: Answer, mark: str, size: int, screen: Screen) -> Iterator[Line]:
    first = f"  {mark}  {padded(answer.question, size)}  "
    style = MARK_STYLES[answer.state]
    yield from wrapped(answer.sentence, screen.width, " " * width(first), style, first=first)


def _cut(entry: Sequence[Line], screen: Screen) -> list[Line]:
    """An entry in one line."""
    if len(entry) <= 1:
        return list(entry)
    (text, style), *rest = entry
    blank = "" if is_wide(text) else " "
    return [(cut(blank.join([text, *(line.strip() for line, _ in rest)]), screen.width), style)]
