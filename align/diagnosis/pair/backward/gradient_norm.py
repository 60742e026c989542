"""AL507: both runs clip the same gradients to the same limit, but by another norm."""

from __future__ import annotations

import math
from collections.abc import Iterator

from align import wording
from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.pair.backward.backward_cause import BackwardKind, cause_of, rows_of
from align.diagnosis.registry import rule
from align.gradient_factors import clipping, is_clipping
from align.records import Finding, Phase, Severity, TensorRecord, TimelineRow
from align.sentences import say

CODE = "AL507"
LABEL = "gradient-norm-differs"

SAME_NORM = 1e-3
"""The norms of the gradients before clipping, as they follow from what the optimizers take, are one."""

APART = 0.01


@rule(CODE, LABEL, rank=45)
def find(walk: Walk) -> Iterator[Finding]:
    """The first difference, where it is what the optimizer takes, and the norms found in clipping alone explain it."""
    first, cause = walk.first, cause_of(walk)
    if first is None or cause is None or cause.kind is not BackwardKind.SCALED or cause.common is None:
        return
    key = first.comparison.key
    rows = [row for row in rows_of(walk, key.step) if row is not None]
    if key.phase is not Phase.UPDATE or len(rows) < 2 or not is_clipping(cause.common.factor.raw, *rows):  # noqa: PLR2004
        return
    reported = [row.clip_norm for row in rows]
    updates = [each for each in walk.comparisons if (each.key.step, each.key.phase) == (key.step, Phase.UPDATE)]
    norms = [
        _norm_before([each.reference for each in updates], rows[0]),
        _norm_before([each.candidate for each in updates], rows[1]),
    ]
    if rows[0].clip_limit != rows[1].clip_limit or not math.isclose(*norms, rel_tol=SAME_NORM):
        return
    if math.isclose(*reported, rel_tol=APART):
        return
    near = [math.isclose(norm, found, rel_tol=SAME_NORM) for norm, found in zip(norms, reported, strict=True)]
    yield Finding(
        CODE,
        LABEL,
        Severity.ERROR,
        say(
            "{}: the gradients before clipping agree, but the norm that they are clipped by is {} in the reference "
            "and {} in the candidate (limit {}). {}All gradients that the optimizer takes are {} times the "
            "reference's.",
            telling.opening(key),
            wording.value(reported[0]),
            wording.value(reported[1]),
            wording.value(rows[0].clip_limit),
            _own(near, norms[0]),
            wording.factor(cause.common.factor.value),
        ),
        "Compare how the norm is made: over which parameters, and with several ranks which of them count once "
        "(parameters that every rank holds) or once a rank (parts of a split weight). `align inspect RUN.h5` checks "
        "the norm of a run with the files of all its ranks.",
        telling.place_of(key),
        {**telling.evidence_of(first.comparison), "reported_norm": reported, "norm": norms[0]},
        {**telling.arguments_of(first), "reported": reported, "norm": norms[0]},
    )


def _norm_before(records: list[TensorRecord], row: TimelineRow) -> float:
    """The norm of the gradients before they were clipped, from what is left of them."""
    return math.sqrt(sum(record.stats.total_squares for record in records if record.stats)) / clipping(row)


def _own(near: list[bool], norm: float) -> str:
    """Which of the norms is that of the gradients of this rank, where one is."""
    if near[0] == near[1]:
        return ""
    side = "reference" if near[0] else "candidate"
    return say("That of the gradients that were seen is {}, as the {} says. ", wording.value(norm), side)
