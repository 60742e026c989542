"""What the commands that read captures do, as functions of a library."""

from __future__ import annotations

import gc
import math
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from align import watching
from align.capture_file import Capture, find_ranks, open_capture
from align.checkpoint_records import CheckpointResult
from align.comparison import Walk, compare
from align.diagnosis import diagnose, inspect
from align.errors import NotACaptureFile, UsageError
from align.floor_checks import check_not_perturbed
from align.inspection import RunView
from align.judging import Judging
from align.matching.rules import read_rules
from align.measured_floor import MeasuredFloor, measured_floor
from align.records import DiffResult, InspectResult
from align.replay import judge_replays
from align.replay_checks import replayable_steps
from align.replay_children import Program, keep_folder, replay, temporary_folder
from align.replay_summary import Replayed, check_replay
from align.reports.show import Contents, matches, show_text
from align.requests import is_alive
from align.sentences import say, told
from align.tolerance import LIMIT
from align.watching import Stage

VALUES_SHOWN = 8


def diff_files(
    reference: str, candidate: str, renames: Sequence[str] = (), *, limit: float = LIMIT, floors: Sequence[str] = (),
    map_path: str | None = None,
) -> DiffResult:  # fmt: skip
    """Compare two capture files, or two jobs of equally many ranks, of which the rank that parts first is the result.

    With `floors`, and where only one run has several ranks, rank 0 stands for its job.
    `renames` are `OLD=NEW` pairs; above `limit` times its floor a difference is real. `floors` are captures that show
    what rounding does to the reference: perturbed runs of it, or known-good repeats. `map_path` is a file of rules for
    names. Raises CaptureFileError for a file that cannot be read, ComparisonError for captures that cannot be
    compared, UsageError for a rename or rules that cannot be read.
    """
    pairs = [parse_rename(text) for text in renames]
    rules = read_rules(map_path) if map_path is not None else ()
    sides = all_ranks(reference), all_ranks(candidate)
    if len(sides[0]) == len(sides[1]) > 1 and not floors:
        return earliest(
            diff_files(str(ours), str(theirs), renames, limit=limit, map_path=map_path)
            for ours, theirs in zip(*sides, strict=True)
        )
    watching.begin(Stage.READING)
    with ExitStack() as stack:
        stack.enter_context(_without_collections())
        first, second = (stack.enter_context(_opened(path, reference, candidate)) for path in (reference, candidate))
        check_not_perturbed(first, second)
        others = [stack.enter_context(open_capture(one_rank(path))) for path in floors]
        floor = measured_floor(first, second, others, pairs) if others else None
        walk = compare(first, second, pairs, Judging(limit, floor), rules)
        return diagnose(with_floor(walk, floor) if floor is not None else walk)


def _opened(path: str, reference: str, candidate: str) -> Capture:
    """One of two captures to compare; of a log of the loss the command that reads it is told."""
    try:
        return open_capture(one_rank(path))
    except NotACaptureFile as error:
        # Comparisons of captures do without what reads logs.
        from align.curve_files import holds_loss_curve

        if not holds_loss_curve(path):
            raise
        command = shlex.join(["align", "accept", reference, candidate])
        message = say("{} It holds a loss curve; `{}` compares loss curves.", told(error), command)
        raise NotACaptureFile(message) from error


def earliest(results: Iterable[DiffResult]) -> DiffResult:
    """Of the comparisons of all ranks of two jobs the one that parts first, of equal ones the lowest rank.

    Its findings say which rank it is, where ranks do not part alike.
    """
    ordered = sorted(enumerate(results), key=lambda each: (*_place_in_run(each[1]), each[0]))
    chosen = ordered[0][1]
    counts = {**chosen.counts, "ranks": len(ordered)}
    alone = len({_place_in_run(result) for _, result in ordered}) > 1
    rank = chosen.reference.rank if alone and chosen.first_divergence is not None else None
    findings = tuple(replace(each, where=replace(each.where, rank=rank)) for each in chosen.findings)
    return replace(chosen, counts=counts, findings=findings)


def _place_in_run(result: DiffResult) -> tuple[float, float]:
    """The step and the place in its order at which the runs part; infinite where they do not."""
    first = result.first_divergence
    if first is None:
        return (math.inf, math.inf)
    wanted = first.key
    orders = [each.reference.order for each in result.comparisons if each.key == wanted]
    return (float(first.step), float(min(orders, default=0)))


def inspect_files(path: str) -> InspectResult:
    """Inspect one capture, or all ranks of a job: `run.h5` stands for `run.rank0000.h5` and its sisters.

    Raises CaptureFileError for a file that cannot be read, ComparisonError for a capture that holds nothing.
    """
    with ExitStack() as stack:
        stack.enter_context(_without_collections())
        views = [RunView(stack.enter_context(open_capture(each))) for each in all_ranks(path)]
        _read(views)
        return inspect(views)


def _read(views: Sequence[RunView]) -> None:
    """Have the runs read their steps, which they keep: of large ones that takes a while."""
    watching.begin(Stage.READING, sum(len(view.steps) for view in views))
    for view in views:
        for number in watching.counted(view.steps):
            view.step(number)
    watching.begin(Stage.INSPECTING)


