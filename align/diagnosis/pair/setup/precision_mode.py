"""AL102: the runs compute in different precision: autocast, TF32 or HF32, reduced reductions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from align import wording
from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.registry import rule
from align.records import Comparison, Finding, Phase, Place, Severity, Status
from align.sentences import say
from align.tolerance import FLOAT32, HF32, LIMIT, TF32, conv_precision, matmul_precision

CODE = "AL102"
LABEL = "precision-mode-differs"

REDUCED_REDUCTIONS = ("allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction")


@rule(CODE, LABEL, rank=62)
def find(walk: Walk) -> Iterator[Finding]:
    """Every mode that differs; a warning where the runs part, else a note."""
    modes = _differences(walk)
    if not modes:
        return
    seen = _first_seen(walk, modes)
    told = [say("{} {} against {}", name, ours, theirs) for name, (ours, theirs) in modes.items()]
    yield Finding(
        CODE,
        LABEL,
        Severity.NOTE if walk.first is None else Severity.WARNING,
        say(
            "The runs compute in different precision: {} (reference against candidate).{}",
            wording.listing(told),
            _tell_seen(seen),
        ),
        "Give both runs one precision before judging small differences: the same autocast dtype, TF32 and HF32 both "
        "off or both on.",
        Place() if seen is None else telling.place_of(seen.key),
        {name: list(pair) for name, pair in modes.items()},
        {"modes": {name: list(pair) for name, pair in modes.items()}},
    )


def _first_seen(walk: Walk, modes: Mapping[str, tuple[str, str]]) -> Comparison | None:
    """The first output of a matrix product or convolution in another mode that differs by more than float32 rounds."""
    for comparison in walk.comparisons:
        key = comparison.key
        module = walk.modules.get(key.name)
        if key.phase is not Phase.FORWARD or not key.slot.startswith("output") or module is None or not module.leaf:
            continue
        in_mode = (module.matmul and "matrix products" in modes) or (module.conv and "convolutions" in modes)
        if (comparison.relative_l2 or 0.0) > LIMIT * FLOAT32.unit:
            shortened = comparison.unit == TF32.unit == HF32.unit and comparison.status is Status.WITHIN
            return comparison if in_mode and shortened else None
    return None


def _tell_seen(seen: Comparison | None) -> str:
    if seen is None:
        return ""
    return say(
        " It is first seen in {}, at {}: relative L2 {}, as such operands leave it.",
        telling.point(seen.key),
        telling.tensor(seen.key),
        wording.relative(seen.relative_l2),
    )


def _differences(walk: Walk) -> dict[str, tuple[str, str]]:
    found = {"autocast": (_autocast(walk.reference.autocast), _autocast(walk.candidate.autocast))}
    modules = walk.modules.values()
    if any(module.matmul for module in modules):
        found["matrix products"] = (matmul_precision(walk.reference).name, matmul_precision(walk.candidate).name)
    if any(module.conv for module in modules):
        found["convolutions"] = (conv_precision(walk.reference).name, conv_precision(walk.candidate).name)
    if walk.reference.device_type == walk.candidate.device_type:
        found |= _reductions(walk.reference.flags, walk.candidate.flags)
    # Both shorten float32 to 11 bits: TF32 by cutting or rounding, HF32 by rounding.
    alike = {frozenset({"TF32", "HF32"})}
    return {name: pair for name, pair in found.items() if pair[0] != pair[1] and frozenset(pair) not in alike}


def _reductions(ours: Mapping[str, object], theirs: Mapping[str, object]) -> dict[str, tuple[str, str]]:
    return {
        name: (str(ours[name]), str(theirs[name]))
        for name in ours
        if name in theirs and name.endswith(REDUCED_REDUCTIONS)
    }


def _autocast(dtype: str | None) -> str:
    return say("off") if dtype is None else wording.dtype(dtype)
