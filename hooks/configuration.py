"""The configuration of a module: its plain attributes, so that an eps or a dropout rate that differs is named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

MAXIMUM_ITEMS = 16
MAXIMUM_DEPTH = 3
LONGEST_TEXT = 200
_NOTHING = object()


def configuration_of(module: nn.Module, *, with_model: bool) -> dict[str, Any]:
    """The public attributes that are numbers, words, booleans or short lists of those, sorted by name.

    Functions (an activation) give their names, dtypes theirs. `with_model` adds the values of a model's `config`
    object (one with a `to_dict`, as in transformers) as `config.hidden_act`; every module below holds the same one.
    """
    found: dict[str, Any] = {}
    for name, value in vars(module).items():
        if name.startswith("_") or name == "training":
            continue
        plain = _plain(value)
        if plain is not _NOTHING:
            found[name] = plain
    if with_model:
        reader = getattr(vars(module).get("config"), "to_dict", None)
        if callable(reader):
            _flatten(reader(), "config", found)
    return dict(sorted(found.items()))


def changed_rates(module: nn.Module, known: Mapping[str, Any]) -> dict[str, float]:
    """The dropout rates of a module that are no longer what they were when its configuration was read."""
    now = vars(module)
    return {
        name: float(now[name])
        for name, value in known.items()
        if is_rate(name) and isinstance(value, float) and now.get(name, value) != value
        and isinstance(now[name], (int, float))
    }  # fmt: skip


def is_rate(name: str) -> bool:
    """Whether an attribute of this name is the rate of a dropout."""
    return name == "p" or "drop" in name


def _flatten(values: Any, path: str, found: dict[str, Any], depth: int = 0) -> None:
    for name, value in values.items():
        if isinstance(value, Mapping) and depth < MAXIMUM_DEPTH:
            _flatten(value, f"{path}.{name}", found, depth + 1)
            continue
        plain = _plain(value)
        if plain is not _NOTHING:
            found[f"{path}.{name}"] = plain


def _plain(value: Any, depth: int = 0) -> Any:
    """The value as JSON holds it; `_NOTHING` for what is no plain setting."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return value if len(value) <= LONGEST_TEXT else _NOTHING
    if isinstance(value, (list, tuple)):
        fits = len(value) <= MAXIMUM_ITEMS and depth < MAXIMUM_DEPTH
        items = [_plain(item, depth + 1) for item in value] if fits else [_NOTHING]
        return _NOTHING if any(item is _NOTHING for item in items) else items
    if isinstance(value, torch.dtype):
        return str(value).removeprefix("torch.")
    if callable(value) and not isinstance(value, (nn.Module, type)):
        name = getattr(value, "__name__", "")
        return name or _NOTHING
    return _NOTHING
