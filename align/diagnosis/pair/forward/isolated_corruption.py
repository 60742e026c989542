"""AL404: some elements side by side in memory hold something else, and all around them agrees."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.pair.forward import forward_cause, wrong_elements
from align.diagnosis.registry import rule
from align.records import Finding, Origin, Phase, Severity
from align.sentences import say
from align.walk import Suspect

CODE = "AL404"
LABEL = "isolated-corruption"

BLOCKING = {
    "npu": "`ASCEND_LAUNCH_BLOCKING=1` and `PYTORCH_NO_NPU_MEMORY_CACHING=1`",
    "cuda": "`CUDA_LAUNCH_BLOCKING=1` and `PYTORCH_NO_CUDA_MEMORY_CACHING=1`",
}
ANY_BLOCKING = "blocking launches and without caching memory"


@rule(CODE, LABEL, rank=48)
def find(walk: Walk) -> Iterator[Finding]:
    """The first difference, where it is a run of foreign elements in an otherwise right tensor."""
    first = walk.first
    if first is None or walk.wrong_part is None or not forward_cause.is_isolated(walk):
        return
    comparison = first.comparison
    evidence = telling.evidence_of(comparison) | wrong_elements.evidence(walk.wrong_part)
    evidence["similarity"] = walk.wrong_part.similarity
    yield Finding(
        CODE,
        LABEL,
        Severity.ERROR,
        say(
            "{}: {} is the first tensor that differs ({}).{} {}",
            telling.opening(comparison.key),
            telling.tensor(comparison.key),
            telling.amount(comparison),
            wrong_elements.told(walk.wrong_part),
            _meaning(walk, first),
        ),
        _advice(walk, first),
        telling.place_of(comparison.key),
        evidence,
        {**telling.arguments_of(first), "run": list(walk.wrong_part.run or ())},
    )


def _meaning(walk: Walk, first: Suspect) -> str:
    key = first.comparison.key
    run = (walk.wrong_part.run if walk.wrong_part is not None else None) or (0, 0)
    looks = "That is what memory looks like that was written or used again by something else"
    if run[1] - run[0] == 1:
        looks = "That is what a bit that flipped looks like, or memory that something else wrote"
    if _was_the_same(first):
        return say(
            "In the reference it is the very tensor that {} gave. {}.", first.sibling or "an earlier module", looks
        )
    if key.phase in {Phase.GRADIENT, Phase.UPDATE}:
        buffer = " (a gradient buffer before its stream was done, for example)" if run[1] - run[0] > 1 else ""
        return say("What it is made from agrees. {}{}.", looks, buffer)
    return say("{}.", looks)


def _was_the_same(first: Suspect) -> bool:
    """Whether the tensor is one that a module gave in the reference, and another one in the candidate."""
    ours, theirs = first.comparison.reference, first.comparison.candidate
    return first.origin is Origin.FUNCTIONAL and ours.same_as is not None and theirs.same_as is None


def _advice(walk: Walk, first: Suspect) -> str:
    device = walk.candidate.device_type
    how = say("with {}", BLOCKING[device]) if device in BLOCKING else say("with {}", ANY_BLOCKING)
    count = walk.wrong_part.count if walk.wrong_part is not None else 0
    return say(
        "Repeat the candidate {}: if {} then agree{}, look for a buffer that is used again before its stream is "
        "done (communication, prefetching, custom operators). Watching slows a run and can hide such a race: repeat "
        "the capture several times. Else look for code that treats a part of {} of {} otherwise (a shard, a mask).",
        how,
        wording.plural(count, "element"),
        say("s") if count == 1 else "",
        first.comparison.key.slot,
        first.comparison.key.name,
    )
