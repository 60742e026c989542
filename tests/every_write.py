"""All states that a file goes through while it is written, as a killed process could leave them."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import h5py
import pytest

from align import steady_file
from align.put_down import PutDownProcess


@dataclass(frozen=True)
class Change:
    """Bytes at an offset; without bytes, the size of the file; without an offset, all that is in it now."""

    start: int | None
    data: bytes | None


class WatchedFile:
    """Notes each change that this process makes, and what the other process leaves when it has put down a journal.

    What the other process does counts as one change: it goes on when this one is killed.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, other_process: bool) -> None:
        self.changes: list[Change] = []
        self.put_down = 0
        really_write, really_resize = steady_file._write, steady_file._resize
        really_put_down = PutDownProcess.put_down

        def write(descriptor: int, data: memoryview, start: int) -> None:
            self.changes.append(Change(start, bytes(data)))
            really_write(descriptor, data, start)

        def resize(descriptor: int, size: int) -> None:
            self.changes.append(Change(size, None))
            really_resize(descriptor, size)

        def put_down(process: PutDownProcess, start: int, length: int, size: int) -> bool:
            done = really_put_down(process, start, length, size)
            if done:
                self.put_down += 1
                self.changes.append(Change(None, os.pread(process._descriptor, size + 1, 0)))
            return done

        monkeypatch.setattr(steady_file, "_write", write)
        monkeypatch.setattr(steady_file, "_resize", resize)
        monkeypatch.setattr(PutDownProcess, "put_down", put_down)
        if not other_process:
            monkeypatch.setattr(sys, "executable", "")

    def states(self, first: int = 0) -> Iterator[tuple[int, bytes]]:
        """How many changes were made, and the file then; of each change also one that was cut off on its way."""
        image = bytearray()
        chance = random.Random(0)
        for number, change in enumerate(self.changes):
            if change.start is None:
                image = bytearray(change.data or b"")
            elif change.data is None:
                image = image[: change.start].ljust(change.start, b"\0")
            else:
                cut = chance.randrange(len(change.data)) if change.data else 0
                for part in (change.data[:cut], change.data):
                    end = change.start + len(part)
                    image.extend(bytes(max(end - len(image), 0)))
                    image[change.start : end] = part
                    if part is not change.data and number >= first:
                        yield number, bytes(image)
            if number + 1 >= first:
                yield number + 1, bytes(image)


def open_plainly(path: Path, finished: int) -> None:
    """Assert that h5py alone opens a capture, with all finished steps and tables that can be read."""
    with h5py.File(path, "r", locking=False) as file:
        steps = {name for name in file if name.startswith("step")}
        assert {f"step{step}" for step in range(finished)} <= steps
        assert all(file[name]["index"].shape[0] for name in steps)
        assert len(file["names"][...]) == len(file["name_checksums"][...])
        assert file["timeline"][...].shape == file["timeline"].shape
        assert file["run"][()].startswith(b"{")
