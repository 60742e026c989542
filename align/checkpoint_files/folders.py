"""Finds the one checkpoint that a folder holds, or says which there are."""

from __future__ import annotations

import os
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

from align.checkpoint_files.spans import unreadable
from align.sentences import joined, say

PATTERNS: Sequence[tuple[str, ...]] = (
    ("model.safetensors.index.json",),
    ("model.safetensors",),
    ("pytorch_model.bin.index.json",),
    ("pytorch_model.bin",),
    ("*.safetensors.index.json",),
    ("*.bin.index.json",),
    ("*.safetensors",),
    ("*.pt", "*.pth", "*.bin", "*.ckpt"),
)
"""Names of checkpoints, the first that a folder has counts: safetensors before pickles, as `from_pretrained` does."""

BESIDE = ("optimizer.pt", "optimizer.bin", "scheduler.pt", "training_args.bin", "rng_state*.pth", "scaler.pt",
          "adapter_model.*", "random_states_*.pkl")  # fmt: skip
"""Files that stand beside weights."""

OPTIMIZERS = ("optimizer.pt", "optimizer.bin")
CHECKPOINTS_SHOWN, SUBFOLDERS_SHOWN = 4, 3


class Found(NamedTuple):
    """The checkpoint of a folder, the optimizer's state beside it, and what else to know."""

    main: Path
    optimizer: Path | None
    notes: tuple[str, ...]


def find_checkpoint(folder: Path) -> Found:
    """The checkpoint in a folder; raises CheckpointError where there is none, or several that are equally likely."""
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if entry.is_file())
    except OSError as error:
        raise unreadable(folder, (error.strerror or str(error)).lower(), say("Check who may read it.")) from error
    weights = [name for name in names if not any(fnmatch(name, pattern) for pattern in BESIDE)]
    for patterns in PATTERNS:
        found = [name for name in weights if any(fnmatch(name, pattern) for pattern in patterns)]
        if len(found) > 1:
            shown = _shown(found, CHECKPOINTS_SHOWN)
            raise unreadable(folder, say("it holds {} checkpoints: {}", len(found), shown), say("Name one of them."))
        if found:
            optimizer = next((folder / name for name in OPTIMIZERS if name in names), None)
            return Found(folder / found[0], optimizer, _notes(folder, weights, found[0]))
    raise _none(folder, names)


def _notes(folder: Path, weights: Sequence[str], chosen: str) -> tuple[str, ...]:
    """Say what was taken where the folder holds weights in another form, too."""
    others = [
        name
        for name in weights
        if name != chosen and name in ("model.safetensors", "pytorch_model.bin", "pytorch_model.bin.index.json")
    ]
    if not others:
        return ()
    return (say("Of the folder '{}' {} is compared; it also holds {}.", folder, chosen, joined(", ", others)),)


def _shown(names: Sequence[str], most: int) -> str:
    first = joined(", ", names[:most])
    return say("{} and {} more", first, len(names) - most) if len(names) > most else first


def _none(folder: Path, names: Sequence[str]) -> Exception:
    if ".metadata" in names or any(name.endswith(".distcp") for name in names):
        return unreadable(
            folder, say("it is a distributed checkpoint (.metadata and .distcp files)"),
            say(
                "Make one file of it: `python -m torch.distributed.checkpoint.format_utils dcp_to_torch {} all.pt`.",
                folder,
            ),
        )  # fmt: skip
    below = sorted(
        path.parent.relative_to(folder)
        for patterns in PATTERNS
        for pattern in patterns
        for path in folder.glob(f"*/{pattern}")
    )
    if below:
        shown = list(dict.fromkeys(map(str, below)))
        return unreadable(
            folder, say("the checkpoints are in folders below it: {}", _shown(shown, SUBFOLDERS_SHOWN)),
            say("Name one of them."),
        )  # fmt: skip
    return unreadable(
        folder, say("there is no checkpoint among its {} files", len(names)),
        say("Name a folder with .safetensors, .bin, .pt or an .index.json in it."),
    )  # fmt: skip
