"""The ways people really train: captured unmodified, changed in nothing, and the capture says what happened.

The scripts are those of `fixtures/workloads/ways`; `tests/ways.py` has the table of what each must leave in its file.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from align.capture_file import Capture, open_capture
from align.records import Phase, Verdict
from tests.running import diff, python
from tests.saved_states import differing_parts
from tests.ways import DETAILS, DISTRIBUTED, TABLE, Said, Way, run_all

torch = pytest.importorskip("torch")
for needed in ("transformers", "accelerate", "lightning"):
    if find_spec(needed) is None:  # only the scripts import them: it takes seconds
        pytest.skip(f"{needed} is not installed", allow_module_level=True)

CASES = [*((name, 0) for name in TABLE), *((name, rank) for name in DISTRIBUTED for rank in range(2))]
OWNED = (Phase.PARAM, Phase.GRADIENT, Phase.UPDATE)


@dataclass(frozen=True)
class Results:
    """Where the captures are, and what was said in each process while they were made."""

    folder: Path
    alone: dict[tuple[str, str], Said]
    together: list[dict[tuple[str, str], Said]]

    def way(self, name: str) -> Way:
        return TABLE.get(name) or DISTRIBUTED[name]

    def said(self, name: str, rank: int, detail: str) -> Said:
        return (self.alone if name in TABLE else self.together[rank])[name, detail]

    def file(self, name: str, rank: int, detail: str) -> Path:
        return self.folder / (f"{name}.{detail}.h5" if name in TABLE else f"{name}.{detail}.rank{rank:04d}.h5")

    def saved(self, name: str, rank: int, detail: str) -> Path:
        return self.folder / (f"{name}.{detail}" if name in TABLE else f"{name}.{detail}.rank{rank}")

    def opened(self, name: str, rank: int, detail: str = "sketch") -> Capture:
        return open_capture(self.file(name, rank, detail))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("ways")
    [alone] = run_all(TABLE, folder)
    return Results(folder, alone, run_all(DISTRIBUTED, folder, processes=2))


@pytest.mark.parametrize("detail", DETAILS)
@pytest.mark.parametrize(("name", "rank"), CASES)
def test_it_is_captured_as_it_is_and_without_trouble(results: Results, name: str, rank: int, detail: str) -> None:
    way, said = results.way(name), results.said(name, rank, detail)
    path = results.file(name, rank, detail)
    assert said.code == way.code
    with open_capture(path) as capture:
        steps = len(way.optimizers)
        assert capture.run.notes == ()
        records = sum(len(capture.records(step)) for step in capture.steps)
        records += len(capture.records(-1))
    assert re.sub(r"[0-9.]+ [kM]B", "SIZE", said.last_line) == (
        f"align: captured {steps} steps (0-{steps - 1}), {records:,} records, SIZE: {path}{way.notice}"
    )


@pytest.mark.parametrize("detail", DETAILS)
@pytest.mark.parametrize(("name", "rank"), CASES)
def test_it_trains_to_the_same_bits(results: Results, name: str, rank: int, detail: str) -> None:
    assert results.said(name, rank, "plain").code == results.way(name).code
    assert differing_parts(results.saved(name, rank, "plain"), results.saved(name, rank, detail)) == []


@pytest.mark.parametrize("detail", DETAILS)
@pytest.mark.parametrize(("name", "rank"), CASES)
def test_its_steps_are_its_attempts_to_update(results: Results, name: str, rank: int, detail: str) -> None:
    way = results.way(name)
    with results.opened(name, rank, detail) as capture:
        rows = capture.timeline
        assert capture.steps == [row.step for row in rows] == list(range(len(way.optimizers)))
        assert tuple(row.optimizer for row in rows) == way.optimizers
        assert {row.micros for row in rows} == {way.micros}
        assert tuple(row.step for row in rows if row.skipped) == way.skipped


def calls_of(capture: Capture, step: int) -> list[dict[str, int]]:
    """How often each module was called, micro by micro; calls are numbered from 0 without a gap."""
    numbers: dict[int, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for record in capture.records(step):
        if record.key.phase is Phase.FORWARD:
            numbers[record.key.micro][record.key.name].add(record.key.call)
    assert all(found == set(range(len(found))) for names in numbers.values() for found in names.values())
    return [{name: len(found) for name, found in numbers[micro].items()} for micro in sorted(numbers)]


@pytest.mark.parametrize(("name", "rank"), CASES)
def test_its_modules_are_called_under_their_names(results: Results, name: str, rank: int) -> None:
    way = results.way(name)
    with results.opened(name, rank) as capture:
        for step in capture.steps:
            expected = way.calls[step % len(way.calls)]
            assert calls_of(capture, step) == [dict(expected)] * way.micros


def parameter_names(way: Way, saved: Path) -> Iterator[str]:
    """The names of the saved weights as the file has them."""
    prefixes = way.prefixes or (("", ""),)
    for name in torch.load(saved, weights_only=False)["model"]:
        bare = name.replace("_fsdp_wrapped_module.", "").removeprefix("module.")
        yield next(ours + bare.removeprefix(theirs) for theirs, ours in prefixes if bare.startswith(theirs))


@pytest.mark.parametrize(("name", "rank"), CASES)
def test_its_parameters_have_their_names_in_every_step(results: Results, name: str, rank: int) -> None:
    way = results.way(name)
    known = set(parameter_names(way, results.saved(name, rank, "sketch")))
    with results.opened(name, rank) as capture:
        for step in capture.steps:
            owned = [record.key for record in capture.records(step) if record.key.phase in OWNED]
            assert {f"{key.name}.{key.slot}" for key in owned} <= known
            parameters = {(key.name, key.slot) for key in owned if key.phase is Phase.PARAM}
            assert len(parameters) == way.parameters[step % len(way.parameters)]


@pytest.mark.parametrize(("name", "rank"), CASES)
def test_every_parameter_and_gradient_is_measured(results: Results, name: str, rank: int) -> None:
    with results.opened(name, rank) as capture:
        for step in capture.steps:
            owned = [record for record in capture.records(step) if record.key.phase in OWNED]
            assert [str(record.key) for record in owned if record.stats is None] == []
        norms = [row.gradient_norm for row in capture.timeline if not row.skipped]
        # Of gradients of which each rank has a shard only, no rank knows the norm.
        assert all(math.isnan(norm) if name == "FSDP2" else norm > 0 for norm in norms)


@pytest.mark.parametrize(("name", "rank"), CASES)
def test_it_is_aligned_with_itself(results: Results, name: str, rank: int) -> None:
    found = diff(results.file(name, rank, "sketch"), results.file(name, rank, "tensors"))
    assert found.verdict is Verdict.ALIGNED
    assert [finding.label for finding in found.findings] == ["within-noise"]


def test_the_two_ranks_saw_different_batches_and_the_same_reduced_gradients(results: Results) -> None:
    with results.opened("DDP", 0) as one, results.opened("DDP", 1) as other:
        pairs = list(zip(one.records(0), other.records(0), strict=True))
    batches = [
        (ours.hash, theirs.hash) for ours, theirs in pairs if ours.key.phase is Phase.INPUT and ours.key.name == "x"
    ]
    updates = [(ours.stats, theirs.stats) for ours, theirs in pairs if ours.key.phase is Phase.UPDATE]
    assert all(ours != theirs for ours, theirs in batches)
    assert all(ours == theirs for ours, theirs in updates)
    assert (len(batches), len(updates)) == (1, 8)


def test_torchrun_starts_align_as_it_would_start_the_script(results: Results, tmp_path: Path) -> None:
    way = DISTRIBUTED["DDP"]
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    align = ["-m", "align", "capture", "--steps", "0:", "-o", str(tmp_path / "run.h5")]
    done = python(*launcher, *align, *way.command(way.options, tmp_path / "saved"))
    assert done.code == 0, done.stderr
    assert sorted(path.name for path in tmp_path.glob("*.h5")) == ["run.rank0000.h5", "run.rank0001.h5"]
    for rank in range(2):
        again = tmp_path / f"run.rank{rank:04d}.h5"
        assert diff(results.file("DDP", rank, "sketch"), again).verdict is Verdict.ALIGNED
        assert differing_parts(results.saved("DDP", rank, "plain"), tmp_path / f"saved.rank{rank}") == []
