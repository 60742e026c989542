"""A checkpoint against the weights that a captured run really began with, from hashes and sketches, or values."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from align.commands import checkpoint_files
from align.records import Verdict
from tests.checkpoint_samples import only, told
from tests.numpy_run import Model, Setup
from tests.running import capture_all

Arrays = dict[str, np.ndarray]

SCRIPT = """
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 2))
torch.save({"model": model.state_dict()}, "begin.pt")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    model(torch.randn(4, 6)).square().mean().backward()
    optimizer.step()
torch.save(model.state_dict(), "end.pt")
"""


def written(folder: Path, setup: Setup | None = None) -> tuple[Path, Arrays]:
    """A capture without values, and the weights that its run began with."""
    model = Model(setup or Setup(steps=1))
    arrays = {name: value.copy() for name, value in model.parameters.items()}
    return model.write(folder / "run.h5"), arrays


def saved(path: Path, arrays: Mapping[str, np.ndarray]) -> str:
    save_file({name: np.ascontiguousarray(value) for name, value in arrays.items()}, path)
    return str(path)


def test_what_was_loaded_is_equal_by_its_hashes(tmp_path: Path) -> None:
    run, arrays = written(tmp_path)
    result = checkpoint_files(saved(tmp_path / "a.safetensors", arrays), str(run))
    assert (result.verdict, result.findings) == (Verdict.ALIGNED, ())
    assert result.summary == f"The same {len(arrays)} entries, equal to the bit."
    assert result.candidate.what == "capture, the weights before step 0"


def test_a_checkpoint_that_was_not_loaded_is_told(tmp_path: Path) -> None:
    """C-PREFIX from the other end: the run began with weights of its own."""
    run, _ = written(tmp_path)
    rng = np.random.default_rng(0)
    other = Model(Setup(steps=1, seed=7)).parameters
    trained = {name: (value + rng.normal(0, 0.05, value.shape)).astype(np.float32) for name, value in other.items()}
    result = checkpoint_files(saved(tmp_path / "a.safetensors", trained), str(run))
    finding = only(result)
    assert (result.verdict, finding.code, finding.label) == (Verdict.DIVERGED, "AL301", "checkpoint-not-loaded")
    assert finding.summary.startswith(
        "The run did not begin with the checkpoint: of 34 entries that can tell none holds its"
    )
    assert "strict=False" in finding.advice


def test_a_checkpoint_that_was_partly_loaded_is_told(tmp_path: Path) -> None:
    run, arrays = written(tmp_path)
    rng = np.random.default_rng(0)
    for name in arrays:
        if name.startswith("blocks.1.attn") and name.endswith("weight"):
            arrays[name] = rng.normal(0, 0.15, arrays[name].shape).astype(np.float32)
    result = checkpoint_files(saved(tmp_path / "a.safetensors", arrays), str(run))
    finding = only(result)
    assert (result.verdict, finding.code, finding.label) == (Verdict.DIVERGED, "AL302", "checkpoint-partially-loaded")
    assert "4 do not: blocks.1.attn." in finding.summary


def test_a_wrapper_in_the_file_is_seen_through(tmp_path: Path) -> None:
    run, arrays = written(tmp_path)
    path = saved(tmp_path / "a.safetensors", {f"module.{name}": value for name, value in arrays.items()})
    result = checkpoint_files(path, str(run))
    assert (result.verdict, only(result).code) == (Verdict.ALIGNED, "AL303")


def test_rounding_on_the_way_is_seen_from_hashes(tmp_path: Path) -> None:
    run, arrays = written(tmp_path)
    result = checkpoint_files(
        saved(tmp_path / "a.safetensors", {name: value.astype(np.float16) for name, value in arrays.items()}), str(run)
    )
    assert result.verdict is Verdict.DIVERGED


def test_a_factor_is_seen_from_sketches(tmp_path: Path) -> None:
    run, arrays = written(tmp_path)
    arrays["blocks.0.attn.q.weight"] = arrays["blocks.0.attn.q.weight"] * 8
    finding = only(checkpoint_files(saved(tmp_path / "a.safetensors", arrays), str(run)))
    assert (finding.code, finding.label) == ("AL312", "weight-scaled")
    assert "0.125 times the reference" in finding.summary


def test_a_capture_without_initial_weights_is_refused(tmp_path: Path) -> None:
    from align.errors import CheckpointError
    from align.records import RunInfo
    from tests.builders import write_capture

    write_capture(tmp_path / "run.h5", {0: []}, run=RunInfo(outcome="finished"))
    with pytest.raises(CheckpointError) as caught:
        checkpoint_files(str(tmp_path / "run.h5"), str(tmp_path / "run.h5"))
    assert str(caught.value) == (
        f"Cannot read '{tmp_path / 'run.h5'}': this capture has no initial weights (phase init). Capture with `init` "
        "in --phases, or without --phases; --keep init keeps the values, too."
    )


def test_a_real_run_began_with_its_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The script saves before and after; only the first is what it began with."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(SCRIPT)
    capture_all("cpu", [
        (tmp_path / "run.h5", [tmp_path / "train.py"]),
        (tmp_path / "kept.h5", [tmp_path / "train.py"]),
    ])  # fmt: skip
    begin, end = (checkpoint_files(f"{name}.pt", "run.h5") for name in ("begin", "end"))
    assert (begin.verdict, begin.counts["equal"], told(begin)) == (Verdict.ALIGNED, 9, [])
    assert end.verdict is Verdict.DIVERGED
    assert checkpoint_files("run.h5", "kept.h5").verdict is Verdict.ALIGNED
