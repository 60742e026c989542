"""The sentences about a NaN, or an Inf that is no overflow: one pair of summary and advice for each kind of place."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from align import wording
from align.diagnosis import nan_telling, telling
from align.diagnosis.run import nonfinite_telling as tell
from align.fp16_range import FLOAT16, QUANTUM
from align.inspection import RunView
from align.inspection.nonfinite import Start
from align.records import FactValue, Origin, Phase, Word
from align.sentences import joined, say

SETTINGS = ("lr", "eps", "weight_decay")
"""What makes an update not finite of finite gradients."""


class Where(Word):
    """The kinds of places in which something non-finite starts."""

    WEIGHTS = "weights"
    BATCH = "batch"
    TARGETS = "targets"
    LOSS = "loss"
    GRADIENT = "gradient"
    UPDATE = "update"
    OPTIMIZER = "optimizer"
    CODE = "code"


_BY_ORIGIN = {Origin.WEIGHTS: Where.WEIGHTS, Origin.LOSS: Where.LOSS}
_BY_PHASE = {
    Phase.GRADIENT: Where.GRADIENT,
    Phase.UPDATE: Where.UPDATE,
    Phase.PARAM: Where.OPTIMIZER,
    Phase.OPTIMIZER: Where.OPTIMIZER,
}


def where_of(start: Start) -> Where:
    """The kind of place of a start."""
    if start.origin is Origin.INPUT:
        return Where.TARGETS if start.key.phase is Phase.LOSS else Where.BATCH
    return _BY_ORIGIN.get(start.origin) or _BY_PHASE.get(start.key.phase, Where.CODE)


def summary(view: RunView, start: Start) -> str:
    """What starts where, in one or two sentences."""
    if tell.lacking(view, start) or start.origin is Origin.UNKNOWN:
        tensor = telling.tensor(start.key)
        return say("{}: {} is the first captured tensor with {}.", telling.opening(start.key), tensor, _holds(start))
    return _SUMMARIES[where_of(start)](view, start)


def advice(view: RunView, start: Start) -> str:
    """What to look at, or to capture where it is not known where it starts."""
    step = max(start.key.step, 0)
    if start.origin is Origin.UNKNOWN:
        return say(
            "Capture it again without --modules: `align capture --steps {}:{} SCRIPT`, then inspect that.",
            step,
            step + 1,
        )
    if tell.lacking(view, start):
        return say(
            "Capture it again without --phases: `align capture --steps {}:{} SCRIPT`, then inspect that.",
            step,
            step + 1,
        )
    if tell.weights_unknown(view, start):
        return say(
            "Capture the step before as well: `align capture --steps {}:{} SCRIPT`, then inspect that.",
            step - 1,
            step + 1,
        )
    where = where_of(start)
    if where is Where.OPTIMIZER and _eps_is_zero(view, start):
        return (
            "Keep the parameters, or a copy of them that the optimizer updates, in fp32 and compute in fp16 by "
            "torch.autocast: in fp16 this eps is 0, and a gradient whose square is 0 in fp16 is divided by 0. An eps "
            "of 1e-4 is more than 0 in fp16, but it slows small gradients down."
        )
    if where is Where.WEIGHTS:
        return say(_WEIGHTS_ADVICE, start.key.name)
    return _advice_on_code(start) if where is Where.CODE else _ADVICE[where]


def _eps_is_zero(view: RunView, start: Start) -> bool:
    """Whether an eps above 0 is rounded to 0 in the dtype of the parameter."""
    eps = settings(view, start).get("eps")
    return start.record.dtype == FLOAT16 and isinstance(eps, float) and 0.0 < eps <= QUANTUM / 2.0


def settings(view: RunView, start: Start) -> dict[str, FactValue]:
    """The settings of the parameter's group that can make an update not finite; nothing elsewhere."""
    if where_of(start) is not Where.OPTIMIZER:
        return {}
    step, key = view.step(start.key.step), start.key
    group = step.fact(Phase.OPTIMIZER, key.name, f"{key.slot.partition('.')[0]}.group")
    found = {name: step.fact(Phase.OPTIMIZER, str(group), name) for name in SETTINGS}
    return {name: value for name, value in found.items() if isinstance(value, int | float)}


def _holds(start: Start) -> str:
    """`NaN (1 of 48 elements)`."""
    amount = tell.amount(start)
    return say("{} ({})", tell.kind_of(start), amount) if amount else tell.kind_of(start)


def _weights(view: RunView, start: Start) -> str:  # noqa: ARG001 - one signature
    key = start.key
    return say(
        "Before step 0 {} {} holds {}: it was initialized or loaded like that.", key.name, key.slot, _holds(start)
    )


def _batch(view: RunView, start: Start) -> str:  # noqa: ARG001 - one signature
    key = start.key
    step, tensor = wording.step(key.step, key.micro), telling.tensor(key)
    return say("In {} the batch holds {}, in {}, before any module runs.", step, _holds(start), tensor)


def _targets(view: RunView, start: Start) -> str:  # noqa: ARG001 - one signature
    key = start.key
    return say(
        "In {} the targets hold {}; every module output is finite.", wording.step(key.step, key.micro), _holds(start)
    )


