"""What the commands that read captures do, as functions of a library."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from align.capture_file import Capture, find_ranks, open_capture
from align.comparison import compare
from align.diagnosis import diagnose
from align.errors import UsageError
from align.records import DiffResult
from align.reports.show import Contents, matches, show_text
from align.requests import is_alive

VALUES_SHOWN = 8


def diff_files(reference: str, candidate: str, renames: Sequence[str] = ()) -> DiffResult:
    """Compare two capture files.

    `renames` are `OLD=NEW` pairs. Raises CaptureFileError for a file that cannot be read, ComparisonError for
    captures that cannot be compared, UsageError for a rename that cannot be read.
    """
    pairs = [parse_rename(text) for text in renames]
    with ExitStack() as stack:
        first = stack.enter_context(open_capture(one_rank(reference)))
        second = stack.enter_context(open_capture(one_rank(candidate)))
        return diagnose(compare(first, second, pairs))


def show_file(path: str, names: Sequence[str] = ()) -> str:
    """What a capture holds, as text; with names (globs), the tensors of those modules."""
    with open_capture(one_rank(path)) as capture:
        contents = contents_of(capture)
        return show_text(replace(contents, values=first_values(capture, contents, names)), names)


def first_values(
    capture: Capture, contents: Contents, names: Sequence[str]
) -> dict[tuple[int, int], list[float | complex]]:
    """The first values of the tensors that match, where the capture kept them, in logical order."""
    return {
        (step, record.order): capture.values(record).reshape(-1)[:VALUES_SHOWN].tolist()
        for step, records in contents.records.items()
        for record in records
        if record.has_values and any(matches(record.key, name) for name in names)
    }


def contents_of(capture: Capture) -> Contents:
    """A whole capture as records."""
    return Contents(
        path=str(capture.path),
        run=capture.run,
        modules=capture.modules,
        records={step: capture.records(step) for step in ([-1] if capture.has_init else []) + capture.steps},
        timeline=capture.timeline,
        facts={step: capture.facts(step) for step in capture.steps},
        alive=is_alive(capture.run) if capture.unfinished else None,
    )


def parse_rename(text: str) -> tuple[str, str]:
    """Read `OLD=NEW`; raises UsageError for anything else.

    `=NEW` puts a prefix before all names of the reference, `OLD=` takes one away. A dot at the end of a name is left
    out.
    """
    old, equals, new = text.partition("=")
    old, new = old.rstrip("."), new.rstrip(".")
    if not equals or not (old or new):
        raise UsageError(
            f"Cannot read the rename '{text}': write --rename OLD=NEW, such as --rename model.h=model.layers, or "
            "--rename =net to put 'net.' before every name of the reference."
        )
    return old, new


def one_rank(path: str) -> Path:
    """The file itself, or rank 0 where `run.h5` stands for `run.rank0000.h5` and its sisters."""
    if Path(path).exists():
        return Path(path)
    ranks = find_ranks(path)
    return ranks[0] if ranks else Path(path)
