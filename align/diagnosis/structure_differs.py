"""AL105: modules, parameters, calls or outputs that only one run has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from align import wording
from align.comparison import Walk
from align.diagnosis.registry import rule
from align.records import Finding, Phase, Place, Severity, TensorKey

CODE = "AL105"
LABEL = "structure-differs"

EXAMPLES = 5


@rule(CODE, LABEL, rank=63)
def find(walk: Walk) -> Iterator[Finding]:
    """Names without a partner, and outputs of paired names that only one run made."""
    ours, theirs = walk.names.only_reference, walk.names.only_candidate
    calls = _calls(walk, walk.only_reference, ours), _calls(walk, walk.only_candidate, theirs)
    if not (ours or theirs or calls[0] or calls[1]):
        return
    yield Finding(
        CODE,
        LABEL,
        Severity.NOTE if walk.first is None else Severity.WARNING,
        f"The structure of the runs differs: {wording.listing(list(_parts((ours, theirs), calls)))}.",
        "Build both models from one configuration; pair renamed modules with `align diff --rename OLD=NEW`.",
        Place(),
        {
            "only_reference": list(ours[:EXAMPLES]),
            "only_candidate": list(theirs[:EXAMPLES]),
            "only_reference_count": len(ours),
            "only_candidate_count": len(theirs),
            "outputs_only_reference": calls[0][:EXAMPLES],
            "outputs_only_candidate": calls[1][:EXAMPLES],
        },
        {"only_reference": len(ours), "only_candidate": len(theirs)},
    )


def _parts(names: tuple[tuple[str, ...], tuple[str, ...]], calls: tuple[list[str], list[str]]) -> Iterator[str]:
    for found, side in zip(names, ("reference", "candidate"), strict=True):
        if found:
            yield f"{wording.plural(len(found), 'name')} only in the {side} (such as {found[0]})"
    for made, side in zip(calls, ("reference", "candidate"), strict=True):
        if made:
            yield f"{wording.plural(len(made), 'output')} only in the {side} (such as {made[0]})"


def _calls(walk: Walk, keys: Iterable[TensorKey], unpaired: Iterable[str]) -> list[str]:
    """Outputs of paired names; a gradient that one run did not see is no difference."""
    names = frozenset(unpaired)
    paired = {_call(comparison.key) for comparison in walk.comparisons if comparison.key.phase is Phase.FORWARD}
    found: dict[str, None] = {}
    for key in keys:
        if key.phase is Phase.FORWARD and key.name not in names and key.slot.startswith("output"):
            whole = f"call {key.call} of {key.name} in {wording.step(key.step, key.micro)}"
            found[f"{key.name} {key.slot}" if _call(key) in paired else whole] = None
    return list(found)


def _call(key: TensorKey) -> tuple[int, int, str, int]:
    return (key.step, key.micro, key.name, key.call)
