"""The states of the random number generators, read without drawing a number."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from align.records import Phase

if TYPE_CHECKING:
    from align.hooks.trace import Trace

STATE = "state"


def see_generators(trace: Trace, device_type: str) -> None:
    """Record the state of every generator as it is at the start of a step."""
    for name, state in generator_states(device_type):
        trace.see(Phase.RNG, name, STATE, state, equal=True, shared=False)


def generator_states(device_type: str) -> Iterator[tuple[str, torch.Tensor]]:
    """The states of python's, numpy's, torch's and the device's generators as uint8 tensors on the host."""
    _, words, spare = random.getstate()
    yield "python", _bytes(np.array(words, dtype="<u8"), np.array(spare or 0.0, dtype="<f8"))
    state = np.random.get_state(legacy=False)  # noqa: NPY002  scripts seed the global generator
    key = np.asarray(state["state"]["key"], dtype="<u8")
    rest = np.array([state["state"].get("pos", 0), state.get("has_gauss", 0)], dtype="<u8")
    yield "numpy", _bytes(key, rest, np.array(state.get("gauss", 0.0), dtype="<f8"))
    yield "torch", torch.get_rng_state()
    module: Any = getattr(torch, device_type, None)
    if device_type != "cpu" and hasattr(module, "get_rng_state"):
        yield "device", module.get_rng_state().cpu()


def _bytes(*arrays: np.ndarray[Any, Any]) -> torch.Tensor:
    return torch.frombuffer(bytearray(b"".join(array.tobytes() for array in arrays)), dtype=torch.uint8)
