"""What several rules say alike: places, numbers, and the code that a difference is laid on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from align import metrics, sketch, wording
from align.ahead import look_ahead
from align.comparison import Walk
from align.nonfinite import SCALED_PHASES
from align.pairing import Pair
from align.records import (
    Aspect,
    Comparison,
    Fact,
    Kind,
    ModuleInfo,
    Origin,
    Phase,
    Place,
    Status,
    TensorKey,
    TimelineRow,
)
from align.sentences import capital, joined, say
from align.units import SCRIPT
from align.walk import Suspect

SIMPLE_RESIDUAL = 0.05
"""A scale factor is told where it leaves less than this of the candidate unexplained, and less than a tenth of the
difference."""

SAME_SUM = 1e-6
"""The sums of the same numbers in another order of summation."""

SMALLEST_REORDERING = 0.01
"""Rounding leaves the extremes and the sums as they are, too; values in another order differ by more."""

RANDOM_CLASSES = ("Dropout", "DropPath", "DropBlock", "StochasticDepth")

STATISTICS_ADVICE = (
    "Capture both runs with `align capture --detail sketch` (the default) and compare again: sketches see signs and "
    "order, and tell where a difference enters."
)


class Words(NamedTuple):
    """What a finding says: a sentence, and what to do about it."""

    summary: str
    advice: str


def dropout_inside(module: ModuleInfo | None) -> float:
    """The largest rate at which a module that is no dropout itself drops elements (attention, LSTM), 0 of others."""
    if module is None or is_dropout(module):
        return 0.0
    rates = [
        value
        for name, value in module.config.items()
        if "drop" in name.rpartition(".")[2].lower() and isinstance(value, float) and 0.0 < value < 1.0
    ]
    return max(rates, default=0.0)


def place_of(key: TensorKey, name: str | None = None) -> Place:
    """The place of a record, or of other code at the same point, which has no slot and no call of that record."""
    if name is None or name == key.name:
        return Place(key.step, str(key.phase), key.name, key.slot, key.micro, key.call)
    return Place(key.step, str(key.phase), name, None, key.micro)


def point(key: TensorKey) -> str:
    """`step 3, micro 1, backward`; before step 0 without a phase."""
    where = wording.step(key.step, key.micro)
    return where if key.phase is Phase.INIT else say("{0}, {1}", where, key.phase)


def opening(key: TensorKey) -> str:
    """The point as the begin of a sentence."""
    return capital(point(key))


def tensor(key: TensorKey) -> str:
    """`layers.2.mlp output.0`, with the call where it is not the first."""
    return say("{} {}, call {}", key.name, key.slot, key.call) if key.call else say("{} {}", key.name, key.slot)


def code_name(owner: str) -> str:
    """The code of a module, or of the training script."""
    return "the training script" if owner == SCRIPT else owner


def users_of(walk: Walk, suspect: Suspect) -> tuple[str, ...]:
    """The owner of a gradient between modules, and the others whose code can use the output that it is the gradient of.

    A gradient is the sum of what all of them send, so that one alone cannot be told.
    """
    key = suspect.comparison.key
    if suspect.origin is Origin.FUNCTIONAL and key.phase is Phase.BACKWARD and key.slot.startswith("grad_output"):
        pairs = [Pair(each.reference, each.candidate) for each in walk.comparisons if each.key.step == key.step]
        found = look_ahead(pairs).users(suspect.comparison.reference)
        if suspect.owner in found:
            return found
    return (suspect.owner,)


def code_of(suspect: Suspect, users: Sequence[str] = ()) -> str:
    """The code that a difference is laid on: `the code of layers.2.attn between q_proj and softmax`.

    `users` are those of `users_of`; all are named where there are several.
    """
    key = suspect.comparison.key
    if len(users) > 1:
        parts = [_backward_code(user) for user in users]
        which = say("both" if len(parts) == 2 else "all")  # noqa: PLR2004 - two are both
        return say("{} or of {}, which {} can use it", joined(", of ", parts[:-1]), parts[-1], which)
    if key.phase is Phase.BACKWARD:
        return _backward_code(suspect.owner)
    owner = "the training script" if suspect.owner == SCRIPT else say("the code of {}", suspect.owner)
    if key.phase is not Phase.FORWARD or suspect.argument or not suspect.sibling:
        return owner
    if key.slot.startswith("output"):
        return say("{} after {}", owner, suspect.sibling)
    if suspect.owner == SCRIPT:
        return owner
    return say("{} between {} and {}", owner, suspect.sibling, key.name)


def _backward_code(owner: str) -> str:
    return "the training script (loss)" if owner == SCRIPT else say("the code of {}", owner)


def is_module(suspect: Suspect) -> bool:
    """Whether the module that the record names made it, and not code around it."""
    return suspect.origin is Origin.MODULE


def is_dropout(module: ModuleInfo | None) -> bool:
    """Whether a module drops elements or whole branches at random, by the name of its class."""
    return module is not None and any(word in module.class_name for word in RANDOM_CLASSES)


def maker(suspect: Suspect, users: Sequence[str] = ()) -> str:
    """What made a tensor that its own module did not make; `users` are those of `users_of`."""
    key = suspect.comparison.key
    if suspect.origin is Origin.UNKNOWN:
        return "code that was not captured"
    if key.phase is Phase.UPDATE:
        return "the code between backward and the optimizer"
    if key.phase is Phase.PARAM:
        return "the update of the optimizer"
    if key.phase is Phase.BACKWARD:
        return say("the backward of {}", code_of(suspect, users))
    return code_of(suspect)


def blamed(suspect: Suspect) -> str:
    """The name that a finding points to: the parent or script (empty) whose code is the cause, else the record's."""
    return suspect.owner if suspect.origin is Origin.FUNCTIONAL else suspect.comparison.key.name


