"""A process that has imported torch and waits: a Python program is then a fork of it, and starts in no time.

Importing torch and what its optimizers need takes some 3 seconds of processor time, more than most captures of the
tests, and what the example scripts and transformers import takes 2 more. A fork is a process of its own all the same,
with its own output, folder, environment and exit code; where its path leads to a device that the process has not, it
loads that as `import torch` does at its end. Programs that look at their own start (what is imported when, and in which
order) or at how Python takes their modules down need a fresh interpreter, and so do those whose environment torch reads
while it is imported.
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
import atexit, gc, json, os, runpy, socket, sys, threading
from types import ModuleType
import h5py, huggingface_hub, sklearn.datasets, tokenizers, torch, torch._dynamo
import align.cli, align.commands
import align.hooks.capture, align.hooks.children, align.hooks.last_line, align.hooks.recorder

def received(orders, size):
    text = b""
    while len(text) < size:
        text += orders.recv(size - len(text))
    return text

def forked(orders):
    # An order in the fork that is to carry it out; nothing in this process, when no more orders come.
    while True:
        size, files, *_ = socket.recv_fds(orders, 8, 3)
        if not size:
            return None
        text = received(orders, int(size))
        child = os.fork()
        if not child:
            for standard, file in enumerate(files):
                os.dup2(file, standard)
                os.close(file)
            orders.close()
            return json.loads(text)
        for file in files:
            os.close(file)
        orders.sendall(b"%8d" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

def carry_out(order):
    os.environ.clear()
    os.environ.update(order["environment"])
    more = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path and path not in sys.path]
    if more:
        sys.path[1:1] = more
        if torch._is_device_backend_autoload_enabled():
            torch._import_device_backends()
    os.chdir(order["folder"])
    first, *rest = order["arguments"]
    if first == "-c":
        sys.argv, sys.path[0] = ["-c", *rest[1:]], ""
        main = sys.modules["__main__"] = ModuleType("__main__")
        exec(compile(rest[0], "<string>", "exec"), main.__dict__)
    elif first == "-m":
        sys.argv, sys.path[0] = rest, os.getcwd()
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv, sys.path[0] = [first, *rest], os.path.dirname(os.path.abspath(first))
        runpy.run_path(first, run_name="__main__")

def ended(order):
    # The exit code, once all is said as Python says it.
    try:
        carry_out(order)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
    return 0

gc.freeze()
order = forked(socket.socket(fileno=int(sys.argv[1])))
if order is not None:
    code = ended(order)
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code & 255)
"""
"""What is imported is not torn down in a fork: that takes a second, and the script its twentieth part."""


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
        limit = threading.Timer(timeout, self._kill)
        with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as stdout:
            stdin.write(given.encode())
            stdin.seek(0)
            limit.start()
            try:
                stderr, code = self._ordered(text, stdin.fileno(), stdout.fileno())
            finally:
                limit.cancel()
            stdout.seek(0)
            return subprocess.CompletedProcess(arguments, code, stdout.read().decode(), stderr)

    def _ordered(self, text: bytes, stdin: int, stdout: int) -> tuple[str, int]:
        """What the fork said on stderr, which is a pipe, and its exit code."""
        reading, writing = os.pipe()
        with os.fdopen(reading, encoding="utf-8", errors="replace") as errors:
            try:
                socket.send_fds(self._orders, [b"%8d" % len(text)], [stdin, stdout, writing])
                self._orders.sendall(text)
            finally:
                os.close(writing)
            stderr = errors.read()
        code = self._orders.recv(8)
        assert code, f"The process took too long, or cannot import torch: then it must be fresh.\n{stderr}"
        return stderr, int(code)

    def close(self) -> None:
        """Let the process end."""
        self._orders.close()
        self._process.wait()

    def _kill(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)


_waiting: list[WaitingProcess] = []
"""The process, once a program has been run."""


def run(
    arguments: Sequence[str | Path],
    environment: Mapping[str, str],
    *,
    waiting_in: Mapping[str, str],
    folder: Path | None = None,
    given: str = "",
    timeout: float = 300,
) -> subprocess.CompletedProcess[str]:
    """Run a program in a fork of the process, which the first program starts in the environment `waiting_in`."""
    if not _waiting:
        _waiting.append(WaitingProcess(waiting_in))
    return _waiting[0].run([str(argument) for argument in arguments], environment, folder, given, timeout)
