"""Watch gradient scalers: the scale before and after each step, what was skipped, which gradients carry it."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from align.hooks.facts import plain_fact
from align.hooks.nesting import tensors_in
from align.hooks.timeline import number_from
from align.records import Phase

if TYPE_CHECKING:
    from align.hooks.recorder import Recorder

SETTINGS = ("growth_factor", "backoff_factor", "growth_interval", "dynamic", "init_scale")
UNSCALED = "UNSCALED"


class ScalerWatch:
    """Follows every GradScaler: torch.amp's, torch.cuda.amp's and torch_npu's have the same private names."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._scaler: weakref.ref[Any] | None = None
        self._attempts = 0
        self._updates = 0

    @property
    def gradients_scaled(self) -> bool | None:
        """Whether gradients carry a loss scale at this moment; None where no scaler is in use."""
        scaler = self._scaler() if self._scaler is not None else None
        if scaler is None:
            return None
        states = getattr(scaler, "_per_optimizer_states", {}).values()
        return not any(getattr(state.get("stage"), "name", "") == UNSCALED for state in states)

    def begin_step(self) -> None:
        """A new step: no loss of it has been scaled yet."""
        self._scaler = None
        self._attempts = 0
        self._updates = 0

    def scaled(self, scaler: Any, unscaled: Any, result: Any) -> None:
        """`scale` returned: remember which loss stands behind the scaled one."""
        scale = getattr(scaler, "_scale", None)
        if not getattr(scaler, "_enabled", True) or scale is None:
            return
        self._recorder.timeline.row.loss_scale = number_from(scale)
        if self._scaler is None and self._recorder.recording:
            self._note(scaler, "scale", scale)
            self._note(scaler, "growth_tracker", getattr(scaler, "_growth_tracker", None))
            for setting in SETTINGS:
                if hasattr(scaler, f"_{setting}"):
                    self._note(scaler, setting, getattr(scaler, f"_{setting}"))
        self._scaler = weakref.ref(scaler)
        pairs = zip(tensors_in(unscaled, ""), tensors_in(result, ""), strict=False)
        for (_, before), (_, after) in pairs:
            self._recorder.losses.remember(after, before, scale)

    def step(self, original: Callable[..., Any], scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Run `step`: one attempt, also when the optimizer is not called."""
        optimizers = self._recorder.optimizers
        outer, optimizers.called = optimizers.called, False
        result = original(scaler, optimizer, *args, **kwargs)
        called, optimizers.called = optimizers.called, outer or optimizers.called
        self._recorder.guarded(self._after_step, scaler, optimizer, called=called)
        return result

    def updated(self, scaler: Any) -> None:
        """`update` returned: the scale of the next step is known."""
        if not getattr(scaler, "_enabled", True):
            return
        scale = getattr(scaler, "_scale", None)
        self._recorder.timeline.row.loss_scale_after = number_from(scale)
        if self._recorder.recording:
            self._note(scaler, "scale_after", scale, self._updates)
            self._note(scaler, "growth_tracker_after", getattr(scaler, "_growth_tracker", None), self._updates)
            self._updates += 1

    def _after_step(self, scaler: Any, optimizer: torch.optim.Optimizer, *, called: bool) -> None:
        if not getattr(scaler, "_enabled", True):
            return
        row = self._recorder.timeline.row
        states = getattr(scaler, "_per_optimizer_states", {})
        found = list(states.get(id(optimizer), {}).get("found_inf_per_device", {}).values())
        if self._recorder.recording and found:
            flags = torch.stack([flag.to(found[0].device) for flag in found])
            skipped = flags.max() > 0 if getattr(optimizer, "_step_supports_amp_scaling", False) else not called
            self._note(scaler, "found_inf", flags.max(), self._attempts)
            self._note(scaler, "skipped", skipped, self._attempts)
            self._attempts += 1
        if not called:
            row.skipped = True
            self._recorder.optimizers.see_after(optimizer)
        elif getattr(optimizer, "_step_supports_amp_scaling", False):
            # The optimizer itself decides on its device: skipped where the flag is not 0.
            row.found_inf.extend(number_from(flag) for flag in found)

    def _note(self, scaler: Any, slot: str, value: Any, call: int = 0) -> None:
        self._recorder.facts.note(Phase.SCALER, type(scaler).__name__, slot, plain_fact(value), call=call)
