"""What other tools would say of the same pairs: their thresholds, on the values, in execution order.

Each names the first tensor that fails. They are given what they do not have: inputs and gradients are attributed as
`align` does (an input to the code of the parent), and only the first step is looked at, since at the second the
parameters differ by Adam's first step in every healthy pair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import align
from align.capture_file import Capture
from align.records import Phase, TensorRecord
from benchmarks.localization.judging import Judgement
from benchmarks.localization.plan import Pair

Floats = NDArray[np.float64]
Fails = Callable[[Floats, Floats, str], bool]

SEEN = frozenset({Phase.FORWARD, Phase.LOSS, Phase.BACKWARD, Phase.GRADIENT})

ASSERT_CLOSE = {"float32": (1.3e-6, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float16": (1e-3, 1e-5)}
"""Relative and absolute tolerance of torch.testing.assert_close by dtype (torch/testing/_comparison.py)."""


def _cosine(a: Floats, b: Floats) -> float:
    norms = float(np.sqrt(np.dot(a, a)) * np.sqrt(np.dot(b, b)))
    return float(np.dot(a, b)) / norms if norms else float(np.array_equal(a, b))


def _msprobe(a: Floats, b: Floats, dtype: str) -> bool:
    """The compare of msprobe: No if (cosine < 0.99 and MaxAbsErr > 0.001) or cosine < 0.9 or MaxAbsErr > 1."""
    del dtype
    cosine, largest = _cosine(a, b), float(np.abs(b - a).max(initial=0.0))
    return (cosine < 0.99 and largest > 0.001) or cosine < 0.9 or largest > 1.0


def _assert_close(a: Floats, b: Floats, dtype: str) -> bool:
    relative, absolute = ASSERT_CLOSE.get(dtype, ASSERT_CLOSE["float32"])
    return bool((np.abs(b - a) > absolute + relative * np.abs(a)).any())


def _cosine_alone(a: Floats, b: Floats, dtype: str) -> bool:
    del dtype
    return not _cosine(a, b) > 0.99


RULES: dict[str, Fails] = {
    "msprobe compare": _msprobe,
    "torch assert_close": _assert_close,
    "cosine > 0.99": _cosine_alone,
}


def judge(pair: Pair, work: Path) -> dict[str, Judgement]:
    """What each peer says of a pair of captures that hold values."""
    found: dict[str, Judgement] = {}
    with align.open(work / pair.reference) as reference, align.open(work / pair.candidate) as candidate:
        for ours, theirs in _answers(reference, candidate):
            both = _finite(_values(reference, ours), _values(candidate, theirs))
            for rule, fails in RULES.items():
                if rule not in found and (both is None or fails(*both, ours.dtype)):
                    found[rule] = Judgement(pair, "diverged", *_blamed(ours))
            if len(found) == len(RULES):
                break
    return {rule: found.get(rule, Judgement(pair, "aligned")) for rule in RULES}


def _answers(reference: Capture, candidate: Capture) -> Iterator[tuple[TensorRecord, TensorRecord]]:
    theirs = {record.key: record for record in candidate.records(0)}
    for record in reference.records(0):
        answer = theirs.get(record.key)
        if answer is None or record.key.phase not in SEEN or record.recomputed:
            continue
        if record.has_values and answer.has_values and record.dtype in ASSERT_CLOSE:
            yield record, answer


def _values(capture: Capture, record: TensorRecord) -> Floats:
    return np.asarray(capture.values(record), dtype=np.float64).reshape(-1)


def _finite(a: Floats, b: Floats) -> tuple[Floats, Floats] | None:
    """The elements that are finite on both sides (masks are not); None where shapes or what is finite differ."""
    if a.shape != b.shape or not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return None
    kept = np.isfinite(a)
    return a[kept], b[kept]


def _blamed(record: TensorRecord) -> tuple[str, str]:
    key = record.key
    between = key.slot.startswith("input") if key.phase is Phase.FORWARD else key.slot.startswith("grad_output")
    return str(key.phase), record.within if between else key.name
