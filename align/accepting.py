"""What `align accept` does, as a function of a library: read both runs, compare captures, judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from align.acceptance import Extras, Policy, accept, read_operators, read_policy
from align.acceptance_records import AcceptResult
from align.capture_file import open_capture
from align.curve_files import read_curves
from align.curve_records import CurveKind, Curves, Quantity
from align.errors import CaptureFileError, ComparisonError, UsageError
from align.records import DiffResult
from align.sentences import say, told
from align.tolerance import LIMIT

SIDES = ("reference", "candidate")
Columns = Mapping[Quantity, str]


@dataclass(frozen=True, slots=True)
class Asked:
    """The options of `align accept`.

    `columns` are `QUANTITY=NAME`, for both files or, as `candidate:QUANTITY=NAME`, for one. `floors` are paths.
    `steps` is `A:B`, each of which may be left out.
    """

    policy: str = "default"
    floors: Sequence[str] = ()
    ops: str | None = None
    columns: Sequence[str] = ()
    steps: str = ""
    title: str = ""
    project: str = ""
    made: str = field(default_factory=lambda: datetime.now().astimezone().isoformat(" ", "seconds"))


def accept_files(reference: str, candidate: str, asked: Asked) -> AcceptResult:
    """Judge a candidate's run by the reference's; each is a capture or a log of the loss.

    Raises PolicyError, CurveError, CaptureFileError and ComparisonError for what cannot be read or compared, and
    UsageError for options that cannot be read.
    """
    policy = read_policy(asked.policy)
    steps = read_steps(asked.steps)
    ours, theirs = read_columns(asked.columns)
    operators = None if asked.ops is None else read_operators(asked.ops)
    runs = read_curves(reference, ours), read_curves(candidate, theirs)
    floors = [read_curves(path, ours) for path in asked.floors]
    diff, undiffed = compared(
        runs, [path for path, run in zip(asked.floors, floors, strict=True) if has_tensors(run)], policy
    )
    extras = Extras(undiffed=undiffed, operators=operators, steps=steps, made=asked.made)
    return accept(*runs, policy, floors=floors, diff=diff, title=asked.title, project=asked.project, extras=extras)


def compared(runs: tuple[Curves, Curves], floors: Sequence[str], policy: Policy) -> tuple[DiffResult | None, str]:
    """The comparison of two captures, or why there is none; no reason where a run is no capture."""
    if any(run.kind is not CurveKind.CAPTURE for run in runs):
        return None, ""
    for run, side in zip(runs, SIDES, strict=True):
        if not has_tensors(run):
            return None, say("The capture of the {} holds no tensors, only curves.", say(side))
    # Acceptances of logs do without all that compares captures.
    from align.commands import diff_files

    tensors = policy.setting("tensors")
    limit = tensors.limit if tensors is not None and tensors.limit is not None else LIMIT
    try:
        return diff_files(runs[0].path, runs[1].path, limit=limit, floors=floors), ""
    except ComparisonError as error:
        return None, say("The captures cannot be compared by their tensors: {}", told(error))


def has_tensors(curves: Curves) -> bool:
    """Whether the curves are those of a capture that also holds steps with tensors."""
    if curves.kind is not CurveKind.CAPTURE:
        return False
    from align.commands import one_rank

    try:
        with open_capture(one_rank(curves.path)) as capture:
            return bool(capture.steps)
    except CaptureFileError:
        return False


def read_columns(said: Sequence[str]) -> tuple[Columns, Columns]:
    """Which column is which quantity, for the reference and for the candidate; raises UsageError."""
    columns: dict[str, dict[Quantity, str]] = {side: {} for side in SIDES}
    for text in said:
        left, equals, name = text.partition("=")
        side, colon, quantity = left.rpartition(":")
        known = {str(each): each for each in Quantity}
        if not equals or not name or quantity.strip() not in known or (colon and side.strip() not in SIDES):
            raise UsageError(
                say(
                    "Cannot read the column '{}': write --column QUANTITY=NAME, such as --column loss=train/loss, or "
                    "--column candidate:loss=NAME for one file. Quantities are {}.",
                    text,
                    ", ".join(known),
                )
            )
        for each in [side.strip()] if colon else SIDES:
            columns[each][known[quantity.strip()]] = name
    return columns["reference"], columns["candidate"]


def read_steps(said: str) -> tuple[int | None, int | None]:
    """The bounds of `A:B`, None for one that is left out; raises UsageError."""
    if not said:
        return None, None
    words = said.split(":")
    try:
        bounds = [int(word) if word.strip() else None for word in words]
    except ValueError:
        bounds = []
    if len(bounds) != len(SIDES) or (None not in bounds and bounds[0] >= bounds[1]):  # type: ignore[operator]
        raise UsageError(
            say(
                "Cannot read the steps '{}': write --steps A:B, such as --steps 0:1000 or --steps 100: for all "
                "from step 100 on.",
                said,
            )
        )
    return bounds[0], bounds[1]
