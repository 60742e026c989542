"""How much rounding alone may do: unit roundoffs, the limit, and which precision a module computes in."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from align.records import ModuleInfo, RunInfo

LIMIT = 7.0
"""Above so many times the floor a difference is real: 35 % above the largest of 56 benign pairs."""

STATISTICS_FACTOR = 4.0
"""Statistics alone bound a difference from below only, and so does the floor made of them."""

EQUAL_ULPS = 4.0
"""A float batch or initial weight may differ by so many unit roundoffs (tables made on the device)."""

COMPUTED_ULPS = 64.0
"""A float32 batch may be computed on the device, in several operations: noise of a schedule differed by 6.5 unit
roundoffs. Other data differ by 1 % at least; what a batch differs by is in the floor of all that follows."""

LARGEST_FLOOR = 0.5
"""Where half of a tensor may differ nothing can be said of it: what it is made from has parted already."""

TINY, TINY_FACTOR = 10, 10 / 3
SMALL, SMALL_FACTOR = 500, 8 / 3
"""Few elements average little: the factors of torch's own benchmark comparison (10 and 8 against 3)."""

SUMMATION = 0.3
"""A chain of n float32 additions of independent terms loses 0.3 sqrt(n) unit roundoffs: 2.6, 10.4, 17.8 and 39 measured
for n of 64, 1024, 4096 and 16384. Kernels that add in blocks lose less; which one a device uses is not known."""

UNSEEN_FULL, UNSEEN_SHORT = 8.0, 2.0

FLIPS_PER_ELEMENT = 0.32
DENSE_FLIPS = 30
"""So many flips touch more buckets of a sketch than its median can leave out."""


@dataclass(frozen=True, slots=True)
class Precision:
    """A working format: its unit roundoff, the spacing of its smallest numbers and its greatest number."""

    name: str
    unit: float
    spacing: float
    largest: float


FLOAT64 = Precision("fp64", 2.0**-53, 2.0**-1074, 1.7976931348623157e308)
FLOAT32 = Precision("fp32", 2.0**-24, 2.0**-149, 3.4028234663852886e38)
TF32 = Precision("TF32", 2.0**-11, 2.0**-149, 3.4028234663852886e38)
HF32 = Precision("HF32", 2.0**-11, 2.0**-149, 3.4028234663852886e38)
FLOAT16 = Precision("fp16", 2.0**-11, 2.0**-24, 65504.0)
BFLOAT16 = Precision("bf16", 2.0**-8, 2.0**-133, 3.3895313892515355e38)
FLOAT8_E4M3 = Precision("fp8 e4m3", 2.0**-4, 2.0**-9, 448.0)
FLOAT8_E5M2 = Precision("fp8 e5m2", 2.0**-3, 2.0**-16, 57344.0)

PRECISIONS: Mapping[str, Precision] = {
    "float64": FLOAT64,
    "float32": FLOAT32,
    "float16": FLOAT16,
    "bfloat16": BFLOAT16,
    "float8_e4m3fn": FLOAT8_E4M3,
    "float8_e4m3fnuz": FLOAT8_E4M3,
    "float8_e5m2": FLOAT8_E5M2,
    "float8_e5m2fnuz": FLOAT8_E5M2,
}
"""Torch's floating dtypes; complex numbers are not judged."""


def is_float(dtype: str) -> bool:
    """Whether a torch dtype is a floating one that can be judged."""
    return dtype in PRECISIONS


def coarsest(precisions: Iterable[Precision]) -> Precision | None:
    """The one with the largest unit roundoff, of equal ones the one that reaches least far; None of none."""
    return max(precisions, key=lambda precision: (precision.unit, precision.spacing), default=None)


def limit(numel: int) -> float:
    """Above so many times the floor a tensor of so many elements differs."""
    if numel <= TINY:
        return LIMIT * TINY_FACTOR
    return LIMIT * SMALL_FACTOR if numel <= SMALL else LIMIT


def summation_error(terms: int, unit: float) -> float:
    """What a sum of so many terms, added one after another in float32 or better, may lose of itself."""
    return SUMMATION * math.sqrt(terms) * min(unit, FLOAT32.unit)


def unseen_error(modules: int, unit: float) -> float:
    """What rounding may have gathered in code that was not captured, in a model of so many modules.

    With the limit it is 57 unit roundoffs times sqrt(depth) in float32 and 14 in shorter formats; 57 and 10 to 23
    were the largest of 56 benign pairs.
    """
    return (UNSEEN_FULL if unit <= FLOAT32.unit else UNSEEN_SHORT) * math.sqrt(max(modules, 1)) * unit


def flip_floor(numel: int, forward_error: float) -> float:
    """What flipped decisions (ReLU) do to a gradient where they are too many to be left out one by one.

    For normal values a share of 0.32 e of the elements changes sign, which changes the gradient by 0.8 sqrt(e).
    Half of it, since the limit is a multiple of the floor and this is no random sum.
    """
    if not FLIPS_PER_ELEMENT * forward_error * numel > DENSE_FLIPS:
        return 0.0
    return 0.4 * math.sqrt(forward_error)


def matmul_precision(run: RunInfo) -> Precision:
    """What a matrix product of float32 tensors is computed in."""
    flags = run.flags
    if run.device_type == "cuda" and (
        flags.get("matmul_allow_tf32") is True or flags.get("float32_matmul_precision") in {"high", "medium"}
    ):
        return TF32
    if run.device_type == "cpu" and flags.get("float32_matmul_precision") in {"high", "medium"}:
        return BFLOAT16 if flags["float32_matmul_precision"] == "medium" else TF32
    return _npu_precision(run, allowed=flags.get("npu_matmul_allow_hf32") is True)


def conv_precision(run: RunInfo) -> Precision:
    """What a convolution of float32 tensors is computed in; CUDA and Ascend shorten it unless told not to."""
    if run.device_type == "cuda" and run.flags.get("cudnn_allow_tf32") is not False:
        return TF32
    return _npu_precision(run, allowed=run.flags.get("npu_conv_allow_hf32") is not False)


def _npu_precision(run: RunInfo, *, allowed: bool) -> Precision:
    if run.device_type != "npu":
        return FLOAT32
    if str(run.flags.get("acl_precision_mode", "")).lower() == "allow_fp32_to_fp16":
        return FLOAT16
    return HF32 if allowed else FLOAT32


def module_precision(run: RunInfo, module: ModuleInfo | None, dtypes: Iterable[str]) -> Precision | None:
    """What one side computes a module in, from the dtypes of its inputs and outputs; None where nothing is float."""
    found = [PRECISIONS[dtype] for dtype in dtypes if dtype in PRECISIONS]
    if module is not None:
        found += _inner_precisions(run, module, found)
    return coarsest(found)


def _inner_precisions(run: RunInfo, module: ModuleInfo, seen: list[Precision]) -> list[Precision]:
    """The dtype that the module's own operators made, and what the switches shorten float32 to."""
    made = module.compute_dtype
    if made is None and (module.matmul or module.conv):
        made = run.autocast
    found = [PRECISIONS[made]] if made is not None and made in PRECISIONS else []
    if FLOAT32 in found or FLOAT32 in seen:
        if module.matmul:
            found.append(matmul_precision(run))
        if module.conv:
            found.append(conv_precision(run))
    return found
