"""Loss curves from where people keep them: captures, tables, TensorBoard, and the logs of training."""

from __future__ import annotations

from align.curve_files.looks import holds_loss_curve
from align.curve_files.opening import read_curves

__all__ = ["holds_loss_curve", "read_curves"]
