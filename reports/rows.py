"""Rows of the table of tensors: strings and numbers already formatted, and which of them to show first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from align import wording
from align.records import INIT_STEP, Aspect, Status
from align.reports.kept import kept, kept_pair
from align.reports.visible import shortened

if TYPE_CHECKING:
    from align.records import Comparison, DiffResult, TensorKey, TensorRecord
    from align.reports.language import Language

SHARE_BEFORE = 0.4
"""How much of a window stands before the tensor that it shows, so that its inputs are in sight."""
NEARLY = 1e-4
"""More than the digits that are kept can change of a quotient."""

STATUS_SIGNS = {
    Status.EQUAL: "=",
    Status.WITHIN: "\u00b7",
    Status.ORIGIN: "\u25a0",
    Status.PROPAGATED: "\u25cb",
    Status.NONFINITE: "\u2715",
    Status.NOT_JUDGED: "\u2013",
}
"""The sign of each status on a page: colour never speaks alone."""


@dataclass(frozen=True, slots=True)
class Row:
    """One pair as the table shows it; `number` is its place in the comparison, from 0."""

    number: int
    step: str
    phase: str
    name: str
    slot: str
    status: str
    status_word: str
    relative: str
    floor: str
    times: str
    reference: str
    candidate: str
    first: bool


def slot_text(key: TensorKey) -> str:
    """The slot with its micro-step and call where they are not 0: `output.0 (micro 3, call 1)`."""
    parts = [f"{word} {value}" for word, value in (("micro", key.micro), ("call", key.call)) if value]
    return f"{key.slot} ({', '.join(parts)})" if parts else key.slot


def step_text(step: int, phrases: Language) -> str:
    """The step as a place in a sentence: `step 3`, `before step 0`."""
    return phrases["before_training"] if step == INIT_STEP else phrases["step"].format(step=step)


def kind_text(record: TensorRecord) -> str:
    """Dtype and shape of one side, and how many elements are not finite: `fp32 [4, 64], 512 NaN`."""
    shape = wording.shape(record.shape) if record.shape else "scalar"
    stats = record.stats
    odd = [] if stats is None else [(stats.nans, "NaN"), (stats.positive_infs + stats.negative_infs, "Inf")]
    counts = [f"{wording.count(number)} {word}" for number, word in odd if number]
    return ", ".join([f"{wording.dtype(record.dtype)} {shape}", *counts])


def largest(record: TensorRecord) -> float | None:
    """The greatest finite magnitude of a floating tensor, None where there is none."""
    stats = record.stats
    if stats is None or stats.count == stats.nonfinite or "float" not in record.dtype:
        return None
    return stats.absolute_maximum


def tensor_text(record: TensorRecord, phrases: Language) -> str:
    """What one side holds, with its greatest magnitude."""
    magnitude = largest(record)
    if magnitude is None:
        return kind_text(record)
    return f"{kind_text(record)}, {phrases['absolute_maximum'].format(value=wording.value(magnitude))}"


def difference_text(comparison: Comparison, phrases: Language) -> str:
    """The relative L2 difference, or in words why there is no number."""
    difference = comparison.relative_l2
    if is_equal(comparison):
        return phrases["cell_equal"]
    if difference is None:
        return phrases["cell_differs" if is_unequal(comparison) else "cell_not_compared"]
    return f"< {wording.relative(resolution(comparison))}" if difference == 0 else wording.relative(difference)


def is_equal(comparison: Comparison) -> bool:
    """Whether the pair is equal to the bit; a difference too small for its sketches is not known to be none."""
    return comparison.status is Status.EQUAL or (comparison.relative_l2 == 0 and resolution(comparison) == 0)


def is_unequal(comparison: Comparison) -> bool:
    """Whether both sides have a hash of their bytes, and not the same."""
    ours, theirs = comparison.reference.hash, comparison.candidate.hash
    return ours is not None and theirs is not None and ours != theirs


def resolution(comparison: Comparison) -> float:
    """The smallest relative difference that the sketches of this pair can show."""
    return max(comparison.reference.resolution, comparison.candidate.resolution)


def make_row(number: int, comparison: Comparison, phrases: Language, *, first: bool) -> Row:
    """The row of one pair."""
    comparison = kept_pair(comparison)
    key = comparison.key
    measured = comparison.times_floor is not None and bool(comparison.relative_l2) and not is_equal(comparison)
    return Row(
        number=number,
        step=phrases["init_step"] if key.step == INIT_STEP else str(key.step),
        phase=phrases.word(str(key.phase)),
        name=shortened(key.name),
        slot=shortened(slot_text(key)),
        status=str(comparison.status),
        status_word=phrases[f"status_{comparison.status}"],
        relative=difference_text(comparison, phrases),
        floor=wording.relative(comparison.floor) if comparison.floor else "",
        times=_times(comparison, phrases) if measured else "",
        reference=tensor_text(comparison.reference, phrases),
        candidate=tensor_text(comparison.candidate, phrases),
        first=first,
    )


def _times(comparison: Comparison, phrases: Language) -> str:
    """`15.7x`, with the aspect of the difference that stands out where it is not its size."""
    times = phrases.said(wording.times(comparison.times_floor))
    return times if comparison.aspect is Aspect.SIZE else f"{times} ({phrases[f'aspect_{comparison.aspect}']})"


def first_index(result: DiffResult) -> int | None:
    """The place of the first divergence among the comparisons, or None when it is not there."""
    first = result.first_divergence
    if first is None:
        return None
    wanted = first.key
    return next((index for index, each in enumerate(result.comparisons) if each.key == wanted), None)


def focus_index(result: DiffResult) -> int | None:
    """The tensor that a reader wants to see first: the first divergence, else the one closest to its limit."""
    first = first_index(result)
    if first is not None:
        return first
    nearest = closest(result, 1)
    return nearest[0] if nearest else None


def closest(result: DiffResult, size: int) -> tuple[int, ...]:
    """The tensors closest to their limits, the closest first; of those that a saved result holds as equal the first."""
    judged = sorted(
        (-comparison.times_floor / comparison.limit, index)
        for index, comparison in enumerate(result.comparisons)
        if comparison.times_floor is not None and comparison.limit > 0 and comparison.status is not Status.NOT_JUDGED
    )
    if len(judged) > size:
        edge = judged[size - 1][0] * (1 - NEARLY)
        judged = [each for each in judged if each[0] <= edge]
    pairs = [(index, result.comparisons[index]) for _, index in judged]
    order = sorted((-(kept(pair.times_floor) or 0.0) / (kept(pair.limit) or 1.0), index) for index, pair in pairs)
    return tuple(index for _, index in order[:size])


def window(total: int, focus: int | None, size: int) -> range:
    """At most `size` neighbours of `focus`, or the first ones when there is none."""
    if focus is None or total <= size:
        return range(min(total, size))
    start = max(0, min(focus - int(size * SHARE_BEFORE), total - size))
    return range(start, start + size)


def make_rows(result: DiffResult, indices: Sequence[int], phrases: Language) -> tuple[Row, ...]:
    """The rows with these places, the first divergence marked."""
    first = first_index(result)
    return tuple(make_row(i, result.comparisons[i], phrases, first=i == first) for i in indices)
