"""AL110: operators that the device left to the CPU."""

from __future__ import annotations

import re
from collections.abc import Iterator

from align import wording
from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.registry import rule
from align.records import Finding, Origin, Place, RunInfo, Severity
from align.sentences import joined, say

CODE = "AL110"
LABEL = "cpu-fallback"

EXAMPLES = 5


@rule(CODE, LABEL, rank=70)
def find(walk: Walk) -> Iterator[Finding]:
    """The operators of each run that ran on the CPU for its device; a warning where the first difference is one's."""
    sides = [(side, run) for side, run in (("reference", walk.reference), ("candidate", walk.candidate))]
    found = [(side, run) for side, run in sides if run.fallbacks]
    if not found:
        return
    at_first = _at_first(walk, {name for _, run in found for name in run.fallbacks})
    first = walk.first if at_first else None
    told = joined("; ", (_told(side, run) for side, run in found))
    where = ""
    if first is not None:
        name = first.comparison.key.name
        where = say(" The first difference is made by such an operator: {} runs {}.", name, at_first)
    yield Finding(
        CODE,
        LABEL,
        Severity.NOTE if first is None else Severity.WARNING,
        say("Operators that the device has no kernel for ran on the CPU: {}.{}", told, where),
        _advice(found[0][1], at_first=bool(at_first)),
        Place() if first is None else telling.place_of(first.comparison.key),
        {side: dict(list(run.fallbacks.items())) for side, run in found},
        {"operator": at_first, **{side: list(run.fallbacks) for side, run in found}},
    )


def _told(side: str, run: RunInfo) -> str:
    """`3 calls of aten::gelu and aten::histc on npu in the candidate`."""
    names = list(run.fallbacks)
    listed = wording.listing(names[:EXAMPLES], len(names))
    calls = sum(run.fallbacks.values())
    counted = say(" ({} in the first captured step)", wording.plural(calls, "call")) if calls else ""
    return say("{} in the {}{}", listed, side, counted)


def _at_first(walk: Walk, operators: set[str]) -> str:
    """The operator of those that the module which made the first difference is named after, empty where none is."""
    first = walk.first
    if first is None or first.statistics_only or first.origin is not Origin.MODULE:
        return ""
    module = walk.modules.get(first.comparison.key.name)
    if module is None or not module.leaf:
        return ""
    name = _plain(module.class_name)
    return next(
        (operator for operator in sorted(operators) if _plain(operator.rpartition("::")[2].partition(".")[0]) == name),
        "",
    )


def _plain(name: str) -> str:
    return re.sub(r"_backward|[_\d]", "", name.lower())


def _advice(run: RunInfo, *, at_first: bool) -> str:
    text = (
        "They compute as the CPU does, and cost copies to and from it in every call. "
        "`TORCH_NPU_FALLBACK_CPU_DISABLE=1` stops at the first, to find its caller; replace it by operators that the "
        "device has."
        if run.device_type == "npu"
        else "They compute as the CPU does, and cost copies to and from it in every call; replace them where that "
        "takes time."
    )
    return (
        text
        if not at_first
        else say("Look at what is copied for it (dtype, layout, views) before its kernel. {}", text)
    )
