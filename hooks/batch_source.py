"""Give the script the batches of another run in place of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from align.capture_file import Capture, open_capture
from align.errors import CaptureFileError
from align.hooks.nesting import numbers_in, tensors_in, with_tensors
from align.hooks.stored_values import as_tensor
from align.hooks.values import dtype_name
from align.records import Fact, Phase, TensorRecord

LOADER = "<DataLoader"
"""How the names of loaders begin; all other names of the phase `input` are arguments of a model."""
BATCH_SLOT = "batch"
"""The slot of the fact that says which batch of its loader one is, from 0 over all epochs."""
CALL_SLOT = "forward"
"""The slot of the fact that says which call of which module one is, from 0 over the whole run: `<Model> 3`."""
NOT_THERE = "not in it"

Slots = dict[Any, TensorRecord]
Tensors = Mapping[Any, torch.Tensor]
Place = tuple[str, int]
"""The name of a loader and the number of its batch, or that of a module and the number of its call."""


class BatchSource:
    """The batches that a capture kept: those of its DataLoaders, or, where it has none, what the models were given.

    `taken` and `missed` count the batches of the captured steps of this run, `why_missed` says why the first of them
    was not taken. `used` says that any was, in whatever step.
    """

    def __init__(self, capture: Capture, path: str, trouble: Callable[[str], None]) -> None:
        self._capture = capture
        self._path = path
        self._trouble = trouble
        self._batches: dict[Place, Slots] = {}
        self._inputs: dict[Place, Slots] = {}
        self._of_teachers: dict[Place, Slots] = {}
        self._told_numbers: set[str] = set()
        self.taken = self.missed = 0
        self.why_missed = ""
        self.used = False
        for step in capture.steps:
            with open_capture(capture.path) as opened:  # anew: one that stays open holds all records that it has read
                self._read(opened.facts(step), opened.records(step))

    @property
    def from_loaders(self) -> bool:
        """Whether the capture holds batches of DataLoaders; else the models' own arguments are replaced."""
        return bool(self._batches)

    def _read(self, facts: Sequence[Fact], records: Sequence[TensorRecord]) -> None:
        places = {
            (fact.key.name, fact.key.micro, fact.key.call): place
            for fact in facts
            if fact.key.phase is Phase.INPUT and (place := _place(fact)) is not None
        }
        for found in records:
            key = found.key
            if not found.has_values or key.phase not in (Phase.INPUT, Phase.FORWARD):
                continue
            record = replace(found, sketch=None, row_hashes=None, exponents=None)  # parts of tables of the whole step
            if key.phase is Phase.FORWARD:
                place = places.get((key.name, key.micro, key.call))
                if place is not None and not found.within and key.slot.startswith("input"):
                    self._of_teachers.setdefault(place, {})[key.slot] = record
            elif key.name.startswith(LOADER):
                place = places.get((key.name, key.micro, key.call))
                if place is not None:
                    self._batches.setdefault(place, {})[key.slot] = record
            else:
                place = places.get((found.within, key.micro, found.within_call))
                if place is not None:
                    self._inputs.setdefault(place, {})[key.name, key.slot] = record

    # ---- what is there

    def batch(self, loader: str, ordinal: int, data: Any, *, pin: bool) -> tuple[Any, str]:
        """What the loader hands out, and why that is the script's own; empty if it is the other run's.

        A batch of other sizes is taken too, as a whole: with the same parts, dtypes and numbers of dimensions.
        """
        there = self._batches.get((loader, ordinal))
        what = f"batch {ordinal} of {loader}"
        if there is None:
            return data, f"{what}: {NOT_THERE}"
        here = {path.removeprefix(".") or "value": tensor for path, tensor in tensors_in(data, "")}
        numbers = next((path.removeprefix(".") or "value" for path in numbers_in(data, "")), "")
        why_not = ""
        if numbers and any(slot in there and there[slot].shape != tuple(one.shape) for slot, one in here.items()):
            why_not = f"its sizes differ, and {numbers} is no tensor and would be the script's own"
        found, why_not = self.replacements(here, there, why_not, whole=True, pin=pin)
        if why_not:
            self.tell(f"Batch {ordinal} of {loader} was", why_not)
            return data, f"{what}: {why_not}"
        if numbers and loader not in self._told_numbers:
            self._told_numbers.add(loader)
            self._trouble(f"Batches of {loader} hold more than tensors ({numbers}): that is the script's own")
        return with_tensors(data, found), ""

    def inputs(self, module: str, ordinal: int) -> Slots:
        """What a call of a trained module was given, by argument and path; empty where that is not known."""
        return self._inputs.get((module, ordinal), {})

    def inputs_of_teacher(self, module: str, ordinal: int) -> Slots:
        """The same for a module that nobody trains, by `input.0`, `input.mask`, ..."""
        return self._of_teachers.get((module, ordinal), {})

    # ---- what is taken

    def replacements(
        self, here: Tensors, there: Slots, why_not: str, *, whole: bool, pin: bool = False
    ) -> tuple[dict[int, torch.Tensor], str]:
        """The other run's tensor for each of the script's, by identity, or why there are none.

        `why_not` is a reason that is known already. `whole` says that the script has nothing beside these tensors that
        goes with their sizes.
        """
        found: dict[int, torch.Tensor] = {}
        why_not = why_not or _mismatch(here, there, sizes=not whole)
        try:
            if not why_not:
                found = {id(tensor): self.like(tensor, there[slot], pin=pin) for slot, tensor in here.items()}
                self.used = True
        except (CaptureFileError, RuntimeError, TypeError) as error:
            # Not left to the guard around our hooks, which would take it for a failure of the file that is written.
            found, why_not = {}, str(error)
        return found, why_not

    def like(self, tensor: torch.Tensor, record: TensorRecord, *, pin: bool = False) -> torch.Tensor:
        """The values of a record in a tensor of its own, where and how the script's tensor lies."""
        value = as_tensor(self._capture.raw_values(record), record.dtype)
        if value is None:
            raise TypeError(f"this torch has no {record.dtype}")
        if value.shape == tensor.shape:
            fresh = torch.empty_like(tensor)
        else:
            fresh = torch.empty(value.shape, dtype=tensor.dtype, device=tensor.device)
        fresh.copy_(value)
        return fresh.pin_memory() if pin else fresh

    def tell(self, what: str, why_not: str) -> None:
        """Say that something was not taken though it is there."""
        self._trouble(f"{what} not taken from '{self._path}': {why_not}")

    def count(self, why_not: str) -> None:
        """A batch belongs to a captured step; it was taken unless there is a reason why not."""
        self.taken += not why_not
        self.missed += bool(why_not)
        self.why_missed = self.why_missed or why_not

    def close(self) -> None:
        """Close the capture."""
        self._capture.close()


