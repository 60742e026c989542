"""Capture all trainings, inspect them, and print what was right: `python -m benchmarks.nan_origins [NAME]...`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.nan_origins.capturing import capture_cases
from benchmarks.nan_origins.case import Case
from benchmarks.nan_origins.cases import CASES
from benchmarks.nan_origins.judging import Judgement, judge


def main() -> int:
    """Print one line a training and the sums; 0 where all are right."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="only these trainings")
    parser.add_argument("--quiet", action="store_true", help="only what is wrong, and the sums")
    args = parser.parse_args()
    chosen = [case for case in CASES if not args.names or case.name in args.names]
    with tempfile.TemporaryDirectory() as folder:
        captures = capture_cases(chosen, Path(folder))
        judgements = [judge(case, captures[case.name]) for case in chosen]
    for found in judgements:
        if not args.quiet or not found.is_right:
            print(_line(found))
    print(_sums(judgements))
    return 0 if all(found.is_right for found in judgements) else 1


def _line(found: Judgement) -> str:
    told = f"{found.label} at {found.where}" if found.where else "nothing accused"
    wanted = "" if found.is_right else f"; it should be {_wanted(found.case)}"
    return f"{'right' if found.is_right else 'WRONG':<6} {found.case.name} ({found.case.model}): {told}{wanted}"


def _wanted(case: Case) -> str:
    return f"{case.label} at {case.where}" if case.where else "silent"


def _sums(judgements: Sequence[Judgement]) -> str:
    known = [found for found in judgements if found.case.where]
    benign = [found for found in judgements if not found.case.where]
    return (
        f"{sum(found.is_right for found in known)} of {len(known)} origins named, "
        f"{sum(not found.is_right for found in benign)} of {len(benign)} benign runs accused"
    )


if __name__ == "__main__":
    sys.exit(main())
