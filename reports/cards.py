"""Findings as cards: a cause with its consequences folded under it, every number already written."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from align import wording
from align.reports import rows
from align.reports.evidence import evidence_pairs
from align.reports.visible import shortened, visible
from align.sentences import joined, say

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from align.records import Finding, Place
    from align.reports.language import Language

OF_OPTIMIZER = frozenset({"optimizer", "scaler", "rng"})
"""Phases of facts that belong to no module's code."""
WHOLES = ("tensors", "parameters", "modules", "rows", "steps")
"""Evidence that `differing` is a part of."""
FOLDED_NAMES = 4
"""How many labels of consequences one line names."""
WITHOUT_SCRIPT = re.compile(r"`align capture (?![^`]*(?:SCRIPT|\.\.\.)`)[^`]*`")
"""A command of an advice that ends before the script it runs."""


@dataclass(frozen=True, slots=True)
class Card:
    """One finding. `number` is its place among all findings, from 1.

    `consequence` says how many tensors inherit it, `ranks` on which ranks it was found, both empty where there is
    nothing to say. `explains` are the findings that follow from it, `explains_line` names them in one line.
    """

    number: int
    role: str
    severity: str
    code: str
    label: str
    place: str
    summary: str
    advice: str
    evidence: tuple[tuple[str, str], ...]
    consequence: str = ""
    ranks: str = ""
    explains: tuple[Card, ...] = ()
    explains_line: str = ""


@dataclass(frozen=True, slots=True)
class _Group:
    """A finding with its number, the numbers of the ranks that say the same, and what it explains."""

    number: int
    finding: Finding
    ranks: tuple[int, ...]
    explains: tuple[_Group, ...] = ()


def make_cards(findings: Sequence[Finding], phrases: Language, consequence: str = "") -> tuple[Card, ...]:
    """The causes in their order; `consequence` is what is said of the first."""
    cards = [_card(group, phrases) for group in _grouped(findings)]
    if cards and consequence:
        cards[0] = replace(cards[0], consequence=consequence)
    return tuple(cards)


def script_note(findings: Iterable[Finding], others: Iterable[str], phrases: Language) -> Iterator[str]:
    """What to add to commands, where the advice of a cause or another sentence has one without a script."""
    advices = (finding.advice for finding in findings if not finding.explained_by)
    if any(WITHOUT_SCRIPT.search(sentence) for sentence in (*advices, *others)):
        yield phrases["note_script"]


def _grouped(findings: Sequence[Finding]) -> tuple[_Group, ...]:
    """The causes with their consequences, which stand behind them; what several ranks say is said once."""
    causes: list[_Group] = []
    for number, finding in enumerate(findings, 1):
        group = _Group(number, finding, _ranks(finding))
        if finding.explained_by and causes:
            causes[-1] = replace(causes[-1], explains=(*causes[-1].explains, group))
        else:
            causes.append(group)
    return _merged(causes)


def _merged(groups: Iterable[_Group]) -> tuple[_Group, ...]:
    """Findings that say the same of several ranks as one."""
    kept: dict[tuple[Any, ...], _Group] = {}
    for group in groups:
        where = group.finding.where
        alone = (group.number,)
        key = alone if where.rank is None else (group.finding.code, group.finding.severity, replace(where, rank=None))
        known = kept.get(key)
        kept[key] = (
            group
            if known is None
            else replace(known, ranks=known.ranks + group.ranks, explains=(*known.explains, *group.explains))
        )
    return tuple(replace(group, explains=_merged(group.explains)) for group in kept.values())


def _ranks(finding: Finding) -> tuple[int, ...]:
    return () if finding.where.rank is None else (finding.where.rank,)


def _card(group: _Group, phrases: Language) -> Card:
    finding, several = group.finding, len(group.ranks) > 1
    place = replace(finding.where, rank=None) if several else finding.where
    return Card(
        number=group.number,
        role=str(finding.severity),
        severity=phrases[finding.severity],
        code=visible(finding.code),
        label=visible(phrases.beside(finding.label)),
        place=place_text(place, phrases),
        summary=visible(phrases.said(finding.summary)),
        advice=visible(phrases.said(finding.advice)),
        evidence=evidence_pairs(finding, phrases),
        ranks=phrases["on_ranks"].format(ranks=wording.ranges(group.ranks)) if several else "",
        explains=tuple(_card(each, phrases) for each in group.explains),
        explains_line=_explains_line([each.finding for each in group.explains], phrases),
    )


def _explains_line(findings: Sequence[Finding], phrases: Language) -> str:
    """The consequences in one line: `Explains 2 more findings: buffer-differs (3 of 9 tensors), data-order.`."""
    if not findings:
        return ""
    labels: dict[str, list[Finding]] = {}
    for finding in findings:
        labels.setdefault(finding.label, []).append(finding)
    parts = []
    for label, these in labels.items():
        size = _size(these[0]) if len(these) == 1 else wording.count(len(these))
        name = visible(phrases.beside(label))
        parts.append(say("{} ({})", name, size) if size else name)
    key = "explains_one" if len(findings) == 1 else "explains_many"
    listed = parts[:FOLDED_NAMES]
    if len(parts) > FOLDED_NAMES:
        listed.append(phrases["and_more"].format(count=wording.count(len(parts) - FOLDED_NAMES)))
    return phrases[key].format(count=wording.count(len(findings)), labels=joined(", ", listed))


def _size(finding: Finding) -> str:
    """How much of the whole a finding is about, `14 of 34 tensors`, else where it is."""
    part = finding.evidence.get("differing")
    whole = next((name for name in WHOLES if isinstance(finding.evidence.get(name), int)), None)
    if isinstance(part, int) and whole is not None:
        return say(f"{{}} of {{}} {whole}", wording.count(part), wording.count(finding.evidence[whole]))
    return shortened(finding.where.name, 40)


def place_text(place: Place, phrases: Language) -> str:
    """Where a finding points: `layers.2.mlp output.0, step 0, forward`."""
    step = "" if place.step is None else rows.step_text(place.step, phrases)
    micro = say("micro {}", place.micro) if place.micro else ""
    call = say("call {}", place.call) if place.call else ""
    in_code = place.phase is not None and place.phase not in OF_OPTIMIZER
    owner = shortened(place.name) or (phrases["training_script"] if in_code and not place.slot else "")
    name = " ".join(part for part in (owner, shortened(place.slot or "")) if part)
    rank = "" if place.rank is None else phrases["rank"].format(rank=place.rank)
    phase = phrases.word(place.phase) if place.phase else ""
    when = phrases.said(say("{0}, {1}", step, phase)) if step and phase and not micro else ""
    return phrases.clauses((name, *((when,) if when else (step, micro, phase)), call, rank))