def checkpoint_files(
    reference: str, candidate: str, *, strict: bool = False, allow_cast: bool = False
) -> CheckpointResult:
    """Compare two checkpoints, or a checkpoint with the weights that a captured run began with.

    `strict` makes differences of names, dtypes and layouts count, `allow_cast` lets numbers be rounded. Raises
    CheckpointError or CaptureFileError for what cannot be read.
    """
    # Comparisons of captures, which people wait for more often, do without these.
    from align.checkpoint_files import open_checkpoint
    from align.checkpoints.comparing import compare_checkpoints

    with open_checkpoint(_first_rank(reference)) as ours, open_checkpoint(_first_rank(candidate)) as theirs:
        return compare_checkpoints(ours, theirs, strict=strict, allow_cast=allow_cast)


def _first_rank(path: str) -> str:
    """The path, or rank 0 of a capture where it stands for all ranks."""
    return str(one_rank(path)) if path.endswith(".h5") else path


def replay_files(
    reference: str, candidate: str, program: Program, say: Callable[[str], None], *, keep: str | None = None,
    renames: Sequence[str] = (), map_path: str | None = None,
) -> DiffResult:  # fmt: skip
    """Run a script once by each of two captures, and judge the captures by these replays.

    `keep` is a folder for the replays, which are deleted otherwise. Raises what `diff_files` does, CaptureError where
    a capture cannot be replayed, and ReplayError where the script fails or trains another model.
    """
    paths = (one_rank(reference), one_rank(candidate))
    steps = _replayed_steps(paths, renames, map_path)
    with keep_folder(keep) if keep is not None else temporary_folder() as folder:
        files = (folder / "reference-replay.h5", folder / "candidate-replay.h5")
        for place, (path, file) in enumerate(zip(paths, files, strict=True), 1):
            replay(path, file, program, steps, _told(say, place))
        return judge_replay_files((paths[0], files[0]), (paths[1], files[1]), program.script, renames, map_path)


def _told(say: Callable[[str], None], run: int) -> Callable[[str], None]:
    """`say`, after which a run is being replayed: what is said stands above the line of progress."""

    def told(line: str) -> None:
        watching.end()
        say(line)
        watching.begin(Stage.REPLAYING, parts=2)
        watching.enter(run)

    return told


def _replayed_steps(paths: Sequence[Path], renames: Sequence[str], map_path: str | None) -> int:
    """How many steps of both captures can be replayed; what cannot be compared need not be run."""
    rules = read_rules(map_path) if map_path is not None else ()
    with open_capture(paths[0]) as first, open_capture(paths[1]) as second:
        steps = min(len(replayable_steps(capture)) for capture in (first, second))
        compare(first, second, [parse_rename(text) for text in renames], rules=rules)
    return steps


def judge_replay_files(
    reference: tuple[Path, Path], candidate: tuple[Path, Path], script: str, renames: Sequence[str] = (),
    map_path: str | None = None,
) -> DiffResult:  # fmt: skip
    """Judge two captures by replays that are there, each given as (capture, replay); raises what `replay_files` does.

    `script` is what was run, for what is said where it trains another model.
    """
    rules = read_rules(map_path) if map_path is not None else ()
    with ExitStack() as stack:
        stack.enter_context(_without_collections())
        opened = [stack.enter_context(open_capture(path)) for path in (*reference, *candidate)]
        sides = (Replayed(*opened[:2]), Replayed(*opened[2:]))
        for side in sides:
            check_replay(side, script)
        walk = compare(opened[0], opened[2], [parse_rename(text) for text in renames], rules=rules)
        return diagnose(judge_replays(walk, *sides))


@contextmanager
def _without_collections() -> Iterator[None]:
    """A comparison makes records by the ten thousand and no cycles; looking for those took a tenth of its time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def with_floor(walk: Walk, floor: MeasuredFloor) -> Walk:
    """A walk that says which floor it was held against."""
    method = say("{}, statistics only", floor.method) if walk.statistics_only else floor.method
    notes = (*walk.notes, *floor.notes, *floor.uncovered(walk.comparisons))
    return replace(walk, notes=notes, resolution=replace(walk.resolution, floor_method=method))


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

    `=NEW` puts a prefix before all names of the reference, `OLD=` takes one away. A dot at the end of a name and
    blanks around it are left out.
    """
    old, equals, new = text.partition("=")
    old, new = old.strip().rstrip("."), new.strip().rstrip(".")
    if not equals or not (old or new):
        raise UsageError(
            say(
                "Cannot read the rename '{}': write --rename OLD=NEW, such as --rename model.h=model.layers, or "
                "--rename =net to put 'net.' before every name of the reference.",
                text,
            )
        )
    return old, new


def one_rank(path: str) -> Path:
    """The file itself, or rank 0 where `run.h5` stands for `run.rank0000.h5` and its sisters."""
    if Path(path).exists():
        return Path(path)
    ranks = find_ranks(path)
    return ranks[0] if ranks else Path(path)


def all_ranks(path: str) -> list[Path]:
    """The file itself, or all ranks of a job where `run.h5` stands for `run.rank0000.h5` and its sisters."""
    if Path(path).exists():
        return [Path(path)]
    return find_ranks(path) or [Path(path)]
