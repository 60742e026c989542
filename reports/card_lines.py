"""Findings as lines of terminal text: causes first, consequences in one line, as much as a screen holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from align import wording
from align.reports.lines import HEIGHT, STYLES, Line, Screen, cut, fitted, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from align.reports.cards import Card
    from align.reports.language import Language

NOTES_KEPT = 6
"""Lines of notes that findings leave room for."""


@dataclass(frozen=True, slots=True)
class Above:
    """What stands above the findings: how many lines, and the sentences in them, which are not said again."""

    lines: int
    said: frozenset[str]


def findings_and_notes(
    cards: Sequence[Card], notes: Sequence[str], above: Above, screen: Screen, phrases: Language
) -> Iterator[Line]:
    """The findings and the notes after them, in what the lines above leave of a screen."""
    note_forms = [list(wrapped(phrases.headed(phrases["note"], note), screen.width)) for note in notes]
    many = sum(map(len, note_forms))
    room = HEIGHT - above.lines - 2 * bool(cards) - bool(notes)
    kept = many if screen.whole else min(many, NOTES_KEPT)
    shown = (
        []
        if not cards
        else [line for lines in _cards(cards, above.said, screen, phrases, room - kept) for line in lines]
    )
    if shown:
        yield "", ""
        yield phrases["findings"], "bold"
        yield from shown
    if notes:
        yield "", ""
        yield from _notes(note_forms, screen, phrases, room - len(shown))


def _cards(
    cards: Sequence[Card], said: frozenset[str], screen: Screen, phrases: Language, room: int
) -> Iterator[Sequence[Line]]:
    """The lines of each finding; the first is always whole, the last ones are counted where there is no room."""
    whole = [list(_whole(card, said, screen, phrases)) for card in cards]
    if screen.whole:
        yield from whole
        return
    yield whole[0]
    rest = cards[1:]
    room -= len(whole[0])
    places = max(1, room)
    named = rest if len(rest) <= places else rest[: places - 1]
    forms = [
        [[_brief(card, screen, phrases)], [_head(card), *_summary(card, said, screen)], lines]
        for card, lines in zip(named, whole[1:], strict=False)
    ]
    yield from fitted(forms, room - (len(named) < len(rest)))
    if len(named) < len(rest):
        more = phrases["findings_more"].format(count=wording.count(len(rest) - len(named)))
        yield list(wrapped(more, screen.width, "  "))


def _head(card: Card) -> Line:
    place = f"  {card.place}" if card.place else ""
    return f"  {card.severity} {card.code} {card.label}{place}", STYLES[card.role]


def _brief(card: Card, screen: Screen, phrases: Language) -> Line:
    """A finding in one line: what it is called, and the begin of its sentence."""
    line = phrases.headed(f"{card.severity} {card.code} {card.label}", card.summary)
    return cut(f"  {line}", screen.width), STYLES[card.role]


def _summary(card: Card, said: frozenset[str], screen: Screen) -> Iterator[Line]:
    if card.summary not in said:
        yield from wrapped(card.summary, screen.width, "    ")


def _whole(card: Card, said: frozenset[str], screen: Screen, phrases: Language) -> Iterator[Line]:
    yield _head(card)
    yield from _summary(card, said, screen)
    for sentence in (card.ranks, card.consequence):
        yield from wrapped(sentence, screen.width, "    ")
    if card.advice and card.advice not in said:
        yield from wrapped(phrases.headed(phrases["what_to_do"], card.advice), screen.width, "    ")
    yield from wrapped(card.explains_line, screen.width, "    ")
    if screen.whole:
        for each in card.explains:
            for text, style in _whole(each, said, Screen(screen.width - 4, whole=True), phrases):
                yield f"    {text}", style


def _notes(forms: Sequence[Sequence[Line]], screen: Screen, phrases: Language, room: int) -> Iterator[Line]:
    """The notes that there is room for, and how many more there are."""
    left = room
    for number, lines in enumerate(forms):
        last = number == len(forms) - 1
        if not screen.whole and number and len(lines) + (not last) > left:
            more = phrases["notes_more"].format(count=wording.count(len(forms) - number))
            yield from wrapped(phrases.headed(phrases["note"], more), screen.width)
            return
        left -= len(lines)
        yield from lines
