"""How sure the mean of neighbouring steps of a curve is, whose values depend on one another."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


def standard_error(values: Values) -> float:
    """Newey and West's standard error of a mean, with lags up to 4 (n / 100)^(2/9) + 5 (Newey and West 1987, 1994)."""
    count = len(values)
    if not count:
        return math.nan
    away = values - values.mean()
    lags = min(count - 1, round(4 * (count / 100) ** (2 / 9)) + 5)
    variance = float(away @ away) / count
    for lag in range(1, lags + 1):
        variance += 2.0 * (1.0 - lag / (lags + 1)) * float(away[lag:] @ away[:-lag]) / count
    return math.sqrt(max(variance, 0.0) / count)


def deviations_from_zero(values: Values) -> float:
    """The mean in its standard errors; infinite where it is not 0 and has no error."""
    mean, error = float(values.mean()), standard_error(values)
    # Equal values have a mean that is off by rounding, and no spread but that.
    if abs(mean) <= 1e-12 * float(np.abs(values).max(initial=0.0)):
        return 0.0
    return mean / error if error > 1e-9 * abs(mean) else math.copysign(math.inf, mean)
