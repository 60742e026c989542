"""AL204: two dropout modules drew different masks."""

from __future__ import annotations

import math
from collections.abc import Iterator

from align import wording
from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.pair.forward import forward_cause
from align.diagnosis.registry import rule
from align.dropped import of_one_rate, zero_share
from align.records import Finding, Kind, Origin, Phase, Severity
from align.sentences import say
from align.walk import Suspect

CODE = "AL204"
LABEL = "dropout-mask-differs"

SMALLEST_SHARE = 0.05
"""Masks of rate p change what they are applied to by sqrt(2 p / (1 - p)); attention and residuals inside a module leave
less of it (measured: 0.9 to 1.1 of it in attention, 0.4 in a recurrent cell of two layers)."""


@rule(CODE, LABEL, rank=35)
def find(walk: Walk) -> Iterator[Finding]:
    """The first difference, where it is the output of a dropout module with as many zeros on both sides.

    Also that of a module that drops elements inside, where both runs draw from generators of other devices.
    """
    shares = zero_shares(walk)
    rate = rate_inside(walk)
    if walk.first is not None and rate and _other_devices(walk):
        yield _inside(walk.first, rate)
    if walk.first is None or shares is None:
        return
    key = walk.first.comparison.key
    yield Finding(
        CODE,
        LABEL,
        Severity.ERROR,
        say(
            "{}: {} drops other elements in each run ({} and {} are zero), so all that follows differs. No module "
            "is to blame.",
            telling.opening(key),
            key.name,
            wording.percent(shares[0]),
            wording.percent(shares[1]),
        ),
        "Capture both runs with `align capture --no-dropout`, or set the dropout rate to 0: two kinds of device never "
        "draw the same mask.",
        telling.place_of(key),
        {"reference_zero_share": shares[0], "candidate_zero_share": shares[1]},
        {**telling.arguments_of(walk.first), "zero_shares": list(shares)},
    )


def _inside(first: Suspect, rate: float) -> Finding:
    key = first.comparison.key
    return Finding(
        CODE,
        LABEL,
        Severity.ERROR,
        say(
            "{}: {} is the first tensor that differs ({}). {} drops elements inside at a rate of {}, and two kinds "
            "of device never draw the same mask: whether anything else in it differs cannot be told before dropout "
            "is off.",
            telling.opening(key),
            telling.tensor(key),
            telling.amount(first.comparison),
            key.name,
            f"{rate:g}",
        ),
        "Capture both runs with `align capture --no-dropout`, or set the dropout rate to 0.",
        telling.place_of(key),
        telling.evidence_of(first.comparison) | {"rate": rate},
        {**telling.arguments_of(first), "rate": rate},
    )


def _other_devices(walk: Walk) -> bool:
    ours, theirs = walk.reference, walk.candidate
    return (ours.device_type, ours.simulated) != (theirs.device_type, theirs.simulated)


def rate_inside(walk: Walk) -> float:
    """The rate at which the module of the first difference drops elements inside, 0 where masks are not the cause.

    Both runs have it in training mode at one rate, and the output differs at least by SMALLEST_SHARE of what masks of
    that rate change in what they are applied to.
    """
    first = walk.first
    if first is None or first.statistics_only or (first.kind, first.origin) != (Kind.VALUE, Origin.MODULE):
        return 0.0
    key = first.comparison.key
    ours, theirs = forward_cause.modules_of(walk, key.name)
    rate = telling.dropout_inside(ours)
    off = any(run.same_start.get("no_dropout") for run in (walk.reference, walk.candidate))
    is_output = key.phase is Phase.FORWARD and key.slot.startswith("output")
    if not is_output or off or rate != telling.dropout_inside(theirs):
        return 0.0
    changed = math.sqrt(2.0 * rate / (1.0 - rate))
    large = (first.comparison.relative_l2 or 0.0) >= SMALLEST_SHARE * changed
    return rate if large and forward_cause.modes_of(walk, first) == (True, True) else 0.0


def draws_between(walk: Walk) -> bool:
    """Whether code between modules made the first difference, in a class whose forward may draw random numbers.

    Noise that is drawn otherwise is no rounding: it differs by SMALLEST_SHARE at least.
    """
    first = walk.first
    if first is None or first.statistics_only or (first.kind, first.origin) != (Kind.VALUE, Origin.FUNCTIONAL):
        return False
    module = walk.modules.get(first.owner)
    if module is None or first.argument or first.comparison.key.phase is not Phase.FORWARD:
        return False
    may_draw = walk.reference.classes.get(module.class_name, {}).get("random", False)
    return bool(may_draw) and (first.comparison.relative_l2 or 0.0) >= SMALLEST_SHARE


def zero_shares(walk: Walk) -> tuple[float, float] | None:
    """The shares of zeros that a dropout module makes in both runs, where other masks are the first difference."""
    first = walk.first
    if first is None or not _is_dropout_output(walk, first):
        return None
    comparison = first.comparison
    shares = (zero_share(comparison.reference), zero_share(comparison.candidate))
    return shares if of_one_rate(shares, comparison.reference.numel) else None


def _is_dropout_output(walk: Walk, first: Suspect) -> bool:
    key = first.comparison.key
    return (
        first.kind is Kind.VALUE
        and not first.statistics_only
        and key.slot.startswith("output")
        and telling.is_dropout(walk.modules.get(key.name))
    )
