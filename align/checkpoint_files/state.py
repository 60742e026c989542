"""Finds the weights and the optimizer states in what a training script saved, however it nested them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from align.checkpoint_files.entries import Entry, OptimizerState
from align.checkpoint_files.spans import unreadable
from align.checkpoint_files.torch_file import TorchFile
from align.checkpoint_files.torch_tensors import StoredTensor, UnreadTensor
from align.sentences import say

DEEPEST = 24
MOST_TENSORS = 500_000
"""A table that refers to itself, or a thousand times to others, is no checkpoint."""

MODEL_WORDS = ("model", "state_dict", "module", "model_state_dict", "weights", "params", "network", "net")
"""Containers that are the model where several hold equally many tensors, the likeliest first."""


COPIES = re.compile(r"(^|_)(ema|averaged?|swa|shadow|teacher|target|old|best)(_|$|[A-Z])")
"""Containers that hold another copy of the model; they are the model only where there is no other."""


class State(NamedTuple):
    """The weights, the optimizers, and how many tensors other containers hold."""

    entries: dict[str, Entry]
    optimizers: dict[str, OptimizerState]
    others: dict[str, int]


class _Found(NamedTuple):
    """A tensor with the path that leads to it; an optimizer with its own."""

    path: tuple[str, ...]
    value: Any


def read_state(path: str, file: TorchFile) -> State:
    """The state that one file holds; raises CheckpointError where there is no tensor in it."""
    found = list(_walk(file.value, (), frozenset(), path))
    tensors = [one for one in found if not isinstance(one.value, Mapping)]
    optimizers = {
        ".".join(one.path) or "optimizer": _optimizer(file, one)
        for one in found
        if isinstance(one.value, Mapping) and one.value["state"]
    }
    if not tensors and not optimizers:
        kind = type(file.value).__name__
        raise unreadable(path, say("there is no tensor in it (a {})", kind), say("Name a file with weights."))
    root, others = _container(tensors)
    weights = {".".join(one.path[len(root) :]): one.value for one in tensors if one.path[: len(root)] == root}
    return State({name: file.entry(name, tensor) for name, tensor in weights.items()}, optimizers, others)


def _walk(value: Any, path: tuple[str, ...], above: frozenset[int], where: str) -> Iterator[_Found]:
    """Every tensor and every optimizer below a value."""
    stack = [(value, path, above)]
    count = 0
    while stack:
        value, path, above = stack.pop()
        if isinstance(value, (StoredTensor, UnreadTensor)) or _is_optimizer(value):
            yield _Found(path, value)
        elif isinstance(value, (dict, list)) and id(value) not in above and len(path) < DEEPEST:
            items = value.items() if isinstance(value, dict) else enumerate(value)
            below = above | {id(value)}
            stack.extend((each, (*path, _word(key)), below) for key, each in reversed(list(items)))
        count += 1
        if count > MOST_TENSORS:
            raise unreadable(
                where, say("it nests more than {} values", f"{MOST_TENSORS:,}"), say("Save the weights alone.")
            )


def _word(key: Any) -> str:
    return key if isinstance(key, str) else str(key)[:100]


def _is_optimizer(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("state"), dict):
        return False
    groups = value.get("param_groups")
    return isinstance(groups, list) and all(isinstance(group, dict) and "params" in group for group in groups)


def _container(tensors: list[_Found]) -> tuple[tuple[str, ...], dict[str, int]]:
    """The table that is the model: a table of the root that holds most of the tensors; else the root itself.

    A state dict is flat: its names have dots, and its tensors are its own values.
    """
    counts: dict[tuple[str, ...], int] = {}
    for one in tensors:
        counts[one.path[:-1]] = counts.get(one.path[:-1], 0) + 1
    if not counts:
        return (), {}

    largest = max(counts.values())

    def rank(path: tuple[str, ...]) -> tuple[bool, bool, int, int]:
        word = next((place for place, known in enumerate(MODEL_WORDS) if known in path), len(MODEL_WORDS))
        copy = any(COPIES.search(part) for part in path)
        return 2 * counts[path] < largest, copy, -counts[path], word

    # Nested tables instead of flat ones (a tree of layers): then all of them are the model.
    flat = any("." in one.path[-1] for one in tensors)
    best = _with_siblings(min(counts, key=rank), tensors) if flat or len(counts) == 1 else ()
    others = {".".join(path) or "the root": number for path, number in counts.items() if path[: len(best)] != best}
    return best, others


def _with_siblings(best: tuple[str, ...], tensors: list[_Found]) -> tuple[str, ...]:
    """The table above that holds further parts of the model, as Megatron-LM keeps them: embedding, layers, head.

    It has the name of a model, and nothing in it stands there twice, as a running average of the weights would.
    """
    for depth in range(len(best) - 1, 0, -1):
        above = best[:depth]
        inside = [one.path for one in tensors if one.path[:depth] == above]
        ends = {path[len(best) :] for path in inside if path[: len(best)] == best}
        others = [path for path in inside if path[: len(best)] != best]
        twice = any(path[start:] in ends for path in others for start in range(depth, len(path)))
        if above[-1] in (*MODEL_WORDS, "language_model") and others and not twice:
            return above
    return best


def _optimizer(file: TorchFile, found: _Found) -> OptimizerState:
    state, groups = found.value["state"], found.value["param_groups"]
    label = ".".join(found.path) or "optimizer"
    states = {
        number: {
            str(slot): file.entry(f"{label}.state.{number}.{slot}", tensor)
            for slot, tensor in slots.items()
            if isinstance(tensor, (StoredTensor, UnreadTensor))
        }
        for number, slots in state.items()
        if type(number) is int and isinstance(slots, dict)
    }
    numbers = [group["params"] if isinstance(group["params"], list) else [] for group in groups]
    order = tuple(number for group in numbers for number in group if type(number) is int)
    names: dict[int, str] = {}
    for group, own in zip(groups, numbers, strict=True):
        told = group.get("param_names")
        if isinstance(told, list) and len(told) == len(own):
            names.update((number, name) for number, name in zip(own, told, strict=True) if isinstance(name, str))
    return OptimizerState(states, order, names)
