"""AL502: all gradients are one number times the reference's."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.pair.backward.backward_cause import BackwardKind, cause_of, moved_scale, rows_of
from align.diagnosis.registry import rule
from align.diagnosis.scale_telling import DIVIDE_FIRST
from align.gradient_factors import GradientFactor, clipping, is_clipping
from align.records import Finding, Phase, Severity, TimelineRow
from align.sentences import joined, say
from align.walk import Suspect

CODE = "AL502"
LABEL = "gradient-scaled"

SCALE = "loss scale"


@rule(CODE, LABEL, rank=48)
def find(walk: Walk) -> Iterator[Finding]:
    """The first difference, where it is a gradient and all gradients of its phase have one factor."""
    first, cause = walk.first, cause_of(walk)
    if first is None or cause is None or cause.kind is not BackwardKind.SCALED or cause.common is None:
        return
    common, key = cause.common, first.comparison.key
    why, advice = _why(walk, first, common)
    yield Finding(
        CODE,
        LABEL,
        Severity.ERROR,
        say(
            "{}: {} {} times those of the reference ({} of {}; first {}). {}{}",
            telling.opening(key),
            _what(first),
            wording.factor(common.factor.value),
            wording.count(len(common.names)),
            wording.plural(common.total, "parameter"),
            telling.tensor(key),
            _before(first),
            why,
        ),
        advice,
        telling.place_of(key),
        {
            **telling.evidence_of(first.comparison),
            "factor": common.factor.raw,
            "snapped": common.factor.snapped,
            "meanings": list(common.factor.meanings),
            "parameters": len(common.names),
            "related": common.total,
            "spread": common.spread,
        },
        {**telling.arguments_of(first), "factor": common.factor.value, "meanings": list(common.factor.meanings)},
    )


def _what(first: Suspect) -> str:
    taken = " that the optimizer takes" if first.comparison.key.phase is Phase.UPDATE else ""
    return say("the gradients{} are", taken)


def _before(first: Suspect) -> str:
    phase = first.comparison.key.phase
    if phase is Phase.UPDATE:
        return "Those after backward agree."
    return "The loss agrees." if phase is Phase.BACKWARD else "The gradients of activations agree."


def _why(walk: Walk, first: Suspect, common: GradientFactor) -> tuple[str, str]:
    """What the number is, in a sentence begun with a blank, and what to do."""
    key = first.comparison.key
    factor = common.factor.value
    if key.phase is Phase.UPDATE:
        moved = moved_scale(walk, key.step, factor)
        if moved is not None:
            return _moved(walk, key.step, *moved)
        if is_clipping(common.factor.raw, *rows_of(walk, key.step)):
            return _clipped(rows_of(walk, key.step))
    meanings = common.factor.meanings
    if any(meaning.endswith(SCALE) for meaning in meanings):
        why = say(" That is {}the loss scale: one run does not undo it.", "1/" if factor < 1.0 else "")
        return why, (
            "Divide the gradients by the scale that their loss was multiplied by, once, before they are clipped and "
            "the optimizer takes them."
        )
    told = say(" That may be {}.", joined(" or ", map(say, meanings))) if meanings else ""
    return told, (
        "Compare how both scripts average gradients: division by accumulation steps and by the world size, a sum "
        "against a mean over ranks, clipping, hooks on parameters."
    )


def _moved(walk: Walk, step: int, side: str, scales: tuple[float, float]) -> tuple[str, str]:
    earlier = [other for other in walk.steps if other < step]
    before = (
        say(
            " In {}, where the scale stays, {}.",
            wording.steps(earlier),
            "it agrees" if len(earlier) == 1 else "they agree",
        )
        if earlier
        else ""
    )
    why = say(
        " The loss scale is {} in step {} and {} in the next: the {} divides by that of the next.{}",
        wording.loss_scale(scales[0]),
        step,
        wording.loss_scale(scales[1]),
        side,
        before,
    )
    return why, DIVIDE_FIRST


def _clipped(rows: tuple[TimelineRow | None, TimelineRow | None]) -> tuple[str, str]:
    told = [
        say("from {} to {}", wording.value(row.clip_norm), wording.value(row.clip_limit))
        if row is not None and clipping(row) < 1.0
        else "not at all"
        for row in rows
    ]
    return (
        say(" Clipping makes it: the norm is clipped {} in the reference, {} in the candidate.", told[0], told[1]),
        "Clip the gradients alike in both runs: the same limit, at the same place, of the same parameters.",
    )
