"""The evidence of a finding in words: every number written, steps, runs and places named."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from align import wording
from align.reports.visible import visible
from align.sentences import joined, say

if TYPE_CHECKING:
    from align.records import Finding
    from align.reports.language import Language

DIFFERENCES = ("relative", "floor", "unit", "effect", "difference", "error", "cosine", "residual")
"""Words in the names of evidence that is read as a difference, to two digits."""
AS_WRITTEN = ("rate", "decay", "setting")
"""Words in the names of evidence that a person has written in a script: as many digits as it has."""
PAIRS = frozenset({
    "autocast", "classes", "constants", "counts", "dtypes", "learning_rates", "loader_settings", "losses",
    "loss_scales", "modes", "optimizers", "seeds", "settings", "weight_decay",
})  # fmt: skip
"""Evidence of two runs whose lists of two are what the reference and what the candidate has."""
PAIRING_CODES = frozenset({"AL101", "AL102", "AL604"})
"""Findings all of whose lists of two are such pairs; some have the names of settings."""
OF_STEPS = frozenset({"learning_rates", "optimizers", "sizes"})
OF_MICROS = frozenset({"factors", "targets_that_count"})
"""Evidence by the number of a step, or of a micro-step."""
OF_WORDS = frozenset({"load"})
"""Evidence whose entries are named as evidence is."""
NUMBERS = frozenset({"captured", "captured_steps", "missing", "ranks", "read", "steps"})
"""Evidence that lists steps, ranks or parts by their numbers."""
SAMPLE_KINDS = {
    "order in the batch": say("another order in the batch"),
    "shifted": say("shifted"),
    "gaps": say("gaps"),
    "order": say("another order"),
    "other": say("other samples"),
}
MOST = 8
"""Entries of one evidence that are written; the JSON has all."""
PAIR = 2


def evidence_pairs(finding: Finding, phrases: Language) -> tuple[tuple[str, str], ...]:
    """The evidence that says anything, as names and values in words."""
    # Beside a number of times, a limit is one too; elsewhere it is a number of its own.
    factors = ("times", "limit") if any("times" in name for name in finding.evidence) else ("times",)
    writing = _Writing(factors, phrases, pairs=finding.code in PAIRING_CODES)
    texts = ((name, writing.text(name, value)) for name, value in finding.evidence.items())
    return tuple((_name(name, finding.evidence[name], phrases), phrases.said(text)) for name, text in texts if text)


def _name(name: str, value: Any, phrases: Language) -> str:
    """What the evidence is called; some languages have other words for what is listed than for what is counted."""
    listed = "" if isinstance(value, (int, float, str)) else phrases.evidence.get(f"{name}, listed")
    return visible(listed or phrases.evidence.get(name) or name.replace("_", " ").replace("l2", "L2"))


class _Writing:
    """How the evidence of one finding is written; an empty text is for what says nothing."""

    def __init__(self, factors: Sequence[str], phrases: Language, *, pairs: bool) -> None:
        self.factors = factors
        self.phrases = phrases
        self.pairs = pairs

    def text(self, name: str, value: Any) -> str:
        """One value by its name and its kind."""
        form = FORMS.get(name)
        told = form(value) if form is not None else None
        if told is not None:
            return told
        if isinstance(value, Mapping):
            return self._mapping(name, value)
        if isinstance(value, (tuple, list)):
            return self._list(name, value)
        return "" if value is None else self._single(name, value)

    def _single(self, name: str, value: Any) -> str:
        if isinstance(value, bool):
            return self.phrases["yes" if value else "no"]
        if isinstance(value, int):
            return str(value) if "seed" in name else wording.count(value)
        if isinstance(value, float):
            return self._number(name, value)
        if name.startswith("relations"):
            return visible(self.phrases.word(str(value)))
        return visible(wording.dtype(str(value)) if "dtype" in name else str(value))

    def _number(self, name: str, value: float) -> str:
        """A number by what its name says that it is: a factor, a part, a difference, or a value of a tensor."""
        if any(word in name for word in self.factors):
            return wording.times(value)
        if "share" in name or "zeros" in name:
            return wording.percent(value)
        if name.endswith(("scale", "scales")):
            return wording.loss_scale(value)
        if any(word in name for word in DIFFERENCES):
            return wording.relative(value)
        if any(word in name for word in AS_WRITTEN) or ("count" in name and value.is_integer()):
            return f"{value:.6g}"
        return wording.value(value)

    def _list(self, name: str, values: Sequence[Any]) -> str:
        if name in NUMBERS and _integers(values):
            return wording.ranges(values) if values else ""
        if len(values) == PAIR and (self.pairs or name in PAIRS):
            return say("{} against {}", *(self._side(name, each) for each in values))
        texts = [text for each in values if (text := self.text(f"{name} ", each))]
        return self._several("; " if any(", " in text for text in texts) else ", ", texts)

    def _side(self, name: str, value: Any) -> str:
        """What one run has."""
        if isinstance(value, (Mapping, tuple, list)):
            return self.text("", value)
        return self.phrases["not_recorded"] if value is None or value == "" else self._single(name, value)

    def _mapping(self, name: str, entries: Mapping[Any, Any]) -> str:
        texts = []
        for key, value in entries.items():
            # The parts of a pairing evidence are pairs, too.
            text = self._list(name, value) if name in PAIRS and isinstance(value, (tuple, list)) else ""
            text = text or self.text(f"{name} {key}", value)
            if text:
                texts.append(say("{}: {}", self._key(name, str(key)), text))
        parted = any(isinstance(value, (Mapping, tuple, list)) for value in entries.values())
        return self._several("; " if parted or any(", " in text for text in texts) else ", ", texts)

    def _several(self, separator: str, texts: Sequence[str]) -> str:
        more = len(texts) - MOST
        shown = [*texts[:MOST], *([self.phrases["and_more"].format(count=wording.count(more))] if more > 0 else [])]
        return joined(separator, shown) if shown else ""

    def _key(self, name: str, key: str) -> str:
        """The name of one entry: a step, a micro-step, a word of evidence, or what a script calls it."""
        if key.isdecimal() and name in OF_STEPS:
            return wording.step(int(key))
        if name in OF_WORDS:
            return _name(key, 0, self.phrases)
        return say("micro {}", key) if key.isdecimal() and name in OF_MICROS else visible(key)


def _has(value: Any, **kinds: type | tuple[type, ...]) -> bool:
    """Whether this is a mapping with these entries; what other rules keep under a name has any form."""
    return isinstance(value, Mapping) and all(isinstance(value.get(name, value), kind) for name, kind in kinds.items())


def _integers(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and all(type(each) is int for each in value)


def _shape(value: Any) -> str | None:
    """`[4, 16, 64]`; a number has none."""
    if not _integers(value):
        return None
    return wording.shape(value) if value else say("a single number")


def _schedule(value: Any) -> str | None:
    """What the candidate's rates are to the reference's."""
    if not _has(value, kind=str, number=(int, float)) or not math.isfinite(value["number"]):
        return None
    number = wording.factor(float(value["number"]))
    steps = wording.plural(abs(int(value["number"])), "step")
    forms = {
        "times": say("{} times that of the reference", number),
        "faster": say("{} steps of the reference in each step", number),
        "slower": say("{} steps for each step of the reference", number),
        "shifted": say("{} ahead", steps) if value["number"] > 0 else say("{} behind", steps),
    }
    return forms.get(str(value["kind"]))


def _samples(value: Any) -> str | None:
    """What the samples of the batches are to each other; nothing where that is not known."""
    if not _has(value, kind=str, samples=int, common=int, told_by=str):
        return None
    if not value["samples"]:
        return ""
    kind = SAMPLE_KINDS.get(str(value["kind"]), visible(str(value["kind"])))
    counts = (wording.count(value["common"]), wording.count(value["samples"]))
    return say("{} ({} of {} in both runs, told by {})", kind, *counts, visible(str(value["told_by"])))


def _labels(value: Any) -> str | None:
    """By how many places labels are moved."""
    if not _has(value, moved_by=int, agreeing=int, compared=int):
        return None
    counts = (wording.count(value["agreeing"]), wording.count(value["compared"]))
    return say("moved by {} ({} of {} agree then)", wording.plural(abs(value["moved_by"]), "place"), *counts)


def _generators(value: Any) -> str | None:
    """Since when the states of generators differ."""
    kinds: dict[str, type | tuple[type, ...]] = {"differs_at": int, "agreed_at": (int, type(None))}
    if not isinstance(value, Mapping) or not all(_has(each, **kinds) for each in value.values()):
        return None
    texts = []
    for name, each in value.items():
        since = wording.step(each["differs_at"])
        agreed = say(", equal in {}", wording.step(each["agreed_at"])) if each["agreed_at"] is not None else ""
        texts.append(say("{}: another state since {}{}", visible(str(name)), since, agreed))
    return joined("; ", texts)


def _difference(value: Any) -> str | None:
    """Of which tensor the difference is a multiple."""
    if not _has(value, factor=(int, float), of=str, residual=(int, float)):
        return None
    factor, left = wording.factor(value["factor"]), wording.relative(value["residual"])
    return say("{} times {} (relative L2 of the rest {})", factor, value["of"], left)


def _layouts(value: Any) -> str | None:
    """How both runs lay a tensor out; most have no word of their own."""
    if not isinstance(value, (tuple, list)) or len(value) != PAIR or not all(isinstance(each, str) for each in value):
        return None
    return say("{} against {}", *(visible(each) if each else say("row-major") for each in value))


def _reaches(value: Any) -> str | None:
    """Into which phases of which steps something is carried: `step 0: gradient, param`."""
    if not isinstance(value, (tuple, list)) or not all(isinstance(each, str) for each in value):
        return None
    phases: dict[str, list[str]] = {}
    for step, colon, phase in (each.partition(":") for each in value):
        if not (colon and step.isdecimal()):
            return None
        phases.setdefault(step, []).append(visible(phase))
    texts = [say("{}: {}", wording.step(int(step)), joined(", ", found)) for step, found in phases.items()]
    return joined("; ", texts) if texts else ""


def _run(value: Any) -> str | None:
    """Elements of the flat tensor that follow each other."""
    if not _integers(value) or len(value) != PAIR:
        return None
    return wording.ranges(range(value[0], value[1]))


def _slice(value: Any) -> str | None:
    """Slices that follow each other."""
    if not _has(value, dimension=int, start=int, stop=int):
        return None
    return say("{} along dimension {}", wording.ranges(range(value["start"], value["stop"])), value["dimension"])


FORMS: Mapping[str, Callable[[Any], str | None]] = {
    "candidate_shape": _shape,
    "difference_is": _difference,
    "generators": _generators,
    "labels": _labels,
    "reaches": _reaches,
    "layouts": _layouts,
    "reference_shape": _shape,
    "samples": _samples,
    "schedule": _schedule,
    "shape": _shape,
    "wrong_run": _run,
    "wrong_slice": _slice,
}
"""Evidence of a form of its own; None is for values of another form, as other rules may have them."""
