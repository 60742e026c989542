"""The boundary between the training and our own code: whatever happens on our side, the training goes on."""

from __future__ import annotations

import os
import signal
import threading
import traceback
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from align.errors import CaptureFileError
from align.hooks.quiet import Quiet

if TYPE_CHECKING:
    from align.hooks.recorder import Recorder

MAXIMUM_NOTES = 20

OTHER_THREAD = "Another thread trains too: only the first one that did is captured"


class Boundary:
    """Runs our own actions without grad and modes, and counts what went wrong in them."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._quiet = Quiet()
        self.process = os.getpid()
        self.troubles: Counter[str] = Counter()

    @property
    def ours(self) -> bool:
        """Whether this is the process that opened the capture."""
        return os.getpid() == self.process

    def guarded(self, action: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Run one of our own actions without ever failing the training; None where it failed."""
        if self._recorder.closed or not self.ours:
            return None
        try:
            with self._quiet:
                return action(*args, **kwargs)
        except CaptureFileError as error:
            self._recorder.give_up(error)
        except Exception as error:
            # Training goes on and the trouble is kept, but what a signal handler of the script raised while we were
            # at work is the script's.
            if _raised_by_signal_handler(error):
                raise
            self.troubles[f"{action.__qualname__}: {type(error).__name__}: {error}"] += 1
        return None

    def notes(self) -> tuple[str, ...]:
        """The troubles met, each once with how often."""
        noted = [text if count == 1 else f"{text} ({count:,} times)" for text, count in self.troubles.items()]
        if len(noted) > MAXIMUM_NOTES:
            noted = [*noted[:MAXIMUM_NOTES], f"and {len(noted) - MAXIMUM_NOTES} more"]
        return tuple(noted)


class TrainingThread:
    """Which thread trains: the first one that did, and those that run the backward of a device for it."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._thread: int | None = None
        self.in_backward = False

    def here(self) -> bool:
        """Whether the thread that is running trains.

        Until one has, the main thread may, and any that made an optimizer.
        """
        thread = threading.get_ident()
        if self._thread is None:
            return thread == threading.main_thread().ident or self._recorder.roots.made_optimizer(thread)
        if self._thread == thread:
            return True
        return torch._C._current_graph_task_id() != -1 and self.in_backward

    def joins(self) -> bool:
        """The same, for an act that only training does: the first thread to act is the one that trains."""
        if self._thread is None:
            self._thread = threading.get_ident()
        joins = self.here()
        if not joins:
            self._recorder.troubles[OTHER_THREAD] = 1
        return joins


def _raised_by_signal_handler(error: BaseException) -> bool:
    """Whether a signal handler of the script was running when the exception was raised."""
    handlers = {getattr(signal.getsignal(number), "__code__", None) for number in signal.valid_signals()} - {None}
    return any(frame.f_code in handlers for frame, _ in traceback.walk_tb(error.__traceback__))