def _loss(view: RunView, start: Start) -> str:
    key = start.key
    valid = view.step(key.step).fact(Phase.LOSS, key.name, "valid_targets")
    ignored = " None of its targets counts: all are ignored." if valid == 0 and not isinstance(valid, bool) else ""
    step, kind = wording.step(key.step, key.micro), tell.kind_of(start)
    captured = "that was captured " if view.run.modules_requested else ""
    return say("Every module output {}of {} is finite; the loss is {}.{}", captured, step, kind, ignored)


def _gradient(view: RunView, start: Start) -> str:  # noqa: ARG001 - one signature
    key = start.key
    return say(
        "In {} the gradients of all activations are finite; that of the parameter {} {} has {}.",
        wording.step(key.step, key.micro),
        key.name,
        key.slot,
        _holds(start),
    )


def _update(view: RunView, start: Start) -> str:  # noqa: ARG001 - one signature
    key = start.key
    return say(
        "In {} every gradient is finite after backward; as the optimizer takes it that of {} {} has {}: the code "
        "between backward and the optimizer made it.",
        wording.step(key.step),
        key.name,
        key.slot,
        _holds(start),
    )


def _optimizer(view: RunView, start: Start) -> str:
    key = start.key
    told = joined(
        ", ", (say("{} {}", name, wording.value(float(value or 0.0))) for name, value in settings(view, start).items())
    )
    return say(
        "In {} every gradient that the optimizer takes is finite; after the update {} {} has {}{}.",
        wording.step(key.step),
        key.name,
        key.slot,
        _holds(start),
        say(", with {}", told) if told else "",
    )


def _code(view: RunView, start: Start) -> str:  # noqa: ARG001 - one signature
    key, made = start.key, tell.made_by(start)
    entered = say(", at most {}", wording.value(start.reach)) if start.reach > 0.0 else ""
    by = say(": {} made it", made) if made else ""
    return say(
        "{}: {} is the first tensor with {}; what it is made from is finite{}{}.{}",
        telling.opening(key),
        telling.tensor(key),
        _holds(start),
        entered,
        by,
        _masked(start),
    )


def _masked(start: Start) -> str:
    """That whole rows are NaN, as where a mask leaves nothing of them."""
    stats, mask = start.record.stats, start.mask.stats if start.mask is not None else None
    if start.mask is None or stats is None or mask is None:
        return ""
    rows = stats.nans // max(start.record.shape[-1], 1)
    return say(
        " {} of it {} NaN throughout, as the softmax of a row is that is masked completely: {} of {} of {} are -Inf.",
        wording.plural(rows, "row"),
        "is" if rows == 1 else "are",
        wording.count(mask.negative_infs),
        wording.plural(mask.count, "element"),
        telling.tensor(start.mask.key),
    )


_SUMMARIES: Mapping[Where, Callable[[RunView, Start], str]] = {
    Where.WEIGHTS: _weights,
    Where.BATCH: _batch,
    Where.TARGETS: _targets,
    Where.LOSS: _loss,
    Where.GRADIENT: _gradient,
    Where.UPDATE: _update,
    Where.OPTIMIZER: _optimizer,
    Where.CODE: _code,
}

_WEIGHTS_ADVICE = (
    "Look at how {} is initialized, and at the checkpoint that it is loaded from: `align checkpoint CHECKPOINT "
    "RUN.h5` compares it with what the run started with."
)
_ADVICE: Mapping[Where, str] = {
    Where.BATCH: (
        "Look at the sample and at the code that makes the batch: a division by a deviation of 0, a logarithm, a "
        "damaged file. Check batches with torch.isfinite before the model gets them."
    ),
    Where.TARGETS: (
        "Leave the targets that are not finite out of the loss before it is computed: `known = "
        "torch.isfinite(target)`, then the loss of `prediction[known]` and `target[known]`."
    ),
    Where.LOSS: (
        "Look at the loss of this step for a division by zero or a logarithm of zero: a batch without a valid target, "
        "a mask whose sum is 0. Divide by at least 1, and leave such a batch out."
    ),
    Where.GRADIENT: (
        "Look at what {name} does with its parameter: an operator whose derivative is not finite at some value (sqrt "
        "or norm at 0, a division), a hook on the parameter."
    ),
    Where.UPDATE: (
        "Look at what the script does to gradients before optimizer.step: a division by their norm needs a small "
        "number added, as torch.nn.utils.clip_grad_norm_ does."
    ),
    Where.OPTIMIZER: (
        "Look at the learning rate of this step, at eps (with 0, zero is divided by zero where a gradient is 0) and "
        "at the weight decay; and at code that writes into parameters."
    ),
}


def _advice_on_code(start: Start) -> str:
    name = tell.code_of(start) or start.key.name
    if start.key.phase is Phase.BACKWARD:
        return nan_telling.backward_advice(name)
    if start.mask is not None:
        return say(
            "See whether {} masks a row completely: leave one entry of each row unmasked, or set such rows of the "
            "result to 0. If it does not, look in {} for 0/0.",
            telling.tensor(start.mask.key),
            name,
        )
    if not start.nan:
        return say("Look in {} for a division by zero or the logarithm of zero. {}", name, tell.look_advice(start))
    return nan_telling.forward_advice(name, tell.look_advice(start))
