"""AL601: the first tensor with NaN, or with Inf that is no overflow, made from finite inputs."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.comparison import Walk
from align.diagnosis import nan_telling, telling
from align.diagnosis.pair.scale.overflow import is_overflow, nonfinite_suspects
from align.diagnosis.registry import rule
from align.nonfinite import NonfiniteSide
from align.records import Comparison, Finding, Origin, Phase, Severity
from align.sentences import say
from align.walk import Suspect

CODE = "AL601"
LABEL = "nan-origin"


@rule(CODE, LABEL, rank=40)
def find(walk: Walk) -> Iterator[Finding]:
    """The first NaN on one side only; an error where the runs part there, else a warning."""
    for suspect in nonfinite_suspects(walk):
        if suspect.nonfinite is None or is_overflow(walk, suspect):
            return
        comparison = suspect.comparison
        key = comparison.key
        carried = telling.carried_on(walk.comparisons, comparison)
        yield Finding(
            CODE,
            LABEL,
            Severity.ERROR if suspect is walk.first else Severity.WARNING,
            say(
                "{}{}",
                _summary(suspect, suspect.nonfinite, carried),
                telling.tell_loss_scales(telling.loss_scales(walk, key)),
            ),
            _advice(suspect),
            telling.place_of(key, telling.blamed(suspect)),
            {**nonfinite_counts(comparison), "carried_on": carried, "side": suspect.nonfinite.side},
            {**telling.arguments_of(suspect), "side": suspect.nonfinite.side, "kind": _kind(suspect.nonfinite)},
        )
        return


def nonfinite_counts(comparison: Comparison) -> dict[str, int]:
    """The counts of non-finite elements on both sides."""
    counts = {"elements": comparison.reference.numel}
    for side, record in (("reference", comparison.reference), ("candidate", comparison.candidate)):
        if record.stats is not None:
            counts[f"{side}_nan"] = record.stats.nans
            counts[f"{side}_inf"] = record.stats.positive_infs + record.stats.negative_infs
    return counts


def _kind(side: NonfiniteSide) -> str:
    if side.nan:
        return "NaN and Inf" if side.inf else "NaN"
    return "Inf"


def _summary(suspect: Suspect, side: NonfiniteSide, carried: int) -> str:
    key = suspect.comparison.key
    kind = _kind(side)
    later = say(" {} only {} it on.", wording.plural(carried, "later tensor"), "carries" if carried == 1 else "carry")
    later = later if carried else ""
    if suspect.origin is Origin.LOSS:
        return say(
            "Every module output of {} is finite; the loss is {} in the {}.{}",
            wording.step(key.step, key.micro),
            kind,
            side.side,
            later,
        )
    made = "" if telling.is_module(suspect) else say(": {} made it", telling.maker(suspect))
    return say(
        "{}: {} is the first tensor with {}, in the {}; what it is made from is finite{}.{}",
        telling.opening(key),
        telling.tensor(key),
        kind,
        side.side,
        made,
        later,
    )


def _advice(suspect: Suspect) -> str:
    key = suspect.comparison.key
    name = key.name if telling.is_module(suspect) else telling.maker(suspect)
    if key.phase is Phase.BACKWARD and suspect.origin is Origin.FUNCTIONAL:
        name = telling.code_of(suspect)
    if key.phase is Phase.LOSS:
        return (
            "Look at the loss of this step for a division by zero or a logarithm of zero: a batch without a valid "
            "target, a mask whose sum is 0."
        )
    if key.phase is Phase.UPDATE:
        return (
            "Compare what both scripts do to gradients between backward and optimizer.step: unscaling, clipping by "
            "their norm."
        )
    if key.phase in {Phase.BACKWARD, Phase.GRADIENT}:
        return nan_telling.backward_advice(name)
    return nan_telling.forward_advice(name, telling.capture_advice(key.name))
