"""The view of a comparison: every string and number of a report, already formatted, in the order of reading."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from align import wording
from align.records import INIT_STEP, Status, Verdict
from align.reports import remarks, rows
from align.reports.cards import Card, make_cards, script_note
from align.reports.facts import Fact, compare_facts, device_text
from align.reports.kept_rows import MOST_ROWS, kept_rows, usual_limit
from align.reports.language import ENGLISH, Language
from align.reports.pairing_remarks import PairingRow, pairing_rows
from align.reports.reproducing import Block, blocks
from align.reports.rows import Row
from align.reports.visible import shortened, visible

if TYPE_CHECKING:
    from align.records import Comparison, DiffResult, RunInfo, TensorKey

AROUND = 9
"""Rows that the terminal shows."""
STATIC_ROWS = 200
"""Rows that the page holds as plain HTML."""
EXAMPLES = 20
"""Keys listed of the tensors that only one side has."""
WHAT_WAS_SEEN = "within-noise"
COUNT_THEMSELVES = frozenset({"nan-origin", "shape-differs"})
"""Findings whose sentence says already how many other tensors are concerned."""

ROLES: Mapping[Verdict, str] = {
    Verdict.ALIGNED: "pass",
    Verdict.DIVERGED: "error",
    Verdict.INCOMPARABLE: "unknown",
}


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
    step_count: int
    limit: float
    kept: int
    cut: str
    reproduce: tuple[Block, ...]


def make_page(result: DiffResult, phrases: Language = ENGLISH) -> Page:
    """The view of a comparison."""
    total = len(result.comparisons)
    focus = rows.focus_index(result)
    kept = total if total <= MOST_ROWS else len(kept_rows(result.comparisons, rows.first_index(result)))
    return Page(
        role=ROLES[result.verdict],
        verdict=phrases[result.verdict],
        title=_title(result, phrases),
        sentence=visible(phrases.said(result.summary)),
        next_step=_next_step(result, phrases),
        confidence=remarks.confidence(result, phrases),
        comparable=remarks.comparable(result, phrases),
        notes=(*remarks.notes(result, phrases), *script_note(result.findings, (_next_step(result, phrases),), phrases)),
        sides=_sides(result, phrases),
        steps_line=_steps_line(result, phrases),
        cards=make_cards(result.findings, phrases, _consequence(result, phrases)),
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
        step_count=len(_steps(result)),
        limit=usual_limit(result.comparisons),
        kept=kept,
        cut=_cut(kept, total, phrases),
        reproduce=blocks(result, phrases),
    )


def _next_step(result: DiffResult, phrases: Language) -> str:
    """The advice of the finding that the sentence on top is from; where nothing differs, what was seen tells it."""
    for finding in result.findings:
        if finding.summary == result.summary or (result.first_divergence is None and finding.label == WHAT_WAS_SEEN):
            return visible(phrases.said(finding.advice))
    return visible(phrases.said(result.findings[0].advice)) if result.findings else ""


def _cut(kept: int, total: int, phrases: Language) -> str:
    """That the page does not hold all rows, where it does not."""
    return "" if kept == total else phrases["grid_cut"].format(kept=wording.count(kept), total=wording.count(total))


def _title(result: DiffResult, phrases: Language) -> str:
    first = f" {shortened(result.first_divergence.name, 60)}" if result.first_divergence else ""
    names = f"{_file_name(result.reference_path)} {phrases['against']} {_file_name(result.candidate_path)}"
    return f"{phrases[result.verdict]}{first} - {names} - align"


def _file_name(path: str) -> str:
    return shortened(PurePath(path).name)


def _sides(result: DiffResult, phrases: Language) -> tuple[Side, Side]:
    def side(word: str, path: str, run: RunInfo) -> Side:
        return Side(phrases[word], _file_name(path), device_text(run, phrases), run.simulated)

    return (
        side("reference", result.reference_path, result.reference),
        side("candidate", result.candidate_path, result.candidate),
    )


def _steps(result: DiffResult) -> list[int]:
    return sorted({comparison.key.step for comparison in result.comparisons} - {INIT_STEP})


def _steps_line(result: DiffResult, phrases: Language) -> str:
    steps = _steps(result)
    return phrases["steps_compared"].format(steps=phrases.said(wording.steps(steps))) if steps else phrases["no_step"]


def _around(result: DiffResult, focus: int | None) -> Sequence[int]:
    """The neighbours of the first divergence, else the tensors closest to their limits."""
    if rows.first_index(result) is not None:
        return rows.window(len(result.comparisons), focus, AROUND)
    return rows.closest(result, AROUND) or rows.window(len(result.comparisons), None, AROUND)


def _around_title(result: DiffResult, phrases: Language) -> str:
    if rows.first_index(result) is None or result.first_divergence is None:
        return phrases["around_largest"]
    return phrases["around_first"].format(step=rows.step_text(result.first_divergence.step, phrases))


def _table_lead(result: DiffResult) -> str:
    """The phrase that says which rows the plain table holds."""
    if len(result.comparisons) <= STATIC_ROWS:
        return "records_all"
    return "records_head" if rows.first_index(result) is None else "records_window"


def _consequence(result: DiffResult, phrases: Language) -> str:
    """How many tensors inherit the difference, where the first finding does not count them itself."""
    if not result.findings:
        return ""
    first = result.findings[0]
    number = first.evidence.get("carried_on", result.counts.get(str(Status.PROPAGATED), 0))
    if not number or result.first_divergence is None or first.label in COUNT_THEMSELVES:
        return ""
    key = "consequences_one" if number == 1 else "consequences_many"
    return phrases[key].format(count=wording.count(number))


def _status_counts(result: DiffResult, phrases: Language) -> tuple[tuple[str, str, int], ...]:
    counts = Counter(pair.status for pair in result.comparisons)
    return tuple((str(status), phrases[f"status_{status}"], counts[status]) for status in Status)


def _step_summaries(result: DiffResult, phrases: Language) -> tuple[StepSummary, ...]:
    counts: defaultdict[int, Counter[Status]] = defaultdict(Counter)
    worst: dict[int, Comparison] = {}
    for pair in result.comparisons:
        step = pair.key.step
        counts[step][pair.status] += 1
        if pair.status is not Status.NOT_JUDGED and pair.relative_l2:
            known = worst.get(step)
            if known is None or pair.relative_l2 > (known.relative_l2 or 0.0):
                worst[step] = pair
    return tuple(_summary(step, counts[step], worst.get(step), phrases) for step in sorted(counts))


def _summary(step: int, counts: Counter[Status], worst: Comparison | None, phrases: Language) -> StepSummary:
    """One step: how many tensors have which status, and the largest difference."""
    text = ""
    if worst is not None and worst.relative_l2 is not None:
        name = f"{shortened(worst.key.name, 60)} {shortened(rows.slot_text(worst.key), 40)}"
        text = f"{wording.relative(worst.relative_l2)} ({name})"
    label = phrases["init_step"] if step == INIT_STEP else str(step)
    shown = {str(status): wording.count(counts[status]) for status in Status}
    return StepSummary(label, wording.count(counts.total()), shown, text)


def _one_sided(result: DiffResult, phrases: Language) -> tuple[OneSided, ...]:
    def listed(title: str, keys: tuple[TensorKey, ...]) -> OneSided:
        examples = tuple(shortened(_key_text(key, phrases)) for key in keys[:EXAMPLES])
        return OneSided(phrases[title], len(keys), examples, max(0, len(keys) - EXAMPLES))

    both = (listed("only_reference", result.only_reference), listed("only_candidate", result.only_candidate))
    return tuple(side for side in both if side.count)


def _key_text(key: TensorKey, phrases: Language) -> str:
    """A tensor by its place: `step 3, micro 1, forward: layers.2.mlp output.0`."""
    micro = f", micro {key.micro}" if key.micro else ""
    call = f", call {key.call}" if key.call else ""
    place = f"{rows.step_text(key.step, phrases)}{micro}, {phrases.word(str(key.phase))}"
    return f"{place}: {key.name} {key.slot}{call}"
