"""AL602: the first Inf where a number outgrew its format."""

from __future__ import annotations

from collections.abc import Iterator

from align import nonfinite, wording
from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.pair.scale.overflow_saturated import saturated
from align.diagnosis.registry import rule
from align.pairing import Pair
from align.records import Finding, Kind, Phase, Severity
from align.sentences import capital, say
from align.tolerance import Precision
from align.walk import Suspect

CODE = "AL602"
LABEL = "overflow"

SHORT_FORMATS = frozenset({"fp16", "bf16", "fp8 e4m3", "fp8 e5m2"})


@rule(CODE, LABEL, rank=41)
def find(walk: Walk) -> Iterator[Finding]:
    """The first Inf on one side only, and the overflows that a loss scaler explains."""
    suspects = nonfinite_suspects(walk)
    if saturated(walk) is None and suspects and suspects[0].nonfinite is not None and is_overflow(walk, suspects[0]):
        yield _overflow(walk, suspects[0])
    explained = [suspect for result in walk.results for suspect in result.explained]
    if explained:
        yield _explained(explained)


def nonfinite_suspects(walk: Walk) -> list[Suspect]:
    """The records where something non-finite starts on one side, in execution order."""
    return [suspect for result in walk.results for suspect in result.suspects if suspect.kind is Kind.NONFINITE]


def is_overflow(walk: Walk, suspect: Suspect) -> bool:
    """Whether there is Inf and no NaN, in a short format or beside numbers at the limit of the format."""
    side = suspect.nonfinite
    if side is None or side.nan:
        return False
    comparison = suspect.comparison
    other = comparison.reference if side.candidate else comparison.candidate
    precision = _precision(walk, suspect)
    return precision.name in SHORT_FORMATS or nonfinite.near_limit(other, precision)


def _precision(walk: Walk, suspect: Suspect) -> Precision:
    pair = Pair(suspect.comparison.reference, suspect.comparison.candidate)
    return walk.precisions.of_record(suspect.owner, pair)


def _overflow(walk: Walk, suspect: Suspect) -> Finding:
    comparison = suspect.comparison
    key = comparison.key
    candidate = suspect.nonfinite is not None and suspect.nonfinite.candidate
    side = "candidate" if candidate else "reference"
    record, other = (
        (comparison.candidate, comparison.reference) if candidate else (comparison.reference, comparison.candidate)
    )
    largest = other.stats.absolute_maximum if other.stats is not None else 0.0
    precision = _precision(walk, suspect)
    carried = telling.carried_on(walk.comparisons, comparison)
    infinite = record.stats.nonfinite if record.stats is not None else 0
    scales = telling.loss_scales(walk, key)
    beyond = say(
        "{} beyond {}, the greatest {} number",
        wording.plural(infinite, "element"),
        wording.value(precision.largest),
        precision.name,
    )
    if key.phase is Phase.PARAM:
        # An update divides, too: how large it was before nobody knows.
        beyond = wording.plural(infinite, "element")
    return Finding(
        CODE,
        LABEL,
        Severity.ERROR if suspect is walk.first else Severity.WARNING,
        say(
            "{}: {} is the first tensor with Inf, in the {}: {}; the other run reaches {}.{}{}",
            telling.opening(key),
            telling.tensor(key),
            side,
            beyond,
            wording.value(largest),
            _made(suspect),
            telling.tell_loss_scales(scales),
        ),
        _advice(suspect, scales),
        telling.place_of(key, telling.blamed(suspect)),
        {
            "side": side,
            "infinite": infinite,
            "largest_of_other": largest,
            "limit": precision.largest,
            "carried_on": carried,
            "loss_scales": None if scales is None else list(scales),
        },
        {
            **telling.arguments_of(suspect),
            "side": side,
            "precision": precision.name,
            "loss_scales": None if scales is None else list(scales),
        },
    )


def _advice(suspect: Suspect, scales: tuple[float, float] | None) -> str:
    if scales is not None:
        return (
            "Start both runs from one loss scale, and let both change it or neither: one that is found by trying "
            "overflows in its first steps and skips them, one that stays does not."
        )
    if suspect.comparison.key.phase is Phase.PARAM:
        return say(
            "Compare the settings of both optimizers. In fp16 an eps below 6e-8 is 0, and a division by it gives Inf: "
            "keep parameters and optimizer states in fp32."
        )
    return say(
        "Compare the scale of what enters {} in both runs; run it in bf16 or fp32, whose range is wider.",
        _where(suspect),
    )


def _made(suspect: Suspect) -> str:
    """What made the tensor, where its own module did not."""
    if telling.is_module(suspect) or suspect.comparison.key.phase is Phase.LOSS:
        return ""
    made = telling.maker(suspect)
    return say(" {} made it.", capital(made))


def _where(suspect: Suspect) -> str:
    return suspect.comparison.key.name if telling.is_module(suspect) else telling.maker(suspect)


def _explained(suspects: list[Suspect]) -> Finding:
    first = suspects[0].comparison.key
    steps = [suspect.comparison.key.step for suspect in suspects]
    return Finding(
        CODE,
        LABEL,
        Severity.NOTE,
        say(
            "In {} scaled gradients overflow on one side only, first in {}: the loss scaler is finding its scale, "
            "or the other run is within 5 % of the greatest number.",
            wording.steps(steps),
            telling.tensor(first),
        ),
        "Nothing to do while the loss scale settles within the first steps.",
        telling.place_of(first),
        {"steps": sorted(set(steps)), "tensors": len(suspects)},
        {"steps": sorted(set(steps)), "name": first.name, "slot": first.slot},
    )
