"""What a policy may say of each criterion: which numbers it takes, their ranges, and how its limit is read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

AT_MOST = "at most"
AT_LEAST = "at least"


@dataclass(frozen=True, slots=True)
class Number:
    """A number of a policy: its range (both ends belong to it), and its value where a policy does not give it."""

    low: float = 0.0
    high: float = math.inf
    default: float | None = None
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Form:
    """How a criterion is written in a policy; `limit` is None where the criterion has no limit of its own.

    A criterion whose limit may be left out is reported without being judged.
    """

    limit: Number | None
    way: str = AT_MOST
    may_lack_limit: bool = False
    numbers: Mapping[str, Number] = field(default_factory=dict)


SHARE = Number(0.0, 100.0)
COUNT = Number(0.0, 1e9, whole=True)

FORMS: Mapping[str, Form] = {
    "equal-start": Form(COUNT),
    "non-finite": Form(COUNT),
    "shift": Form(COUNT, numbers={"lags": Number(1.0, 1000.0, 5.0, whole=True), "correlation": Number(0.0, 1.0, 0.3)}),
    "data-order": Form(Number(-1.0, 1.0), AT_LEAST, numbers={"steps": Number(10.0, 1e9, 50.0, whole=True)}),
    "first-loss": Form(SHARE, numbers={"absolute": Number(), "remark": SHARE}),
    "early-window": Form(
        SHARE,
        numbers={
            "steps": Number(1.0, 1e9, 20.0, whole=True),
            "times_floor": Number(1.0, 1e9, 5.0),
            "smallest_floor": Number(0.0, 1.0, 1e-5),
        },
    ),
    "spikes": Form(
        COUNT,
        numbers={
            "factor": Number(0.0, 1e6, 2.0),
            "window": Number(10.0, 1000.0, 50.0, whole=True),
            "deviations": Number(1.0, 1e6, 6.0),
            "height": Number(0.0, 1e6, 0.1),
            "apart": Number(1.0, 1e6, 10.0, whole=True),
        },
    ),
    "divergence": Form(SHARE),
    "mean-error": Form(SHARE, numbers={"absolute": Number(), "skip": Number(0.0, 1e9, 0.0, whole=True)}),
    "worst-window": Form(SHARE),
    "bias": Form(
        SHARE,
        numbers={
            "share": Number(0.01, 1.0, 0.25),
            "deviations": Number(0.0, 1e6, 3.0),
            "remark": SHARE,
            "remark_deviations": Number(0.0, 1e6, 4.0),
        },
    ),
    "gradient-norm": Form(SHARE),
    "tensors": Form(Number(1.0, 1e9)),
    "operators": Form(None),
    "step-time": Form(Number(0.0, 1e9), may_lack_limit=True),
    "tokens-per-second": Form(Number(0.0, 1e9), AT_LEAST, may_lack_limit=True),
}
"""The criteria, in the order of causes: what explains the others stands before them."""

STEPS = Number(1.0, 1e12, whole=True)
SMALLEST = Number(0.0, 1.0, 0.05)
FLOOR_TIMES = Number(1.0, 1e6, 2.5)
