"""Checkpoints read without torch: safetensors, files of `torch.save`, sharded indexes, folders, captures."""

from __future__ import annotations

from align.checkpoint_files.entries import WITHOUT_NUMBERS, Checkpoint, Entry, OptimizerState
from align.checkpoint_files.opening import open_checkpoint

__all__ = ["WITHOUT_NUMBERS", "Checkpoint", "Entry", "OptimizerState", "open_checkpoint"]
