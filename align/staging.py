"""Values on their way to the file: copied once into a ring of buffers, put down by a thread of its own.

A page of memory that is new, and a page of a file that is new to the page cache, each cost more than the copy. So
the buffers are few, large and used again and again, and each goes to the file in a few long writes, during which
Python's lock is free: a thread that asks for the lock often would wait for it each time as long as training holds it.
"""

from __future__ import annotations

import mmap
import os
import queue
import threading
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

BUFFER_SIZE = 4 << 20
"""Bytes of one buffer: it may still be in the processor's cache when it is written (1 GB through 64 MB of buffers:
2.6 GB/s with 8 MB each, 3.1 with 4 MB)."""
BUFFERS = 16
"""How many buffers wait at most; when all are full, the training waits for the disk."""
PAGE = 4096
_BACKLOG = 4
"""From so many full buffers on, training will soon wait."""
_PATIENCE = 1.0


class Wait(Protocol):
    """What must have happened before copied values can be read: an event of a device."""

    def synchronize(self) -> None:
        """Wait until it has."""


class Source(Protocol):
    """Values that can be copied piece by piece, in logical order and the byte order of the file."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Their logical shape."""

    @property
    def dtype(self) -> str:
        """Torch's name of their dtype."""

    @property
    def stored(self) -> np.dtype[Any]:
        """The numpy dtype that holds their bits."""

    @property
    def nbytes(self) -> int:
        """How many bytes there are."""

    def copy_into(self, room: memoryview, start: int) -> Wait | None:
        """Fill the room with the bytes from `start` on; returns what to wait for before it is read."""

    def allocate(self, size: int) -> memoryview:
        """Memory that such values are copied into without a stop on the way."""


def page_aligned(size: int) -> memoryview:
    """Memory of this process alone that begins at a page; its pages are there before they are used."""
    if hasattr(mmap, "MAP_PRIVATE"):
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_POPULATE", 0)
        return memoryview(mmap.mmap(-1, size, flags=flags))
    return memoryview(mmap.mmap(-1, size))


class _Buffer:
    """One buffer, its segments (offset in the file, begin and end in the buffer) and what must be waited for."""

    def __init__(self, memory: memoryview) -> None:
        self.memory = memory
        self.segments: list[tuple[int, int, int]] = []
        self.waits: list[Wait] = []

    def room_for(self, offset: int, size: int) -> memoryview | None:
        """Room for the bytes that belong at this offset of the file, at a page of both; None when it is full."""
        end = self.segments[-1][2] if self.segments else 0
        begin = end if self._continues(offset) else -(-end // PAGE) * PAGE
        return self.memory[begin : min(begin + size, len(self.memory))] if begin < len(self.memory) else None

    def take(self, offset: int, size: int, wait: Wait | None) -> None:
        """The room is filled."""
        if wait is not None:
            self.waits.append(wait)
        if self._continues(offset):
            start, begin, end = self.segments[-1]
            self.segments[-1] = (start, begin, end + size)
        else:
            begin = -(-self.segments[-1][2] // PAGE) * PAGE if self.segments else 0
            self.segments.append((offset, begin, begin + size))

    def _continues(self, offset: int) -> bool:
        if not self.segments:
            return False
        start, begin, end = self.segments[-1]
        return offset == start + end - begin and end % PAGE == 0


class Staging:
    """The ring and its thread, both made when the first values come.

    `write` puts bytes at an offset of the file, and is told whether training will soon have to wait for it; `fail` is
    told what went wrong. Both run in the thread. Buffers are
    used in rotation and counted, and only the counts are believed: an exception of a signal handler may strike
    between any two lines of the training's thread. A forked child does nothing.
    """

    def __init__(self, write: Callable[[memoryview, int, bool], None], fail: Callable[[OSError], None]) -> None:
        self.finished = 0
        self.submitted = 0
        self._first = 0
        self._stopping = False
        self._write = write
        self._fail = fail
        self._buffers: list[_Buffer] = []
        self._work: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._progress: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._owner = os.getpid()

    def put(self, source: Source, offset: int) -> None:
        """Copy the values and have them written at an offset that is a multiple of the page.

        They are in the file when `finished` has passed what `submitted` is then. Waits while all buffers are full.
        """
        done = 0
        while done < source.nbytes and self._mine:
            buffer = self._current(source)
            room = buffer.room_for(offset + done, source.nbytes - done)
            if room is None:
                self._submit()
                continue
            wait = source.copy_into(room, done)
            buffer.take(offset + done, len(room), wait)
            done += len(room)

    def drain(self) -> BaseException | None:
        """Wait until all is in the file, or writing has failed; returns what a signal handler raised meanwhile."""
        interruption = None
        while self._thread is not None and self._mine:
            try:
                slot = self._slot(self.submitted)
                # With all buffers submitted, the next one is not free yet, and nothing is in it that waits.
                if self.submitted - self.finished < BUFFERS and self._holds_something(slot):
                    self._submit()
                self._wait_for(self.submitted)
                self._first = self.submitted
                break
            except OSError:
                raise
            except BaseException as stop:  # noqa: BLE001 - whatever it is, the data must be down first
                interruption = stop
        return interruption

    def stop(self) -> None:
        """End the thread once it has finished what was submitted."""
        if self._thread is not None and self._mine:
            self._stopping = True
            self._work.put(None)
            self._thread.join()

    @property
    def _mine(self) -> bool:
        return os.getpid() == self._owner

    def _slot(self, number: int) -> int:
        """Which buffer has this number; a step that needs few buffers makes no more."""
        return (number - self._first) % BUFFERS

    def _current(self, source: Source) -> _Buffer:
        """The buffer that is being filled."""
        if self._thread is None:
            thread = threading.Thread(target=self._run, name="align-writer", daemon=True)
            thread.start()
            self._thread = thread
        slot = self._slot(self.submitted)
        if slot == len(self._buffers):
            self._buffers.append(_Buffer(source.allocate(BUFFER_SIZE)))
        self._wait_for(self.submitted - BUFFERS + 1)
        return self._buffers[slot]

    def _holds_something(self, slot: int) -> bool:
        return slot < len(self._buffers) and bool(self._buffers[slot].segments)

    def _submit(self) -> None:
        self.submitted += 1
        self._work.put(None)

    def _wait_for(self, number: int) -> None:
        """Wait until so many buffers are finished."""
        while self.finished < number:
            self._work.put(None)
            try:
                self._progress.get(timeout=_PATIENCE)
            except queue.Empty:
                if self._thread is not None and not self._thread.is_alive():
                    error = OSError("the thread that writes has ended")
                    self._fail(error)
                    raise error from None

    def _run(self) -> None:
        while True:
            while self.finished < self.submitted:
                self._put_down(self._buffers[self._slot(self.finished)])
                self.finished += 1
                self._progress.put(None)
            if self._stopping:
                return
            self._work.get()

    def _put_down(self, buffer: _Buffer) -> None:
        try:
            for wait in buffer.waits:
                wait.synchronize()
            for offset, begin, end in buffer.segments:
                hurry = self.submitted - self.finished >= _BACKLOG
                self._write(buffer.memory[begin:end], offset, hurry)
        except OSError as error:
            self._fail(error)
        except RuntimeError as error:
            # A device that has failed says so wherever it is asked.
            self._fail(OSError(str(error)))
        buffer.waits.clear()
        buffer.segments.clear()
