"""Healthy pairs of runs on two devices that differ in rounding only: none may be accused."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from align.records import Verdict
from tests.running import WORKLOADS, capture_all, diff

SMALL = ("--steps", "3", "--layers", "2")

DEVICES: dict[str, dict[str, Any]] = {
    "reduction order": {"numerics": {"k_chunk": 16, "k_reverse": True, "flip_reduce": True}},
    "one-pass norms": {"numerics": {"one_pass_norm": True, "ulp": 1}},
    "hf32": {"numerics": {"hf32_matmul": True, "hf32_conv": True}},
    "all benign noise": {"numerics": "benign"},
}


@dataclass(frozen=True)
class Run:
    """One workload and its options; `reference` are options of the reference side only."""

    script: str
    options: tuple[str, ...]
    reference: tuple[str, ...] = ()
    candidate: tuple[str, ...] = field(default=())

    @property
    def file(self) -> str:
        words = (self.script, *self.options, *self.reference, *self.candidate)
        return "".join(character if character.isalnum() else "_" for character in "-".join(words))


def _runs(precision: str) -> tuple[Run, ...]:
    options = (*SMALL, "--precision", precision)
    return (
        Run("gpt2.py", options),
        Run("llama.py", options),
        Run("digits_cnn.py", ("--steps", "3", "--precision", precision)),
    )


PAIRS = [
    *[(device, run) for device in ("reduction order", "all benign noise") for p in ("fp32", "bf16", "fp16")
      for run in _runs(p)],
    *[("one-pass norms", run) for run in _runs("fp32")],
    *[("hf32", run) for run in _runs("fp32")],
    ("reduction order", Run("gpt2.py", (*SMALL, "--precision", "fp32"), ("--attention", "sdpa"))),
    ("reduction order", Run("gpt2.py", (*SMALL, "--precision", "bf16"), ("--attention", "sdpa"))),
    ("all benign noise", Run("gpt2.py", (*SMALL, "--accumulate", "2", "--precision", "fp32"))),
]  # fmt: skip


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All references in one process, all candidates of a device in another."""
    folder = tmp_path_factory.mktemp("benign")
    references = {run.file: run for _, run in PAIRS}
    capture_all("cpu", [(folder / f"{name}.cpu.h5", _command(run, "cpu")) for name, run in references.items()])
    for device, simulator in DEVICES.items():
        runs = {run.file: run for kind, run in PAIRS if kind == device}
        files = [(folder / f"{name}.{_word(device)}.h5", _command(run, "npu")) for name, run in runs.items()]
        capture_all("npu", files, simulator)
    return folder


def _command(run: Run, device: str) -> list[str | Path]:
    own = run.reference if device == "cpu" else run.candidate
    return [WORKLOADS / run.script, *run.options, *own, "--device", device]


def _word(device: str) -> str:
    return device.replace(" ", "_")


def test_there_are_at_least_twenty_pairs() -> None:
    assert len(PAIRS) >= 20


@pytest.mark.parametrize(("device", "run"), PAIRS, ids=[f"{device}: {run.file}" for device, run in PAIRS])
def test_a_healthy_pair_is_aligned(captures: Path, device: str, run: Run) -> None:
    result = diff(captures / f"{run.file}.cpu.h5", captures / f"{run.file}.{_word(device)}.h5")
    assert result.verdict is Verdict.ALIGNED, result.summary
    assert result.counts["paired"] > 100
