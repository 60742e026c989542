"""Opens a checkpoint, whatever it is: a file, an index with its shards, a folder, or the weights a run began with."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from align.capture_file import Capture, open_capture
from align.checkpoint_files.entries import ITEM_BITS, Checkpoint, Entry
from align.checkpoint_files.folders import find_checkpoint
from align.checkpoint_files.safetensors_file import LARGEST_HEADER, LENGTH_BYTES, read_safetensors, unique
from align.checkpoint_files.spans import COPY_AGAIN, CaptureSpan, OpenFile, unreadable
from align.checkpoint_files.state import read_state
from align.checkpoint_files.torch_file import ZIP_SIGNATURE, read_torch
from align.records import INIT_STEP, Phase, TensorRecord
from align.sentences import joined, say, told

HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"
LFS_SIGNATURE = b"version https://git-lfs.github.com/spec/"
LARGEST_INDEX = 1 << 28
CONFLICT = re.compile(r"^(<{7}|={7}|>{7})( |$)", re.MULTILINE)
HEAD = 512


@contextmanager
def open_checkpoint(path: str | os.PathLike[str]) -> Iterator[Checkpoint]:
    """Open a checkpoint for as long as the block runs; raises CheckpointError or CaptureFileError in a sentence."""
    target = Path(path)
    with ExitStack() as stack:
        if os.path.isdir(target):  # noqa: PTH112 - Path.is_dir raises where a name is too long
            found = find_checkpoint(target)
            checkpoint = _open_file(found.main, str(path), stack)
            optimizers = dict(checkpoint.optimizers)
            if found.optimizer is not None:
                optimizers |= _open_file(found.optimizer, str(found.optimizer), stack).optimizers
            notes = (*checkpoint.notes, *found.notes)
            yield Checkpoint(
                str(path), checkpoint.what, checkpoint.entries, optimizers, checkpoint.others, notes,
                checkpoint.is_capture,
            )  # fmt: skip
        else:
            yield _open_file(target, str(path), stack)


def _open_file(target: Path, path: str, stack: ExitStack) -> Checkpoint:
    if not os.path.exists(target):  # noqa: PTH110 - as above
        raise unreadable(path, say("there is no such file or folder"), say("Check the path."))
    if not target.is_file():
        raise unreadable(path, say("it is neither a file nor a folder"), say("Name a checkpoint."))
    file = OpenFile(target)
    stack.callback(file.close)
    head = file.read(0, HEAD)
    if head.startswith(HDF5_SIGNATURE):
        return _of_capture(stack.enter_context(open_capture(target)), path)
    _check_head(file, head)
    if target.suffix == ".json" or (head.lstrip()[:1] == b"{" and target.suffix != ".safetensors"):
        return _of_index(file, path, stack)
    if _is_safetensors(head, target.suffix):
        entries = read_safetensors(file)
        if not entries:
            raise unreadable(path, say("there is no tensor in it"), say("Name a file with weights."))
        return Checkpoint(path, "safetensors", entries)
    state = read_state(path, read_torch(file))
    return Checkpoint(path, "torch", state.entries, state.optimizers, state.others)


def _is_safetensors(head: bytes, suffix: str) -> bool:
    """By what the file holds: the length of a header of 1,152 bytes begins as a pickle does."""
    if head.startswith(ZIP_SIGNATURE):
        return False
    if (
        head[LENGTH_BYTES : LENGTH_BYTES + 1] == b"{"
        and int.from_bytes(head[:LENGTH_BYTES], "little") <= LARGEST_HEADER
    ):
        return True
    is_pickle = head[:1] == b"\x80" and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05")
    return suffix == ".safetensors" and not is_pickle


def _check_head(file: OpenFile, head: bytes) -> None:
    """Say what a file is that is often found in the place of weights."""
    if not head:
        raise unreadable(file.path, say("it is empty"), say("Save or download it again."))
    if head.startswith(LFS_SIGNATURE):
        size = re.search(rb"^size (\d+)$", head, re.MULTILINE)
        what = (
            say("it is a Git LFS pointer to a file of {} bytes, not the file", f"{int(size[1]):,}")
            if size is not None and len(size[1]) < 20  # noqa: PLR2004 - digits
            else say("it is a Git LFS pointer to a file, not the file")
        )
        raise unreadable(
            file.path, what,
            say("Run `git lfs pull` in its repository, or download the file itself."),
        )  # fmt: skip
    if re.match(rb"\s*(<!doctype html|<html|<\?xml)", head, re.IGNORECASE):
        raise unreadable(
            file.path, say("it is a web page, such as an error of the server it was downloaded from"),
            say("Download it again and look at the page in a browser: it may ask to log in."),
        )  # fmt: skip
    if not head.strip(b"\0"):
        raise unreadable(file.path, say("it begins with zeros only: it was not written to its end"), COPY_AGAIN)


def _of_index(file: OpenFile, path: str, stack: ExitStack) -> Checkpoint:
    """The shards that an index of Hugging Face names."""
    mapping = _read_index(file)
    folder = file.path.parent
    shards = sorted(set(mapping.values()))
    missing = [shard for shard in shards if not os.path.isfile(folder / shard)]  # noqa: PTH113 - a name may be too long
    if missing:
        raise unreadable(
            path, say("{} of its {} shards are not there: {}", len(missing), len(shards), _some(missing)),
            say("Download them into the folder of the index."),
        )  # fmt: skip
    opened = {shard: _open_file(folder / shard, str(folder / shard), stack).entries for shard in shards}
    absent = [name for name, shard in mapping.items() if name not in opened[shard]]
    if absent:
        raise unreadable(
            path,
            say(
                "{} of its {} tensors are not in the shards that it names: {}",
                len(absent),
                len(mapping),
                _some(absent),
            ),
            say("Index and shards are of different savings: take all of them from one."),
        )
    unlisted = [name for shard in shards for name in opened[shard] if mapping.get(name) != shard]
    notes = []
    if unlisted:
        notes.append(
            say(
                "The index leaves out {} tensors of its shards, which are not loaded: {}.",
                len(unlisted),
                _some(unlisted),
            )
        )
    entries = {name: opened[shard][name] for name, shard in mapping.items()}
    kind = "safetensors" if all(shard.endswith(".safetensors") for shard in shards) else "torch"
    return Checkpoint(path, say("{}, {} files", kind, len(shards)), entries, notes=notes)


def _read_index(file: OpenFile) -> dict[str, str]:
    """The table `weight_map` of an index: tensor -> shard."""
    if file.size > LARGEST_INDEX:
        raise unreadable(
            file.path, say("an index of {} bytes is none", f"{file.size:,}"), say("Name the index of a checkpoint.")
        )
    try:
        text = file.read(0, file.size).decode("utf-8")
    except UnicodeDecodeError as error:
        raise unreadable(file.path, say("it is no text, so no index"), COPY_AGAIN) from error
    if CONFLICT.search(text):
        raise unreadable(
            file.path, say("it holds the marks of an unfinished merge (<<<<<<<, >>>>>>>)"),
            say("Finish the merge, or take the index of one side whole."),
        )  # fmt: skip
    try:
        index = json.loads(text, object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        raise unreadable(file.path, say("it is no whole JSON ({})", told(error, 80)), COPY_AGAIN) from error
    mapping = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(mapping, dict) or not mapping:
        raise unreadable(
            file.path, say("it has no table 'weight_map', so it is no index of a checkpoint"),
            say("Name a .index.json file, a file with weights, or the folder."),
        )  # fmt: skip
    for name, shard in mapping.items():
        if not isinstance(shard, str) or shard != Path(shard).name or shard in ("", ".", ".."):
            raise unreadable(
                file.path,
                say("it says that '{}' is in {}, which is no file beside it", name[:100], repr(str(shard)[:100])),
                COPY_AGAIN,
            )
        if shard.endswith(".json"):
            raise unreadable(
                file.path, say("it names the shard '{}', which is no file of weights", shard[:100]), COPY_AGAIN
            )
    return mapping


def _some(names: list[str]) -> str:
    shown = joined(", ", (name[:100] for name in names[:3]))
    return say("{} and {} more", shown, len(names) - 3) if len(names) > 3 else shown  # noqa: PLR2004 - as many as shown


def _of_capture(capture: Capture, path: str) -> Checkpoint:
    """The parameters and buffers that a run began with."""
    records = [record for record in (capture.records(INIT_STEP) if capture.has_init else ()) if _is_initial(record)]
    if not records:
        raise unreadable(
            path, say("this capture has no initial weights (phase init)"),
            say("Capture with `init` in --phases, or without --phases; --keep init keeps the values, too."),
        )  # fmt: skip
    by_order = {record.order: record for record in records}
    entries: dict[str, Entry] = {}
    names: dict[int, str] = {}
    for record in records:
        name = _name_of(record)
        names[record.order] = name
        first = by_order.get(record.same_as) if record.same_as is not None else None
        holder = first if first is not None and not record.has_values else record
        span = CaptureSpan(capture.value_source(holder)) if holder.has_values else None
        why = "" if span is not None else "the capture kept no values; --keep init keeps them"
        tied = names.get(first.order, "") if first is not None else ""
        entries[name] = Entry(name, record.dtype, record.shape, span, record, why, Path(path).name, tied)
    return Checkpoint(path, "capture, the weights before step 0", entries, is_capture=True)


def _is_initial(record: TensorRecord) -> bool:
    return record.key.phase is Phase.INIT and record.dtype in ITEM_BITS


def _name_of(record: TensorRecord) -> str:
    """The name in a state dict: the root's own parameters have no module in front."""
    name = record.key.name
    root = re.fullmatch(r"<[^>]*>", name)
    return record.key.slot if root or not name else f"{name}.{record.key.slot}"
