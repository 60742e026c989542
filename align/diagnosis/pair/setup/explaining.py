"""Whether something that is set differently in a module can be the cause of the first difference."""

from __future__ import annotations

import re
from collections.abc import Mapping

from align import wording
from align.comparison import Walk
from align.configuration import MODEL_CONFIG, ConfigDifference
from align.diagnosis import telling
from align.matching.rules import is_root
from align.records import Kind, ModuleInfo, Origin, Phase, Severity
from align.sentences import say
from align.walk import Suspect

AT_CODE, UNSEEN_INSIDE, ABOVE = 0, 1, 2
"""How near a module stands to the code that made the difference: it is that code, was not captured in it, holds it."""

WEIGHT_WORDS = frozenset({"init", "initializer", "padding", "std"})
"""Attributes that decide what the initial weights are."""

SUBJECTS: tuple[tuple[frozenset[str], tuple[str, ...]], ...] = (
    (frozenset({"act", "activation"}), ("act", "gelu", "silu", "relu")),
    (frozenset({"attention", "attn", "head", "heads", "sliding", "window"}), ("attention", "attn")),
    (frozenset({"drop", "dropout", "pdrop"}), ("attention", "attn", "drop")),
    (frozenset({"eps", "epsilon", "norm"}), ("ln_", "norm")),
    (frozenset({"inner", "intermediate", "mlp"}), ("feed", "ffn", "mlp")),
    (frozenset({"position", "positions", "rope", "rotary", "theta"}), ("attention", "attn", "embed", "rope", "rotary")),
    (frozenset({"scale", "scaling", "multiplier", "softcap", "softcapping"}), ("",)),
)
"""Words of a model's configuration, and what is in the names and classes of the modules that they concern."""


def settled_by(walk: Walk, difference: ConfigDifference) -> int | None:
    """How near the module stands to the code that made the first difference, None where it cannot be the cause."""
    first = walk.first
    if first is None or first.statistics_only:
        return None
    code = telling.blamed(first)
    above = _holds(difference.name, code)
    if first.origin is Origin.WEIGHTS:
        by_draw = not WEIGHT_WORDS.isdisjoint(_words(difference.attribute))
        return (AT_CODE if difference.name == code else ABOVE if above else None) if by_draw else None
    if not made_by_code(first):
        return None
    if difference.name == code or (_holds(code, difference.name) and not _seen(walk, difference.name)):
        return AT_CODE if difference.name == code else UNSEEN_INSIDE
    concerns = not difference.attribute.startswith(MODEL_CONFIG) or _concerns(difference.attribute, code, walk.modules)
    return ABOVE if above and concerns else None


def severity(walk: Walk, *, sure: bool) -> Severity:
    """An error for what surely is the cause; else a warning where the runs part, and a note where they do not."""
    if sure:
        return Severity.ERROR
    return Severity.NOTE if walk.first is None else Severity.WARNING


def made_by_code(first: Suspect) -> bool:
    """Whether the code of a module made the first difference, and not the batch, the weights or the optimizer.

    NaN and Inf are left out: where they come from says more than what is set otherwise there.
    """
    by_module = first.origin in {Origin.MODULE, Origin.FUNCTIONAL}
    return by_module and first.kind in {Kind.VALUE, Kind.SHAPE} and bool(telling.blamed(first))


def first_sentence(first: Suspect) -> str:
    """Where the runs part, for a finding that has named the cause before."""
    comparison = first.comparison
    key = comparison.key
    much = say(" ({})", telling.amount(comparison) if first.kind is Kind.VALUE else "another shape")
    if first.origin is Origin.WEIGHTS:
        much = say(" (relative L2 {})", wording.relative(comparison.relative_l2)) if comparison.relative_l2 else ""
    made = say("; {} made it", telling.maker(first)) if first.origin is Origin.FUNCTIONAL else ""
    return say("{}: {} is the first tensor that differs{}{}.", telling.opening(key), telling.tensor(key), much, made)


def _holds(holder: str, name: str) -> bool:
    """Whether one module is inside another; names below the main root have no prefix."""
    if is_root(holder):
        return name != holder and (not name.startswith("<") or name.startswith(f"{holder}."))
    return name.startswith(f"{holder}.")


def _seen(walk: Walk, name: str) -> bool:
    """Whether the outputs of a module were compared, or are not there for another reason than the capture's options."""
    if not (walk.reference.modules_requested or walk.candidate.modules_requested):
        return True
    return any(each.key.name == name and each.key.phase is Phase.FORWARD for each in walk.comparisons)


def _concerns(attribute: str, code: str, modules: Mapping[str, ModuleInfo]) -> bool:
    words = _words(attribute)
    info = modules.get(code)
    place = say("{} {}", ".".join(code.split(".")[-2:]), info.class_name if info is not None else "").lower()
    return any(not subject.isdisjoint(words) and any(part in place for part in parts) for subject, parts in SUBJECTS)


def _words(attribute: str) -> set[str]:
    return set(re.split(r"[_.]", attribute.lower()))
