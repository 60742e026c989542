"""AL302: one run has loaded a part of the weights that the other starts from."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.comparison import Walk
from align.diagnosis.pair.weights import unlike
from align.diagnosis.registry import rule
from align.diagnosis.telling import Words
from align.records import Finding
from align.sentences import say

CODE = "AL302"
LABEL = "checkpoint-partially-loaded"


@rule(CODE, LABEL, rank=23)
def find(walk: Walk) -> Iterator[Finding]:
    """Some weights are those of the other run, the others were drawn anew on one side."""
    names = unlike.groups(walk).get(LABEL, ())
    if not names:
        return
    side = unlike.missed_side(walk, names) or walk.weights.model.side or unlike.left_out_side(walk)
    which = unlike.side_words(side)
    yield unlike.finding(
        walk,
        names,
        (CODE, LABEL),
        Words(
            say(
                "The {} has loaded a part of the weights only: {} equal, {} {} drawn anew there. No module was judged.",
                which,
                _equal(walk),
                unlike.of_total(walk, names),
                "was" if len(names) == 1 else "were",
            ),
            say(
                "Compare the names of these tensors with the keys of the checkpoint: `strict=False`, renamed or new "
                "modules and other shapes leave them out. Print what load_state_dict returns in the {}. {}",
                which,
                unlike.same_weights(walk),
            ),
        ),
        {"side": which, "equal": walk.weights.model.equal},
    )


def _equal(walk: Walk) -> str:
    equal = walk.weights.model.equal
    return say("{} {}", wording.plural(equal, "tensor"), "is" if equal == 1 else "are")
