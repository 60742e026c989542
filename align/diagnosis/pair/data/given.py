"""What both runs were given: the first batch that differs, and what the candidate's samples are to the reference's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from align import wording
from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.telling import Words
from align.equality import Equality
from align.hashing import hash_bytes
from align.labels_moved import LabelShift, label_shift
from align.pairing import LOADER, Pair
from align.records import Finding, Kind, Phase, Severity, TensorKey, TensorRecord
from align.samples import SampleKind, SampleRelation, relate_samples
from align.sentences import joined, say
from align.tolerance import is_float

TARGETS_ADVICE = "Compare how both scripts make the targets: label shift, padding, ignored index, collation."

LABEL_NAMES = frozenset({"label", "labels", "target", "targets", "y"})
"""What arguments are called that the loss alone reads: torch's own names, and those of libraries of models."""

ORDER_SETTINGS = ("shuffle", "sampler", "batch_sampler", "generator_seed", "distributed", "num_workers", "length")
"""Settings of a DataLoader that decide the order of its samples; what else it has does not."""

CHOOSING_SETTINGS = frozenset(ORDER_SETTINGS) - {"num_workers"}
"""Those that decide which samples come first: workers only draw other numbers for what is done to a sample."""

SETTING_WORDS = {"length": "length of the dataset"}

MOSTLY = 0.9
"""A tensor names samples where so many of its rows are different ones, or as many as in the tensor that has most."""

ORDERED = (SampleKind.ORDER_IN_BATCH, SampleKind.SHIFTED, SampleKind.GAPS, SampleKind.ORDER)

TAKING = (
    "capture the reference with `align capture --keep batches`, the candidate with "
    "`align capture --batches-from REF.h5`"
)


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """The first batch that differs.

    `unequal` are the tensors of its phase that differ, `agreeing` the names of inputs of the same micro-step that are
    equal and tell samples apart. `samples` say what the candidate's samples are to the reference's, as `tensor` tells
    them, over `steps`. `only_labels` is True where the inputs agree and only what the loss reads differs; `labels`
    then say how it moved. `loaders_agree` is True where the DataLoaders handed out equal batches all the same.
    """

    unequal: tuple[Equality, ...]
    agreeing: tuple[str, ...]
    samples: SampleRelation
    tensor: str
    steps: tuple[int, ...]
    batch: int
    only_labels: bool
    labels: LabelShift | None
    loaders_agree: bool

    @property
    def key(self) -> TensorKey:
        """Where the first tensor that differs was given."""
        return self.unequal[0].pair.key

    @property
    def kind(self) -> SampleKind:
        """What the candidate's samples are to the reference's; OTHER where no samples are concerned."""
        return SampleKind.OTHER if self.only_labels or self.agreeing else self.samples.kind


@lru_cache(maxsize=1)
def first_difference(walk: Walk) -> Given | None:
    """The first batch, or targets, that differ; None where all agree."""
    result = next((result for result in walk.results if result.unequal), None)
    if result is None:
        return None
    key = result.unequal[0].pair.key
    unequal = tuple(found for found in result.unequal if found.pair.key.phase is key.phase)
    inputs = [each for each in result.comparisons if each.key.phase is Phase.INPUT and each.key.micro == key.micro]
    differing = {found.pair.key for found in result.unequal}
    equal = [each.reference for each in inputs if each.key not in differing]
    labels = all(_is_label(found.pair.key) for found in unequal)
    loader, given = _sequences(walk)
    tensor, samples = _best({**loader, **given})
    moved = _moved_labels(walk, result.unequal) if labels else None
    sizes = [len(batch) for batch in next(iter({**given, **loader}.values()), ([], []))[0]]
    return Given(
        unequal=unequal,
        agreeing=tuple(name_of(record.key) for record in equal if _names_samples(record)),
        samples=samples,
        tensor=tensor,
        steps=walk.steps,
        batch=sizes[0] if len(set(sizes)) == 1 else 0,
        only_labels=labels and bool(equal),
        labels=moved,
        loaders_agree=bool(loader) and all(relate_samples(*sides).kind is SampleKind.SAME for sides in loader.values()),
    )


def name_of(key: TensorKey) -> str:
    """`tokens`, or `images value.0` where it is a part of an argument."""
    return key.name if key.slot == "value" else say("{} {}", key.name, key.slot)


def _is_label(key: TensorKey) -> bool:
    return key.phase is Phase.LOSS or key.name.rpartition(".")[2].lower() in LABEL_NAMES


def _names_samples(record: TensorRecord) -> bool:
    """Whether the rows of a tensor are different ones, as those of a mask of ones are not."""
    rows = record.row_hashes
    return rows is not None and len(set(rows.tolist())) >= max(MOSTLY * len(rows), 2)


Sides: TypeAlias = tuple[list[list[int]], list[list[int]]]


def _sequences(walk: Walk) -> tuple[dict[str, Sides], dict[str, Sides]]:
    """The hashes of the samples of all captured batches by tensor: as the loaders gave them, as models got them."""
    asides = [pair for step in walk.evidence for pair in step.pairs]
    loaders = [pair for pair in asides if pair.key.phase is Phase.INPUT and pair.key.name.startswith(LOADER)]
    inputs = [Pair(each.reference, each.candidate) for each in walk.comparisons if each.key.phase is Phase.INPUT]
    return _by_tensor(loaders), _by_tensor(inputs)


def _by_tensor(pairs: Iterable[Pair]) -> dict[str, Sides]:
    found: dict[str, Sides] = {}
    for pair in sorted(pairs, key=lambda pair: (pair.key.step, pair.key.micro, pair.key.call)):
        ours, theirs = pair.reference.row_hashes, pair.candidate.row_hashes
        if ours is not None and theirs is not None:
            sides = found.setdefault(name_of(pair.key), ([], []))
            sides[0].append(ours.tolist())
            sides[1].append(theirs.tolist())
    return found


