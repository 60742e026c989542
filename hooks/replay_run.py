"""The work of one replay: run the script once more, by a capture, in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from align.capture_file import Capture, open_capture
from align.hooks.capture import CaptureOptions, capture
from align.hooks.replay_options import SAME, ReplayOptions
from align.records import Phase
from align.replay_checks import replayable_steps

PLACES = frozenset({"batch", "forward"})
"""The facts of `batch_source.py` that say which batch or call something is; that module imports torch, and here the
device is still to be prepared."""


@dataclass(frozen=True, slots=True)
class ReplayRun:
    """One replay: which capture, where to write, how to compute, and the script."""

    capture: str
    output: str
    program: str
    arguments: tuple[str, ...] = ()
    as_module: bool = False
    device: str = "auto"
    precision: str = SAME
    steps: int | None = None
    force: bool = False


def run_replay(run: ReplayRun, say: Callable[[str], None]) -> int:
    """Replay a capture; returns the script's exit code, or 2.

    Raises CaptureError or CaptureFileError where the capture cannot be replayed.
    """
    with open_capture(run.capture) as source:
        steps = replayable_steps(source)[: run.steps]
        info = source.run
        batches = _has_batches(source, steps)
    options = CaptureOptions(
        program=run.program,
        arguments=run.arguments,
        as_module=run.as_module,
        device=run.device,
        output=run.output,
        steps=f"0:{len(steps)}",
        stop=True,
        detail="tensors",
        seed=info.same_start.get("seed"),
        deterministic=bool(info.same_start.get("deterministic")),
        no_dropout=bool(info.same_start.get("no_dropout")),
        init_from=run.capture,
        batches_from=run.capture if batches else None,
        force=run.force,
        replay=ReplayOptions(run.capture, len(steps), run.precision),
    )
    return capture(options, say)


def _has_batches(source: Capture, steps: Sequence[int]) -> bool:
    """Whether the capture says which batch of which loader, or which call, its batches were for."""
    slots = {fact.key.slot for step in steps for fact in source.facts(step) if fact.key.phase is Phase.INPUT}
    return bool(slots & PLACES)