def _place(fact: Fact) -> Place | None:
    """Which batch of its loader, or which call of its module, a fact says that something is."""
    if fact.key.slot == BATCH_SLOT and isinstance(fact.value, int):
        return fact.key.name, fact.value
    if fact.key.slot == CALL_SLOT and isinstance(fact.value, str):
        name, _, number = fact.value.rpartition(" ")
        return (name, int(number)) if number.isdecimal() else None
    return None


def _mismatch(here: Tensors, there: Slots, *, sizes: bool) -> str:
    """In what two batches differ besides their values, and unless `sizes` besides their sizes; empty if in nothing."""
    only_here, only_there = [slot for slot in here if slot not in there], [slot for slot in there if slot not in here]
    if only_here or only_there:
        odd, where = (only_here[0], "not in it") if only_here else (only_there[0], "not in the script's batch")
        return f"{_slot_text(odd)} is {where}"
    for slot, tensor in here.items():
        ours, theirs = tuple(tensor.shape), there[slot].shape
        dtypes = (dtype_name(tensor.dtype), there[slot].dtype)
        if dtypes[0] != dtypes[1] or len(ours) != len(theirs) or (sizes and ours != theirs):
            return f"{_slot_text(slot)} is {dtypes[0]} {ours} here and {dtypes[1]} {theirs} there"
    return ""


def _slot_text(slot: Any) -> str:
    return ".".join(slot) if isinstance(slot, tuple) else str(slot)
