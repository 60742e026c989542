"""Which pairs of runs are compared, and which captures they need."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.localization import catalogue
from benchmarks.localization.catalogue import KINDS, Kind
from benchmarks.localization.devices import DEVICES, TF32_REFERENCE, Device, knobs_of

SCRIPT = Path(__file__).with_name("train.py")
SEEDS = (0, 1)
PERTURBED = (1, 2)
"""Seeds of the perturbed references: of two the larger floor counts."""

MANIFEST = "pairs.json"


@dataclass(frozen=True, slots=True)
class Capture:
    """One capture to make: the file, the script's arguments, and the device; `lists` is empty for the CPU.

    `steps` and `options` are those of `align capture`.
    """

    path: str
    arguments: tuple[str, ...]
    lists: str = ""
    knobs: Mapping[str, Any] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    steps: str = "0:2"

    @property
    def without_fault(self) -> tuple[str, ...]:
        """The arguments of the same run on the CPU with nothing wrong."""
        words = self.arguments[: self.arguments.index("--fault")] if "--fault" in self.arguments else self.arguments
        return tuple("cpu" if word == "npu" else word for word in words)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two captures and what is wrong between them; `answers` are the right pairs of phase and module.

    Paths are relative to the work folder. `clean` is the candidate's device without the fault, where there is one.
    """

    name: str
    model: str
    precision: str
    device: str
    seed: int
    reference: str
    candidate: str
    fault: str = ""
    size: str = ""
    part: str = ""
    clean: str = ""
    answers: tuple[tuple[str, str], ...] = ()

    @property
    def benign(self) -> bool:
        """Whether nothing is wrong."""
        return not self.fault


@dataclass(frozen=True, slots=True)
class Choice:
    """What was asked for on the command line."""

    models: tuple[str, ...] = catalogue.MODELS
    classes: tuple[str, ...] = catalogue.CLASSES
    seeds: tuple[int, ...] = SEEDS
    faults: tuple[str, ...] = tuple(kind.name for kind in KINDS)


