"""AL609: one of two runs clips gradients that still carry the loss scale."""

from __future__ import annotations

from collections.abc import Iterator

from align.clipping import ScaledClip, scaled_clip
from align.comparison import Walk
from align.diagnosis import scale_telling
from align.diagnosis.registry import rule
from align.records import Finding, Phase, Severity
from align.sentences import say, small

CODE = "AL609"
LABEL = "clip-before-unscale"


@rule(CODE, LABEL, rank=44)
def find(walk: Walk) -> Iterator[Finding]:
    """The first compared step in which one run clips scaled gradients and the other does not."""
    for step in walk.steps:
        ours, theirs = (_clip(walk, step, side) for side in (0, 1))
        clip, side = (theirs, "candidate") if theirs is not None else (ours, "reference")
        if clip is None or (ours is not None and theirs is not None):
            continue
        parts = scale_telling.parts_in(walk, step, Phase.UPDATE)
        summary = scale_telling.tell_clip(clip)
        yield Finding(
            CODE,
            LABEL,
            Severity.ERROR if parts else Severity.WARNING,
            say("In the {} alone, {}", say(side), small(summary)),
            scale_telling.advise_clip(clip),
            scale_telling.first_place(walk, step, Phase.UPDATE),
            {**scale_telling.clip_evidence(clip), "side": side},
            {"step": step, "side": side, **scale_telling.clip_evidence(clip)},
        )
        return


def _clip(walk: Walk, step: int, side: int) -> ScaledClip | None:
    facts = (walk.reference_facts, walk.candidate_facts)[side].get(step, ())
    timeline = (walk.reference_timeline, walk.candidate_timeline)[side]
    row = next((row for row in timeline if row.step == step), None)
    records = (
        (each.reference, each.candidate)[side]
        for each in walk.comparisons
        if each.key.step == step and each.key.phase in {Phase.GRADIENT, Phase.UPDATE}
    )
    found = scaled_clip(step, facts, row, records)
    return None if found is None or found.meant else found
