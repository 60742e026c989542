"""`align diff --floor`: what a floor file shows, and each reason why a capture cannot be one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import align
from align import metrics
from align.capture_file import open_capture
from align.commands import diff_files
from align.errors import ComparisonError
from align.measured_floor import MeasuredFloor, measured_floor
from align.records import Phase, RunInfo, TensorKey, TimelineRow, Verdict
from tests.builders import record_of, write_capture
from tests.running import align as run_align

FP32 = 2.0**-24


class Network(nn.Module):
    """Two linear layers with a norm between them; `chunks` adds up the first product in so many parts."""

    def __init__(self, chunks: int = 1, wrong: float = 0.0) -> None:
        super().__init__()
        self.fc1, self.norm, self.fc2 = nn.Linear(64, 48), nn.LayerNorm(48), nn.Linear(48, 5)
        self.chunks, self.wrong = chunks, wrong

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return one logit per class."""
        parts = zip(x.chunk(self.chunks, 1), self.fc1.weight.chunk(self.chunks, 1), strict=True)
        hidden = torch.stack([part @ weight.T for part, weight in parts]).sum(0) + self.fc1.bias
        hidden = functional.gelu(self.norm(hidden))
        out: torch.Tensor = self.fc2(hidden * (1.0 + self.wrong))
        return out


class Other(nn.Module):
    """Another model of the same inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Sequential(nn.Linear(64, 8), nn.Tanh()), nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return one logit per class."""
        out: torch.Tensor = self.head(self.body(x))
        return out


