"""The differences seen so far in one step: what a later record may have inherited."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from align.ahead import Ahead, CallKey, call_of, caller_of
from align.pairing import Pair
from align.records import Owner, Phase, TensorRecord
from align.units import SCRIPT
from align.value_types import is_floating

LARGEST_AMPLITUDE = 1e30
"""Masks made of a format's smallest number say nothing about the size of what they are added to."""

DEEPEST = 64
"""No model nests deeper; a file that says so would otherwise be followed in circles."""


@dataclass(slots=True)
class CallErrors:
    """The largest relative errors around one module call, and what else its records told."""

    inputs: float = 0.0
    outputs: float = 0.0
    children: float = 0.0
    made: float = 0.0
    grad_outputs: float = 0.0
    below: float = 0.0
    has_inputs: bool = False
    has_children: bool = False
    has_grad_outputs: bool = False
    has_below: bool = False
    has_own_gradient: bool = False
    last_child: str = ""
    parent: CallKey | None = None
    main_input: TensorRecord | None = None
    output: TensorRecord | None = None
    input_rms: float = 0.0
    grad_norm: float = 0.0
    work: float = 0.0
    gradient: TensorRecord | None = None
    amplitude: float = 0.0
    reach: float = 0.0
    integers: float = 0.0
    sources: list[TensorRecord] = field(default_factory=list)
    integer_argument: str = ""
    shape_argument: str = ""


@dataclass(slots=True)
class ModuleErrors:
    """The same over all calls of one module in the step, for the gradients of its parameters.

    `looks_up` says that it is given no floats: its matrix is a table of rows.
    """

    inputs: float = 0.0
    outputs: float = 0.0
    grad_outputs: float = 0.0
    below: float = 0.0
    vector_noise: float = 0.0
    matrix_noise: float = 0.0
    rows: int = 0
    looks_up: bool = False


@dataclass(slots=True)
class Gradients:
    """The errors of all parameter gradients of the step and of their common norm."""

    errors: dict[Owner, float] = field(default_factory=dict)
    squares: dict[Owner, float] = field(default_factory=dict)
    difference: float = 0.0
    total: float = 0.0

    def learn(self, record: TensorRecord, error: float) -> None:
        """Take the error of one gradient; a later micro-step replaces an earlier one."""
        owner = record.key.owner
        before, square = self.squares.get(owner, 0.0), record.stats.total_squares if record.stats is not None else 0.0
        if before:
            self.difference -= self.errors[owner] ** 2 * before
        if square:
            self.difference += error * error * square
        self.total += square - before
        self.errors[owner], self.squares[owner] = error, square

    @property
    def norm_error(self) -> float:
        """The relative error of all gradients taken as one vector, which a global-norm clip passes on."""
        if math.isnan(self.difference):
            return math.inf
        return math.sqrt(max(self.difference, 0.0) / self.total) if self.total > 0.0 else 0.0


class Flow:
    """All that is known of one step so far; `carried` is the error of what the step before left to the script."""

    def __init__(self, carried: float = 0.0) -> None:
        self.calls: dict[CallKey, CallErrors] = defaultdict(CallErrors)
        self.modules: dict[str, ModuleErrors] = defaultdict(ModuleErrors)
        self.by_widths: dict[tuple[int, int], dict[str, None]] = defaultdict(dict)
        self.gradients = Gradients()
        self.updates: dict[Owner, float] = {}
        self.carried = carried
        self.ahead = Ahead()
        self.loss = 0.0
        self.loss_sizes: dict[int, float] = {}
        self.backward = 0.0
        self.phases: set[Phase] = set()

    def call(self, record: TensorRecord) -> CallErrors:
        """The call that the record belongs to."""
        return self.calls[call_of(record)]

    def caller(self, record: TensorRecord) -> CallErrors:
        """The call whose code made the record: of an input and an output alike, the parent."""
        return self.calls[caller_of(record)]

    def ancestors(self, record: TensorRecord) -> Iterator[CallErrors]:
        """The caller, its caller and so on, the script last."""
        key = caller_of(record)
        for _ in range(DEEPEST):
            yield self.calls[key]
            if key[1] == SCRIPT:
                return
            key = self.calls[key].parent or (key[0], SCRIPT, 0)

    def nearest_module(self, name: str) -> ModuleErrors | None:
        """What is known of a module, or of its nearest ancestor that a gradient was seen to enter."""
        while name:
            if name in self.modules and self.modules[name].vector_noise > 0.0:
                return self.modules[name]
            name = name.rpartition(".")[0]
        return None

    @property
    def script_outputs(self) -> float:
        """The largest error among the outputs of the outermost modules, which a later step may start from."""
        errors = (call.children for key, call in self.calls.items() if key[1] == SCRIPT)
        return max((error for error in errors if math.isfinite(error)), default=0.0)


def learn(flow: Flow, pair: Pair, error: float) -> None:
    """Add the error of one judged record to what is known."""
    record = pair.reference
    flow.phases.add(record.key.phase)
    _LEARNERS[record.key.phase](flow, pair, error)


def is_output(record: TensorRecord) -> bool:
    """Whether a forward record is an output of its module."""
    return record.key.slot.startswith("output")


def is_grad_output(record: TensorRecord) -> bool:
    """Whether a backward record is the gradient of an output."""
    return record.key.slot.startswith("grad_output")