def parts_in_update(walk: Walk, step: int) -> bool:
    """Whether the runs part in the parameters after this step."""
    first = walk.first
    return (
        first is not None
        and (first.kind, first.origin) == (Kind.EQUALITY, Origin.OPTIMIZER)
        and first.comparison.key.step == step
    )


def parts_by(walk: Walk, name: str) -> bool:
    """Whether the runs part by what the timelines tell, and first by this, the loss or the optimizer's rate."""
    return walk.first is None and walk.divergence is not None and walk.divergence.name == name


def first_name(walk: Walk) -> str:
    """The name of the first tensor that differs, empty where there is none."""
    return walk.first.comparison.key.name if walk.first is not None else ""


def statistics_summary(first: Suspect) -> str:
    """The first difference of a comparison that saw statistics only: a fact, and nothing of its cause."""
    comparison = first.comparison
    return say(
        "{}: {} is the first tensor whose statistics differ: relative L2 at least {}{}. Statistics do not see signs "
        "or order, so the difference may have entered earlier: no module is blamed.",
        opening(comparison.key),
        tensor(comparison.key),
        wording.relative(comparison.relative_l2),
        comma_relation(comparison, first.scale),
    )


def amount(comparison: Comparison) -> str:
    """`relative L2 0.031, 147,000x the floor`, or which part of it stands out from rounding."""
    size, times = wording.relative(comparison.relative_l2), wording.times(comparison.times_floor)
    if comparison.aspect is Aspect.SIZE or comparison.part is None:
        return say("relative L2 {}, {} the floor", size, times)
    part = _part(comparison.aspect, comparison.part)
    return say("relative L2 {}, of it {}, {} the floor", size, part, times)


def _part(aspect: Aspect, part: float) -> str:
    """The part of a difference that has a structure."""
    if aspect is Aspect.SCALE:
        return say("a common factor of {}", wording.factor(1.0 + part))
    if aspect is Aspect.SHIFT:
        return say("a constant that is added everywhere ({} of its root mean square)", wording.relative(part))
    if aspect is Aspect.CHANNEL:
        return say("{} in one channel", wording.relative(part))
    return say("{} in a few elements", wording.relative(part))


