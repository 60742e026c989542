"""The view of an inspection: every string of a report on one run, already written, in the order of reading."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from align import wording
from align.records import Detail, Health, Severity, State
from align.reports.cards import Card, make_cards, script_note
from align.reports.facts import device_text, known_facts
from align.reports.language import ENGLISH, Language
from align.reports.remarks import COMPARED, made_comparable, side_notes
from align.reports.reproducing import Block, capture_command
from align.reports.visible import shortened, visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from align.records import InspectResult, Reply

ROLES: Mapping[Health, str] = {
    Health.HEALTHY: "pass",
    Health.UNHEALTHY: "error",
    Health.UNKNOWN: "unknown",
}
REPLY_ROLES: Mapping[State, str] = {
    State.GOOD: "pass",
    State.ODD: "warning",
    State.BAD: "error",
    State.UNKNOWN: "unknown",
    State.ABSENT: "absent",
}
MOST_STRETCHES = 4
"""Stretches of captured steps that are listed."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One question and what the run says to it; `finding` is the number of the card that says the same, else 0."""

    question: str
    state: State
    role: str
    word: str
    sentence: str
    finding: int


@dataclass(frozen=True, slots=True)
class InspectPage:
    """Everything that a report says of one run, in the order of reading."""

    role: str
    verdict: str
    title: str
    path: str
    device: str
    simulated: bool
    steps_line: str
    sentence: str
    next_step: str
    comparable: str
    notes: tuple[str, ...]
    answers: tuple[Answer, ...]
    cards: tuple[Card, ...]
    facts: tuple[tuple[str, str], ...]
    unseen: tuple[str, ...]
    reproduce: tuple[Block, ...]


def make_inspect_page(result: InspectResult, phrases: Language = ENGLISH) -> InspectPage:
    """The view of an inspection."""
    return InspectPage(
        role=ROLES[result.verdict],
        verdict=phrases[result.verdict],
        title=_title(result, phrases),
        path=_path(result, phrases),
        device=device_text(result.run, phrases),
        simulated=result.run.simulated,
        steps_line=_steps_line(result, phrases),
        sentence=visible(phrases.said(result.summary)),
        next_step=_next_step(result, phrases),
        comparable=made_comparable(((None, result.run),), phrases),
        notes=tuple(_notes(result, phrases)),
        answers=tuple(_answer(reply, result, phrases) for reply in result.replies),
        cards=make_cards(result.findings, phrases),
        facts=known_facts(result.run, phrases),
        unseen=tuple(_unseen(result, phrases)) or (phrases["unseen_run_none"],),
        reproduce=tuple(_reproduce(result, phrases)),
    )


def _title(result: InspectResult, phrases: Language) -> str:
    first = f" {shortened(result.first.name, 60)}" if result.first and result.first.name else ""
    return f"{phrases[result.verdict]}{first} - {_path(result, phrases)} - align"


def _path(result: InspectResult, phrases: Language) -> str:
    """The file, and how many others were read with it."""
    path, others = shortened(PurePath(result.paths[0]).name), len(result.paths) - 1
    if not others:
        return path
    return phrases["and_ranks_one" if others == 1 else "and_ranks"].format(path=path, count=wording.count(others))


def _reproduce(result: InspectResult, phrases: Language) -> Iterator[Block]:
    """The commands that made this."""
    yield Block(phrases["reproduce_inspect"], visible(shlex.join(["align", "inspect", result.paths[0]])))
    command = capture_command(result.paths[0], result.run)
    if command:
        yield Block(phrases["reproduce_run"], visible(command))


def _steps_line(result: InspectResult, phrases: Language) -> str:
    """`200 steps, steps 0-2 captured`."""
    steps = len(result.timeline)
    seen = phrases["run_steps_one" if steps == 1 else "run_steps"].format(count=wording.count(steps))
    captured = phrases["run_nothing_captured"]
    if result.captured:
        captured = phrases["run_captured"].format(steps=_captured(result, phrases))
    return phrases.clauses((seen, captured)) if steps else captured


def _captured(result: InspectResult, phrases: Language) -> str:
    """`steps 0-2`; of many stretches `40 of steps 0-195`."""
    text = wording.steps(result.captured)
    if text.count(",") < MOST_STRETCHES:
        return text
    first, last = min(result.captured), max(result.captured)
    return phrases["run_captured_some"].format(count=wording.count(len(result.captured)), first=first, last=last)


def _next_step(result: InspectResult, phrases: Language) -> str:
    """The advice of the finding that the sentence on top is from, else of the first that is no note."""
    chosen = [finding for finding in result.findings if finding.summary == result.summary]
    chosen += [finding for finding in result.findings if finding.severity is not Severity.NOTE]
    if chosen:
        return visible(phrases.said(chosen[0].advice))
    return phrases["inspect_next_unknown"] if result.verdict is Health.UNKNOWN and result.replies else ""


def _answer(reply: Reply, result: InspectResult, phrases: Language) -> Answer:
    """What the head or a cause says in the same words is not said again; consequences are folded, and would be lost."""
    number = next((place for place, each in enumerate(result.findings, 1) if each.summary == reply.sentence), 0)
    sentence = visible(phrases.said(reply.sentence))
    if reply.sentence == result.summary:
        sentence = phrases["as_above"]
    elif number and not result.findings[number - 1].explained_by:
        sentence = phrases["as_finding"].format(code=visible(result.findings[number - 1].code))
    return Answer(
        question=visible(phrases.word(reply.question)),
        state=reply.state,
        role=REPLY_ROLES[reply.state],
        word=phrases[f"state_{reply.state}"],
        sentence=sentence,
        finding=number,
    )


def _notes(result: InspectResult, phrases: Language) -> Iterator[str]:
    """What a reader has to know before believing the verdict."""
    # Where nothing is wrong the sentence on top says how the run ended, of all ranks.
    ended = result.verdict is Health.UNHEALTHY
    yield from side_notes(None, result.run, result.timeline, phrases, ended=ended)
    if len(result.paths) > 1:
        yield phrases["note_run_first"].format(rank=result.run.rank)
    world = result.run.world_size
    if len(result.paths) < world:
        yield phrases["note_run_ranks"].format(count=wording.count(len(result.paths)), world=wording.count(world))
    asked = (reply.sentence for reply in result.replies if reply.state is not State.ABSENT)
    yield from script_note(result.findings, asked, phrases)


def _unseen(result: InspectResult, phrases: Language) -> Iterator[str]:
    """What this inspection could not have seen, one sentence each."""
    run = result.run
    if not result.captured:
        yield phrases["unseen_run_no_steps"]
    elif len(result.captured) < len(result.timeline):
        yield phrases["unseen_run_steps"].format(steps=_captured(result, phrases))
    if run.phases and not set(run.phases) >= COMPARED:
        yield phrases["unseen_run_phases"].format(phases=visible(phrases.listed(run.phases)))
    if run.detail == Detail.STATS:
        yield phrases["unseen_run_stats"]
    if len(result.paths) < run.world_size:
        count, world = wording.count(len(result.paths)), wording.count(run.world_size)
        yield phrases["unseen_run_ranks"].format(count=count, world=world)
    yield from (visible(phrases.said(reply.sentence)) for reply in result.replies if reply.state is State.UNKNOWN)
