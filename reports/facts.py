"""The facts of both runs side by side, those that differ first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from align.reports.visible import visible
from align.sentences import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from align.records import RunInfo
    from align.reports.language import Language

EXPECTED_TO_DIFFER = frozenset({"started", "ended", "command", "host"})
"""Facts of any two runs that differ without a reason to look at them."""

_PLAIN = (
    "align_version",
    "format_version",
    "device_type",
    "device_name",
    "device_count",
    "parameters_on",
    "simulated",
    "rank",
    "world_size",
    "detail",
    "phases",
    "steps_requested",
    "steps_seen",
    "modules_requested",
    "kept",
    "autocast",
    "optimizers",
    "script_hash",
    "command",
    "started",
    "ended",
    "outcome",
    "host",
)
_GROUPS = ("same_start", "perturbed", "loaders", "fallbacks", "versions", "flags", "seeds", "environment")
GROUPS_OF_LINES = ("same_start.", "loaders.", "fallbacks.")
"""Facts that `align show` tells in sentences of their own."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact of both runs."""

    name: str
    reference: str
    candidate: str
    differs: bool


def run_facts(run: RunInfo) -> dict[str, Any]:
    """Every fact of a run under a flat name such as `flags.deterministic`."""
    facts: dict[str, Any] = {name: getattr(run, name) for name in _PLAIN}
    for group in _GROUPS:
        entries = _entries(getattr(run, group))
        facts.update({f"{group}.{name}": entries[name] for name in sorted(entries)})
    return facts


def _entries(group: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The entries of a group; of several objects with their number before the name."""
    if isinstance(group, Mapping):
        return group
    return {f"{number}.{name}": value for number, each in enumerate(group) for name, value in each.items()}


def _rank(name: str) -> tuple[int, str]:
    """The order of facts: those of the run itself, then group by group in the order of the alphabet."""
    if name in _PLAIN:
        return _PLAIN.index(name), ""
    return len(_PLAIN) + _GROUPS.index(name.partition(".")[0]), name


def fact_text(value: Any, phrases: Language) -> str:
    """One fact in words."""
    if value is None or value in ("", (), []):
        return phrases["not_recorded"]
    if isinstance(value, bool):
        return phrases["yes" if value else "no"]
    if isinstance(value, (tuple, list)):
        return visible(" ".join(str(part) for part in value))
    return visible(str(value))


def fact_name(name: str, phrases: Language) -> str:
    """The name of a fact as a reader sees it; those of a group are names of flags and variables."""
    return visible(phrases.facts.get(name) or (name.replace("_", " ") if name in _PLAIN else name))


def known_facts(run: RunInfo, phrases: Language) -> tuple[tuple[str, str], ...]:
    """The facts of one run that are known, as names and values."""
    facts = run_facts(run)
    texts = ((fact_name(name, phrases), fact_text(facts[name], phrases)) for name in sorted(facts, key=_rank))
    return tuple((name, text) for name, text in texts if text != phrases["not_recorded"])


def compare_facts(reference: RunInfo, candidate: RunInfo, phrases: Language) -> tuple[Fact, ...]:
    """The facts of both runs: those that differ first."""
    left, right = run_facts(reference), run_facts(candidate)
    facts = []
    for name in sorted({*left, *right}, key=_rank):
        one, other = left.get(name), right.get(name)
        differs = one != other and name not in EXPECTED_TO_DIFFER
        facts.append(Fact(fact_name(name, phrases), fact_text(one, phrases), fact_text(other, phrases), differs))
    known = [fact for fact in facts if {fact.reference, fact.candidate} != {phrases["not_recorded"]}]
    return tuple(sorted(known, key=lambda fact: not fact.differs))


def device_text(run: RunInfo, phrases: Language) -> str:
    """The device of a run in one line: `Ascend910B (npu, simulated NPU), torch 2.1.0, torch_npu 2.1.0`."""
    kind = phrases.clauses((run.device_type, phrases["simulated"])) if run.simulated else run.device_type
    device = phrases.said(say("{} ({})", run.device_name, kind)) if run.device_name else kind
    libraries = [f"{name} {run.versions[name]}" for name in ("torch", "torch_npu") if name in run.versions]
    return visible(phrases.clauses((device, *libraries)))
