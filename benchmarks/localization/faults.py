"""Put a fault of any kind into a model."""

from __future__ import annotations

from torch import nn

from benchmarks.localization import backward_faults, forward_faults, functional_faults, optimizer_faults
from benchmarks.localization.fault import INJECTORS, Fault, lots

__all__ = ["INJECTORS", "Fault", "inject"]

PARTS = (forward_faults, functional_faults, backward_faults, optimizer_faults)
"""The modules that register their kinds."""


def inject(model: nn.Module, kind: str, size: str, family: str, precision: str, seed: int) -> Fault:  # noqa: PLR0917 - what names the place
    """Put a fault into a model; its place is drawn by the seed and all that names it."""
    place = lots(f"{family}/{precision}/{kind}/{size}/{seed}")
    fault = Fault(model, kind, size == "large", family, precision, place)
    INJECTORS[kind](fault)
    return fault
