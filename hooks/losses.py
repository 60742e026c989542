"""The scalars that backward is called on, and the targets that loss functions are given."""

from __future__ import annotations

import math
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any

import torch

from align.hooks.facts import Source
from align.hooks.identity import is_plain
from align.hooks.timeline import number_from
from align.records import Phase

if TYPE_CHECKING:
    from align.hooks.recorder import Recorder
    from align.hooks.trace import Sighting

LOSS = "loss"
MAXIMUM_REMEMBERED = 32
NODES_SEARCHED = 256
SMALLEST_SCALE = 8.0
MOST_ROWS = 8192
"""Of so many targets each has a hash, 64 kB in the file, which shows labels that are shifted along their sequence."""


class LossWatch:
    """Sees losses before their scale, and targets."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._unscaled: list[tuple[weakref.ref[torch.Tensor], torch.Tensor]] = []
        self._scales: dict[int, weakref.ref[torch.Tensor]] = {}
        self._row_before = 0
        self._seen: list[Sighting] = []

    def remember(self, scaled: torch.Tensor, unscaled: torch.Tensor, scale: torch.Tensor) -> None:
        """A scaler made `scaled` of `unscaled`; the value is kept, not the graph."""
        alive = [(reference, value) for reference, value in self._unscaled if reference() is not None]
        value = unscaled.detach().clone() if unscaled.numel() == 1 else unscaled.detach()
        self._unscaled = [*alive[-MAXIMUM_REMEMBERED:], (weakref.ref(scaled), value)]
        self._scales = {key: one for key, one in self._scales.items() if one() is not None}
        self._scales[id(scale)] = weakref.ref(scale)

    def backward_begins(self, tensors: list[torch.Tensor]) -> None:
        """Record each tensor that a top-level backward was called on, before the loss scale."""
        recorder = self._recorder
        kept = recorder.recording and Phase.LOSS in recorder.trace.phases
        self._row_before, self._seen = len(recorder.timeline.row.losses), []
        if kept:
            self._see_targets(tensors)
        scales = [scale for one in self._scales.values() if (scale := one()) is not None]
        for tensor in tensors:
            known = next((value for reference, value in self._unscaled if reference() is tensor), None)
            factor, scale = trailing_factors(tensor, scales, scaled_last=known is not None)
            # The script may have gone on from the scaled loss: then the scale is taken out again.
            value = tensor if scale is None else tensor.detach() / scale.to(tensor.device)
            value = value if known is None else known
            by_hand = factor if scale is None and isinstance(factor, float) and _is_loss_scale(factor) else None
            recorder.timeline.row.losses.append(number_from(value if by_hand is None else value.detach() / by_hand))
            recorder.timeline.row.factors.append(factor)
            if by_hand is not None:
                recorder.timeline.row.loss_scale = number_from(by_hand)
            if kept:
                sighting = recorder.trace.see(Phase.LOSS, LOSS, "value", value)
                self._seen.append(sighting)
                sighting.number = recorder.trace.next_number(LOSS, "value")
                if factor is not None:
                    self._note("factor", factor, sighting.number)

    def take_back(self) -> None:
        """The backward has failed: what it was called on is no loss of this step."""
        row = self._recorder.timeline.row
        del row.losses[self._row_before :], row.factors[self._row_before :]
        self._recorder.trace.take_back(self._seen)

    def _note(self, slot: str, value: Source, call: int) -> None:
        self._recorder.facts.note(Phase.LOSS, LOSS, slot, value, micro=self._recorder.trace.micro, call=call)

    def _see_targets(self, tensors: list[torch.Tensor]) -> None:
        """Record the targets that the loss functions of these losses have kept for their backward."""
        trace = self._recorder.trace
        for node, target in targets_of(tensors):
            whole = not target.is_floating_point()
            rows = whole and target.numel() <= MOST_ROWS
            sighting = trace.see(Phase.LOSS, LOSS, "target", target, equal=whole, rows=rows)
            self._seen.append(sighting)
            sighting.number = trace.next_number(LOSS, "target")
            ignored = getattr(node, "_saved_ignore_index", None)
            if ignored is not None:
                self._note("ignore_index", _signed(ignored), sighting.number)
                self._note("valid_targets", (target != _signed(ignored)).sum(), sighting.number)


def trailing_factors(
    loss: torch.Tensor, scales: list[torch.Tensor], *, scaled_last: bool
) -> tuple[Source, torch.Tensor | None]:
    """What a loss was multiplied and divided by last of all: the product of constants, and the scale of a scaler.

    The product is a hand-made loss scale, or one over the number of accumulated micro-batches; None where there is
    none. `scales` are the tensors of the scalers in use; `scaled_last` says that one made this very loss.
    """
    factor: Any = None
    scale = None
    node: Any = loss.grad_fn
    while node is not None:
        following = [one for one, _ in node.next_functions if one is not None]
        constant = _saved_constant(node) if len(following) == 1 else None
        if constant is None:
            break
        if any(constant.data_ptr() == one.data_ptr() for one in scales) or (scaled_last and node is loss.grad_fn):
            scale = constant
        else:
            number: Any = float(constant.item()) if constant.device.type == "cpu" else constant.float()
            number = _reciprocal(number) if node.name().startswith("Div") else number
            factor = number if factor is None else factor * number
        node = following[0]
    return factor, scale


def _is_loss_scale(factor: float) -> bool:
    """Whether a constant is a hand-made loss scale: a power of two from 8 on, as everybody takes."""
    return factor >= SMALLEST_SCALE and math.frexp(factor)[0] == 0.5  # noqa: PLR2004


def _reciprocal(number: Any) -> Any:
    return number.reciprocal() if isinstance(number, torch.Tensor) else 1.0 / number if number else math.inf


def _saved_constant(node: Any) -> torch.Tensor | None:
    """The single number that a multiplication or division has kept of its other operand."""
    kind = node.name()
    if not kind.startswith(("MulBackward", "DivBackward")):
        return None
    for name in ("_raw_saved_other", "_raw_saved_self")[: 2 if kind.startswith("Mul") else 1]:
        saved = getattr(node, name, None)
        data = saved.data if saved is not None and getattr(saved, "unpack_hook", saved) is None else None
        if isinstance(data, torch.Tensor):
            plain = data.numel() == 1 and not data.requires_grad and not data.is_complex() and is_plain(data)
            return data if plain else None
    return None


def _signed(index: int) -> int:
    """Torch keeps -100 as an unsigned number of 64 bits."""
    return index - (1 << 64) if index >= 1 << 63 else index


def targets_of(losses: list[torch.Tensor]) -> list[tuple[Any, torch.Tensor]]:
    """The (node, target) pairs that loss functions saved in the graphs of these losses, the last function's first.

    Only what was saved as it is: unpacking a value that the user's saved-tensor hooks have packed (offloading,
    activation checkpointing) would run their code. torch versions that do not tell the two apart give nothing.
    """
    found: list[tuple[Any, torch.Tensor]] = []
    pending = deque(loss.grad_fn for loss in losses if loss.grad_fn is not None)
    seen: set[Any] = set()
    while pending and len(seen) < NODES_SEARCHED:
        node = pending.popleft()
        if node in seen:
            continue
        seen.add(node)
        saved = getattr(node, "_raw_saved_target", None)
        if saved is not None and getattr(saved, "unpack_hook", saved) is None and not saved.data.requires_grad:
            found.append((node, saved.data))
        pending.extend(following for following, _ in node.next_functions if following is not None)
    return found
