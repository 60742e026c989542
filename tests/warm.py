"""Processes that have imported torch and wait: a Python program is then a fork of one, and starts in no time.

Importing torch and what its optimizers need takes some 3 seconds of processor time, more than most captures of the
tests. A fork is a process of its own all the same, with its own output, folder, environment and exit code. Programs
that look at their own start (what is imported when, and in which order) need a fresh interpreter, and so do those whose
environment torch reads while it is imported.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

WAITING = """
import json, os, runpy, socket, sys
import h5py, torch, torch._dynamo
import align.cli, align.commands

def forked(orders):
    # Returns the order in a fork of its own; where it does not fork any more, nothing.
    while header := socket.recv_fds(orders, 8, 3)[:2]:
        size, files = header
        if not size:
            return None
        text = b""
        while len(text) < int(size):
            text += orders.recv(int(size) - len(text))
        child = os.fork()
        if not child:
            for standard, file in enumerate(files):
                os.dup2(file, standard)
                os.close(file)
            orders.close()
            return json.loads(text)
        for file in files:
            os.close(file)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        orders.sendall(b"%8d" % status)

order = forked(socket.socket(fileno=int(sys.argv[1])))
if order is not None:
    os.environ.clear()
    os.environ.update(order["environment"])
    os.chdir(order["folder"])
    first, *rest = order["arguments"]
    if first == "-c":
        program, *rest = rest
        sys.argv, sys.path[0] = ["-c", *rest], ""
        exec(compile(program, "<string>", "exec"), {"__name__": "__main__"})
    elif first == "-m":
        sys.argv, sys.path[0] = rest, os.getcwd()
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv, sys.path[0] = [first, *rest], os.path.dirname(os.path.abspath(first))
        runpy.run_path(first, run_name="__main__")
"""


class WaitingProcess:
    """An interpreter in one environment that has imported torch and forks for each program."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._orders, theirs = socket.socketpair()
        command = [sys.executable, "-c", WAITING, str(theirs.fileno())]
        self._process = subprocess.Popen(
            command, env=environment, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, start_new_session=True
        )
        theirs.close()
        atexit.register(self.close)

    def run(
        self, arguments: Sequence[str], environment: Mapping[str, str], folder: Path | None, given: str, timeout: float
    ) -> subprocess.CompletedProcess[str]:
        """Run `python *arguments` with `given` as its input, as `subprocess.run` does with captured text."""
        order = {"arguments": arguments, "environment": environment, "folder": str(folder or Path.cwd())}
        text = json.dumps(order).encode()
        with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as stdout:
            stdin.write(given.encode())
            stdin.seek(0)
            errors, written = os.pipe()
            socket.send_fds(self._orders, [b"%8d" % len(text)], [stdin.fileno(), stdout.fileno(), written])
            os.close(written)
            self._orders.sendall(text)
            limit = threading.Timer(timeout, self._kill)
            limit.start()
            with open(errors, encoding="utf-8", errors="replace") as stream:
                stderr = stream.read()
            code = self._orders.recv(8)
            limit.cancel()
            limit.join()
            assert code, f"{arguments} took longer than {timeout} seconds:\n{stderr}"
            stdout.seek(0)
            return subprocess.CompletedProcess(arguments, int(code), stdout.read().decode(), stderr)

    def close(self) -> None:
        """Let the process end."""
        self._orders.close()
        self._process.wait()

    def _kill(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)


_waiting: dict[str, WaitingProcess] = {}


def run(
    arguments: Sequence[str | Path],
    environment: Mapping[str, str],
    *,
    kind: str = "",
    folder: Path | None = None,
    given: str = "",
    timeout: float = 300,
) -> subprocess.CompletedProcess[str]:
    """Run a program in a fork of the process of this kind, which the first program of the kind starts.

    All programs of one kind must agree in what torch reads from the environment when it is imported.
    """
    if kind not in _waiting:
        _waiting[kind] = WaitingProcess(environment)
    return _waiting[kind].run([str(argument) for argument in arguments], environment, folder, given, timeout)
