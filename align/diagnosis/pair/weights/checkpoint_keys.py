"""AL303: the keys of a checkpoint are not the names of the model, or weights stand under other names."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.comparison import Walk
from align.diagnosis.pair.weights import unlike
from align.diagnosis.registry import rule
from align.diagnosis.telling import Words
from align.loading import left_out, rename_advice, tell_load
from align.records import Finding
from align.relations import Side
from align.sentences import say

CODE = "AL303"
LABEL = "checkpoint-keys"


@rule(CODE, LABEL, rank=21)
def find(walk: Walk) -> Iterator[Finding]:
    """A load that left keys out on one side where weights differ, or the same weights under other names."""
    groups = unlike.groups(walk)
    drawn = (*groups.get(unlike.NOT_LOADED, ()), *groups.get(unlike.PARTIALLY, ()))
    side = unlike.left_out_side(walk)
    if drawn and side is not None and side in {walk.weights.model.side, None} | _untold(walk):
        yield _left_out(walk, drawn, side)
    elif walk.weights.keys_moved:
        names = groups.get(LABEL, ())
        if names:
            yield _moved(walk, names)


def _untold(walk: Walk) -> set[Side | None]:
    """Both sides where the weights do not tell which of them was drawn."""
    return {Side.REFERENCE, Side.CANDIDATE} if walk.weights.model.side is None else set()


def _left_out(walk: Walk, names: tuple[str, ...], side: Side) -> Finding:
    run = walk.reference if side is Side.REFERENCE else walk.candidate
    load = left_out(run.loads) or {}
    do = rename_advice(load)
    cure = say("{} before loading", do) if do else "Rename the keys as the model names them"
    return unlike.finding(
        walk,
        names,
        (CODE, LABEL),
        Words(
            say(
                "In the {} the keys of the checkpoint are not those of the model: {}. {} keep what they were drawn "
                "as. No module was judged.",
                side,
                tell_load(load),
                unlike.of_total(walk, names),
            ),
            say(
                "{}, and load with `strict=True`, which refuses keys that do not fit. {}",
                cure,
                unlike.same_weights(walk),
            ),
        ),
        {"side": str(side), "load": dict(load)},
    )


def _moved(walk: Walk, names: tuple[str, ...]) -> Finding:
    pairs = walk.weights.model.keys
    shown = [say("{} is {} there", ours, theirs) for ours, theirs in pairs[: unlike.NAMED]]
    return unlike.finding(
        walk,
        names,
        (CODE, LABEL),
        Words(
            say(
                "The candidate holds weights of the reference under other names: {}. No module was judged.",
                wording.listing(shown, len(pairs)),
            ),
            say(
                "Compare how both scripts map the keys of the checkpoint to the modules (numbers of layers, "
                "exchanged names, sorted lists); of weights that are drawn, the order in which the modules are "
                "made. {}",
                unlike.same_weights(walk),
            ),
        ),
        {"keys": [list(pair) for pair in pairs]},
    )
