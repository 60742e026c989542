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
from align.hooks.calls import argument_names
from align.hooks.handed_out import Given
from align.hooks.identity import Identities, is_plain
from align.hooks.nesting import call_tensors, tensors_in, with_tensors
from align.hooks.roots import unwrapped
from align.records import TensorRecord

if TYPE_CHECKING:
    from align.hooks.recorder import Recorder
    from align.hooks.roots import Root

Tensors = Mapping[Any, torch.Tensor]


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

    def called(self, module: nn.Module, args: Any, kwargs: Any, *, gradient: bool) -> tuple[Any, Any]:
        """An outermost call begins; returns the arguments and keywords that it shall have."""
        root = self._recorder.roots.resolve(module)
        name = _name(root, module)
        self.now = None
        if gradient or not root.trainable:
            self.now = Given(name, self._counts[name], [], noted=self._kept)
            self._counts[name] += 1
        if self._source is None:
            return args, kwargs
        own = {
            (argument, path.removeprefix(".") or "value"): tensor
            for argument, value in argument_names(unwrapped(module), args, kwargs)
            for path, tensor in tensors_in(value, "")
            if not tensor.requires_grad and is_plain(tensor)
        }
        found = self._from_source(self._source, self.now, root, own, dict(call_tensors(args, kwargs)))
        rest = [tensor for tensor in own.values() if id(tensor) not in found]
        for tensor in rest:
            known = self._replaced.find(tensor)
            if known is None:
                self._passed.remember(tensor, _Passed(name, self._coming, root.trainable))
            else:  # given to several models, or several times
                replacement = known.tensor()
                found[id(tensor)] = self._source.like(tensor, known.record) if replacement is None else replacement
        if self.now is not None and root.trainable and found:
            self.now.source, self.now.why_not = self._source, ""
        return (with_tensors(args, found), with_tensors(kwargs, found)) if found else (args, kwargs)

    @property
    def _coming(self) -> int:
        """The step that a forward which begins now would belong to."""
        return self._recorder.clock.step + int(self._recorder.clock.attempted)

    def _from_source(
        self, source: BatchSource, now: Given | None, root: Root, own: Tensors, given: Tensors
    ) -> dict[int, torch.Tensor]:
        """What the other run's call was given, by the identity of the script's tensors."""
        if now is None:
            return {}
        what = f"call {now.ordinal} of {now.name}"
        there, here = source.inputs(now.name, now.ordinal), own
        if not there:
            there, here = source.inputs_of_teacher(now.name, now.ordinal), given
        if not there:
            if root.trainable and not all(map(self._recorder.trace.computed, own.values())):
                now.source, now.why_not = source, f"{what}: {NOT_THERE}"
            return {}
        common = {slot: here[slot] for slot in there if slot in here}
        found, why_not = source.replacements(common, there, self._worked_with(root, common), whole=False)
        if why_not:
            source.tell(f"What {what} is given was", why_not)
        if root.trainable:
            now.source, now.why_not = source, f"{what}: {why_not}" if why_not else ""
        for slot, tensor in common.items() if found else ():
            self._replaced.remember(tensor, _Replacement(weakref.ref(found[id(tensor)]), there[slot]))
        return found

    def _worked_with(self, root: Root, tensors: Tensors) -> str:
        """Why these cannot be replaced: another model has worked with them in this step. Empty if none has."""
        for tensor in tensors.values():
            passed = self._passed.find(tensor)
            if passed is None or passed.step != self._coming:
                continue
            if not passed.trained:
                return f"{passed.name} was called with it before, and what that was given is not in it"
            if root.trainable:
                self._recorder.note_trouble(
                    f"{passed.name} was called without gradient with what was replaced only afterwards"
                )
        return ""


def _name(root: Root, module: nn.Module) -> str:
    """The name of the module that is called, wrappers left out."""
    inner = unwrapped(module)
    if id(inner) not in root.names:
        root.read()
    return root.names.get(id(inner), f"<{type(inner).__name__}>")
