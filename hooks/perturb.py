"""Make a run a perturbed one: its initial weights and float inputs moved by the rounding of the working precision.

A run that differs from the reference by rounding at its start shows how much rounding may do at every point after it:
`align diff --floor` takes it for that. Buffers stay: they hold tables (rotary frequencies), whose products reach many
radians, and running statistics, which no training forward reads.
"""

from __future__ import annotations

import functools
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef

from align.hooks.calls import argument_names
from align.hooks.identity import Identities, is_plain
from align.hooks.nesting import tensors_in, with_tensors
from align.hooks.odd_tensors import local_of
from align.hooks.perturb_units import OWN, Working, coarsest, under_autocast, working_unit
from align.hooks.perturb_values import Signs, is_mask, move, moved_copy
from align.hooks.roots import NO_MODULE, unwrapped

if TYPE_CHECKING:
    from align.hooks.recorder import Recorder
    from align.hooks.roots import Root

CONVOLUTIONS = torch.nn.modules.conv._ConvNd


@dataclass(slots=True)
class _Moved:
    """A tensor that was moved, by the signs of a name and by how much."""

    tensor: weakref.ref[torch.Tensor]
    name: str
    working: Working


class Perturbation:
    """Moves the weights of every root before its first training forward, and the float inputs of captured forwards.

    Where autocast is entered only inside the forward, what has been moved by less is moved by the rest there and then.
    Without a seed nothing is done.
    """

    def __init__(self, recorder: Recorder, seed: int | None) -> None:
        self._recorder = recorder
        self._seed = seed
        self._enter: Any = None
        self._weights: dict[int, list[_Moved]] = {}
        self._roots: list[Root] = []  # held, so that no other has the identity of one
        self._places: dict[tuple[Any, ...], StorageWeakRef] = {}
        self._learned: dict[int, Working] = {}
        self._inputs: Identities[str] = Identities()
        self._copies: list[_Moved] = []
        self._now: Root | None = None
        self._convolves: dict[int, bool] = {}
        self._met = 0
        self._late: set[int] = set()
        self._over = False
        self._counts: Counter[str] = Counter()
        self._inputs_by: set[Working] = set()

    @property
    def asked(self) -> bool:
        """Whether anything is to be moved."""
        return self._seed is not None

    def install(self) -> None:
        """Watch where autocast is entered."""
        if not self.asked:
            return
        kind: Any = torch.amp.autocast_mode.autocast
        original = self._enter = kind.__enter__

        @functools.wraps(original)
        def enter(context: Any) -> Any:
            result = original(context)
            if self._inside_a_forward():
                self._recorder.guarded(self._autocast_entered)
            return result

        kind.__enter__ = enter

    def remove(self) -> None:
        """Take the watch away."""
        if self._enter is not None:
            kind: Any = torch.amp.autocast_mode.autocast
            kind.__enter__, self._enter = self._enter, None

    # ---- weights

    def move_weights(self, root: Root) -> None:
        """Move the parameters of a root, each once, whichever modules share it."""
        module = root.reference()
        if not self.asked or module is None or id(root) in self._weights:
            return
        root.read()
        moved = self._weights[id(root)] = []
        self._roots.append(root)
        convolutions = {
            id(parameter)
            for member in module.modules()
            if isinstance(member, CONVOLUTIONS)
            for parameter in member.parameters(recurse=False)
        }
        for parameter in module.parameters():
            tensor = local_of(parameter)
            if tensor.numel() == 0 or not self._is_new(tensor):
                continue
            if not _can_move(tensor):
                self._counts["left"] += 1
                continue
            working = self._working(tensor, conv=id(parameter) in convolutions)
            name = ".".join(self._recorder.owner_of(parameter))
            move(tensor, self._signs(name), working.unit)
            moved.append(_Moved(weakref.ref(tensor), name, working))
            self._counts["weights"] += 1
        torch.clear_autocast_cache()  # which may hold casts of what they were

    def _is_new(self, tensor: torch.Tensor) -> bool:
        """Whether no parameter in the same place of memory was moved before."""
        if not is_plain(tensor):
            return True
        storage = tensor.untyped_storage()
        place = (storage._cdata, tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype)
        known = self._places.get(place)
        self._places[place] = StorageWeakRef(storage)  # while it is held, no other storage has this address
        return known is None

    def _working(self, tensor: torch.Tensor, *, conv: bool) -> Working:
        return working_unit(tensor.dtype, self._recorder.run_info, under_autocast(tensor.device.type), conv=conv)

    def _signs(self, name: str) -> Signs:
        return Signs(self._seed or 0, name)

    # ---- inputs

    def inputs(self, module: nn.Module, args: Any, kwargs: Any, *, gradient: bool) -> tuple[Any, Any]:
        """An outermost call begins; returns the arguments and keywords that it shall have."""
        root = self._now = self._recorder.roots.resolve(module)
        self._inputs_by.update(copy.working for copy in self._copies)
        self._copies = []
        if not self._recorder.clock.next_forward_wanted or not (gradient or not root.trainable):
            return args, kwargs
        found: dict[int, torch.Tensor] = {}
        for name, value in argument_names(unwrapped(module), args, kwargs):
            for path, tensor in tensors_in(value, ""):
                if tensor.numel() and id(tensor) not in found and not self._is_computed(tensor):
                    replaced = self._input(root, tensor, f"{name}{path}")
                    found.update({id(tensor): replaced} if replaced is not None else {})
        return (with_tensors(args, found), with_tensors(kwargs, found)) if found else (args, kwargs)

    def _is_computed(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor is no batch: a module or a function has made it, or it is a parameter."""
        return tensor.grad_fn is not None or isinstance(tensor, nn.Parameter) or self._recorder.trace.computed(tensor)

    def _input(self, root: Root, tensor: torch.Tensor, place: str) -> torch.Tensor | None:
        """A moved copy of one input; None where it stays, which is counted."""
        if not tensor.is_floating_point() and not tensor.is_complex():
            self._counts["integers"] += 1
            return None
        if not _can_move(tensor) or tensor.requires_grad:
            self._counts["left"] += 1
            return None
        if is_mask(tensor):
            self._counts["masks"] += 1
            return None
        name = self._inputs.find(tensor)
        if name is None:
            name = f"input {self._met}: {place}"
            self._met += 1
            self._inputs.remember(tensor, name)
        working = self._working(tensor, conv=self._root_convolves(root))
        learned = self._learned.get(id(root))
        if learned is not None and tensor.dtype is not torch.float64:
            working = coarsest((working, learned))
        # Copied anew each time that it is given: edits through `.data` or numpy leave no trace in its version.
        copy = moved_copy(tensor, self._signs(name), working.unit)
        self._copies.append(_Moved(weakref.ref(copy), name, working))
        self._counts["inputs"] += 1
        return copy

    def _root_convolves(self, root: Root) -> bool:
        """Whether a root holds convolutions, which devices shorten float32 for of their own accord."""
        known = self._convolves.get(id(root))
        if known is None:
            module = root.reference()
            known = module is not None and any(isinstance(one, CONVOLUTIONS) for one in module.modules())
            self._convolves[id(root)] = known
        return known

    # ---- autocast that begins inside a forward

    def _inside_a_forward(self) -> bool:
        """Whether an outermost call is running now; what a backward repeats is over."""
        recorder = self._recorder
        if recorder.closed or self._now is None or torch._C._current_graph_task_id() != -1:
            return False
        return recorder.in_training_thread() and bool(recorder.calls.stack or recorder.calls.unwatched)

    def _autocast_entered(self) -> None:
        """Move by the rest what was moved by less before it was known what the forward works in."""
        root = self._now
        module = root.reference() if root is not None else None
        device = next((parameter.device.type for parameter in module.parameters()), "cpu") if module else "cpu"
        autocast = under_autocast(device)
        if root is None or autocast is None:
            return
        self._learned[id(root)] = autocast
        for one in self._copies:
            self._widen(one, autocast)
        if not self._recorder.initial.due:
            return
        if sum(self._widen(one, autocast) for one in self._weights.get(id(root), ())):
            torch.clear_autocast_cache()
            self._recorder.initial.moved(root)

    def _widen(self, one: _Moved, autocast: Working) -> bool:
        tensor = one.tensor()
        if tensor is None or tensor.dtype is torch.float64 or one.working.unit >= autocast.unit:
            return False
        move(tensor, self._signs(one.name), autocast.unit, one.working.unit)
        one.working = autocast
        return True

    # ---- what is said of it

    def see_late(self, roots: Sequence[Root], step: int) -> None:
        """Say which models took part in a step and came too late for their weights to be moved."""
        if not self.asked or not self._over:
            return
        for root in roots:
            module = root.reference() if root.trainable or root.kept else None
            if module is None or id(root) in self._weights or id(root) in self._late or not root.owners:
                continue
            self._late.add(id(root))
            self._recorder.note_trouble(
                f"{root.names.get(id(unwrapped(module)), '')} was first seen in step {step}: its weights were not moved"
            )

    def first_step_over(self, without_module: Callable[[], int]) -> None:
        """Weights are not moved any more; `without_module` counts the parameters of optimizers that no module has."""
        if not self.asked or self._over:
            return
        self._over = True
        copies = without_module()
        if copies:
            self._recorder.note_trouble(
                f"{copies:,} parameters are in an optimizer but in no module ({NO_MODULE}) and were not moved: where "
                "they are written back over the weights, the perturbation is lost"
            )
        if not self._counts["weights"] and not self._counts["inputs"]:
            self._recorder.note_trouble("--perturb moved nothing: the models have no float weight that can be written")

    def facts(self) -> dict[str, Any]:
        """What was moved and by how much, for the file; empty where nothing was asked for."""
        if not self.asked:
            return {}
        everything = {one.working for moved in (*self._weights.values(), self._copies) for one in moved}
        by = sorted(everything | self._inputs_by, key=lambda working: (-working.unit, working.by))
        known: dict[str, Any] = {"seed": self._seed}
        if by:
            known |= {"unit": by[0].unit, "by": " and ".join(working.text for working in by)}
        return {**known, **{name: self._counts[name] for name in COUNTED if self._counts[name] or name in ALWAYS}}


COUNTED = ("weights", "inputs", "integers", "masks", "left")
ALWAYS = ("weights", "inputs")
"""Tensors that were moved, or stayed: integer inputs, masks, and what cannot be written (sharded, lazy, float8)."""


def sentence(facts: Mapping[str, Any]) -> str:
    """What was moved, for the last line; empty where nothing was asked for."""
    return "; ".join(_parts(facts)) if facts else ""


def _parts(facts: Mapping[str, Any]) -> Iterator[str]:
    weights, inputs = facts.get("weights", 0), facts.get("inputs", 0)
    things = f"{_count(weights, 'weight')} and {_count(inputs, 'input')}" if inputs else _count(weights, "weight")
    by = f" by {facts['by']}" if "by" in facts else ""
    yield f"perturbed with seed {facts['seed']}: {things} moved{by}"
    if facts.get("integers"):
        yield "integer batches were not moved"
    if facts.get("masks"):
        yield f"{_count(facts['masks'], 'mask')} of 0 and 1 {'was' if facts['masks'] == 1 else 'were'} not moved"
    if facts.get("left"):
        was = "was" if facts["left"] == 1 else "were"
        yield (
            f"{_count(facts['left'], 'tensor')} {was} not moved (sharded, lazy, of another format, or in need of a "
            "gradient)"
        )


def _count(number: int, what: str) -> str:
    return f"{number:,} {what if number == 1 else what + 's'}"


def _can_move(tensor: torch.Tensor) -> bool:
    """Whether a tensor has ordinary values that can be written."""
    return is_plain(tensor) and tensor.dtype in OWN and not tensor.is_inference()
