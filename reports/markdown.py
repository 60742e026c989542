"""Results as Markdown for issue trackers: the verdict, the next step, findings, the first rows, the facts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from align import wording
from align.records import State
from align.reports import rows
from align.reports.cards import make_cards
from align.reports.checkpoint_entries import EQUAL, Shown, said_of, shown_entries
from align.reports.inspect_view import make_inspect_page
from align.reports.kept import kept
from align.reports.language import ENGLISH, Language
from align.reports.markdown_parts import (
    ROWS,
    Columns,
    command,
    findings,
    finished,
    head,
    notes,
    reproduce,
    section,
    unseen,
    values,
)
from align.reports.markdown_text import block, code, escaped, listed, sentence
from align.reports.run_tables import make_table
from align.reports.view import make_page
from align.reports.visible import shortened, visible
from align.sentences import say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from align.checkpoint_records import CheckpointResult, EntryRow
    from align.records import DiffResult, InspectResult
    from align.reports.facts import Fact
    from align.reports.inspect_view import InspectPage

TENSORS = ("step", "phase", "module", "tensor", "status", "times", "relative", "floor", "reference", "candidate")
OF_TENSORS = Columns(names=frozenset({2, 3}), right=frozenset({0, 5, 6, 7}))


def diff_markdown(result: DiffResult, t: Language = ENGLISH) -> str:
    """A comparison of two runs."""
    page = make_page(result, t)
    about = _against(*((side.path, side.word) for side in page.sides), t=t)
    lines = head(page.verdict, about, page.sentence, page.next_step, t)
    lines += listed(escaped(t.said(say("{}: {}", side.word, side.device))) for side in page.sides)
    lines += findings(page.cards, frozenset({page.sentence, page.next_step}), t)
    lines += _tensors(result, t)
    lines += _facts([fact for fact in page.facts if fact.differs], t)
    told = (page.steps_line, page.confidence, page.comparable, *page.notes)
    lines += notes([note for note in told if note], t)
    lines += unseen(page.unseen, t)
    return finished([*lines, *reproduce(page.reproduce, t)], t)


def _against(*sides: tuple[str, str], t: Language) -> str:
    """Both files, each with its word, as Markdown."""
    return f" {escaped(t['against'])} ".join(f"{code(path)} ({escaped(word)})" for path, word in sides)


def _tensors(result: DiffResult, t: Language) -> list[str]:
    """The rows around the first difference, else around the tensor closest to its limit."""
    total = len(result.comparisons)
    shown = rows.make_rows(result, rows.window(total, rows.focus_index(result), ROWS), t)
    cells = [
        (
            row.step, row.phase, row.name, row.slot, row.status_word, row.times, row.relative, row.floor,
            row.reference, row.candidate,
        )
        for row in shown
    ]  # fmt: skip
    first = next((place for place, row in enumerate(shown) if row.first), None)
    lines = values([t[f"col_{name}"] for name in TENSORS], cells, t, replace(OF_TENSORS, first=first))
    if len(shown) < total:
        told = t["markdown_rows_of"].format(shown=wording.count(len(shown)), total=wording.count(total))
        lines = [escaped(told), "", *lines]
    return section(t["markdown_rows_closest" if first is None else "markdown_rows"], lines)


def _facts(differing: list[Fact], t: Language) -> list[str]:
    if not differing:
        return section(t["markdown_facts"], [escaped(t["markdown_no_facts"]), ""])
    cells = [(fact.name, fact.reference, fact.candidate) for fact in differing]
    return section(t["markdown_facts"], values([t["fact"], t["reference"], t["candidate"]], cells, t))


def inspect_markdown(result: InspectResult, t: Language = ENGLISH) -> str:
    """An inspection of one run."""
    page = make_inspect_page(result, t)
    about = f"{code(page.path)}, {escaped(t.said(say('{}: {}', page.device, page.steps_line)))}"
    lines = head(page.verdict, about, page.sentence, page.next_step, t)
    lines += _questions(page, t)
    lines += findings(page.cards, frozenset({page.sentence, page.next_step}), t)
    lines += [line for table in _tables(result, t) for line in table]
    lines += notes([note for note in (page.comparable, *page.notes) if note], t)
    lines += unseen(page.unseen, t)
    return finished([*lines, *reproduce(page.reproduce, t)], t)


def _questions(page: InspectPage, t: Language) -> list[str]:
    """What was asked; what does not concern this run is left out."""
    asked = [answer for answer in page.answers if answer.state is not State.ABSENT]
    cells = [(answer.question, answer.word, answer.sentence) for answer in asked]
    titles = [t[f"markdown_{name}"] for name in ("question", "state", "answer")]
    return section(t["markdown_questions"], values(titles, cells, t))


def _tables(result: InspectResult, t: Language) -> Iterator[list[str]]:
    for table in (make_table(each, t) for each in result.tables):
        titles = list(enumerate(table.titles))
        names, right = (frozenset(i for i, title in titles if getattr(title, kind)) for kind in ("name", "number"))
        lines = values([title.text for title in table.titles], table.rows, t, Columns(names, right))
        yield section(table.title, [sentence(table.lead), "", *lines])


def checkpoint_markdown(result: CheckpointResult, t: Language = ENGLISH) -> str:
    """A comparison of two checkpoints."""
    paths = (result.reference.path, result.candidate.path)
    said = visible(t.said(result.summary))
    told = next((each for each in result.findings if each.summary == result.summary), None)
    advice = visible(t.said(told.advice)) if told is not None else ""
    about = _against((paths[0], t["reference"]), (paths[1], t["candidate"]), t=t)
    lines = head(t[result.verdict], about, said, advice, t)
    lines += findings(make_cards(result.findings, t), frozenset({said, advice}), t)
    lines += _entries(result, t)
    renamed = [(rule, wording.count(count)) for rule, count in result.renamed]
    rules = values([t["markdown_rule"], t["markdown_names"]], renamed, t, Columns(frozenset({0}), frozenset({1})))
    lines += section(t["markdown_renamed"], rules)
    for side in ("only_reference", "only_candidate"):
        alone = [(shortened(name),) for name in getattr(result, side)]
        lines += section(t[f"markdown_{side}"], values([t["markdown_names"]], alone, t, Columns(frozenset({0}))))
    lines += notes([visible(t.said(note)) for note in result.notes], t)
    again = block([command("align", "checkpoint", *paths)])
    return finished([*lines, *section(t["markdown_reproduce"], again)], t)


def _entries(result: CheckpointResult, t: Language) -> list[str]:
    """The first entries that differ in more than their names, the worst first."""
    differing = [
        _entry(entry, entry.row, t)
        for entry in shown_entries(result)
        if entry.row is not None and entry.row.relation != EQUAL
    ]
    titles = [t["reference"], t["candidate"], t["markdown_relation"], t["entry_said"], t["col_relative"]]
    return section(
        t["markdown_entries"], values(titles, differing, t, Columns(names=frozenset({0, 1}), right=frozenset({4})))
    )


def _entry(entry: Shown, row: EntryRow, t: Language) -> tuple[str, ...]:
    relative = "" if row.relative_l2 is None else t.said(wording.relative(kept(row.relative_l2)))
    names = (shortened(entry.reference), shortened(entry.candidate))
    return (*names, visible(t.word(entry.relation)), shortened(said_of(entry, t)), relative)
