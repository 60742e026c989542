"""What makes two runs start alike on demand: seeds, deterministic kernels, no dropout, another run's weights, batches.

All of it is off unless asked for, and none of it edits the script. `start_control.py` carries it out.
"""

from __future__ import annotations

import os
import random
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from align.capture_file import Capture, find_ranks, open_capture
from align.errors import CaptureError
from align.hooks.batch_source import CALL_SLOT, LOADER
from align.records import INIT_STEP, Phase
from align.sentences import say

DETERMINISTIC_LEVEL = 1
"""The level of torch_npu at which one input gives one result; 3 also makes rows independent of the batch size, which
needs a recent CANN and no GPU does either."""

AS_INPUTS = "as given to the model; targets made outside it are the script's own"


@dataclass(frozen=True, slots=True)
class SameStart:
    """What was asked for; `init_from` and `batches_from` are paths of captures."""

    seed: int | None = None
    deterministic: bool = False
    no_dropout: bool = False
    init_from: str | None = None
    batches_from: str | None = None

    def facts(self) -> dict[str, Any]:
        """What was asked for, for the file; empty for a run as it is."""
        asked = {
            "seed": self.seed,
            "deterministic": self.deterministic or None,
            "no_dropout": self.no_dropout or None,
            "init_from": self.init_from,
            "batches_from": self.batches_from,
        }
        return {name: value for name, value in asked.items() if value is not None}

    def prepare(self) -> None:
        """Seed all generators and choose deterministic kernels, where asked; the script may do so again later."""
        if self.deterministic:
            make_deterministic()
        if self.seed is not None:
            seed_all(self.seed)


def seed_all(seed: int) -> None:
    """Seed python's, numpy's and torch's global generators, those of all devices included."""
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002  scripts draw from the global generator
    torch.manual_seed(seed)


def make_deterministic() -> None:
    """Choose kernels that give the same result each time; where there is none, torch warns and goes on."""
    torch.use_deterministic_algorithms(mode=True, warn_only=True)
    torch.backends.cudnn.benchmark = False
    set_level = getattr(getattr(torch, "npu", None), "set_deterministic_level", None)
    if set_level is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that the two switches should not be mixed; they say the same here
            set_level(DETERMINISTIC_LEVEL)


def sentence(facts: Mapping[str, Any]) -> str:
    """What was done to start alike, for the last line; empty where nothing was."""
    done = []
    if "seed" in facts:
        done.append(f"seed {facts['seed']}")
    if "deterministic" in facts:
        done.append("deterministic kernels")
    if "no_dropout" in facts:
        done.append("no dropout")
    if "init_from" in facts:
        done.append(f"{_count(facts.get('init_tensors', 0), 'initial tensor')} from {facts['init_from']}")
    if "batches_from" in facts:
        done.append(_batches(facts))
    return f"same start: {', '.join(done)}" if done else ""


def _batches(facts: Mapping[str, Any]) -> str:
    """`2 of 3 batches from ref.h5 (batch 2 of <DataLoader>: not in it)`, of the captured steps."""
    taken, missed = facts.get("batches_taken", 0), facts.get("batches_missed", 0)
    batches = f"{taken:,} of {taken + missed:,} batches" if missed else _count(taken, "batch", "batches")
    remarks = [facts["batches_why_missed"]] if missed else []
    if "batches_as" in facts:
        remarks.append(AS_INPUTS)
    behind = f" ({'; '.join(remarks)})" if remarks else ""
    return f"{batches} from {facts['batches_from']}{behind}"


def _count(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def open_initial(path: str, output: Path) -> Capture:
    """Open the capture whose initial weights are to be taken; says in a sentence why that cannot be."""
    capture = _open_reference(say("initial weights"), path, output)
    if not capture.has_init:
        why = say("it holds none (its phases or modules left them out). Capture it again with --keep init.")
    elif not any(record.has_values for record in capture.records(INIT_STEP)):
        why = say("it holds no values of them. Capture it again with --keep init.")
    else:
        return capture
    capture.close()
    raise CaptureError(say("Cannot take initial weights from '{}': {}", path, why))


def open_batches(path: str, output: Path) -> Capture:
    """Open the capture whose batches are to be taken; says in a sentence why that cannot be."""
    capture = _open_reference(say("batches"), path, output)
    why = say("it holds no values of them. Capture it again with --keep batches.")
    for step in capture.steps:
        inputs = [one for one in capture.records(step) if one.key.phase is Phase.INPUT and one.has_values]
        if any(one.key.name.startswith(LOADER) for one in inputs):
            return capture
        if inputs and any(fact.key.slot == CALL_SLOT for fact in capture.facts(step)):
            return capture
        if inputs:
            why = say("it does not say which call of which model they were for. Capture it again with --keep batches.")
    capture.close()
    raise CaptureError(say("Cannot take batches from '{}': {}", path, why))


def _open_reference(what: str, path: str, output: Path) -> Capture:
    file = _rank_file(path)
    if file.exists() and output.exists() and file.samefile(output):
        raise CaptureError(
            say("Cannot take {} from '{}': the capture is written there. Name another file with -o.", what, path)
        )
    return open_capture(file)


def _rank_file(path: str) -> Path:
    """The file itself, or that of our rank where `run.h5` stands for `run.rank0000.h5` and its sisters."""
    given = Path(path)
    ranks = [] if given.exists() else find_ranks(path)
    if not ranks:
        return given
    return ranks[min(int(os.environ.get("RANK", "0")), len(ranks) - 1)]
