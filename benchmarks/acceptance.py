"""How often `align accept` is right: simulated loss curves, each with one known fault or none.

    python -m benchmarks.acceptance [--pairs 40] [--steps 1000] [--write docs/accept.md]

For each kind of pair it prints how often the default policy says FAIL, how often it passes with a remark, and which
criterion fails first; beside it how often published rules say FAIL. The exit code says whether no healthy pair fails
and each fault is found in at least 95 % of its pairs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from align.acceptance import Policy, accept, read_policy
from align.acceptance_records import Acceptance, AcceptResult, Outcome
from benchmarks.acceptance_simulation import CASES, Right, Simulated, simulate
from benchmarks.localization.reporting import write_between_markers

ENOUGH = 0.95
MEAN = """
minimum_steps = 100
minimum_source = "none"
[loss]
smallest = 0.0
[criteria.mean-error]
required = true
limit = {limit}
source = "mean relative error of the loss"
"""


@dataclass(frozen=True)
class Counts:
    """What was said of all pairs of one kind, as shares of them."""

    case: Simulated
    failed: float
    remarked: float
    first: str
    published: Mapping[str, float]

    @property
    def right(self) -> bool:
        """No healthy pair fails, and nearly all faulty ones do."""
        if self.case.right is Right.FAIL:
            return self.failed >= ENOUGH
        return self.failed == 0.0


def policies() -> dict[str, Policy]:
    """The default policy, and the published rules that it is held against."""
    found = {"default": read_policy(), "MindFormers": read_policy("mindformers")}
    with tempfile.TemporaryDirectory() as folder:
        for percent in (2, 1):
            path = Path(folder, "mean.toml")
            path.write_text(MEAN.format(limit=percent / 100), encoding="utf-8")
            found[f"mean < {percent} %"] = read_policy(str(path))
    return found


def measure(case: Simulated, rules: Mapping[str, Policy], pairs: int, steps: int) -> Counts:
    """Simulate pairs of one kind and judge them by all policies."""
    verdicts: dict[str, int] = dict.fromkeys(rules, 0)
    first: Counter[str] = Counter()
    remarked = 0
    for seed in range(pairs):
        pair = simulate(case, steps, seed)
        for name, policy in rules.items():
            result = accept(*pair, policy)
            verdicts[name] += result.verdict is Acceptance.FAIL
            if name == "default":
                first.update(failing(result)[:1])
                remarked += result.verdict is Acceptance.PASS and bool(result.deviations)
    shares = {name: count / pairs for name, count in verdicts.items()}
    named = ", ".join(f"{code} {count / pairs:.0%}" for code, count in first.most_common(2))
    return Counts(case, shares.pop("default"), remarked / pairs, named, shares)


def failing(result: AcceptResult) -> list[str]:
    """The codes of the required criteria that fail."""
    return [each.code for each in result.criteria if each.required and each.outcome is Outcome.FAIL]


def table(rows: Iterable[Counts]) -> str:
    """The shares of FAIL in percent, as a Markdown table."""
    lines: list[str] = []
    for row in rows:
        if not lines:
            names = " | ".join(row.published)
            lines += [f"| pair | right | default: FAIL | with a remark | fails first | {names} |"]
            lines += [f"|---|---|{'---|' * (3 + len(row.published))}"]
        others = " | ".join(f"{100 * share:.0f}" for share in row.published.values())
        lines.append(
            f"| {row.case.name} | {row.case.right.value} | {100 * row.failed:.0f} | {100 * row.remarked:.0f} | "
            f"{row.first or '-'} | {others} |"
        )
    return "\n".join(lines)


def main() -> int:
    """Simulate, judge, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.acceptance", description=__doc__)
    parser.add_argument("--pairs", type=int, default=40, help="pairs of each kind")
    parser.add_argument("--steps", type=int, default=1000, help="steps of each run")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table between the markers of this page")
    args = parser.parse_args()
    rules = policies()
    counts = [measure(case, rules, args.pairs, args.steps) for case in CASES]
    print(table(counts))
    if args.write is not None:
        write_between_markers(args.write, table(counts))
    return 0 if all(row.right for row in counts) else 1


if __name__ == "__main__":
    sys.exit(main())
