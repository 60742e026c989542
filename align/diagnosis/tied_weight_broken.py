"""AL308: a weight is another weight of the model in one run, and one of its own in the other."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.comparison import Walk
from align.diagnosis import weights
from align.diagnosis.registry import rule
from align.diagnosis.telling import Words
from align.records import Finding

CODE = "AL308"
LABEL = "tied-weight-broken"


@rule(CODE, LABEL, rank=22)
def find(walk: Walk) -> Iterator[Finding]:
    """A tensor that differs and is bit for bit another one of the same run, in one run only."""
    names = weights.groups(walk).get(LABEL, ())
    pairs = [pair for pair in walk.weights.tied if pair.name in names]
    if not pairs:
        return
    first = pairs[0]
    tied, apart = ("reference", "candidate") if first.reference else ("candidate", "reference")
    more = f", and {wording.plural(len(pairs) - 1, 'other tensor')} likewise" if len(pairs) > 1 else ""
    yield weights.finding(
        walk,
        [pair.name for pair in pairs],
        (CODE, LABEL),
        Words(
            f"In the {tied} {first.name} is a copy of {first.other}, in the {apart} it is a tensor of its own{more}. "
            "No module was judged.",
            f"See whether the checkpoint holds {first.name} and whether both scripts load it: with "
            "`tie_word_embeddings` it is left out when it is saved, and made from the other one when it is loaded. "
            f"{weights.same_weights(walk)}",
        ),
        {"tied_in": tied, "pairs": [[pair.name, pair.other] for pair in pairs]},
    )
