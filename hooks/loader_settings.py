"""The settings of a DataLoader that decide what it hands out, read without drawing or iterating anything."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch.utils.data import IterableDataset, RandomSampler, SequentialSampler
from torch.utils.data.distributed import DistributedSampler

PLAIN = ("batch_size", "drop_last", "num_workers", "pin_memory", "prefetch_factor", "persistent_workers", "timeout")
DISTRIBUTED = ("rank", "num_replicas", "seed", "epoch", "shuffle", "drop_last")
MAXIMUM_DEPTH = 8


def loader_settings(loader: Any) -> dict[str, Any]:
    """The settings by name: numbers, words, booleans, or null; what cannot be known is left out."""
    dataset = _innermost(loader.dataset, "dataset", "accelerate")
    batch_sampler = _innermost(getattr(loader, "batch_sampler", None), "batch_sampler", "accelerate")
    sampler = getattr(batch_sampler, "sampler", None)
    if sampler is None:
        sampler = getattr(loader, "sampler", None)
    found: dict[str, Any] = {"dataset": type(dataset).__name__, "length": _length(dataset)}
    found |= {name: getattr(loader, name, None) for name in PLAIN}
    if found["batch_size"] is None:
        found["batch_size"] = getattr(batch_sampler, "batch_size", None)
    found["sampler"] = type(sampler).__name__ if sampler is not None else None
    found["batch_sampler"] = type(batch_sampler).__name__ if batch_sampler is not None else None
    found["shuffle"] = _shuffle(sampler)
    found["collate"] = _name_of(getattr(loader, "collate_fn", None))
    found["generator_seed"] = _generator_seed(loader, sampler)
    if isinstance(sampler, DistributedSampler):
        found["distributed"] = {name: getattr(sampler, name, None) for name in DISTRIBUTED}
    return {name: value for name, value in found.items() if _is_plain(value)}


def _innermost(value: Any, attribute: str, library: str) -> Any:
    """What the wrappers of a library hold: `BatchSamplerShard(batch_sampler)` -> the batch sampler."""
    for _ in range(MAXIMUM_DEPTH):
        inner = vars(value).get(attribute) if hasattr(value, "__dict__") else None
        if inner is None or type(value).__module__.partition(".")[0] != library:
            break
        value = inner
    return value


def _length(dataset: Any) -> int | None:
    """The number of samples; the length of an iterable dataset would be a guess of its author."""
    if isinstance(dataset, IterableDataset) or not hasattr(type(dataset), "__len__"):
        return None
    try:
        return len(dataset)
    except (TypeError, NotImplementedError):
        return None


def _shuffle(sampler: Any) -> bool | None:
    if isinstance(sampler, DistributedSampler):
        return bool(sampler.shuffle)
    if isinstance(sampler, RandomSampler):
        return True
    return False if isinstance(sampler, SequentialSampler) else None


def _generator_seed(loader: Any, sampler: Any) -> int | None:
    """The initial seed of the generator that shuffles; None where torch's global one does."""
    for owner in (sampler, loader):
        generator = getattr(owner, "generator", None)
        if generator is not None:
            return int(generator.initial_seed())
    return None


def _name_of(function: Any) -> str | None:
    if function is None:
        return None
    return str(getattr(function, "__qualname__", type(function).__qualname__))


def _is_plain(value: Any) -> bool:
    return all(leaf is None or isinstance(leaf, (bool, int, float, str)) for leaf in _leaves(value))


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    else:
        yield value
