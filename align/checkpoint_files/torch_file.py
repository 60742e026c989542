"""Files of `torch.save`: a zip of a pickle and its storages, or the older format of one stream. torch is not needed.

The pickle is read as data (`align.checkpoint_files.pickles`) and names the storages, whose bytes lie in the file as
they are. So tensors are read by position, files of any device open on a machine that has none, and memory that tensors
share is seen.
"""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Callable, Mapping
from typing import Any

from align.checkpoint_files.entries import ITEM_BITS, Entry
from align.checkpoint_files.pickles import Bounded, BrokenPickleError, PickleReader, RefusedPickleError
from align.checkpoint_files.spans import COPY_AGAIN, FileSpan, OpenFile, StridedSpan, unreadable
from align.checkpoint_files.torch_tensors import TORCH, Storage, StoredTensor, UnreadTensor, storage_of
from align.errors import CheckpointError
from align.sentences import say, told

ZIP_SIGNATURE = b"PK\x03\x04"
LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
LOCAL_HEADER = struct.Struct("<4s5H3I2H")
SAVE_WEIGHTS = say(
    "Load it where it was made, and save the weights alone: `torch.save(model.state_dict(), 'weights.pt')`, or a "
    "safetensors file."
)
_ZIP_ERRORS = (
    zipfile.BadZipFile, NotImplementedError, ValueError, struct.error, EOFError, OSError, RuntimeError, KeyError,
    IndexError, OverflowError,
)  # fmt: skip


class TorchFile:
    """What one file holds: `value` is the object that was saved, with tensors as places in `storages`."""

    def __init__(self, file: OpenFile, value: Any, storages: Mapping[str, tuple[int, int]]) -> None:
        self.value = value
        self._file = file
        self._storages = storages
        self._first: dict[tuple[Any, ...], str] = {}

    def entry(self, name: str, tensor: StoredTensor | UnreadTensor) -> Entry:
        """A tensor under a name; raises CheckpointError where it does not lie in its storage."""
        home = self._file.path.name
        if isinstance(tensor, UnreadTensor):
            return Entry(name, tensor.dtype, tensor.shape, why=tensor.why, file=home)
        item = ITEM_BITS[tensor.dtype] // 8
        place = self._storages.get(tensor.storage.key)
        if place is None:
            raise unreadable(self._file.path, say("the values of '{}' are missing", name), COPY_AGAIN)
        begin, size = place
        steps = [(length - 1) * stride for length, stride in zip(tensor.shape, tensor.strides, strict=True)]
        empty = 0 in tensor.shape
        if not empty and (tensor.offset + sum(steps) + 1) * item > size:
            raise unreadable(
                self._file.path,
                say("'{}' needs more than the {} bytes that its storage has", name, f"{size:,}"),
                COPY_AGAIN,
            )
        key = (tensor.storage.key, tensor.dtype, tensor.offset, tensor.shape, tensor.strides)
        first = self._first.setdefault(key, name)
        offset = begin + tensor.offset * item
        span: FileSpan | StridedSpan = FileSpan(self._file, offset)
        if not empty and not _row_major(tensor.shape, tensor.strides):
            span = StridedSpan(self._file, offset, tensor.shape, tensor.strides, item)
        return Entry(name, tensor.dtype, tensor.shape, span, file=home, tied_to="" if first == name else first)


def read_torch(file: OpenFile) -> TorchFile:
    """Read the structure of a file of `torch.save`; raises CheckpointError for anything else, naming what it found."""
    if file.read(0, len(ZIP_SIGNATURE)) == ZIP_SIGNATURE:
        return _read_zip(file)
    return _read_legacy(file)


