"""What training prints: Megatron-LM and MindSpeed, DeepSpeed, dictionaries of a Trainer, and lines of plain scripts.

A line counts where it holds a loss. The lines of Megatron-LM count also without one: it leaves a mean out that is not
above 0, and a mean of NaN is not (`training_log` in megatron/training/training.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from align.curve_files.line_numbers import numbers_in
from align.curve_files.names import SKIPPED, is_validation, loss_rank, plain, step_rank, words
from align.curve_files.source import Source
from align.curve_files.tables import Column, Table, TableBuilder, kept_rows
from align.curve_records import CurveKind
from align.sentences import say

_COLOUR = re.compile(r"\x1b(?:\[[0-9;?]{0,40}[ -/]{0,4}[@-~]|\][^\x07\x1b]{0,400}(?:\x07|\x1b\\)?|[@-Z\\^_])")
_RANK = re.compile(r"\s*(?:\[(?:rank|default)(\d+)\]:?|\[\d+,(\d+)\]<std(?:out|err)>:?|\[(\d+)\]:|(\d+):(?=\s))\s*")
_STAMP = re.compile(r"\s*\[?\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:\d\d:\d\d[\d.,]*\]?")
_ITERATION = re.compile(r"iteration:?\s+(\d+)\s*/\s*\d+\s*\|")
_OVERFLOW = re.compile(r"OVERFLOW!.{0,40}Skipping step\.(?:.{0,20}Attempted loss scale:\s*([\d.eE+]+))?")
_STEP_LINE = re.compile(r"\bstep=(\d+), skipped=(\d+), lr=\[([^,\]\s]+)")
_PIPELINE = re.compile(r"\bsteps: \d+ loss: \S+ .*iter time \(s\):")
_BAR = re.compile(r"\|\s*(\d+)/\d+ \[")
_SUMMARY = "train_runtime"
_TRACE = ("loss", "overflow!", "skipped=", "iteration")
SO_FAR = "skipped so far"
OVERFLOWS = "overflow"
_PREFIX = "rank before the line"


@dataclass(slots=True)
class _Part:
    """The lines of one kind in a log, and the loss scales of the overflows that DeepSpeed told of since the last."""

    rows: TableBuilder
    overflows: list[float] = field(default_factory=list)

    def add(self, cells: Iterable[tuple[str, float]]) -> int:
        """Append a row; an overflow that was told before it is one of its step."""
        told = [(OVERFLOWS, float(len(self.overflows))), ("loss scale", self.overflows[-1])] if self.overflows else []
        self.overflows.clear()
        return self.rows.add([*cells, *told])


@dataclass(slots=True)
class _Log:
    """What has been read of a log.

    `scripts` are lines with a loss, `iterations` those of Megatron-LM, of which `short` (row, line) end too early.
    `steps` are lines of DeepSpeed that tell of a step without its loss.
    """

    scripts: _Part
    iterations: _Part
    steps: _Part
    asked: frozenset[tuple[str, ...]]
    deepspeed: int = 0
    pipeline: int = 0
    short: list[tuple[int, int]] = field(default_factory=list)

    def read(self, number: int, line: str) -> None:
        """Take one line of the file and its number."""
        if "\x1b" in line:
            line = _COLOUR.sub("", line)
        if "OVERFLOW!" in line and (overflow := _OVERFLOW.search(line)):
            self.deepspeed += 1
            for part in (self.scripts, self.iterations, self.steps):
                part.overflows.append(_number(overflow[1]))
        elif "skipped=" in line and (step := _STEP_LINE.search(line)):
            self.deepspeed += 1
            self.steps.add([("step", float(step[1])), (SO_FAR, float(step[2])), ("lr", _number(step[3]))])
        elif _SUMMARY not in line:
            self._loss(number, line)

    def _loss(self, number: int, line: str) -> None:
        """A line that may hold a loss."""
        prefix = _RANK.match(line)
        cells = [(_PREFIX, float(next(filter(None, prefix.groups()))))] if prefix else []
        if prefix:
            line = line[prefix.end() :]
        if stamp := _STAMP.match(line):
            line = line[stamp.end() :]
        if "tensor(" in line:
            line = line.replace("tensor(", "")
        if iteration := _ITERATION.search(line):
            named = [("iteration", float(iteration[1])), *_between_bars(line[iteration.end() :])]
            row = self.iterations.add([*cells, *named])
            if not any(plain(name) in SKIPPED for name, _ in named):
                self.short.append((row, number))
            return
        found = numbers_in(line)
        training = [(name, value) for name, value, validation in found if not validation]
        if any(loss_rank(name) is not None or words(name) in self.asked for name, _ in training):
            self.pipeline += "iter time" in line and _PIPELINE.search(line) is not None
            if (bar := _BAR.search(line)) and not any(step_rank(name) is not None for name, _ in training):
                cells.append(("step", float(bar[1])))
            beside = [("validation loss", value) for name, value, other in found if other or is_validation(name)]
            self.scripts.add([*cells, *training, *beside[:1]])


def _between_bars(line: str) -> Iterator[tuple[str, float]]:
    """The numbers of a line of Megatron-LM, which has a name, a colon and a number between each two bars."""
    for part in line.split("|"):
        name, _, text = part.rpartition(":")
        try:
            yield name.strip(), float(text)
        except ValueError:
            yield from ((name, value) for name, value, _ in numbers_in(part))


def _number(text: str | None) -> float:
    """A number that a log writes, NaN where it writes none."""
    try:
        return float((text or "nan").rstrip("."))
    except ValueError:
        return np.nan


def read_log(source: Source, encoding: str, wanted: Callable[[str], bool], asked: frozenset[str]) -> Table:
    """A table with a row for each line that holds a loss, and what DeepSpeed says of its step.

    Where there are lines of Megatron-LM the others are left: Megatron-DeepSpeed prints each loss twice.
    """

    def part() -> _Part:
        return _Part(TableBuilder(lambda name: name in {_PREFIX, SO_FAR} or wanted(name)))

    log = _Log(part(), part(), part(), frozenset(words(name) for name in asked))
    traces = (*_TRACE, *(found[-1] for found in log.asked if found))
    for number, line in source.lines(encoding):
        small = line.lower()
        if any(trace in small for trace in traces):
            log.read(number, line)
    if log.iterations.rows.count:
        return _table(CurveKind.MEGATRON_LOG, log.iterations.rows, _whole(log, source))
    scripts = log.scripts.rows
    kind = CurveKind.DEEPSPEED_LOG if log.deepspeed or log.pipeline else CurveKind.LOG
    table = _table(kind, scripts, np.ones(scripts.count, dtype=bool))
    return with_step_lines(table, log.steps.rows.columns(), log.steps.rows.count, merge=log.pipeline > 0)


def _whole(log: _Log, source: Source) -> NDArray[np.bool_]:
    """Which lines of Megatron-LM do not end before their counts of iterations, where others have them."""
    rows = log.iterations.rows
    whole = np.ones(rows.count, dtype=bool)
    if len(log.short) < rows.count:
        for row, number in log.short:
            whole[row] = False
            source.mark_unreadable(number)
    return whole


def _table(kind: CurveKind, rows: TableBuilder, keep: NDArray[np.bool_]) -> Table:
    """The rows that are kept, of one rank where several print into one log: a number before each line tells."""
    names = tuple(name for name in rows.names if name != _PREFIX)
    columns, count = kept_rows(rows.columns(), keep), int(keep.sum())
    prefix = columns.pop(_PREFIX, None)
    ranks = np.unique(prefix.values) if prefix is not None else np.zeros(0)
    if prefix is None or len(ranks) == 1:
        return Table(kind, count, columns, names)
    if len(ranks) == len(prefix.rows) and (np.diff(prefix.values) > 0).all():
        return Table(kind, count, {"step": prefix, **columns}, ("step", *names))
    taken = prefix.spread(count) == ranks[0]
    note = say("The log has lines of {} ranks: those of rank {} were taken.", len(ranks), int(ranks[0]))
    return Table(kind, int(taken.sum()), kept_rows(columns, taken), names, notes=(note,))


def with_step_lines(table: Table, lines: dict[str, Column], count: int, *, merge: bool) -> Table:
    """The table with what DeepSpeed's own lines say of steps.

    They are rows of their own where the losses are numbered as DeepSpeed numbers steps (`merge`). They number the
    losses where these have no numbers and are as many. Otherwise the script counts in another way, and they are left.
    """
    numbered = any("step" in words(name) or "iteration" in words(name) for name in table.columns)
    if not count or not table.count:
        return table
    if merge:
        columns = dict(table.columns)
        step = next(name for name in ("steps", "step") if name in columns)
        for name, column in lines.items():
            target, moved = step if name == "step" else name, column.rows + table.count
            before = columns.get(target, Column(np.zeros(0, np.int64), np.zeros(0)))
            rows, values = np.concatenate([before.rows, moved]), np.concatenate([before.values, column.values])
            columns[target] = Column(rows, values)
        return Table(table.kind, table.count + count, columns, (*table.names, *lines), notes=table.notes)
    if not numbered and count == table.count:
        extra = {name: column for name, column in lines.items() if name not in table.columns}
        return Table(table.kind, table.count, {**table.columns, **extra}, (*table.names, *extra), notes=table.notes)
    return table
