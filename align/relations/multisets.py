"""Hashes of values, not of bytes: one that the order does not enter, and one for each slice along each dimension.

All arithmetic is modulo 2**64. A value is taken as the bits of its float64 (-0.0 as 0.0, every NaN as one), an integer
beyond 2**53 as itself, and mixed by the finalizer of splitmix64.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from align.hashing import mix, odd_weights

_NAN = np.uint64(0x7FF8000000000000)
_EXACT_INTEGERS = 2**53
BLOCK = 1 << 16
KEPT = 1 << 14


def value_codes(numbers: NDArray[Any]) -> NDArray[np.uint64]:
    """A mixed 64-bit code of each number, the same in every dtype that holds it; the shape stays."""
    if numbers.dtype.kind in "iu" and numbers.dtype.itemsize == np.dtype(np.int64).itemsize and _is_large(numbers):
        return mix(numbers.astype(np.uint64))
    wide = numbers.astype(np.float64) + 0.0  # -0.0 + 0.0 is 0.0
    bits = wide.view(np.uint64)
    bits[np.isnan(wide)] = _NAN
    return mix(bits)


def multiset_hash(numbers: NDArray[Any], start: int = 0) -> int:
    """A hash of the values whatever their order and shape; those of parts add up (modulo 2**64) from `start`."""
    flat = numbers.reshape(-1)
    total = start
    for first in range(0, flat.size, BLOCK):
        total += int(value_codes(flat[first : first + BLOCK]).sum(dtype=np.uint64))
    return total % 2**64


def place_weights(length: int, start: int = 0) -> NDArray[np.uint64]:
    """One odd weight for each place along a dimension, the same for every dimension."""
    return _first_weights()[start : start + length] if start + length <= KEPT else odd_weights(start, length)


@cache
def _first_weights() -> NDArray[np.uint64]:
    """Those of the first places, which a checkpoint of 20,000 small tensors asks for 80,000 times."""
    weights = odd_weights(0, KEPT)
    weights.flags.writeable = False
    return weights


def slice_hashes(numbers: NDArray[Any]) -> list[NDArray[np.uint64]]:
    """For each dimension one hash per slice; the places along the other dimensions enter, all dimensions alike.

    So a tensor and its transpose have the same lists in another order, and where slices along one dimension were
    put into another order its list is permuted likewise.
    """
    return hashes_of_codes(value_codes(numbers), [place_weights(length) for length in numbers.shape])


def hashes_of_codes(codes: NDArray[np.uint64], weights: list[NDArray[np.uint64]]) -> list[NDArray[np.uint64]]:
    """`slice_hashes` of codes whose places have these weights; those of parts add up."""
    found = []
    for kept in range(codes.ndim):
        left = codes
        for dimension in reversed(range(codes.ndim)):
            if dimension != kept:
                shape = [1] * left.ndim
                shape[dimension] = -1
                left = (left * weights[dimension].reshape(shape)).sum(axis=dimension, dtype=np.uint64, keepdims=True)
        found.append(left.reshape(-1))
    return found


def _is_large(numbers: NDArray[Any]) -> bool:
    return numbers.size > 0 and (int(numbers.max()) > _EXACT_INTEGERS or int(numbers.min()) < -_EXACT_INTEGERS)
