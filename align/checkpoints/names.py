"""Pairs entries by name: equal names, wrappers taken away, one prefix put before or taken from all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from align.checkpoint_files import Entry
from align.records import Word
from align.sentences import joined, say

WRAPPERS = frozenset({"_orig_mod", "module", "_fsdp_wrapped_module", "_checkpoint_wrapped_module", "_fpw_module"})
"""Levels that torch.compile, DataParallel, FSDP and activation checkpointing put into names."""

LONGEST_PREFIX = 5
"""Levels of a prefix that are tried; `base_model.model.model.` has three."""
FEWEST_BY_PREFIX = 2
"""Names that a prefix must explain, where it does not explain all that are left."""


class Way(Word):
    """How two entries were found to belong together."""

    NAME = "name"
    WRAPPER = "wrapper"
    PREFIX = "prefix"
    SCHEME = "scheme"
    CONTENT = "content"
    RULE = "rule"
    ORDER = "order"


@dataclass(frozen=True, slots=True)
class NamePair:
    """One entry of the reference and the entry of the candidate that answers it.

    `rule` says the renaming that holds for many names in one line, empty where names are equal.
    """

    reference: str
    candidate: str
    way: Way
    rule: str = ""


class Unpaired:
    """The names that have no partner yet, in the order of the files."""

    def __init__(self, reference: Mapping[str, Entry], candidate: Mapping[str, Entry]) -> None:
        self.entries = (reference, candidate)
        self.reference = dict.fromkeys(reference)
        self.candidate = dict.fromkeys(candidate)
        self.pairs: list[NamePair] = []

    def pair(self, ours: str, theirs: str, way: Way, rule: str = "") -> None:
        """Take two names out as a pair."""
        del self.reference[ours]
        del self.candidate[theirs]
        self.pairs.append(NamePair(ours, theirs, way, rule))

    def fits(self, ours: str, theirs: str) -> bool:
        """Whether shapes are equal, or those of a transpose."""
        left, right = self.entries[0][ours].shape, self.entries[1][theirs].shape
        return left == right or (len(left) == 2 and left == right[::-1])  # noqa: PLR2004 - a matrix


def pair_by_name(unpaired: Unpaired) -> None:
    """Pair what has equal names, whatever it holds; then wrappers and prefixes."""
    for name in [name for name in unpaired.reference if name in unpaired.candidate]:
        unpaired.pair(name, name, Way.NAME)
    _pair_wrapped(unpaired)
    while unpaired.reference and unpaired.candidate and _pair_prefix(unpaired):
        pass


def _pair_wrapped(unpaired: Unpaired) -> None:
    plain = {_plain(name): name for name in unpaired.candidate}
    counts = Counter(map(_plain, unpaired.reference))
    counts_theirs = Counter(map(_plain, unpaired.candidate))
    for ours in list(unpaired.reference):
        key = _plain(ours)
        theirs = plain.get(key)
        if theirs is not None and counts[key] == counts_theirs[key] == 1 and unpaired.fits(ours, theirs):
            unpaired.pair(ours, theirs, Way.WRAPPER, _wrapper_rule(ours, theirs))


def _plain(name: str) -> str:
    return ".".join(part for part in name.split(".") if part not in WRAPPERS)


def _wrapper_rule(ours: str, theirs: str) -> str:
    """Which levels are in one name only, and whether they lead it or stand in it."""
    for side, name, other in (("candidate", theirs, ours), ("reference", ours, theirs)):
        if name.endswith(f".{other}") or not other:
            return say("'{}' stands before the names of the {}", name[: len(name) - len(other)], side)
    mine, others = ([part for part in name.split(".") if part in WRAPPERS] for name in (ours, theirs))
    told = [
        say("{} in names of the {}", joined(", ", (repr(part) for part in sorted(set(parts)))), side)
        for side, parts in (("reference", mine), ("candidate", others))
        if parts
    ]
    return say("wrappers: {}", joined(" and ", told))


def _pair_prefix(unpaired: Unpaired) -> bool:
    """Pair by the prefixes that explain most of what is left; False where none does."""
    ours, theirs = unpaired.reference, unpaired.candidate
    votes: Counter[tuple[str, str]] = Counter()
    for prefix in _prefixes(ours):
        votes[prefix, ""] = sum(name.startswith(prefix) and name[len(prefix) :] in theirs for name in ours)
    for prefix in _prefixes(theirs):
        votes["", prefix] = sum(name.startswith(prefix) and name[len(prefix) :] in ours for name in theirs)
    votes.update(_exchanged(ours, theirs))
    if not votes:
        return False
    (mine, other), count = max(votes.items(), key=lambda item: (item[1], -len(item[0][0]) - len(item[0][1])))
    found = [
        (name, other + name[len(mine) :])
        for name in ours
        if name.startswith(mine) and other + name[len(mine) :] in theirs
    ]
    fitting = [pair for pair in found if unpaired.fits(*pair)]
    if count == 0 or 2 * len(fitting) < len(found) or not _enough(len(fitting), len(ours), len(theirs)):
        return False
    rule = _prefix_rule(mine, other)
    for name, partner in fitting:
        unpaired.pair(name, partner, Way.PREFIX, rule)
    return True


def _enough(count: int, *sizes: int) -> bool:
    return count >= FEWEST_BY_PREFIX or count == min(sizes) == 1


def _prefixes(names: Iterable[str]) -> list[str]:
    """Beginnings of names, up to the first number: a number of a layer is no prefix of a model."""
    found: dict[str, None] = {}
    for name in names:
        prefix = ""
        for part in name.split(".")[:-1][:LONGEST_PREFIX]:
            if part.isdigit():
                break
            prefix += f"{part}."
            found[prefix] = None
    return list(found)


def _exchanged(ours: Iterable[str], theirs: Iterable[str]) -> Counter[tuple[str, str]]:
    """One prefix in the place of another: votes of names whose ends are alike."""
    tails: dict[str, list[str]] = {}
    for name in theirs:
        for prefix in ("", *_prefixes([name])):
            if prefix:
                tails.setdefault(name[len(prefix) :], []).append(prefix)
    votes: Counter[tuple[str, str]] = Counter()
    for name in ours:
        for mine in _prefixes([name]):
            for other in tails.get(name[len(mine) :], ()):
                if mine != other:
                    votes[mine, other] += 1
    return votes


def _prefix_rule(mine: str, other: str) -> str:
    if not mine:
        return say("'{}' stands before the names of the candidate", other)
    if not other:
        return say("'{}' stands before the names of the reference", mine)
    return say("'{}' of the reference is '{}' in the candidate", mine, other)
