"""What each record may differ by: the error already there, what cancellation makes of it, and whom to blame beyond.

The rule is containment. An output is held against its own module's inputs; an input against what its caller had
before; a gradient against what entered the code that made it. What exceeds that came from the code between.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from align import enlargement, tolerance
from align.expectation import Expectation, Surroundings
from align.flow import CallErrors, Flow, ModuleErrors, amplitude, is_grad_output, is_output, width_of
from align.records import Origin, Phase, TensorRecord
from align.units import SCRIPT

__all__ = ["Expectation", "Surroundings", "expect"]


OWN_BACKWARD = 1.5
"""The backward of code between modules runs more operators than its forward and adds what several consumers send."""


def expect(record: TensorRecord, around: Surroundings) -> Expectation:
    """What is expected of a record of the reference, given all that was seen before it."""
    return _EXPECTATIONS[record.key.phase](record, around)


def _expect_equal(record: TensorRecord, around: Surroundings) -> Expectation:  # noqa: ARG001 - one signature
    return Expectation(0.0, Origin.INPUT, record.key.name, record.key.name)


def _expect_forward(record: TensorRecord, around: Surroundings) -> Expectation:
    if not around.knows_parameters(record):
        return Expectation(0.0, Origin.UNKNOWN, record.key.name, record.key.name, judged=False)
    return _expect_output(record, around) if is_output(record) else _expect_module_input(record, around)


def _expect_output(record: TensorRecord, around: Surroundings) -> Expectation:
    name = record.key.name
    call = around.flow.call(record)
    error = max(call.inputs, call.children, around.parameters.own(name, record, call.input_rms))
    if call.main_input is None and call.has_inputs and not call.has_children:
        error = max(error, around.parameters.looked_up(name, record))
    if call.has_children:
        error = max(error, around.parameters.below(name, record))
    elif around.borrows(name):
        error = max(error, around.parameters.below(SCRIPT, record))
    unknown = _has_unknown_weights(name, call, around)
    if unknown:
        error = max(error, around.parameters.of_unknown(name, record, call.input_rms))
    factor = _output_factor(record, call, around)
    roundings = _output_roundings(record, call, around)
    if call.integer_argument:
        owner, sibling = _maker_of_argument(record, around.flow)
        return Expectation(
            error,
            Origin.FUNCTIONAL,
            owner,
            name,
            factor=factor,
            roundings=roundings,
            sibling=sibling,
            argument=call.integer_argument,
        )
    return Expectation(
        error,
        Origin.WEIGHTS if unknown else Origin.FUNCTIONAL if call.has_children else Origin.MODULE,
        name,
        name,
        factor=factor,
        roundings=roundings,
        sibling=call.last_child if call.has_children else "",
        terms=_terms(record, call, around),
        flips=max(call.inputs, call.children) if around.chooses(name) else None,
    )


def _has_unknown_weights(name: str, call: CallErrors, around: Surroundings) -> bool:
    """Whether a module computes with weights of its own of which no record tells that they are equal."""
    return not call.has_children and around.parameters.is_unknown(name) and around.uses_weights(name)


def _output_factor(record: TensorRecord, call: CallErrors, around: Surroundings) -> float:
    """By how much the module, or the code of a parent after its children, enlarges a difference."""
    name, ahead = record.key.name, around.flow.ahead
    if call.has_children:
        factor = enlargement.of_own_code(record, call, ahead, normalises=around.normalises(name))
    elif around.is_norm(name):
        factor = enlargement.of_norm(around.class_of(name), call.main_input, record, ahead)
    elif around.multiplies(name):
        factor = _product_factor(record, call.main_input, around)
    else:
        factor = enlargement.condition(call.main_input, record, ahead)
    if not call.has_children and call.main_input is not None and around.normalises(name):
        factor = max(factor, enlargement.of_norm(around.class_of(name), call.main_input, record, ahead))
    if not call.has_children:
        factor = max(factor, enlargement.of_attention(around.class_of(name), call.input_rms))
    return max(factor, _shrinkage(call.amplitude, record)) if record.numel == 1 else factor


def _product_factor(record: TensorRecord, source: TensorRecord | None, around: Surroundings) -> float:
    """By how much a module that is one product, or one convolution of images, lets its terms cancel."""
    matrix = around.parameters.matrix(record.key.name)
    if matrix is None or source is None or len(source.shape) != len(record.shape):
        return 1.0
    single = matrix.numel == width_of(source.shape) * width_of(record.shape)
    module = around.modules.get(record.key.name)
    images = len(record.shape) == 4 and module is not None and module.conv  # noqa: PLR2004 - of images
    return enlargement.of_product(source, matrix.norm, record) if single or images else 1.0


def _output_roundings(record: TensorRecord, call: CallErrors, around: Surroundings) -> float:
    """What one-pass statistics lose, and sines of large arguments."""
    name = record.key.name
    if around.is_norm(name) and not call.has_children:
        factor = _output_factor(record, call, around)
        terms = enlargement.norm_terms(around.class_of(name), call.main_input)
        return max(factor**2, tolerance.SUMMATION * math.sqrt(terms))
    if call.has_children or around.normalises(name):
        # A variance made of a mean of squares loses the square of what a mean that is taken out loses.
        return max(_output_factor(record, call, around) ** 2, _table_roundings(record, call))
    if around.parameters.has_matrix(name):
        return 0.0
    size = call.integers if call.has_inputs else 0.0
    return max(size, _table_roundings(record, call))


def _table_roundings(record: TensorRecord, code: CallErrors) -> float:
    """Positions are counted by arguments or made in the code itself, then at most as many as the table is long."""
    if record.same_as is not None:
        return 0.0
    length = max(record.shape[:-1], default=0)
    return enlargement.reach_of_table(record, max(code.integers, code.amplitude, code.reach, length))


def _terms(record: TensorRecord, call: CallErrors, around: Surroundings) -> int:
    """The length of the sums in a module's products: as its matrix has it, else at most the longest dimension."""
    name = record.key.name
    if not around.multiplies(name):
        return 0
    found = around.parameters.terms(name, width_of(record.shape))
    if found or call.main_input is None:
        return found
    return max(call.main_input.shape, default=0)


