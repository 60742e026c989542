"""Whether a number outgrew its format, or an operation has no finite result."""

from __future__ import annotations

import math
from collections.abc import Mapping

from align.inspection.nonfinite_start import Start
from align.records import ModuleInfo, Phase, RunInfo
from align.tolerance import FLOAT32, PRECISIONS, Precision

LARGE_POWER = 0.75
"""A number beyond limit ** 0.75 (4,094 in float16, 2.5e28 in float32) stands beside an overflow; a division by zero and
a logarithm of zero stand beside numbers of any ordinary size."""

SHORT = 1e6
"""The greatest numbers of float16 and float8 are smaller; bfloat16 reaches as far as float32."""

MADE = frozenset({Phase.FORWARD, Phase.BACKWARD, Phase.GRADIENT})
"""Phases in which a matrix product may have made the record."""


def working_precision(start: Start, modules: Mapping[str, ModuleInfo], run: RunInfo) -> Precision:
    """The format that ends first among those of the record, of what the module computes in, and of scaled gradients."""
    dtypes = [start.record.dtype]
    module = modules.get(start.owner)
    if module is not None and module.compute_dtype is not None:
        dtypes.append(module.compute_dtype)
    if start.key.phase is Phase.BACKWARD and run.autocast is not None:
        dtypes.append(run.autocast)
    return min((PRECISIONS.get(dtype, FLOAT32) for dtype in dtypes), key=lambda precision: precision.largest)


def is_overflow(start: Start, modules: Mapping[str, ModuleInfo], run: RunInfo) -> bool:
    """Whether Inf, or NaN made of it, stands where a number outgrew its format.

    It does in a module whose weights the format cannot hold, beside numbers near the limit, where what entered is large
    enough for a square or an exponential of it to reach the limit, and in every product of matrices, which cannot make
    Inf of finite numbers otherwise.
    """
    precision = working_precision(start, modules, run)
    if start.key.phase is Phase.FORWARD and start.weights > precision.largest:
        return True
    if not start.inf or start.record.stats is None:
        return False
    near_limit = start.record.stats.absolute_maximum >= math.pow(precision.largest, LARGE_POWER)
    if near_limit or start.nan:
        return near_limit
    return _is_product(start, modules) or start.reach >= math.sqrt(precision.largest) or _is_power(start, precision)


def _is_product(start: Start, modules: Mapping[str, ModuleInfo]) -> bool:
    """Whether a module that is one product of matrices made it, forward or backward."""
    module = modules.get(start.key.name)
    if module is None or start.owner != start.key.name or start.key.phase not in MADE:
        return False
    return module.leaf and (module.matmul or module.conv)


def _is_power(start: Start, precision: Precision) -> bool:
    """Whether an exponential of what entered can reach the limit, and a division by zero is not at hand."""
    positive = start.record.stats is not None and start.record.stats.positive_infs > 0
    forward = start.key.phase in {Phase.FORWARD, Phase.LOSS}
    return forward and positive and not start.has_zeros and start.reach >= math.log(precision.largest)
