"""Loss curves from where people keep them: captures, tables, TensorBoard, and the logs of training."""

from __future__ import annotations

from align.curve_files.opening import read_curves

__all__ = ["read_curves"]
