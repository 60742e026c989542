"""AL604: gradients of one of two runs are too small for fp16 and become 0, while those of the other do not."""

from __future__ import annotations

import math
from collections.abc import Iterator

from align import wording
from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.registry import rule
from align.diagnosis.underflow_telling import advise_scale
from align.records import Finding, Severity
from align.sentences import joined, say
from align.underflow_gaps import UnderflowGap

CODE = "AL604"
LABEL = "gradient-underflow"

SIDES = ("reference", "candidate")
NAMED = 3


@rule(CODE, LABEL, rank=48)
def find(walk: Walk) -> Iterator[Finding]:
    """The first step in which one run loses gradients."""
    for gap in walk.underflow_gaps[:1]:
        key = gap.suspect.comparison.key
        side, other = SIDES[gap.by_candidate], SIDES[not gap.by_candidate]
        scale = gap.scales[gap.by_candidate]
        yield Finding(
            CODE,
            LABEL,
            Severity.ERROR if walk.first is gap.suspect else Severity.WARNING,
            _summary(gap, side, other),
            advise_scale(scale, math.nan, math.inf, lost=True),
            telling.place_of(key),
            {
                "side": side,
                "loss_scales": list(gap.scales),
                "lost": len(gap.lost),
                "parameters": gap.parameters,
                "starved_share": gap.starved,
                "zeros": list(gap.zeros),
                "error": gap.error,
            },
            {"step": key.step, "side": side, "name": key.name, "slot": key.slot, "lost": len(gap.lost)},
        )


def _summary(gap: UnderflowGap, side: str, other: str) -> str:
    key = gap.suspect.comparison.key
    ours, theirs = (gap.zeros[gap.by_candidate], gap.zeros[not gap.by_candidate])
    own, its = (gap.scales[gap.by_candidate], gap.scales[not gap.by_candidate])
    scale = "no loss scale" if own == 1.0 else say("a loss scale of {}", wording.loss_scale(own))
    its_scale = "none" if its == 1.0 else wording.loss_scale(its)
    text = say(
        "Step {}, backward: with {} (the {}: {}) the gradients of the {} are too small for fp16, first {} {}: {} of "
        "it are 0, in the {} {}.",
        key.step,
        scale,
        other,
        its_scale,
        side,
        key.name,
        key.slot,
        wording.percent(ours),
        other,
        wording.percent(theirs),
    )
    if gap.lost:
        names = wording.listing([joined(" ", owner) for owner in gap.lost[:NAMED]], len(gap.lost))
        return say(
            "{} The gradients of {} of {} are all 0 there only ({}).",
            text,
            wording.count(len(gap.lost)),
            wording.plural(gap.parameters, "parameter"),
            names,
        )
    return say(
        "{} {} of the parameters get gradients that are made of such numbers.", text, wording.percent(gap.starved)
    )
