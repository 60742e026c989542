"""What the statistics of a tensor on the host cost, beside nine reductions as people write them.

All ways of measuring follow each other in every round, so that a noisy machine disturbs all alike; medians of the
processor time of the one thread are printed.

    python benchmarks/statistics_kernel.py [--megabytes 32] [--rounds 15]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch

from align.hooks.measure import Measured, Measurements

NAIVE: tuple[Callable[[torch.Tensor], torch.Tensor], ...] = (
    torch.min,
    torch.max,
    torch.mean,
    torch.std,
    torch.linalg.vector_norm,
    lambda tensor: tensor.abs().max(),
    lambda tensor: (tensor == 0).sum(),
    lambda tensor: tensor.isnan().sum(),
    lambda tensor: tensor.isinf().sum(),
)
SMALL = 256
"""Elements of the small tensor: 1 KB of float32."""
REPEATS = 100


def main() -> None:
    """Print the ratio to the naive reductions, then the cost of each way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    numel = args.megabytes * (1 << 18)
    large = torch.randn(numel)
    ways = {
        "nine reductions, float32": lambda: naive(large),
        **ways_of("float32", large),
        **ways_of("bfloat16", large.bfloat16()),
        **ways_of("float16", large.half()),
        **ways_of("float32 transposed", large.view(1024, -1).t()),
    }
    seconds = medians(ways, args.rounds)
    print(f"{'':36} {'ms':>8} {'ns/element':>11}")
    for name, value in seconds.items():
        print(f"{name:36} {value * 1e3:8.2f} {value / numel * 1e9:11.3f}")
    ratio = seconds["nine reductions, float32"] / seconds["float32, statistics"]
    print(f"the nine reductions take {ratio:.1f} times as long as the statistics")
    print_small(args.rounds)


def print_small(rounds: int) -> None:
    """What a tensor costs that holds next to nothing."""
    small = torch.randn(SMALL)
    ways = {"nine reductions": lambda: naive(small), **ways_of("float32", small), **ways_of("int64", small.long())}
    print(f"{f'{SMALL} elements':36} {'us':>8}")
    for name, value in medians({name: repeated(way) for name, way in ways.items()}, rounds).items():
        print(f"{name:36} {value / REPEATS * 1e6:8.2f}")


def ways_of(name: str, tensor: torch.Tensor) -> dict[str, Callable[[], object]]:
    """All that may be asked of a tensor."""
    stats, sketch = Measurements(with_sketch=False), Measurements(with_sketch=True)
    measured = stats.measure(tensor) or Measured()
    ways: dict[str, Callable[[], object]] = {f"{name}, statistics": lambda: stats.measure(tensor)}
    if tensor.is_floating_point():
        ways[f"{name}, with sketch"] = lambda: sketch.measure(tensor)
        ways[f"{name}, with exponents"] = lambda: stats.measure(tensor, exponents=True)
    ways[f"{name}, still the same"] = lambda: stats.still_has(tensor, measured)
    return ways


def naive(tensor: torch.Tensor) -> tuple[float, ...]:
    """The statistics as they are usually taken."""
    return tuple(reduction(tensor).item() for reduction in NAIVE)


def repeated(way: Callable[[], object]) -> Callable[[], object]:
    """A way that takes long enough to be timed."""

    def repeat() -> None:
        for _ in range(REPEATS):
            way()

    return repeat


def medians(ways: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The median processor seconds of each way, measured in turn."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for way in ways.values():
        way()
    for _ in range(rounds):
        for name, way in ways.items():
            begin = time.thread_time()
            way()
            seconds[name].append(time.thread_time() - begin)
    return {name: statistics.median(values) for name, values in seconds.items()}


if __name__ == "__main__":
    main()
