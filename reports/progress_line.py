"""One line on a terminal that says what is being done and how far it is, while that takes long."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from align.reports.progress_phrases import PHRASES
from align.watching import Stage, watched_by

if TYPE_CHECKING:
    from rich.progress import Progress

VARIABLE = "ALIGN_PROGRESS"
"""The variable of the environment that says always (1) or never (0); otherwise terminals get the line."""
DELAY = 1.0
"""Seconds of work without a word, after which the line appears: what is shorter needs none."""
INTERVAL = 0.5
"""Seconds between two pictures of the line; each takes about two milliseconds of a processor."""
SETTLED = 0.5
"""Seconds after which a rate is told."""
BAR = 10
"""Signs of the bar; rich takes some of them where a line would be longer than the terminal is wide."""
UNITS = ("B", "kB", "MB", "GB", "TB")
STEP = 1000


class Work(NamedTuple):
    """A stage that was begun, and when (`time.monotonic`)."""

    stage: Stage
    total: int
    parts: int
    begun: float


class ProgressLine:
    """Watches the work, and shows it in a thread of its own once it has taken a second; gone when the work ends."""

    def __init__(self, stream: TextIO, language: Callable[[], str]) -> None:
        """`language` gives the code of the language; it is asked when the first stage begins."""
        self._stream = stream
        self._language = language
        self._work: Work | None = None
        self._part, self._done, self._stop = 0, 0, 0
        self._started = 0.0
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, stage: Stage, total: int, parts: int) -> None:
        """Work begins; it is shown at once where work before it already was."""
        self._part, self._done, self._stop = 0, 0, total
        self._work = Work(stage, total, parts, time.monotonic())
        if self._thread is None:
            self._started = self._work.begun
            self._over = threading.Event()
            phrases = PHRASES[self._language()]
            self._thread = threading.Thread(target=self._show, args=(self._over, phrases), daemon=True)
            self._thread.start()

    def enter(self, part: int) -> None:
        """A part begins."""
        self._part = part

    def advance(self, count: int) -> None:
        """Units are done."""
        self._done += count

    def reach(self, start: int, stop: int) -> None:
        """Units begin."""
        self._done, self._stop = start, stop

    def end(self) -> None:
        """Take the line away; when this returns, nothing more is written."""
        if self._thread is not None:
            self._over.set()
            self._thread.join()
            self._thread = None

    def _show(self, over: threading.Event, phrases: Mapping[str, str]) -> None:
        if over.wait(DELAY):
            return
        # A terminal that went away is no reason to stop the work.
        with suppress(OSError, ValueError), _bar(self._stream) as bar:
            while True:
                self._draw(bar, phrases)
                if over.wait(INTERVAL):
                    return

    def _draw(self, bar: Progress, phrases: Mapping[str, str]) -> None:
        work = self._work
        if work is None:
            return
        now = time.monotonic()
        done = min(self._done, self._stop)
        told: dict[str, Any] = {
            "description": phrases[str(work.stage)].format(part=max(self._part, 1), parts=work.parts),
            "completed": done,
            "total": work.total or None,
            "far": how_far(work, done, now - work.begun, phrases),
            "spent": duration(now - self._started),
        }
        if bar.task_ids:
            bar.update(bar.task_ids[0], **told)
        else:
            bar.add_task(**told)
        bar.refresh()


@contextmanager
def _bar(stream: TextIO) -> Iterator[Progress]:
    """The line: a wheel that turns, what is done, a bar, how far it is, how long it took; erased at the end."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

    console = Console(file=stream, force_terminal=True)
    columns = (
        SpinnerColumn("line"), TextColumn("{task.fields[spent]}"), TextColumn("{task.description}"), BarColumn(BAR),
        TextColumn("{task.fields[far]}"),
    )  # fmt: skip
    # What is printed goes to the streams themselves: the line is away by then.
    with Progress(
        *columns, console=console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False
    ) as bar:
        yield bar


def how_far(work: Work, done: int, seconds: float, phrases: Mapping[str, str]) -> str:
    """How much of all is done after so many seconds: of bytes with their rate and the time left; "" where unknown."""
    if not work.total:
        return ""
    if work.stage is not Stage.BYTES:
        return phrases["far"].format(done=f"{done:,}", total=f"{work.total:,}")
    amounts = {"done": size(done), "total": size(work.total)}
    if not done or seconds < SETTLED:
        return phrases["far"].format(**amounts)
    rate = done / seconds
    return phrases["rate"].format(**amounts, rate=size(rate), left=duration((work.total - done) / rate))


def size(count: float) -> str:
    """Bytes as people read them: `812 B`, `4.1 GB`."""
    place = 0
    while count >= STEP and place < len(UNITS) - 1:
        count /= STEP
        place += 1
    return f"{count:.1f} {UNITS[place]}" if place else f"{count:.0f} B"


def duration(seconds: float) -> str:
    """Seconds as minutes and seconds: `0:07`, `1:02:07` with hours."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def is_wanted(environment: Mapping[str, str], *streams: TextIO) -> bool:
    """Whether the line is shown: as ALIGN_PROGRESS says, otherwise where all streams are terminals."""
    said = environment.get(VARIABLE, "").strip()
    return said == "1" if said in {"0", "1"} else all(stream.isatty() for stream in streams)


def shown(language: Callable[[], str]) -> AbstractContextManager[None]:
    """Show what is done in the block, where that is wanted; `language` gives the code of the language."""
    if not is_wanted(os.environ, sys.stdout, sys.stderr):
        return nullcontext()
    return watched_by(ProgressLine(sys.stderr, language))
