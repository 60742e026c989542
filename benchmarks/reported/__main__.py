"""Capture every reported case, good and bad, ask about it, and print what was said beside what is right."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from align.commands import diff_files, inspect_files
from align.records import DiffResult, InspectResult, Severity
from benchmarks.localization.reporting import write_between_markers
from benchmarks.reported.answers import REPORTED, Reported, Way

ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT / "fixtures" / "cases"

SHARED_PROCESS = """
import json, sys
from align.cli import main

for arguments in json.loads(sys.stdin.read()):
    main(arguments, prog_name="align", standalone_mode=False)
"""

VARIANTS = ("good", "bad")


def main() -> int:
    """Capture, ask, print; the exit code says whether all is right."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reported", description=__doc__)
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table between the markers of this page")
    parser.add_argument("--only", nargs="+", default=[], metavar="RECIPE")
    args = parser.parse_args()
    cases = [case for case in REPORTED if not args.only or case.recipe in args.only]
    with tempfile.TemporaryDirectory() as folder:
        _capture_alone(cases, Path(folder))
        for case in cases:
            if case.way in {Way.JOB, Way.ONE_AND_TWO_RANKS}:
                _capture_ranks(case, Path(folder))
        said = {case: _ask(case, Path(folder)) for case in cases}
    table = "\n".join(_table(said))
    print(table)
    if args.write is not None:
        write_between_markers(args.write, table)
    return 0 if all(_is_right(case, answer) for case, answer in said.items()) else 1


def _capture_alone(cases: Sequence[Reported], folder: Path) -> None:
    """All runs of one process, in one process: importing torch takes longer than most of them."""
    commands = []
    for case in cases:
        variants = {Way.TWO_FILES: VARIANTS, Way.REPEAT: ("bad", "bad"), Way.ONE_AND_TWO_RANKS: ("good",)}
        for number, variant in enumerate(variants.get(case.way, ())):
            file = folder / f"{case.recipe}.{number}.h5"
            script = [str(CASES / f"{case.recipe}.py"), "--variant", variant, "--device", "cpu"]
            commands.append(["capture", "--device", "cpu", *case.options, "-o", str(file), *script])
    subprocess.run(
        [sys.executable, "-c", SHARED_PROCESS],
        input=json.dumps(commands), text=True, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env=_environment(),
    )  # fmt: skip


def _capture_ranks(case: Reported, folder: Path) -> None:
    """The bad run as two ranks."""
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    capture = ["-m", "align", "capture", "--device", "cpu", "-o", str(folder / f"{case.recipe}.ranks.h5")]
    script = [str(CASES / f"{case.recipe}.py"), "--variant", "bad"]
    subprocess.run([*launch, *capture, *script], check=True, capture_output=True, env=_environment())


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}


def _ask(case: Reported, folder: Path) -> tuple[str, str]:
    """Where the runs part, or what the first finding points to, and what that is called."""
    ranks = str(folder / f"{case.recipe}.ranks.h5")
    if case.way is Way.JOB:
        job = inspect_files(ranks)
        where = job.findings[0].where if job.findings else None
        place = f"{_step(where.step)}:{where.phase}:{where.name}" if where is not None and where.phase else ""
        return place, _label(job, case.label)
    candidate = ranks if case.way is Way.ONE_AND_TWO_RANKS else str(folder / f"{case.recipe}.1.h5")
    result = diff_files(str(folder / f"{case.recipe}.0.h5"), candidate)
    first = result.first_divergence
    return (f"{_step(first.step)}:{first.phase}:{first.name}" if first is not None else ""), _label(result, case.label)


def _step(step: int | None) -> str:
    return "init" if step is None or step < 0 else str(step)


def _label(result: DiffResult | InspectResult, wanted: str) -> str:
    """The first error or warning; without one the wanted note where it is among them, else the first."""
    grave = [each.label for each in result.findings if each.severity is not Severity.NOTE]
    notes = [each.label for each in result.findings]
    if grave:
        return grave[0]
    return wanted if wanted in notes else next(iter(notes), "")


def _is_right(case: Reported, said: tuple[str, str]) -> bool:
    return _fits(case.first, said[0]) and (case.label == said[1])


def _fits(pattern: str, place: str) -> bool:
    wanted, found = pattern.split(":", 2), place.split(":", 2)
    return len(wanted) == len(found) and all(want in {"*", have} for want, have in zip(wanted, found, strict=True))


def _table(said: dict[Reported, tuple[str, str]]) -> Iterable[str]:
    yield "| what people reported | recipe | asked with | first divergence | finding | right |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for case, (place, label) in said.items():
        links = " ".join(f"[{number}]({source})" for number, source in enumerate(case.sources, 1))
        right = "yes" if _is_right(case, (place, label)) else f"no: {case.first or 'nowhere'}, {case.label}"
        told = place.replace("init:init:", "before step 0, ").replace(":", ", ") or "none"
        yield f"| {case.title} {links} | `{case.recipe}` | {case.way.value} | {told} | `{label}` | {right} |"
    number = sum(_is_right(case, answer) for case, answer in said.items())
    yield f"| **all** | {len(said)} | | | | **{number}** |"


if __name__ == "__main__":
    sys.exit(main())
