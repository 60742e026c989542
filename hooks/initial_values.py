"""Give the models of this run the initial weights of another one, before their first training forward.

Where that is sure, as soon as their optimizer is made: what the script computes from the weights before it calls the
model (a penalty, a copy for a teacher) is then computed from the right ones.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable

import torch
from torch import nn

from align.capture_file import Capture
from align.hooks.identity import is_plain
from align.hooks.roots import Root
from align.hooks.stored_values import as_tensor
from align.hooks.values import dtype_name
from align.records import INIT_STEP, TensorRecord

CHANGED_UNDER_A_GRAPH = re.compile(
    r"modified by an inplace operation: \[\S+ \[(?P<shape>[\d, ]*)\]\].* is at version (?P<version>\d+); "
    r"expected version (?P<expected>\d+)"
)
"""What torch says in a backward when a tensor that its graph needs is not what it was."""
NAMED = 3
"""How many of the tensors that were left alone are named."""

Owner = tuple[str, str]


class StartRefused(SystemExit):
    """The run would start from other values than it was told to: it ends before its first step."""


class InitialValues:
    """The initial tensors of a capture, by owning module and local name; closed once the first step is over.

    `taken` counts the tensors that were copied. Those that the capture lacks, that have another shape, or that cannot
    be written whole (lazy, sharded) keep the values of the script, and a trouble names them. `closed` says that the
    first step is over.
    """

    def __init__(self, capture: Capture, path: str, trouble: Callable[[str], None]) -> None:
        self._capture = capture
        self._path = path
        self._trouble = trouble
        self._records = {(record.key.name, record.key.slot): record for record in capture.records(INIT_STEP)}
        self._loaded: set[Owner] = set()
        self._left: dict[Owner, str] = {}
        self._early: set[Owner] = set()
        self._copies: list[tuple[weakref.ref[torch.Tensor], int]] = []
        self._met: dict[int, weakref.ref[torch.Tensor]] = {}
        self.closed = False

    @property
    def taken(self) -> int:
        """How many tensors were copied."""
        return len(self._loaded)

    def load_early(self, module: nn.Module) -> None:
        """Copy the same into a model that has not been called, if the capture holds its tensors and no others.

        The script may still change them: `load` looks at all of them again.
        """
        if self.closed or self._met or self._early:
            return
        root = Root(weakref.ref(module), prefix="", trainable=True)
        root.read()
        tensors = {
            root.owners[id(one)]: one for one in (*module.parameters(), *module.buffers()) if id(one) in root.owners
        }
        if tensors.keys() != self._records.keys() or any(self._why_not(*one) for one in tensors.items()):
            return
        self._early = {owner for owner, tensor in tensors.items() if not self._copy(owner, tensor)}

    def load(self, root: Root, owner_of: Callable[[torch.Tensor], Owner]) -> None:
        """Copy what the capture holds into the parameters and buffers of a root, cast to their dtype."""
        module = root.reference()
        if module is None or self.closed:
            return
        root.read()
        for tensor in (*module.parameters(), *module.buffers()):
            self._met[id(tensor)] = weakref.ref(tensor)
            owner = owner_of(tensor)
            if owner in self._loaded:
                continue
            why_not = "" if self._has_it(owner, tensor) else self._copy(owner, tensor)
            if why_not:
                self._left[owner] = why_not
            else:
                self._loaded.add(owner)
                self._left.pop(owner, None)

    def has_met(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor was among those that could be given their initial values."""
        known = self._met.get(id(tensor))
        return known is not None and known() is tensor

    def _has_it(self, owner: Owner, tensor: torch.Tensor) -> bool:
        """Whether a tensor that was copied early still is what it was made: a graph may hold it by now."""
        if owner not in self._early or self._why_not(owner, tensor):
            return False
        value = self._value(self._records[owner])
        return value is not None and torch.equal(tensor.detach(), value.to(tensor.device, tensor.dtype))

    def _why_not(self, owner: Owner, tensor: torch.Tensor) -> str:
        """Why one tensor cannot be copied, empty if it can."""
        record = self._records.get(owner)
        if record is None:
            return "not in it"
        if not is_plain(tensor) or tensor.is_inference():
            return "lazy, sharded or otherwise not to be written"
        if tuple(tensor.shape) != record.shape:
            return f"{tuple(tensor.shape)} here, {record.shape} there"
        if not record.has_values:
            return "its values were not kept"
        if record.dtype.startswith("complex") and not tensor.is_complex():
            return f"{dtype_name(tensor.dtype)} here, {record.dtype} there"
        return ""

    def _copy(self, owner: Owner, tensor: torch.Tensor) -> str:
        """Copy one tensor; returns why that cannot be done, empty if it was."""
        why_not = self._why_not(owner, tensor)
        if why_not:
            return why_not
        value = self._value(self._records[owner])
        if value is None:
            return f"this torch has no {self._records[owner].dtype}"
        tensor.detach().copy_(value)
        self._copies.append((weakref.ref(tensor), tensor._version))
        return ""

    def _value(self, record: TensorRecord) -> torch.Tensor | None:
        return as_tensor(self._capture.raw_values(record), record.dtype) if record.has_values else None

    def explain(self, error: BaseException) -> None:
        """Raise StartRefused where a backward failed because its graph holds weights that were replaced since."""
        if not self.closed and self._is_ours(CHANGED_UNDER_A_GRAPH.search(str(error))):
            raise StartRefused(
                f"Cannot take initial weights from '{self._path}': the script computed something from its own weights "
                "before it called the model (a penalty, for one), and its backward needs them. Compute that after the "
                "forward, or leave out --init-from."
            ) from error

    def _is_ours(self, told: re.Match[str] | None) -> bool:
        """Whether the tensor that a backward complains of is one that was copied after its graph was made."""
        if told is None:
            return False
        for reference, version in self._copies:
            tensor = reference()
            shape = ", ".join(map(str, tensor.shape)) if tensor is not None else None
            if shape == told["shape"] and int(told["expected"]) < version <= int(told["version"]):
                return True
        return False

    def check(self) -> None:
        """Raise StartRefused where nothing fits: to train on from other weights is not what was asked for."""
        if self.taken:
            return
        owner, why = next(iter(self._left.items()), (("", ""), "no model was found"))
        here = f"{_join(owner)}: {why}" if owner[0] else why
        there = next(iter(self._records), ("", ""))
        raise StartRefused(
            f"Cannot take initial weights from '{self._path}': none of its {len(self._records):,} tensors fits this "
            f"model ({here}; it begins with {_join(there)}). Name the capture of the same model, or leave out "
            "--init-from."
        )

    def finish(self, without_module: int) -> None:
        """Close the capture and say which tensors kept the values of the script.

        `without_module` is the number of parameters that an optimizer has and no module: the copies in float32 that
        some trainers make of the weights, and write back over them.
        """
        self.closed = True
        self._capture.close()
        if self._left:
            first = ", ".join(f"{_join(owner)} ({why})" for owner, why in list(self._left.items())[:NAMED])
            more = ", ..." if len(self._left) > NAMED else ""
            self._trouble(
                f"{_tensors(len(self._left))} not taken from '{self._path}': {first}{more}; there the weights are the "
                "script's own"
            )
        if without_module:
            self._trouble(
                f"{_tensors(without_module, 'parameter')} in an optimizer but in no module, and not taken from "
                f"'{self._path}': copies of weights that were made before keep the script's values"
            )
        unused = [owner for owner in self._records if owner not in self._loaded and owner not in self._left]
        if unused:
            self._trouble(
                f"{_tensors(len(unused))} not found in this model but in '{self._path}': "
                f"{', '.join(map(_join, unused[:NAMED]))}{', ...' if len(unused) > NAMED else ''}"
            )


def _join(owner: Owner) -> str:
    return ".".join(owner)


def _tensors(count: int, what: str = "initial tensor") -> str:
    return f"1 {what} was" if count == 1 else f"{count:,} {what}s were"
