"""What is being done and how far it is, told to whoever watches; nobody does unless somebody asked to.

The work tells of itself through the functions of this module, at whatever depth it is done. Who watches is kept in a
context variable, so that no function has to hand it on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeVar

from align.records import Word

Item = TypeVar("Item")


class Stage(Word):
    """What is being done."""

    READING = "reading"
    INITIAL = "initial"
    COMPARING = "comparing"
    EXPLAINING = "explaining"
    INSPECTING = "inspecting"
    PAIRING = "pairing"
    BYTES = "bytes"
    REPLAYING = "replaying"
    WRITING = "writing"


class Watcher(Protocol):
    """Whoever is told; it is called often, and must neither raise nor take long."""

    def begin(self, stage: Stage, total: int, parts: int) -> None:
        """Work begins: of `total` units (bytes in the stage BYTES), in `parts` parts; 0 where that is not known."""

    def enter(self, part: int) -> None:
        """One of the parts begins; the first is 1."""

    def advance(self, count: int) -> None:
        """So many more units are done."""

    def reach(self, start: int, stop: int) -> None:
        """The units before `start` are done; up to the next call none from `stop` on is, whatever `advance` says."""

    def end(self) -> None:
        """Nothing is being done now, and something may be printed."""


class _Nobody:
    """Watches nothing."""

    def begin(self, stage: Stage, total: int, parts: int) -> None:
        pass

    def enter(self, part: int) -> None:
        pass

    def advance(self, count: int) -> None:
        pass

    def reach(self, start: int, stop: int) -> None:
        pass

    def end(self) -> None:
        pass


_NOBODY: Watcher = _Nobody()
_WATCHER: ContextVar[Watcher] = ContextVar("align_watcher", default=_NOBODY)


@contextmanager
def watched_by(watcher: Watcher) -> Iterator[None]:
    """Tell a watcher of all that is done in the block; at its end, however that comes, nothing is being done."""
    token = _WATCHER.set(watcher)
    try:
        yield
    finally:
        _WATCHER.reset(token)
        watcher.end()


def begin(stage: Stage, total: int = 0, parts: int = 0) -> None:
    """Say that work begins, as `Watcher.begin` takes it; the stage before it is over."""
    _WATCHER.get().begin(stage, total, parts)


def enter(part: int) -> None:
    """Say that a part of the stage begins; the first is 1."""
    _WATCHER.get().enter(part)


def advance(count: int = 1) -> None:
    """Say that so many more units are done."""
    _WATCHER.get().advance(count)


def reach(start: int, stop: int) -> None:
    """Say that the units from `start` to `stop` begin, whose work may advance by less than they are, or by more."""
    _WATCHER.get().reach(start, stop)


def end() -> None:
    """Say that the stage is over and nothing follows it yet: to be called before anything is printed."""
    _WATCHER.get().end()


def counted(items: Iterable[Item]) -> Iterator[Item]:
    """The items, each a unit that is done once the next is asked for."""
    watcher = _WATCHER.get()
    for item in items:
        yield item
        watcher.advance(1)
