"""AL406: what an aligned pair can and cannot show."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from align import commands, wording
from align.records import INIT_STEP, ModuleInfo, Phase, Severity, TensorKey, Verdict
from tests.builders import diff_files, record_of, write_capture
from tests.numpy_run import make
from tests.said import told
from tests.seen import record


def test_equal_runs_are_said_to_be_equal(tmp_path: Path) -> None:
    path = make(tmp_path / "a.h5")
    result = diff_files(path, path)
    assert (result.verdict, result.summary) == (
        Verdict.ALIGNED,
        "Aligned: 444 tensors over steps 0-1 are equal.",
    )
    assert told(result) == [("within-noise", Severity.NOTE)]


def test_the_largest_difference_is_named(tmp_path: Path) -> None:
    result = diff_files(make(tmp_path / "a.h5", steps=1), make(tmp_path / "b.h5", steps=1, pieces=4))
    finding = result.findings[0]
    assert result.summary.startswith(
        f"Aligned: {finding.evidence['judged']} tensors over step 0 stay below the limit of 7x the floor; the largest "
        "is "
    )
    assert f" at {finding.where.name} {finding.where.slot}." in result.summary
    assert 0 < finding.evidence["largest_times_floor"] < 7
    assert result.resolution.precision == "fp32"


@pytest.mark.parametrize("limit", [7.0, 20.0])
def test_the_limit_in_force_is_told_and_how_low_it_can_be(tmp_path: Path, limit: float) -> None:
    files = (str(make(tmp_path / "a.h5", steps=1)), str(make(tmp_path / "b.h5", steps=1, pieces=4)))
    found = commands.diff_files(*files, limit=limit)
    assert f" stay below the limit of {limit:g}x the floor; the largest is " in found.summary
    lowest = found.findings[0].evidence["lowest_limit"]
    assert lowest == pytest.approx(found.findings[0].evidence["largest_times_floor"])
    verdicts = [commands.diff_files(*files, limit=lowest * share).verdict for share in (0.99, 1.01)]
    assert verdicts == [Verdict.DIVERGED, Verdict.ALIGNED]


def _pair_of_linears(folder: Path, shape: tuple[int, int], noise: float, factor: float) -> list[str]:
    """Two captures of one layer whose inputs differ by noise and whose outputs differ by noise and a factor."""
    generator = np.random.default_rng(0)
    given, made, *errors = (generator.standard_normal(shape) for _ in range(4))
    files = []
    for name, share in (("a", 0.0), ("b", 1.0)):
        tensors = [given + share * noise * errors[0], (made + share * noise * errors[1]) * (1.0 + share * factor)]
        records = [
            record_of(TensorKey(0, Phase.FORWARD, "fc", slot), tensor.astype(np.float32))
            for slot, tensor in zip(("input.0", "output.0"), tensors, strict=True)
        ]
        weight = record_of(TensorKey(INIT_STEP, Phase.INIT, "fc", "weight"), np.ones((2, 2), np.float32))
        path = write_capture(
            folder / f"{name}.h5", {INIT_STEP: [weight], 0: records}, modules=[ModuleInfo("fc", "Linear")]
        )
        files.append(str(path))
    return files


@pytest.mark.parametrize(
    ("shape", "noise", "factor", "limit", "end"),
    [
        ((64, 64), 2.4e-6, 0.0, 60.0, "the limit of 60x the floor; the largest is {times} at fc input.0."),
        (
            (64, 64), 2.4e-6, 4.5e-5, 60.0,
            "the limit of 60x the floor; the largest is {times} in a common factor at fc output.0.",
        ),
        ((20, 20), 7e-7, 0.0, 7.0, "their limits; the nearest to its own is {times} of 18.7x at fc input.0."),
    ],
    ids=["size", "factor", "few-elements"],
)  # fmt: skip
def test_the_nearest_to_its_limit_says_where_that_would_be_passed(
    tmp_path: Path, shape: tuple[int, int], noise: float, factor: float, limit: float, end: str
) -> None:
    files = _pair_of_linears(tmp_path, shape, noise, factor)
    found = commands.diff_files(*files, limit=limit)
    evidence = found.findings[0].evidence
    end = end.format(times=wording.times(evidence["largest_times_floor"]))
    assert found.summary == (
        f"Aligned: {evidence['judged']} tensors over step 0 stay below {end} Gradients were not compared."
    )
    verdicts = [commands.diff_files(*files, limit=evidence["lowest_limit"] * share).verdict for share in (0.99, 1.01)]
    assert verdicts == [Verdict.DIVERGED, Verdict.ALIGNED]


@pytest.mark.parametrize(
    ("phases", "summary"),
    [
        (
            ["input", "forward", "loss"],
            "Aligned: 2 tensors over step 0 are equal. Gradients were not compared. The forward pass was not compared.",
        ),
        (["input", "forward"], "Only what the runs were given could be judged (1 tensor of step 0); it agrees."),
    ],
    ids=["with-loss", "without-loss"],
)
def test_captures_of_other_modules_are_told(tmp_path: Path, phases: list[str], summary: str) -> None:
    def train() -> None:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 4))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model(torch.ones(4, 8)).square().mean().backward()
        optimizer.step()

    for name, module in (("a.h5", "0"), ("b.h5", "2")):
        record(tmp_path / name, train, steps="0", modules=[module], phases=phases)
    found = commands.diff_files(str(tmp_path / "a.h5"), str(tmp_path / "b.h5"))
    advice = (
        "Capture both runs with the same --modules: no module is in both captures (the reference was captured with "
        "'0', the candidate with '2')."
    )
    assert [(each.summary, each.advice) for each in found.findings if each.code == "AL406"] == [(summary, advice)]


def test_a_coarse_precision_says_what_it_cannot_show(tmp_path: Path) -> None:
    reference = make(tmp_path / "a.h5", steps=1, bfloat16=True)
    result = diff_files(reference, make(tmp_path / "b.h5", steps=1, pieces=4, bfloat16=True))
    effect, factor = result.resolution.smallest_visible_effect, result.resolution.smallest_visible_factor
    assert effect is not None
    assert factor is not None
    assert result.summary == (
        f"Aligned as far as bf16 can show: an effect below {effect * 100:.1f} % of a module's output would not have "
        f"been seen; a common factor that is {factor * 100:.1f} % off would have been."
    )
    assert result.findings[0].advice == (
        "Repeat both runs in fp32 to see smaller effects; of a parameter's gradient, only an effect as large as "
        "itself would have been seen."
    )
