"""AL406: nothing differs beyond rounding, and what could have been seen."""

from __future__ import annotations

import math
from collections.abc import Iterator

from align import wording
from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.pair.forward.enlarged_rounding import find_enlarged
from align.diagnosis.registry import rule
from align.records import Aspect, Comparison, Finding, Phase, Place, Severity, Status
from align.sentences import capital, joined, say
from align.walk import share_of_limit

CODE = "AL406"
LABEL = "within-noise"

LARGE = 0.5
"""A module output that differs by half is worth a word, whatever it inherits."""

FINE = frozenset({"fp32", "fp64"})

GIVEN = frozenset({Phase.INIT, Phase.INPUT})
"""What has to be equal; the limit does not hold for it."""

ASPECTS = {
    Aspect.SCALE: " in a common factor",
    Aspect.SHIFT: " in a constant",
    Aspect.PEAK: " in a few elements",
    Aspect.CHANNEL: " in one channel",
}
"""Of the size of a difference nothing need be said."""

REPLAY = "replay"
"""How the method of a floor begins where limits differ from tensor to tensor."""


@rule(CODE, LABEL, rank=90)
def find(walk: Walk) -> Iterator[Finding]:
    """The largest difference of an aligned pair and the smallest effect that would have been called one."""
    if walk.first is not None:
        return
    judged = walk.judged
    largest = _nearest_to_limit(walk)
    effect, precision = walk.resolution.smallest_visible_effect, walk.resolution.precision
    yield Finding(
        CODE,
        LABEL,
        Severity.NOTE,
        _summary(walk, len(judged), largest),
        _advice(walk, _notes(walk)),
        telling.place_of(largest.key) if largest is not None else Place(),
        {
            "judged": len(judged),
            "equal": sum(comparison.status is Status.EQUAL for comparison in judged),
            "largest_times_floor": largest.times_floor if largest is not None else 0.0,
            "limit": largest.limit if largest is not None else None,
            "aspect": str(largest.aspect) if largest is not None else None,
            "lowest_limit": _lowest_limit(walk, largest),
            "smallest_visible_effect": effect,
            "notes": list(_notes(walk)),
        },
        {
            "judged": len(judged),
            "steps": list(walk.steps),
            "times_floor": largest.times_floor if largest is not None else None,
            "name": largest.key.name if largest is not None else "",
            "slot": largest.key.slot if largest is not None else "",
            "aspect": str(largest.aspect) if largest is not None else "",
            "precision": precision,
            "effect": effect,
        },
    )
    enlarged = find_enlarged(walk, CODE, LABEL)
    if enlarged is not None:
        yield enlarged


def _notes(walk: Walk) -> tuple[str, ...]:
    """What was not judged, and what to do about it."""
    lost = [
        comparison
        for comparison in walk.comparisons
        if comparison.status is Status.NOT_JUDGED
        and comparison.key.phase in {Phase.FORWARD, Phase.LOSS}
        and (comparison.relative_l2 or 0.0) >= LARGE
    ]
    moved = {each.key.step + 1 for each in walk.comparisons if each.key.phase is Phase.PARAM and each.relative_l2}
    notes = list(walk.notes)
    for because, steps in (
        (" because the parameters they start from differ. Compare weight decay and optimizer settings", moved),
        (", where rounding alone may cause as much", {each.key.step for each in lost} - moved),
    ):
        here = [comparison for comparison in lost if comparison.key.step in steps]
        if here:
            largest = max(comparison.relative_l2 or 0.0 for comparison in here)
            notes.append(
                say(
                    "In {} {} of the forward pass {} by up to {} and {} not judged{}.",
                    wording.steps(each.key.step for each in here),
                    wording.plural(len(here), "tensor"),
                    "differs" if len(here) == 1 else "differ",
                    wording.relative(largest),
                    "was" if len(here) == 1 else "were",
                    because,
                )
            )
    return tuple(notes)


def _nearest_to_limit(walk: Walk) -> Comparison | None:
    """The difference that comes nearest to its limit, in its size or another aspect; what is given has limits apart."""
    within = [each for each in walk.judged if each.status is Status.WITHIN]
    within += [result.nearest for result in walk.results if result.nearest is not None]
    computed = [each for each in within if each.key.phase not in GIVEN]
    return max(computed or within, key=share_of_limit, default=None)


def _lowest_limit(walk: Walk, largest: Comparison | None) -> float | None:
    """The `--limit` down to which the runs are aligned; all limits of computed tensors grow and shrink with it."""
    if largest is None or largest.key.phase in GIVEN or walk.resolution.floor_method.startswith(REPLAY):
        return None
    return share_of_limit(largest) * walk.judging.limit


def _has_one_limit(walk: Walk, largest: Comparison) -> bool:
    """Whether all that was computed stays below one number: few elements and measured floors have other limits."""
    limit = walk.judging.limit
    computed = (each for each in walk.judged if each.key.phase not in GIVEN)
    return largest.limit == limit and all((each.times_floor or 0.0) <= limit for each in computed)