def _maker_of_argument(record: TensorRecord, flow: Flow) -> tuple[str, str]:
    """The outermost code that can have made an integer argument that differs."""
    owner, sibling = record.within, flow.caller(record).last_child
    for call in flow.ancestors(record):
        if not call.integer_argument or call.parent is None:
            break
        owner = call.parent[1]
        sibling = flow.calls[call.parent].last_child
    return owner, sibling


def _expect_module_input(record: TensorRecord, around: Surroundings) -> Expectation:
    caller = around.flow.caller(record)
    error = max(caller.inputs, caller.children, around.parameters.below(record.within, record))
    if record.within == SCRIPT:
        error = max(error, around.flow.carried)
    seen = record.within == SCRIPT or caller.has_inputs
    normalises = around.normalises(record.within)
    factor = enlargement.of_own_code(record, caller, around.flow.ahead, normalises=normalises)
    return Expectation(
        error,
        Origin.FUNCTIONAL if seen else Origin.UNKNOWN,
        record.within,
        record.within,
        factor=factor,
        roundings=max(factor**2, _table_roundings(record, caller)),
        sibling=caller.last_child,
        unseen=0 if seen else len(around.modules),
        terms=max(record.shape, default=0) if around.multiplies(record.within) else 0,
        flips=max(caller.inputs, caller.children) if around.chooses(record.within) else None,
    )


def _expect_loss(record: TensorRecord, around: Surroundings) -> Expectation:
    caller = around.flow.caller(record)
    error = max(caller.children, caller.inputs, around.flow.carried if not caller.has_children else 0.0)
    origin = Origin.LOSS if record.key.slot == "value" else Origin.FUNCTIONAL
    return Expectation(
        error,
        origin,
        record.within,
        caller.last_child or record.within,
        factor=_shrinkage(caller.amplitude, record),
        sibling=caller.last_child,
        judged=Phase.FORWARD in around.flow.phases and around.knows_parameters(record),
    )


def _shrinkage(size: float, record: TensorRecord) -> float:
    """A sum of large terms that is small holds their absolute error."""
    result = amplitude(record)
    if result > 0.0:
        return max(1.0, size / result)
    return math.inf if size > 0.0 and record.numel == 1 else 1.0


def _expect_backward(record: TensorRecord, around: Surroundings) -> Expectation:
    if is_grad_output(record):
        return _expect_grad_output(record, around)
    return _expect_grad_input(record, around)


