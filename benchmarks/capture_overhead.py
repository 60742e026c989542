"""What capturing costs a training step, in time and in memory, against its targets and beside others.

Time: a 6-layer GPT-2 (width 512, batch 4 x 256, float32, one thread). Rounds of plain, captured, naively hooked and
msprobe's steps follow each other, each round beginning elsewhere, so that a noisy machine disturbs all alike. What is
printed is the ratio of the medians to plain's, in wall time, which the targets are for, and in the processor time of
the process. Writing the file is part of the captured step. Plain steps are measured twice in each round: how far the
two medians are apart is how little this run can tell, and is said where it is more than the tightest target allows.
msprobe is measured where the interpreter of --peer-python has it (see peer_msprobe.py).
Memory: the peak of whole processes, plain and captured, with and without activation checkpointing.

    python benchmarks/capture_overhead.py [--rounds 3] [--steps 2] [--peer-python PATH] [--device cpu]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

import align
from benchmarks.overhead_memory import print_memory
from benchmarks.peer_msprobe import DUMPS, Peer, PeerError, find_msprobe
from benchmarks.training import Seconds, Size, Training, median

PLAIN, PLAIN_AGAIN = "plain", "plain, again"
NEVER = "999999999"


@dataclass(frozen=True)
class Target:
    """How many times a plain step a step may take at most, and what is aimed at."""

    limit: float
    aim: float | None = None

    def reached(self, ratio: float) -> str:
        """Whether this ratio reaches it, in the words of the table."""
        words = "yes" if ratio <= self.limit else "no"
        if self.aim is not None:
            words += f", aim of {self.aim:.2f}x: {'yes' if ratio <= self.aim else 'no'}"
        return words


# The project's own promises. The floor of what they cost was measured with the same model: hooks that do nothing
# take 1.02x, statistics and a staged copy of all tensors about 1.1x each.
TARGETS = {
    "align, outside the window": Target(1.02),
    "align, stats": Target(1.15, aim=1.10),
    "align, sketch": Target(1.20, aim=1.15),
    "align, tensors": Target(1.30),
}


def main() -> None:
    """Print both tables."""
    args = parse_args()
    torch.set_num_threads(1)
    size = Size(**{field.name: getattr(args, field.name) for field in fields(Size)})
    print_times(args, size)
    if not args.skip_memory:
        print()
        print_memory(size, args.device, args.repeats)


def parse_args() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=2, help="timed steps of each way in a round")
    parser.add_argument("--device", default="cpu", help="cpu, cuda or npu")
    parser.add_argument("--peer-python", default=sys.executable, help="the interpreter that has msprobe")
    parser.add_argument("--skip-peer", action="store_true")
    parser.add_argument("--skip-memory", action="store_true")
    parser.add_argument("--repeats", type=int, default=3, help="processes of each kind whose peak memory is taken")
    for field in fields(Size):
        parser.add_argument(f"--{field.name}", type=int, default=field.default)
    return parser.parse_args()


def print_times(args: argparse.Namespace, size: Size) -> None:
    """Interleave all ways of running a step and print their medians."""
    device = torch.device(args.device)
    seconds: dict[str, list[Seconds]] = {}
    with tempfile.TemporaryDirectory() as folder:
        ways = ways_of_watching(Training(size, device), args.steps, Path(folder))
        peers, notes = ([], []) if args.skip_peer else start_peers(args.peer_python, size, device, Path(folder))
        try:
            # One step at a time, one warm and one timed: their ratios are far from 1, and their steps are long.
            ways |= {peer.name: partial(peer.run, 1) for peer in peers}
            for number in range(args.rounds):
                print(f"round {number + 1} of {args.rounds}", file=sys.stderr, flush=True)
                for name in rotated(list(ways), number * 2):
                    try:
                        seconds.setdefault(name, []).extend(ways[name]())
                    except PeerError as error:
                        notes.append(str(error))
                        del ways[name]
        finally:
            for peer in peers:
                peer.close()
    print_table({name: seconds[name] for name in ways})
    for note in filter(None, [note_on_noise(seconds), *notes]):
        print(note)


def rotated(names: list[str], by: int) -> list[str]:
    """The names from another beginning."""
    by %= len(names)
    return names[by:] + names[:by]


def print_table(seconds: dict[str, list[Seconds]]) -> None:
    """One line for each way, with its target where it has one."""
    plain = median(seconds[PLAIN] + seconds[PLAIN_AGAIN])
    print(f"{'a step':28} {'median':>9} {'wall':>7} {'cpu':>7} {'steps':>6}  target  reached")
    for name, values in seconds.items():
        wall, cpu = median(values)
        ratio = wall / plain.wall
        line = f"{name:28} {wall * 1000:6.0f} ms {ratio:6.3f}x {cpu / plain.cpu:6.3f}x {len(values):6d}"
        target = TARGETS.get(name)
        print(f"{line}  {target.limit:.2f}x   {target.reached(ratio)}" if target else line)


def note_on_noise(seconds: dict[str, list[Seconds]]) -> str:
    """A sentence where the same plain steps, timed twice, differ by more than the tightest target allows, else none."""
    first, again = median(seconds[PLAIN]), median(seconds[PLAIN_AGAIN])
    apart = max(first.wall, again.wall) / min(first.wall, again.wall) - 1
    if apart <= min(target.limit for target in TARGETS.values()) - 1:
        return ""
    return (
        f"The two medians of plain steps are {apart:.1%} apart: the machine was too busy for the targets, which are "
        "for wall time. Run this again when it is quiet, or with more --rounds; cpu is disturbed less."
    )


def ways_of_watching(training: Training, steps: int, folder: Path) -> dict[str, Callable[[], list[Seconds]]]:
    """What times some steps, by name; all but naive hooks run one step before that is not timed."""

    def plain() -> list[Seconds]:
        training.run(1)
        return training.run(steps)

    def captured(window: str, detail: str = "sketch") -> list[Seconds]:
        path = folder / "run.h5"
        with align.Recorder(path, steps=window, detail=detail) as recorder:
            seconds = plain()
        if recorder.troubles:
            raise SystemExit(f"The capture met trouble: {', '.join(recorder.notes())}")
        path.unlink()
        return seconds

    def naive() -> list[Seconds]:
        with naive_hooks(training.model):
            return training.run(1)  # far from 1x, so that few and cold steps are enough

    return {
        PLAIN: plain,
        "align, outside the window": lambda: captured(NEVER),
        "align, stats": lambda: captured("1:", "stats"),
        "align, sketch": lambda: captured("1:", "sketch"),
        PLAIN_AGAIN: plain,
        "align, tensors": lambda: captured("1:", "tensors"),
        "naive hooks": naive,
    }


def start_peers(python: str, size: Size, device: torch.device, folder: Path) -> tuple[list[Peer], list[str]]:
    """A waiting process for each level of msprobe, and sentences on those that could not be had."""
    peers: list[Peer] = []
    try:
        version = find_msprobe(python)
    except PeerError as error:
        return peers, [str(error)]
    notes = [f"msprobe {version} takes its data between start and stop around forward and backward, not the update."]
    for number, dump in enumerate(DUMPS):
        try:
            peers.append(Peer(python, dump, size, device, folder / f"peer{number}"))
        except PeerError as error:
            notes.append(str(error))
    return peers, notes


@contextmanager
def naive_hooks(model: nn.Module) -> Iterator[None]:
    """Forward and backward hooks on every module, nine reductions a tensor, `.item()` each."""
    handles: list[Any] = []

    def look(value: Any) -> None:
        for tensor in value if isinstance(value, tuple) else (value,):
            if isinstance(tensor, torch.Tensor) and tensor.is_floating_point():
                nine_reductions(tensor)

    def hook(_: nn.Module, inputs: Any, output: Any) -> None:
        look(inputs)
        look(output)

    for module in model.modules():
        handles.append(module.register_forward_hook(hook))
        handles.append(module.register_full_backward_hook(hook))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch tells whoever writes such hooks what they miss
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


if __name__ == "__main__":
    main()
