"""Which rule tells of which initial tensor: each that differs belongs to one label."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from align import wording
from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.pair.data.seed_mismatch import looks_like_another_seed
from align.diagnosis.telling import Words
from align.equality import Answer, Equality
from align.initial_relations import name_of
from align.loading import first_loads, left_out
from align.records import Finding, Severity
from align.relations import Contents, ModelKind, Relation, RelationKind, Side, describe
from align.sentences import say

NAMED = 3
"""How many tensors a sentence names."""

TAKING = (
    "capture the reference with `align capture --keep init`, the candidate with `align capture --init-from REF.h5`; or "
)

PERMUTED, TRANSPOSED, CAST, STALE = "weight-permuted", "weight-transposed", "weight-cast", "weight-stale"
SCALED, CORRUPTED, TIED, BUFFER = "weight-scaled", "weight-corrupted", "tied-weight-broken", "buffer-differs"
NOT_LOADED, PARTIALLY, KEYS = "checkpoint-not-loaded", "checkpoint-partially-loaded", "checkpoint-keys"
REST = "initial-weights-differ"

OTHER: Mapping[Side | None, Side] = {Side.REFERENCE: Side.CANDIDATE, Side.CANDIDATE: Side.REFERENCE}

BY_KIND: Mapping[RelationKind, str] = {
    RelationKind.PERMUTED: PERMUTED,
    RelationKind.REORDERED: PERMUTED,
    RelationKind.RESHAPED: PERMUTED,
    RelationKind.TRANSPOSED: TRANSPOSED,
    RelationKind.CAST: CAST,
    RelationKind.STALE: STALE,
    RelationKind.SCALED: SCALED,
    RelationKind.SIGN_FLIPPED: SCALED,
    RelationKind.FEW_ELEMENTS: CORRUPTED,
    RelationKind.FEW_SLICES: CORRUPTED,
}

ALIKE = 10.0
"""Buffers of another step are as far away as the weights of that step, up to this factor; other tables are not."""

LEFT_AT_DEFAULTS = frozenset({ModelKind.NOT_LOADED, ModelKind.PARTIALLY_LOADED})

DRAWN_ANEW = frozenset(
    {RelationKind.OTHER_SEED, RelationKind.UNRELATED, RelationKind.NOT_LOADED, RelationKind.ALL_ZERO}
)
"""What is left of a tensor that one run loaded and the other drew."""


@lru_cache(maxsize=1)
def groups(walk: Walk) -> Mapping[str, tuple[str, ...]]:
    """The names of the initial tensors that differ, by the label that tells of them."""
    unequal = [name_of(found.pair.reference) for found in walk.initial if found.answer is Answer.UNEQUAL]
    if not unequal or looks_like_another_seed(walk):
        return {REST: tuple(unequal)} if unequal else {}
    found: dict[str, list[str]] = {}
    whole = _of_the_model(walk, unequal)
    tied = {pair.name for pair in walk.weights.tied}
    for name in unequal:
        label = whole.get(name) or _of_tensor(walk, name)
        label = TIED if label == REST and name in tied else label
        found.setdefault(label, []).append(name)
    return {label: tuple(names) for label, names in _with_trained(walk, found).items()}


def _with_trained(walk: Walk, found: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Buffers that differ as trained weights do stand with those: rounded as they are, or of another step."""
    told = {label: list(names) for label, names in found.items()}
    for name in found.get(BUFFER, ()):
        relation = walk.weights.relations[name]
        label = CAST if relation.kind is RelationKind.CAST else REST
        like = [walk.weights.relations[other] for other in found.get(label, ()) if other in walk.weights.relations]
        if any(_differ_alike(relation, other) for other in like):
            told[BUFFER].remove(name)
            told[label].append(name)
    return {label: names for label, names in told.items() if names}


def _differ_alike(buffer: Relation, trained: Relation) -> bool:
    if buffer.kind is not trained.kind:
        return False
    if buffer.kind is RelationKind.CAST:
        return (buffer.format, buffer.side) == (trained.format, trained.side)
    near, other = buffer.relative_l2 or 0.0, trained.relative_l2 or 0.0
    return buffer.kind is RelationKind.DRIFTED and 0.0 < near <= ALIKE * other


