"""The questions about what a run starts with: its checkpoint, its data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from align import wording
from align.inspection.inspection import Inspection
from align.loading import first_loads, left_out
from align.records import Reply, State
from align.sentences import say

CHECKPOINT, DATA = "checkpoint", "data"


def checkpoint(inspection: Inspection) -> Reply:
    """Whether load_state_dict filled all parameters."""
    loads = first_loads(inspection.view.run.loads)
    if not loads:
        return Reply(CHECKPOINT, State.ABSENT, "load_state_dict was not called before the first step.")
    found = left_out(loads)
    if found is not None and found.get("prefix"):
        return Reply(
            CHECKPOINT,
            State.BAD,
            say(
                "{} parameters and buffers were not filled: the keys begin with '{}' on one side only.",
                wording.count(int(found["missing"])),
                found["prefix"],
            ),
        )
    if found is not None and found.get("renamed"):
        return Reply(
            CHECKPOINT,
            State.BAD,
            say(
                "{} were not filled: the checkpoint says '{}' where the model says '{}'.",
                wording.plural(int(found["missing"]), "parameter or buffer", "parameters and buffers"),
                found["renamed"],
                found["renamed_to"],
            ),
        )
    given = sum(int(load["keys"]) for load in loads)
    keys = wording.plural(given, "key")
    missing, unexpected = (sum(int(load[name]) for load in loads) for name in ("missing", "unexpected"))
    if missing or unexpected:
        return Reply(
            CHECKPOINT,
            State.UNKNOWN,
            say(
                "Whether what was left out is meant cannot be told: the model knows {} of the {} that it was given "
                "and misses {} of its own{}.",
                wording.count(given - unexpected),
                keys,
                wording.count(missing),
                _such_as(loads),
            ),
        )
    return Reply(CHECKPOINT, State.GOOD, say("All {} of the checkpoint were taken, and none was missing.", keys))


def _such_as(loads: Sequence[Mapping[str, Any]]) -> str:
    """The first name that was missing."""
    names = [name for load in loads for name in load.get("missing_examples", ())]
    return say(" (such as {})", names[0]) if names else ""


def data(inspection: Inspection) -> Reply:
    """Whether each epoch has an order of its own."""
    found = inspection.epochs
    odd = found.copies is not None or (found.repeated is not None and found.shuffles is not False)
    if not odd and not found.shuffles:
        return Reply(DATA, State.ABSENT, "No DataLoader that shuffles was captured.")
    if found.copies is not None:
        return Reply(
            DATA,
            State.BAD,
            say("Each of {} workers reads the whole dataset: batches come once more.", found.copies.workers),
        )
    if found.repeated is not None:
        return Reply(
            DATA,
            State.BAD if found.repeated.shuffles else State.UNKNOWN,
            say(
                "After {} the data come again in the same order.",
                wording.plural(found.repeated.period, "batch", "batches"),
            ),
        )
    captured = wording.plural(found.captured, "batch", "batches")
    if found.length is None or found.captured < found.length + 2:
        whole = say(" (an epoch has {})", wording.count(found.length)) if found.length is not None else ""
        return Reply(
            DATA,
            State.UNKNOWN,
            say(
                "Whether the order changes from epoch to epoch cannot be told of {}{}; capture two more than an "
                "epoch with --phases input --steps 0:{}.",
                captured,
                whole,
                _steps(found.length),
            ),
        )
    return Reply(
        DATA, State.GOOD, say("The order of the data changes: {} of more than an epoch do not repeat.", captured)
    )


def _steps(length: int | None) -> str:
    return "" if length is None else str(length + 2)
