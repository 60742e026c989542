"""The bytes and lines of a file, read once from its begin to its end, hashed on the way, and unpacked where it is gzip.

Memory does not grow with the file: lines come one by one, and one without an end is left out.
"""

from __future__ import annotations

import codecs
import io
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from align.curve_files.shown import shown
from align.errors import CurveError
from align.sentences import say

GZIP = b"\x1f\x8b"
HEAD = 1 << 16
"""How many bytes decide what a file is."""
LONGEST_LINE = 1 << 20
"""Characters of a line; what is longer is left out and counted."""
_BLOCK = 1 << 18
_GZIP_WINDOW = 31
"""How zlib is told that a gzip header comes first."""


class Digest(Protocol):
    """What hashlib gives."""

    def update(self, data: bytes | memoryview, /) -> None:
        """Add bytes."""


class _Hashed(io.RawIOBase):
    """A file whose bytes are added to a hash as they are read."""

    def __init__(self, path: Path, digest: Digest) -> None:
        self._file = path.open("rb", buffering=0)
        self._digest = digest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        with memoryview(buffer) as view:
            count = self._file.readinto(view)
            self._digest.update(view[:count])
        return count

    def close(self) -> None:
        self._file.close()
        super().close()


@dataclass(slots=True)
class Source:
    """One file that is being read; `cut` is set where it ends too early."""

    path: Path
    digest: Digest
    cut: bool = False
    unreadable: int = 0
    first_unreadable: int = 0
    notes: list[str] = field(default_factory=list)

    def mark_unreadable(self, line: int) -> None:
        """Count a line, by its number from 1, that cannot be read."""
        self.unreadable += 1
        self.first_unreadable = self.first_unreadable or line

    def blocks(self) -> Iterator[bytes]:
        """The bytes of the file, or of what is packed in it; the hash is of the file as it lies there."""
        with io.BufferedReader(_Hashed(self.path, self.digest), _BLOCK) as raw:
            packed = raw.peek(2)[:2] == GZIP
            blocks = iter(lambda: raw.read(_BLOCK), b"")
            yield from self._unpacked(blocks) if packed else blocks
            for _ in blocks:
                pass

    def _unpacked(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        """What is packed in a gzip file, a member after another, up to where it is damaged or ends too early."""
        member = zlib.decompressobj(wbits=_GZIP_WINDOW)
        for block in blocks:
            data = block
            while data:
                if member.eof:
                    # Zeros behind the last member only fill the file.
                    data = data.lstrip(b"\0")
                    if not data:
                        break
                    member = zlib.decompressobj(wbits=_GZIP_WINDOW)
                try:
                    found = member.decompress(data, _BLOCK)
                except zlib.error:
                    self.cut = True
                    return
                data = member.unused_data if member.eof else member.unconsumed_tail
                if found:
                    yield found
        self.cut = self.cut or not member.eof

    def text(self, encoding: str) -> Iterator[str]:
        """The text of the file in pieces, without NUL bytes; bytes that are no text become a replacement mark.

        A carriage return ends a line, as progress bars and some systems write it.
        """
        decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder(encoding)("replace"), translate=True)
        for block in self.blocks():
            yield decoder.decode(block).replace("\0", "")
        yield decoder.decode(b"", final=True).replace("\0", "")

    def lines(self, encoding: str) -> Iterator[tuple[int, str]]:
        """Each line with its number from 1."""
        number, rest, dropping = 0, "", False
        for text in self.text(encoding):
            pieces = (rest + text).split("\n")
            rest = pieces.pop()
            for piece in pieces:
                number += 1
                if not dropping:
                    yield number, piece
                dropping = False
            if len(rest) > LONGEST_LINE:
                if not dropping:
                    self.mark_unreadable(number + 1)
                rest, dropping = "", True
        if rest and not dropping:
            yield number + 1, rest

    def remarks(self) -> tuple[str, ...]:
        """Sentences on what could not be read."""
        found = list(self.notes)
        if self.unreadable:
            found.append(
                say(
                    "Lines that could not be read: {}, the first is line {}. They were left out.",
                    f"{self.unreadable:,}",
                    self.first_unreadable,
                )
            )
        if self.cut:
            found.append(say("The file '{}' ends in the middle: it was read up to there.", shown(self.path.name)))
        return tuple(found)


def head_of(path: Path) -> bytes:
    """The first bytes of a file, unpacked; what cannot be read raises CurveError with the reason."""
    try:
        regular = stat.S_ISREG(path.stat().st_mode)
        with path.open("rb") if regular else nullcontext() as stream:
            head = stream.read(HEAD) if stream else b""
    except FileNotFoundError as error:
        raise CurveError(say("Cannot read '{}': there is no such file. Check the path.", path)) from error
    except OSError as error:
        reason = os.strerror(error.errno or 0).lower()
        raise CurveError(
            say("Cannot read '{}': {}. Check who owns it and what its permissions are.", path, reason)
        ) from error
    except ValueError as error:
        raise CurveError(
            say("Cannot read {}: no file can have this name. Check the path.", ascii(str(path)))
        ) from error
    if not regular:
        raise CurveError(
            say("Cannot read '{}': it is a pipe or a device, not a file. Save what it gives into a file.", path)
        )
    if not head.startswith(GZIP):
        return head
    try:
        head = zlib.decompressobj(wbits=_GZIP_WINDOW).decompress(head, HEAD)
    except zlib.error:
        head = b""
    if not head:
        raise CurveError(say("Cannot read '{}': it is an empty or damaged gzip file. Copy it again.", path))
    return head


def encoding_of(head: bytes) -> str:
    """The encoding of a text, by its mark or its zero bytes; UTF-8 where nothing says otherwise.

    What is not UTF-8 and is the encoding of China is taken for that, as Excel writes CSV files there.
    """
    if head.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    # Without a mark: ASCII text in two bytes has a zero in every second one.
    sample = head[: 2 * (len(head[:400]) // 2)][:400]
    if sample:
        odd, even = sample[1::2].count(0), sample[::2].count(0)
        if odd > 0.8 * len(sample) / 2 and even < 0.2 * len(sample) / 2:
            return "utf-16-le"
        if even > 0.8 * len(sample) / 2 and odd < 0.2 * len(sample) / 2:
            return "utf-16-be"
    return "utf-8-sig" if _decodes(head, "utf-8") or not _decodes(head, "gb18030") else "gb18030"


def _decodes(head: bytes, encoding: str) -> bool:
    """Whether bytes are text in this encoding; the last letter may be cut."""
    try:
        codecs.getincrementaldecoder(encoding)().decode(head)
    except UnicodeDecodeError:
        return False
    return True
