"""Follow NaN and Inf through the records of a run, from where they start to the loss, the gradients, the parameters.

What a record can be made of is told by containment, as in a comparison of two runs: an output of the inputs of its
module and what its children made, an input of what its caller had before, a gradient of the gradients that entered the
code whose backward made it. Where all of that is finite, something starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from align import nonfinite
from align.ahead import Ahead, call_of, caller_of, look_ahead
from align.flow import is_grad_output, is_output
from align.inspection.nonfinite_start import PlaceOfTensor, Start, is_nonfinite, is_weak, masks_rows, place_of, reach_of
from align.inspection.nonfinite_step import NONE, Code, Roots, SeenStep
from align.inspection.view import StepView
from align.pairing import Pair
from align.records import ModuleInfo, Origin, Owner, Phase, TensorRecord
from align.tolerance import is_float
from align.units import SCRIPT

BESIDE = frozenset({Phase.RNG, Phase.SCALER, Phase.INIT})
"""Phases that hold no tensors on the way from the batch to the parameters of a step."""

HARMFUL = frozenset({Phase.GRADIENT, Phase.UPDATE, Phase.PARAM, Phase.OPTIMIZER})
"""Beside the loss, where a number that is not finite does harm; elsewhere it may be meant."""


class Tracer:
    """Follows a run step by step; `starts` tells what was found so far.

    `habitual` are the places that are not finite in steps to which that did no harm: nothing comes of them.
    """

    def __init__(self, modules: Mapping[str, ModuleInfo], habitual: frozenset[PlaceOfTensor] = frozenset()) -> None:
        self._modules = modules
        self._habitual = habitual
        self._starts: list[Start] = []
        self._harm: list[set[tuple[int, Phase]]] = []
        self._weights: dict[Owner, Roots] = {}
        self._sizes: dict[Owner, float] = {}
        self._now = SeenStep(Ahead())

    def starts(self) -> tuple[Start, ...]:
        """All starts in execution order, harmful or not."""
        found = zip(self._starts, self._harm, strict=True)
        return tuple(replace(start, harm=frozenset(harm)) for start, harm in found)

    def begin(self, initial: Iterable[TensorRecord], parameters: frozenset[Owner]) -> None:
        """Take the parameters and buffers before step 0; infinite values in a buffer are meant (masks, extremes)."""
        for record in initial:
            owner = record.key.owner
            if owner in parameters:
                self._sizes[owner] = reach_of(record)
            if is_nonfinite(record) and (owner in parameters or nonfinite.kinds(record.stats)[0]):
                self._weights[owner] = self._start(record, Origin.WEIGHTS, record.key.name)

    def follow(self, step: StepView, *, loss_is_bad: bool = False) -> None:
        """Take the next captured step; `loss_is_bad` says so where the step's loss itself was not captured."""
        records = [record for record in step.records if not record.recomputed and record.key.phase not in BESIDE]
        self._now = SeenStep(look_ahead(Pair(record, record) for record in records))
        for record in records:
            self._take(record)
        if loss_is_bad and not self._now.losses_seen:
            for key, code in self._now.codes.items():
                if key[1] == SCRIPT:
                    self._do_harm(self._strong(code.roots), step.step, Phase.LOSS)

    def _take(self, record: TensorRecord) -> None:
        key, owner = record.key, record.key.owner
        if record.stats is None or not is_float(record.dtype):
            if key.phase is Phase.FORWARD:
                self._now.learn(record, NONE)
            return
        roots = self._roots_of(record) if is_nonfinite(record) else NONE
        self._now.learn(record, roots)
        if key.phase is Phase.PARAM:
            self._weights[owner], self._sizes[owner] = roots, reach_of(record)
        if key.phase in HARMFUL or (key.phase is Phase.LOSS and key.slot == "value"):
            self._do_harm(roots, key.step, key.phase)

    def _do_harm(self, roots: Iterable[int], step: int, phase: Phase) -> None:
        for root in roots:
            self._harm[root].add((step, phase))

    # Where a record that is not finite comes from.

    def _roots_of(self, record: TensorRecord) -> Roots:
        known = self._now.by_order.get(record.same_as) if record.same_as is not None else None
        return known or _SOURCES[record.key.phase](self, record)

    def _of_input(self, record: TensorRecord) -> Roots:
        found = self._inherit(record, self._now.script(record.key.micro).roots)
        return found or self._start(record, Origin.INPUT, record.key.name)

    def _of_forward(self, record: TensorRecord) -> Roots:
        return self._of_output(record) if is_output(record) else self._of_module_input(record)

    def _of_output(self, record: TensorRecord) -> Roots:
        name, call = record.key.name, self._now.call(record)
        found = self._inherit(record, call.roots) or self._weights_of(name, below=not call.has_children)
        if found:
            return found
        if call.has_children:
            return self._start(record, Origin.FUNCTIONAL, name, call.last_child, entered=call)
        return self._start(record, Origin.MODULE, name, entered=call)

    def _of_module_input(self, record: TensorRecord) -> Roots:
        caller = self._now.caller(record)
        found = self._inherit(record, caller.roots) or self._weights_of(record.within, below=False)
        if found:
            return found
        around = set[int]().union(*(code.roots for code in self._now.ancestors(caller_of(record))))
        seen = record.within == SCRIPT or caller.has_inputs
        origin = Origin.FUNCTIONAL if seen else Origin.UNKNOWN
        return frozenset(self._strong(around)) or self._start(
            record, origin, record.within, caller.last_child, entered=caller
        )

    def _of_loss(self, record: TensorRecord) -> Roots:
        caller = self._now.caller(record)
        found = self._inherit(record, caller.roots)
        if not found and not caller.has_children:
            # What the model gave back was not captured (--modules): it came of what was.
            seen = (code.roots for key, code in self._now.codes.items() if key[0] == record.key.micro)
            found = frozenset(self._strong(set[int]().union(*seen)))
        if found:
            return found
        if record.key.slot != "value":
            return self._start(record, Origin.INPUT, record.key.name)
        return self._start(record, Origin.LOSS, record.within, caller.last_child, entered=caller)

    def _of_backward(self, record: TensorRecord) -> Roots:
        users: tuple[str, ...] = ()
        if is_grad_output(record):
            key, origin = caller_of(self._now.ahead.outermost(record)), Origin.FUNCTIONAL
            users = self._now.ahead.users(record)
            owner = users[0]
        elif record.total:
            key, origin, owner = caller_of(record), Origin.FUNCTIONAL, record.within
            users = (owner,)
        else:
            key, origin, owner = call_of(record), Origin.MODULE, record.key.name
        code, call = self._now.codes[key], self._now.call(record)
        found = frozenset(code.gradients | call.gradients)
        found = found or self._now.entered_around(key) or self._of_losses(record.key.micro)
        # What was not finite in the forward of this code, and was left out of the loss, comes back in its backward.
        found = found or frozenset(self._strong(code.roots | call.roots))
        return found or self._start(record, origin, owner, users=users, entered=code)

    def _of_losses(self, micro: int) -> Roots:
        """What made the loss not finite; where the loss was not captured, the outputs that the script was given."""
        if self._now.losses_seen:
            return self._now.loss.get(micro, NONE)
        return frozenset(self._strong(self._now.script(micro).roots))

    def _of_gradient(self, record: TensorRecord) -> Roots:
        own = (code.gradients for key, code in self._now.codes.items() if key[1] == record.key.name)
        found = frozenset[int]().union(*own) or self._now.in_backward()
        return found or self._start(record, Origin.MODULE, record.key.name)

    def _of_update(self, record: TensorRecord) -> Roots:
        now = self._now
        found = now.gradients.get(record.key.owner) or now.in_gradients() or now.in_backward()
        return found or self._start(record, Origin.OPTIMIZER, record.key.name)

    def _of_parameter(self, record: TensorRecord) -> Roots:
        """Of a parameter after the update, and of the state that the optimizer keeps of it (`weight.exp_avg`)."""
        now, owner = self._now, (record.key.name, record.key.slot.partition(".")[0])
        own = now.updates.get(owner) or self._weights.get(record.key.owner)
        found = own or now.in_updates() or now.in_gradients() or now.in_backward() or self._weights.get(owner, NONE)
        entered = Code(reach=now.update_reach)
        return found or self._start(record, Origin.OPTIMIZER, record.key.name, entered=entered)

    def _weights_of(self, name: str, *, below: bool) -> Roots:
        """The starts in what a module owns; `below`: in what the modules in it own; of a borrowed matrix: in all."""
        prefix = f"{name}."
        found = {
            root
            for (owner, _), roots in self._weights.items()
            if owner == name or (below and (owner.startswith(prefix) or name.startswith("<")))
            for root in roots
        }
        module = self._modules.get(name)
        owns = any(owner == name for owner, _ in self._sizes)
        if not found and module is not None and module.matmul and not owns:
            found = {root for roots in self._weights.values() for root in roots}
        return frozenset(found)

    # What may be meant.

    def _inherit(self, record: TensorRecord, roots: Iterable[int]) -> Roots:
        """The starts among these that a record comes from; empty where it is a start of its own.

        -Inf beside moderate numbers makes more of its kind. Of NaN it is the cause unless they fill rows that are
        masked completely: then they start here.
        """
        roots = set(roots)
        strong = self._strong(roots)
        if strong:
            return frozenset(strong)
        if not is_weak(record) and self._mask_of(record, roots) is not None:
            return NONE
        return frozenset(root for root in roots if not self._is_meant(root))

    def _strong(self, roots: Iterable[int]) -> set[int]:
        """Those of which anything can come: not masks, and not what is so in healthy steps too."""
        return {root for root in roots if not (is_weak(self._starts[root].record) or self._is_meant(root))}

    def _is_meant(self, root: int) -> bool:
        record = self._starts[root].record
        return nonfinite.is_mask(record.stats) or place_of(record) in self._habitual

    def _mask_of(self, record: TensorRecord, roots: Iterable[int]) -> TensorRecord | None:
        masks = (self._starts[root].record for root in sorted(roots, reverse=True) if not self._strong((root,)))
        return next((mask for mask in masks if masks_rows(mask, record)), None)

    def _start(
        self,
        record: TensorRecord,
        origin: Origin,
        owner: str,
        sibling: str = "",
        *,
        users: tuple[str, ...] = (),
        entered: Code | None = None,
    ) -> Roots:
        code, backward = entered or Code(), record.key.phase is Phase.BACKWARD
        sizes = [size for (name, _), size in self._sizes.items() if name == owner]
        start = Start(
            record,
            origin,
            owner,
            sibling,
            users,
            mask=None if backward else self._mask_of(record, code.roots),
            reach=code.gradient_reach if backward else code.reach,
            has_zeros=code.has_zeros and not backward,
            weights=max(sizes, default=0.0),
        )
        self._starts.append(start)
        self._harm.append(set())
        return frozenset({len(self._starts) - 1})


_SOURCES: Mapping[Phase, Callable[[Tracer, TensorRecord], Roots]] = {
    Phase.INPUT: Tracer._of_input,  # noqa: SLF001 - a table of the methods above
    Phase.FORWARD: Tracer._of_forward,  # noqa: SLF001
    Phase.LOSS: Tracer._of_loss,  # noqa: SLF001
    Phase.BACKWARD: Tracer._of_backward,  # noqa: SLF001
    Phase.GRADIENT: Tracer._of_gradient,  # noqa: SLF001
    Phase.UPDATE: Tracer._of_update,  # noqa: SLF001
    Phase.PARAM: Tracer._of_parameter,  # noqa: SLF001
    Phase.OPTIMIZER: Tracer._of_parameter,  # noqa: SLF001
}
