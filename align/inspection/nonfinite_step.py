"""What has been seen of one step on the way of NaN and Inf: which starts have entered the code of which call."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from align.ahead import Ahead, CallKey, call_of, caller_of
from align.flow import DEEPEST, is_grad_output, is_output
from align.inspection.nonfinite_start import reach_of
from align.records import Owner, Phase, TensorRecord
from align.units import SCRIPT

Roots = frozenset[int]
"""The starts that something non-finite comes from, by their numbers."""

NONE: Roots = frozenset()


@dataclass(slots=True)
class Code:
    """What has entered the code of one module call, or of the script.

    `roots` are of the tensors of the forward, `gradients` of the backward; `reach` and `gradient_reach` are the largest
    magnitudes of both, `has_zeros` says whether a tensor of the forward holds exact zeros.
    """

    roots: set[int] = field(default_factory=set)
    gradients: set[int] = field(default_factory=set)
    reach: float = 0.0
    has_zeros: bool = False
    gradient_reach: float = 0.0
    last_child: str = ""
    parent: CallKey | None = None
    has_inputs: bool = False
    has_children: bool = False


@dataclass(slots=True)
class SeenStep:
    """The state of one step; `by_order` are the roots of each record."""

    ahead: Ahead
    codes: dict[CallKey, Code] = field(default_factory=lambda: defaultdict(Code))
    by_order: dict[int, Roots] = field(default_factory=dict)
    loss: dict[int, Roots] = field(default_factory=dict)
    losses_seen: bool = False
    gradients: dict[Owner, Roots] = field(default_factory=dict)
    updates: dict[Owner, Roots] = field(default_factory=dict)
    update_reach: float = 0.0

    def call(self, record: TensorRecord) -> Code:
        """The call that the record belongs to."""
        return self.codes[call_of(record)]

    def caller(self, record: TensorRecord) -> Code:
        """The call whose code made the record."""
        return self.codes[caller_of(record)]

    def script(self, micro: int) -> Code:
        """The code outside of every module."""
        return self.codes[micro, SCRIPT, 0]

    def ancestors(self, key: CallKey) -> Iterator[Code]:
        """The code of a call, of its caller and so on, the script last."""
        for _ in range(DEEPEST):
            yield self.codes[key]
            if key[1] == SCRIPT:
                return
            key = self.codes[key].parent or (key[0], SCRIPT, 0)

    def entered_around(self, key: CallKey) -> Roots:
        """The gradients that entered the code around, where none was seen to enter this one."""
        for code in self.ancestors(key):
            if code.gradients:
                return frozenset(code.gradients)
            if code.gradient_reach:
                break
        return NONE

    def in_backward(self) -> Roots:
        """Everything that was not finite in the losses and the backward."""
        return frozenset[int]().union(*(code.gradients for code in self.codes.values()), *self.loss.values())

    def in_gradients(self) -> Roots:
        """Everything that was not finite in the gradients of parameters."""
        return frozenset[int]().union(*self.gradients.values())

    def in_updates(self) -> Roots:
        """Everything that was not finite in the gradients as the optimizer takes them."""
        return frozenset[int]().union(*self.updates.values())

    def learn(self, record: TensorRecord, roots: Roots) -> None:
        """Take note of a record and of the starts that it comes from."""
        phase, owner, micro = record.key.phase, record.key.owner, record.key.micro
        self.by_order[record.order] = roots
        if phase is Phase.FORWARD:
            self._learn_forward(record, roots)
        elif phase is Phase.BACKWARD:
            self._learn_backward(record, roots)
        elif phase is Phase.INPUT:
            self.script(micro).roots |= roots
        elif phase is Phase.LOSS and record.key.slot != "value":
            self.caller(record).roots |= roots
        elif phase is Phase.LOSS:
            self.losses_seen = True
            self.loss[micro] = self.loss.get(micro, NONE) | roots
        elif phase is Phase.GRADIENT:
            self.gradients[owner] = roots
        elif phase is Phase.UPDATE:
            self.updates[owner] = roots
            self.update_reach = max(self.update_reach, reach_of(record))

    def _learn_forward(self, record: TensorRecord, roots: Roots) -> None:
        call, caller = self.call(record), self.caller(record)
        call.parent = call.parent or caller_of(record)
        if is_output(record):
            caller.roots |= roots
            caller.last_child, caller.has_children = record.key.name, True
            entered = caller
        else:
            call.roots |= roots
            call.has_inputs = True
            if record.same_as is None:
                caller.roots |= roots
            entered = call
        entered.reach = max(entered.reach, reach_of(record))
        entered.has_zeros = entered.has_zeros or (record.stats is not None and record.stats.zeros > 0)

    def _learn_backward(self, record: TensorRecord, roots: Roots) -> None:
        key = call_of(record) if is_grad_output(record) else caller_of(record)
        for code in self.ancestors(key):
            code.gradients |= roots
        self.codes[key].gradient_reach = max(self.codes[key].gradient_reach, reach_of(record))
        if not is_grad_output(record):
            self.call(record).gradients |= roots
