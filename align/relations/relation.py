"""The records: what one tensor is by itself, what a candidate's tensor is to the reference's, and that of a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from align.records import Word


class RelationKind(Word):
    """What the candidate's tensor is to the reference's, the first that holds in the order of `docs/relations.md`.

    TOLD_APART_BY_VALUES are seen from values only; from records they read REORDERED or DRIFTED, or stay UNKNOWN.
    """

    EQUAL = "equal"
    EQUAL_BUT_BITS = "equal, bits differ"
    NONFINITE = "nonfinite"
    ALL_ZERO = "all zero"
    CAST = "cast"
    WITHIN_NOISE = "within noise"
    STALE = "stale"
    SIGN_FLIPPED = "sign flipped"
    SCALED = "scaled"
    OFFSET = "offset"
    RESHAPED = "reshaped"
    TRANSPOSED = "transposed"
    PERMUTED = "permuted"
    REORDERED = "reordered"
    FEW_ELEMENTS = "few elements"
    FEW_SLICES = "few slices"
    NOT_LOADED = "not loaded"
    OTHER_SEED = "other seed"
    DRIFTED = "drifted"
    UNRELATED = "unrelated"
    OTHER_SHAPE = "other shape"
    UNKNOWN = "unknown"


AGREEING = frozenset({RelationKind.EQUAL, RelationKind.EQUAL_BUT_BITS, RelationKind.WITHIN_NOISE})
"""Kinds in which nothing is wrong with the tensor."""

TOLD_APART_BY_VALUES = frozenset({RelationKind.PERMUTED, RelationKind.TRANSPOSED, RelationKind.FEW_SLICES})


class Basis(Word):
    """What a relation was read from; `blocks` are values of which no more than a few blocks were in memory."""

    VALUES = "values"
    RECORDS = "records"
    BLOCKS = "blocks"


class Side(Word):
    """Of which run something is said."""

    REFERENCE = "reference"
    CANDIDATE = "candidate"
    BOTH = "both"


class OrderKind(Word):
    """How the slices along a dimension were put into another order.

    `swapped axes`: an axis split into outer x a x b x block became outer x b x a x block. This is a rotary
    interleave, [gate0 up0 gate1 up1] against [gate up], q, k and v head by head against stacked ones.
    `grouped`: as that, with parts of unequal width (4 query heads, 1 key head and 1 value head in each group).
    """

    REVERSED = "reversed"
    ROLLED = "rolled"
    SWAPPED_AXES = "swapped axes"
    GROUPED = "grouped"
    EXCHANGED = "exchanged"
    BLOCKS = "blocks"
    GENERAL = "general"


@dataclass(frozen=True, slots=True)
class Contents:
    """One tensor by itself; the statistics are over its finite elements.

    `multiset` is a hash that the order does not enter (None where only a record was there): equal for tensors that
    hold the same values in any order and shape. `initial` names the default initialisation that the tensor looks
    like, empty where it looks like none: `zeros`, `ones`, `constant`, `identity`, `uniform within 1/sqrt(fan in)`,
    `normal, deviation 0.02`, ... Of few elements more than one may be possible: then it is the narrowest.
    """

    dtype: str
    shape: tuple[int, ...]
    minimum: float = 0.0
    maximum: float = 0.0
    mean: float = 0.0
    deviation: float = 0.0
    norm: float = 0.0
    zeros: int = 0
    nonfinite: int = 0
    multiset: int | None = None
    hash: int | None = None
    initial: str = ""


@dataclass(frozen=True, slots=True)
class Factor:
    """The candidate is `raw` times the reference, which is `snapped` within what is known of it.

    `snapped` is None where no simple number and no number given by the caller is that near. `meanings` are all that it
    may be: `("1/world size", "1/accumulation steps")` where both are 8. A plain number (2, 1/2) has no meaning.
    """

    raw: float
    snapped: float | None = None
    meanings: tuple[str, ...] = ()

    @property
    def value(self) -> float:
        """The snapped number, else the raw one."""
        return self.raw if self.snapped is None else self.snapped


@dataclass(frozen=True, slots=True)
class Order:
    """How the candidate's slices stand: slice i along `dimension` is the reference's slice permutation[i].

    `moved` of `length` slices are elsewhere. `shift` is that of a roll (candidate[i] = reference[i - shift]). `block`
    slices stay together. `outer`, `first` and `second` are a, b and c of an axis a x b x c x block that became
    a x c x b x block. `parts` are the widths, in blocks, of what each of `first` groups holds. `examples` are pairs
    (place in the candidate, place in the reference) of the first slices that moved.
    """

    dimension: int
    how: OrderKind
    moved: int
    length: int
    shift: int = 0
    block: int = 1
    outer: int = 1
    first: int = 1
    second: int = 1
    parts: tuple[int, ...] = ()
    examples: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """Where two tensors differ: `count` elements (dimension None, row-major numbers) or slices along a dimension.

    `indices` are the first of them; where they follow on one another, `run` is (start, stop), else None.
    """

    count: int
    dimension: int | None = None
    indices: tuple[int, ...] = ()
    run: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Relation:
    """What the candidate's tensor is to the reference's.

    `relative_l2` is ||candidate - reference|| / ||reference|| (None where shapes differ), `residual` what the kind
    leaves unexplained, relative to the candidate's norm, `noise` the calibrated relative L2 that was allowed. Set where
    they say something: `factor` (scaled, stale with a factor), `side` (all zero, nonfinite, not loaded: of which run;
    cast: which run holds the rounded values), `format` (cast: through which dtype), `order` (permuted), `part` (few
    elements, few slices), `offset` (the constant that was added), `earlier` (stale: the name of the earlier tensor),
    `axes` (transposed: numpy's transpose argument), `note` (a fact beside: what cannot be told, or is true too).
    """

    kind: RelationKind
    basis: Basis
    reference: Contents
    candidate: Contents
    relative_l2: float | None = None
    residual: float | None = None
    noise: float = 0.0
    correlation: float | None = None
    factor: Factor | None = None
    side: Side | None = None
    format: str = ""
    order: Order | None = None
    part: Part | None = None
    offset: float | None = None
    earlier: str = ""
    axes: tuple[int, ...] = ()
    note: str = ""

    @property
    def agrees(self) -> bool:
        """Whether nothing is wrong with the tensor."""
        return self.kind in AGREEING


class ModelKind(Word):
    """What one model's tensors are to another's, as one answer."""

    EQUAL = "equal"
    WITHIN_NOISE = "within noise"
    OTHER_SEED = "other seed"
    NOT_LOADED = "not loaded"
    PARTIALLY_LOADED = "partially loaded"
    PERMUTED_KEYS = "permuted keys"
    SCALED = "scaled"
    SIGN_FLIPPED = "sign flipped"
    STALE = "stale"
    CAST = "cast"
    ALL_ZERO = "all zero"
    NONFINITE = "nonfinite"
    REORDERED = "reordered"
    SOME_TENSORS = "some tensors"
    DRIFTED = "drifted"
    UNRELATED = "unrelated"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ModelRelation:
    """One answer for all tensors of a model.

    `names` are the tensors that the answer is about, `kinds` what they are each by itself, `others` those that differ
    in another way (by kind), `equal` how many agree, `total` how many pairs there were. `factor` is the median factor
    (scaled), with the greatest deviation of one tensor in `spread`. `side` is the run that was not loaded, is all zero,
    cast or non-finite. `keys` are pairs (name in the reference, name in the candidate) of tensors that hold the same
    values under other names. `format` and `earlier` as in Relation. `missing` and `extra` are names without a partner
    that no key explains. `note` is a fact beside.
    """

    kind: ModelKind
    total: int
    equal: int
    names: tuple[str, ...] = ()
    kinds: Mapping[RelationKind, tuple[str, ...]] = field(default_factory=dict)
    others: Mapping[RelationKind, tuple[str, ...]] = field(default_factory=dict)
    factor: Factor | None = None
    spread: float | None = None
    side: Side | None = None
    keys: tuple[tuple[str, str], ...] = ()
    format: str = ""
    earlier: str = ""
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    note: str = ""
