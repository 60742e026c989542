"""Give the script the batches of another run in place of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from align.capture_file import Capture, open_capture
from align.errors import CaptureFileError
from align.hooks.nesting import tensors_in, with_tensors
from align.hooks.stored_values import as_tensor
from align.hooks.values import dtype_name
from align.records import Phase, TensorRecord

LOADER = "<DataLoader"
"""How the names of loaders begin; all other names of the phase `input` are arguments of a model."""
BATCH_SLOT = "batch"
"""The slot of the fact that says which batch of its loader one is, from 0 over all epochs."""

Slots = dict[Any, TensorRecord]
Tensors = dict[Any, torch.Tensor]


class BatchSource:
    """The batches that a capture kept: those of its DataLoaders, or, where it has none, what the models were given.

    `taken` counts the batches that replaced one of the script.
    """

    def __init__(self, capture: Capture, path: str, trouble: Callable[[str], None]) -> None:
        self._capture = capture
        self._path = path
        self._trouble = trouble
        self._batches: dict[tuple[str, int], Slots] = {}
        self._inputs: dict[tuple[int, int, int], Slots] = {}
        self.taken = 0
        for step in capture.steps:
            with open_capture(capture.path) as opened:  # anew: one that stays open holds all records that it has read
                self._read(opened, step)

    @property
    def from_loaders(self) -> bool:
        """Whether the capture holds batches of DataLoaders; else the models' own arguments are replaced."""
        return bool(self._batches)

    def _read(self, capture: Capture, step: int) -> None:
        ordinals = {
            (fact.key.name, fact.key.micro, fact.key.call): fact.value
            for fact in capture.facts(step)
            if fact.key.phase is Phase.INPUT and fact.key.slot == BATCH_SLOT
        }
        for found in capture.records(step):
            key = found.key
            if key.phase is not Phase.INPUT or not found.has_values:
                continue
            record = replace(found, sketch=None, row_hashes=None, exponents=None)  # parts of tables of the whole step
            if not key.name.startswith(LOADER):
                self._inputs.setdefault((step, key.micro, key.call), {})[key.name, key.slot] = record
                continue
            ordinal = ordinals.get((key.name, key.micro, key.call))
            if isinstance(ordinal, int):
                self._batches.setdefault((key.name, ordinal), {})[key.slot] = record

    def batch(self, loader: str, ordinal: int, data: Any, *, pin: bool) -> Any:
        """What the loader hands out: the other run's batch where it has one of the same structure, else its own."""
        there = self._batches.get((loader, ordinal))
        if there is None:
            return data
        here = {path.removeprefix(".") or "value": tensor for path, tensor in tensors_in(data, "")}
        replaced = self._replacements(f"Batch {ordinal} of {loader} was", here, there, pin=pin)
        return with_tensors(data, replaced) if replaced else data

    def inputs(
        self, place: tuple[int, int, int], arguments: Sequence[tuple[str, Any]], args: Any, kwargs: Any
    ) -> tuple[Any, Any]:
        """What a model is called with; `place` is (step, micro, call), `arguments` are its values by name."""
        there = self._inputs.get(place)
        if there is None:
            return args, kwargs
        here = {
            (name, path.removeprefix(".") or "value"): tensor
            for name, value in arguments
            for path, tensor in tensors_in(value, "")
            if not tensor.requires_grad
        }
        common = {slot: tensor for slot, tensor in here.items() if slot in there}
        step, micro, _ = place
        wanted = {slot: there[slot] for slot in common} if common else there
        replaced = self._replacements(f"The inputs of step {step}, micro {micro} were", common, wanted, pin=False)
        return (with_tensors(args, replaced), with_tensors(kwargs, replaced)) if replaced else (args, kwargs)

    def _replacements(self, what: str, here: Tensors, there: Slots, *, pin: bool) -> dict[int, torch.Tensor]:
        """The other run's tensor for each of the script's, by identity; empty, and a trouble, where that cannot be."""
        why_not = _mismatch(here, there)
        found: dict[int, torch.Tensor] = {}
        try:
            if not why_not:
                found = {id(tensor): self._like(tensor, there[slot], pin=pin) for slot, tensor in here.items()}
                self.taken += 1
        except (CaptureFileError, RuntimeError, TypeError) as error:
            # Not left to the guard around our hooks, which would take it for a failure of the file that is written.
            why_not = str(error)
        if why_not:
            self._trouble(f"{what} not taken from '{self._path}': {why_not}")
        return found

    def _like(self, tensor: torch.Tensor, record: TensorRecord, *, pin: bool) -> torch.Tensor:
        """The values of a record in a tensor of its own, where and how the script's tensor lies."""
        value = as_tensor(self._capture.raw_values(record), record.dtype)
        if value is None:
            raise TypeError(f"this torch has no {record.dtype}")
        fresh = torch.empty_like(tensor).copy_(value)
        return fresh.pin_memory() if pin else fresh

    def close(self) -> None:
        """Close the capture."""
        self._capture.close()


def _mismatch(here: Tensors, there: Slots) -> str:
    """In what two batches differ besides their values; empty if in nothing."""
    only_here, only_there = [slot for slot in here if slot not in there], [slot for slot in there if slot not in here]
    if only_here or only_there:
        odd, where = (only_here[0], "not in it") if only_here else (only_there[0], "not in the script's batch")
        return f"{_slot_text(odd)} is {where}"
    for slot, tensor in here.items():
        ours = (dtype_name(tensor.dtype), tuple(tensor.shape))
        theirs = (there[slot].dtype, there[slot].shape)
        if ours != theirs:
            return f"{_slot_text(slot)} is {ours[0]} {ours[1]} here and {theirs[0]} {theirs[1]} there"
    return ""


def _slot_text(slot: Any) -> str:
    return ".".join(slot) if isinstance(slot, tuple) else str(slot)
