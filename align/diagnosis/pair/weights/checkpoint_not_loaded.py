"""AL301: one run starts from fresh weights where the other has loaded some."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.comparison import Walk
from align.diagnosis.pair.weights import unlike
from align.diagnosis.registry import rule
from align.diagnosis.telling import Words
from align.records import Finding
from align.sentences import say

CODE = "AL301"
LABEL = "checkpoint-not-loaded"


@rule(CODE, LABEL, rank=22)
def find(walk: Walk) -> Iterator[Finding]:
    """All weights of one side stand at the defaults of a new model, those of the other do not."""
    names = unlike.groups(walk).get(LABEL, ())
    if not names:
        return
    side = walk.weights.model.side
    which = unlike.side_words(side)
    defaults = [
        name
        for name, relation in unlike.told(walk, LABEL)
        if (relation.reference if which == "reference" else relation.candidate).initial
    ]
    yield unlike.finding(
        walk,
        names,
        (CODE, LABEL),
        Words(
            say(
                "The {} has not loaded the weights that the {} starts from: {} differ, and {} of them stand there "
                "as a new model is drawn (gains 1, biases 0, fresh matrices). No module was judged.",
                which,
                _other(which),
                unlike.of_total(walk, names),
                wording.count(len(defaults)),
            ),
            say(
                "See whether the {} calls load_state_dict at all, on this model, and what it answers: missing and "
                "unexpected keys, `strict=False`. {}",
                which,
                unlike.same_weights(walk),
            ),
        ),
        {"side": which, "at_defaults": len(defaults)},
    )


def _other(side: str) -> str:
    return "candidate" if side == "reference" else "reference"
