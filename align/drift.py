"""How far the parameters of both runs are apart when a step begins, and what that does to a module's output."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from align.records import TensorRecord


@dataclass(frozen=True, slots=True)
class ParameterError:
    """The difference of one parameter: relative, absolute (L2), and the size of the parameter."""

    relative: float
    absolute: float
    norm: float
    numel: int
    dimensions: int


class ParameterErrors:
    """The differences of all parameters; those of a step are taken from the records of the step before.

    `known` is False where no record tells what the parameters were.
    """

    def __init__(self) -> None:
        self.known = True
        self._errors: dict[str, dict[str, ParameterError]] = defaultdict(dict)
        self._below: dict[str, tuple[ParameterError, ...]] = {}
        self._any = False

    def learn(self, record: TensorRecord, error: float) -> None:
        """Take the error of one parameter from its record of the reference."""
        norm = record.stats.norm if record.stats is not None else 0.0
        found = ParameterError(error, error * norm if norm else error, norm, record.numel, len(record.shape))
        self._errors[record.key.name][record.key.slot] = found
        self._any = self._any or error > 0.0
        self._below.clear()

    def has(self, module: str) -> bool:
        """Whether the module owns a parameter."""
        return module in self._errors

    def matrix(self, module: str) -> ParameterError | None:
        """The module's only matrix or filter; None where it owns none or several."""
        found = [error for error in self._errors.get(module, {}).values() if error.dimensions > 1]
        return found[0] if len(found) == 1 else None

    def has_matrix(self, module: str) -> bool:
        """Whether the module owns a matrix, a table or a filter."""
        return any(error.dimensions > 1 for error in self._errors.get(module, {}).values())

    def terms(self, module: str, width: int) -> int:
        """How many products the module sums for each element of a tensor of so many features."""
        sizes = (error.numel for error in self._errors.get(module, {}).values() if error.dimensions > 1)
        return max(sizes, default=0) // max(width, 1)

    def own(self, module: str, output: TensorRecord, input_rms: float) -> float:
        """The relative error that the module's own parameters bring into this output.

        A matrix passes on its relative error, enlarged where the output touches a part of it only (embedding
        tables). A vector adds its error to every row, so what counts is its size against the output.
        """
        if not self._any or module not in self._errors:
            return 0.0
        return max(_passed_on(error, output, input_rms) for error in self._errors[module].values())

    def matrices(self, module: str) -> float:
        """The largest relative error among the module's matrices, which its backward multiplies by."""
        if not self._any or module not in self._errors:
            return 0.0
        return _largest(error.relative for error in self._errors[module].values() if error.dimensions > 1)

    def below(self, module: str, record: TensorRecord) -> float:
        """The largest error of a parameter of the module or of a module inside it; of all for a root."""
        if not self._any:
            return 0.0
        own = self._errors.get(module, {}).values()
        vectors = _largest(_passed_on(error, record, 1.0) for error in own if error.dimensions <= 1)
        return max(vectors, _largest(_concentrated(error, record) for error in self._matrices_below(module)))

    def _matrices_below(self, module: str) -> tuple[ParameterError, ...]:
        """The matrices of a module and of all inside it: of equal sizes the one with the largest error."""
        if module not in self._below:
            prefix, everywhere = f"{module}.", not module or module.startswith("<")
            largest: dict[int, ParameterError] = {}
            for name, errors in self._errors.items():
                if everywhere or name == module or name.startswith(prefix):
                    _keep_largest(largest, errors.values())
            self._below[module] = tuple(largest.values())
        return self._below[module]


def _keep_largest(largest: dict[int, ParameterError], errors: Iterable[ParameterError]) -> None:
    for error in errors:
        known = largest.get(error.numel)
        if error.dimensions > 1 and (known is None or known.relative < error.relative):
            largest[error.numel] = error


def _passed_on(error: ParameterError, output: TensorRecord, input_rms: float) -> float:
    if error.dimensions > 1:
        return _concentrated(error, output)
    norm = output.stats.norm if output.stats is not None else 0.0
    if norm == 0.0 or error.relative == 0.0:
        return error.relative
    rows = output.numel / max(error.numel, 1)
    return error.absolute * math.sqrt(rows) * max(1.0, input_rms) / norm


def _concentrated(error: ParameterError, output: TensorRecord) -> float:
    return error.relative * math.sqrt(max(1.0, error.numel / max(output.numel, 1)))


def _largest(errors: Iterable[float]) -> float:
    return max(errors, default=0.0)
