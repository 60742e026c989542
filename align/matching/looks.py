"""What a capture knows of each module besides its name: all that modules of other names can be recognised by."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from align.matching.rules import is_root
from align.records import ModuleInfo, Phase, TensorRecord

Shapes = tuple[tuple[int, ...], ...]

OWNED = (Phase.INIT, Phase.PARAM, Phase.GRADIENT)
"""Phases whose records tell which parameters a module has, the best first."""


@dataclass(frozen=True, slots=True, eq=False)
class CallLook:
    """One call of a module: when it began, the shapes of its tensors, and the sketch of its first output."""

    order: int
    inputs: Shapes
    outputs: Shapes
    value: NDArray[Any] | None


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """One module, or what owns parameters without being called.

    `parameters` are the names and shapes of its own parameters and buffers (empty where it has none or none was
    captured), `weights` the hashes of the initial ones that are not constant. `ends` are its first and its last call in
    the first micro-step, `calls` how many it has there. What was not captured is None.
    """

    name: str
    class_name: str | None = None
    leaf: bool | None = None
    parameters: tuple[tuple[str, tuple[int, ...]], ...] = ()
    weights: tuple[int, ...] = ()
    ends: tuple[CallLook, CallLook] | None = None
    calls: int | None = None

    @property
    def shapes(self) -> Shapes:
        """The shapes of its own parameters, whatever they are called."""
        return tuple(sorted(shape for _, shape in self.parameters))

    @property
    def last(self) -> str:
        """The last part of the name; of a root its class."""
        return self.name.strip("<>") if is_root(self.name) else self.name.rpartition(".")[2]


@dataclass(frozen=True, slots=True, eq=False)
class Looks:
    """All modules of a capture, those with parameters in the order of these."""

    by_name: Mapping[str, Look]
    root: str = ""

    def parent(self, name: str) -> str:
        """The nearest module around one, the main root for those without a prefix; empty for a root."""
        own = name
        while "." in own:
            own = own.rpartition(".")[0]
            if own in self.by_name:
                return own
        return "" if is_root(name) else self.root

    def ordered(self, end: int) -> list[str]:
        """The names by their first (0) or last (1) calls, parents before their children; those never called follow.

        One more call at the begin of a run moves the first call of a module, one at the end the last.
        """
        called = [(look.ends[end].order, name) for name, look in self.by_name.items() if look.ends is not None]
        return [*(name for _, name in sorted(called)), *(name for name, look in self.by_name.items() if not look.ends)]


def look_at(
    names: Iterable[str], modules: Mapping[str, ModuleInfo], initial: Sequence[TensorRecord],
    records: Sequence[TensorRecord],
) -> Looks:  # fmt: skip
    """What is known of these names from the table of modules, the initial records and the records of one step."""
    known = dict.fromkeys(names)
    owned = _owned((*initial, *records))
    found = _calls(records)
    ordered = dict.fromkeys([*(name for name in owned if name in known), *known])
    looks = {name: _look(name, modules.get(name), owned.get(name, ()), found.get(name, {})) for name in ordered}
    return Looks(looks, _main_root(looks, modules))


def _calls(records: Sequence[TensorRecord]) -> dict[str, dict[int, list[TensorRecord]]]:
    """The forward records of the first micro-step by module and call."""
    found: dict[str, dict[int, list[TensorRecord]]] = defaultdict(lambda: defaultdict(list))
    forward = [each for each in records if each.key.phase is Phase.FORWARD and not each.recomputed]
    first = min((each.key.micro for each in forward), default=0)
    for record in sorted(forward, key=lambda each: each.order):
        if record.key.micro == first:
            found[record.key.name][record.key.call].append(record)
    return found


def _call_look(records: Sequence[TensorRecord]) -> CallLook:
    outputs = [record for record in records if record.key.slot.startswith("output")]
    return CallLook(
        records[0].order,
        tuple(record.shape for record in records if record not in outputs),
        tuple(record.shape for record in outputs),
        next((record.sketch for record in outputs if record.sketch is not None), None),
    )


def _owned(records: Sequence[TensorRecord]) -> dict[str, list[TensorRecord]]:
    """The parameters by their owners, from the first phase that has any."""
    phases = {record.key.phase for record in records}
    phase = next((each for each in OWNED if each in phases), None)
    found: dict[str, list[TensorRecord]] = defaultdict(list)
    for record in records:
        if record.key.phase is phase:
            found[record.key.name].append(record)
    return found


def _look(
    name: str, module: ModuleInfo | None, owned: Sequence[TensorRecord], calls: Mapping[int, Sequence[TensorRecord]]
) -> Look:
    weights = [
        record.hash
        for record in owned
        if record.key.phase is Phase.INIT and record.hash is not None and not _is_constant(record)
    ]
    return Look(
        name,
        module.class_name if module is not None else name.strip("<>") if is_root(name) else None,
        module.leaf if module is not None else None,
        tuple(dict.fromkeys((record.key.slot, record.shape) for record in owned)),
        tuple(sorted(weights)),
        (_call_look(calls[min(calls)]), _call_look(calls[max(calls)])) if calls else None,
        len(calls) or None,
    )


def _is_constant(record: TensorRecord) -> bool:
    """Zeros and ones are the same in every model, and recognise none."""
    return record.stats is None or record.stats.minimum == record.stats.maximum


def _main_root(looks: Mapping[str, Look], modules: Mapping[str, ModuleInfo]) -> str:
    """The root whose modules carry no prefix: it has children, and none that begins with its name."""
    prefixes = {name.partition(".")[0] for name in looks if "." in name}
    return next(
        (name for name in looks if is_root(name) and name not in prefixes and not (
            name in modules and modules[name].leaf)),
        "",
    )  # fmt: skip