def train(
    path: Path, make: Callable[[], nn.Module] = Network, *, seed: int = 0, data: int = 0, bf16: bool = False,
    **options: Any,
) -> Path:  # fmt: skip
    """Capture three steps; `seed` draws the weights, `data` the batches."""
    torch.manual_seed(seed)
    model = make()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(data)
    with align.Recorder(path, **{"steps": "0:2", **options}) as recorder:
        for _ in range(3):
            x, y = torch.randn(32, 64, generator=generator), torch.randint(5, (32,), generator=generator)
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bf16):
                loss = functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    assert recorder.troubles == {}
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reference, good and bad candidates, and captures that are or cannot be floors."""
    folder = tmp_path_factory.mktemp("floors")
    train(folder / "ref.h5", keep=["init", "batches"])
    train(folder / "good.h5", lambda: Network(4))
    train(folder / "bad.h5", lambda: Network(4, wrong=1e-4))
    train(folder / "moved.h5", perturb=1)
    train(folder / "moved2.h5", perturb=2)
    train(folder / "repeat.h5", lambda: Network(8))
    train(folder / "same.h5")
    train(folder / "other.h5", Other, perturb=1)
    train(folder / "later.h5", steps="2:3", perturb=1)
    train(folder / "first.h5", steps="0:1", perturb=1)
    train(folder / "stats.h5", detail="stats")
    train(folder / "weights.h5", seed=1, perturb=1)
    train(folder / "data.h5", data=1, perturb=1)
    train(folder / "bf16.h5", bf16=True, perturb=1)
    train(folder / "gradients.h5", phases=["gradient"], perturb=1)
    train(folder / "tapped.h5", phases=["rng"], perturb=1)
    shutil.copy(folder / "ref.h5", folder / "copy.h5")
    return folder


def floor_of(folder: Path, *names: str) -> MeasuredFloor:
    with open_capture(folder / "ref.h5") as reference, open_capture(folder / "good.h5") as candidate:
        floors = [open_capture(folder / f"{name}.h5") for name in names]
        found = measured_floor(reference, candidate, floors)
        for floor in floors:
            floor.close()
        return found


# ---- what is measured


def test_the_floor_is_what_the_perturbed_run_differs_by(folder: Path) -> None:
    floor = floor_of(folder, "moved")
    assert floor.method == "reference perturbed by +-2^-24 (seed 1)"
    assert floor.notes == ()
    errors: dict[Phase, list[float]] = {}
    with open_capture(folder / "ref.h5") as reference, open_capture(folder / "moved.h5") as moved:
        theirs = {record.key: record for record in moved.records(1)}
        for record in reference.records(1):
            error = floor.error(record)
            if record.key.phase in {Phase.RNG, Phase.OPTIMIZER}:
                assert not floor.pairs(record)
                assert error is None
            elif not metrics.is_float_pair(pair := floor.pairs(record)[0]):
                assert error is None
            else:
                assert pair.candidate.key == theirs[record.key].key
                assert error == metrics.relative_l2(pair)
                errors.setdefault(record.key.phase, []).append(error or 0.0)
    for phase in (Phase.FORWARD, Phase.BACKWARD, Phase.GRADIENT, Phase.PARAM):
        assert FP32 / 2 < float(np.median(errors[phase])) < 20 * FP32, phase


def test_of_several_floors_the_largest_counts(folder: Path) -> None:
    one, two, repeat = (floor_of(folder, name) for name in ("moved", "moved2", "repeat"))
    floor = floor_of(folder, "moved", "moved2", "repeat")
    assert floor.method == (
        "3 floor files (reference perturbed by +-2^-24 (seed 1), reference perturbed by +-2^-24 (seed 2), known-good "
        "repeat)"
    )
    with open_capture(folder / "ref.h5") as reference:
        for record in reference.records(0):
            errors = [error for each in (one, two, repeat) if (error := each.error(record)) is not None]
            assert floor.error(record) == max(errors, default=None)
            assert len(floor.pairs(record)) == len(floor.scaled_pairs(record))


def scaled_run(path: Path, scale: float, change: float, perturbed: dict[str, Any], *, skipped: bool = False) -> Path:
    """Two steps of one gradient under a loss scale, the first of them skipped where that is asked for."""
    array = np.random.default_rng(0).standard_normal(2000).astype(np.float32)
    array = (array * (1.0 + change) * scale).astype(np.float32)
    records = {
        step: [record_of(TensorKey(step, phase, "fc", slot), array if scaled else array / np.float32(scale), place)]
        for step in (0, 1)
        for place, (phase, slot, scaled) in enumerate([(Phase.GRADIENT, "weight", True)])
    }
    rows = [
        TimelineRow(step, 1.0, 0.1, scale, 1.0, 0.1, skipped and step == 0, nonfinite=False, micros=1, optimizer="SGD")
        for step in (0, 1)
    ]
    return write_capture(path, records, run=RunInfo(outcome="finished", perturbed=perturbed), timeline=rows)


def test_loss_scales_are_undone_and_one_sided_skips_end_the_floor(tmp_path: Path) -> None:
    scaled_run(tmp_path / "ref.h5", 1024.0, 0.0, {})
    scaled_run(tmp_path / "cand.h5", 1024.0, 1e-6, {})
    scaled_run(tmp_path / "floor.h5", 512.0, 1e-5, {"seed": 3, "unit": 2.0**-11}, skipped=True)
    with (
        open_capture(tmp_path / "ref.h5") as reference,
        open_capture(tmp_path / "cand.h5") as candidate,
        open_capture(tmp_path / "floor.h5") as other,
    ):
        floor = measured_floor(reference, candidate, [other])
        assert floor.error(reference.records(0)[0]) == pytest.approx(1e-5, rel=0.2)
        assert floor.error(reference.records(1)[0]) is None
        assert [scale for _, scale in floor.scaled_pairs(reference.records(0)[0])] == [2.0]
    assert floor.method == "reference perturbed by +-2^-11 (seed 3)"
    assert floor.notes == (
        (
            f"The floor of step 1 was not measured by '{tmp_path / 'floor.h5'}': it or the reference skipped step 0, "
            "and the other did not."
        ),
    )


# ---- what is judged by it


@pytest.mark.parametrize("floors", [[], ["moved"], ["repeat"], ["moved", "repeat"], ["gradients"]], ids=str)
def test_good_runs_are_aligned_and_a_fault_is_found(folder: Path, floors: Sequence[str]) -> None:
    files = [str(folder / f"{name}.h5") for name in floors]
    good = diff_files(str(folder / "ref.h5"), str(folder / "good.h5"), floors=files)
    bad = diff_files(str(folder / "ref.h5"), str(folder / "bad.h5"), floors=files)
    assert (good.verdict, bad.verdict) == (Verdict.ALIGNED, Verdict.DIVERGED)
    assert bad.first_divergence is not None
    assert (bad.first_divergence.name, bad.first_divergence.slot) == ("fc2", "input.0")


def test_every_report_says_which_floor_was_used(folder: Path) -> None:
    method = "reference perturbed by +-2^-24 (seed 1)"
    done = run_align(
        "diff", "ref.h5", "good.h5", "--floor", "first.h5", "--floor", "moved.h5", "--html", "r.html", "--json",
        "r.json", cwd=folder,
    )  # fmt: skip
    assert done.code == 0, done.stderr
    assert f"note: Floor from: 2 floor files ({method}, {method})." in done.stdout.replace("\n", " ")
    assert f'"floor_method": "2 floor files ({method}, {method})"' in (folder / "r.json").read_text()
    assert f"Floor from: 2 floor files ({method}, {method})." in (folder / "r.html").read_text()


def test_a_floor_of_fewer_steps_is_told(folder: Path) -> None:
    path = str(folder / "first.h5")
    result = diff_files(str(folder / "ref.h5"), str(folder / "good.h5"), floors=[path])
    note = f"The floor of step 1 was not measured: '{path}' holds only step 0. Capture it with the same --steps."
    assert note in result.findings[-1].advice


def test_a_floor_of_few_modules_is_told(folder: Path, tmp_path: Path) -> None:
    path = train(tmp_path / "fc1.h5", modules=["fc1"], perturb=1)
    result = diff_files(str(folder / "ref.h5"), str(folder / "good.h5"), floors=[str(path)])
    note = (
        "Of 49 tensors only 10 have a measured floor; the others were held against an estimated one. Capture the "
        "floor with the same --modules and --phases."
    )
    assert result.findings[-1].advice == note


def test_the_same_floor_counts_once(folder: Path, tmp_path: Path) -> None:
    copy = shutil.copy(folder / "moved.h5", tmp_path / "copy.h5")
    with open_capture(folder / "ref.h5") as reference, open_capture(folder / "good.h5") as candidate:
        floors = [open_capture(path) for path in (folder / "moved.h5", folder / "moved.h5", Path(copy))]
        floor = measured_floor(reference, candidate, floors)
        for each in floors:
            each.close()
    assert (floor.method, floor.perturbed) == ("reference perturbed by +-2^-24 (seed 1)", 1)
    assert floor.notes == tuple(
        f"'{path}' was given as a floor before: it counts once." for path in (folder / "moved.h5", copy)
    )


def test_runs_that_were_moved_alike_are_one_floor(folder: Path) -> None:
    assert [floor_of(folder, *names).perturbed for names in (("moved", "first"), ("moved", "moved2"))] == [1, 2]
    assert floor_of(folder, "moved", "repeat").perturbed == 1


# ---- what cannot be a floor

MORE = "Capture the reference's script once more with `align capture --perturb 1`."

REFUSED = {
    "ref": f"it is the reference itself, which shows no rounding. {MORE}",
    "copy": f"it is a capture of the same run as the reference, which shows no rounding. {MORE}",
    "good": f"it is the candidate itself, which would explain every difference. {MORE}",
    "same": (
        "it is equal to the reference to the bit, so it shows no rounding; capture one with `align capture --perturb "
        "1`."
    ),
    "other": (
        "it is of another model than the reference 'ref.h5': only 1 of 3 names of the reference have a partner; for "
        "example 'norm' is only in the reference and 'body' is only in the floor. Capture the reference's own "
        "script with `align capture --perturb 1`."
    ),
    "later": "it holds step 2 and the comparison is over steps 0-1. Capture it with the same --steps.",
    "stats": (
        "it holds only statistics, from which the size of a difference cannot be told. Capture it again with --detail "
        "sketch."
    ),
    "weights": (
        "its initial weights are not the reference's (first fc1.weight), so that its differences are no rounding. "
        "Capture it from the same start: `--seed`, or `--init-from` a capture of the reference with --keep init."
    ),
    "data": (
        "its batches are not the reference's (first x in step 0), so that its differences are no rounding. Capture it "
        "from the same start: `--seed`, or `--batches-from` a capture of the reference with --keep batches."
    ),
    "bf16": (
        "it works in another precision than the reference (autocast: off there, bf16 here). Capture it with the "
        "settings of the reference."
    ),
    "tapped": "no tensor of it answers one of the reference. Capture both with the same --phases and --modules.",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_shows_no_rounding_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises(ComparisonError) as refused:
        diff_files("ref.h5", "good.h5", floors=[f"{name}.h5"])
    assert str(refused.value) == f"Cannot use '{name}.h5' as a floor: {REFUSED[name]}"


def test_a_repeat_in_the_precision_of_the_candidate_is_taken(folder: Path, tmp_path: Path) -> None:
    train(tmp_path / "cand.h5", lambda: Network(4), bf16=True)
    train(tmp_path / "repeat.h5", lambda: Network(8), bf16=True)
    result = diff_files(str(folder / "ref.h5"), str(tmp_path / "cand.h5"), floors=[str(tmp_path / "repeat.h5")])
    assert result.resolution.floor_method == "known-good repeat"
    assert result.verdict is Verdict.ALIGNED


def test_a_floor_is_left_out_where_the_candidate_is_coarser(folder: Path, tmp_path: Path) -> None:
    train(tmp_path / "cand.h5", lambda: Network(4), bf16=True)
    for name in ("moved", "repeat"):
        path = str(folder / f"{name}.h5")
        result = diff_files(str(folder / "ref.h5"), str(tmp_path / "cand.h5"), floors=[path])
        assert result.verdict is Verdict.ALIGNED
        assert result.resolution.floor_method == "two files"
        note = (
            f"The candidate works in a coarser precision than the reference (autocast: off there, bf16 here): '{path}' "
            "does not show what that does and was left out. Give both runs one precision, or use a known-good repeat "
            "in the candidate's."
        )
        assert note in result.findings[-1].advice


def test_a_floor_speaks_for_a_finer_candidate(folder: Path, tmp_path: Path) -> None:
    train(tmp_path / "ref.h5", bf16=True)
    train(tmp_path / "moved.h5", bf16=True, perturb=1)
    result = diff_files(str(tmp_path / "ref.h5"), str(folder / "good.h5"), floors=[str(tmp_path / "moved.h5")])
    assert result.resolution.floor_method == "reference perturbed by +-2^-8 (seed 1)"
    assert result.verdict is Verdict.ALIGNED


def test_a_perturbed_run_of_another_device_is_refused(tmp_path: Path) -> None:
    scaled_run(tmp_path / "ref.h5", 1.0, 0.0, {})
    scaled_run(tmp_path / "cand.h5", 1.0, 1e-6, {})
    array = np.ones(3, dtype=np.float32)
    run = RunInfo(outcome="finished", device_type="npu", perturbed={"seed": 1, "unit": FP32})
    write_capture(tmp_path / "npu.h5", {0: [record_of(TensorKey(0, Phase.GRADIENT, "fc", "weight"), array)]}, run=run)
    with pytest.raises(ComparisonError) as refused:
        diff_files(*(str(tmp_path / name) for name in ("ref.h5", "cand.h5")), floors=[str(tmp_path / "npu.h5")])
    assert str(refused.value) == (
        f"Cannot use '{tmp_path / 'npu.h5'}' as a floor: it is a perturbed run on npu, and the reference ran on cpu. "
        "Run `align capture --perturb 1` where the reference ran."
    )


# ---- a perturbed run is no candidate


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            ("ref.h5", "moved.h5"),
            (
                "Cannot judge 'moved.h5': it was captured with --perturb 1, which moved its weights and float inputs "
                "by +-2^-24 (fp32) on purpose. It shows what rounding does; compare with `align diff ref.h5 CAND.h5 "
                "--floor moved.h5`."
            ),
        ),
        (
            ("moved2.h5", "good.h5"),
            (
                "Cannot judge 'moved2.h5': it was captured with --perturb 2, which moved its weights and float inputs "
                "by +-2^-24 (fp32) on purpose. It shows what rounding does; compare with `align diff REF.h5 good.h5 "
                "--floor moved2.h5`."
            ),
        ),
        (
            ("moved.h5", "moved2.h5"),
            (
                "Cannot judge 'moved.h5' and 'moved2.h5': they were captured with --perturb 1 and --perturb 2, which "
                "moved the weights and float inputs of each by other numbers on purpose. Capture both scripts without "
                "--perturb, and compare with `align diff REF.h5 CAND.h5 --floor moved.h5`."
            ),
        ),
    ],
    ids=["candidate", "reference", "both"],
)
def test_a_perturbed_run_is_not_judged(
    folder: Path, monkeypatch: pytest.MonkeyPatch, files: tuple[str, str], message: str
) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises(ComparisonError) as refused:
        diff_files(*files)
    assert str(refused.value) == message


def test_two_runs_that_were_moved_alike_are_compared(folder: Path, tmp_path: Path) -> None:
    train(tmp_path / "again.h5", lambda: Network(4), perturb=1)
    assert diff_files(str(folder / "moved.h5"), str(tmp_path / "again.h5")).verdict is Verdict.ALIGNED


def test_the_command_ends_with_2_and_the_sentence(folder: Path) -> None:
    done = run_align("diff", "ref.h5", "good.h5", "--floor", "same.h5", cwd=folder)
    assert (done.code, done.stdout) == (2, "")
    assert done.stderr == f"align: Cannot use 'same.h5' as a floor: {REFUSED['same']}{os.linesep}"
