"""Give the models of this run the initial weights of another one, before their first training forward."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from align.capture_file import Capture
from align.hooks.identity import is_plain
from align.hooks.stored_values import as_tensor
from align.hooks.values import dtype_name
from align.records import INIT_STEP, TensorRecord

if TYPE_CHECKING:
    from align.hooks.roots import Root

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
        self.closed = False

    @property
    def taken(self) -> int:
        """How many tensors were copied."""
        return len(self._loaded)

    def load(self, root: Root, owner_of: Callable[[torch.Tensor], Owner]) -> None:
        """Copy what the capture holds into the parameters and buffers of a root, cast to their dtype."""
        module = root.reference()
        if module is None or self.closed:
            return
        root.read()
        for tensor in (*module.parameters(), *module.buffers()):
            owner = owner_of(tensor)
            if owner in self._loaded:
                continue
            why_not = self._copy(owner, tensor)
            if why_not:
                self._left[owner] = why_not
            else:
                self._loaded.add(owner)
                self._left.pop(owner, None)

    def _copy(self, owner: Owner, tensor: torch.Tensor) -> str:
        """Copy one tensor; returns why that cannot be done, empty if it was."""
        record = self._records.get(owner)
        if record is None:
            return "not in it"
        if not is_plain(tensor) or tensor.is_inference():
            return "lazy, sharded or otherwise not to be written"
        if tuple(tensor.shape) != record.shape:
            return f"{tuple(tensor.shape)} here, {record.shape} there"
        value = self._value(record)
        if value is None:
            return "its values were not kept"
        if value.is_complex() and not tensor.is_complex():
            return f"{dtype_name(tensor.dtype)} here, {record.dtype} there"
        tensor.detach().copy_(value)
        return ""

    def _value(self, record: TensorRecord) -> torch.Tensor | None:
        return as_tensor(self._capture.raw_values(record), record.dtype) if record.has_values else None

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
