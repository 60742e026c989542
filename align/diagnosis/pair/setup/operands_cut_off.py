"""AL109: the matrix unit of one device cuts its operands off where the other rounds them."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from align import aspects, wording
from align.comparison import Walk
from align.diagnosis.registry import rule
from align.flow import is_output
from align.pairing import Pair
from align.records import Comparison, Finding, Phase, Place, Severity, Status
from align.sentences import say

CODE = "AL109"
LABEL = "operands-cut-off"

FEWEST = 4
"""Of so many products the usual one can be told from an odd one."""

SAME_SIGN = 0.8
LEAST = 0.3
"""Cutting off makes a product smaller by 0.75 to 1.5 unit roundoffs, rounding by less than 0.2."""


@rule(CODE, LABEL, rank=80)
def find(walk: Walk) -> Iterator[Finding]:
    """One common factor in most products of the first step, told once and laid on no module."""
    found = list(_factors(walk))
    if len(found) < FEWEST:
        return
    usual = statistics.median(factor for factor, _ in found)
    unit = statistics.median(unit for _, unit in found)
    alike = sum(factor * usual > 0.0 for factor, _ in found)
    if abs(usual) < LEAST * unit or alike < SAME_SIGN * len(found):
        return
    side = "candidate" if usual < 0.0 else "reference"
    yield Finding(
        CODE,
        LABEL,
        Severity.NOTE,
        say(
            "Matrix products of the {} are too small by {} throughout (in {} of {} modules): its device cuts "
            "operands off where the other rounds them. No module is at fault.",
            side,
            wording.percent(abs(usual)),
            alike,
            len(found),
        ),
        "Nothing to do. Where it matters, compute in full float32: TF32 and HF32 off.",
        Place(),
        {"factor": 1.0 + usual, "modules": len(found), "alike": alike, "unit": unit},
        {"side": side, "share": abs(usual), "modules": len(found), "alike": alike},
    )


def _factors(walk: Walk) -> Iterator[tuple[float, float]]:
    """How much each product of the first step is larger than its input explains, with its unit roundoff."""
    inputs: dict[tuple[int, str, int], float] = {}
    for comparison in walk.results[0].comparisons if walk.results else ():
        key = comparison.key
        if key.phase is not Phase.FORWARD or comparison.status not in {Status.EQUAL, Status.WITHIN}:
            continue
        call = (key.micro, key.name, key.call)
        module = walk.modules.get(key.name)
        if module is None or not module.leaf or not (module.matmul or module.conv):
            continue
        factor = _factor(comparison)
        if not is_output(comparison.reference):
            inputs.setdefault(call, factor)
        elif call in inputs and walk.precisions.of(key.name) in aspects.CUT_OFF:
            yield factor - inputs[call], comparison.unit


def _factor(comparison: Comparison) -> float:
    size = comparison.relative_l2
    found = aspects.structure(Pair(comparison.reference, comparison.candidate), size) if size else None
    return found.scale if found is not None else 0.0
