"""What is asked of a run that replays a capture; read before torch is imported."""

from __future__ import annotations

from dataclasses import dataclass

SAME = "same"
"""The precision of the script."""


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """Which capture to replay, how many of its steps, and in which precision: `same`, `fp32` or `fp64`."""

    path: str
    steps: int
    precision: str = SAME
