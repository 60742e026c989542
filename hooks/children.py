"""Notice child processes that train: they are not captured, and the last line says how to capture them."""

from __future__ import annotations

import multiprocessing.process as processes
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

DATA_WORKER = "_worker_loop"


class ChildWatch:
    """While open, every process started through multiprocessing leaves a mark when an optimizer steps in it.

    DataLoader workers are left alone.
    """

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._original: Callable[..., Any] | None = None
        self._trained: list[str] = []
        self._process = 0

    def __enter__(self) -> ChildWatch:
        self._process = os.getpid()
        self._folder = tempfile.TemporaryDirectory(prefix="align-children-")
        folder = self._folder.name
        original = self._original = processes.BaseProcess.start

        def start(process: Any) -> None:
            target = getattr(process, "_target", None)
            if target is not None and getattr(target, "__name__", "") != DATA_WORKER:
                process._target = WatchedTarget(target, folder, process.name)
            original(process)

        setattr(processes.BaseProcess, "start", start)  # noqa: B010  a method is replaced while we watch
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._original is not None:
            setattr(processes.BaseProcess, "start", self._original)  # noqa: B010
        if self._folder is not None and os.getpid() == self._process:
            self._trained = sorted(mark.read_text() for mark in Path(self._folder.name).iterdir())
            self._folder.cleanup()

    def sentence(self) -> str:
        """What to say of the children that trained; empty when there were none."""
        if not self._trained:
            return ""
        names = ", ".join(self._trained[:4]) + (", ..." if len(self._trained) > 4 else "")  # noqa: PLR2004
        count = len(self._trained)
        processes_word = "child process trained and was" if count == 1 else "child processes trained and were"
        return (
            f"{count} {processes_word} not captured ({names}): to capture each rank, start them with "
            f"torchrun --nproc-per-node {count} -m align capture ..."
        )


class WatchedTarget:
    """A process target that leaves a mark in a folder at its first optimizer step; it pickles with its target."""

    def __init__(self, target: Callable[..., Any], folder: str, name: str) -> None:
        self.target = target
        self.folder = folder
        self.name = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the target in the child; one that has not imported torch by now is no training process."""
        if "torch" not in sys.modules:
            return self.target(*args, **kwargs)
        from torch.optim.optimizer import register_optimizer_step_post_hook

        handle = register_optimizer_step_post_hook(self._stepped)
        try:
            return self.target(*args, **kwargs)
        finally:
            handle.remove()

    def _stepped(self, *_: Any) -> None:
        mark = Path(self.folder) / str(os.getpid())
        if Path(self.folder).is_dir() and not mark.exists():
            mark.write_text(self.name)
