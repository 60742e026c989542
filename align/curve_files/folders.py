"""Which files of a folder hold the curves of a run: those that trainers leave there under names of their own."""

from __future__ import annotations

import re
from pathlib import Path

from align.curve_files.shown import listed
from align.errors import CurveError
from align.sentences import say

_EVENTS = ".tfevents."
_NAMED = ("trainer_state.json", "trainer_log.jsonl", "metrics.csv")
_CHECKPOINT = re.compile(r"checkpoint-(\d+)")
_DEEPEST = 4
_MOST_FOLDERS = 2000


def files_of(folder: Path) -> list[Path]:
    """The files to read: event files of TensorBoard in the order of their names, or one file of a trainer.

    Files in the folder itself come before those in folders below it. Raises CurveError where there are none, or where
    several folders below hold some.
    """
    here = _files_in(folder)
    if here:
        return here
    below = {inner: files for inner in _folders_below(folder) if (files := _files_in(inner))}
    checkpoints = {inner: int(found[1]) for inner in below if (found := _CHECKPOINT.fullmatch(inner.name))}
    others = [inner for inner in below if inner not in checkpoints]
    if len(others) == 1 and not checkpoints:
        return below[others[0]]
    if checkpoints and len({inner.parent for inner in checkpoints}) == 1:
        # The state of the last checkpoint holds all that the others do.
        return below[max(checkpoints, key=lambda inner: checkpoints[inner])]
    if below:
        names = sorted(str(inner.relative_to(folder)) for inner in below)
        raise CurveError(
            say(
                "Cannot tell which run in the folder '{}' is meant: there are curves in {}. Name one of these folders.",
                folder,
                listed(names),
            )
        )
    raise CurveError(
        say(
            "Cannot find curves in the folder '{}': there is no event file of TensorBoard, and none of {}. "
            "Name a file.",
            folder,
            listed(_NAMED),
        )
    )


def _files_in(folder: Path) -> list[Path]:
    """The files with curves of one folder: the best kind that is there."""
    files = {file.name: file for file in sorted(folder.iterdir()) if file.is_file()}
    for name in _NAMED[:2]:
        if name in files:
            return [files[name]]
    events = [file for name, file in files.items() if _EVENTS in name]
    return events or [files[name] for name in _NAMED[2:] if name in files]


def _folders_below(folder: Path) -> list[Path]:
    """The folders in a folder, some levels down, without links."""
    found, level = [], [folder]
    for _ in range(_DEEPEST):
        level = [
            inner
            for outer in level
            for inner in sorted(outer.iterdir())
            if inner.is_dir() and not inner.is_symlink() and not inner.name.startswith(".")
        ]
        found += level
        if len(found) > _MOST_FOLDERS:
            break
    return found
