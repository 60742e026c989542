"""Lines of progress while a run is captured: few, however many steps there are."""

from __future__ import annotations

import time
from collections.abc import Callable

SECONDS_BETWEEN_LINES = 2.0


class Progress:
    """Says which step was captured, at most every two seconds, and always when it was the last one asked for."""

    def __init__(self, say: Callable[[str], None], steps: str) -> None:
        self._say = say
        self._steps = steps
        self._said_at = time.monotonic()

    def captured(self, step: int, *, asked: bool, last: bool, stop: bool) -> None:
        """A step is in the file; `asked` says that `--steps` named it, and not a later request."""
        now = time.monotonic()
        if not asked:
            self._say(f"align: captured step {step}, as align capture-now asked")
        elif last:
            end = "the script ends here" if stop else "the script goes on uncaptured"
            self._say(f"align: captured step {step}, the last of --steps {self._steps}; {end}")
        elif now - self._said_at >= SECONDS_BETWEEN_LINES:
            self._said_at = now
            self._say(f"align: captured step {step}")
