"""The process that puts down what a journal says, so that the death of the training leaves no half of it.

It runs this file by its path, in an interpreter without packages, and belongs to nobody: it is no child of the
training, and no signal to the training's group reaches it. It leaves when its socket ends. The journal is in the file
before the request comes, and a request is done only when all of it has come; so whatever moment the training dies in,
either nothing of the journal is put down or everything.

A request is three 64-bit little-endian integers: where the journal begins, the length of its runs, and the size of the
file afterwards. The answer is one byte. A journal is a sequence of runs: offset and length as 64-bit little-endian
integers, then the bytes.
"""

from __future__ import annotations

import os
import signal
import struct
import sys
from collections.abc import Iterator

REQUEST = struct.Struct("<QQQ")
PROCESS = struct.Struct("<Q")
"""What the process says first: its number."""
DONE, NOT_DONE = b"\1", b"\0"
RUN = struct.Struct("<QQ")
_STEPS_ASIDE = ("SIGHUP", "SIGINT", "SIGTERM", "SIGQUIT", "SIGUSR1", "SIGUSR2")
"""Signals that a job scheduler sends to all processes of a job, of which the training may survive some."""


def runs_of(body: bytes) -> Iterator[tuple[int, memoryview]]:
    """The runs of a journal: offset and bytes; struct.error where it is cut."""
    place = 0
    while place < len(body):
        start, count = RUN.unpack_from(body, place)
        place += RUN.size
        yield start, memoryview(body)[place : place + count]
        place += count


def put_down(descriptor: int, start: int, length: int, size: int) -> None:
    """Do what the journal in the file says, and cut it off; raises OSError."""
    for offset, run in list(runs_of(_read(descriptor, length, start))):
        _write(descriptor, run, offset)
    os.ftruncate(descriptor, size)


def _read(descriptor: int, size: int, start: int) -> bytes:
    parts = []
    while size:
        part = os.pread(descriptor, size, start)
        if not part:
            raise OSError("the journal is cut")
        parts.append(part)
        start += len(part)
        size -= len(part)
    return b"".join(parts)


def _write(descriptor: int, data: memoryview, start: int) -> None:
    while data:
        done = os.pwrite(descriptor, data, start)
        start += done
        data = data[done:]


def _next_request(connection: int) -> bytes:
    """A whole request, less when the training has ended."""
    request = b""
    while len(request) < REQUEST.size:
        part = os.read(connection, REQUEST.size - len(request))
        if not part:
            break
        request += part
    return request


def main(descriptor: int, connection: int) -> None:
    """Serve one file until its training ends."""
    if os.fork():
        os._exit(0)
    for name in _STEPS_ASIDE:
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    try:
        os.write(connection, PROCESS.pack(os.getpid()))
        while len(request := _next_request(connection)) == REQUEST.size:
            try:
                put_down(descriptor, *REQUEST.unpack(request))
            except (OSError, struct.error):
                os.write(connection, NOT_DONE)
            else:
                os.write(connection, DONE)
    except OSError:
        # The training has ended between request and answer.
        pass
    os._exit(0)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
