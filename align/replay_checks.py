"""Whether a capture can be replayed, and which of its steps."""

from __future__ import annotations

from align.capture_file import Capture
from align.errors import CaptureError
from align.records import INIT_STEP, Phase, TensorRecord

MOST_WITHOUT_VALUES = 0.5
"""Above this share of float tensors without values there is nothing to replay."""


def replayable_steps(source: Capture) -> list[int]:
    """The captured steps in a row from step 0 on; raises CaptureError where the capture cannot be replayed."""
    path, run = source.path, source.run
    if run.world_size > 1:
        raise CaptureError(
            f"Cannot replay '{path}': it is of a run of {run.world_size} processes. Capture the training in one "
            "process, with fewer layers or a smaller batch if need be, and replay that."
        )
    steps = [step for number, step in enumerate(source.steps) if step == number]
    if not steps:
        first = f"its first step is {source.steps[0]}" if source.steps else "it holds no finished step"
        raise CaptureError(
            f"Cannot replay '{path}': {first}, and a replay begins at step 0 with the initial weights. {_again()}"
        )
    left_out = _left_out(source)
    if left_out:
        raise CaptureError(
            f"Cannot replay '{path}': {left_out} were left out of it, and a replay needs every tensor. {_again()}"
        )
    if not source.has_init or not any(record.has_values for record in source.records(INIT_STEP)):
        raise CaptureError(f"Cannot replay '{path}': it holds no values of the initial weights. {_again()}")
    floats = [record for record in source.records(steps[0]) if _is_float(record)]
    without = sum(not record.has_values for record in floats)
    if not floats or without > MOST_WITHOUT_VALUES * len(floats):
        raise CaptureError(
            f"Cannot replay '{path}': it holds the values of {len(floats) - without:,} of {len(floats):,} tensors of "
            f"step 0. {_again()}"
        )
    return steps


def _left_out(source: Capture) -> str:
    run = source.run
    missing = [str(phase) for phase in Phase if run.phases and str(phase) not in run.phases]
    if missing:
        return f"the phases {', '.join(missing)}" if len(missing) > 1 else f"all tensors of the phase {missing[0]}"
    return f"all modules but {', '.join(run.modules_requested)}" if run.modules_requested else ""


def _is_float(record: TensorRecord) -> bool:
    return record.dtype.startswith(("float", "bfloat")) and record.numel > 0


def _again() -> str:
    return "Capture it again with --detail tensors --steps 0:1."
