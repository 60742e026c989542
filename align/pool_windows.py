"""Which element of each window a max-pool takes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Pooling:
    """The geometry of a max-pool over the last dimensions: one number for each of them."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    ceiling: bool = False


def pooling_of(class_name: str, config: Mapping[str, Any]) -> Pooling | None:
    """The geometry from a module's class (MaxPool1d to 3d) and its plain attributes; None for other modules."""
    if not (class_name.startswith("MaxPool") and class_name[7:8] in "123" and class_name[8:] == "d"):
        return None
    dimensions = int(class_name[7])
    found = [
        _each(config.get(name, default), dimensions)
        for name, default in (("kernel_size", None), ("stride", None), ("padding", 0), ("dilation", 1))
    ]
    kernel, stride, padding, dilation = found
    if kernel is None or padding is None or dilation is None:
        return None
    return Pooling(kernel, stride or kernel, padding, dilation, bool(config.get("ceil_mode", False)))


def largest_of_windows(planes: NDArray[Any], pooling: Pooling) -> NDArray[np.int64]:
    """Of each plane and window the row-major index, in the plane, of its first largest element (planes x windows)."""
    size = planes.shape[1:]
    outer = [
        _windows(length, *numbers, ceiling=pooling.ceiling)
        for length, *numbers in zip(
            size, pooling.kernel, pooling.stride, pooling.padding, pooling.dilation, strict=True
        )
    ]
    reach = [(count - 1) * step + width for (count, step), width in zip(outer, _spans(pooling), strict=True)]
    margins = [(pad, max(end - pad - length, 0)) for pad, end, length in zip(pooling.padding, reach, size, strict=True)]
    padded = np.pad(planes, [(0, 0), *margins], constant_values=-np.inf)
    index = np.pad(np.arange(math.prod(size)).reshape(size), margins)
    axes = tuple(range(1, planes.ndim))
    views = np.lib.stride_tricks.sliding_window_view(padded, _spans(pooling), axis=axes)
    places = np.lib.stride_tricks.sliding_window_view(index, _spans(pooling))
    chosen = tuple(slice(0, (count - 1) * step + 1, step) for count, step in outer)
    inside = tuple(slice(None, None, step) for step in pooling.dilation)
    every = (slice(None),)
    views = views[every + chosen + inside]
    places = places[chosen + inside]
    windows = math.prod(count for count, _ in outer)
    best = views.reshape(len(planes), windows, -1).argmax(axis=2)
    found: NDArray[np.int64] = places.reshape(windows, -1)[np.arange(windows)[None, :], best]
    return found


def _windows(length: int, kernel: int, stride: int, pad: int, dilation: int, *, ceiling: bool) -> tuple[int, int]:
    """How many windows there are along a dimension, and their stride."""
    room = length + 2 * pad - dilation * (kernel - 1) - 1
    count = (-(-room // stride) if ceiling else room // stride) + 1
    if ceiling and (count - 1) * stride >= length + pad:
        count -= 1  # a window must begin inside
    return max(count, 0), stride


def _spans(pooling: Pooling) -> tuple[int, ...]:
    return tuple(step * (width - 1) + 1 for width, step in zip(pooling.kernel, pooling.dilation, strict=True))


def _each(value: Any, dimensions: int) -> tuple[int, ...] | None:
    """One number for each dimension, from one for all or a list."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int):
        return (value,) * dimensions
    if isinstance(value, Sequence) and len(value) == dimensions and all(isinstance(part, int) for part in value):
        return tuple(value)
    return None
