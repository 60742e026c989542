"""Renamings in one line: what many pairs of names have in common, told and used for names without a partner."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from align.checkpoints.names import NamePair, Unpaired, Way
from align.sentences import say

NUMBER = "N"


def template(name: str) -> tuple[str, tuple[str, ...]]:
    """The name with `N` for its numbers, and the numbers."""
    parts = name.split(".")
    return ".".join(NUMBER if part.isdigit() else part for part in parts), tuple(p for p in parts if p.isdigit())


def renaming(ours: str, theirs: str) -> str:
    """`transformer.h.N.attn.c_attn -> layers.N.attention.qkv`: the rule of one pair, without the slot both end with."""
    mine, other = template(ours)[0].split("."), template(theirs)[0].split(".")
    if len(mine) > 1 and len(other) > 1 and mine[-1] == other[-1]:
        mine, other = mine[:-1], other[:-1]
    return say("{} -> {}", ".".join(mine), ".".join(other))


def told_rules(pairs: Iterable[NamePair]) -> list[tuple[str, int]]:
    """The rules by which names were changed, those of most names first."""
    counted = Counter(pair.rule for pair in pairs if pair.reference != pair.candidate)
    return counted.most_common()


def pair_by_learned_rules(unpaired: Unpaired) -> None:
    """Pair names whose modules, or the modules above them, were renamed as those of pairs that are known."""
    known = _learn([pair for pair in unpaired.pairs if pair.way in (Way.CONTENT, Way.SCHEME)])
    if not known:
        return
    for ours in list(unpaired.reference):
        theirs = _translated(ours, known)
        if theirs in unpaired.candidate and unpaired.fits(ours, theirs):
            unpaired.pair(ours, theirs, Way.RULE, renaming(ours, theirs))


def _learn(pairs: Sequence[NamePair]) -> dict[str, str]:
    """What the beginnings of names become, where all pairs agree on it."""
    votes: dict[str, Counter[str]] = {}
    for pair in pairs:
        mine, other = (template(name)[0].split(".")[:-1] for name in (pair.reference, pair.candidate))
        while mine and other:
            votes.setdefault(".".join(mine), Counter())[".".join(other)] += 1
            mine, other = mine[:-1], other[:-1]
    return {begin: counted.most_common(1)[0][0] for begin, counted in votes.items()}


def _translated(name: str, known: dict[str, str]) -> str:
    """The name that the longest beginning with a known translation gives, empty where there is none."""
    parts, numbers = template(name)[0].split("."), template(name)[1]
    for length in range(len(parts) - 1, 0, -1):
        found = known.get(".".join(parts[:length]))
        if found is not None:
            return _with_numbers([*found.split("."), *parts[length:]], numbers)
    return ""


def _with_numbers(parts: Sequence[str], numbers: Sequence[str]) -> str:
    if sum(part == NUMBER for part in parts) != len(numbers):
        return ""
    left = iter(numbers)
    return ".".join(next(left) if part == NUMBER else part for part in parts)
