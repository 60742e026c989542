"""How far the parameters of both runs are apart when a step begins, and what that does to a module's output."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from align.records import Owner, Phase, TensorRecord


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

    `known` is False where no record tells what the parameters were. A model that no optimizer trains has no records
    after the initial ones, or none at all where it was first called later: what its weights may differ by is taken
    from those that are trained, of which it may be a copy or an average (mean teacher, target network).
    """

    def __init__(self) -> None:
        self.known = True
        self._errors: dict[str, dict[str, ParameterError]] = defaultdict(dict)
        self._below: dict[str, tuple[ParameterError, ...]] = {}
        self._any = False
        self._trained: dict[Owner, None] = {}
        self._roots: dict[str, None] = {}

    def learn(self, record: TensorRecord, error: float) -> None:
        """Take the error of one parameter from its record of the reference."""
        norm = record.stats.norm if record.stats is not None else 0.0
        found = ParameterError(error, error * norm if norm else error, norm, record.numel, len(record.shape))
        self._errors[record.key.name][record.key.slot] = found
        self._any = self._any or error > 0.0
        self._below.clear()
        self._roots[root_of(record.key.name)] = None
        if record.key.phase is Phase.PARAM:
            self._trained[record.key.owner] = None

    def learn_roots(self, names: Iterable[str]) -> None:
        """Take the outermost modules whose initial weights are known, be it that they have none."""
        self._roots.update(dict.fromkeys(map(root_of, names)))

    def is_unknown(self, module: str) -> bool:
        """Whether nothing is known of the weights that the module may have, though those of other models are."""
        return bool(self._roots) and root_of(module) not in self._roots

    def drift_untrained(self) -> None:
        """After an update a model that nobody trains may differ by as much as what it may be made from."""
        trained_roots = {root_of(module) for module, _ in self._trained}
        largest: dict[tuple[str, int, int], ParameterError] = {}
        for module, slot in self._trained:
            error = self._errors[module][slot]
            kind = (slot, error.numel, error.dimensions)
            if kind not in largest or largest[kind].absolute < error.absolute:
                largest[kind] = error
        for module, errors in self._errors.items():
            if root_of(module) in trained_roots:
                continue
            for slot, error in errors.items():
                source = largest.get((slot, error.numel, error.dimensions))
                if source is not None and source.absolute > error.absolute:
                    relative = source.absolute / error.norm if error.norm else source.relative
                    errors[slot] = replace(error, relative=relative, absolute=source.absolute)
        self._below.clear()

    @property
    def differ(self) -> bool:
        """Whether any parameter differs between the runs."""
        return self._any

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

    def looked_up(self, module: str, output: TensorRecord) -> float:
        """What the difference of a table brings into rows that are looked up in it: all rows may be the one it is in.

        After a step a table differs where it was used, most in the rows that are used most.
        """
        norm = output.stats.norm if output.stats is not None else 0.0
        if not self._any or norm == 0.0 or not output.shape:
            return 0.0
        rows = output.numel / max(output.shape[-1], 1)
        tables = (error.absolute for error in self._errors.get(module, {}).values() if error.dimensions > 1)
        return _largest(tables) * math.sqrt(rows) / norm

    def of_unknown(self, module: str, output: TensorRecord, input_rms: float) -> float:
        """What weights that no record tells may bring into an output: as much as those they may be made from."""
        inner = _inside(module)
        sources = {name for name, _ in self._trained if _same_place(_inside(name), inner)}
        own = _largest(self.own(name, output, input_rms) for name in sources)
        return own if sources else self.below("", output)

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


def root_of(name: str) -> str:
    """The outermost module of a name, empty for the main one, whose modules have no prefix."""
    return f"{name.partition('>')[0]}>" if name.startswith("<") else ""


def _inside(name: str) -> str:
    """The path inside the outermost module."""
    return name.removeprefix(root_of(name)).removeprefix(".")


def _same_place(one: str, other: str) -> bool:
    """Whether two paths may be of one module in two copies of a model, one of which may be wrapped."""
    return one == other or one.endswith(f".{other}") or other.endswith(f".{one}")


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
