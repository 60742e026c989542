"""Captures of jobs of two processes that train together, many jobs in one pair of processes."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.running import environment

DRIVER = """
import gc, json, os, sys
from align.cli import main

for arguments, port in json.loads(sys.stdin.read()):
    os.environ["MASTER_PORT"] = str(port)
    code = main(arguments, prog_name="align", standalone_mode=False)
    print(f"<exit code {code or 0}>", flush=True)
    gc.collect()
"""
"""Processes meet at another port for each job: at the same one they would read where their peers were before."""


def capture_jobs(
    jobs: Sequence[tuple[Path, Sequence[str | Path]]], *, ranks: int = 2, device: str = "cpu",
    simulator: Mapping[str, Any] | None = None,
) -> None:  # fmt: skip
    """Capture jobs, given as (file, script and its arguments); `run.h5` becomes `run.rank0000.h5` and so on."""
    commands = [["capture", "--device", device, "-o", str(path), *map(str, script)] for path, script in jobs]
    plan = json.dumps(list(zip(commands, free_ports(len(commands)), strict=True)))
    started = [
        subprocess.Popen(
            [sys.executable, "-c", DRIVER],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=rank_environment(rank, ranks, simulator),
        )
        for rank in range(ranks)
    ]  # fmt: skip
    try:
        for process in started:
            assert process.stdin is not None
            process.stdin.write(plan)
            process.stdin.close()
            process.stdin = None
        said = [process.communicate(timeout=240) for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()
    for stdout, stderr in said:
        codes = [line for line in stdout.splitlines() if line.startswith("<exit code")]
        assert codes == ["<exit code 0>"] * len(commands), f"{codes}\n{stderr[-3000:]}"
        assert "trouble" not in stderr, stderr[-3000:]


def rank_environment(rank: int, ranks: int, simulator: Mapping[str, Any] | None = None) -> dict[str, str]:
    """The environment of one process among several that train together, as torchrun sets it."""
    place = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1"}
    return environment(simulator, **place)


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
