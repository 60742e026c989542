"""Captures of jobs of two processes that train together, many jobs in one pair of processes."""

from __future__ import annotations

import json
import socket
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.running import Outcome, environment, run_python

FORKS = """
import atexit, io, json, os, sys, threading, traceback

def ended(program, given):
    sys.stdin = io.StringIO(given)
    try:
        exec(compile(program, "<rank>", "exec"), {"__name__": "__main__"})
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0

program, given, environments, folder = json.loads(sys.stdin.read())
children = []
for rank, variables in enumerate(environments):
    child = os.fork()
    if not child:
        os.environ.clear()
        os.environ.update(variables)
        for descriptor in (1, 2):
            os.dup2(os.open(f"{folder}/{rank}.{descriptor}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
        code = ended(program, given)
        threading._shutdown()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    children.append(child)
print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]))
"""
"""Importing torch costs seconds for each rank, so the ranks are forks of one process that has done it."""

DRIVER = """
import gc, json, os, sys
from align.cli import main

for arguments, port in json.loads(sys.stdin.read()):
    os.environ["MASTER_PORT"] = str(port)
    code = main(arguments, prog_name="align", standalone_mode=False)
    print(f"<exit code {code or 0}>", flush=True)
    gc.collect()
    gc.freeze()
"""
"""Processes meet at another port for each job: at the same one they would read where their peers were before."""


def capture_jobs(
    jobs: Sequence[tuple[Path, Sequence[str | Path]]], *, ranks: int = 2, device: str = "cpu",
    simulator: Mapping[str, Any] | None = None,
) -> None:  # fmt: skip
    """Capture jobs, given as (file, script and its arguments); `run.h5` becomes `run.rank0000.h5` and so on."""
    commands = [["capture", "--device", device, "-o", str(path), *map(str, script)] for path, script in jobs]
    plan = json.dumps(list(zip(commands, free_ports(len(commands)), strict=True)))
    for said in run_ranks(DRIVER, ranks=ranks, given=plan, simulator=simulator):
        codes = [line for line in said.stdout.splitlines() if line.startswith("<exit code")]
        assert codes == ["<exit code 0>"] * len(commands), f"{codes}\n{said.stderr[-3000:]}"
        assert "trouble" not in said.stderr, said.stderr[-3000:]


def run_ranks(
    program: str, *, ranks: int = 2, given: str = "", simulator: Mapping[str, Any] | None = None,
    cwd: Path | None = None,
) -> list[Outcome]:  # fmt: skip
    """Run a Python program in several processes at once, each with its rank and `given` as its input."""
    environments = [rank_environment(rank, ranks, simulator) for rank in range(ranks)]
    with tempfile.TemporaryDirectory() as folder:
        order = json.dumps([program, given, environments, folder])
        done = run_python("-c", FORKS, given=order, simulator=simulator, cwd=cwd, timeout=240)
        assert done.returncode == 0, done.stderr
        said = [[Path(folder, f"{rank}.{one}").read_text(encoding="utf-8") for one in (1, 2)] for rank in range(ranks)]
    return [Outcome(code, *texts) for code, texts in zip(json.loads(done.stdout), said, strict=True)]


def rank_environment(rank: int, ranks: int, simulator: Mapping[str, Any] | None = None) -> dict[str, str]:
    """The environment of one process among several that train together, as torchrun sets it."""
    size = str(ranks)
    place = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": size, "LOCAL_WORLD_SIZE": size}
    return environment(simulator, **place, MASTER_ADDR="127.0.0.1")


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
