"""What a report says of the pairing: names that are not equal in groups, calls and micro-steps that were aligned."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from align.matching.names import NameMatch
from align.pairing import NamePairs, PairedStep
from align.records import PairedCalls, PairedNames, Pairing, Phase


def summarise(names: NamePairs, paired: Sequence[PairedStep], steps: tuple[Sequence[int], Sequence[int]]) -> Pairing:
    """The pairing of two captures; `steps` are all that each of them holds."""
    calls = tuple(
        PairedCalls(step.step, match.micro, match.name, match.pairs, match.totals, match.confidence)
        for step in paired
        for match in step.shifts.matches
    )
    return Pairing(
        grouped(names.matches), calls, _tensors(paired), tuple(steps[0]), tuple(steps[1]), names.notes,
        sum(len(step.shards) for step in paired),
    )  # fmt: skip


def _tensors(paired: Iterable[PairedStep]) -> tuple[tuple[str, str], ...]:
    """The tensors of other names, each once; those of the backward are called after those of the forward."""
    found = {
        (f"{ours[1]} {ours[2]}", f"{theirs[1]} {theirs[2]}"): None
        for step in paired
        for ours, theirs in step.slots.items()
        if ours[0] is not Phase.BACKWARD
    }
    return tuple(found)


def grouped(matches: Iterable[NameMatch]) -> tuple[PairedNames, ...]:
    """The pairs by what their names begin with, those of most modules first."""
    groups: dict[tuple[str, str, str], list[NameMatch]] = defaultdict(list)
    for match in matches:
        group = (*begins(match.reference, match.candidate), match.method)
        groups[group].append(match)
    found = [
        PairedNames(
            reference,
            candidate,
            len(group),
            method,
            min(match.confidence for match in group),
            _reasons(group),
        )
        for (reference, candidate, method), group in groups.items()
    ]
    return tuple(sorted(found, key=lambda each: -each.modules))


def _reasons(group: Sequence[NameMatch]) -> tuple[str, ...]:
    """What speaks for at least half of the pairs."""
    counts = Counter(word for match in group for word in match.by)
    return tuple(word for word, count in counts.items() if 2 * count >= len(group))


def begins(ours: str, theirs: str) -> tuple[str, str]:
    """Two names without the parts at their ends that are alike, and with `N` and `N+1` for numbers.

    `h.3.attn.q` and `layers.3.attn.q` begin with `h` and `layers`; `h.3` and `h.4` with `h.N` and `h.N+1`.
    """
    left, right = ours.split("."), theirs.split(".")
    while left and right and left[-1] == right[-1]:
        left.pop()
        right.pop()
    places = [[place for place, part in enumerate(side) if part.isdecimal()] for side in (left, right)]
    if len(places[0]) == len(places[1]):
        for one, other in zip(*places, strict=True):
            moved = int(right[other]) - int(left[one])
            left[one], right[other] = "N", f"N{moved:+d}" if moved else "N"
    return ".".join(left), ".".join(right)
