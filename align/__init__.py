"""Finds where two PyTorch training runs first part, and why."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from align.capture_file import open_capture as open
    from align.hooks.recorder import Recorder
    from align.hooks.same_start import SameStart
    from align.tapping import tap

__version__ = "0.1.0"

__all__ = ["Recorder", "SameStart", "__version__", "open", "tap"]

# Imported on first use: `import align` must not import torch or h5py.
_HOMES = {
    "Recorder": ("align.hooks.recorder", "Recorder"),
    "SameStart": ("align.hooks.same_start", "SameStart"),
    "open": ("align.capture_file", "open_capture"),
    "tap": ("align.tapping", "tap"),
}


def __getattr__(name: str) -> Any:
    """Import a public name where it lives."""
    if name not in _HOMES:
        raise AttributeError(f"module 'align' has no attribute '{name}'")
    module, attribute = _HOMES[name]
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    """Name the lazy names too."""
    return sorted({*globals(), *__all__})
