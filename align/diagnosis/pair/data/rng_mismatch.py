"""AL202: the seeds agree, but one run draws random numbers that the other does not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from align import wording
from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.pair.data import given
from align.diagnosis.pair.data.dropout_mask import rate_inside, zero_shares
from align.diagnosis.registry import rule
from align.pairing import Pair
from align.records import Finding, Phase, Severity, TensorKey
from align.samples import SampleKind
from align.sentences import say, trimmed

CODE = "AL202"
LABEL = "rng-mismatch"

CPU = "cpu"
DEVICE, TORCH = "device", "torch"
WORDS = {DEVICE: "the device", TORCH: "torch (CPU)", "python": "Python's random", "numpy": "NumPy"}

RANDOM_ORDER = frozenset({SampleKind.ORDER, SampleKind.ORDER_IN_BATCH})


class Parted(NamedTuple):
    """A generator: the first captured step that begins with other states, and the last before that with equal ones."""

    name: str
    step: int
    agreed: int | None


class Random(NamedTuple):
    """The first difference, where chance makes it: where it stands, in words."""

    key: TensorKey
    words: str


@rule(CODE, LABEL, rank=12)
def find(walk: Walk) -> Iterator[Finding]:
    """States of generators that part although both were seeded alike, where something random is what differs first."""
    random = _random_difference(walk)
    if random is None:
        return
    parted = [one for one in _parted(walk) if one.step <= random.key.step]
    if not parted:
        return
    step = min(one.step for one in parted)
    first = [one for one in parted if one.step == step]
    agreed = max((one.agreed for one in first if one.agreed is not None), default=None)
    since = say("before {}", wording.step(step)) if agreed is None else say("after {} has begun", wording.step(agreed))
    yield Finding(
        CODE,
        LABEL,
        Severity.ERROR,
        say(
            "The seeds agree, but the generator{} of {} differ{} as {} begins: {} one run draws numbers that the "
            "other does not. {}. No module is to blame.",
            "" if len(first) == 1 else say("s"),
            wording.listing([WORDS.get(one.name, one.name) for one in first]),
            say("s") if len(first) == 1 else "",
            wording.step(step),
            since,
            random.words,
        ),
        trimmed(
            say(
                "Look for what only one script draws: `iter(loader)` takes a number from torch's generator unless the "
                "DataLoader has a `generator=` of its own; so do an initialisation, a sanity check, an augmentation. "
                "`align capture --phases rng,input --steps 0:` shows in which step the states part. {}",
                telling.same_start_advice(walk),
            )
        ),
        telling.place_of(random.key),
        {"generators": {one.name: {"differs_at": one.step, "agreed_at": one.agreed} for one in parted}},
        {"generators": [one.name for one in first], "step": step, "agreed": agreed},
    )


def _random_difference(walk: Walk) -> Random | None:
    """Masks of a dropout, or the order of the data, where they are what differs first."""
    if walk.first is None:
        return None
    key = walk.first.comparison.key
    if zero_shares(walk) is not None:
        return Random(key, say("{}: {} then drops other elements", telling.opening(key), key.name))
    if rate_inside(walk):
        return Random(key, say("{}: {} then drops other elements inside", telling.opening(key), key.name))
    found = given.first_difference(walk)
    if found is None or not given.parts_here(walk, found) or found.kind not in RANDOM_ORDER:
        return None
    if given.loader_settings(walk):
        return None  # Loaders that are set otherwise need no other draw.
    return Random(key, say("The data come in another order from {} on", wording.step(key.step)))


def _parted(walk: Walk) -> list[Parted]:
    """The generators whose states part, of those that both runs seeded alike."""
    states: dict[str, list[Pair]] = {}
    for step in walk.evidence:
        for pair in step.pairs:
            if pair.key.phase is Phase.RNG and pair.reference.hash is not None and pair.candidate.hash is not None:
                states.setdefault(pair.key.name, []).append(pair)
    found = [_parting(walk, name, pairs) for name, pairs in states.items() if _comparable(walk, name)]
    return [one for one in found if one is not None]


def _parting(walk: Walk, name: str, pairs: list[Pair]) -> Parted | None:
    ordered = sorted(pairs, key=lambda pair: pair.key.step)
    for place, pair in enumerate(ordered):
        if pair.reference.hash != pair.candidate.hash:
            agreed = ordered[place - 1].key.step if place else None
            # Of python's and numpy's generators no seed is known: only that they agreed before.
            return Parted(name, pair.key.step, agreed) if agreed is not None or _seeded_alike(walk, name) else None
    return None


def _seeded_alike(walk: Walk, name: str) -> bool:
    ours, theirs = walk.reference.seeds, walk.candidate.seeds
    return name in ours and name in theirs and ours[name] == theirs[name]


def _comparable(walk: Walk, name: str) -> bool:
    """Whether both runs draw the same things from this generator: each kind of device has one of its own.

    A run on the CPU draws its dropout masks from torch's generator, one on another device does not.
    """
    ours, theirs = walk.reference, walk.candidate
    one_type = ours.device_type == theirs.device_type and ours.simulated == theirs.simulated
    if name == DEVICE:
        return one_type
    return name != TORCH or one_type or CPU not in {ours.device_type, theirs.device_type}
