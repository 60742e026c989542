"""Another process puts a journal down: a process that is killed cannot be stopped half way in what it does not do.

Where none can be started (Windows, an embedded interpreter, no more processes allowed) or it goes away, the caller
puts down the journal itself.
"""

from __future__ import annotations

import os
import signal
import sys
import weakref
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from align import put_down_process
from align.put_down_process import DONE, PROCESS, REQUEST

if TYPE_CHECKING:
    import socket
    import subprocess

_PATIENCE = 10.0
"""Seconds until the process has started or has answered. It takes 20 ms and 0.1 ms; a machine may be busy."""
_FOR_THE_LOADER = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH")
"""What an interpreter may need to find its own library; anything else could make it load what training loads."""


class PutDownProcess:
    """The process that puts down the journals of one file; started by the first journal.

    Of two processes that write the same place the later one wins: so the caller writes nothing itself before the
    process has answered or is gone.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._connection: socket.socket | None = None
        self._number = 0
        self._started = False
        self._asked = False
        _open_processes.add(self)

    def put_down(self, start: int, length: int, size: int) -> bool:
        """Have the journal put down that begins at `start`, and the file cut to `size`.

        False where that was not done and nobody is at it. Raises OSError where that cannot be known, and whatever a
        signal handler raised, after it is done.
        """
        if not self._started:
            self._started = True
            self._start()
        if self._connection is None:
            return False
        self._asked = True
        try:
            self._connection.sendall(REQUEST.pack(start, length, size), _no_signal())
        except TimeoutError:
            return self._end()
        except OSError:
            return self._gone()
        return self.wait()

    def wait(self) -> bool:
        """Return when nothing is asked any more: whether what was asked last has been done."""
        interruption: BaseException | None = None
        done = True
        while self._asked and self._connection is not None:
            try:
                answer = self._connection.recv(1)
                self._asked = False
                done = answer == DONE or self._gone()
            except TimeoutError:
                done = self._end()
            except OSError:
                done = self._gone()
            except BaseException as stop:  # noqa: BLE001 - whatever a signal handler raises; it must wait as well
                interruption = stop
        if interruption is not None:
            raise interruption
        return done

    def stop(self) -> None:
        """Let the process leave, and see it off."""
        connection = self._connection
        if connection is not None:
            import socket

            with suppress(OSError):
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(1):
                    pass
            self._gone()

    def forget(self) -> None:
        """In a forked child: this end of the socket is the parent's."""
        connection, self._connection, self._started = self._connection, None, True
        if connection is not None:
            connection.close()

    def _start(self) -> None:
        if not hasattr(os, "fork") or not sys.executable or getattr(sys, "frozen", False):
            return
        import socket

        with suppress(OSError):
            self._connection, theirs = socket.socketpair()
            try:
                self._connection.settimeout(_PATIENCE)
                with theirs:
                    launched = self._launch(theirs.fileno())
                self._greet(self._connection, launched)
            except BaseException:
                self.forget()
                raise

    def _launch(self, theirs: int) -> subprocess.Popen[bytes]:
        import subprocess

        program = str(Path(put_down_process.__file__).resolve())
        return subprocess.Popen(  # noqa: S603 - the interpreter that runs this, with a file of ours
            # Isolated and without site: nothing of the training's environment is loaded.
            [sys.executable, "-I", "-S", program, str(self._descriptor), str(theirs)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={name: os.environ[name] for name in _FOR_THE_LOADER if name in os.environ},
            cwd="/",
            pass_fds=(self._descriptor, theirs),
            start_new_session=True,
        )

    def _greet(self, connection: socket.socket, launched: subprocess.Popen[bytes]) -> None:
        """Wait until the process is there; the one that was launched has left it behind and ends."""
        greeting = b""
        try:
            greeting = connection.recv(PROCESS.size)
        finally:
            if len(greeting) != PROCESS.size:
                launched.kill()
            launched.wait()
        if len(greeting) != PROCESS.size:
            raise OSError("no process came")
        (self._number,) = PROCESS.unpack(greeting)

    def _end(self) -> bool:
        """End a process that does not answer, and make sure that it is gone."""
        if self._connection is not None:
            with suppress(ProcessLookupError):
                os.kill(self._number, signal.SIGKILL)
            try:
                while self._connection.recv(1):
                    pass
            except ConnectionError:
                pass
            except OSError as error:
                self._gone()
                raise OSError("the process that puts down changes neither answers nor ends") from error
        return self._gone()

    def _gone(self) -> bool:
        """Nobody is at it, nor will be: False, as to whether it was done."""
        connection, self._connection = self._connection, None
        self._asked = False
        if connection is not None:
            connection.close()
            if os.getpid() == 1:
                # Orphans become children of the first process of a container.
                with suppress(ChildProcessError):
                    os.waitpid(self._number, 0)
        return False


def _no_signal() -> int:
    """A script may have switched SIGPIPE on."""
    import socket

    return getattr(socket, "MSG_NOSIGNAL", 0)


_open_processes: weakref.WeakSet[PutDownProcess] = weakref.WeakSet()


def _forget_in_child() -> None:
    for process in list(_open_processes):
        process.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)
