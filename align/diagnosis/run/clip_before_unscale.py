"""AL609: gradients of one run are clipped while they still carry the loss scale."""

from __future__ import annotations

from collections.abc import Iterator

from align.diagnosis import scale_telling
from align.diagnosis.registry import run_rule
from align.inspection import Inspection
from align.records import Finding, Phase, Place, Severity
from align.sentences import say

CODE = "AL609"
LABEL = "clip-before-unscale"


@run_rule(CODE, LABEL, rank=48)
def find(inspection: Inspection) -> Iterator[Finding]:
    """The first captured step in which scaled gradients are clipped to a limit that was not scaled."""
    wrong = [clip for clip in inspection.scaling.clips if not clip.meant]
    if not wrong:
        return
    clip = wrong[0]
    taken = inspection.view.step(clip.step).by_phase[Phase.UPDATE]
    name, slot = taken[0].key.owner if taken else ("clip", "norm")
    yield Finding(
        CODE,
        LABEL,
        Severity.ERROR,
        say("{}{}", scale_telling.tell_clip(clip), _more(len(wrong))),
        scale_telling.advise_clip(clip),
        Place(clip.step, str(Phase.UPDATE), name, slot),
        {**scale_telling.clip_evidence(clip), "steps": [one.step for one in wrong]},
        {"step": clip.step, **scale_telling.clip_evidence(clip)},
    )


def _more(steps: int) -> str:
    return say(" So it is in all {} captured steps that clip.", steps) if steps > 1 else ""
