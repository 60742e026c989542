"""Ways to train on two ranks in which nothing is wrong: none of them is accused of anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from align.records import Health, Severity, State
from tests.rank_runs import capture_jobs
from tests.running import WORKLOADS
from tests.said import inspected, reply

pytest.importorskip("torch")

SCRIPT = WORKLOADS / "ways" / "ranks.py"
REPLICAS = ("ddp", "accumulated", "join", "zero", "views", "reduced", "sequence")
PARTS = ("sharded", "experts", "tensor")
APART = ("alone",)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture of every step of each way, by both ranks."""
    folder = tmp_path_factory.mktemp("healthy")
    capture_jobs(
        [(folder / f"{how}.h5", ["--steps", "0:", SCRIPT, "--how", how]) for how in (*REPLICAS, *PARTS, *APART)]
    )
    return folder


@pytest.mark.parametrize("how", [*REPLICAS, *PARTS, *APART])
def test_nothing_is_wrong(folder: Path, how: str) -> None:
    result = inspected(folder / f"{how}.h5")
    assert [one.summary for one in result.findings if one.severity is not Severity.NOTE] == []
    assert result.verdict is Health.HEALTHY
    assert State.BAD not in {one.state for one in result.replies}


@pytest.mark.parametrize("how", REPLICAS)
def test_replicas_are_seen_as_such(folder: Path, how: str) -> None:
    result = inspected(folder / f"{how}.h5")
    assert reply(result, "weights of ranks") == (State.GOOD, "Both ranks begin with the same values of 12 parameters.")
    assert reply(result, "reduction") == (
        State.GOOD,
        "The optimizers of 2 ranks take the same gradients of 7 parameters, of other batches.",
    )


@pytest.mark.parametrize("how", [*PARTS, *APART])
def test_parts_of_a_model_are_no_replicas(folder: Path, how: str) -> None:
    result = inspected(folder / f"{how}.h5")
    assert reply(result, "weights of ranks") == (
        State.ABSENT,
        "The ranks are no replicas of one model: each holds weights of its own, as parts of it do.",
    )


def test_the_norm_of_clipping_is_checked_over_all_ranks(folder: Path) -> None:
    state, sentence = reply(inspected(folder / "reduced.h5"), "norm of ranks")
    assert state is State.GOOD
    assert sentence.startswith("Gradients are clipped by the norm that they have over all ranks (")