def _of_the_model(walk: Walk, unequal: Sequence[str]) -> dict[str, str]:
    """The labels of tensors that one answer for the model explains."""
    model = walk.weights.model
    if missed_side(walk, unequal) is not None:
        return dict.fromkeys(unequal, PARTIALLY)
    if model.side is not None and model.side in OTHER and model.kind in LEFT_AT_DEFAULTS:
        at_defaults = _at_defaults(walk, model.side)
        if at_defaults:
            return at_defaults
    if walk.weights.keys_moved:
        return dict.fromkeys((name for pair in model.keys for name in pair), KEYS)
    drawn = [name for name, relation in walk.weights.relations.items() if relation.kind in DRAWN_ANEW]
    if drawn and model.equal and left_out_side(walk) is not None:  # equal ones came from the file
        return dict.fromkeys(drawn, PARTIALLY)
    return {}


def _shares_trained(walk: Walk) -> bool:
    """Whether what both runs have was loaded in both, and not drawn from one seed."""
    if first_loads(walk.reference.loads) and first_loads(walk.candidate.loads):
        return True
    return any(
        relation.agrees and _is_trained_gain(name, relation.reference)
        for name, relation in walk.weights.relations.items()
    )


def _is_trained_gain(name: str, contents: Contents) -> bool:
    """Whether a vector that multiplies is no constant, as that of a new norm is."""
    return name.endswith(".weight") and len(contents.shape) == 1 and contents.minimum != contents.maximum


def _was_loaded(walk: Walk, side: Side) -> bool:
    """Whether the weights of a run come from a file: it has loaded one, or a gain is no constant as that of a new norm.

    Else both runs may have drawn their weights, each in its own way.
    """
    run = walk.reference if side is Side.REFERENCE else walk.candidate
    if first_loads(run.loads):
        return True
    return any(
        _is_trained_gain(name, relation.reference if side is Side.REFERENCE else relation.candidate)
        for name, relation in walk.weights.relations.items()
    )


def _of_tensor(walk: Walk, name: str) -> str:
    relation = walk.weights.relations.get(name)
    if relation is None:
        return REST
    label = BY_KIND.get(relation.kind, REST)
    buffer = bool(walk.weights.trained) and name not in walk.weights.trained
    return BUFFER if buffer and label in {CAST, REST} else label


def left_out_side(walk: Walk) -> Side | None:
    """The only run in which a `load_state_dict` before the first step left parameters as they were, if there is one."""
    ours, theirs = (bool(left_out(loads)) for loads in (walk.reference.loads, walk.candidate.loads))
    return None if ours == theirs else Side.REFERENCE if ours else Side.CANDIDATE


def _at_defaults(walk: Walk, side: Side) -> dict[str, str]:
    """The labels where the tensors that differ stand on one side as a new model has them.

    That side was given all of its tensors: then they are so in the file, or were set after it was loaded. Running
    statistics alone, that were reset, are buffers that differ.
    """
    model = walk.weights.model
    if _no_optimizer_trains(walk, model.names):
        return {}
    if _filled_all(walk, side):
        return dict.fromkeys(model.names, REST)
    if not _was_loaded(walk, OTHER[side]):
        return {}
    if model.kind is ModelKind.NOT_LOADED:
        return dict.fromkeys(model.names, NOT_LOADED)
    return dict.fromkeys(model.names, PARTIALLY) if _shares_trained(walk) else {}


def _no_optimizer_trains(walk: Walk, names: Sequence[str]) -> bool:
    trained = walk.weights.trained
    return bool(trained) and trained.isdisjoint(names)


def missed_side(walk: Walk, unequal: Sequence[str]) -> Side | None:
    """The only run whose `load_state_dict` was not given the tensors that differ, and no others; None of none.

    The other run loaded the same class of module and missed nothing.
    """
    ours, theirs = (
        {str(load.get("class")): load for load in first_loads(run.loads)} for run in (walk.reference, walk.candidate)
    )
    for name in ours.keys() & theirs.keys():
        for side, mine, other in ((Side.REFERENCE, ours, theirs), (Side.CANDIDATE, theirs, ours)):
            if not other[name].get("missing") and _misses(mine[name], unequal):
                return side
    return None


