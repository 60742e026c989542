"""AL201: the runs draw different random numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from align import sketch, wording
from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.pair.data import given
from align.diagnosis.pair.data.dropout_mask import draws_between, rate_inside
from align.diagnosis.pair.setup.structure_differs import draws_other_numbers
from align.diagnosis.registry import rule
from align.pairing import Pair
from align.records import Comparison, Finding, Phase, Place, Severity
from align.samples import SampleKind
from align.sentences import say, trimmed
from align.tolerance import is_float

CODE = "AL201"
LABEL = "seed-mismatch"

MOST = 0.8
SAME_SPREAD = 0.02
DEVIATIONS = 4.0
"""Two draws of one distribution: uncorrelated within four standard deviations, spreads within 2 %."""

STATE = "_state"
STATE_OF = "state of "


@rule(CODE, LABEL, rank=10)
def find(walk: Walk) -> Iterator[Finding]:
    """Weights that look like another draw, or seeds that were recorded and differ."""
    drawn_again = looks_like_another_seed(walk) and not draws_other_numbers(walk)
    seeds = _telling_seeds(walk, drawn_again=drawn_again)
    if not drawn_again and not seeds:
        return
    what = [say("the {} is {} and {}", name, ours, theirs) for name, (ours, theirs) in seeds.items()]
    if drawn_again:
        what.insert(0, say("the initial weights look like two draws of one distribution{}", _though(walk, seeds)))
    only_states = bool(seeds) and all(name.startswith(STATE_OF) for name in seeds)
    severity = _severity(walk, drawn_again=drawn_again, only_states=only_states)
    blame = "; no module can be blamed before the seeds agree" if severity is Severity.ERROR else ""
    yield Finding(
        CODE,
        LABEL,
        severity,
        say("The runs draw different random numbers ({}){}.", wording.listing(what), blame),
        trimmed(
            say(
                "Seed both runs the same, before the model is built and the data are shuffled: torch.manual_seed, "
                "random.seed and numpy.random.seed in the script, or `align capture --seed 1` where the script sets no "
                "seed. Devices draw different numbers from one seed. {}",
                telling.same_start_advice(walk),
            )
        ),
        telling.place_of(walk.first.comparison.key) if walk.first is not None and drawn_again else Place(),
        {"seeds": {name: list(pair) for name, pair in seeds.items()}, "weights_drawn_again": drawn_again},
        {"seeds": {name: list(pair) for name, pair in seeds.items()}, "weights_drawn_again": drawn_again},
    )


def looks_like_another_seed(walk: Walk) -> bool:
    """Whether most of the matrices that differ are uncorrelated draws of one spread, and vectors tell no checkpoint.

    Weights that stand elsewhere in the other run are uncorrelated, too, and no draws.
    """
    if walk.weights.tied or walk.weights.keys_moved:
        return False
    pairs = [found.pair for found in walk.unequal_weights]
    if not pairs or not all(pair.same_shape and is_float(pair.reference.dtype) for pair in pairs):
        return False
    matrices = [pair for pair in pairs if len(pair.reference.shape) > 1]
    if not matrices or any(_one_side_constant(pair) or telling.reordered(pair) for pair in pairs):
        return False
    return sum(_is_another_draw(pair) for pair in matrices) >= MOST * len(matrices)


def _is_another_draw(pair: Pair) -> bool:
    ours, theirs = pair.reference.stats, pair.candidate.stats
    left, right = sketch.sketch_of(pair.reference), sketch.sketch_of(pair.candidate)
    if ours is None or theirs is None or left is None or right is None:
        return False
    product = sketch.inner_product(left, right)
    spreads = [_spread(stats.total, stats.total_squares, stats.count) for stats in (ours, theirs)]
    if product is None or min(spreads) <= 0.0:
        return False
    count = ours.count
    correlation = (product / count - ours.mean * theirs.mean) / (spreads[0] * spreads[1])
    seen = count if left.exact else min(count, len(left.values))
    same_spread = abs(spreads[0] / spreads[1] - 1.0) <= SAME_SPREAD + DEVIATIONS / math.sqrt(count)
    return abs(correlation) <= DEVIATIONS / math.sqrt(seen) and same_spread


def _spread(total: float, squares: float, count: int) -> float:
    return math.sqrt(max(squares / count - (total / count) ** 2, 0.0)) if count else 0.0


def _one_side_constant(pair: Pair) -> bool:
    constant = [
        stats is not None and stats.minimum == stats.maximum for stats in (pair.reference.stats, pair.candidate.stats)
    ]
    return constant[0] != constant[1]


def _telling_seeds(walk: Walk, *, drawn_again: bool) -> dict[str, tuple[object, object]]:
    """The recorded seeds that differ. The states of generators tell something only where random things differ."""
    ours, theirs = walk.reference.seeds, walk.candidate.seeds
    differing = {name: (ours[name], theirs[name]) for name in ours if name in theirs and ours[name] != theirs[name]}
    seeds = {name: pair for name, pair in differing.items() if not name.endswith(STATE)}
    if seeds:
        return {name if "seed" in name else say("{} seed", name): pair for name, pair in seeds.items()}
    if drawn_again or not _batch_differs(walk):
        return {}
    return {say("{}{}", STATE_OF, name.removesuffix(STATE)): pair for name, pair in differing.items()}


def _though(walk: Walk, seeds: Mapping[str, object]) -> str:
    """A remark on seeds that agree all the same: one run has drawn more before, or on another kind of device."""
    ours, theirs = walk.reference.seeds.get("torch"), walk.candidate.seeds.get("torch")
    return (
        say(", though the last seed of torch is {} in both", ours)
        if not seeds and ours is not None and ours == theirs
        else ""
    )


def _batch_differs(walk: Walk) -> bool:
    """Whether the very first batches differ as chance makes them differ: other samples, or another order."""
    found = given.first_difference(walk)
    if found is None or found.key.phase is not Phase.INPUT or found.key.step != walk.results[0].step:
        return False
    explained = found.only_labels or found.agreeing or found.loaders_agree
    return not explained and found.kind not in {SampleKind.SHIFTED, SampleKind.GAPS}


def _severity(walk: Walk, *, drawn_again: bool, only_states: bool) -> Severity:
    """Seeds that differ matter where something random differs first; without a difference they are a fact.

    The states of python's and numpy's generators differ in every two runs that did not seed them, used or not: they
    may explain batches that differ, no more.
    """
    if walk.first is None:
        return Severity.NOTE
    if drawn_again:
        return Severity.ERROR
    if only_states:
        return Severity.WARNING
    if _batch_differs(walk):
        return Severity.ERROR
    by_masks = _masks_differ(walk, walk.first.comparison) or rate_inside(walk) > 0.0 or draws_between(walk)
    return Severity.ERROR if by_masks else Severity.WARNING


def _masks_differ(walk: Walk, comparison: Comparison) -> bool:
    """Whether a dropout drops elements in both runs; where only one run drops, no seed is the cause."""
    sides = (comparison.reference.stats, comparison.candidate.stats)
    both_drop = all(stats is not None and stats.zeros > 0 for stats in sides)
    return both_drop and telling.is_dropout(walk.modules.get(comparison.key.name))
