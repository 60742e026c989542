"""The view of a comparison: every string and number of a report, already formatted, in the order of reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from align import wording
from align.records import INIT_STEP, Status, Verdict
from align.reports import remarks, rows
from align.reports.facts import Fact, compare_facts, device_text
from align.reports.pairing_remarks import PairingRow, pairing_rows
from align.reports.phrases import ENGLISH, Phrases
from align.reports.rows import Row
from align.reports.visible import shortened, visible

if TYPE_CHECKING:
    from align.records import DiffResult, Finding, Place, RunInfo, TensorKey

AROUND = 9
"""Rows that the terminal shows."""
STATIC_ROWS = 200
"""Rows that the page holds as plain HTML."""
EXAMPLES = 20
"""Keys listed of the tensors that only one side has."""
DIFFERENCES = ("relative", "floor", "unit", "effect", "difference", "error", "cosine", "share")
"""Words in the names of evidence that is read as a difference, to two digits."""
WHAT_WAS_SEEN = "within-noise"
OF_OPTIMIZER = frozenset({"optimizer", "scaler", "rng"})
"""Phases of facts that belong to no module's code."""
COUNT_THEMSELVES = frozenset({"nan-origin", "shape-differs"})
"""Findings whose sentence says already how many other tensors are concerned."""

ROLES: Mapping[Verdict, str] = {
    Verdict.ALIGNED: "pass",
    Verdict.DIVERGED: "error",
    Verdict.INCOMPARABLE: "unknown",
}


@dataclass(frozen=True, slots=True)
class Card:
    """One finding."""

    number: int
    role: str
    severity: str
    code: str
    label: str
    place: str
    summary: str
    advice: str
    evidence: tuple[tuple[str, str], ...]
    consequence: str


@dataclass(frozen=True, slots=True)
class Side:
    """One capture in the head of a report."""

    word: str
    path: str
    device: str
    simulated: bool


@dataclass(frozen=True, slots=True)
class StepSummary:
    """One step of the run in the table of steps."""

    step: str
    tensors: str
    counts: Mapping[str, str]
    largest: str


@dataclass(frozen=True, slots=True)
class OneSided:
    """Tensors that only one capture has: some of them, and how many more there are."""

    title: str
    count: int
    examples: tuple[str, ...]
    more: int


@dataclass(frozen=True, slots=True)
class Page:
    """Everything that a report says, in the order of reading."""

    role: str
    verdict: str
    title: str
    sentence: str
    next_step: str
    confidence: str
    comparable: str
    notes: tuple[str, ...]
    sides: tuple[Side, Side]
    steps_line: str
    cards: tuple[Card, ...]
    around_title: str
    around: tuple[Row, ...]
    table: tuple[Row, ...]
    table_lead: str
    total: int
    has_first: bool
    status_counts: tuple[tuple[str, str, int], ...]
    steps: tuple[StepSummary, ...]
    one_sided: tuple[OneSided, ...]
    facts: tuple[Fact, ...]
    pairing: tuple[PairingRow, ...]
    judged: tuple[str, ...]
    unseen: tuple[str, ...]


def make_page(result: DiffResult, phrases: Phrases = ENGLISH) -> Page:
    """The view of a comparison."""
    total = len(result.comparisons)
    focus = rows.focus_index(result)
    return Page(
        role=ROLES[result.verdict],
        verdict=phrases[result.verdict],
        title=_title(result, phrases),
        sentence=visible(result.summary),
        next_step=_next_step(result),
        confidence=remarks.confidence(result, phrases),
        comparable=remarks.comparable(result, phrases),
        notes=remarks.notes(result, phrases),
        sides=_sides(result, phrases),
        steps_line=_steps_line(result, phrases),
        cards=tuple(_card(number, finding, result, phrases) for number, finding in enumerate(result.findings, 1)),
        around_title=_around_title(result, phrases),
        around=rows.make_rows(result, _around(result, focus), phrases),
        table=rows.make_rows(result, rows.window(total, focus, STATIC_ROWS), phrases),
        table_lead=_table_lead(result),
        total=total,
        has_first=rows.first_index(result) is not None,
        status_counts=_status_counts(result, phrases),
        steps=_step_summaries(result, phrases),
        one_sided=_one_sided(result, phrases),
        facts=compare_facts(result.reference, result.candidate, phrases),
        pairing=pairing_rows(result, phrases),
        judged=remarks.judged(result, phrases),
        unseen=remarks.unseen(result, phrases),
    )


def _next_step(result: DiffResult) -> str:
    """The advice of the finding that the sentence on top is from; where nothing differs, what was seen tells it."""
    for finding in result.findings:
        if finding.summary == result.summary or (result.first_divergence is None and finding.label == WHAT_WAS_SEEN):
            return visible(finding.advice)
    return visible(result.findings[0].advice) if result.findings else ""


def _title(result: DiffResult, phrases: Phrases) -> str:
    first = f" {shortened(result.first_divergence.name, 60)}" if result.first_divergence else ""
    names = f"{_file_name(result.reference_path)} {phrases['against']} {_file_name(result.candidate_path)}"
    return f"{phrases[result.verdict]}{first} - {names} - align"


def _file_name(path: str) -> str:
    return shortened(PurePath(path).name)


def _sides(result: DiffResult, phrases: Phrases) -> tuple[Side, Side]:
    def side(word: str, path: str, run: RunInfo) -> Side:
        return Side(phrases[word], _file_name(path), device_text(run, phrases), run.simulated)

    return (
        side("reference", result.reference_path, result.reference),
        side("candidate", result.candidate_path, result.candidate),
    )


def _steps(result: DiffResult) -> list[int]:
    return sorted({comparison.key.step for comparison in result.comparisons} - {INIT_STEP})


