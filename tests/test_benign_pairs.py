"""Healthy pairs of runs on two devices that differ in rounding only: none may be accused."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from align.records import Verdict
from tests.running import BENIGN, WORKLOADS, capture_all, diff, run_python

STEPS = ("--steps", "2")
SMALL = (*STEPS, "--layers", "2")

DEVICES: dict[str, dict[str, Any]] = {
    "reduction order": {"numerics": {"k_chunk": 16, "k_reverse": True, "flip_reduce": True}},
    "one-pass norms": {"numerics": {"one_pass_norm": True, "ulp": 1}},
    "hf32": {"numerics": {"hf32_matmul": True, "hf32_conv": True}},
    "all benign noise": BENIGN,
}

EVERY_DEVICE = """
import json, sys
from align.cli import main
from torch_npu.simulator import numerics, parse_settings

for settings, arguments in json.loads(sys.stdin.read()):
    numerics.change(**vars(parse_settings(json.dumps(settings)).numerics))
    code = main(arguments, prog_name="align", standalone_mode=False)
    print(f"<exit code {code or 0}>", flush=True)
"""
"""Captures on simulated devices that differ in nothing but their numerics."""


@dataclass(frozen=True)
class Run:
    """One workload and its options; `reference` are options of the reference side only."""

    script: str
    options: tuple[str, ...]
    reference: tuple[str, ...] = ()

    def command(self, device: str) -> list[str | Path]:
        """The script and its arguments; the same command makes the same capture."""
        own = self.reference if device == "cpu" else ()
        return [WORKLOADS / self.script, *self.options, *own, "--device", device]

    @property
    def title(self) -> str:
        """The script and its options in one word."""
        return _word(" ".join((self.script, *self.options, *self.reference)))


def _runs(precision: str) -> tuple[Run, ...]:
    options = (*SMALL, "--precision", precision)
    return (
        Run("gpt2.py", options),
        Run("llama.py", options),
        Run("digits_cnn.py", (*STEPS, "--precision", precision)),
    )


PAIRS = [
    *[("reduction order", run) for precision in ("fp32", "bf16") for run in _runs(precision)],
    *[("all benign noise", run) for precision in ("fp32", "bf16", "fp16") for run in _runs(precision)],
    *[("one-pass norms", run) for run in _runs("fp32")],
    *[("hf32", run) for run in _runs("fp32")],
    ("reduction order", Run("gpt2.py", (*SMALL, "--precision", "fp32"), ("--attention", "sdpa"))),
    ("reduction order", Run("gpt2.py", (*SMALL, "--precision", "bf16"), ("--attention", "sdpa"))),
    ("all benign noise", Run("gpt2.py", (*SMALL, "--accumulate", "2", "--precision", "fp32"))),
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All references in one process, all candidates in another; what several pairs need is captured once."""
    folder = tmp_path_factory.mktemp("benign")
    references = {_reference(folder, run): run.command("cpu") for _, run in PAIRS}
    capture_all("cpu", list(references.items()))
    candidates = {_candidate(folder, device, run): (DEVICES[device], run.command("npu")) for device, run in PAIRS}
    commands = [
        (settings, ["capture", "--device", "npu", "-o", str(path), *map(str, command)])
        for path, (settings, command) in candidates.items()
    ]
    done = run_python("-c", EVERY_DEVICE, simulator=BENIGN, given=json.dumps(commands), timeout=600)
    assert done.stdout.count("<exit code 0>") == len(commands), f"{done.stdout[-1000:]}\n{done.stderr[-3000:]}"
    assert "trouble" not in done.stderr
    return folder


def _reference(folder: Path, run: Run) -> Path:
    return folder / f"{run.title}.cpu.h5"


def _candidate(folder: Path, device: str, run: Run) -> Path:
    return folder / f"{Run(run.script, run.options).title}.{_word(device)}.h5"


def _word(text: str) -> str:
    return "".join(character if character.isalnum() else "_" for character in text)


def test_there_are_at_least_twenty_pairs() -> None:
    assert len(PAIRS) >= 20


@pytest.mark.parametrize(("device", "run"), PAIRS, ids=[f"{device}: {run.title}" for device, run in PAIRS])
def test_a_healthy_pair_is_aligned(folder: Path, device: str, run: Run) -> None:
    result = diff(_reference(folder, run), _candidate(folder, device, run))
    assert result.verdict is Verdict.ALIGNED, result.summary
    assert result.counts["paired"] > 100
