"""Parameters of which a rank holds only a part: they have another shape than the whole and say nothing about it."""

from __future__ import annotations

from dataclasses import replace

from align.pairing import Pair, PairedStep
from align.records import Phase

SHARD = "Shard("
"""In the layout of a distributed tensor that is split."""

PARAMETERS = frozenset({Phase.INIT, Phase.GRADIENT, Phase.UPDATE, Phase.PARAM})


def set_shards_aside(paired: PairedStep, worlds: tuple[int, int]) -> PairedStep:
    """The step without the pairs of other shapes of which one side is a shard; they stand in `shards`.

    Their layout says so, or all parameters whose shapes differ have one dimension in a run of several ranks while the
    other run has more of them: FSDP of the first generation cuts parameters out of one long vector. `worlds` are the
    numbers of ranks of both runs.
    """
    differing = [pair for pair in paired.pairs if not pair.same_shape]
    if not differing:
        return paired
    parameters = [pair for pair in differing if pair.key.phase in PARAMETERS]
    flat = any(worlds[side] > 1 and _are_flat(parameters, side) for side in (0, 1))
    shards = [pair for pair in differing if _is_split(pair) or (flat and pair.key.phase in PARAMETERS)]
    gone = {pair.reference.order for pair in shards}
    pairs = tuple(pair for pair in paired.pairs if pair.reference.order not in gone)
    return replace(paired, pairs=pairs, shards=tuple(shards)) if shards else paired


def _is_split(pair: Pair) -> bool:
    return any(SHARD in each.layout for each in (pair.reference, pair.candidate))


def _are_flat(pairs: list[Pair], side: int) -> bool:
    """Whether one side has vectors only where the other has matrices too."""
    shapes = [(pair.reference.shape, pair.candidate.shape) for pair in pairs]
    return all(len(each[side]) == 1 for each in shapes) and any(len(each[1 - side]) > 1 for each in shapes)