def _misses(load: Mapping[str, Any], unequal: Sequence[str]) -> bool:
    """Whether what differs is what a load was not given, as far as it has kept the names of that."""
    examples = set(load.get("missing_examples") or ())
    if not examples or load.get("unexpected") or int(load["missing"]) < len(unequal):
        return False
    return examples <= set(unequal) or (len(examples) == int(load["missing"]) and set(unequal) <= examples)


def _filled_all(walk: Walk, side: Side) -> bool:
    """Whether one `load_state_dict` gave a run all of its initial tensors: none is as it was drawn before."""
    run = walk.reference if side is Side.REFERENCE else walk.candidate
    return any(
        not load.get("missing") and int(load.get("keys") or 0) - int(load.get("unexpected") or 0) >= len(walk.initial)
        for load in first_loads(run.loads)
    )


def equality_of(walk: Walk, name: str) -> Equality:
    """The pair of an initial tensor."""
    return next(found for found in walk.initial if name_of(found.pair.reference) == name)


def told(walk: Walk, label: str) -> list[tuple[str, Relation]]:
    """The tensors of a label with their relations."""
    return [
        (name, walk.weights.relations[name]) for name in groups(walk).get(label, ()) if name in walk.weights.relations
    ]


def of_total(walk: Walk, names: Sequence[str]) -> str:
    """`3 of 34 tensors (head.weight, ...)`."""
    total = wording.plural(len(walk.initial), "initial tensor")
    return say("{} of {} ({})", wording.count(len(names)), total, wording.listing(list(names[:NAMED]), len(names)))


def relation_words(tensors: Sequence[tuple[str, Relation]]) -> Iterator[str]:
    """What each of the first tensors is, those that are alike told once."""
    words: dict[str, list[str]] = {}
    for name, relation in tensors:
        words.setdefault(describe(replace(relation, note="")), []).append(name)
    for said, names in list(words.items())[:NAMED]:
        yield say("{} {} {}", wording.listing(names[:NAMED], len(names)), "is" if len(names) == 1 else "are", said)


def finding(
    walk: Walk,
    names: Sequence[str],
    kind: tuple[str, str],
    words: Words,
    evidence: Mapping[str, Any] | None = None,
) -> Finding:
    """A finding about initial tensors; `kind` is its code and label."""
    relations = {name: walk.weights.relations[name] for name in names if name in walk.weights.relations}
    return Finding(
        *kind,
        Severity.ERROR,
        *words,
        telling.place_of(equality_of(walk, names[0]).pair.key),
        {
            "differing": len(names),
            "tensors": len(walk.initial),
            "names": list(names),
            "relations": {name: str(relation.kind) for name, relation in relations.items()},
            "relative_l2": {name: relation.relative_l2 for name, relation in relations.items()},
            **(evidence or {}),
        },
        {"differing": len(names), "tensors": len(walk.initial), "names": list(names[:NAMED]), **(evidence or {})},
    )


def of_relation(walk: Walk, kind: tuple[str, str], tell: Callable[[str, str], str], advice: str) -> Iterator[Finding]:
    """The finding of a rule that tells of one relation; none where no tensor is in it.

    `tell` makes its sentence of how many tensors are, and of what they are in the candidate.
    """
    tensors = told(walk, kind[1])
    if not tensors:
        return
    names = [name for name, _ in tensors]
    summary = tell(of_total(walk, names), wording.listing(list(relation_words(tensors))))
    yield finding(walk, names, kind, Words(summary, say("{} {}", advice, same_weights(walk))))


def taking(walk: Walk) -> str:
    """The same-start options for weights, as the begin of a sentence; empty where they were used."""
    return "" if telling.was_taken(walk, "init_from") else TAKING


def side_words(side: Side | None) -> str:
    """`reference`, `candidate`."""
    return str(side) if side in {Side.REFERENCE, Side.CANDIDATE} else "one run"


def same_weights(walk: Walk) -> str:
    """The last sentence of every advice on weights."""
    return say("To compare the models as they are, {}load the same checkpoint in both.", taking(walk))
