"""How often `align accept` is right: real trainings on the CPU, on other devices and with known faults.

    python -m benchmarks.acceptance_trainings [--work out/acceptance-trainings] [--judge-only] [--list]

Three small models are trained from three seeds: a reference in each class of precision, candidates on devices that
compute otherwise, candidates with one fault each, and repeats of the reference from weights moved by rounding. Loss and
gradient norm of each run are kept in the work folder; a run that is there is not trained again.

The table says how often the default policy fails each kind of pair, leaves it open, passes it with a remark and passes
it without, where no repeats and where two are given, and how often published rules fail it. The exit code is 1 where a
healthy pair fails by the default policy.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import torch

from benchmarks.localization.reporting import write_between_markers
from benchmarks.paired_trainings.judging import Judged, judge, rules
from benchmarks.paired_trainings.models import TASKS
from benchmarks.paired_trainings.recipes import CASES, STEPS, Case, Recipe
from benchmarks.paired_trainings.tables import by_kind, by_pair
from benchmarks.paired_trainings.training import run_name, train, write_run

SEEDS, REPEATS = 3, 2


def runs_of(case: Case, steps: int) -> tuple[Recipe, ...]:
    """The reference, the candidate, the repeats."""
    return (case.reference, case.candidate(steps), *case.repeats(REPEATS))


def run_file(args: argparse.Namespace, model: str, seed: int, recipe: Recipe) -> Path:
    """Where the run of this recipe is kept."""
    return Path(args.work, f"{args.steps}-steps", f"{model}-{seed}", f"{run_name(recipe)}.csv")


def train_all(args: argparse.Namespace) -> None:
    """Train what is not in the work folder yet."""
    for seed in range(args.seeds):
        for model in args.models:
            for recipe in dict.fromkeys(recipe for case in chosen(args) for recipe in runs_of(case, args.steps)):
                file = run_file(args, model, seed, recipe)
                if not file.exists():
                    write_run(file, train(TASKS[model], recipe, args.steps, seed))


def judge_all(args: argparse.Namespace) -> Iterator[Judged]:
    """Judge each pair whose runs are all in the work folder."""
    policies = rules()
    for case in chosen(args):
        for model in args.models:
            for seed in range(args.seeds):
                files = [run_file(args, model, seed, recipe) for recipe in runs_of(case, args.steps)]
                if all(file.exists() for file in files):
                    yield judge(case, f"{model} {seed}", files, policies)


def chosen(args: argparse.Namespace) -> list[Case]:
    """The kinds of pairs that were asked for."""
    return [case for case in CASES if not args.cases or case.name in args.cases]


def main() -> int:
    """Train, judge, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.acceptance_trainings", description=__doc__)
    parser.add_argument("--work", default="out/acceptance-trainings", metavar="FOLDER", help="where runs are kept")
    parser.add_argument("--judge-only", action="store_true", help="judge the runs that are there, train none")
    parser.add_argument("--list", action="store_true", help="print a line for each pair")
    parser.add_argument("--models", nargs="+", choices=sorted(TASKS), default=list(TASKS))
    parser.add_argument("--cases", nargs="+", choices=[case.name for case in CASES], metavar="NAME")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="so many seeds")
    parser.add_argument("--steps", type=int, default=STEPS, help="steps of each run")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table between the markers of this page")
    args = parser.parse_args()
    torch.set_num_threads(1)
    if not args.judge_only:
        train_all(args)
    judged = list(judge_all(args))
    if not judged:
        print(f"No pair of {args.steps} steps is in '{args.work}'. Train first: leave out --judge-only.")
        return 2
    if args.list:
        print(by_pair(judged), end="\n\n")
    print(by_kind(judged))
    if args.write is not None:
        write_between_markers(args.write, by_kind(judged), "trainings")
    return 1 if any(each.false_alarm for each in judged) else 0


if __name__ == "__main__":
    sys.exit(main())
