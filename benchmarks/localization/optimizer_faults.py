"""Faults between the backward and the parameters after the step."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch

from benchmarks.localization.fault import Fault, kind_of_fault, one_weight


@kind_of_fault("one_update_gradient")
def _one_update_gradient(fault: Fault) -> None:
    parameter = one_weight(fault, "update")

    def change() -> None:
        if parameter.grad is not None:
            parameter.grad.mul_(fault.size(2.0, 1.01))

    fault.before_update = change


def _update_function() -> tuple[ModuleType, str, Callable[..., None]]:
    """The function that AdamW hands its numbers to: its module, its name and itself."""
    name = "adam" if issubclass(torch.optim.AdamW, torch.optim.Adam) else "adamw"
    home = importlib.import_module(f"torch.optim.{name}")
    return home, name, getattr(home, name)


def _change_update(fault: Fault, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Change what the optimizer hands to the function that updates; its settings stay as they are."""
    home, name, update = _update_function()

    def changed(*args: Any, **kwargs: Any) -> None:
        update(*args, **change(kwargs))

    setattr(home, name, changed)
    fault.undo.callback(setattr, home, name, update)
    fault.answers.extend((("param", "*"), ("optimizer", "*")))


@kind_of_fault("learning_rate")
def _learning_rate(fault: Fault) -> None:
    _change_update(fault, lambda settings: {**settings, "lr": settings["lr"] * fault.size(1.3, 1.01)})


@kind_of_fault("weight_decay")
def _weight_decay(fault: Fault) -> None:
    decay = fault.size(10.0, 0.1)
    _change_update(fault, lambda settings: {**settings, "weight_decay": settings["weight_decay"] or decay})


@kind_of_fault("epsilon")
def _epsilon(fault: Fault) -> None:
    _change_update(fault, lambda settings: {**settings, "eps": fault.size(1e-3, 1e-6)})


@kind_of_fault("beta")
def _beta(fault: Fault) -> None:
    _change_update(fault, lambda settings: {**settings, "beta1": fault.size(0.8, 0.89)})


@kind_of_fault("one_update")
def _one_update(fault: Fault) -> None:
    parameter = one_weight(fault, "param")
    fault.answers.extend([("optimizer", name) for _, name in fault.answers])
    home, name, update = _update_function()

    def changed(*args: Any, **kwargs: Any) -> None:
        with torch.no_grad():
            before = parameter.detach().clone()
            update(*args, **kwargs)
            if any(each is parameter for each in args[0]):
                parameter.add_((parameter - before) * fault.size(0.3, 0.01))

    setattr(home, name, changed)
    fault.undo.callback(setattr, home, name, update)


@kind_of_fault("clip_first")
def _clip_first(fault: Fault) -> None:
    fault.clips_first = True
    fault.answers.append(("update", "*"))