def _row_major(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    expected = 1
    for length, stride in zip(reversed(shape), reversed(strides), strict=True):
        if length != 1 and stride != expected:
            return False
        expected *= length
    return True


def _reading(file: OpenFile, reader: Callable[[], Any]) -> Any:
    """Run one reading of a pickle; its troubles become sentences."""
    try:
        return reader()
    except RefusedPickleError as error:
        raise unreadable(
            file.path, say("{} and not weights. Nothing of it was run", told(error)), SAVE_WEIGHTS
        ) from error
    except BrokenPickleError as error:
        raise unreadable(file.path, say("its pickle is damaged ({})", told(error)), COPY_AGAIN) from error


def _read_zip(file: OpenFile) -> TorchFile:
    try:
        with zipfile.ZipFile(file.path) as archive:
            members = {member.filename: member for member in archive.infolist()}
            return _read_archive(file, archive, members)
    except _ZIP_ERRORS as error:
        if isinstance(error, CheckpointError):
            raise
        raise unreadable(
            file.path, say("it is truncated or damaged: the table of contents of its zip cannot be read"), COPY_AGAIN
        ) from error


def _read_archive(file: OpenFile, archive: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo]) -> TorchFile:
    main = next((name for name in members if name.endswith("/data.pkl") or name == "data.pkl"), None)
    if main is None:
        raise unreadable(
            file.path, say("it is a zip archive without weights in it"), say("Name a file of `torch.save`.")
        )
    root = main.removesuffix("data.pkl")
    if f"{root}constants.pkl" in members or (f"{root}version" not in members and f"{root}code/" in members):
        raise unreadable(file.path, say("it is a TorchScript archive, which is code"), SAVE_WEIGHTS)
    if any(member.compress_type != zipfile.ZIP_STORED for member in members.values()):
        raise unreadable(
            file.path, say("its zip is compressed, as torch never does"), say("Unpack what wraps it, or save it again.")
        )
    order = f"{root}byteorder"
    if order in members and members[order].file_size < 16 and archive.read(order) != b"little":  # noqa: PLR2004 - a word
        raise unreadable(file.path, say("its numbers are big-endian"), say("Save it again on a little-endian machine."))
    storages: dict[str, tuple[int, int]] = {}

    def persistent(value: Any) -> Storage:
        storage = storage_of(value)
        member = members.get(f"{root}data/{storage.key}")
        if member is not None and storage.key not in storages:
            storages[storage.key] = _member_place(file, member)
        return storage

    begin, size = _member_place(file, members[main])
    stream = Bounded(io.BytesIO(file.read(begin, size)), size)
    value = _reading(file, lambda: PickleReader(TORCH, persistent).read(stream))
    return TorchFile(file, value, storages)


def _member_place(file: OpenFile, member: zipfile.ZipInfo) -> tuple[int, int]:
    """Where the bytes of a stored member lie; the local header says how long its own fields are."""
    header = file.read(member.header_offset, LOCAL_HEADER.size)
    fields = LOCAL_HEADER.unpack(header)
    begin = member.header_offset + LOCAL_HEADER.size + fields[-2] + fields[-1]
    if fields[0] != ZIP_SIGNATURE or begin + member.file_size > file.size:
        msg = say("a member lies outside of the file")
        raise ValueError(msg)
    return begin, member.file_size


def _read_legacy(file: OpenFile) -> TorchFile:
    """The format before torch 1.6: magic, version, facts, the object, the keys; then each storage behind its length."""
    with file.path.open("rb") as raw:
        stream = Bounded(raw, file.size)
        wanted: dict[str, Storage] = {}

        def persistent(value: Any) -> Storage:
            storage = storage_of(value)
            return wanted.setdefault(storage.key, storage)

        def read() -> Any:
            return PickleReader(TORCH, persistent).read(stream)

        try:
            magic = PickleReader(TORCH, persistent).read(stream)
        except RefusedPickleError:
            magic = None
            raw.seek(0)
            _reading(file, read)
        except BrokenPickleError as error:
            raise _no_checkpoint(file) from error
        if magic != LEGACY_MAGIC:
            raise _no_checkpoint(file)
        _, _, value, keys = (_reading(file, read) for _ in range(4))
        return TorchFile(file, value, _legacy_storages(file, raw.tell(), keys, wanted))


def _legacy_storages(
    file: OpenFile, position: int, keys: Any, wanted: Mapping[str, Storage]
) -> dict[str, tuple[int, int]]:
    places: dict[str, tuple[int, int]] = {}
    for key in keys if isinstance(keys, list) else []:
        storage = wanted.get(key) if isinstance(key, str) else None
        if storage is None:
            raise unreadable(file.path, say("its list of storages is damaged"), COPY_AGAIN)
        length = int.from_bytes(file.read(position, 8), "little")
        size = length * ITEM_BITS[storage.dtype] // 8
        if position + 8 + size > file.size:
            raise unreadable(
                file.path,
                say("it is truncated: a storage of {} bytes ends behind the file's {}", f"{size:,}", f"{file.size:,}"),
                COPY_AGAIN,
            )
        places[key] = (position + 8, size)
        position += 8 + size
    return places


def _no_checkpoint(file: OpenFile) -> CheckpointError:
    return unreadable(
        file.path,
        say("it is neither a file of `torch.save` nor safetensors"),
        say("Name a .pt, .bin or .safetensors file, a folder that holds one, or a capture."),
    )
