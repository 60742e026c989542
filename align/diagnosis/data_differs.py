"""AL205: the batches, or the targets handed to the loss, differ."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.registry import rule
from align.equality import Equality
from align.records import Finding, Kind, Phase, Severity

CODE = "AL205"
LABEL = "data-differs"


@rule(CODE, LABEL, rank=20)
def find(walk: Walk) -> Iterator[Finding]:
    """Batches and targets that are not equal; an error where the runs part there, else a warning."""
    for result in walk.results:
        if result.unequal:
            yield _finding(walk, result.unequal)
            return


def _finding(walk: Walk, unequal: tuple[Equality, ...]) -> Finding:
    key = unequal[0].pair.key
    first = walk.first
    parts_here = first is not None and first.kind is Kind.EQUALITY and first.comparison.key == key
    unequal = tuple(found for found in unequal if found.pair.key.phase is key.phase)
    names = list(dict.fromkeys(_name(found) for found in unequal))
    steps = [result.step for result in walk.results if result.unequal]
    if key.phase is Phase.LOSS:
        summary = (
            f"{telling.opening(key)}: the logits agree, the targets handed to the loss differ. No module is to blame."
        )
        advice = "Compare how both scripts make the targets: label shift, padding, ignored index, collation."
    else:
        summary = (
            f"The batches of {wording.step(key.step)} differ ({wording.listing(names[:3], len(names))}); "
            f"the model was not judged {'from there on' if key.step else ''}".rstrip()
            + "."
        )
        taking = (
            "capture the reference with `align capture --keep batches`, the candidate with "
            "`align capture --batches-from REF.h5`; or "
        )
        advice = (
            f"Feed both runs the same batches: {'' if telling.was_taken(walk, 'batches_from') else taking}set the same "
            "sampler seed, number of workers, shuffling and preprocessing. Look at the first differing batch with "
            "`align show`."
        )
    return Finding(
        CODE,
        LABEL,
        Severity.ERROR if parts_here else Severity.WARNING,
        summary,
        advice,
        telling.place_of(key),
        {
            "steps": steps,
            "tensors": names,
            "relative_l2": {_name(found): found.relative_l2 for found in unequal},
            "reference_hash": _hash(unequal[0].pair.reference.hash),
            "candidate_hash": _hash(unequal[0].pair.candidate.hash),
        },
        {"step": key.step, "phase": str(key.phase), "names": names, "steps": steps},
    )


def _hash(number: int | None) -> str | None:
    return None if number is None else wording.short_hash(number)


def _name(found: Equality) -> str:
    key = found.pair.key
    return key.name if key.slot == "value" else f"{key.name} {key.slot}"
