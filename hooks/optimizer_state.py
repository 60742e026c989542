"""The state of optimizers and the hyper-parameters of their groups, by the names of the parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from align.hooks.facts import plain_fact
from align.records import Phase

if TYPE_CHECKING:
    from align.hooks.recorder import Recorder

MEMBERSHIP = "group"
BEFORE = "before"
OPTIMIZERS = "optimizers"
"""The name of the fact that says how many optimizers there are, whether they have stepped or not."""
MAXIMUM_ITEMS = 8
"""Settings that are longer lists than this are kept as one text."""


class OptimizerState:
    """Records what every optimizer knows besides the parameters: phase `optimizer`.

    Its group `n` is named `group0` for the first optimizer of the run, `<SGD#2>.group0` for the second. Each tensor
    of a parameter's state is a record of the owning module (`weight.exp_avg`), after the step; with `.before` also
    as it was where the step before was not captured. Single numbers (the step count) are facts.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def see_before(self, optimizer: torch.optim.Optimizer) -> None:
        """Record the state that a step begins with, where it is not known from the step before."""
        if self._wanted and not self._recorder.step_before_captured and optimizer.state:
            self._see_tensors(optimizer, f".{BEFORE}")

    def see_after(self, optimizer: torch.optim.Optimizer) -> None:
        """Record the groups that an attempt used and the state that it left."""
        if self._wanted:
            self._see_groups(optimizer)
            self._see_tensors(optimizer, "")

    @property
    def _wanted(self) -> bool:
        return self._recorder.recording and Phase.OPTIMIZER in self._recorder.trace.phases

    def _see_groups(self, optimizer: torch.optim.Optimizer) -> None:
        facts, position = self._recorder.facts, self._recorder.roots.optimizer_number(optimizer)
        facts.note(Phase.OPTIMIZER, OPTIMIZERS, "count", self._recorder.roots.living_optimizers)
        prefix = "" if position == 0 else f"<{type(optimizer).__name__}#{position + 1}>."
        for number, group in enumerate(optimizer.param_groups):
            name = f"{prefix}group{number}"
            facts.note(Phase.OPTIMIZER, name, "class", type(optimizer).__name__)
            for key, value in group.items():
                if key in {"params", "param_names"}:
                    continue
                if isinstance(value, (list, tuple)) and len(value) <= MAXIMUM_ITEMS:
                    for place, item in enumerate(value):
                        facts.note(Phase.OPTIMIZER, name, f"{key}.{place}", plain_fact(item))
                else:
                    facts.note(Phase.OPTIMIZER, name, key, plain_fact(value))
            for parameter in group["params"]:
                owner, local = self._recorder.owner_of(parameter)
                if self._recorder.wants(owner):
                    facts.note(Phase.OPTIMIZER, owner, f"{local}.{MEMBERSHIP}", name)

    def _see_tensors(self, optimizer: torch.optim.Optimizer, suffix: str) -> None:
        recorder = self._recorder
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                state: Any = optimizer.state.get(parameter)
                if not isinstance(state, dict):
                    continue
                owner, local = recorder.owner_of(parameter)
                if not recorder.wants(owner):
                    continue
                for key, value in state.items():
                    slot = f"{local}.{key}{suffix}"
                    if isinstance(value, torch.Tensor) and value.dim():
                        recorder.trace.see(Phase.OPTIMIZER, owner, slot, value, shared=False)
                    elif isinstance(value, (torch.Tensor, int, float)):
                        recorder.facts.note(Phase.OPTIMIZER, owner, slot, value)
