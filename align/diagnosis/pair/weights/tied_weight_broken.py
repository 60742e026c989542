"""AL308: a weight is another weight of the model in one run, and one of its own in the other."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.pair.setup import explaining
from align.diagnosis.pair.weights import unlike
from align.diagnosis.registry import rule
from align.diagnosis.telling import Words
from align.initial_relations import name_of
from align.records import Finding, Kind, Origin, Phase, Severity
from align.sentences import say

CODE = "AL308"
LABEL = "tied-weight-broken"


@rule(CODE, LABEL, rank=22)
def find(walk: Walk) -> Iterator[Finding]:
    """A tensor that differs and is bit for bit another one of the same run, in one run only.

    Also one that only one run has, where the output of its module is the first difference: one tensor that belongs to
    two modules stands under the name of the first.
    """
    yield from _shared(walk)
    names = unlike.groups(walk).get(LABEL, ())
    pairs = [pair for pair in walk.weights.tied if pair.name in names]
    if not pairs:
        return
    first = pairs[0]
    tied, apart = ("reference", "candidate") if first.reference else ("candidate", "reference")
    more = say(", and {} likewise", wording.plural(len(pairs) - 1, "other tensor")) if len(pairs) > 1 else ""
    yield unlike.finding(
        walk,
        [pair.name for pair in pairs],
        (CODE, LABEL),
        Words(
            say(
                "In the {} {} is a copy of {}, in the {} it is a tensor of its own{}. No module was judged.",
                tied,
                first.name,
                first.other,
                apart,
                more,
            ),
            say(
                "See whether the checkpoint holds {} and whether both scripts load it: with `tie_word_embeddings` "
                "it is left out when it is saved, and made from the other one when it is loaded. {}",
                first.name,
                unlike.same_weights(walk),
            ),
        ),
        {"tied_in": tied, "pairs": [[pair.name, pair.other] for pair in pairs]},
    )


def _shared(walk: Walk) -> Iterator[Finding]:
    first = walk.first
    if first is None or first.statistics_only or (first.kind, first.origin) != (Kind.VALUE, Origin.MODULE):
        return
    key = first.comparison.key
    module = walk.modules.get(key.name)
    own = telling.own_in_one_run(walk, key.name)
    may_share = module is not None and (module.matmul or module.conv or "Embed" in module.class_name)
    name = next((name for name in own if name.endswith(".weight")), "")
    if key.phase is not Phase.FORWARD or not may_share or not name or f"{key.name}.weight" in _paired(walk):
        return
    apart = own[name]
    tied = "candidate" if apart == "reference" else "reference"
    yield Finding(
        CODE,
        LABEL,
        Severity.ERROR,
        say(
            "{} is a tensor of its own in the {}; in the {} {} has none under its name: it uses that of another "
            "module (tied weights) or makes it. {}",
            name,
            apart,
            tied,
            key.name,
            explaining.first_sentence(first),
        ),
        say(
            "Tie {} to the same module in both runs, or in neither (`tie_word_embeddings`, `head.weight = "
            "embedding.weight`), after the weights have been loaded.",
            key.name,
        ),
        telling.place_of(key),
        telling.evidence_of(first.comparison) | {"name": name, "own_in": apart},
        {**telling.arguments_of(first), "name": name, "own_in": apart},
    )


def _paired(walk: Walk) -> set[str]:
    return {name_of(found.pair.reference) for found in walk.initial}
