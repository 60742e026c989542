"""What capturing costs a training step, in time and in memory, beside hooks as people write them by hand.

Time: a 6-layer GPT-2 (width 512, batch 4 x 256, float32, one thread). Rounds of plain, captured and
naively hooked steps follow each other in one process, so that a noisy machine disturbs all alike; what is
printed is the ratio of medians, in wall time and in the processor time of the process. Writing the file is
part of the captured step.
Memory: the peak of whole processes, plain and captured, with and without activation checkpointing.

    python benchmarks/capture_overhead.py [--rounds 4] [--detail sketch]
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

import align

STEPS_A_ROUND = 3
BATCH, LENGTH, WIDTH, LAYERS = 4, 256, 512, 6
WORKLOAD = Path(__file__).resolve().parent.parent / "fixtures" / "workloads" / "gpt2.py"


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--details", default="stats,sketch,tensors")
    parser.add_argument("--skip-memory", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    print_times(args.rounds, args.details.split(","))
    if not args.skip_memory:
        print_memory()


def print_times(rounds: int, details: list[str]) -> None:
    """Interleave all ways of running a step and print their medians."""
    training = Training()
    seconds: dict[str, list[Seconds]] = {}
    with tempfile.TemporaryDirectory() as folder:
        training.run(1)
        for number in range(rounds):
            seconds.setdefault("plain", []).extend(training.run(STEPS_A_ROUND))
            for detail in details:
                path = Path(folder) / f"{detail}{number}.h5"
                with align.Recorder(path, steps="1:", detail=detail):
                    training.run(1)
                    seconds.setdefault(f"align, {detail}", []).extend(training.run(STEPS_A_ROUND))
                path.unlink()
            with align.Recorder(Path(folder) / f"idle{number}.h5", steps="999999"):
                training.run(1)
                seconds.setdefault("align, outside the window", []).extend(training.run(STEPS_A_ROUND))
            with naive_hooks(training.model):
                seconds.setdefault("naive hooks", []).extend(training.run(STEPS_A_ROUND))
    plain = median(seconds["plain"])
    print(f"{'step of':28} {'median':>9} {'wall':>7} {'cpu':>7}   ({rounds * STEPS_A_ROUND} steps each, interleaved)")
    for name, values in seconds.items():
        wall, cpu = median(values)
        print(f"{name:28} {wall * 1000:6.0f} ms {wall / plain.wall:6.2f}x {cpu / plain.cpu:6.2f}x")


class Seconds(NamedTuple):
    """How long a step took, on the wall clock and in processor time."""

    wall: float
    cpu: float


def median(values: list[Seconds]) -> Seconds:
    """The medians of both clocks."""
    return Seconds(statistics.median(value.wall for value in values), statistics.median(value.cpu for value in values))


class Training:
    """A GPT-2 and its steps; a step is timed from one root forward to the next, writing included."""

    def __init__(self) -> None:
        from transformers import GPT2Config, GPT2LMHeadModel

        torch.manual_seed(0)
        config = GPT2Config(
            vocab_size=50257, n_positions=LENGTH, n_embd=WIDTH, n_layer=LAYERS, n_head=8,
            resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, attn_implementation="eager",
        )  # fmt: skip
        self.model = GPT2LMHeadModel(config)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)
        self.batch = torch.randint(50257, (BATCH, LENGTH))
        self.marks: list[Seconds] = []
        self.model.register_forward_pre_hook(
            lambda *_: self.marks.append(Seconds(time.perf_counter(), time.process_time()))
        )

    def run(self, steps: int) -> list[Seconds]:
        """Seconds of each of these steps; one more begins, so that the last one's writing is counted."""
        self.marks.clear()
        for _ in range(steps):
            self.step()
        with torch.enable_grad():
            self.model(self.batch[:, :2])
        return [
            Seconds(end.wall - begin.wall, end.cpu - begin.cpu)
            for begin, end in zip(self.marks, self.marks[1:], strict=False)
        ]

    def step(self) -> None:
        """One ordinary training step."""
        self.optimizer.zero_grad()
        loss = self.model(self.batch, labels=self.batch).loss
        loss.backward()
        self.optimizer.step()


@contextmanager
def naive_hooks(model: nn.Module) -> Iterator[None]:
    """Forward and backward hooks on every module, nine reductions a tensor, `.item()` each."""
    handles: list[Any] = []

    def look(value: Any) -> None:
        for tensor in value if isinstance(value, tuple) else (value,):
            if isinstance(tensor, torch.Tensor) and tensor.is_floating_point():
                nine_reductions(tensor)

    def forward_hook(_: nn.Module, inputs: Any, output: Any) -> None:
        look(inputs)
        look(output)

    for module in model.modules():
        handles.append(module.register_forward_hook(forward_hook))
        handles.append(module.register_full_backward_hook(forward_hook))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@torch.no_grad()
def nine_reductions(tensor: torch.Tensor) -> tuple[float, ...]:
    """The statistics that are usually taken."""
    reductions: tuple[Callable[[torch.Tensor], torch.Tensor], ...] = (
        torch.min, torch.max, torch.mean, torch.std, torch.linalg.vector_norm, torch.count_nonzero,
        lambda t: t.isnan().sum(), lambda t: t.isinf().sum(), lambda t: t.abs().max(),
    )  # fmt: skip
    return tuple(reduce(tensor).item() for reduce in reductions)


def print_memory() -> None:
    """Peak resident memory of whole processes."""
    options = ["--width", str(WIDTH), "--layers", str(LAYERS), "--batch", str(BATCH), "--length", str(LENGTH)]
    options += ["--steps", "3", "--device", "cpu"]
    print(f"\n{'peak memory':28} {'plain':>9} {'sketch':>9}   {'allowed':>9}")
    for name, extra in (("without checkpointing", []), ("with checkpointing", ["--checkpointing"])):
        with tempfile.TemporaryDirectory() as folder:
            plain = peak_megabytes([sys.executable, str(WORKLOAD), *options, *extra])
            output = str(Path(folder) / "run.h5")
            captured = peak_megabytes(
                [sys.executable, "-m", "align", "capture", "-o", output, str(WORKLOAD), *options, *extra]
            )
        print(f"{name:28} {plain:6.0f} MB {captured:6.0f} MB   {plain * 1.05 + 64:6.0f} MB")


def peak_megabytes(command: list[str]) -> float:
    """The peak resident memory of a command's process, by the operating system's own account."""
    wrapper = (
        "import resource, subprocess, sys; code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, "
        "stderr=subprocess.DEVNULL).returncode; print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    result = subprocess.run([sys.executable, "-c", wrapper, *command], capture_output=True, text=True, check=True)
    code, kilobytes = result.stdout.split()
    if code != "0":
        raise SystemExit(f"The command ended with {code}: {' '.join(command)}")
    return int(kilobytes) / 1024


if __name__ == "__main__":
    main()