def _expect_grad_output(record: TensorRecord, around: Surroundings) -> Expectation:
    flow = around.flow
    call = flow.call(record)
    # The code that made it runs around the outermost module that ends in this one.
    outer = flow.ahead.outermost(record)
    maker, caller = outer.within, flow.caller(outer)
    # A module inside that returns the tensor and uses it, too, stands nearer to it.
    users = flow.ahead.users(record)
    error, seen = max(call.outputs, flow.call(outer).outputs, around.parameters.below(maker, record)), False
    # Where no gradient was seen to enter the caller, what entered its own caller is the nearest known.
    for ancestor in flow.ancestors(outer):
        error = max(error, ancestor.below, ancestor.grad_outputs, ancestor.children, ancestor.inputs)
        seen = ancestor.has_grad_outputs
        if seen:
            break
    if not seen:
        error = max(error, flow.loss)
    first = not caller.has_below and (maker == SCRIPT or not seen)
    size = amplitude(call.output) if call.output is not None else 0.0
    return Expectation(
        error,
        Origin.FUNCTIONAL,
        users[0],
        maker,
        # The softmax of a loss turns the absolute error of its scores into a relative one.
        factor=enlargement.of_loss(size, flow.loss_sizes.get(record.key.micro))
        if first
        else _own_backward(record, call, flow),
        terms=max(record.shape, default=0) if any(map(around.multiplies, users)) else 0,
        judged=_backward_judged(record, around),
        flips=max(call.outputs, caller.made) if any(map(around.is_piecewise, users)) else None,
    )


def _own_backward(record: TensorRecord, call: CallErrors, flow: Flow) -> float:
    """By how much the backward of code between modules enlarges a difference.

    The work of a gradient on its tensor, ||g|| ||x||, stays about the same through code that is well conditioned; a
    softmax that is sharp leaves little of it, with the absolute error of what entered.
    """
    output = call.output
    if record.same_as is not None or output is None or output.stats is None or record.stats is None:
        return OWN_BACKWARD
    left = record.stats.norm * output.stats.norm
    entered = flow.caller(flow.ahead.outermost(record)).work
    return max(OWN_BACKWARD, entered / left) if left > 0.0 else OWN_BACKWARD


def _expect_grad_input(record: TensorRecord, around: Surroundings) -> Expectation:
    name = record.key.name
    call = around.flow.call(record)
    error = max(call.grad_outputs, call.inputs, call.outputs, around.parameters.matrices(name))
    judged = _backward_judged(record, around)
    if record.total or not call.has_grad_outputs:
        for ancestor in around.flow.ancestors(record):
            error = max(error, ancestor.below, ancestor.grad_outputs, ancestor.children)
            if ancestor.has_grad_outputs:
                break
    if record.total:
        return Expectation(
            error,
            Origin.FUNCTIONAL,
            record.within,
            record.within,
            judged=judged and not call.has_own_gradient,
            flips=call.inputs if around.is_piecewise(record.within) else None,
        )
    factor = _backward_factor(record, call, around)
    if record.within == SCRIPT and call.output is not None and call.output.numel == 1:
        factor = max(factor, enlargement.of_loss(call.amplitude, amplitude(call.output)))
    flips = call.inputs if around.is_piecewise(name) else None
    terms = around.parameters.terms(name, width_of(record.shape)) if around.multiplies(name) else 0
    return Expectation(error, Origin.MODULE, name, name, factor=factor, judged=judged, terms=terms, flips=flips)


def _backward_judged(record: TensorRecord, around: Surroundings) -> bool:
    return Phase.FORWARD in around.flow.phases and around.knows_parameters(record)


def _backward_factor(record: TensorRecord, call: CallErrors, around: Surroundings) -> float:
    """By how much the backward of a module enlarges a difference."""
    name = record.key.name
    if around.is_norm(name):
        return _backward_cancellation(call, record, around)
    if around.multiplies(name) and around.parameters.matrix(name) is not None:
        return _product_factor(record, call.gradient, around)
    if call.gradient is None or call.gradient.numel != record.numel:
        return 1.0
    return enlargement.of_elementwise(call.grad_norm, record)


def _backward_cancellation(call: CallErrors, record: TensorRecord, around: Surroundings) -> float:
    """How much of the gradient a normalisation takes out again: its mean and its part along the output."""
    source, output = call.main_input, call.output
    if source is None or output is None or source.stats is None or output.stats is None or record.stats is None:
        return 1.0
    forward = enlargement.of_norm(around.class_of(record.key.name), source, output, around.flow.ahead)
    through = call.grad_norm * output.stats.rms * forward
    left = record.stats.norm * source.stats.rms
    return max(forward, through / left) if left > 0.0 else forward


