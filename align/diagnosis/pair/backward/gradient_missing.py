"""AL408: parameters that get a gradient in one run only."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.registry import rule
from align.gradient_gaps import GradientGap
from align.hyperparameters import group_of
from align.optimizer_replay import groups_of
from align.records import Finding, Phase, Severity
from align.sentences import joined, say

CODE = "AL408"
LABEL = "gradient-missing"

EXAMPLES = 5
SIDES = ("reference", "candidate")


@rule(CODE, LABEL, rank=49)
def find(walk: Walk) -> Iterator[Finding]:
    """The gradients of parameters that one run did not make, or its optimizer did not get, where the runs part."""
    for gap in walk.gradient_gaps:
        parts_here = walk.first is gap.suspect
        key = gap.suspect.comparison.key
        yield Finding(
            CODE,
            LABEL,
            Severity.ERROR if parts_here else Severity.WARNING,
            say("{}: {}", telling.opening(key), _what(walk, gap)),
            _advice(gap),
            telling.place_of(key, gap.owners[0][0]),
            {
                "missing_in": SIDES[gap.by_candidate],
                "parameters": len(gap.owners),
                "with_gradient": gap.total,
                "examples": [joined(" ", owner) for owner in gap.owners[:EXAMPLES]],
                "nothing_before": gap.cut,
                "gradient_of_output_seen": gap.reached,
                "stops_at": gap.stops_at,
                "held_by_optimizer": _is_held(walk, gap),
            },
            {
                "step": key.step,
                "micro": key.micro,
                "side": SIDES[gap.by_candidate],
                "name": gap.owners[0][0],
                "parameters": len(gap.owners),
                "total": gap.total,
            },
        )


def _what(walk: Walk, gap: GradientGap) -> str:
    side, name = SIDES[gap.by_candidate], gap.owners[0][0]
    share = say("{} of {}", wording.count(len(gap.owners)), wording.count(gap.total))
    many = len({owner[0] for owner in gap.owners}) > 1
    if gap.phase is Phase.UPDATE:
        return say(
            "the optimizer of the {} gets no gradient of {} ({} parameters), though the backward of both runs made "
            "{}: it was dropped before the update.",
            side,
            _listed(gap),
            share,
            say("one of each" if len(gap.owners) > 1 else "one"),
        )
    if gap.cut and many:
        start = say(
            "from {} back to the inputs no parameter gets a gradient in the {} ({})", gap.stops_at or name, side, share
        )
    else:
        start = say(
            "{} {} no gradient in the {} ({} parameters)",
            _listed(gap),
            "get" if len(gap.owners) > 1 else "gets",
            side,
            share,
        )
    return say("{}. {}", start, _why(walk, gap, name))


def _listed(gap: GradientGap) -> str:
    names = [joined(" ", owner) for owner in gap.owners]
    return wording.listing(names[: 2 if len(names) > 3 else 3], len(names))  # noqa: PLR2004


def _why(walk: Walk, gap: GradientGap, name: str) -> str:
    """What the other gradients say of the cause."""
    side = SIDES[gap.by_candidate]
    if gap.reached:
        held = "" if _is_held(walk, gap) is not False else say(" The optimizer of the {} does not hold it.", side)
        return say(
            "The gradient of the output of {} comes there in both runs: what the {} lacks is frozen "
            "(requires_grad=False) or used detached (detach, .data, no_grad).{}",
            name,
            side,
            held,
        )
    if gap.reached is None:
        which = "It is" if len(gap.owners) == 1 else "They are"
        return say(
            "{} frozen there (requires_grad=False), used detached (detach, .data, no_grad), or not used at all.", which
        )
    stops_at = gap.stops_at or name
    return say(
        "The backward of the {} does not reach the output of {}: it is detached or made without gradient (detach, "
        "no_grad), or {} is frozen with all before it.",
        side,
        stops_at,
        stops_at,
    )


def _advice(gap: GradientGap) -> str:
    side, name = SIDES[gap.by_candidate], gap.owners[0][0]
    if gap.phase is Phase.UPDATE:
        return say(
            "Look in the {} for what happens between backward and the optimizer's step: zero_grad, `grad = None`, "
            "groups, hooks.",
            side,
        )
    after = name if gap.reached else say("{} and the code that uses its output", gap.stops_at or name)
    return say(
        "Look in the {} at {}: detach(), .data, torch.no_grad(), requires_grad_(False), non-differentiable "
        "operators, checkpointing of inputs without gradient.",
        side,
        after,
    )


def _is_held(walk: Walk, gap: GradientGap) -> bool | None:
    """Whether the optimizer of the run that lacks the gradient holds the first parameter, None where unknown."""
    step = gap.suspect.comparison.key.step
    facts = (walk.candidate_facts if gap.by_candidate else walk.reference_facts).get(step, ())
    groups = groups_of(facts)
    if not groups:
        return None
    comparison = gap.suspect.comparison
    key = (comparison.candidate if gap.by_candidate else comparison.reference).key
    return group_of(key.owner, groups) is not None
