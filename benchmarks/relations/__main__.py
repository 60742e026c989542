"""Make the cases, relate them, print the tables."""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TypeAlias

from benchmarks.localization.reporting import write_between_markers
from benchmarks.relations.cases import Answer
from benchmarks.relations.material import MODELS
from benchmarks.relations.measuring import measure
from benchmarks.relations.model_cases import ModelAnswer

STEPS = 120

AnyAnswer: TypeAlias = Answer | ModelAnswer


def table(answers: Sequence[AnyAnswer]) -> str:
    """Families, how many are right, and what the others were taken for."""
    rows: dict[str, list[AnyAnswer]] = defaultdict(list)
    for answer in answers:
        rows[answer.family].append(answer)
    lines = ["| case | number | right | taken for, where wrong |", "| --- | --- | --- | --- |"]
    for family, found in rows.items():
        wrong = Counter(str(answer.said) for answer in found if not answer.right)
        taken = ", ".join(f"{kind} {number}" for kind, number in wrong.most_common())
        lines.append(f"| {family} | {len(found):,} | {share(found)} | {taken} |")
    lines.append(f"| **all** | **{len(answers):,}** | **{share(answers)}** | |")
    return "\n".join(lines)


def share(answers: Sequence[AnyAnswer]) -> str:
    """The percentage that is right."""
    right = sum(answer.right for answer in answers)
    return f"{100.0 * right / max(len(answers), 1):.2f} %"


def parse_args() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.relations", description=__doc__)
    parser.add_argument("--models", nargs="+", default=MODELS, choices=MODELS)
    parser.add_argument("--steps", type=int, default=STEPS, help="training steps of the models")
    parser.add_argument("--list", action="store_true", help="one line for each wrong answer")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the tables between the markers of this page")
    parser.add_argument("--processes", type=int, default=2)
    return parser.parse_args()


def main() -> None:
    """Measure."""
    args = parse_args()
    with ProcessPoolExecutor(args.processes, get_context("spawn")) as pool:
        found = list(pool.map(measure, args.models, [args.steps] * len(args.models)))
    tables: dict[str, list[AnyAnswer]] = {
        "Tensors, from values": [answer for each in found for answer in each.values],
        "Tensors, from records": [answer for each in found for answer in each.records],
        "Models, from values": [answer for each in found for answer in each.models_by_values],
        "Models, from records": [answer for each in found for answer in each.models_by_records],
    }
    text = "\n\n".join(f"### {title}\n\n{table(answers)}" for title, answers in tables.items())
    print(text)
    if args.list:
        for title, answers in tables.items():
            for answer in answers:
                if not answer.right:
                    print(f"{title}: {answer.family}: {answer.name}: {answer.said}")
    if args.write:
        write_between_markers(args.write, text)


if __name__ == "__main__":
    main()
