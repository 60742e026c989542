"""What one capture holds, as plain text: the run, its steps and modules, or the tensors asked for by name."""

from __future__ import annotations

import difflib
import fnmatch
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from align import wording
from align.errors import UsageError
from align.records import INIT_STEP, Phase, TensorRecord
from align.reports.facts import GROUPS_OF_LINES, device_text, fact_text, run_facts
from align.reports.language import ENGLISH, Language
from align.reports.remarks import made_comparable
from align.reports.rows import slot_text
from align.reports.show_facts import fact_lines, generator_rows, matching_fact_lines, settings_text, wrapped
from align.reports.visible import shortened, visible
from align.sentences import joined, say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from align.records import Fact, ModuleInfo, RunInfo, TensorKey, TimelineRow

MOST_STEPS = 20
"""Rows of the timeline that are printed; the middle is left out of longer ones."""
EXAMPLES = 3

Groups = dict[tuple[int, Phase, str], list[TensorRecord]]
"""Tensors of one module in one phase of one step."""

_IN_HEAD = {"device_type", "device_name", "align_version", "format_version", "simulated", "outcome"}


@dataclass(frozen=True, slots=True)
class Contents:
    """One capture, read; `records` are per step, those of `init` under INIT_STEP.

    `values` are the first values of tensors that were kept, by step and order. `alive` says of an unfinished capture
    whether its process is still there, None where that is not known.
    """

    path: str
    run: RunInfo
    modules: Mapping[str, ModuleInfo]
    records: Mapping[int, Sequence[TensorRecord]]
    timeline: Sequence[TimelineRow] = ()
    values: Mapping[tuple[int, int], Sequence[float | complex]] = field(default_factory=dict)
    facts: Mapping[int, Sequence[Fact]] = field(default_factory=dict)
    alive: bool | None = None


def show_text(contents: Contents, names: Sequence[str] = (), phrases: Language = ENGLISH) -> str:
    """The tensors whose names match, or the whole run when no name is given."""
    lines = _tensor_lines(contents, names) if names else _run_lines(contents, phrases)
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _run_lines(contents: Contents, phrases: Language) -> Iterator[str]:
    run = contents.run
    ending = _ending(contents, phrases)
    yield f"{visible(contents.path)}: {visible(ending)}, align {run.align_version}, format {run.format_version}"
    yield f"  device: {device_text(run, phrases)}"
    for name, value in run_facts(run).items():
        text = fact_text(value, phrases)
        if name not in _IN_HEAD and not name.startswith(GROUPS_OF_LINES) and text != phrases["not_recorded"]:
            yield f"  {visible(name).replace('_', ' ') if '.' not in name else visible(name)}: {text}"
    yield from _preparation_lines(run, phrases)
    for note in run.notes:
        yield f"  {phrases['note']}: {visible(note)}"
    if contents.timeline:
        yield from ("", "Timeline")
        yield from _timeline_lines(contents.timeline)
    facts = list(fact_lines(contents.facts))
    if facts:
        yield from ("", f"Facts of {wording.steps(contents.facts)}")
        yield from facts
    states = generator_rows(contents.records)
    if states:
        yield from ("", "Random generators at the begin of each step, as hashes")
        yield from _columns(states, right=[0])
    yield from ("", "Tensors captured")
    yield from _count_lines(contents.records)
    yield from ("", f"Modules ({wording.count(len(contents.modules))})")
    yield from _columns([[shortened(module.name), visible(module.class_name)] for module in contents.modules.values()])


def _ending(contents: Contents, phrases: Language) -> str:
    """How the run ended; of an unfinished capture what is known of it."""
    run, timeline = contents.run, contents.timeline
    if run.outcome != "unfinished":
        return run.outcome
    known = {None: "show_killed_or_running", True: "show_running", False: "show_killed"}
    last = timeline[-1].step if timeline else max(contents.records, default=INIT_STEP)
    step = phrases["show_last_step"].format(step=last) if last > INIT_STEP else phrases["show_no_step"]
    return phrases["show_unfinished"].format(why=phrases[known[contents.alive]], last=step)


