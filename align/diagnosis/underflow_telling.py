"""What is advised where gradients are too small for fp16."""

from __future__ import annotations

import math

from align import wording
from align.sentences import say

USUAL = 2.0**16
"""What torch's GradScaler starts from."""
STEP = 2.0**4
"""By how much a scale is raised that is as large already."""


def advise_scale(scale: float, lowest: float, highest: float, *, lost: bool) -> str:
    """Which loss scale to take, or that none will do; `lowest` is not known where gradients were lost."""
    if not lost and math.isfinite(lowest) and lowest > highest:
        return say(
            "No loss scale will do: the largest gradients allow at most {} and the smallest need {}. Train in bf16 "
            "(torch.autocast(..., dtype=torch.bfloat16)), whose range is that of fp32.",
            wording.loss_scale(highest),
            wording.loss_scale(lowest),
        )
    room = highest if math.isfinite(highest) else math.inf
    fitting = min(USUAL if scale < USUAL else scale * STEP, room)
    if not lost and math.isfinite(lowest):
        fitting = min(max(fitting, lowest), room)
    if fitting <= scale:
        return (
            "The scale is as large as the largest gradients allow: train in bf16 "
            "(torch.autocast(..., dtype=torch.bfloat16)), whose range is that of fp32."
        )
    power = math.floor(math.log2(fitting))
    made = f"torch.amp.GradScaler(init_scale=2.0**{power})"
    if scale == 1.0:
        return say(
            "Scale the loss: scaler = {}, scaler.scale(loss).backward(), scaler.step(optimizer), scaler.update(); or "
            "train in bf16.",
            made,
        )
    return say(
        "Raise the loss scale: {}, scaler.scale(loss).backward(), scaler.step(optimizer), scaler.update(); or train in "
        "bf16.",
        made,
    )
