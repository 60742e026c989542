"""Which record of the candidate answers which record of the reference."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from align.errors import ComparisonError
from align.records import Phase, TensorKey, TensorRecord

LARGEST_SHARE_WITHOUT_PARTNER = 0.5
"""Above it the captures are of different models."""

ASIDE = frozenset({Phase.OPTIMIZER, Phase.SCALER, Phase.RNG})
"""Phases that explain a difference and are none themselves; files of format 1 do not have them."""

LOADER = "<DataLoader"
"""Batches as a DataLoader handed them out; what reaches the model is seen again."""


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """One record of the reference and its answer in the candidate."""

    reference: TensorRecord
    candidate: TensorRecord

    @property
    def key(self) -> TensorKey:
        """The key of the reference's record."""
        return self.reference.key

    @property
    def same_shape(self) -> bool:
        """Whether both tensors have one shape."""
        return self.reference.shape == self.candidate.shape

    @property
    def same_dtype(self) -> bool:
        """Whether both tensors have one dtype."""
        return self.reference.dtype == self.candidate.dtype


@dataclass(frozen=True, slots=True, eq=False)
class PairedStep:
    """All pairs of one step in the reference's execution order, and the keys without an answer."""

    step: int
    pairs: tuple[Pair, ...]
    only_reference: tuple[TensorKey, ...] = ()
    only_candidate: tuple[TensorKey, ...] = ()


@dataclass(frozen=True, slots=True)
class NamePairs:
    """Which name of the candidate stands for which name of the reference, and the names without a partner."""

    partner: Mapping[str, str]
    only_reference: tuple[str, ...] = ()
    only_candidate: tuple[str, ...] = ()

    def of(self, name: str) -> str:
        """The candidate's name for a name of the reference."""
        return self.partner.get(name, name)


def renamed(name: str, renames: Sequence[tuple[str, str]]) -> str:
    """The name after the longest rename that is the whole name or a dotted prefix of it.

    An empty old name is a prefix for all names, under which the root is a module like others; an empty new name takes
    a prefix away.
    """
    for old, new in sorted(renames, key=lambda rename: -len(rename[0])):
        if not old:
            return new if _is_root(name) else name if name.startswith("<") else f"{new}.{name}"
        if not new and name.startswith(f"{old}."):
            return name[len(old) + 1 :]
        if name == old:
            return new or name
        if name.startswith(f"{old}."):
            return new + name[len(old) :]
    return name


def is_walked(record: TensorRecord) -> bool:
    """Whether a record is judged in the walk over its step; the others stand aside as evidence."""
    phase = record.key.phase
    if phase in ASIDE or record.recomputed:
        return False
    return not (phase is Phase.INPUT and record.key.name.startswith(LOADER))


def pair_names(
    reference: Iterable[str], candidate: Iterable[str], renames: Sequence[tuple[str, str]] = ()
) -> NamePairs:
    """Pair the module names of both runs, each root by its place where its class has another name."""
    ours, theirs = list(dict.fromkeys(reference)), set(candidate)
    _check_renames(ours, renames)
    partner = {name: renamed(name, renames) for name in ours}
    _pair_lone_roots(partner, theirs)
    answered = set(partner.values())
    return NamePairs(
        partner,
        tuple(name for name in ours if partner[name] not in theirs),
        tuple(sorted(theirs - answered)),
    )


def check_same_model(names: NamePairs, reference_path: str, candidate_path: str) -> None:
    """Refuse two captures of which most names have no partner."""
    shared = len(names.partner) - len(names.only_reference)
    totals = (len(names.partner), shared + len(names.only_candidate))
    for total, side in zip(totals, ("reference", "candidate"), strict=True):
        if total and (total - shared) / total > LARGEST_SHARE_WITHOUT_PARTNER:
            examples = _examples(names)
            raise ComparisonError(
                f"Cannot compare '{reference_path}' with '{candidate_path}': they hold different models. Only "
                f"{shared} of {total} names of the {side} have a partner{examples}. If modules were renamed, "
                "pair them with --rename OLD=NEW.",
            )


def pair_records(
    step: int, reference: Sequence[TensorRecord], candidate: Sequence[TensorRecord], names: NamePairs
) -> PairedStep:
    """Pair the records of one step by phase, name, slot, micro and call."""
    answers = {_identity(record.key, record.key.name): record for record in candidate}
    pairs, unanswered = [], []
    for record in sorted(reference, key=_order):
        answer = answers.pop(_identity(record.key, names.of(record.key.name)), None)
        if answer is None:
            unanswered.append(record.key)
        else:
            pairs.append(Pair(record, answer))
    return PairedStep(step, tuple(pairs), tuple(unanswered), tuple(record.key for record in answers.values()))


def _order(record: TensorRecord) -> int:
    return record.order


def _identity(key: TensorKey, name: str) -> tuple[object, ...]:
    return (key.phase, name, key.slot, key.micro, key.call)


def _check_renames(names: Sequence[str], renames: Sequence[tuple[str, str]]) -> None:
    for old, new in renames:
        if old and not any(name == old or name.startswith(f"{old}.") for name in names):
            raise ComparisonError(
                f"Cannot rename '{old}' to '{new}': the reference has no module of that name. "
                "List its modules with `align show`.",
            )


def _pair_lone_roots(partner: dict[str, str], candidate: set[str]) -> None:
    """Pair the only unpaired root of each side: a port often renames the class of the whole model."""
    answered = set(partner.values())
    ours = [name for name, answer in partner.items() if _is_root(name) and answer not in candidate]
    theirs = [name for name in candidate if _is_root(name) and name not in answered]
    if len(ours) == len(theirs) == 1:
        for name in list(partner):
            if name == ours[0] or name.startswith(f"{ours[0]}."):
                partner[name] = theirs[0] + name[len(ours[0]) :]


def _is_root(name: str) -> bool:
    return name.startswith("<") and name.endswith(">")


def _examples(names: NamePairs) -> str:
    parts = []
    if names.only_reference:
        parts.append(f"'{names.only_reference[0]}' is only in the reference")
    if names.only_candidate:
        parts.append(f"'{names.only_candidate[0]}' only in the candidate")
    return f"; for example {' and '.join(parts)}" if parts else ""
