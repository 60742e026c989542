"""The localisation benchmark's command line: `python -m benchmarks.localization`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.localization import catalogue, judging, measuring, peers, plan, reporting, rules
from benchmarks.localization.capturing import ROOT, make_captures, make_checkpoints
from benchmarks.localization.judging import Judgement
from benchmarks.localization.plan import Pair

WORK = ROOT / "out" / "localization"
LEFT_OUT = "left-out"


def parse_args(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.localization", description=__doc__)
    kinds = tuple(kind.name for kind in catalogue.KINDS)
    parser.add_argument("--work", type=Path, default=WORK, help="folder of the captures, kept and used again")
    parser.add_argument("--models", type=_list_of(catalogue.MODELS), default=catalogue.MODELS)
    parser.add_argument("--classes", type=_list_of(catalogue.CLASSES), default=catalogue.CLASSES)
    parser.add_argument("--faults", type=_list_of((*kinds, "none")), default=kinds, help="none: healthy pairs only")
    parser.add_argument("--parts", type=_list_of(catalogue.PARTS), default=catalogue.PARTS)
    parser.add_argument("--quick", action="store_true", help="the first seed of healthy pairs only")
    parser.add_argument("--diff-only", action="store_true", help="compare what is there, capture nothing")
    parser.add_argument("--capture-only", action="store_true", help="capture what is missing, compare nothing")
    parser.add_argument("--list", action="store_true", help="one line for each pair that is not answered right")
    parser.add_argument("--only", type=_list_of(rules.OURS), default=(rules.TWO_FILES,), help="rules to measure")
    parser.add_argument("--share", type=float, default=1.0, help="of the faults, for the rules that need values")
    parser.add_argument("--keep-values", action="store_true", help="keep the captures with values (20 MB a pair)")
    parser.add_argument("--left-out", action="store_true", help="also judge each model with the limit of the others")
    parser.add_argument("--check-effects", action="store_true", help="also look for faults that change nothing")
    parser.add_argument("--tables", action="store_true", help="judge nothing, print what was judged before")
    parser.add_argument("--kinds", action="store_true", help="also tell the kinds of faults apart")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the tables between the markers of this page")
    parser.add_argument("--diff-options", default="", help="more options of align diff, such as '--limit 6'")
    parser.add_argument("--processes", type=int, default=2)
    return parser.parse_args(words)


def _list_of(allowed: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    def read(text: str) -> tuple[str, ...]:
        found = tuple(filter(None, text.split(",")))
        for word in found:
            if word not in allowed:
                raise argparse.ArgumentTypeError(f"'{word}' is not one of {', '.join(allowed)}")
        return found

    return read


def main() -> int:
    """Capture what is missing, judge, print."""
    args = parse_args()
    work = args.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    planned = plan.mixed(plan.plan(choice_of(args)))
    if args.quick:
        planned = [(pair, captures) for pair, captures in planned if not pair.benign or pair.seed == plan.SEEDS[0]]
    folders = rules.Folders(work, work / "values")
    if not args.diff_only and not args.tables:
        make_checkpoints(args.models, work)
        if sketched(args):
            wanted = plan.distinct(each for _, captures in planned for each in captures)
            more = plan.perturbed(wanted) if rules.PERTURBED in args.only else ()
            make_captures([*wanted, *more], work, (), args.processes)
            plan.write_manifest([plan.with_answers(pair, work) for pair, _ in planned], work)
    if args.capture_only:
        return 0
    there = [each for each in planned if rules.can_judge(rules.TWO_FILES, each[0], folders)]
    if sketched(args) and len(there) < len(planned):
        print(f"{len(planned) - len(there)} of {len(planned)} pairs are not captured yet", file=sys.stderr)
    if not args.tables:
        judge_sketches([plan.with_answers(pair, work) for pair, _ in there], folders, args)
        judge_values(planned, folders, args)
        if args.left_out:
            judge_left_out(folders, args)
    if args.check_effects:
        idle = measuring.effects([pair for pair, _ in there], folders, args.processes)
        print(f"{len(idle)} faults change nothing: {' '.join(idle)}")
    text = report(planned, work, args)
    print(text)
    if args.write is not None:
        reporting.write_between_markers(args.write, text)
    return 0


def sketched(args: argparse.Namespace) -> tuple[str, ...]:
    """The rules that were asked for and need sketches only."""
    return tuple(name for name in args.only if name not in rules.WITH_VALUES)


def judge_sketches(pairs: Sequence[Pair], folders: rules.Folders, args: argparse.Namespace) -> None:
    """Judge by the rules that need sketches only; what is found is kept in the work folder."""
    for name in sketched(args):
        found = measuring.judge_sketches(name, pairs, folders, args.processes, args.diff_options.split())
        measuring.save(name, found, folders.sketches)


def judge_values(planned: measuring.Planned, folders: rules.Folders, args: argparse.Namespace) -> None:
    """Judge by the rules that need values: all healthy pairs, and a share of the faults."""
    names = [name for name in args.only if name in rules.WITH_VALUES]
    if names:
        some = [each for each in planned if each[0].benign or plan.lot(each[0]) < args.share]
        measuring.judge_values(names, some, folders, args.processes, kept=args.keep_values)


def judge_left_out(folders: rules.Folders, args: argparse.Namespace) -> None:
    """Judge again, each model with the limit of the others; of captures with values only replays are judged again."""
    for name in args.only:
        found = measuring.load(name, folders.sketches)
        for model in args.models if name != rules.VALUES else ():
            judged = rules.left_out(name, model, found, folders, args.processes)
            measuring.save(f"{name}-{LEFT_OUT}", judged, folders.sketches)


def report(planned: measuring.Planned, work: Path, args: argparse.Namespace) -> str:
    """The tables of what has been judged, of the pairs that were asked for."""
    names = rules.OURS if args.tables else args.only
    wanted = {pair.name for pair, _ in planned}

    def judged(name: str) -> list[Judgement]:
        return [each for each in measuring.load(name, work) if each.pair.name in wanted]

    ours = {rules.LABELS[name]: judged(name) for name in names}
    if args.list:
        print(*(judging.line(each) for found in ours.values() for each in found if not each.right), sep="\n")
    left_out = {rules.LABELS[name]: judged(f"{name}-{LEFT_OUT}") for name in names}
    others = {name: judged(name) for name in peers.RULES} if args.tables or rules.VALUES in names else {}
    results = {label: found for label, found in {**ours, **others}.items() if found}
    told = rules.LABELS[names[0]] if args.kinds else ""
    return reporting.report(results, {label: found for label, found in left_out.items() if found}, told)


def choice_of(args: argparse.Namespace) -> plan.Choice:
    """What is to be compared."""
    faults = tuple(name for name in args.faults if name != "none" and catalogue.KIND_OF[name].part in args.parts)
    return plan.Choice(models=args.models, classes=args.classes, faults=faults)


if __name__ == "__main__":
    sys.exit(main())
