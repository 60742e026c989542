"""Whether a capture can be replayed, and which of its steps."""

from __future__ import annotations

from align.capture_file import Capture
from align.errors import CaptureError
from align.records import INIT_STEP, Phase, TensorRecord
from align.sentences import joined, say
from align.value_types import is_floating

MOST_WITHOUT_VALUES = 0.5
"""Above this share of float tensors without values there is nothing to replay."""


def replayable_steps(source: Capture) -> list[int]:
    """The captured steps in a row from step 0 on; raises CaptureError where the capture cannot be replayed."""
    path, run = source.path, source.run
    if run.world_size > 1:
        raise CaptureError(
            say(
                "Cannot replay '{}': it is of a run of {} processes. Capture the training in one process, with "
                "fewer layers or a smaller batch if need be, and replay that.",
                path,
                run.world_size,
            )
        )
    steps = [step for number, step in enumerate(source.steps) if step == number]
    if not steps:
        first = say("its first step is {}", source.steps[0]) if source.steps else say("it holds no finished step")
        raise CaptureError(
            say(
                "Cannot replay '{}': {}, and a replay begins at step 0 with the initial weights. {}",
                path,
                first,
                _again(),
            )
        )
    left_out = _left_out(source)
    if left_out:
        raise CaptureError(
            say(
                "Cannot replay '{}': {} were left out of it, and a replay needs every tensor. {}",
                path,
                left_out,
                _again(),
            )
        )
    if not source.has_init or not any(record.has_values for record in source.records(INIT_STEP)):
        raise CaptureError(say("Cannot replay '{}': it holds no values of the initial weights. {}", path, _again()))
    floats = [record for record in source.records(steps[0]) if _is_float(record)]
    without = sum(not record.has_values for record in floats)
    if not floats or without > MOST_WITHOUT_VALUES * len(floats):
        raise CaptureError(
            say(
                "Cannot replay '{}': it holds the values of {} of {} tensors of step 0. {}",
                path,
                f"{len(floats) - without:,}",
                f"{len(floats):,}",
                _again(),
            )
        )
    return steps


def _left_out(source: Capture) -> str:
    run = source.run
    missing = [str(phase) for phase in Phase if run.phases and str(phase) not in run.phases]
    if missing:
        several = say("the phases {}", joined(", ", missing))
        return several if len(missing) > 1 else say("all tensors of the phase {}", missing[0])
    return say("all modules but {}", joined(", ", run.modules_requested)) if run.modules_requested else ""


def _is_float(record: TensorRecord) -> bool:
    return is_floating(record.dtype) and record.numel > 0


def _again() -> str:
    return say("Capture it again with --detail tensors --steps 0:1.")