def amplitude(record: TensorRecord) -> float:
    """The largest magnitude, 0 for masks."""
    size = record.stats.absolute_maximum if record.stats is not None else 0.0
    return size if size < LARGEST_AMPLITUDE else 0.0


def _learn_input(flow: Flow, pair: Pair, error: float) -> None:
    script = flow.calls[(pair.key.micro, SCRIPT, 0)]
    script.inputs = max(script.inputs, error)


def _learn_forward(flow: Flow, pair: Pair, error: float) -> None:
    record = pair.reference
    call = flow.call(record)
    call.parent = caller_of(record)
    if not is_output(record):
        call.has_inputs = True
        call.inputs = max(call.inputs, error)
        module = flow.modules[record.key.name]
        module.inputs = max(module.inputs, error)
        if record.same_as is None:
            maker = flow.caller(record)
            maker.made = max(maker.made, error)
        _learn_input_size(call, record, flow.ahead)
        return
    call.outputs = max(call.outputs, error)
    call.output = call.output or record
    module = flow.modules[record.key.name]
    module.outputs = max(module.outputs, error)
    caller = flow.caller(record)
    caller.has_children = True
    caller.children = max(caller.children, error)
    caller.last_child = record.key.name
    if amplitude(record) and is_floating(record.dtype):
        caller.sources.append(record)
    if record.numel > 1:
        caller.amplitude = amplitude(record)


def _learn_input_size(call: CallErrors, record: TensorRecord, ahead: Ahead) -> None:
    if record.stats is None:
        return
    size = amplitude(record)
    if size:
        call.input_rms = max(call.input_rms, record.stats.rms)
    if not is_floating(record.dtype) and (call_of(record), record.hash) not in ahead.hashes:
        call.integers = max(call.integers, size)
    if is_floating(record.dtype):
        call.amplitude = max(call.amplitude, size)
        call.reach = max(call.reach, size)
        if call.main_input is None or record.numel > call.main_input.numel:
            call.main_input = record


def _learn_loss(flow: Flow, pair: Pair, error: float) -> None:
    if pair.key.slot == "value":
        flow.loss = max(flow.loss, error)
        size = amplitude(pair.reference)
        flow.loss_sizes[pair.key.micro] = min(size, flow.loss_sizes.get(pair.key.micro, size))
    else:
        caller = flow.caller(pair.reference)
        caller.inputs = max(caller.inputs, error)


def _learn_backward(flow: Flow, pair: Pair, error: float) -> None:
    record = pair.reference
    if record.total and flow.call(record).has_own_gradient:
        return  # The module's own part is known; the rest is other modules' and comes with their records.
    flow.backward = max(flow.backward, error)
    for ancestor in flow.ancestors(record):
        ancestor.below = max(ancestor.below, error)
        ancestor.has_below = True
    if record.within:
        module = flow.modules[record.within]
        module.below = max(module.below, error)
    call = flow.call(record)
    if not is_grad_output(record):
        call.has_own_gradient = call.has_own_gradient or not record.total
        _learn_work(flow.caller(record), record, call.main_input)
        return
    _learn_work(call, record, call.output)
    call.has_grad_outputs = True
    call.grad_outputs = max(call.grad_outputs, error)
    call.gradient = call.gradient or record
    call.grad_norm = max(call.grad_norm, record.stats.norm if record.stats is not None else 0.0)
    _learn_noise(flow, call.main_input, record, error)


def _learn_work(code: CallErrors, gradient: TensorRecord, tensor: TensorRecord | None) -> None:
    """The largest product of a gradient that enters some code and the tensor that it is the gradient of."""
    if tensor is not None and tensor.numel == gradient.numel and tensor.stats and gradient.stats:
        code.work = max(code.work, tensor.stats.norm * gradient.stats.norm)


def _learn_noise(flow: Flow, main_input: TensorRecord | None, record: TensorRecord, error: float) -> None:
    """How large the parameter gradients would be if nothing in their sums cancelled."""
    module = flow.modules[record.key.name]
    module.grad_outputs = max(module.grad_outputs, error)
    if record.stats is None or record.numel == 0:
        return
    square = record.stats.total_squares
    width = width_of(record.shape)
    module.vector_noise += square
    module.rows += record.numel // width
    if main_input is not None and main_input.stats is not None:
        module.matrix_noise += square * main_input.stats.total_squares / max(record.numel / width, 1.0)
        flow.by_widths[(width, width_of(main_input.shape))][record.key.name] = None
    else:
        module.matrix_noise += square
        module.looks_up = True


def width_of(shape: tuple[int, ...]) -> int:
    """The number of features: the last dimension, for images dimension 1."""
    if len(shape) == 4:  # noqa: PLR2004 - batch, channel, height, width
        return max(shape[1], 1)
    return max(shape[-1], 1) if shape else 1


def _learn_gradient(flow: Flow, pair: Pair, error: float) -> None:
    flow.gradients.learn(pair.reference, error)


def _learn_update(flow: Flow, pair: Pair, error: float) -> None:
    flow.updates[pair.key.owner] = error


def _learn_nothing(flow: Flow, pair: Pair, error: float) -> None:
    pass


_LEARNERS = {
    Phase.INIT: _learn_nothing,
    Phase.INPUT: _learn_input,
    Phase.FORWARD: _learn_forward,
    Phase.LOSS: _learn_loss,
    Phase.BACKWARD: _learn_backward,
    Phase.GRADIENT: _learn_gradient,
    Phase.UPDATE: _learn_update,
    Phase.PARAM: _learn_nothing,
}