def plan(choice: Choice) -> Iterator[tuple[Pair, tuple[Capture, ...]]]:
    """Every pair and the captures that it needs, the benign ones of the first seed first."""
    for seed in choice.seeds:
        for model, precision in _grid(choice):
            for device in DEVICES:
                yield _benign(model, precision, device, seed)
                if precision == "tf32" and seed == SEEDS[0]:
                    yield _against_cpu(model, device, seed)
    for model, precision in _grid(choice):
        cases = [(kind, size) for kind in KINDS if kind.fits(model, precision) for size in kind.sizes]
        shift = 3 * catalogue.MODELS.index(model) + catalogue.CLASSES.index(precision)
        for place, (kind, size) in enumerate(cases):
            device, seed = DEVICES[(place + shift) % len(DEVICES)], SEEDS[place // 2 % len(SEEDS)]
            if kind.name in choice.faults and seed in choice.seeds:
                yield _faulty(model, precision, device, seed, (kind, size))


def _grid(choice: Choice) -> Iterator[tuple[str, str]]:
    return ((model, precision) for model in choice.models for precision in choice.classes)


def _arguments(model: str, precision: str, seed: int, device: str) -> tuple[str, ...]:
    options = {"model": model, "precision": precision, "seed": seed, "device": device, "checkpoint": f"{model}.pt"}
    return tuple(str(word) for name, value in options.items() for word in (f"--{name}", value))


def _reference(model: str, precision: str, seed: int) -> Capture:
    path = f"{model}-{precision}-{seed}-reference.h5"
    if precision == "tf32":
        return Capture(path, _arguments(model, precision, seed, "npu"), "npu", TF32_REFERENCE)
    return Capture(path, _arguments(model, precision, seed, "cpu"))


def _candidate(model: str, precision: str, device: Device, seed: int) -> Capture:
    path = f"{model}-{precision}-{seed}-{_word(device.name)}.h5"
    return Capture(path, _arguments(model, precision, seed, "npu"), device.lists, knobs_of(device, precision))


def _word(text: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in text)


def _benign(model: str, precision: str, device: Device, seed: int) -> tuple[Pair, tuple[Capture, ...]]:
    ours, theirs = _reference(model, precision, seed), _candidate(model, precision, device, seed)
    name = theirs.path.removesuffix(".h5")
    return Pair(name, model, precision, device.name, seed, ours.path, theirs.path), (ours, theirs)


def _against_cpu(model: str, device: Device, seed: int) -> tuple[Pair, tuple[Capture, ...]]:
    """A candidate that shortens its products against a reference that does not."""
    pair, (_, theirs) = _benign(model, "tf32", device, seed)
    ours = _reference(model, "fp32", seed)
    return replace(pair, name=f"{pair.name}-against_fp32", reference=ours.path), (ours, theirs)


def _faulty(
    model: str, precision: str, device: Device, seed: int, case: tuple[Kind, str]
) -> tuple[Pair, tuple[Capture, ...]]:
    kind, size = case
    pair, (ours, clean) = _benign(model, precision, device, seed)
    name = f"{model}-{precision}-{seed}-{kind.name}-{size}"
    wrong = ("--fault", kind.name, "--size", size, "--answers", f"{name}.json")
    theirs = replace(clean, path=f"{name}.h5", arguments=(*clean.arguments, *wrong))
    pair = replace(pair, name=name, candidate=theirs.path, fault=kind.name, size=size, part=kind.part, clean=clean.path)
    return pair, (ours, clean, theirs)


def floors_of(pair: Pair) -> tuple[str, ...]:
    """The files of the perturbed references of a pair."""
    stem = pair.reference.removesuffix(".h5")
    return tuple(f"{stem}-perturbed{seed}.h5" for seed in PERTURBED)


def perturbed(captures: Iterable[Capture]) -> Iterator[Capture]:
    """The perturbed runs of the references among these captures."""
    for capture in captures:
        if _is_reference(capture):
            for seed in PERTURBED:
                path = f"{capture.path.removesuffix('.h5')}-perturbed{seed}.h5"
                yield replace(capture, path=path, options=("--perturb", str(seed)))


def mixed(planned: Iterable[tuple[Pair, tuple[Capture, ...]]]) -> list[tuple[Pair, tuple[Capture, ...]]]:
    """The same in an order by lot, always the same: whatever is captured first is a fair sample of all."""
    return sorted(planned, key=lambda each: lot(each[0]))


def lot(pair: Pair) -> float:
    """A number from 0 to 1 for each pair."""
    return int.from_bytes(hashlib.sha256(pair.name.encode()).digest()[:4], "big") / 2**32


def shortened(planned: Iterable[tuple[Pair, tuple[Capture, ...]]]) -> list[tuple[Pair, tuple[Capture, ...]]]:
    """The same with one step where one is enough: what goes wrong in the optimizer may show in the second only."""
    return [
        (
            pair,
            tuple(each if pair.part == "optimizer" or _is_reference(each) else first_step(each) for each in captures),
        )
        for pair, captures in planned
    ]


def _is_reference(capture: Capture) -> bool:
    return capture.path.endswith("-reference.h5")


def first_step(capture: Capture) -> Capture:
    """The capture of one step only."""
    return replace(capture, steps="0:1")


def replay_of(path: str) -> str:
    """The file of the replay of a capture."""
    return f"{path.removesuffix('.h5')}-replay.h5"


def distinct(captures: Iterable[Capture]) -> list[Capture]:
    """Each capture once, in the order of first need."""
    return list({capture.path: capture for capture in captures}.values())


def with_answers(pair: Pair, work: Path) -> Pair:
    """The pair with the right answers, which the faulty run has written down."""
    if pair.benign:
        return pair
    found = json.loads((work / pair.candidate).with_suffix(".json").read_text(encoding="utf-8"))
    return replace(pair, answers=tuple((phase, name) for phase, name in found))


def write_manifest(pairs: Sequence[Pair], work: Path) -> None:
    """Write down all pairs."""
    text = json.dumps([asdict(pair) for pair in pairs], indent=1)
    (work / MANIFEST).write_text(text, encoding="utf-8")


def pair_of(row: Mapping[str, Any]) -> Pair:
    """The pair that JSON holds."""
    return Pair(**{**row, "answers": tuple((phase, name) for phase, name in row["answers"])})
