"""Watch gradient clipping: the norm that was found and the limit, seen where torch clips."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from align.hooks.facts import plain_fact
from align.hooks.timeline import number_from
from align.records import Phase

if TYPE_CHECKING:
    from align.hooks.recorder import Recorder

CLIP = "clip"
EUCLIDEAN = 2.0


class ClipWatch:
    """Notes every clipping of the step; a later one of the same step replaces an earlier one in the timeline."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._clips = 0
        self.norm_type: float | None = None

    def begin_step(self) -> None:
        """A new step: nothing has been clipped yet."""
        self._clips = 0

    def clipped(self, norm: Any, limit: Any) -> None:
        """Gradients are scaled down so that their norm is at most the limit; `norm` is what it was before.

        `norm_type` has been set before, where the kind of norm is known.
        """
        recorder = self._recorder
        row = recorder.timeline.row
        scaled = recorder.scalers.gradients_scaled
        row.clips_l2 = self.norm_type == EUCLIDEAN and not scaled
        row.clip_norm = number_from(norm if isinstance(norm, (torch.Tensor, float, int)) else None)
        row.clip_limit = number_from(limit if isinstance(limit, (torch.Tensor, float, int)) else None)
        if recorder.recording:
            self._note("norm", norm)
            self._note("limit", limit)
            self._note("norm_type", self.norm_type)
            self._note("scaled", scaled)
        self._clips += 1

    def clipped_by_value(self, limit: Any) -> None:
        """Every element of the gradients was cut at the limit."""
        if self._recorder.recording:
            self._note("value_limit", limit)
            self._note("scaled", self._recorder.scalers.gradients_scaled)
        self._clips += 1

    def _note(self, slot: str, value: Any) -> None:
        self._recorder.facts.note(Phase.OPTIMIZER, CLIP, slot, plain_fact(value), call=self._clips)
