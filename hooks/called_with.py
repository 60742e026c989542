"""Which call of which module a tensor was given to, and the tensors of another run in the place of the script's own.

For scripts without a DataLoader. A call is known by its module's name and by how many calls of it there were before,
from the beginning of the run: in which step it is, only a backward tells.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from align.hooks.batch_source import NOT_THERE, BatchSource
from align.hooks.handed_out import Given
from align.hooks.identity import Identities, is_plain
from align.hooks.nesting import call_tensors, tensors_in, with_tensors
from align.hooks.roots import unwrapped
from align.hooks.signatures import argument_names
from align.records import TensorRecord

if TYPE_CHECKING:
    from align.hooks.recorder import Recorder
    from align.hooks.roots import Root


@dataclass(frozen=True, slots=True)
class _Replacement:
    """What stands in the place of a tensor of the script, for as long as anybody holds it, and where it is from."""

    tensor: weakref.ref[torch.Tensor]
    record: TensorRecord


@dataclass(frozen=True, slots=True)
class _Passed:
    """Who was called with a tensor of the script, in which step."""

    name: str
    step: int
    trained: bool


class CalledWith:
    """Counts the outermost calls of every module and gives them what the other run's calls were given.

    `kept` says that the numbers of calls go into the file. `now` is what is known of the call that begins.
    """

    def __init__(self, recorder: Recorder, source: BatchSource | None, *, kept: bool) -> None:
        self._recorder = recorder
        self._source = source if source is not None and not source.from_loaders else None
        self._kept = kept
        self._counts: Counter[str] = Counter()
        self._replaced: Identities[_Replacement] = Identities()
        self._passed: Identities[_Passed] = Identities()
        self.now: Given | None = None

    @property
    def follows(self) -> bool:
        """Whether anybody needs to know of calls."""
        return self._kept or self._source is not None

    def called(self, module: nn.Module, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """An outermost call begins; returns the arguments and keywords that it shall have."""
        root = self._recorder.roots.resolve(module)
        name = _name(root, module)
        self.now = None
        if self._recorder.trains_now() or not root.trainable:
            self.now = Given(name, self._counts[name], [], noted=self._kept)
            self._counts[name] += 1
        if self._source is None:
            return args, kwargs
        named = {
            (argument, path.removeprefix(".") or "value"): tensor
            for argument, value in argument_names(unwrapped(module), args, kwargs)
            for path, tensor in tensors_in(value, "")
            if not tensor.requires_grad and is_plain(tensor)
        }
        found = self._from_source(self._source, root, named, dict(call_tensors(args, kwargs)))
        for tensor in named.values():
            if id(tensor) not in found:
                self._passed.remember(tensor, _Passed(name, self._recorder.clock.step, root.trainable))
        return (with_tensors(args, found), with_tensors(kwargs, found)) if found else (args, kwargs)

    def _from_source(
        self, source: BatchSource, root: Root, named: Mapping[Any, torch.Tensor], given: Mapping[Any, torch.Tensor]
    ) -> dict[int, torch.Tensor]:
        """The tensors that replace those of the script, by the identity of these."""
        found: dict[int, torch.Tensor] = {}
        why_not, there = NOT_THERE, {}
        if self.now is not None:
            which = (self.now.name, self.now.ordinal)
            there, here = source.inputs(*which), named
            if not there:
                there, here = source.inputs_of_teacher(*which), given
            here = {slot: here[slot] for slot in there if slot in here}
        if there:
            why_not = self._worked_with(root, here)
            found, why_not = source.inputs_like(here, there, why_not)
        for slot, tensor in here.items() if found else ():
            self._replaced.remember(tensor, _Replacement(weakref.ref(found[id(tensor)]), there[slot]))
        rest = [tensor for tensor in named.values() if id(tensor) not in found]
        again = {id(tensor): known for tensor in rest if (known := self._replaced.find(tensor)) is not None}
        if found or not there:
            for tensor in rest:
                if id(tensor) in again:
                    known = again[id(tensor)]
                    found[id(tensor)] = known.tensor() or source.like(tensor, known.record)
        if self.now is not None and root.trainable and (there or not all(map(self._recorder.trace.computed, rest))):
            self.now.source, self.now.why_not = source, "" if found else why_not
        return found
