"""Which finding explains which: a cause stands before its consequences, and they name it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from align.records import Finding, Severity

SEVERITIES = tuple(Severity)

CURVES = frozenset({"loss-stall", "loss-spike", "loss-bias", "loss-diverges"})
"""What any error may end in."""

WEIGHTS = frozenset({"initial-weights-differ", "buffer-differs", "tied-weight-broken", "weight-cast"})
DRAWS = frozenset({"rng-mismatch", "dropout-mask-differs"})
DATA = frozenset({"data-order", "data-differs", "labels-differ"})
SCALES = frozenset({"loss-scale-collapse", "loss-scale-unstable", "parameters-not-updated"})

EXPLAINS: Mapping[str, frozenset[str]] = {
    "environment-differs": DRAWS,
    "precision-mode-differs": frozenset({"dtype-differs"}),
    "structure-differs": WEIGHTS | {"shape-differs"},
    "hyperparameters-differ": frozenset({"optimizer-formula-differs", "optimizer-state-differs"}),
    "module-config-differs": frozenset({"origin-module", "origin-functional", "operator-differs"}),
    "train-eval-mode": frozenset({"origin-module", "origin-functional", "dropout-mask-differs"}),
    "seed-mismatch": WEIGHTS | DRAWS | DATA,
    "rng-mismatch": DRAWS,
    "data-shifted": DATA,
    "data-order": DATA,
    "data-differs": frozenset({"labels-differ"}),
    "checkpoint-not-loaded": WEIGHTS,
    "checkpoint-partially-loaded": WEIGHTS,
    "checkpoint-keys": WEIGHTS | {"checkpoint-not-loaded", "checkpoint-partially-loaded"},
    "weight-permuted": WEIGHTS,
    "weight-transposed": WEIGHTS,
    "weight-cast": WEIGHTS,
    "weight-stale": WEIGHTS,
    "weight-scaled": WEIGHTS,
    "weight-corrupted": WEIGHTS,
    "tied-weight-broken": WEIGHTS,
    "buffer-differs": WEIGHTS,
    "nan-origin": SCALES | {"overflow", "skipped-step-applied"},
    "overflow": SCALES | {"nan-origin"},
    "overflow-saturated": SCALES | {"origin-module", "origin-functional"},
    "gradient-underflow": frozenset({"parameters-not-updated", "update-lost", "gradient-scaled"}),
    "clip-before-unscale": frozenset({"gradient-scaled", "origin-functional", "update-lost"}),
    "recompute-differs": frozenset({"origin-module", "origin-functional", "backward-operator-differs"}),
    "learning-rate-differs": frozenset({"optimizer-formula-differs"}),
    "weight-decay-groups": frozenset({"hyperparameters-differ", "optimizer-formula-differs"}),
}
"""The labels that a finding of severity error explains, where they stand at the same step or later."""


def in_order(found: Iterable[tuple[int, Finding]]) -> tuple[Finding, ...]:
    """Findings, each with the rank of its rule, the root cause first; consequences stand behind their cause.

    A cause is an error; it explains what `EXPLAINS` says at its step or later, and any curve.
    """
    ranked = sorted(found, key=lambda entry: (SEVERITIES.index(entry[1].severity), entry[0]))
    findings = [finding for _, finding in ranked]
    causes: list[Finding] = []
    consequences: dict[int, list[Finding]] = {}
    for finding in findings:
        cause = next((number for number, cause in enumerate(causes) if explains(cause, finding)), None)
        if cause is None:
            causes.append(finding)
        else:
            consequences.setdefault(cause, []).append(replace(finding, explained_by=causes[cause].code))
    return tuple(finding for number, cause in enumerate(causes) for finding in (cause, *consequences.get(number, ())))


def explains(cause: Finding, finding: Finding) -> bool:
    """Whether one finding may be the consequence of another."""
    if cause.severity is not Severity.ERROR or cause is finding or cause.code == finding.code:
        return False
    if finding.label not in EXPLAINS.get(cause.label, frozenset()) | CURVES or cause.label in CURVES:
        return False
    return cause.where.step is None or finding.where.step is None or cause.where.step <= finding.where.step