def _steps_line(result: DiffResult, phrases: Phrases) -> str:
    steps = _steps(result)
    return phrases["steps_compared"].format(steps=wording.steps(steps)) if steps else phrases["no_step"]


def _around(result: DiffResult, focus: int | None) -> Sequence[int]:
    """The neighbours of the first divergence, else the tensors closest to their limits."""
    if rows.first_index(result) is not None:
        return rows.window(len(result.comparisons), focus, AROUND)
    return rows.closest(result, AROUND) or rows.window(len(result.comparisons), None, AROUND)


def _around_title(result: DiffResult, phrases: Phrases) -> str:
    if rows.first_index(result) is None or result.first_divergence is None:
        return phrases["around_largest"]
    return phrases["around_first"].format(step=rows.step_text(result.first_divergence.step, phrases))


def _table_lead(result: DiffResult) -> str:
    """The phrase that says which rows the plain table holds."""
    if len(result.comparisons) <= STATIC_ROWS:
        return "records_all"
    return "records_head" if rows.first_index(result) is None else "records_window"


def _card(number: int, finding: Finding, result: DiffResult, phrases: Phrases) -> Card:
    return Card(
        number=number,
        role=str(finding.severity),
        severity=phrases[finding.severity],
        code=finding.code,
        label=finding.label,
        place=_place_text(finding.where, phrases),
        summary=visible(finding.summary),
        advice=visible(finding.advice),
        evidence=_evidence_pairs(finding),
        consequence=_consequence(result, phrases) if number == 1 else "",
    )


def _place_text(place: Place, phrases: Phrases) -> str:
    """Where a finding points: `layers.2.mlp output.0, step 0, forward`."""
    step = "" if place.step is None else rows.step_text(place.step, phrases)
    micro = f"micro {place.micro}" if place.micro else ""
    call = f"call {place.call}" if place.call else ""
    in_code = place.phase is not None and place.phase not in OF_OPTIMIZER
    owner = shortened(place.name) or (phrases["training_script"] if in_code and not place.slot else "")
    name = " ".join(part for part in (owner, shortened(place.slot or "")) if part)
    return ", ".join(part for part in (name, step, micro, place.phase or "", call) if part)


def _evidence_pairs(finding: Finding) -> tuple[tuple[str, str], ...]:
    """The evidence that says anything, as names and values."""
    known = {name: _evidence(name, value) for name, value in finding.evidence.items() if value is not None}
    return tuple((_evidence_name(name), text) for name, text in known.items() if text)


def _evidence_name(name: str) -> str:
    return visible(name.replace("_", " ").replace("l2", "L2"))


def _evidence(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value) if "seed" in name else wording.count(value)
    if isinstance(value, float):
        return _evidence_number(name, value)
    if isinstance(value, (tuple, list)):
        return ", ".join(_evidence(name, part) for part in value)
    if isinstance(value, Mapping):
        return ", ".join(f"{visible(str(key))}: {_evidence(f'{name} {key}', part)}" for key, part in value.items())
    return visible(str(value))


def _evidence_number(name: str, value: float) -> str:
    """A number by what its name says that it is: a factor, a difference, or a value of a tensor."""
    if "times" in name or name.endswith("limit"):
        return wording.times(value)
    return wording.relative(value) if any(word in name for word in DIFFERENCES) else wording.value(value)


def _consequence(result: DiffResult, phrases: Phrases) -> str:
    """How many tensors inherit the difference, where the first finding does not count them itself."""
    first = result.findings[0]
    number = first.evidence.get("carried_on", result.counts.get(str(Status.PROPAGATED), 0))
    if not number or result.first_divergence is None or first.label in COUNT_THEMSELVES:
        return ""
    key = "consequences_one" if number == 1 else "consequences_many"
    return phrases[key].format(count=wording.count(number))


def _status_counts(result: DiffResult, phrases: Phrases) -> tuple[tuple[str, str, int], ...]:
    return tuple((str(status), phrases[f"status_{status}"], _count(result, status)) for status in Status)


def _count(result: DiffResult, status: Status) -> int:
    return sum(comparison.status is status for comparison in result.comparisons)


def _step_summaries(result: DiffResult, phrases: Phrases) -> tuple[StepSummary, ...]:
    summaries = []
    for step in sorted({comparison.key.step for comparison in result.comparisons}):
        pairs = [comparison for comparison in result.comparisons if comparison.key.step == step]
        judged = [pair for pair in pairs if pair.status is not Status.NOT_JUDGED and pair.relative_l2]
        largest = max(judged, key=lambda pair: pair.relative_l2 or 0.0, default=None)
        counts = {str(status): wording.count(sum(pair.status is status for pair in pairs)) for status in Status}
        text = ""
        if largest is not None and largest.relative_l2 is not None:
            name = f"{shortened(largest.key.name, 60)} {shortened(rows.slot_text(largest.key), 40)}"
            text = f"{wording.relative(largest.relative_l2)} ({name})"
        label = phrases["init_step"] if step == INIT_STEP else str(step)
        summaries.append(StepSummary(label, wording.count(len(pairs)), counts, text))
    return tuple(summaries)


def _one_sided(result: DiffResult, phrases: Phrases) -> tuple[OneSided, ...]:
    def listed(title: str, keys: tuple[TensorKey, ...]) -> OneSided:
        examples = tuple(shortened(str(key)) for key in keys[:EXAMPLES])
        return OneSided(phrases[title], len(keys), examples, max(0, len(keys) - EXAMPLES))

    both = (listed("only_reference", result.only_reference), listed("only_candidate", result.only_candidate))
    return tuple(side for side in both if side.count)
