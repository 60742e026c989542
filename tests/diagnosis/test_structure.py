"""AL105: what only one run has, what only one capture kept, and where that is the cause."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from align import wording
from align.commands import parse_rename
from align.diagnosis import telling
from align.errors import UsageError
from align.matching.rules import renamed
from align.records import DiffResult, ModuleInfo, Phase, RunInfo, Severity, Status, TensorKey, TensorRecord, Verdict
from align.reports.text import diff_text
from tests.builders import diff_files, record_of, write_capture
from tests.numpy_run import Model, Setup, make
from tests.said import told

RANDOM = np.random.default_rng(0)
X, Y, Z = (RANDOM.normal(size=(64, 64)).astype(np.float32) for _ in range(3))


class _LayersOf(NamedTuple):
    """Which layers of a list run, and which have weights."""

    run: Sequence[int]
    owned: Sequence[int] = range(4)


def _seen(name: str, slot: str, array: np.ndarray, within: str = "") -> TensorRecord:
    return record_of(TensorKey(0, Phase.FORWARD, name, slot), array, within=within)


def _initial(**matrices: np.ndarray) -> list[TensorRecord]:
    return [record_of(TensorKey(-1, Phase.INIT, name, "weight"), matrix) for name, matrix in matrices.items()]


def test_another_number_of_parameters_is_no_other_seed(tmp_path: Path) -> None:
    seeds = RunInfo(seeds={"torch": 0})
    output = {0: [_seen("head", "output.0", X)]}
    reference = write_capture(tmp_path / "a.h5", {-1: _initial(emb=X, head=Y), **output}, run=seeds)
    candidate = write_capture(tmp_path / "b.h5", {-1: _initial(emb=X, extra=Y, head=Z), **output}, run=seeds)
    result = diff_files(reference, candidate)
    assert told(result) == [
        ("structure-differs", Severity.ERROR),
        ("initial-weights-differ", Severity.ERROR),
    ]
    assert result.summary == (
        "The structure of the runs differs: 1 name only in the candidate (such as extra). Parameters that only one run "
        "has draw random numbers too, so all that are drawn after them differ, with the same seed. No module was "
        "judged."
    )


def test_other_seeds_are_told_beside_other_parameters(tmp_path: Path) -> None:
    output = {0: [_seen("head", "output.0", X)]}
    ours, theirs = (RunInfo(seeds={"torch": seed}) for seed in (0, 1))
    reference = write_capture(tmp_path / "a.h5", {-1: _initial(emb=X, head=Y), **output}, run=ours)
    candidate = write_capture(tmp_path / "b.h5", {-1: _initial(emb=X, extra=Y, head=Z), **output}, run=theirs)
    assert diff_files(reference, candidate).findings[0].label == "seed-mismatch"


def _with_extra(path: Path, *, extra: bool, weight: bool = True) -> Path:
    shifted = X + 1 if extra else X
    more = [_seen("extra", "output.0", shifted, "<Net>")] if extra else []
    records = [
        _seen("<Net>", "input.0", X),
        _seen("pos", "input.0", X, "<Net>"),
        _seen("pos", "output.0", X, "<Net>"),
        *more,
        _seen("block", "input.0", shifted, "<Net>"),
    ]
    initial = _initial(pos=X, extra=Y) if extra and weight else _initial(pos=X)
    return write_capture(path, {-1: initial, 0: records})


def test_a_module_that_only_one_run_has_is_named_where_it_runs(tmp_path: Path) -> None:
    result = diff_files(_with_extra(tmp_path / "a.h5", extra=False), _with_extra(tmp_path / "b.h5", extra=True))
    evidence = result.first_divergence
    assert evidence is not None
    assert [finding.label for finding in result.findings] == ["structure-differs", "origin-functional"]
    start, end = result.summary.split(" (relative L2 ")
    assert start == "Step 0, forward: block input.0 is the first tensor that differs"
    assert end.partition("), ")[2] == (
        "and the code of <Net> between pos and block, which makes it, runs extra in the candidate only. The structure "
        "of the runs differs: 1 name only in the candidate (such as extra)."
    )


def test_a_module_without_parameters_is_no_more_than_a_hint(tmp_path: Path) -> None:
    candidate = _with_extra(tmp_path / "b.h5", extra=True, weight=False)
    result = diff_files(_with_extra(tmp_path / "a.h5", extra=False), candidate)
    assert told(result) == [
        ("origin-functional", Severity.ERROR),
        ("structure-differs", Severity.WARNING),
    ]
    assert result.findings[1].summary.endswith(
        "and the code of <Net> between pos and block, which makes it, runs extra in the candidate only."
    )


def _layers(path: Path, numbers: Sequence[int], owned: Sequence[int] = range(4)) -> Path:
    """A capture of a list of layers, of which those with these numbers run; the list itself is never called."""
    now, records = X, [_seen("<Net>", "input.0", X)]
    for number in numbers:
        name, after = f"layers.{number}", (now + number + 1).astype(np.float32)
        records += [
            _seen(name, "input.0", now, "<Net>"),
            _seen(f"{name}.proj", "input.0", now, name),
            _seen(f"{name}.proj", "output.0", after, name),
            _seen(name, "output.0", after, "<Net>"),
        ]
        now = after
    records += [_seen("norm", "input.0", now, "<Net>"), _seen("norm", "output.0", now, "<Net>")]
    return write_capture(path, {-1: _initial(**{f"layers.{number}.proj": Y for number in owned}), 0: records})


@pytest.mark.parametrize(
    ("ours", "theirs", "place", "told"),
    [
        pytest.param(
            _LayersOf(range(4)), _LayersOf(range(3), range(3)), "norm input.0",
            "the code of <Net> between layers.2 and norm, which makes it, runs layers.3 in the reference only.",
            id="one fewer",
        ),
        pytest.param(
            _LayersOf(range(3), range(3)), _LayersOf(range(4)), "norm input.0",
            "the code of <Net> between layers.2 and norm, which makes it, runs layers.3 in the candidate only.",
            id="one more",
        ),
        pytest.param(
            _LayersOf(range(4)), _LayersOf((0, 2, 3)), "layers.2 input.0",
            "the code of <Net> between layers.0 and layers.2, which makes it, runs layers.1 in the reference only.",
            id="skipped",
        ),
    ],
)  # fmt: skip
def test_a_layer_that_only_one_run_calls_is_named(
    tmp_path: Path, ours: _LayersOf, theirs: _LayersOf, place: str, told: str
) -> None:
    result = diff_files(_layers(tmp_path / "a.h5", *ours), _layers(tmp_path / "b.h5", *theirs))
    assert [finding.label for finding in result.findings][:2] == ["structure-differs", "origin-functional"]
    start, _, end = result.summary.partition(" (relative L2 ")
    assert start == f"Step 0, forward: {place} is the first tensor that differs"
    assert end.partition("), and ")[2].startswith(f"{told} The structure of the runs differs: ")


def _kept(path: Path, names: Sequence[str], phases: tuple[str, ...] = ()) -> Path:
    modules = [ModuleInfo(name, "Linear") for name in ("a", "b", "c")]
    records = [_seen(name, slot, X) for name in names for slot in ("input.0", "output.0")]
    return write_capture(path, {0: records}, modules=modules, run=RunInfo(phases=phases))


def test_other_options_of_capture_are_no_difference_of_the_runs(tmp_path: Path) -> None:
    result = diff_files(_kept(tmp_path / "a.h5", "abc"), _kept(tmp_path / "b.h5", "b"))
    assert told(result) == [
        ("structure-differs", Severity.NOTE),
        ("within-noise", Severity.NOTE),
    ]
    assert result.findings[0].summary == (
        "The captures kept different things, with other options: 2 modules only of the reference (such as a). This "
        "part was not compared; it is no difference between the runs."
    )
    assert result.findings[0].advice == ("Capture both runs with the same --modules and --phases to compare all of it.")


def _largest(result: DiffResult) -> TensorKey:
    judged = [each for each in result.comparisons if each.status is Status.WITHIN and each.limit]
    return max(judged, key=lambda each: (each.times_floor or 0.0) / each.limit).key


def test_what_was_not_captured_on_both_sides_is_told(tmp_path: Path) -> None:
    reference = make(tmp_path / "a.h5", run=RunInfo(phases=("init", "forward", "backward", "param")))
    others = frozenset(Phase) - {Phase.FORWARD}
    candidate = make(tmp_path / "b.h5", pieces=4, drop=others, run=RunInfo(phases=("init", "forward")))
    result = diff_files(reference, candidate)
    evidence = result.findings[-1].evidence
    assert result.summary == (
        f"Aligned: {evidence['judged']} tensors over step 0 stay below the limit of 7x the floor; the largest is "
        f"{wording.times(evidence['largest_times_floor'])} at {telling.tensor(_largest(result))}. Step 1 could not be "
        "judged. Gradients were not compared."
    )
    assert result.findings[0].summary == (
        "The captures kept different things, with other options: the phases backward and param only of the reference. "
        "This part was not compared; it is no difference between the runs."
    )


def test_a_share_too_small_is_not_called_aligned(tmp_path: Path) -> None:
    def capture(path: Path) -> Path:
        odd = [_seen(f"m{number}", "output.0", np.full((8, 8), np.nan, np.float32)) for number in range(20)]
        return write_capture(path, {0: [_seen("a", "output.0", X), *odd]})

    result = diff_files(capture(tmp_path / "a.h5"), capture(tmp_path / "b.h5"))
    assert result.verdict is Verdict.INCOMPARABLE
    assert result.findings[-1].summary == "Only 1 tensor of step 0 could be judged; it agrees."


# Renames


@pytest.mark.parametrize(
    ("text", "name", "new"),
    [
        ("=net", "blocks.0", "net.blocks.0"),
        ("=net.", "blocks.0", "net.blocks.0"),
        ("=net.", "<GPT>", "net"),
        ("net=", "net.blocks.0", "blocks.0"),
        ("net.=", "net", "net"),
        ("h=layers", "h.0", "layers.0"),
    ],
)
def test_a_prefix_is_put_before_all_names_or_taken_away(text: str, name: str, new: str) -> None:
    assert renamed(name, [parse_rename(text)]) == new


@pytest.mark.parametrize("text", ["=", "net", ".=."])
def test_a_rename_without_names_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_rename(text)
    assert str(caught.value) == (
        f"Cannot read the rename '{text}': write --rename OLD=NEW, such as --rename model.h=model.layers, or --rename "
        "=net to put 'net.' before every name of the reference."
    )


def test_one_rename_pairs_a_wrapped_model(tmp_path: Path) -> None:
    class Wrapped(Model):
        def _name(self, name: str) -> str:
            return {"": "", "<Net>": "net", "tokens": "tokens", "loss": "loss"}.get(name, f"net.{name}")

    candidate = Wrapped(Setup(pieces=4)).write(tmp_path / "b.h5")
    result = diff_files(make(tmp_path / "a.h5"), candidate, renames=[parse_rename("=net")])
    assert result.verdict is Verdict.ALIGNED
    assert not result.only_reference


# What the report says around it


def test_one_file_compared_with_itself_is_remarked_on(tmp_path: Path) -> None:
    path = make(tmp_path / "a.h5")
    assert "\nnote: Reference and candidate are the same file.\n" in diff_text(diff_files(path, path))


def test_a_copy_of_a_run_is_remarked_on(tmp_path: Path) -> None:
    run = RunInfo(outcome="finished", started="2024-05-01 10:00:00")
    result = diff_files(make(tmp_path / "a.h5", run=run), make(tmp_path / "b.h5", run=run))
    assert "\nnote: Reference and candidate are captures of one and the same run.\n" in diff_text(result)
    other = make(tmp_path / "c.h5", run=replace(run, started="2024-05-01 10:00:01"))
    assert "one and the same run" not in diff_text(diff_files(tmp_path / "a.h5", other))


def test_integers_that_differ_are_shown_as_such(tmp_path: Path) -> None:
    result = diff_files(make(tmp_path / "a.h5"), make(tmp_path / "b.h5", data_seed=5))
    row = next(line for line in diff_text(result).splitlines() if line.startswith(">"))
    assert row.split() == [">", "0", "input", "tokens", "value", "differs", "origin"]


def test_the_rows_closest_to_their_limits_are_shown(tmp_path: Path) -> None:
    result = diff_files(make(tmp_path / "a.h5"), make(tmp_path / "b.h5", pieces=4))
    lines = diff_text(result).splitlines()
    rows = lines[lines.index("Closest to the limit") + 2 :][:9]
    times = [float(row.split()[-2].removesuffix("x")) for row in rows]
    assert times == sorted(times, reverse=True)
    key = _largest(result)
    assert rows[0].split()[:4] == [str(key.step), str(key.phase), key.name, key.slot]


def test_one_count_of_what_inherits_a_difference(tmp_path: Path) -> None:
    faults = {(0, "forward head"): lambda a: a * np.nan}
    result: DiffResult = diff_files(make(tmp_path / "a.h5", steps=1), make(tmp_path / "b.h5", steps=1, faults=faults))
    text = diff_text(result)
    assert "later tensors differ because of it" not in text
    assert text.count("only carry it on") == 1
