"""Carry out what was asked of the start of a run: opened before the capture is written, closed with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from align.errors import CaptureFileError
from align.hooks.batch_source import BatchSource
from align.hooks.initial_values import InitialValues, StartRefused
from align.hooks.no_dropout import NoDropout
from align.hooks.roots import unwrapped
from align.hooks.same_start import SameStart, open_batches, open_initial

if TYPE_CHECKING:
    from align.hooks.roots import Root, Roots


class StartControl:
    """The captures that weights and batches come from, and the switch of dropout.

    Raises CaptureError or CaptureFileError where such a capture cannot be used.
    """

    def __init__(self, asked: SameStart, output: Path, trouble: Callable[[str], None]) -> None:
        self._asked = asked
        self._trouble = trouble
        self._no_dropout = NoDropout()
        self._initial: InitialValues | None = None
        self._looked_at: set[int] = set()
        self.batches: BatchSource | None = None
        if asked.init_from is not None:
            self._initial = InitialValues(open_initial(asked.init_from, output), asked.init_from, trouble)
        if asked.batches_from is not None:
            self.batches = BatchSource(open_batches(asked.batches_from, output), asked.batches_from, trouble)

    def begin(self) -> None:
        """Seed, choose kernels and switch dropout off, where that was asked for."""
        self._asked.prepare()
        if self._asked.no_dropout:
            self._no_dropout.install()

    def load(self, root: Root, owner_of: Callable[[torch.Tensor], tuple[str, str]]) -> None:
        """Give a root the initial values of the other run."""
        if self._initial is not None:
            with self._refusing():
                self._initial.load(root, owner_of)

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """What goes wrong inside ends the run: it would start from other values than it was told to."""
        try:
            yield
        except (CaptureFileError, RuntimeError, TypeError, ValueError) as error:
            raise StartRefused(f"Cannot take initial weights from '{self._asked.init_from}': {error}") from error

    def optimizer_made(self, roots: Roots) -> None:
        """Give the one model that the optimizers train its initial values at once, where it is sure that it is it."""
        if self._initial is None or self._initial.closed or any(root.trainable for root in roots.known):
            return
        holders = roots.holders_of_unknown()
        if len(holders) == 1:
            with self._refusing():
                self._initial.load_early(holders[0])

    def explain(self, error: BaseException) -> None:
        """Raise StartRefused where a backward failed because the initial values came too late for its graph."""
        if self._initial is not None:
            self._initial.explain(error)

    def see_late(self, roots: Sequence[Root], step: int) -> None:
        """Say which models took part in a step and were not there when the initial values were given."""
        if self._initial is None or not self._initial.closed:
            return
        for root in roots:
            module = root.reference() if root.trainable or root.kept else None
            if module is None or id(root) in self._looked_at:
                continue
            self._looked_at.add(id(root))
            if any(not self._initial.has_met(parameter) for parameter in module.parameters()):
                name = root.names[id(unwrapped(module))]
                self._trouble(
                    f"{name} was first seen in step {step}: its weights are its own, not those of "
                    f"'{self._asked.init_from}'"
                )

    def check(self) -> None:
        """Raise StartRefused where a trained model got nothing of what it was to start from."""
        if self._initial is not None:
            self._initial.check()

    def first_step_over(self, without_module: Callable[[], int]) -> None:
        """Nothing is initial any more; `without_module` counts the parameters of optimizers that no module has."""
        if self._initial is not None and not self._initial.closed:
            self._initial.finish(without_module())

    def finish(self, without_module: Callable[[], int]) -> None:
        """Close the captures and say what could not be done."""
        self.first_step_over(without_module)
        if self.batches is not None:
            self.batches.close()
            if not self.batches.used:
                self._trouble(f"No batch was taken from '{self._asked.batches_from}': no batch of this run is in it")

    def remove(self) -> None:
        """Switch dropout on again."""
        self._no_dropout.remove()

    def facts(self) -> dict[str, Any]:
        """What was asked for and how much of it was done."""
        facts = self._asked.facts()
        if self._initial is not None:
            facts["init_tensors"] = self._initial.taken
        if self.batches is not None:
            facts["batches_taken"] = self.batches.taken
            if self.batches.missed:
                facts["batches_missed"] = self.batches.missed
                facts["batches_why_missed"] = self.batches.why_missed
            if not self.batches.from_loaders:
                facts["batches_as"] = "inputs"
        return facts
