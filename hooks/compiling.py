"""Switch torch.compile off while modules are watched, and back to what it was."""

from __future__ import annotations

import sys

import torch


class CompilerSwitch:
    """Models that are compiled before or while it is off run eagerly."""

    def __init__(self) -> None:
        self._before: bool | None = None
        if "torch._dynamo" in sys.modules:
            self.switch_off()

    def switch_off(self) -> None:
        """Run everything eagerly from now on."""
        if self._before is None:
            self._before = bool(torch._dynamo.config.disable)
            torch._dynamo.config.disable = True

    def restore(self) -> None:
        """Compile again if it was so before."""
        if self._before is not None:
            torch._dynamo.config.disable = self._before
            self._before = None
