"""Find the tensors inside arguments and results, and name each by its path."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import torch

MAXIMUM_DEPTH = 8


def tensors_in(value: Any, path: str, above: tuple[int, ...] = ()) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield (path, tensor) for every tensor in nested lists, tuples, mappings and dataclasses.

    `above` are the containers that hold this one; one that holds itself is entered once.

    >>> [path for path, _ in tensors_in({"a": torch.ones(1), "b": (torch.ones(1), None)}, "output")]
    ['output.a', 'output.b.0']
    """
    if isinstance(value, torch.Tensor):
        yield path, value
    elif len(above) < MAXIMUM_DEPTH and id(value) not in above:
        for name, item in _items(value):
            yield from tensors_in(item, f"{path}.{name}", (*above, id(value)))


def _items(value: Any) -> Iterator[tuple[Any, Any]]:
    """The named parts of a container; nothing for anything else."""
    if isinstance(value, (list, tuple)):
        names = getattr(value, "_fields", None) or range(len(value))
        yield from zip(names, value, strict=True)
    elif isinstance(value, Mapping):
        yield from value.items()
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield field.name, getattr(value, field.name, None)


def numbers_in(value: Any, path: str, above: tuple[int, ...] = ()) -> Iterator[str]:
    """Yield the path of every number and array that is no tensor, in the same containers.

    >>> list(numbers_in({"a": torch.ones(1), "lengths": [3, 5], "name": "x"}, ""))
    ['.lengths.0', '.lengths.1']
    """
    if isinstance(value, (bool, int, float, complex, np.ndarray, np.generic)):
        yield path
    elif not isinstance(value, torch.Tensor) and len(above) < MAXIMUM_DEPTH and id(value) not in above:
        for name, item in _items(value):
            yield from numbers_in(item, f"{path}.{name}", (*above, id(value)))


def call_tensors(arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> list[tuple[str, torch.Tensor]]:
    """The tensors that a module was called with: `input.0`, `input.mask`, `input.batch.ids`."""
    found: list[tuple[str, torch.Tensor]] = []
    for position, value in enumerate(arguments):
        found.extend(tensors_in(value, f"input.{position}"))
    for name, value in keywords.items():
        found.extend(tensors_in(value, f"input.{name}"))
    return found


def result_tensors(result: Any) -> list[tuple[str, torch.Tensor]]:
    """The tensors that a module returned: `output.0` for a bare tensor, else by position, key or field."""
    if isinstance(result, torch.Tensor):
        return [("output.0", result)]
    return list(tensors_in(result, "output"))


def with_tensors(value: Any, replacements: Mapping[int, torch.Tensor]) -> Any:
    """The value with some of its tensors, given by their identity, replaced by others.

    Containers that hold a replaced tensor are copied, all else is the same object: nothing of the caller is changed.

    >>> one, two = torch.zeros(1), torch.ones(1)
    >>> with_tensors({"a": one, "b": (two, "word")}, {id(two): one})["b"][0] is one
    True
    """
    return _with(value, replacements, ())


def _with(value: Any, replacements: Mapping[int, torch.Tensor], above: tuple[int, ...]) -> Any:
    if isinstance(value, torch.Tensor):
        return replacements.get(id(value), value)
    if len(above) >= MAXIMUM_DEPTH or id(value) in above:
        return value
    items = [(name, item, _with(item, replacements, (*above, id(value)))) for name, item in _items(value)]
    changed = {name: new for name, old, new in items if new is not old}
    if not changed:
        return value
    if isinstance(value, (list, tuple)):
        parts = [new for _, _, new in items]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return _changed(value, changed)


def _changed(value: Any, changed: Mapping[Any, Any]) -> Any:
    """A copy of a mapping or dataclass with some of its parts changed."""
    if isinstance(value, Mapping) and not isinstance(value, MutableMapping):
        return type(value)({**value, **changed})  # type: ignore[call-arg]
    fresh = copy.copy(value)
    for name, new in changed.items():
        if isinstance(fresh, MutableMapping):
            fresh[name] = new
        else:
            object.__setattr__(fresh, name, new)
    return fresh
