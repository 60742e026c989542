"""Give the script the batches of another run in place of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from align.capture_file import Capture
from align.hooks.nesting import tensors_in, with_tensors
from align.hooks.stored_values import as_tensor
from align.hooks.values import dtype_name
from align.records import Phase, TensorRecord

LOADER = "<DataLoader"
"""How the names of loaders begin; all other names of the phase `input` are arguments of a model."""
BATCH_SLOT = "batch"
"""The slot of the fact that says which batch of its loader one is, from 0 over all epochs."""

Slots = dict[Any, TensorRecord]


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
            self._read(step)

    @property
    def from_loaders(self) -> bool:
        """Whether the capture holds batches of DataLoaders; else the models' own arguments are replaced."""
        return bool(self._batches)

    def _read(self, step: int) -> None:
        ordinals = {
            (fact.key.name, fact.key.micro, fact.key.call): fact.value
            for fact in self._capture.facts(step)
            if fact.key.phase is Phase.INPUT and fact.key.slot == BATCH_SLOT
        }
        for record in self._capture.records(step):
            key = record.key
            if key.phase is not Phase.INPUT or not record.has_values:
                continue
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
        why_not = _mismatch(here, there)
        if why_not:
            self._trouble(f"Batch {ordinal} of {loader} was not taken from '{self._path}': {why_not}")
            return data
        self.taken += 1
        return with_tensors(
            data, {id(tensor): self._like(tensor, there[path], pin=pin) for path, tensor in here.items()}
        )

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
        why_not = _mismatch(common, {slot: there[slot] for slot in common}) if common else "it has other arguments"
        if why_not:
            step, micro, _ = place
            self._trouble(f"The inputs of step {step}, micro {micro} were not taken from '{self._path}': {why_not}")
            return args, kwargs
        self.taken += 1
        replaced = {id(tensor): self._like(tensor, there[slot], pin=False) for slot, tensor in common.items()}
        return with_tensors(args, replaced), with_tensors(kwargs, replaced)

    def _like(self, tensor: torch.Tensor, record: TensorRecord, *, pin: bool) -> torch.Tensor:
        """The values of a record in a tensor of its own, where and how the script's tensor lies."""
        value = as_tensor(self._capture.raw_values(record), record.dtype)
        if value is None:
            return tensor
        fresh = torch.empty_like(tensor, pin_memory=True) if pin else torch.empty_like(tensor)
        return fresh.copy_(value)

    def close(self) -> None:
        """Close the capture."""
        self._capture.close()


def _mismatch(here: dict[Any, torch.Tensor], there: Slots) -> str:
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
