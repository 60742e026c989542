"""Opens whatever holds the curves of a run: what it is follows from its content."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from align.capture_file import find_ranks
from align.curve_files.building import build_curves
from align.curve_files.captures import read_capture
from align.curve_files.choosing import choose
from align.curve_files.delimited import form_of, read_table
from align.curve_files.event_files import is_event_file, read_events
from align.curve_files.folders import files_of
from align.curve_files.logs import read_log
from align.curve_files.names import asked_for, is_of_use
from align.curve_files.objects import ARRAY, HISTORY, objects_of_lines, objects_of_text, read_documents, read_objects
from align.curve_files.source import HEAD, Source, encoding_of, head_of
from align.curve_files.tables import Table
from align.curve_records import CurveKind, Curves, Quantity
from align.errors import CurveError
from align.sentences import say

_HDF5 = b"\x89HDF\r\n\x1a\n"
_ARRAY = re.compile(r"\s*\[\s*(?:[{\]]|\[\s*[-+\d.])")
_JSON_SHARE = 0.5
_CONTROL_SHARE, _UNKNOWN_SHARE, _MANY_CONTROLS = 0.01, 0.2, 0.1
"""Bytes that are no text have many control characters, or some among many bytes that are no UTF-8. A text in another
encoding, such as GBK, has none."""
_BLOCK = 1 << 20
_TEXT_CONTROLS = frozenset("\t\n\r\f\x1b\b\0")


def read_curves(path: str, columns: Mapping[Quantity, str] | None = None) -> Curves:
    """The curves of a run from a capture, a table, JSON, TensorBoard, the state of a Trainer, or a log.

    `columns` names columns that are to be taken; the others are chosen by their names. A folder stands for the event
    files of TensorBoard or the file of a trainer in it, `run.h5` for `run.rank0000.h5`. Raises CurveError for what
    holds no loss, or more than one, CaptureFileError for a capture that is damaged.
    """
    asked = dict(columns or {})
    if not path:
        message = say("Cannot read a run: the name of the file is empty. Name a file.")
        raise CurveError(message)
    files = _files(path)
    head = head_of(files[0])
    if not head:
        raise CurveError(say("Cannot read '{}': it is empty. Name a file that a training has written to.", path))
    digest = hashlib.sha256()
    if head.startswith(_HDF5):
        with files[0].open("rb") as stream:
            while block := stream.read(_BLOCK):
                digest.update(block)
        return read_capture(files[0], path, asked, digest.hexdigest())
    sources = [Source(file, digest) for file in files]
    table = _read(sources, head, path, asked)
    remarks = tuple(remark for source in sources for remark in source.remarks())
    if not table.count:
        raise CurveError(say("Cannot find a loss in '{}': {}", path, _without_rows(table.kind)))
    table = replace(table, notes=(*remarks, *table.notes))
    return build_curves(table, choose(table, asked, path), path, digest.hexdigest())


def _files(path: str) -> list[Path]:
    """The files to read, in order."""
    if os.path.isdir(path):  # noqa: PTH112 - Path.is_dir raises where a name is too long
        try:
            return files_of(Path(path))
        except OSError as error:
            reason = os.strerror(error.errno or 0).lower()
            raise CurveError(say("Cannot read the folder '{}': {}. Check who owns it.", path, reason)) from error
    if not os.path.exists(path):  # noqa: PTH110 - as above
        return find_ranks(path)[:1] or [Path(path)]
    return [Path(path)]


def _without_rows(kind: CurveKind) -> str:
    if kind is CurveKind.LOG:
        return say(
            "no line holds a number behind the word loss. Name another file, or a column with --column loss=NAME."
        )
    return say("it has no rows. Name another file.")


def _read(sources: list[Source], head: bytes, path: str, asked: Mapping[Quantity, str]) -> Table:
    """The table that the files hold."""
    wanted = _wanted(asked)
    if is_event_file(head):
        return read_events(sources, wanted)
    encoding = encoding_of(head)
    text = head.decode(encoding, "replace").lstrip("\ufeff").replace("\0", "").replace("\r\n", "\n").replace("\r", "\n")
    _check_text(text, path)
    source = sources[0]
    lines = text.split("\n")
    lines = lines[:-1] if len(head) >= HEAD and len(lines) > 1 else lines
    reader = _json_reader(text, lines)
    if reader is not None:
        return reader(source, encoding, wanted)
    form = form_of(lines)
    if form is not None:
        return read_table(source, source.lines(encoding), form, wanted)
    return read_log(source, encoding, wanted, frozenset(asked.values()))


def _wanted(asked: Mapping[Quantity, str]) -> Callable[[str], bool]:
    """Which columns are kept: those whose names say that they may be of use, and those that the user names."""
    return lambda name: (
        is_of_use(name) or name.startswith("column ") or any(asked_for(name, text) for text in asked.values())
    )


def _check_text(text: str, path: str) -> None:
    """Raise CurveError for what is no text."""
    if not text.strip():
        raise CurveError(say("Cannot read '{}': it begins with zeros or blanks only. Copy it again.", path))
    controls = sum(letter < " " and letter not in _TEXT_CONTROLS for letter in text)
    unknown = text.count("\ufffd")
    mostly = controls > _CONTROL_SHARE * len(text) and unknown > _UNKNOWN_SHARE * len(text)
    if mostly or controls > _MANY_CONTROLS * len(text) or text.startswith("PK\x03\x04"):
        raise CurveError(
            say(
                "Cannot read '{}': it is neither text, nor a capture, nor an event file of TensorBoard. Name a "
                "file that holds a loss for each step, such as a log, a CSV file or trainer_state.json.",
                path,
            )
        )


Reader = Callable[[Source, str, Callable[[str], bool]], Table]


def _json_reader(text: str, lines: list[str]) -> Reader | None:
    """How to read a text that is JSON, None for any other."""
    if _ARRAY.match(text):
        return _read_array
    if not text.lstrip().startswith("{") and not any(line.lstrip().startswith('{"') for line in lines):
        return None
    filled = [line for line in lines if line.strip()]
    parsed = sum(_is_object(line) for line in filled)
    if parsed and parsed >= _JSON_SHARE * len(filled):
        if parsed > 1:
            return _read_lines
        return _read_history if HISTORY.search(text) else _reader_of_one(filled)
    if not re.match(r'\s*\{\s*(?:"|\})', text):
        return None
    return _read_history if HISTORY.search(text) else _read_documents


def _reader_of_one(filled: list[str]) -> Reader:
    """How to read a single object on a line of its own: it is a row, or holds lists of rows or columns."""
    held = [value for line in filled if _is_object(line) for value in json.loads(line).values()]
    return _read_documents if any(isinstance(value, (list, dict)) for value in held) else _read_lines


def _is_object(line: str) -> bool:
    try:
        return line.lstrip().startswith("{") and isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _read_array(source: Source, encoding: str, wanted: Callable[[str], bool]) -> Table:
    return read_objects(objects_of_text(source, source.text(encoding), ARRAY), CurveKind.JSON, wanted)


def _read_history(source: Source, encoding: str, wanted: Callable[[str], bool]) -> Table:
    return read_objects(objects_of_text(source, source.text(encoding), HISTORY), CurveKind.TRAINER_STATE, wanted)


def _read_lines(source: Source, encoding: str, wanted: Callable[[str], bool]) -> Table:
    objects: Iterator[object] = objects_of_lines(source, source.lines(encoding))
    return read_objects(objects, CurveKind.JSON_LINES, wanted)


def _read_documents(source: Source, encoding: str, wanted: Callable[[str], bool]) -> Table:
    return read_documents(source, source.text(encoding), wanted)
