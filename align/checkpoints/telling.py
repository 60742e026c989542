"""What the findings of checkpoints say alike: the comparison they read, names in a few words, places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from align import wording
from align.checkpoint_files import Checkpoint
from align.checkpoints.merging import Merge
from align.checkpoints.relating import EntryPair
from align.checkpoints.rules import NUMBER, template
from align.diagnosis.labels import LABELS
from align.records import Finding, Place, Severity
from align.sentences import say

NAMES_SHOWN = 3
LONGEST_NAME = 200
"""Characters of a name that a sentence shows."""

NAMES_KEPT = 50
"""Names that the evidence of a finding holds; the rows of the report have all."""


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """Two checkpoints, their pairs in the order of the reference, and what was asked.

    `strict`: names, dtypes and layouts must be equal, too. `allow_cast`: numbers may be rounded to the dtype of the
    other side.
    """

    reference: Checkpoint
    candidate: Checkpoint
    pairs: tuple[EntryPair, ...]
    merges: tuple[Merge, ...]
    only_reference: tuple[str, ...]
    only_candidate: tuple[str, ...]
    strict: bool = False
    allow_cast: bool = False

    @property
    def candidate_word(self) -> str:
        """What the candidate is in a sentence."""
        return "run" if self.candidate.is_capture else "candidate"

    def permitted(self, severity: Severity) -> Severity:
        """The severity of what changes no weight of the model: an error where all must be equal."""
        return Severity.ERROR if self.strict else severity


def finding(
    code: str, severity: Severity, summary: str, advice: str, names: Sequence[str] = (), **evidence: Any
) -> Finding:
    """A finding about entries, which points to the first of them."""
    numbers: Mapping[str, Any] = {"entries": len(names), "names": list(names[:NAMES_KEPT]), **evidence}
    return Finding(
        code, LABELS[code], severity, summary, advice, where=place_of(names[0]) if names else Place(),
        evidence=numbers, arguments=dict(evidence) | {"names": list(names[:NAMES_KEPT])},
    )  # fmt: skip


def place_of(name: str) -> Place:
    """The place of an entry: module and slot."""
    module, _, slot = name.rpartition(".")
    return Place(name=module or slot, slot=slot)


def some(names: Sequence[str]) -> str:
    """`a, b and c`; of many, what they have in common: `layers.N.mlp.up.bias (N = 0-11)`."""
    groups: dict[str, list[tuple[str, ...]]] = {}
    names = [name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}..." for name in names]
    for name in names:
        pattern, numbers = template(name)
        groups.setdefault(pattern, []).append(numbers)
    if len(groups) == len(names) and len(names) <= NAMES_SHOWN:
        return wording.listing(list(names))
    shown = [_group(pattern, numbers) for pattern, numbers in list(groups.items())[:NAMES_SHOWN]]
    left = len(names) - sum(len(numbers) for numbers in list(groups.values())[:NAMES_SHOWN])
    return wording.listing(shown, len(shown) + left)


def _group(pattern: str, numbers: Sequence[tuple[str, ...]]) -> str:
    if len(numbers) == 1:
        return filled(pattern, numbers[0])
    if len(numbers[0]) == 1 and len(set(numbers)) == len(numbers):
        return say("{} (N = {})", pattern, wording.ranges(int(number[0]) for number in numbers))
    return say("{} like {}", len(numbers), filled(pattern, numbers[0]))


def filled(pattern: str, numbers: Sequence[str]) -> str:
    """A template with its numbers."""
    left = iter(numbers)
    return ".".join(next(left) if part == NUMBER else part for part in pattern.split("."))


def of(count: int, total: int) -> str:
    """`all 148 entries`, `3 of 148 entries`, `the only entry`."""
    if count == total:
        return say("all {} entries", wording.count(total)) if total > 1 else "the only entry"
    return say("{} of {}", wording.count(count), wording.plural(total, "entry", "entries"))