def _best(sequences: Mapping[str, Sides]) -> tuple[str, SampleRelation]:
    """The tensor that tells most of the samples, and what it tells; labels are the same for many samples."""
    different = {name: len({sample for batch in ours for sample in batch}) for name, (ours, _) in sequences.items()}
    naming = [name for name, number in different.items() if number >= MOSTLY * max(different.values())]
    related = {name: relate_samples(*sequences[name]) for name in naming}
    for kind in (*ORDERED, SampleKind.OTHER):
        found = [name for name, relation in related.items() if relation.kind is kind]
        if found:
            return found[0], related[found[0]]
    return "", SampleRelation(SampleKind.UNKNOWN)


def _moved_labels(walk: Walk, unequal: Iterable[Equality]) -> LabelShift | None:
    """How labels moved along their sequence, where a tensor tells them one by one."""
    for found in unequal:
        pair = found.pair
        ours, theirs = pair.reference.row_hashes, pair.candidate.row_hashes
        if len(pair.reference.shape) != 1 or ours is None or theirs is None or is_float(pair.reference.dtype):
            continue
        ignored = _ignored(walk, pair)
        moved = label_shift(ours.tolist(), theirs.tolist(), ignored)
        if moved is not None:
            return moved
    return None


def _ignored(walk: Walk, pair: Pair) -> frozenset[int]:
    """The hashes of the label that the loss leaves out."""
    step = pair.key.step
    facts = (*walk.reference_facts.get(step, ()), *walk.candidate_facts.get(step, ()))
    values = {fact.value for fact in facts if fact.key.phase is Phase.LOSS and fact.key.slot == "ignore_index"}
    return frozenset(
        hash_bytes(np.array([value], dtype=pair.reference.dtype)) for value in values if isinstance(value, int)
    )


# ---- what the rules say alike


def parts_here(walk: Walk, given: Given) -> bool:
    """Whether the runs part at this batch."""
    first = walk.first
    return first is not None and first.kind is Kind.EQUALITY and first.comparison.key == given.key


def unjudged(given: Given) -> str:
    """`the model was not judged from there on`."""
    return say("the model was not judged{}", " from there on" if given.key.step else "")


def loader_settings(walk: Walk, names: Sequence[str] = ORDER_SETTINGS) -> dict[str, tuple[Any, Any]]:
    """The settings of the first DataLoader of both runs that differ."""
    if not (walk.reference.loaders and walk.candidate.loaders):
        return {}
    ours, theirs = walk.reference.loaders[0], walk.candidate.loaders[0]
    return {
        name: (ours.get(name), theirs.get(name))
        for name in names
        if name in ours and name in theirs and ours[name] != theirs[name]
    }


def same_data(walk: Walk) -> bool:
    """Whether the first DataLoaders of both runs read datasets of one class and length."""
    if not (walk.reference.loaders and walk.candidate.loaders):
        return False
    ours, theirs = walk.reference.loaders[0], walk.candidate.loaders[0]
    known = ours.get("length") is not None
    return known and all(ours.get(name) == theirs.get(name) for name in ("dataset", "length"))


def tell_settings(settings: Mapping[str, tuple[Any, Any]]) -> str:
    """` The DataLoaders are set differently: shuffle True and False.`, empty where they are not."""
    if not settings:
        return ""
    parts = [
        say("{} {} and {}", SETTING_WORDS.get(name, name.replace("_", " ")), _told(ours), _told(theirs))
        for name, (ours, theirs) in settings.items()
    ]
    return say(" The DataLoaders are set differently: {}.", wording.listing(parts))


def _told(value: Any) -> str:
    if isinstance(value, Mapping):
        return joined(", ", (say("{} {}", name, one) for name, one in value.items()))
    return say("none") if value is None else str(value)


def finding(
    walk: Walk, given: Given, kind: tuple[str, str], words: Words, evidence: Mapping[str, Any] | None = None
) -> Finding:
    """A finding about what the runs were given; `kind` is its code and label."""
    names = list(dict.fromkeys(name_of(found.pair.key) for found in given.unequal))
    steps = [result.step for result in walk.results if result.unequal]
    key, samples = given.key, given.samples
    numbers = {
        "kind": str(samples.kind),
        "samples": samples.total,
        "common": samples.common,
        "told_by": given.tensor,
    }
    return Finding(
        *kind,
        Severity.ERROR if parts_here(walk, given) else Severity.WARNING,
        *words,
        telling.place_of(key),
        {
            "steps": steps,
            "tensors": names,
            "agreeing": list(given.agreeing),
            "relative_l2": {name_of(found.pair.key): found.relative_l2 for found in given.unequal},
            "reference_hash": _hash(given.unequal[0].pair.reference.hash),
            "candidate_hash": _hash(given.unequal[0].pair.candidate.hash),
            "samples": numbers,
            **(evidence or {}),
        },
        {"step": key.step, "phase": str(key.phase), "names": names, "steps": steps, **numbers, **(evidence or {})},
    )


def taking(walk: Walk) -> str:
    """The same-start options for batches, as what can be done; empty where they were used."""
    return "" if telling.was_taken(walk, "batches_from") else TAKING


def taking_or(walk: Walk) -> str:
    """The same-start options for batches, as the begin of a sentence that goes on with another way."""
    return joined("", (TAKING, "; or ")) if taking(walk) else ""


def _hash(number: int | None) -> str | None:
    return None if number is None else wording.short_hash(number)