def evidence_of(comparison: Comparison) -> dict[str, Any]:
    """The numbers of a comparison that a reader may want to check."""
    ours, theirs = comparison.reference, comparison.candidate
    return {
        "relative_l2": comparison.relative_l2,
        "floor": comparison.floor or None,
        "times_floor": comparison.times_floor,
        "limit": comparison.limit or None,
        "aspect": str(comparison.aspect),
        "part": comparison.part,
        "unit": comparison.unit or None,
        "reference_dtype": ours.dtype,
        "candidate_dtype": theirs.dtype,
        "reference_shape": list(ours.shape),
        "candidate_shape": list(theirs.shape),
        "reference_norm": ours.stats.norm if ours.stats is not None else None,
        "candidate_norm": theirs.stats.norm if theirs.stats is not None else None,
    }


def other_device(walk: Walk) -> str:
    """` on npu than on cuda`, for what gives another result there; empty where both run on one kind of device."""
    ours, theirs = walk.reference.device_type, walk.candidate.device_type
    return say(" on {} than on {}", theirs, ours) if ours != theirs else ""


def key_arguments(key: TensorKey) -> dict[str, Any]:
    """Which tensor sentences are about, as they are made from it."""
    return {
        "step": key.step,
        "micro": key.micro,
        "phase": str(key.phase),
        "name": key.name,
        "slot": key.slot,
        "call": key.call,
    }


def arguments_of(suspect: Suspect) -> dict[str, Any]:
    """What the sentences about a first difference are made from."""
    comparison = suspect.comparison
    return {
        **key_arguments(comparison.key),
        "owner": suspect.owner,
        "sibling": suspect.sibling,
        "argument": suspect.argument,
        "relative_l2": comparison.relative_l2,
        "times_floor": comparison.times_floor,
    }


def odd_argument(walk: Walk, first: Suspect) -> str:
    """An argument of the module of a first difference that has another shape in the candidate, else empty."""
    key = first.comparison.key
    return next(
        (
            pair.key.slot
            for pair in walk.shape_differences
            if (pair.key.phase, pair.key.name) == (Phase.FORWARD, key.name) and pair.key.slot.startswith("input")
        ),
        "",
    )


def given_in_one_run(walk: Walk, first: Suspect) -> dict[str, str]:
    """The arguments that the call of a first difference was given in one run only, with the side that gave them."""
    here, there = first.comparison.reference.key, first.comparison.candidate.key
    return {
        key.slot: side
        for side, keys, call in (("reference", walk.only_reference, here), ("candidate", walk.only_candidate, there))
        for key in keys
        if key.slot.startswith("input")
        and (key.step, key.phase, key.name, key.micro, key.call)
        == (call.step, Phase.FORWARD, call.name, call.micro, call.call)
    }


def own_in_one_run(walk: Walk, name: str) -> dict[str, str]:
    """The initial tensors of a module that one run has alone (`head.weight`), with its side."""
    return {
        tensor: side
        for side, records, module in (
            ("reference", walk.weights.missing, name),
            ("candidate", walk.weights.extra, walk.names.of(name)),
        )
        for tensor, record in records.items()
        if record.key.name == module
    }


def scale_between(comparison: Comparison, scale: float = 1.0) -> float | None:
    """The factor k where the candidate is k times the reference, None where that does not explain it.

    `scale` undoes the loss scales.
    """
    pair = Pair(comparison.reference, comparison.candidate)
    left, right = sketch.sketch_of(pair.reference), sketch.sketch_of(pair.candidate)
    if left is None or right is None or not pair.same_shape:
        return None
    if comparison.reference.numel == 1 and comparison.key.phase is not Phase.LOSS:
        return None
    found = sketch.scale_factor(left, right)
    error = comparison.relative_l2
    if found is None or error is None or found.residual > min(SIMPLE_RESIDUAL, error / 10):
        return None
    return found.factor * scale


def reordered(pair: Pair) -> bool:
    """Whether both tensors hold the same values in another order, as far as their statistics tell."""
    ours, theirs = pair.reference.stats, pair.candidate.stats
    if ours is None or theirs is None or ours.minimum == ours.maximum:
        return False
    if (ours.minimum, ours.maximum, ours.zeros) != (theirs.minimum, theirs.maximum, theirs.zeros):
        return False
    error = metrics.relative_l2(pair)
    if error is None or error < SMALLEST_REORDERING:
        return False
    sums = abs(theirs.total - ours.total) <= SAME_SUM * math.sqrt(ours.count * ours.total_squares)
    return sums and abs(theirs.total_squares - ours.total_squares) <= SAME_SUM * ours.total_squares


