"""AL507 in one run: the norm that the gradients are clipped by counts some of them twice."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.diagnosis.registry import run_rule
from align.inspection import Inspection
from align.inspection.ranks import names_of
from align.inspection.ranks_norm import Miscount
from align.records import Finding, Phase, Place, Severity
from align.sentences import say

CODE = "AL507"
LABEL = "gradient-norm-differs"


@run_rule(CODE, LABEL, rank=51)
def find(inspection: Inspection) -> Iterator[Finding]:
    """A norm that is too large by the squares of one parameter, or of all; a smaller one may be of some of them."""
    found = inspection.clip_norm
    if found is None or found.miscount is not Miscount.TWICE:
        return
    names = names_of(found.owners)
    what = names[0] if len(names) == 1 else say("all {} parameters", wording.count(len(names)))
    many = len(names) > 1
    yield Finding(
        CODE,
        LABEL,
        Severity.WARNING,
        say(
            "Step {}, optimizer: the gradients are clipped by a norm of {}, but theirs is {}: as if {} counted twice.",
            found.step,
            wording.value(found.reported[0]),
            wording.value(found.norm),
            what,
        ),
        say(
            "Give clip_grad_norm_ each parameter once: {} two times, as where the parameters of two modules are "
            "joined (`{{*a.parameters(), *b.parameters()}}` has each once).",
            "the list may hold them" if many else "a tied weight may be in it",
        ),
        Place(found.step, str(Phase.OPTIMIZER), "clip", "norm"),
        {"reported_norm": found.reported[0], "norm": found.norm, "clip_limit": found.limit},
        {"step": found.step, "names": names, "reported": found.reported[0], "norm": found.norm},
    )
