"""Make the captures that are not there yet, in worker processes that each serve one kind of device."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.localization.plan import SCRIPT, Capture, replay_of

ROOT = Path(__file__).resolve().parents[2]
SIMULATOR = ROOT / "fixtures" / "npu_sim"
JOBS_OF_A_PROCESS = 100
FITTING_STEPS = 60

Job: TypeAlias = "dict[str, Any]"
"""One run of a worker: the file that it writes, the knobs of the device (none: the CPU), the command, the script."""

Batch: TypeAlias = "tuple[str, list[Job]]"
"""The lists of the simulated device's autocast (empty: the CPU alone), and the jobs of one process."""


class CaptureFailed(RuntimeError):
    """Some captures could not be made; the message holds what the first of them said."""


def environment(lists: str) -> dict[str, str]:
    """The environment of a worker; `lists` are those of the simulated NPU's autocast, empty for the CPU alone."""
    paths = [str(ROOT)]
    own = {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore", "HF_HUB_OFFLINE": "1"}
    if lists:
        paths.append(str(SIMULATOR))
        own["ALIGN_NPU_SIM"] = json.dumps({"autocast": lists})
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("COV_", "RANK"))}
    return {**inherited, **own, "PYTHONPATH": os.pathsep.join(paths)}


def make_checkpoints(models: Sequence[str], work: Path) -> None:
    """Train each model for a while on the CPU, where that has not been done, and keep its weights."""
    for model in models:
        path = work / f"{model}.pt"
        if not path.exists():
            command = ["--model", model, "--fit", str(FITTING_STEPS), "--checkpoint", str(path)]
            subprocess.run(
                [sys.executable, str(SCRIPT), *command], check=True, stdout=subprocess.DEVNULL, env=environment("")
            )


def make_captures(captures: Sequence[Capture], work: Path, options: Sequence[str] = (), processes: int = 2) -> None:
    """Make all captures that are missing; raises CaptureFailed when some could not be made.

    `options` are more options of `align capture`.
    """
    missing = [capture for capture in captures if not (work / capture.path).exists()]
    batches = [(some[0].lists, [capture_job(each, work, options) for each in some]) for some in _batches(missing)]
    _run_all(batches, work, processes)


def make_replays(captures: Sequence[Capture], work: Path, precision: str, processes: int = 2) -> None:
    """Replay captures on the CPU by the script without a fault; raises CaptureFailed when some could not be made."""
    missing = [capture for capture in captures if not (work / replay_of(capture.path)).exists()]
    portions = [missing[start : start + JOBS_OF_A_PROCESS] for start in range(0, len(missing), JOBS_OF_A_PROCESS)]
    _run_all([("", [_replay(each, work, precision) for each in some]) for some in portions], work, processes)


def _run_all(batches: Sequence[Batch], work: Path, processes: int) -> None:
    failed: list[str] = []
    done, wanted = 0, sum(len(jobs) for _, jobs in batches)
    with ThreadPoolExecutor(processes) as pool:
        for found in pool.map(lambda batch: _run(batch, work), batches):
            done += len(found)
            failed += [f"{each['path']}: {each['said']}" for each in found if each["code"]]
            print(f"runs: {done} of {wanted}, {len(failed)} failed", file=sys.stderr, flush=True)
    if failed:
        names = ", ".join(each.partition(":")[0].rpartition("/")[2] for each in failed)
        raise CaptureFailed(f"{len(failed)} runs failed ({names}). {failed[0]}")


def capture_job(capture: Capture, work: Path, options: Sequence[str] = ()) -> Job:
    """The run of a worker that makes a capture; `options` are more options of `align capture`."""
    device = "npu" if capture.lists else "cpu"
    command = ["capture", "--device", device, "--no-transfer", "--steps", capture.steps, *capture.options, *options]
    return {
        "path": str(work / capture.path),
        "knobs": dict(capture.knobs) if capture.lists else None,
        "command": command,
        "script": [str(SCRIPT), *capture.arguments],
    }


def _replay(capture: Capture, work: Path, precision: str) -> Job:
    return {
        "path": str(work / replay_of(capture.path)),
        "knobs": None,
        "command": ["replay-one", "--capture", str(work / capture.path), "--device", "cpu", "--precision", precision],
        "script": [str(SCRIPT), *capture.without_fault],
    }


def _batches(captures: Sequence[Capture]) -> list[list[Capture]]:
    """Captures of one kind of device each, in the order of first need; the references on the CPU are needed first."""
    found = []
    for kind in sorted({capture.lists for capture in captures}):
        some = [capture for capture in captures if capture.lists == kind]
        found += [some[start : start + JOBS_OF_A_PROCESS] for start in range(0, len(some), JOBS_OF_A_PROCESS)]
    places = {capture.path: place for place, capture in enumerate(captures)}
    return sorted(found, key=lambda batch: (batch[0].lists != "", places[batch[0].path]))


def _run(batch: Batch, work: Path) -> list[dict[str, Any]]:
    lists, jobs = batch
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.localization.many_runs"],
        input=json.dumps(jobs), capture_output=True, text=True, check=False, cwd=work, env=environment(lists),
    )  # fmt: skip
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"path"')]
    return found + [{"path": job["path"], "code": 9, "said": done.stderr[-2000:]} for job in jobs[len(found) :]]
