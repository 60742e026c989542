"""AL701: the optimizers of two runs begin with other states."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from align.capture_file import open_capture
from align.records import DiffResult, Fact, Phase, Severity, TensorKey
from tests.builders import Array, diff_files, record_of, write_capture
from tests.numpy_run import make

LABEL = "optimizer-state-differs"
OWNERS = ("blocks.0.mlp.fc", "blocks.1.mlp.fc")


def states(seed: int = 1) -> dict[tuple[str, str], Array]:
    random = np.random.default_rng(seed)
    return {
        (owner, f"weight.{key}"): np.square(random.normal(size=(64, 32))).astype(np.float32)
        for owner in OWNERS
        for key in ("exp_avg", "exp_avg_sq")
    }


def with_states(source: Path, path: Path, found: Mapping[tuple[str, str], Array], count: float | None = 50.0) -> Path:
    """The same capture, whose optimizer begins step 0 with these states."""
    records = [
        record_of(TensorKey(0, Phase.OPTIMIZER, owner, f"{slot}.before"), array)
        for (owner, slot), array in found.items()
    ]
    facts = [Fact(TensorKey(0, Phase.OPTIMIZER, owner, "weight.step.before"), count) for owner in OWNERS]
    with open_capture(source) as capture:
        return write_capture(
            path,
            {-1: list(capture.records(-1)), 0: [*records, *capture.records(0)]},
            modules=list(capture.modules.values()),
            run=capture.run,
            timeline=list(capture.timeline),
            facts={0: facts if count is not None else []},
        )


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("runs")
    return make(folder / "a.h5", steps=1), make(folder / "b.h5", steps=1, pieces=3)


def diff(
    runs: tuple[Path, Path], folder: Path, theirs: Mapping[tuple[str, str], Array], count: float | None = 50.0
) -> DiffResult:
    reference = with_states(runs[0], folder / "a.h5", states())
    return diff_files(reference, with_states(runs[1], folder / "b.h5", theirs, count))


def first(result: DiffResult) -> tuple[str, Severity, str]:
    finding = result.findings[0]
    return finding.label, finding.severity, finding.where.name


def test_states_that_agree_are_no_finding(runs: tuple[Path, Path], tmp_path: Path) -> None:
    result = diff(runs, tmp_path, states())
    assert [finding.label for finding in result.findings] == ["within-noise"]


def test_states_of_one_run_only(runs: tuple[Path, Path], tmp_path: Path) -> None:
    result = diff(runs, tmp_path, {}, None)
    assert first(result) == (LABEL, Severity.ERROR, OWNERS[0])
    assert result.summary.startswith(
        "The optimizer of the reference begins step 0 with the state of earlier steps, that of the candidate without: "
        "4 states (blocks.0.mlp.fc weight.exp_avg, "
    )
    parted = result.first_divergence
    assert parted is not None
    assert (parted.step, parted.phase, parted.name, parted.slot) == (0, Phase.PARAM, OWNERS[0], "weight")


def test_states_of_zeros_say_nothing(runs: tuple[Path, Path], tmp_path: Path) -> None:
    zeros = {owner: np.zeros_like(array) for owner, array in states().items()}
    reference = with_states(runs[0], tmp_path / "a.h5", zeros, None)
    result = diff_files(reference, with_states(runs[1], tmp_path / "b.h5", {}, None))
    assert [finding.label for finding in result.findings] == ["within-noise"]


def test_another_number_of_updates(runs: tuple[Path, Path], tmp_path: Path) -> None:
    result = diff(runs, tmp_path, states(), 49.0)
    assert first(result) == (LABEL, Severity.ERROR, OWNERS[0])
    assert result.summary.startswith(
        "The optimizer begins step 0 after 50 updates in the reference and after 49 in the"
    )


def test_states_of_other_parameters(runs: tuple[Path, Path], tmp_path: Path) -> None:
    known = states()
    swapped = {(owner, slot): known[OWNERS[1 - OWNERS.index(owner)], slot] for owner, slot in known}
    result = diff(runs, tmp_path, swapped)
    assert first(result) == (LABEL, Severity.ERROR, OWNERS[0])
    assert result.summary.startswith(
        "The optimizer of the candidate begins step 0 with states of other parameters: blocks.0.mlp.fc weight.exp_avg, "
    )
    assert "are what blocks.1.mlp.fc weight.exp_avg is in the reference." in result.summary


def test_states_with_other_values(runs: tuple[Path, Path], tmp_path: Path) -> None:
    known = states()
    known[OWNERS[1], "weight.exp_avg"] = known[OWNERS[1], "weight.exp_avg"] * np.float32(1.01)
    result = diff(runs, tmp_path, known)
    assert first(result) == (LABEL, Severity.ERROR, OWNERS[1])
    assert result.summary.startswith("The optimizers begin step 0 with other states: 1 of 4 states differs (")


def test_states_that_went_through_another_format_agree(runs: tuple[Path, Path], tmp_path: Path) -> None:
    near = {owner: (array * (1 + 2.0**-20)).astype(np.float32) for owner, array in states().items()}
    assert [finding.label for finding in diff(runs, tmp_path, near).findings] == ["within-noise"]
