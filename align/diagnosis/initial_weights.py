"""AL310: the runs do not start from the same weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from align import wording
from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.registry import rule
from align.diagnosis.seed_mismatch import looks_like_another_seed
from align.drift import root_of
from align.equality import Answer, Equality
from align.records import Finding, Kind, Origin, Severity
from align.walk import Suspect, equality_comparison

CODE = "AL310"
LABEL = "initial-weights-differ"

EXAMPLES = 5

TAKING = (
    "capture the reference with `align capture --keep init`, the candidate with `align capture --init-from REF.h5`; or "
)


@rule(CODE, LABEL, rank=30)
def find(walk: Walk) -> Iterator[Finding]:
    """Initial weights and buffers that are not equal, or equal but for rounding."""
    unequal = [found for found in walk.unequal_weights if found.pair.same_shape]
    if unequal:
        yield _differ(walk, unequal)
        return
    if walk.first is not None and (walk.first.origin, walk.first.kind) == (Origin.WEIGHTS, Kind.VALUE):
        yield _not_known(walk, walk.first)
    close = [found for found in walk.initial if found.answer is Answer.CLOSE]
    if close and not walk.unequal_weights:
        yield _close(close, len(walk.initial))


def _not_known(walk: Walk, first: Suspect) -> Finding:
    """The first difference is made with weights that were not captured, so that they may be the cause."""
    key = first.comparison.key
    root = root_of(key.name)
    since = min(each.key.step for each in walk.comparisons if root_of(each.key.name) == root)
    evidence = telling.evidence_of(first.comparison)
    evidence["carried_on"] = telling.carried_on(walk.comparisons, first.comparison)
    return Finding(
        CODE,
        LABEL,
        Severity.ERROR,
        telling.statistics_summary(first)
        if first.statistics_only
        else (
            f"{telling.opening(key)}: {telling.tensor(key)} is the first tensor that differs: "
            f"{telling.amount(first.comparison)}{telling.relation(first.comparison, first.scale)}. Its inputs agree; "
            f"whether its weights do is not known, as {root} was first called in {wording.step(since)}, after the "
            "initial weights had been captured."
        ),
        telling.STATISTICS_ADVICE
        if first.statistics_only
        else (
            f"Compare the weights of {root} in both runs: build it from one seed (`align capture --seed 1`), or load "
            f"one checkpoint into it in both. `--init-from` does not reach it. Where they are equal, compare the "
            f"settings and the operators of {key.name}."
        ),
        telling.place_of(key),
        evidence,
        {**telling.arguments_of(first), "root": root, "since": since},
    )


def _differ(walk: Walk, unequal: Sequence[Equality]) -> Finding:
    total = len(walk.initial)
    cause = _cause(walk, unequal)
    names = [_name(found) for found in unequal[:EXAMPLES]]
    return Finding(
        CODE,
        LABEL,
        Severity.ERROR,
        f"The initial weights differ in {wording.count(len(unequal))} of {wording.plural(total, 'tensor')}"
        f"{f': {cause}' if cause else ''}. No module was judged.",
        f"Start both runs from one set of weights: {'' if telling.was_taken(walk, 'init_from') else TAKING}load the "
        "same checkpoint in both. Then compare again.",
        telling.place_of(unequal[0].pair.key),
        {
            "differing": len(unequal),
            "tensors": total,
            "examples": names,
            "relative_l2": {_name(found): found.relative_l2 for found in unequal[:EXAMPLES]},
        },
        {"differing": len(unequal), "tensors": total, "cause": cause, "names": names},
    )


def _cause(walk: Walk, unequal: Sequence[Equality]) -> str:
    """What the candidate's weights are to the reference's where that is simple."""
    if looks_like_another_seed(walk):
        return "they look like another draw of the same distribution"
    loaded = _side_with_defaults(unequal)
    if loaded:
        return f"the vectors of the {loaded} are at their defaults, as if no checkpoint had been loaded there"
    relations = [telling.relation(equality_comparison(found)) for found in unequal]
    if relations[0] and all(relation == relations[0] for relation in relations):
        return relations[0].removeprefix(", ")
    return f"first {_name(unequal[0])}{relations[0]}"


def _side_with_defaults(unequal: Sequence[Equality]) -> str:
    """The side on which every differing vector is constant (gains 1, biases 0) while the other's are not."""
    vectors = [found.pair for found in unequal if len(found.pair.reference.shape) == 1]
    constant = [
        [record.stats is not None and record.stats.minimum == record.stats.maximum for record in side]
        for side in ([pair.reference for pair in vectors], [pair.candidate for pair in vectors])
    ]
    if vectors and all(constant[0]) and not any(constant[1]):
        return "reference"
    return "candidate" if vectors and all(constant[1]) and not any(constant[0]) else ""


def _close(close: Sequence[Equality], total: int) -> Finding:
    largest = max(close, key=lambda found: found.relative_l2 or 0.0)
    dtypes = (largest.pair.reference.dtype, largest.pair.candidate.dtype)
    many = f"{wording.count(len(close))} of {wording.plural(total, 'initial tensor')}"
    number = wording.relative(largest.relative_l2)
    if dtypes[0] != dtypes[1]:
        formats = f"{wording.dtype(dtypes[0])} in the reference and {wording.dtype(dtypes[1])} in the candidate"
        summary = f"{many} {'is' if len(close) == 1 else 'are'} of another format ({formats}), their values equal"
        summary += f" but for its rounding; the largest difference is {number} in {_name(largest)}."
        if not largest.relative_l2:
            summary = f"{many} {'is' if len(close) == 1 else 'are'} of another format ({formats}) with equal values."
        advice = "Nothing to do where that is meant; build both models in one format to compare them more closely."
    else:
        summary = (
            f"{many} {'is' if len(close) == 1 else 'are'} equal but for rounding; the largest difference is {number} "
            f"in {_name(largest)}. It is part of the floor."
        )
        advice = "Nothing to do; load one file on both sides to make them equal bit for bit."
    return Finding(
        CODE,
        LABEL,
        Severity.NOTE,
        summary,
        advice,
        telling.place_of(largest.pair.key),
        {"close": len(close), "tensors": total, "largest_relative_l2": largest.relative_l2},
        {"close": len(close), "tensors": total, "name": largest.pair.key.name, "slot": largest.pair.key.slot},
    )


def _name(found: Equality) -> str:
    key = found.pair.key
    return f"{key.name}.{key.slot}"