def _summary(walk: Walk, judged: int, largest: Comparison | None) -> str:
    steps = wording.steps(walk.judged_steps or walk.steps)
    if judged == 0:
        return say("No tensor of {} could be judged.", steps)
    tensors = wording.plural(judged, "tensor")
    if not walk.enough_judged:
        agree = "it agrees" if judged == 1 else "they agree"
        if not walk.judged_steps:
            return say(
                "Only what the runs were given could be judged ({} of {}); {}.",
                tensors,
                wording.steps(walk.steps),
                agree,
            )
        return say("Only {} of {} could be judged; {}.", tensors, wording.steps(walk.steps), agree)
    return say("{}{}", _agreement(walk, say("{} over {}", tensors, steps), largest), _left_out(walk))


def _agreement(walk: Walk, tensors: str, largest: Comparison | None) -> str:
    effect, precision = walk.resolution.smallest_visible_effect, walk.resolution.precision
    if walk.statistics_only:
        return say(
            "Aligned as far as statistics can show: the sizes of {} agree within the floor; signs and order were "
            "not compared.",
            tensors,
        )
    if precision not in FINE and effect is not None:
        return say(
            "Aligned as far as {} can show: an effect below {} of a module's output would not have been seen{}.",
            precision,
            wording.percent(effect),
            _of_factors(walk),
        )
    if largest is None:
        return say("Aligned: {} are equal.", tensors)
    if not largest.times_floor:
        return say("Aligned: {} agree as closely as sketches can tell.", tensors)
    times = wording.times(largest.times_floor)
    where = say("{} at {}", ASPECTS.get(largest.aspect, ""), telling.tensor(largest.key))
    if _has_one_limit(walk, largest):
        limit = say("the limit of {}x the floor", f"{walk.judging.limit:g}")
        return say("Aligned: {} stay below {}; the largest is {}{}.", tensors, limit, times, where)
    return say(
        "Aligned: {} stay below their limits; the nearest to its own is {} of {}{}.",
        tensors,
        times,
        wording.times(largest.limit),
        where,
    )


def _of_factors(walk: Walk) -> str:
    """A common factor stands out from rounding earlier than other effects do."""
    factor, effect = walk.resolution.smallest_visible_factor, walk.resolution.smallest_visible_effect
    if factor is None or effect is None or factor > effect / 2.0:
        return ""
    return say("; a common factor that is {} off would have been", wording.percent(factor))


def _left_out(walk: Walk) -> str:
    """The steps and the passes of which nothing was judged."""
    missing = [step for step in walk.steps if step not in walk.judged_steps]
    told = say(" {} could not be judged.", capital(wording.steps(missing))) if missing and walk.judged_steps else ""
    if not any(each.key.phase in {Phase.BACKWARD, Phase.GRADIENT} for each in walk.judged):
        told = joined("", (told, " Gradients were not compared."))
    if not any(each.key.phase is Phase.FORWARD for each in walk.judged):
        told = joined("", (told, " The forward pass was not compared."))
    return told


def _advice(walk: Walk, notes: tuple[str, ...]) -> str:
    precision = walk.resolution.precision
    asked = [run.modules_requested for run in (walk.reference, walk.candidate)]
    if asked[0] != asked[1] and not _any_output(walk):
        ours, theirs = (wording.listing([f"'{glob}'" for glob in globs]) or "all modules" for globs in asked)
        return say(
            "Capture both runs with the same --modules: no module is in both captures (the reference was captured "
            "with {}, the candidate with {}).",
            ours,
            theirs,
        )
    if walk.statistics_only:
        return joined(" ", (telling.STATISTICS_ADVICE, *notes))
    finer = "" if precision in FINE else say("Repeat both runs in fp32 to see smaller effects{}.", _of_gradients(walk))
    return joined(" ", filter(None, (finer, *notes))) if finer or notes else "Nothing to do for these steps."


def _any_output(walk: Walk) -> bool:
    """Whether any tensor that a module made was paired."""
    return any(each.key.phase in {Phase.FORWARD, Phase.BACKWARD, Phase.GRADIENT} for each in walk.comparisons)


def _of_gradients(walk: Walk) -> str:
    """What is said of module outputs does not hold for parameter gradients, which cancel."""
    effects = sorted(
        comparison.limit * comparison.floor
        for comparison in walk.results[0].comparisons
        if comparison.key.phase is Phase.GRADIENT
        and comparison.status in {Status.EQUAL, Status.WITHIN}
        and math.isfinite(comparison.floor)
    )
    if not effects:
        return ""
    typical = effects[len(effects) // 2]
    if typical >= 1.0:
        return "; of a parameter's gradient, only an effect as large as itself would have been seen"
    return say("; of a parameter's gradient, one below {} would not have been seen", wording.percent(typical))
