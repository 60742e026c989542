"""What the ranks train on: each its own samples, or the same, or none of them a part of the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from align import metrics
from align.inspection.ranks import Holdings, of_two_ranks
from align.inspection.view import RunView
from align.pairing import LOADER, Pair
from align.records import Phase, TensorKey, TensorRecord

FEWEST = 2
"""So many different rows name samples; a batch of blank ones is the same on all ranks."""


@dataclass(frozen=True, slots=True)
class SameSamples:
    """Two ranks, by place, that are given the same batches in every captured step.

    `samples` are the rows of `tensor` over all `steps`. `everything` says that all that the model made of them is the
    same too; `loader` has the settings of the DataLoader that handed them out on both ranks, empty without one.
    """

    key: TensorKey
    ranks: tuple[int, int]
    steps: tuple[int, ...]
    samples: int
    everything: bool
    loader: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of the data that the DistributedSamplers of all ranks read: `parts` of `of`, with `missing` ones."""

    of: int
    parts: tuple[int, ...]
    missing: tuple[int, ...]
    length: int | None


def inputs_of(view: RunView, step: int) -> dict[TensorKey, TensorRecord]:
    """What the models of a rank were given in a step."""
    records = view.step(step).by_phase[Phase.INPUT]
    return {record.key: record for record in records if not record.key.name.startswith(LOADER)}


def same_inputs(one: RunView, other: RunView, step: int) -> bool:
    """Whether two ranks were given the same in all that is known of it; False where nothing is."""
    left, right = inputs_of(one, step), inputs_of(other, step)
    return bool(left) and left.keys() == right.keys() and all(_equal(left[key], right[key]) for key in left)


def _equal(one: TensorRecord, other: TensorRecord) -> bool:
    return one.hash is not None and one.hash == other.hash and one.shape == other.shape


def same_samples(holdings: Holdings) -> SameSamples | None:
    """Two replicas that train on the same batches in every captured step.

    Ranks that share the work on one sample (tensor, sequence, pipeline parallel) are given the same too: they hold
    parts of the weights, or make other tensors of the batch, and are not told.
    """
    if not holdings.replicas or not holdings.steps:
        return None
    return of_two_ranks(holdings, _same)


def _same(holdings: Holdings, ranks: tuple[int, int]) -> SameSamples | None:
    one, other = (holdings.views[rank] for rank in ranks)
    if not all(same_inputs(one, other, step) for step in holdings.steps):
        return None
    given = [record for step in holdings.steps for record in inputs_of(one, step).values()]
    named = [record for record in given if record.row_hashes is not None]
    rows = {record.key.name: set[int]() for record in named}
    for record in named:
        rows[record.key.name].update([] if record.row_hashes is None else record.row_hashes.tolist())
    name = max(rows, key=lambda each: len(rows[each]), default="")
    if not name or len(rows[name]) < FEWEST or not _works_alike(one, other, holdings.steps[0]):
        return None
    everything = all(_all_made_alike(one, other, step) for step in holdings.steps)
    samples = sum(record.shape[0] for record in named if record.key.name == name)
    key = next(record.key for record in named if record.key.name == name)
    return SameSamples(key, ranks, holdings.steps, samples, everything, _loader(one, other))


def _made(view: RunView, step: int) -> dict[TensorKey, TensorRecord]:
    """What the modules of a rank made in a step, and the loss with its targets."""
    step_view = view.step(step)
    outputs = [one for one in step_view.by_phase[Phase.FORWARD] if one.key.slot.startswith("output")]
    return {record.key: record for record in (*outputs, *step_view.by_phase[Phase.LOSS])}


def _all_made_alike(one: RunView, other: RunView, step: int) -> bool:
    left, right = _made(one, step), _made(other, step)
    return bool(left) and left.keys() == right.keys() and all(
        metrics.identical(Pair(left[key], right[key])) for key in left
    )  # fmt: skip


def _works_alike(one: RunView, other: RunView, step: int) -> bool:
    """Whether two ranks at least begin with the same work: the first output of a module and the targets are equal."""
    left, right = _made(one, step), _made(other, step)
    if left.keys() != right.keys() or any(left[key].shape != right[key].shape for key in left):
        return False
    first = next((key for key in left if key.phase is Phase.FORWARD), None)
    targets = [key for key in left if key.phase is Phase.LOSS and key.slot != "value"]
    checked = [key for key in (first, *targets) if key is not None]
    return first is not None and all(metrics.identical(Pair(left[key], right[key])) for key in checked)


def _loader(one: RunView, other: RunView) -> Mapping[str, Any]:
    """The first DataLoader of both ranks, where its own batches are the same on both."""
    if not (one.run.loaders and other.run.loaders):
        return {}
    handed = [
        {record.key: record.hash for step in view.steps for record in view.step(step).by_phase[Phase.INPUT]
         if record.key.name.startswith(LOADER)}
        for view in (one, other)
    ]  # fmt: skip
    return one.run.loaders[0] if handed[0] and handed[0] == handed[1] else {}


def sampler_parts(holdings: Holdings) -> Parts | None:
    """The parts of the data that the ranks read, as their DistributedSamplers are set; None where that is not known.

    A sampler knows into how many parts it divides the data and which of them it reads: of all ranks together they must
    be all parts. Ranks that read the same one (tensor parallel) and ranks without a loader (pipeline stages) may be.
    """
    if len(holdings.views) < holdings.views[0].run.world_size:
        return None
    found = [_distributed(view) for view in holdings.views]
    known = [each for each in found if each]
    divisors = {each["distributed"].get("num_replicas") for each in known}
    data = {(each.get("dataset"), each.get("length")) for each in known}
    if not known or len(divisors) != 1 or len(data) != 1:
        return None
    of = divisors.pop()
    parts = tuple(sorted({each["distributed"].get("rank") for each in known}))
    if not isinstance(of, int) or not all(isinstance(part, int) for part in parts):
        return None
    missing = tuple(part for part in range(of) if part not in parts)
    return Parts(of, parts, missing, known[0].get("length"))


def _distributed(view: RunView) -> Mapping[str, Any]:
    """The settings of the first DataLoader of a rank that has a DistributedSampler."""
    return next((loader for loader in view.run.loaders if isinstance(loader.get("distributed"), Mapping)), {})
