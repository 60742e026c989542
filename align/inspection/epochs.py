"""Whether a DataLoader gives the same batches again: in each epoch in one order, or by each of its workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from align.inspection.view import RunView
from align.pairing import LOADER
from align.records import Phase, TensorKey, TensorRecord

Batch: TypeAlias = tuple[int, ...]
"""The hashes of the samples of a batch, in their order."""

FEWEST_REPEATED = 2
"""One batch that comes again may be chance where an epoch has few; two in a row are an order."""


@dataclass(frozen=True, slots=True)
class RepeatedOrder:
    """Batches that came again in the order of the epoch before.

    `period` is the number of batches after which all of the `repeated` captured ones came again; `key` is the first of
    them. `shuffles` says whether the loader was to shuffle, None where that is not known; `settings` are those of the
    loader, empty for a model that was given its batches without one.
    """

    key: TensorKey
    period: int
    repeated: int
    captured: int
    shuffles: bool | None
    settings: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class WorkerCopies:
    """Batches that each worker of a loader read once more: `copies` of `captured`, by `workers`; `key` is the first."""

    key: TensorKey
    workers: int
    copies: int
    captured: int
    settings: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Epochs:
    """What is known of the batches of the first DataLoader (`name`, empty where there is none).

    `captured` of its batches were captured in a row, `length` make an epoch (None where that is not known).
    """

    name: str = ""
    captured: int = 0
    length: int | None = None
    shuffles: bool | None = None
    repeated: RepeatedOrder | None = None
    copies: WorkerCopies | None = None


def epochs_of(view: RunView) -> Epochs:
    """Look at the batches of the captured steps; nothing is known of a run whose inputs were not captured."""
    found = _batches(view)
    if not found:
        return Epochs()
    name, batches = found
    settings = next((loader for loader in view.run.loaders if loader.get("name") == name), {})
    numbers = sorted(batches)
    row = [numbers[0]]
    for number in numbers[1:]:
        if number != row[-1] + 1:
            break
        row.append(number)
    keys, samples = [batches[number][0] for number in row], [batches[number][1] for number in row]
    shuffles = settings.get("shuffle")
    period = _period(samples)
    repeated = None
    if period is not None:
        repeated = RepeatedOrder(keys[period], period, len(row) - period, len(row), shuffles, settings)
    return Epochs(name, len(row), _length(settings), shuffles, repeated, _copies(keys, samples, settings))


def _batches(view: RunView) -> tuple[str, dict[int, tuple[TensorKey, Batch]]] | None:
    """The batches of the first loader by their number, each with the record that tells most of its samples."""
    found: dict[int, tuple[TensorKey, Batch]] = {}
    name = ""
    for number in view.steps:
        step = view.step(number)
        records = [record for record in step.by_phase[Phase.INPUT] if record.key.name.startswith(LOADER)]
        name = name or next((record.key.name for record in records), "")
        ordinals = {
            fact.key.micro: fact.value
            for fact in step.facts
            if (fact.key.phase, fact.key.name, fact.key.slot) == (Phase.INPUT, name, "batch")
        }
        for micro, ordinal in ordinals.items():
            own = [record for record in records if (record.key.name, record.key.micro) == (name, micro)]
            best = max(own, key=_told_apart, default=None)
            if isinstance(ordinal, int) and best is not None and best.row_hashes is not None:
                found[ordinal] = (best.key, tuple(best.row_hashes.tolist()))
    return (name, found) if found else None


def _told_apart(record: TensorRecord) -> int:
    return 0 if record.row_hashes is None else len(set(record.row_hashes.tolist()))


def _period(batches: Sequence[Batch]) -> int | None:
    """After how many batches all of them come again, at least two different ones; None where they do not."""
    for period in range(2, len(batches) - FEWEST_REPEATED + 1):
        if len(set(batches[:period])) == period and all(
            one == other for one, other in zip(batches, batches[period:], strict=False)
        ):
            return period
    return None


def _copies(keys: Sequence[TensorKey], batches: Sequence[Batch], settings: Mapping[str, Any]) -> WorkerCopies | None:
    """Batches that come once from each worker of an iterable dataset, which has no length."""
    workers = settings.get("num_workers")
    if settings.get("length") is not None or not isinstance(workers, int) or workers < 2:  # noqa: PLR2004 - several
        return None
    groups = [batches[start : start + workers] for start in range(0, len(batches), workers)]
    whole = [group for group in groups if len(group) == workers]
    if len(groups) < 2 or len({group[0] for group in groups}) < len(groups):  # noqa: PLR2004 - to differ from
        return None
    if not all(len(set(group)) == 1 for group in whole):
        return None
    return WorkerCopies(keys[1], workers, len(whole) * (workers - 1), len(batches), settings)


def _length(settings: Mapping[str, Any]) -> int | None:
    """How many batches an epoch has, where dataset and sampler tell."""
    samples, size = settings.get("length"), settings.get("batch_size")
    if not (isinstance(samples, int) and isinstance(size, int) and size > 0):
        return None
    distributed = settings.get("distributed")
    replicas = distributed.get("num_replicas") if isinstance(distributed, Mapping) else None
    if isinstance(replicas, int) and replicas > 0:
        samples = -(-samples // replicas)
    return samples // size if settings.get("drop_last") else -(-samples // size)
