"""By how much code enlarges a relative difference: its condition number, estimated from what was captured.

Where large terms leave a small rest, the rest holds their absolute error. The forward alone shows that a result is
smaller than its source; the gradients of both show whether the code is steep there or only makes it small.
"""

from __future__ import annotations

import math

from align import metrics
from align.ahead import Ahead
from align.flow import CallErrors, width_of
from align.records import TensorRecord

UNKNOWN_STATISTICS = 8.0
"""For norms over channels or groups where no gradient tells their deviation."""

FEW_TERMS, OF_FEW_TERMS = 4, 64.0
"""A deviation of two numbers is as small as they are close."""

SAFETY = 2.0
"""A norm takes the mean of the gradient out, and its part along the output: what is left understates its slope."""

TABLE_LARGEST, TABLE_LOWEST, TABLE_RMS = 1.5, -0.5, 0.4
"""Sines and cosines reach from -1 to 1, some a little further (attention scaling), and are about 0.7 in the mean."""


def condition(source: TensorRecord | None, result: TensorRecord, ahead: Ahead) -> float:
    """||source|| * slope / ||result||, at least 1; 1 where the gradients are not known."""
    if source is None or source.stats is None or result.stats is None or not result.stats.norm > 0.0:
        return 1.0
    slope = ahead.slope(source, result)
    return 1.0 if slope is None else max(1.0, source.stats.norm * slope / result.stats.norm)


def of_norm(class_name: str, source: TensorRecord | None, result: TensorRecord, ahead: Ahead) -> float:
    """By how much a module that subtracts a mean or divides by a deviation enlarges the error of its input."""
    if source is None:
        return 1.0
    whole = metrics.cancellation(source)
    if 0 < norm_terms(class_name, source) <= FEW_TERMS:
        whole = max(whole, OF_FEW_TERMS)
    if ahead.slope(source, result) is not None:
        return max(whole, 1.0 + SAFETY * (condition(source, result, ahead) - 1.0))
    by_channel = any(word in class_name for word in ("BatchNorm", "GroupNorm", "InstanceNorm"))
    return max(whole, UNKNOWN_STATISTICS) if by_channel else whole


def norm_terms(class_name: str, source: TensorRecord | None) -> int:
    """Over how many elements a norm takes its mean, at most."""
    if source is None or not source.shape:
        return 0
    if "BatchNorm" in class_name:
        return source.numel // width_of(source.shape)
    if "GroupNorm" in class_name or "InstanceNorm" in class_name:
        return source.numel // max(source.shape[0], 1)
    return source.shape[-1]


def of_product(source: TensorRecord | None, matrix_norm: float, result: TensorRecord) -> float:
    """A product is as large as its factors where its terms are independent; where they cancel it is smaller."""
    if source is None or source.stats is None or result.stats is None or not result.stats.rms > 0.0:
        return 1.0
    # A strided convolution spreads each element over several results in one of its two directions.
    spread = _places(result) / max(_places(source), 1)
    usual = source.stats.rms * matrix_norm / math.sqrt(width_of(result.shape) * max(1.0, spread))
    return max(1.0, usual / result.stats.rms)


def _places(record: TensorRecord) -> int:
    return record.numel // width_of(record.shape)


def of_attention(class_name: str, input_rms: float) -> float:
    """By how much the softmax inside an attention that is one module enlarges the rounding of its scores.

    It turns their absolute error into a relative one, and the sharper it is the fewer of them count: the error grows as
    the root of the scores, that is as the size of what enters. Measured over 96 attentions of three sizes and inputs of
    rms 1 to 32: 0.4 to 0.7 times the rms.
    """
    return max(1.0, input_rms) if "Attention" in class_name else 1.0


def of_elementwise(source_norm: float, result: TensorRecord) -> float:
    """A saturated function leaves a gradient that is smaller than what entered, with the error of what entered."""
    norm = result.stats.norm if result.stats is not None else 0.0
    return max(1.0, source_norm / norm) if norm > 0.0 else 1.0


def of_own_code(result: TensorRecord, caller: CallErrors, ahead: Ahead, *, normalises: bool = False) -> float:
    """Code between children that subtracts one output from another, or a mean from one, leaves less than went in.

    `normalises` says that it is known to do the second.
    """
    size = result.stats.rms if result.stats is not None else 0.0
    if not size > 0.0 or result.same_as is not None:
        return 1.0
    found = 1.0
    for source in (*caller.sources, *([caller.main_input] if caller.main_input is not None else [])):
        if source.numel != result.numel or source.stats is None:
            continue
        found = max(found, of_norm("", source, result, ahead) if normalises else metrics.cancellation(source))
        if ahead.hands_on(source) or source is caller.main_input:
            continue
        ratio = source.stats.rms / size
        if ratio > found:
            slope = ahead.slope(source, result)
            found = max(found, ratio if slope is None else min(ratio, ratio * slope))
    return found


def reach_of_table(record: TensorRecord, size: float) -> float:
    """The largest argument of the sines and cosines that the record may be: their error is that of the argument."""
    stats = record.stats
    if stats is None or stats.absolute_maximum > TABLE_LARGEST or stats.minimum > TABLE_LOWEST:
        return 0.0
    return size if stats.rms >= TABLE_RMS else 0.0


def of_loss(size: float, loss: float | None) -> float:
    """A gradient made of a difference that is nearly zero is the rounding of what was subtracted.

    A cross entropy of p leaves a gradient of about p, a squared error of its root.
    """
    size = max(1.0, size)
    if loss is None or not abs(loss) < 1.0:
        return size
    return SAFETY * size / abs(loss) if loss else math.inf
