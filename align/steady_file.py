"""The file object under a capture being written: a process may die at any moment, what was settled stays readable.

HDF5 changes its directory in place, in many small writes, and a process that dies between two of them leaves a
file that cannot be opened. So writes behind the settled end go to the file at once, while changes inside the
settled part are held in memory. `settle` first appends them all as one journal, then has them put down and the
journal cut off again by a process of its own (`PutDownProcess`), so that the death of this one leaves nothing half
done. Where that process dies too, or cannot be had, a journal stays at the end; our reader applies it in memory.

A journal is a sequence of runs (offset and length as 64-bit little-endian integers, then the bytes), followed by
a footer: the magic word, the length of the runs and their `hash_bytes`.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import numpy as np

from align.gathered import GatheredWrites
from align.hashing import hash_bytes
from align.put_down import PutDownProcess
from align.put_down_process import RUN, runs_of

_PAGE = 4096
_MAGIC = b"ALIGNJRN"
_FOOTER = struct.Struct("<8sQQ")
_FLAGS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_KEEP_SIZE = 1
_WORTH_RESERVING = 1 << 20
_TRY_AGAIN = 64
_SMALL = 1 << 15
_REFUSALS = (errno.EINVAL, errno.EOPNOTSUPP, errno.EFAULT)
"""What a system says that cannot write past the page cache, or not from this memory."""


class _Paces:
    """Which way to the disk is the faster one.

    The page cache takes 4 to 9 GB/s where its memory was in use before, and 0.5 GB/s where it was not: a virtual
    machine is given each page then. It also takes what a slow disk cannot. So now and then it is tried again.
    """

    def __init__(self) -> None:
        self._seconds = {True: 0.0, False: 0.0}
        self._refused = 0

    def prefer_cache(self) -> bool:
        """Whether the page cache took the last bytes faster than the disk did."""
        if self._seconds[True] <= self._seconds[False] or self._refused >= _TRY_AGAIN:
            self._refused = 0
            return True
        self._refused += 1
        return False

    def note(self, seconds: float, nbytes: int, *, cached: bool) -> None:
        """How long it took to write so many bytes."""
        self._seconds[cached] = seconds / nbytes


class SteadyFile:
    """A seekable binary file for h5py; only the process that opened it ever changes it.

    HDF5 cannot recover from a write that fails half way, so it never learns of one: `error` keeps the first, and
    all later writes go nowhere. What a signal handler raised during a write waits in `interruption`.
    """

    def __init__(self, descriptor: int) -> None:
        self.error: OSError | None = None
        self.interruption: BaseException | None = None
        self._descriptor = descriptor
        self._owner = os.getpid()
        self._position = 0
        self._size = os.fstat(descriptor).st_size
        self._settled = self._size
        self._held: dict[int, bytearray] = {}
        self._gathered = GatheredWrites()
        self._putting_down = False
        self._process = PutDownProcess(descriptor)
        self._direct: int | None = None
        self._never_direct = False
        self._paces = _Paces()

    @property
    def settled(self) -> int:
        """Where the settled part ends: what is written before it is held, what is written behind it is not."""
        return self._settled

    @classmethod
    def create(cls, path: Path, *, overwrite: bool) -> SteadyFile:
        """A new, empty file to write."""
        mode = os.O_TRUNC if overwrite else os.O_EXCL
        return cls(os.open(path, os.O_RDWR | os.O_CREAT | mode | _FLAGS, 0o666))

    @classmethod
    def open(cls, path: Path) -> SteadyFile:
        """A file to read, as it is or will be when its journal is put down."""
        file = cls(os.open(path, os.O_RDONLY | _FLAGS))
        file.apply_journal()
        return file

    @property
    def recovered(self) -> bool:
        """Whether changes are held, so that the file on disk is not yet what this object shows."""
        return bool(self._held)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move to an offset."""
        self._position = offset + (self._size if whence == os.SEEK_END else 0)
        return self._position

    def tell(self) -> int:
        """The offset of the next read or write."""
        return self._position

    def read(self, size: int) -> bytes:
        """Read a number of bytes; h5py knows a file object by this method, and calls `readinto`."""
        data = bytearray(size)
        self.readinto(memoryview(data))
        return bytes(data)

    def readinto(self, buffer: memoryview) -> int:
        """Read what was last written, held or not; what was never written is zero."""
        target = memoryview(buffer).cast("B")
        start = self._position
        self._position += len(target)
        self.write_gathered()
        self.read_at(start, target)
        return len(target)

    def read_at(self, start: int, target: memoryview) -> int:
        """Read from an offset into bytes of memory, without moving; how many bytes the file has there.

        What it does not have is zero.
        """
        end = start + len(target)
        done = _read_into(self._descriptor, target, start)
        target[done:] = bytes(len(target) - done)
        if self._held:
            for number in self._held.keys() & set(range(start // _PAGE, end // _PAGE + 1)):
                page, base = self._held[number], number * _PAGE
                low, high = max(start, base), min(end, base + len(page))
                if low < high:
                    target[low - start : high - start] = page[low - base : high - base]
        return done

    def write(self, data: memoryview) -> int:
        """Write behind the settled end, small pieces a little later; hold what lies before it."""
        start = self._position
        self._position += len(data)
        self._carefully(self._store, start, data)
        return len(data)

    def write_behind(self, data: memoryview, start: int, hurry: bool = False) -> None:  # noqa: FBT001, FBT002
        """Write behind the settled end, from a page of memory to a page of the file; another thread may do it.

        Whole pages go past the page cache where the system can do that: it takes far less of the processor's time. In
        a `hurry` they go into the page cache where that was faster lately. Raises OSError.
        """
        if not self._mine():
            return
        whole = len(data) // _PAGE * _PAGE
        cached = hurry and self._paces.prefer_cache()
        begin = time.perf_counter()
        if cached or not whole or not self._write_directly(data[:whole], start):
            _reserve(self._descriptor, start, len(data))
            whole, cached = 0, True
        _write(self._descriptor, data[whole:], start + whole)
        if len(data) >= _WORTH_RESERVING:
            self._paces.note(time.perf_counter() - begin, len(data), cached=cached)

    def write_later(self, data: memoryview, start: int) -> None:
        """Write behind the settled end at the next `settle` or `write_gathered`; the memory must not change before."""
        if start < self._settled:
            self.seek(start)
            self.write(data)
        elif self._mine():
            self._carefully(self._gather, start, data)

    def write_gathered(self) -> None:
        """Write the small pieces now: before others get their place, or read them; see `error` and `interruption`."""
        if self._gathered and self._mine():
            self._carefully(self._write_gathered)

    def truncate(self, size: int) -> int:
        """Set the size; the file on disk follows when all is settled."""
        self._size = size
        return size

    def flush(self) -> None:
        """Nothing waits in a buffer; `settle` decides when changes take effect."""

    def settle(self) -> None:
        """Make all changes take effect together; raises nothing, see `error` and `interruption`."""
        if self._mine():
            self._carefully(self._put_down)

    def overwrite(self, start: int, data: bytes) -> None:
        """Write inside the settled part without a journal: this still works when the disk is full."""
        if os.getpid() == self._owner and start + len(data) <= self._settled:
            _write(self._descriptor, memoryview(data), start)

    def give_up(self, error: OSError) -> None:
        """Write nothing any more; the file stays what it was when it was last settled."""
        self.error = self.error or error

    def close(self) -> None:
        """Close the descriptor; after an error, give back the space of what was never settled."""
        if self.error is not None and os.getpid() == self._owner and not self._putting_down:
            with suppress(OSError):
                _resize(self._descriptor, self._settled)
        self._process.stop()
        if self._direct is not None:
            os.close(self._direct)
        os.close(self._descriptor)

    def apply_journal(self) -> None:
        """Hold what the journal at the end of the file says, if there is one."""
        end = max(self._size - _FOOTER.size, 0)
        footer = _read(self._descriptor, _FOOTER.size, end)
        if len(footer) < _FOOTER.size or not footer.startswith(_MAGIC):
            return
        _, length, digest = _FOOTER.unpack(footer)
        body = _read(self._descriptor, length, end - length) if length <= end else b""
        if len(body) != length or _hash(body) != digest:
            return
        self._size = self._settled = end - length
        for start, run in runs_of(body):
            self._hold(start, run)

    def _write_directly(self, data: memoryview, start: int) -> bool:
        """Write whole pages past the page cache; False where that cannot be done."""
        if self._direct is None and not self._never_direct:
            self._never_direct = True
            with suppress(OSError, AttributeError):
                # By its descriptor: the path may lead to another file by now.
                self._direct = os.open(f"/proc/self/fd/{self._descriptor}", os.O_WRONLY | os.O_DIRECT | _FLAGS)
                self._never_direct = False
        if self._direct is None or self._never_direct:
            return False
        try:
            _write(self._direct, data, start)
        except OSError as error:
            if error.errno not in _REFUSALS:
                raise
            self._never_direct = True
        return not self._never_direct

    def _carefully(self, act: Callable[..., None], *arguments: object) -> None:
        """Keep what goes wrong in `error`; what a signal handler raises in `interruption`, and do it again."""
        try:
            act(*arguments)
        except OSError as error:
            self.error = error
        except BaseException as stop:  # noqa: BLE001 - whatever a signal handler raises; the writer raises it again
            self.interruption = stop
            act(*arguments)

    def _mine(self) -> bool:
        """A forked child closes and flushes every open HDF5 file when it ends; its writes go nowhere."""
        return self.error is None and os.getpid() == self._owner

    def _store(self, start: int, data: memoryview) -> None:
        if not self._mine():
            return
        if start < self._settled:
            source = memoryview(data).cast("B")
            held = self._settled - start
            self._hold(start, source[:held])
            start, data = start + held, source[held:]
        if len(data) > _SMALL:
            self._write_gathered()
            _write(self._descriptor, memoryview(data).cast("B"), start)
        elif len(data):
            # A copy: the memory is HDF5's.
            self._gather(start, bytes(data))
        self._size = max(self._size, start + len(data))

    def _gather(self, start: int, data: bytes | memoryview) -> None:
        if not self._gathered.add(start, data):
            self._write_gathered()
            self._gathered.add(start, data)

    def _write_gathered(self) -> None:
        for start, run in self._gathered.runs():
            _write(self._descriptor, memoryview(run), start)
        self._gathered.clear()

    def _hold(self, start: int, data: memoryview) -> None:
        while len(data):
            number, offset = divmod(start, _PAGE)
            page = self._held.get(number)
            if page is None:
                length = min(_PAGE, self._settled - number * _PAGE)
                page = bytearray(_read(self._descriptor, length, number * _PAGE).ljust(length, b"\0"))
                self._held[number] = page
            part = min(len(page) - offset, len(data))
            page[offset : offset + part] = data[:part]
            start += part
            data = data[part:]

    def _put_down(self) -> None:
        self._write_gathered()
        runs = list(self._runs())
        if runs:
            self._process.wait()  # a signal handler may have raised before the last answer came
            body = b"".join(part for start, run in runs for part in (RUN.pack(start, len(run)), run))
            journal = body + _FOOTER.pack(_MAGIC, len(body), _hash(body))
            # Behind everything on disk: a footer that is not the last thing in the file would not be found.
            end = max(os.fstat(self._descriptor).st_size, self._size)
            _write(self._descriptor, memoryview(journal), end)
            self._putting_down = True
            if not self._process.put_down(end, len(body), self._size):
                for start, run in runs:
                    _write(self._descriptor, memoryview(run), start)
        _resize(self._descriptor, self._size)
        self._putting_down = False
        self._held.clear()
        self._settled = self._size

    def _runs(self) -> Iterator[tuple[int, bytearray]]:
        """The held pages, neighbours joined."""
        start, run = 0, bytearray()
        for number in sorted(self._held):
            if start + len(run) != number * _PAGE:
                if run:
                    yield start, run
                start, run = number * _PAGE, bytearray()
            run += self._held[number]
        if run:
            yield start, run


def _read(descriptor: int, size: int, start: int) -> bytes:
    """Read at an offset, without moving a position that a forked process shares (Windows has no fork)."""
    if hasattr(os, "pread"):
        return os.pread(descriptor, size, start)
    os.lseek(descriptor, start, os.SEEK_SET)
    return os.read(descriptor, size)


def _read_into(descriptor: int, target: memoryview, start: int) -> int:
    """The same into memory that is there already, which takes half the time; how many bytes came."""
    if not hasattr(os, "preadv"):
        data = _read(descriptor, len(target), start)
        target[: len(data)] = data
        return len(data)
    done = 0
    while done < len(target):
        count = os.preadv(descriptor, [target[done:]], start + done)
        if not count:
            break
        done += count
    return done


def _write(descriptor: int, data: memoryview, start: int) -> None:
    while len(data):
        if hasattr(os, "pwrite"):
            done = os.pwrite(descriptor, data, start)
        else:
            os.lseek(descriptor, start, os.SEEK_SET)
            done = os.write(descriptor, data)
        start += done
        data = data[done:]


@lru_cache(maxsize=1)
def _fallocate() -> Callable[[int, int, int, int], int] | None:
    """The call of the system library; Python's own writes every page where the file system lacks it."""
    library = ctypes.CDLL(None) if sys.platform == "linux" else None
    function = getattr(library, "fallocate64", None)
    if function is not None:
        function.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    return function


def _reserve(descriptor: int, start: int, size: int) -> None:
    """Have the file system give the space at once, which makes the writes up to five times faster where it can."""
    fallocate = _fallocate()
    if fallocate is not None and size >= _WORTH_RESERVING:
        fallocate(descriptor, _KEEP_SIZE, start, size)


def _resize(descriptor: int, size: int) -> None:
    os.ftruncate(descriptor, size)


def _hash(body: bytes) -> int:
    return hash_bytes(np.frombuffer(body, dtype=np.uint8))