def _preparation_lines(run: RunInfo, phrases: Language) -> Iterator[str]:
    """What was done before training: the same start, the loaders; and what the device left to the CPU."""
    prepared = made_comparable(((None, run),), phrases)
    if prepared:
        yield f"  {prepared}"
    for number, loader in enumerate(run.loaders):
        yield f"  loader {number}: {settings_text(loader)}"
    if run.fallbacks:
        calls = [
            f"{visible(name)} ({wording.plural(number, 'call')})" if number else visible(name)
            for name, number in run.fallbacks.items()
        ]
        yield f"  left to the CPU: {', '.join(calls)}"


def _timeline_lines(timeline: Sequence[TimelineRow]) -> Iterator[str]:
    shown = timeline if len(timeline) <= MOST_STEPS else [*timeline[: MOST_STEPS // 2], *timeline[-MOST_STEPS // 2 :]]
    columns = [
        (head, cells) for head, always, cell in _TIMELINE if any(cells := [cell(row) for row in shown]) or always
    ]
    head = [name for name, _ in columns]
    rows = [list(row) for row in zip(*(cells for _, cells in columns), strict=True)]
    lines = list(_columns([head, *rows], right=range(len(head) - 1)))
    if len(shown) < len(timeline):
        middle = 1 + MOST_STEPS // 2
        lines.insert(middle, f"  ... {wording.count(len(timeline) - len(shown))} more steps")
    yield from lines


def _timeline_remarks(row: TimelineRow) -> str:
    flags = (
        ("skipped", row.skipped),
        ("not finite", row.nonfinite),
        ("saturated", row.overflow),
        (f"{row.micros} micro-steps", row.micros > 1),
    )
    return ", ".join([visible(row.optimizer), *(word for word, holds in flags if holds)])


def _known(number: float, text: str) -> str:
    return "" if math.isnan(number) else text


_TIMELINE: tuple[tuple[str, bool, Callable[[TimelineRow], str]], ...] = (
    ("step", True, lambda row: str(row.step)),
    ("loss", True, lambda row: _known(row.loss, wording.loss(row.loss))),
    ("learning rate", True, lambda row: _known(row.learning_rate, wording.relative(row.learning_rate))),
    ("loss scale", True, lambda row: _known(row.loss_scale, wording.loss_scale(row.loss_scale))),
    ("scale after", False, lambda row: _known(row.loss_scale_after, wording.loss_scale(row.loss_scale_after))),
    ("gradient norm", True, lambda row: _known(row.gradient_norm, wording.value(row.gradient_norm))),
    ("clip norm", False, lambda row: _known(row.clip_norm, wording.value(row.clip_norm))),
    ("clip limit", False, lambda row: _known(row.clip_limit, wording.value(row.clip_limit))),
    ("time", True, lambda row: _known(row.seconds, wording.seconds(row.seconds))),
    ("remarks", True, _timeline_remarks),
)
"""The columns of the timeline: title, whether it is there without a value, and the text of a row."""


def _count_lines(records: Mapping[int, Sequence[TensorRecord]]) -> Iterator[str]:
    """How many tensors of each phase every step holds."""
    present = {record.key.phase for step in records.values() for record in step}
    phases = [phase for phase in Phase if phase in present]
    if not phases:
        yield "  none"
        return
    rows = [["step", *map(str, phases)]]
    for step in sorted(records):
        counts = [sum(record.key.phase is phase for record in records[step]) for phase in phases]
        rows.append(["init" if step == INIT_STEP else str(step), *map(wording.count, counts)])
    yield from _columns(rows, right=range(len(rows[0])))


def _tensor_lines(contents: Contents, names: Sequence[str]) -> Iterator[str]:
    groups: Groups = {}
    unmatched = set(names)
    for step in sorted(contents.records):
        for record in contents.records[step]:
            hits = {name for name in names if matches(record.key, name)}
            if hits:
                unmatched -= hits
                groups.setdefault((step, record.key.phase, record.key.name), []).append(record)
    modules = [
        module for module in contents.modules.values() if any(fnmatch.fnmatchcase(module.name, name) for name in names)
    ]
    facts = list(
        matching_fact_lines(
            contents.facts,
            lambda name, slot: any(_is_meant(name, slot, pattern) for pattern in names),
        )
    )
    keys = [fact.key for step in contents.facts.values() for fact in step]
    for name in names:
        known = any(fnmatch.fnmatchcase(module.name, name) for module in modules)
        if name in unmatched and not known and not any(matches(key, name) for key in keys):
            raise UsageError(_no_match(contents, name))
    for module in modules:
        if module.config:
            settings = settings_text(module.config)
            yield from wrapped(f"{shortened(module.name)} ({visible(module.class_name)}): {settings}", indent="")
    yield from facts
    if groups:
        yield from _group_lines(groups, contents)
    elif not facts and not any(module.config for module in modules):
        yield from (
            f"{shortened(module.name)} ({visible(module.class_name)}): no tensor captured" for module in modules
        )


def matches(key: TensorKey, pattern: str) -> bool:
    """Whether a name or glob means this tensor, by its module or by its module and slot."""
    return _is_meant(key.name, key.slot, pattern)


def _is_meant(name: str, slot: str, pattern: str) -> bool:
    return fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(f"{name}.{slot}", pattern)


def _no_match(contents: Contents, name: str) -> str:
    known = {record.key.name: None for step in contents.records.values() for record in step}
    close = difflib.get_close_matches(name, known, n=EXAMPLES, cutoff=0.5) or list(known)[:EXAMPLES]
    path = visible(contents.path)
    if not close:
        return say("Cannot show '{}': '{}' holds no tensor. Capture it again with --steps 0:1.", visible(name), path)
    return say(
        "Cannot show '{}': no tensor of '{}' has that name. Names in it: {}; * stands for anything.",
        visible(name),
        path,
        joined(", ", (f"'{shortened(candidate)}'" for candidate in close)),
    )


def _group_lines(groups: Groups, contents: Contents) -> Iterator[str]:
    classes = {name: module.class_name for name, module in contents.modules.items()}
    head = ["", "dtype", "shape", "min", "max", "mean", "rms", "zeros", "NaN", "Inf", "hash"]
    records = [record for group in groups.values() for record in group]
    cells = [head, *(_tensor_cells(record) for record in records)]
    if any(_marks(record) for record in records):
        cells = [[*row, mark] for row, mark in zip(cells, ["remarks", *map(_marks, records)], strict=True)]
    lines = iter(_columns(cells, right=range(3, 10)))
    yield next(lines)
    for (step, phase, name), group in groups.items():
        kind = f" ({visible(classes[name])})" if name in classes else ""
        yield f"{wording.step(step)}, {phase}: {shortened(name)}{kind}"
        for record in group:
            yield next(lines)
            values = contents.values.get((step, record.order), ())
            if values:
                more = f" ... ({wording.count(len(values))} of {wording.count(record.numel)})"
                listed = ", ".join(map(wording.element, values))
                yield f"      values: {listed}{more if record.numel > len(values) else ''}"


def _marks(record: TensorRecord) -> str:
    """The memory layout where it is not row-major, and whether a checkpoint computed the tensor again."""
    return ", ".join([*([visible(record.layout)] if record.layout else []), *(["recomputed"] * record.recomputed)])


def _tensor_cells(record: TensorRecord) -> list[str]:
    stats = record.stats
    shape = wording.shape(record.shape)
    if record.layout == "nested" and stats is not None:
        shape = wording.plural(stats.count, "element")  # its parts have shapes of their own
    digest = "" if record.hash is None else wording.short_hash(record.hash)
    cells = [shortened(slot_text(record.key)), wording.dtype(record.dtype), shape]
    if stats is None:
        return [*cells, *[""] * 7, digest]
    # Integers are read as they are; their mean is a number like any other.
    exact = record.dtype.startswith(("int", "uint", "bool"))
    ends = [wording.count(int(end)) if exact else wording.value(end) for end in (stats.minimum, stats.maximum)]
    values = [*ends, wording.value(stats.mean), wording.value(stats.rms)]
    return [
        *cells,
        *(values if stats.count > stats.nonfinite else [""] * len(values)),
        wording.percent(stats.zeros / stats.count) if stats.count else "",
        wording.count(stats.nans),
        wording.count(stats.positive_infs + stats.negative_infs),
        digest,
    ]


def _columns(rows: Sequence[Sequence[str]], right: Iterable[int] = ()) -> Iterator[str]:
    """Rows with their columns under each other; `right` are the columns of numbers."""
    numbers = frozenset(right)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.rjust(width) if place in numbers else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield f"  {'  '.join(cells)}"