def relation(comparison: Comparison, scale: float = 1.0) -> str:
    """What the candidate is to the reference where that is simple, else nothing."""
    ours, theirs = comparison.reference.stats, comparison.candidate.stats
    if ours is None or theirs is None or comparison.reference.numel == 0:
        return ""
    if theirs.zeros == theirs.count and ours.zeros < ours.count:
        return "all zeros in the candidate"
    if ours.zeros == ours.count and theirs.zeros < theirs.count:
        return "all zeros in the reference"
    if reordered(Pair(comparison.reference, comparison.candidate)):
        return "the values of the reference in another order"
    factor = scale_between(comparison, scale)
    return "" if factor is None else say("{} times the reference", wording.factor(factor))


def comma_relation(comparison: Comparison, scale: float = 1.0) -> str:
    """The same behind a comma, as it goes on a sentence."""
    told = relation(comparison, scale)
    return say(", {}", told) if told else ""


def carried_on(comparisons: tuple[Comparison, ...], first: Comparison) -> int:
    """How many tensors after the first only carry the difference on."""
    return sum(
        comparison is not first and comparison.status in {Status.PROPAGATED, Status.NONFINITE}
        for comparison in comparisons
    )


def loss_scales(walk: Walk, key: TensorKey) -> tuple[float, float] | None:
    """What the losses of both runs were multiplied by, where that differs and the tensor is made with it."""
    if key.phase not in SCALED_PHASES:
        return None
    ours, theirs = (
        _loss_scale(key.step, timeline, facts.get(key.step, ()))
        for timeline, facts in (
            (walk.reference_timeline, walk.reference_facts),
            (walk.candidate_timeline, walk.candidate_facts),
        )
    )
    return (ours, theirs) if ours != theirs else None


def _loss_scale(step: int, timeline: Sequence[TimelineRow], facts: Iterable[Fact]) -> float:
    """The loss scale of a step, 1 where nothing scaled the loss; a file that broke off has it among the facts only."""
    known = [row.loss_scale for row in timeline if row.step == step]
    known += [
        float(fact.value)
        for fact in facts
        if fact.key.phase is Phase.SCALER and fact.key.slot == "scale" and isinstance(fact.value, int | float)
    ]
    return next((scale for scale in known if math.isfinite(scale) and scale > 0.0), 1.0)


def tell_loss_scales(scales: tuple[float, float] | None) -> str:
    """A sentence with both loss scales, after a blank; empty where they are alike."""
    if scales is None:
        return ""
    ours, theirs = (wording.loss_scale(scale) if scale != 1.0 else "1 (none)" for scale in scales)
    return say(" The loss scale is {} in the reference and {} in the candidate.", ours, theirs)


def same_start_advice(walk: Walk) -> str:
    """How both runs get the same weights and batches, and no masks; empty where all of that was done."""
    kept = [what for what in ("init", "batches") if not was_taken(walk, f"{what}_from")]
    off = all(run.same_start.get("no_dropout") for run in (walk.reference, walk.candidate))
    taking = " ".join(f"--{what}-from REF.h5" for what in kept)
    ways = []
    if kept:
        ways += [
            say("the reference with `align capture --keep {}`", ",".join(kept)),
            say("the candidate with `align capture {}`", taking),
        ]
    if not off:
        ways.append("both with `--no-dropout`" if kept else "both with `align capture --no-dropout`")
    if not ways:
        return ""
    listed = say("{}, and {}", joined(", ", ways[:-1]), ways[-1]) if len(ways) == 3 else wording.listing(ways)  # noqa: PLR2004
    return say("To compare the scripts as they are, capture {}.", listed)


def was_taken(walk: Walk, name: str) -> bool:
    """Whether a run was told to take its weights (`init_from`) or its batches (`batches_from`) from a capture."""
    return any(run.same_start.get(name) for run in (walk.reference, walk.candidate))


def capture_advice(name: str) -> str:
    """How to see the values of one module."""
    return say(
        "To see its values, run `align capture --detail tensors --modules '{}'` on both sides, then `align show "
        "RUN.h5 '{}'`.",
        name,
        name,
    )
