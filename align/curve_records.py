"""The records of curves: what one run recorded over its steps, wherever people keep it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from align.records import RunInfo, Word


class Quantity(Word):
    """What a column of a curve is; the units are those of the file but where one is named."""

    LOSS = "loss"
    GRADIENT_NORM = "gradient_norm"
    LEARNING_RATE = "learning_rate"
    LOSS_SCALE = "loss_scale"
    SECONDS = "seconds"
    TOKENS_PER_SECOND = "tokens_per_second"


class CurveKind(Word):
    """What kind of file a curve was read from."""

    CAPTURE = "capture"
    CSV = "csv"
    JSON_LINES = "json lines"
    TENSORBOARD = "tensorboard"
    TRAINER_STATE = "trainer_state.json"
    JSON = "json"
    MEGATRON_LOG = "megatron log"
    DEEPSPEED_LOG = "deepspeed log"
    LOG = "log"


@dataclass(frozen=True, slots=True, eq=False)
class Curves:
    """What one run recorded, a value for each step; steps rise and none is there twice.

    `steps` are int64. `columns` are float64, as long as `steps`: NaN where nothing was recorded, so that a loss which
    really was NaN or Inf stands in `nonfinite` (bool, for the loss). `skipped` says which attempts made no update.
    `taken` are the names of the columns that were taken, as they stand in the file. `sha256` is of the file's bytes
    (of all files of a folder one after another, in the order of their names), in hexadecimal. `run` is what a capture
    knows of its run, None for other files. `notes` are sentences: repeated steps, lines that could not be read.
    """

    path: str
    kind: CurveKind
    steps: NDArray[np.int64]
    columns: Mapping[Quantity, NDArray[np.float64]]
    nonfinite: NDArray[np.bool_]
    skipped: NDArray[np.bool_]
    taken: Mapping[Quantity, str] = field(default_factory=dict)
    sha256: str = ""
    run: RunInfo | None = None
    notes: tuple[str, ...] = ()
