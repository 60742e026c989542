"""AL704 in one run: some norm weights and biases are decayed, others are not."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.diagnosis.registry import run_rule
from align.hyperparameters import group_of
from align.inspection import Inspection
from align.optimizer_replay import groups_of
from align.records import Finding, Owner, Phase, Place, Severity
from align.sentences import joined, say

CODE = "AL704"
LABEL = "weight-decay-groups"

NAMED = 3


@run_rule(CODE, LABEL, rank=60)
def find(inspection: Inspection) -> Iterator[Finding]:
    """Parameters of one dimension (biases, gains of norms) that are decayed, where the script spares others of them.

    One decay for all parameters is a choice that many make; only a filter that lets some through is told.
    """
    if inspection.learning.turns:
        return
    decays = _decays(inspection)
    decayed = [owner for owner, decay in decays.items() if decay]
    spared = len(decays) - len(decayed)
    if not spared:
        return
    if not decayed:
        return
    first = decayed[0]
    named = wording.listing([joined(" ", owner) for owner in decayed[:NAMED]], len(decayed))
    yield Finding(
        CODE,
        LABEL,
        Severity.NOTE,
        say(
            "{} of {} of one dimension {} decayed ({}) while {} {} not: {}.",
            wording.count(len(decayed)),
            wording.plural(len(decays), "parameter"),
            _are(len(decayed)),
            f"{decays[first]:.6g}",
            wording.count(spared),
            _are(spared),
            named,
        ),
        "See whether the filter that makes the parameter groups misses them: it may go by a name or a class that they "
        "do not have, as RMSNorm is no LayerNorm.",
        Place(step=inspection.learning.steps[0], phase="optimizer", name=first[0], slot=first[1]),
        {"decayed": [joined(" ", owner) for owner in decayed], "spared": spared, "weight_decay": decays[first]},
        {"name": first[0], "slot": first[1], "weight_decay": decays[first], "parameters": len(decayed)},
    )


def _decays(inspection: Inspection) -> dict[Owner, float]:
    """The weight decay of each parameter of one dimension, in the first captured step that tells."""
    for number in inspection.learning.steps:
        step = inspection.view.step(number)
        groups = groups_of(step.facts)
        owners = [record.key.owner for record in step.by_phase[Phase.PARAM] if len(record.shape) == 1]
        found = {owner: group.get("weight_decay") for owner in owners if (group := group_of(owner, groups)) is not None}
        known = {owner: float(decay) for owner, decay in found.items() if isinstance(decay, (int, float))}
        if known:
            return known
    return {}


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
