"""What is known around two tensors before they are related."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Earlier = TypeVar("Earlier")


@dataclass(frozen=True)  # a generic class with slots cannot be called as Circumstances[Values](...)
class Circumstances(Generic[Earlier]):
    """`noise` is the relative L2 that rounding makes of this tensor on a healthy device, 0 where it must be equal.

    `earlier` are tensors of the same form that the candidate may repeat, by a name that is told (`step 3 of the
    reference`): Values for `relate_values`, TensorRecord for `relate_records`, TensorSource for `relate_sources`.
    `factors` are numbers above 1 that a factor may be, by meaning: `{"world size": 8, "accumulation steps": 4, "loss
    scale": 65536.0}`; their inverses are tried too, told as `1/world size`.
    """

    noise: float = 0.0
    earlier: Mapping[str, Earlier] = field(default_factory=dict)
    factors: Mapping[str, float] = field(default_factory=dict)
