"""AL505: the optimizer of one run takes the gradients of its own rank; in the other it takes those of all."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.pair.backward import unreduced
from align.diagnosis.registry import rule
from align.records import Finding, Severity
from align.sentences import say

CODE = "AL505"
LABEL = "gradients-not-reduced"


@rule(CODE, LABEL, rank=46)
def find(walk: Walk) -> Iterator[Finding]:
    """The first difference, where it is what the optimizer takes, and one run of several ranks changes no gradient."""
    first, found = walk.first, unreduced.unreduced(walk)
    if first is None or found is None:
        return
    key, other = first.comparison.key, "candidate" if found.side == "reference" else "reference"
    worlds = {"reference": walk.reference.world_size, "candidate": walk.candidate.world_size}
    yield Finding(
        CODE,
        LABEL,
        Severity.ERROR,
        say(
            "{}: the gradients after backward agree in both runs, but the {}, one of {} ranks, gives them to its "
            "optimizer as they are, to the last bit ({}; first {}). The {} changes them before (relative L2 up to "
            "{}), as a sum over ranks does.",
            telling.opening(key),
            found.side,
            wording.count(worlds[found.side]),
            wording.plural(found.parameters, "parameter"),
            telling.tensor(key),
            other,
            wording.relative(found.distance),
        ),
        say(
            "Look for the reduction in the {} between backward and optimizer.step: which process group its "
            "all_reduce is given (one of a single rank reduces nothing), whether it is called at all, whether "
            "no_sync() ends before the last backward of a step. `align inspect RUN.h5` compares the ranks of that "
            "run.",
            found.side,
        ),
        telling.place_of(key),
        {
            **telling.evidence_of(first.comparison),
            "side": found.side,
            "parameters": found.parameters,
            "world_sizes": list(worlds.values()),
        },
        {**telling.arguments_of(first), "side": found.side, "parameters": found.parameters},
    )