def _expect_gradient(record: TensorRecord, around: Surroundings) -> Expectation:
    name = record.key.name
    flow = around.flow
    owner = (name, record.key.slot)
    error = flow.gradients.errors.get(owner, 0.0)
    module = flow.nearest_module(name)
    if module is None:
        error = max(error, flow.backward)
        return Expectation(
            error, Origin.MODULE, name, name, judged=Phase.BACKWARD in flow.phases and _backward_judged(record, around)
        )
    exact = name in flow.modules and flow.modules[name] is module
    error = max(error, module.grad_outputs, module.inputs)
    if not exact or not _is_leaf(name, around):
        error = max(error, module.below if exact else flow.backward)
    if around.is_norm(name):
        error = max(error, module.outputs)
    error, noise = _with_borrowers(record, around, error, _noise(record, module))
    return Expectation(
        error,
        Origin.MODULE,
        name,
        name,
        factor=max(_cancelled(noise, record), OWN_BACKWARD),
        roundings=_sums_of_rows(record, module) if module.looks_up else 0.0,
        judged=_backward_judged(record, around),
        terms=module.rows,
    )


def _is_leaf(name: str, around: Surroundings) -> bool:
    return name not in around.modules or around.modules[name].leaf


def _noise(record: TensorRecord, module: ModuleErrors) -> float:
    """The squared size that the gradient would have if nothing cancelled in its sum over rows."""
    if len(record.shape) <= 1:
        return module.vector_noise
    return module.matrix_noise * record.numel / max(record.shape[0] * record.shape[1], 1)


def _with_borrowers(record: TensorRecord, around: Surroundings, error: float, noise: float) -> tuple[float, float]:
    """Add the modules that multiply by a matrix of this shape without owning one: it may be this (tied weights)."""
    if len(record.shape) != 2:  # noqa: PLR2004 - a matrix
        return error, noise
    for name in around.flow.by_widths.get((record.shape[0], record.shape[1]), ()):
        if around.borrows(name):
            module = around.flow.modules[name]
            error = max(error, module.grad_outputs, module.inputs)
            noise += module.matrix_noise
    return error, noise


def _sums_of_rows(record: TensorRecord, module: ModuleErrors) -> float:
    """How many unit roundoffs the sums of a table's gradient may lose: all rows that repeat may be sums of one row.

    The terms of a row may cancel while the sums of other rows do not; of what they were only the number is known.
    """
    stats = record.stats
    if stats is None or len(record.shape) != 2 or stats.norm == 0.0:  # noqa: PLR2004 - a table
        return 0.0
    used = (stats.count - stats.zeros) / max(record.shape[1], 1)
    return math.sqrt(max(module.rows - used, 0.0) * module.matrix_noise) / stats.norm


def _cancelled(noise: float, record: TensorRecord) -> float:
    norm = record.stats.norm if record.stats is not None else 0.0
    if not noise > 0.0 or not math.isfinite(noise):
        return 1.0
    return max(1.0, math.sqrt(noise) / norm) if norm > 0.0 else math.inf


def _expect_update(record: TensorRecord, around: Surroundings) -> Expectation:
    owner = record.key.owner
    gradients = around.flow.gradients
    error = max(gradients.errors.get(owner, 0.0), gradients.norm_error)
    return Expectation(
        error,
        Origin.OPTIMIZER,
        record.key.name,
        record.key.name,
        factor=_reduced(record, math.sqrt(gradients.squares.get(owner, 0.0)), around),
        judged=owner in gradients.errors,
    )


def _reduced(record: TensorRecord, gradient_norm: float, around: Surroundings) -> float:
    """How much a gradient shrank on its way to the optimizer beyond what became of all of them.

    An average over replicas or ranks in which gradients of opposite signs cancel holds the absolute error of what was
    averaged. Where it happens to all of them the loss scale and clipping, which are known, say what did not cancel.
    """
    norm = record.stats.norm if record.stats is not None else 0.0
    share = max(around.flow.ahead.passed_on, around.kept_of_gradients)
    if not gradient_norm * share > 0.0:
        return 1.0
    return max(1.0, gradient_norm * share / norm) if norm > 0.0 else math.inf


def _expect_parameter(record: TensorRecord, around: Surroundings) -> Expectation:
    owner = record.key.owner
    flow = around.flow
    error = max(flow.gradients.errors.get(owner, 0.0), flow.updates.get(owner, 0.0))
    # Adam's first step is the sign of the gradient: a benign pair differs by up to 0.7 after it.
    return Expectation(error, Origin.OPTIMIZER, record.key.name, record.key.name, judged=False)


_EXPECTATIONS: Mapping[Phase, Callable[[TensorRecord, Surroundings], Expectation]] = {
    Phase.INIT: _expect_equal,
    Phase.INPUT: _expect_equal,
    Phase.FORWARD: _expect_forward,
    Phase.LOSS: _expect_loss,
    Phase.BACKWARD: _expect_backward,
    Phase.GRADIENT: _expect_gradient,
    Phase.UPDATE: _expect_update,
    Phase.PARAM: _expect_parameter,
}
