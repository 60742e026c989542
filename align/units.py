"""In which precision each module computes: the coarser of both sides, a parent as coarse as its children."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from align.pairing import NamePairs, Pair
from align.records import ModuleInfo, Phase, RunInfo
from align.tolerance import FLOAT32, PRECISIONS, Precision, coarsest, module_precision

SCRIPT = ""
"""The name under which the code outside of every module runs."""

SMALLEST_SHARE = 0.01
"""A format that fewer of a module's elements have is that of a side tensor, which does not speak for the module."""


@dataclass(frozen=True, slots=True)
class Side:
    """One run and what its capture knows of its modules."""

    run: RunInfo
    modules: Mapping[str, ModuleInfo]


@dataclass(frozen=True, slots=True)
class Precisions:
    """The working precision of every module of the reference."""

    by_name: Mapping[str, Precision]
    whole: Precision

    def of(self, name: str) -> Precision:
        """The precision of a module; of one that was not seen, that of its nearest ancestor, at last of all."""
        while name:
            if name in self.by_name:
                return self.by_name[name]
            name = name.rpartition(".")[0]
        return self.whole

    def of_record(self, name: str, pair: Pair) -> Precision:
        """The precision that made a record: that of the code, or of either tensor's own dtype if coarser."""
        found = self.of(name)
        for dtype in (pair.reference.dtype, pair.candidate.dtype):
            own = PRECISIONS.get(dtype, found)
            if (own.unit, own.spacing) > (found.unit, found.spacing):
                found = own
        return found


def learn_precisions(pairs: Iterable[Pair], names: NamePairs, reference: Side, candidate: Side) -> Precisions:
    """Learn from the forward records of both sides and from what the captures say of their modules."""
    elements: dict[str, tuple[Counter[str], Counter[str]]] = defaultdict(lambda: (Counter(), Counter()))
    for pair in pairs:
        if pair.key.phase is Phase.FORWARD:
            for record, counted in zip((pair.reference, pair.candidate), elements[pair.key.name], strict=True):
                counted[record.dtype] += record.numel
    own: dict[str, Precision] = {}
    for name in {**reference.modules, **elements}:
        sides = zip(
            (reference, candidate), (name, names.of(name)), elements.get(name, (Counter(), Counter())), strict=True
        )
        found = [_of_side(side.run, side.modules.get(own_name), counted) for side, own_name, counted in sides]
        precision = coarsest(side for side in found if side is not None)
        if precision is not None:
            own[name] = precision
    whole = coarsest(own.values()) or FLOAT32
    return Precisions(_with_children(own, reference.modules, whole), whole)


def _of_side(run: RunInfo, module: ModuleInfo | None, elements: Counter[str]) -> Precision | None:
    """What one side computes a module in, from how many elements of each dtype it was given and made."""
    floats = {dtype: number for dtype, number in elements.items() if dtype in PRECISIONS}
    total = sum(floats.values())
    rare = {dtype for dtype, number in floats.items() if number < SMALLEST_SHARE * total}
    if module is not None and module.compute_dtype in rare and not (module.matmul or module.conv):
        module = replace(module, compute_dtype=None)  # that of the call that was seen first
    return module_precision(run, module, floats.keys() - rare)


def _with_children(
    own: Mapping[str, Precision], modules: Mapping[str, ModuleInfo], whole: Precision
) -> dict[str, Precision]:
    found: dict[str, list[Precision]] = defaultdict(list)
    for name, precision in own.items():
        found[name].append(precision)
        parent = name.rpartition(".")[0]
        while parent:
            found[parent].append(precision)
            parent = parent.rpartition(".")[0]
    for name in own:
        # The children of the main root carry no prefix, so a root with children may hold any module.
        if name.startswith("<") and not (name in modules and modules[name].leaf):
            found[name].append(whole)
    return {name: coarsest(precisions) or whole for name, precisions in found.items()}
