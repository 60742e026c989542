"""Values of steps as `test_kept_values.py` keeps them; nothing here needs torch, which takes seconds to import."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from align.capture_file import CaptureWriter, open_capture
from align.capture_writer import Handle
from align.kept_values import LARGE
from align.records import Phase, RunInfo, TensorKey, TensorRecord

if TYPE_CHECKING:
    import torch

RUN = RunInfo(align_version="0.1", detail="tensors")
LARGE_COUNT = LARGE // 4 + 100


def named(order: int, array: NDArray[Any] | torch.Tensor, step: int = 0, dtype: str = "float32") -> TensorRecord:
    """A record of `layer<order>`."""
    key = TensorKey(step, Phase.FORWARD, f"layer{order}", "output.0")
    return TensorRecord(key, order, dtype, tuple(array.shape))


def numbers(seed: int, count: int = LARGE_COUNT) -> NDArray[np.float32]:
    """As many numbers as make large values."""
    return np.random.default_rng(seed).standard_normal(count, dtype=np.float32)


def commit(writer: CaptureWriter, step: int, arrays: list[NDArray[np.float32]]) -> None:
    """Keep the arrays and write them as one step."""
    handles = {order: keep(writer, array) for order, array in enumerate(arrays)}
    writer.commit(step, [named(order, array, step) for order, array in enumerate(arrays)], handles)


def keep(writer: CaptureWriter, array: NDArray[Any]) -> Handle:
    """Keep values where there must be room."""
    handle = writer.add_values(array, "float32")
    assert handle is not None
    return handle


def peak() -> int:
    """The most memory that this program has held, in KiB.

    Not `ru_maxrss`: a program inherits that from the process that started it, which may have held more.
    """
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.split("VmHWM:")[1].split()[0])


def found(path: Path, step: int = 0) -> list[NDArray[Any]]:
    """The values of all records of a step."""
    with open_capture(path) as capture:
        return [capture.raw_values(record) for record in capture.records(step)]
