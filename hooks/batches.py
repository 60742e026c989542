"""Watch DataLoaders: what each hands out belongs to the next training forward that a backward follows.

Batches are measured when they are handed out and never held. One loader may run ahead of the training: accelerate
fetches a batch before it gives the one before to the script, and trainers fetch all batches of an accumulated step at
once.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import FrameType
from typing import TYPE_CHECKING, Any

from align.hooks.batch_source import LOADER, BatchSource
from align.hooks.called_with import CalledWith
from align.hooks.handed_out import HandedOut, hash_of
from align.hooks.loader_settings import loader_settings
from align.hooks.nesting import tensors_in
from align.hooks.trace import KEEP_BATCHES, Forward, Sighting
from align.records import Phase

if TYPE_CHECKING:
    from align.hooks.recorder import Recorder

MAXIMUM_WAITING = 32
"""How many measured batches wait for their forward: more than trainers accumulate in one step as a rule."""
MAXIMUM_LOADERS = 64
"""Of how many loaders the settings are kept: some scripts make a new one for every validation."""
ONE_AHEAD = "accelerate.data_loader"
"""The module whose loaders fetch one batch more than they have given to the script."""


@dataclass(slots=True, eq=False)
class Loader:
    """One DataLoader: its name, how many batches it has handed out, and the one that was fetched ahead."""

    name: str
    count: int = 0
    ahead: HandedOut | None = None


@dataclass(slots=True)
class _Known:
    loader: Loader
    reference: weakref.ref[Any]


class BatchWatch:
    """Numbers the loaders in the order of their first iteration and measures what they hand out."""

    def __init__(self, recorder: Recorder, source: BatchSource | None) -> None:
        self._recorder = recorder
        self._source = source
        self._known: dict[int, _Known] = {}
        self._iterators: weakref.WeakKeyDictionary[Any, Loader] = weakref.WeakKeyDictionary()
        self._made = 0
        self._waiting: list[HandedOut] = []
        self.called_with = CalledWith(recorder, source, kept=KEEP_BATCHES in recorder.options.keep)

    # ---- what the loaders do

    def begun(self, iterator: Any, loader: Any) -> None:
        """An iteration over a loader begins."""
        known = self._known.get(id(loader))
        if known is None or known.reference() is not loader:
            known = self._known[id(loader)] = _Known(self._new_loader(loader_settings(loader)), weakref.ref(loader))
        known.loader.ahead = None  # of an iteration that was given up
        self._iterators[iterator] = known.loader

    def _new_loader(self, settings: Mapping[str, Any]) -> Loader:
        self._made += 1
        loader = Loader(f"{LOADER}>" if self._made == 1 else f"{LOADER}#{self._made}>")
        run = self._recorder.run_info
        if len(run.loaders) < MAXIMUM_LOADERS:
            self._recorder.run_info = replace(run, loaders=(*run.loaders, {"name": loader.name, **settings}))
        return loader

    def handed_out(self, iterator: Any, data: Any, *, ahead: bool) -> tuple[Any]:
        """A batch is on its way to the script; returns the one that it shall get."""
        loader = self._iterators.get(iterator)
        if loader is None:  # it was begun before anybody watched
            loader = self._iterators[iterator] = self._new_loader({})
        ordinal = loader.count
        loader.count += 1
        batch = HandedOut(loader.name, ordinal, [])
        if self._source is not None:
            pin = bool(getattr(iterator, "_pin_memory", False))
            data, batch.why_not = self._source.batch(loader.name, ordinal, data, pin=pin)
            batch.source = self._source if self._source.from_loaders else None
        if self._recorder.in_training_thread():
            self._take_note(loader, batch, data, ahead=ahead)
        return (data,)

    def ended(self, iterator: Any) -> None:
        """A loader has no more batches: the script gets the one that was fetched ahead."""
        loader = self._iterators.get(iterator)
        if loader is not None and loader.ahead is not None:
            self._wait(loader.ahead)
            loader.ahead = None

    def _take_note(self, loader: Loader, batch: HandedOut, data: Any, *, ahead: bool) -> None:
        recorder = self._recorder
        clock = recorder.clock
        coming = clock.step + int(clock.attempted)
        wanted = coming in clock.choice or (ahead and coming + 1 in clock.choice)
        if loader.ahead is not None:
            self._wait(loader.ahead)
            loader.ahead = None
        batch.noted = Phase.INPUT in recorder.trace.phases
        if not wanted or not (batch.noted or batch.source is not None):
            return
        if batch.noted:
            batch.sightings = self._measured(loader.name, data)
        if ahead:
            loader.ahead = batch
        else:
            self._wait(batch)

    def _measured(self, name: str, data: Any) -> list[Sighting]:
        keep = KEEP_BATCHES in self._recorder.options.keep
        return [
            self._recorder.trace.see(
                Phase.INPUT, name, path.removeprefix(".") or "value", tensor,
                equal=True, rows=True, keep=keep, aside=True,
            )
            for path, tensor in tensors_in(data, "")
            if not tensor.requires_grad
        ]  # fmt: skip

    def _wait(self, batch: HandedOut) -> None:
        """A batch is in the script's hands; one of the same loader that was used before is over."""
        self._waiting = [held for held in self._waiting if not (held.offered and held.name == batch.name)]
        self._waiting = [*self._waiting[1 - MAXIMUM_WAITING :], batch]

    # ---- what the models do

    def offer(self, forward: Forward) -> None:
        """A training forward begins, its own inputs are seen: these batches are its own if a backward follows."""
        waiting = self._waiting = [batch for batch in self._waiting if not batch.placed]
        fresh = max((place for place, batch in enumerate(waiting) if not batch.offered), default=-1)
        stale = {id(batch) for batch in waiting[: max(fresh, 0)] if batch.offered}
        names = [batch.name for batch in waiting]
        several = {name for name in names if names.count(name) > 1}
        given = _hashes(forward.sightings) if several or stale else set()
        # Of a validation before, unless the model is given it again (as for labels that it made itself).
        waiting = [batch for batch in waiting if id(batch) not in stale or batch.is_among(given)]
        for name in several & {batch.name for batch in waiting}:
            waiting = _best(waiting, name, given)
        for batch in waiting:
            batch.offered = True
        forward.batches.extend(waiting)

    def evaluated(self) -> None:
        """A trained model runs without gradient: a validation, most likely, of what was handed out last."""
        last = self._waiting[-1].name if self._waiting else ""
        for batch in self._waiting:
            if batch.name == last:
                batch.offered = True

    def pass_by(self) -> None:
        """A forward runs that is not captured: what was handed out before it is its own."""
        self._waiting = []


def fetched_ahead(frame: FrameType) -> bool:
    """Whether the code that takes a batch from a loader keeps it until it has taken the next one."""
    code = frame.f_code
    known = frame.f_globals.get("__name__") == ONE_AHEAD
    return known and (code.co_name == "_fetch_batches" or "next_batch" in code.co_varnames)


def _hashes(sightings: Iterable[Sighting]) -> set[int]:
    found = (hash_of(sighting.seen) for sighting in sightings if sighting.phase is Phase.INPUT)
    return {known for known in found if known is not None}


def _best(waiting: list[HandedOut], name: str, given: set[int]) -> list[HandedOut]:
    """Without those of this loader that are less like what the model was given than another one is."""
    scores = {id(batch): batch.likeness(given) for batch in waiting if batch.name == name}
    highest = max(scores.values())
    return [batch for batch in waiting if batch.name != name or scores[id(batch)] == highest]
