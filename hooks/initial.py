"""Parameters and buffers as they are before the first update: seen, kept, and loaded from another capture."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from align.hooks.identity import is_plain
from align.hooks.trace import Sighting
from align.records import INIT_STEP, Phase

if TYPE_CHECKING:
    from align.hooks.recorder import Recorder
    from align.hooks.roots import Root

KEEP_INIT = "init"


@dataclass(slots=True, eq=False)
class _Seen:
    """What was seen of one root; `signature` changes when its parameters are loaded or replaced."""

    root: Root
    signature: list[tuple[int, int, int]] = field(default_factory=list)
    sightings: list[Sighting] = field(default_factory=list)


class InitialState:
    """The initial tensors of every root, until the first step is over and they are written."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._seen: dict[int, _Seen] = {}
        self._written = False
        self.swaps = 0
        """How many calls run now with other tensors in the place of a module's parameters."""

    @property
    def due(self) -> bool:
        """Whether no update has been attempted yet, so that parameters are still the initial ones."""
        clock = self._recorder.clock
        return clock.step == 0 and not clock.attempted and not self._recorder.trace.micro

    def see(self, root: Root) -> None:
        """Record a root before the first update; again if it was loaded meanwhile."""
        recorder = self._recorder
        module = root.reference()
        if module is None or self.swaps or any(one.grad_fn is not None for one in module.parameters()):
            return  # What stands there was computed from the parameters, or is another model's.
        known = self._seen.get(id(root))
        if known is None:
            known = self._seen[id(root)] = _Seen(root)
            recorder.load_initial(root)
        if Phase.INIT not in recorder.trace.phases:
            return
        # Not the buffers: the first forward of a step may change them (BatchNorm), and what they were before counts.
        signature = [(id(parameter), *_state(parameter)) for parameter in module.parameters()]
        if known.sightings and known.signature == signature:
            return
        root.read()
        keep = KEEP_INIT in recorder.options.keep
        owned = [(*recorder.owner_of(tensor), tensor) for tensor in (*module.parameters(), *module.buffers())]
        wanted = [(name, slot, tensor) for name, slot, tensor in owned if keep or recorder.wants(name)]
        known.sightings = [recorder.trace.initial(name, slot, tensor, keep=keep) for name, slot, tensor in wanted]
        known.signature = signature

    def moved(self, root: Root) -> None:
        """The parameters of a root were changed without a trace in their versions: what was seen of them is old.

        Its buffers are not looked at again, which the forward that runs may have changed.
        """
        known, module, recorder = self._seen.get(id(root)), root.reference(), self._recorder
        if known is None or module is None or self.swaps:
            return
        keep = KEEP_INIT in recorder.options.keep
        owned = {recorder.owner_of(parameter): parameter for parameter in module.parameters()}
        known.sightings = [
            recorder.trace.initial(one.name, one.slot, owned[one.name, one.slot], keep=keep)
            if (one.name, one.slot) in owned
            else one
            for one in known.sightings
        ]

    def write(self) -> None:
        """Write what was seen of the roots that belong to the training, once."""
        if self._written:
            return
        self._written = True
        seen, self._seen = self._seen, {}
        trained = [known for known in seen.values() if known.root.trainable or known.root.kept]
        sightings = [sighting for known in trained for sighting in known.sightings]
        if sightings:
            self._recorder.trace.write(INIT_STEP, sightings)


def _state(tensor: torch.Tensor) -> tuple[int, int]:
    """Changes when the tensor's values are loaded or replaced."""
    if torch.nn.parameter.is_lazy(tensor):
        return (0, 0)
    return (tensor.data_ptr() if is_plain(tensor) else 0, 0 if tensor.is_inference() else tensor._version)
