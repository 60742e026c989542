"""The options of a recorder, read and checked once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from align.errors import UsageError
from align.hooks.steps import StepChoice, parse_steps
from align.records import Detail, Phase
from align.sentences import say

DEFAULT_STEPS = "0:3"
SEEDS = 2**32
KEPT_PHASES = {"init": Phase.INIT, "batches": Phase.INPUT}
"""The words of `keep`, and the phase whose records hold these values."""

ALL_PHASES = "all"
"""What `--phases` is without a word, for whoever wants to say it."""


@dataclass(frozen=True, slots=True)
class Options:
    """What to capture.

    `keep` names values that are kept whatever the detail: init, batches; their phase is then among `phases`, and no
    glob of `modules` leaves them out. `exponents` counts the exponents of all floats, not only those of 16-bit
    gradients. `max_size` is the greatest size of the file in bytes beyond which no
    values are kept, None for no limit but that of the disk. `perturb` is the seed by which weights and inputs are
    moved, None for a run as it is.
    """

    choice: StepChoice
    steps: str
    detail: Detail
    phases: tuple[Phase, ...]
    modules: tuple[str, ...]
    keep: frozenset[str]
    exponents: bool
    max_size: int | None
    perturb: int | None = None

    def matches(self, name: str) -> bool:
        """Whether records of this module are wanted."""
        return not self.modules or any(fnmatchcase(name, pattern) for pattern in self.modules)

    def unmatched(self, names: Iterable[str]) -> list[str]:
        """The globs of `modules` that match none of these names."""
        known = list(names)
        return [glob for glob in self.modules if not any(fnmatchcase(name, glob) for name in known)]


def read_options(  # noqa: PLR0913  one keyword for each option of the command
    *, steps: str | None, every: int, detail: str, modules: Iterable[str], phases: Iterable[str],
    keep: Iterable[str], exponents: bool, max_size: int | str | None, perturb: int | None = None,
) -> Options:  # fmt: skip
    """Check every option; raises UsageError with the word that cannot be read."""
    asked = steps if steps is not None else ("0:" if every > 1 else DEFAULT_STEPS)
    choice = parse_steps(asked, every)
    kept = _parse_keep(keep)
    return Options(
        choice=choice,
        steps=asked if every == 1 else f"{asked} every {every}",
        detail=_parse_detail(detail),
        phases=_parse_phases(phases, kept),
        modules=_words(modules),
        keep=kept,
        exponents=exponents,
        max_size=parse_size(max_size) if isinstance(max_size, str) else max_size,
        perturb=_parse_perturb(perturb, detail),
    )


def parse_size(text: str) -> int:
    """`500MB` or `2 GB` -> bytes, with powers of 1000; raises UsageError for anything else."""
    units = {"kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12, "b": 1}
    lowered = text.strip().lower()
    unit = next((unit for unit in units if lowered.endswith(unit)), "")
    try:
        size = float(lowered.removesuffix(unit)) * units.get(unit, 1)
    except ValueError:
        size = -1.0
    if not 0.0 <= size < float("inf"):
        raise UsageError(say("Cannot read the size '{}': write a number and a unit, such as 500MB or 2GB.", text))
    return int(size)


def _parse_perturb(seed: int | None, detail: str) -> int | None:
    if seed is not None and not 0 <= seed < SEEDS:
        last = f"{SEEDS - 1:,}"
        raise UsageError(say("Cannot perturb with the seed {}: choose a whole number from 0 to {}.", seed, last))
    if seed is not None and detail == Detail.STATS:
        raise UsageError(
            say(
                "Cannot perturb at detail 'stats': statistics do not tell how much a tensor differs. Choose "
                "sketch or tensors."
            )
        )
    return seed


def _parse_detail(text: str) -> Detail:
    try:
        return Detail(text)
    except ValueError:
        raise UsageError(say("Cannot capture at detail '{}': choose stats, sketch or tensors.", text)) from None


def _parse_phases(names: Iterable[str], kept: frozenset[str]) -> tuple[Phase, ...]:
    """The phases that were asked for, all by default, and those whose values are kept."""
    chosen = []
    for name in _words(names):
        if name == ALL_PHASES:
            return tuple(Phase)
        try:
            chosen.append(Phase(name))
        except ValueError:
            known = ", ".join((ALL_PHASES, *map(str, Phase)))
            raise UsageError(say("Cannot capture the phase '{}': choose from {}.", name, known)) from None
    return tuple(dict.fromkeys((*chosen, *(KEPT_PHASES[word] for word in sorted(kept))))) if chosen else tuple(Phase)


def _parse_keep(names: Iterable[str]) -> frozenset[str]:
    chosen = frozenset(_words(names))
    unknown = sorted(chosen - set(KEPT_PHASES))
    if unknown:
        raise UsageError(say("Cannot keep '{}': choose from {}.", unknown[0], ", ".join(KEPT_PHASES)))
    return chosen


def _words(names: Iterable[str]) -> tuple[str, ...]:
    """The words of a list, or of a text with commas."""
    given = names.split(",") if isinstance(names, str) else names
    return tuple(word.strip() for word in given if word.strip())
