"""Find which call an activation checkpoint repeats when it computes again inside the backward."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from align.hooks.quiet import grad_mode

if TYPE_CHECKING:
    from align.hooks.recorder import Recorder
    from align.hooks.trace import Call, Forward


class CheckpointWatch:
    """Knows the calls that every checkpointed function made the first time, and which of them is repeated now."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.repeating: list[Call] | None = None
        self.running: Region | None = None

    @property
    def trains(self) -> bool:
        """Whether a checkpoint runs its function the first time, for a training though perhaps without grad."""
        return self.running is not None and self.running.trains

    def region(self, function: Callable[..., Any]) -> Region:
        """A function that a checkpoint calls twice."""
        return Region(self, function, trains=grad_mode() or self.trains)

    def forward_begins(self, forward: Forward) -> None:
        """The script calls checkpoints itself: a forward inside one lives as long as its function is kept."""
        if self.running is not None:
            self.running.hold(forward)

    def calls_now(self) -> list[Call] | None:
        """The calls of the forward that is running, as a list that grows; None outside one."""
        innermost = self._recorder.calls.innermost
        return innermost.forward.calls if innermost is not None else None

    def call_to_repeat(self, name: str, within: Call | None) -> Call | None:
        """The call of this module in this step that is repeated now, inside the repeated call `within` if there is one.

        A checkpoint repeats its calls in their order. Where its function was not seen the first time, checkpoints
        are taken to be repeated from the last to the first, one call each.
        """
        if within is not None:
            return _first([call for call in within.forward.calls if call.parent is within], name)
        if self.repeating is not None:
            return _first(self.repeating, name)
        trace = self._recorder.trace
        for forward in reversed((*trace.reached, *trace.pending)):
            found = _first(reversed(forward.calls), name)
            if found is not None:
                return found
        return None


def _first(calls: Any, name: str) -> Call | None:
    """The first of these calls of this module that has not been repeated yet."""
    return next((call for call in calls if call.name == name and not call.recomputed), None)


class Region:
    """A checkpointed function: what it calls the first time is what it repeats the second.

    The first call goes through the region itself (reentrant checkpoints), or happens between `begin` and `end`.
    """

    __slots__ = ("__weakref__", "_before", "_calls", "_forwards", "_function", "_start", "_watch", "trains")

    def __init__(self, watch: CheckpointWatch, function: Callable[..., Any], *, trains: bool) -> None:
        self._watch = watch
        self._function = function
        self._calls: list[Call] | None = None
        self._forwards: list[Forward] = []
        self._start = 0
        self._before: Region | None = None
        self.trains = trains

    def begin(self) -> None:
        """The first call begins."""
        self._before, self._watch.running = self._watch.running, self
        self._calls = self._watch.calls_now()
        self._start = len(self._calls or ())

    def end(self) -> None:
        """The first call is over."""
        self._watch.running = self._before
        made = self._calls[self._start :] if self._calls is not None else []
        self._calls = [*made, *(call for forward in self._forwards for call in forward.calls)]
        self._forwards = []

    def hold(self, forward: Forward) -> None:
        """A forward has begun inside the first call; as long as the function is kept, a backward may come."""
        self._forwards.append(forward)
        forward.sentinels.append(weakref.ref(self))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function, and keep or repeat what it calls."""
        if torch._C._current_graph_task_id() == -1:
            self.begin()
            try:
                return self._function(*args, **kwargs)
            finally:
                self.end()
        watch = self._watch
        before = watch.repeating
        # A checkpoint inside another one is made anew when that one is repeated: it repeats what the outer one does.
        watch.repeating = self._calls or before
        try:
            return self._function(*args, **kwargs)
        finally:
            watch.repeating = before
