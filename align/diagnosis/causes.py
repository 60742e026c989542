"""Which finding explains which: a cause stands before its consequences, and they name it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from align.records import Finding, Phase, Place, Severity

SEVERITIES = tuple(Severity)

CURVES = frozenset({"loss-stall", "loss-spike", "loss-bias", "loss-diverges"})
"""What any error may end in."""

WEIGHTS = frozenset({"initial-weights-differ", "buffer-differs", "tied-weight-broken", "weight-cast"})
DRAWS = frozenset({"rng-mismatch", "dropout-mask-differs"})
DATA = frozenset({"data-order", "data-differs", "labels-differ"})
SCALES = frozenset({"loss-scale-collapse", "loss-scale-unstable", "parameters-not-updated"})
UNDERFLOW = frozenset({"parameters-not-updated", "update-lost", "gradient-scaled", "origin-functional"})
"""What gradients of zeros end in."""
GRADIENTS = frozenset({"independent-origin", "gradient-norm-differs"})
"""What gradients of another size end in."""

STILL = frozenset({("parameters-not-updated", "loss-stall"), ("update-lost", "loss-stall")})
"""What explains a loss that stays as a warning, too: it is told because of it."""

UNSEEDED = frozenset({"batch_sampler", "distributed", "length", "sampler", "shuffle"})
"""Settings of a DataLoader that order its samples otherwise whatever the seeds are."""

SUMMED = frozenset({str(Phase.GRADIENT), str(Phase.UPDATE)})
"""Where one pass more or less in a step is the first difference, all gradients of the step follow from it."""

CHANCE = frozenset({"seed-mismatch", "rng-mismatch", "dropout-mask-differs"})
"""What makes other masks in every module that drops elements."""

SET_OTHERWISE = frozenset({"module-config-differs", "train-eval-mode"})
AT_ONE_PLACE = frozenset(
    {
        "backward-operator-differs",
        "dropout-mask-differs",
        "gradient-doubled",
        "gradient-scaled",
        "loss-normalization",
        "tied-weight-broken",
    }
)
"""What a module that is set otherwise explains where it makes the first difference, and nowhere else."""

EXPLAINS: Mapping[str, frozenset[str]] = {
    "environment-differs": DRAWS,
    "precision-mode-differs": frozenset({"dtype-differs"}),
    "structure-differs": WEIGHTS | {"shape-differs", "origin-module"},
    "hyperparameters-differ": frozenset({"optimizer-formula-differs", "optimizer-state-differs"}),
    "module-config-differs": frozenset({"origin-module", "origin-functional", "operator-differs"}),
    "train-eval-mode": frozenset({"origin-module", "origin-functional", "dropout-mask-differs"}),
    "tied-weight-broken": frozenset({"origin-module"}),
    "layout-differs": frozenset({"operator-differs"}),
    "seed-mismatch": WEIGHTS | DRAWS | DATA | {"origin-module", "origin-functional"},
    "rng-mismatch": DRAWS | DATA | {"origin-module", "gradients-not-reduced", "ranks-differ"},
    "dropout-mask-differs": frozenset({"origin-module"}),
    "duplicate-samples": frozenset({"missing-samples"}),
    "buffer-differs": frozenset({"origin-module", "origin-functional", "operator-differs", "dtype-differs"}),
    "checkpoint-keys": frozenset({"checkpoint-not-loaded", "checkpoint-partially-loaded"}),
    "weight-transposed": frozenset({"shape-differs"}),
    "ranks-differ": frozenset({"gradients-not-reduced"}),
    "gradients-not-reduced": frozenset({"ranks-differ", "gradient-norm-differs"}),
    "gradient-norm-differs": frozenset({"gradient-scaled", "independent-origin"}),
    "nan-origin": SCALES | {"overflow"},
    "overflow": SCALES | {"nan-origin"},
    "overflow-saturated": SCALES | {"origin-module", "origin-functional"},
    "gradient-underflow": UNDERFLOW,
    "denormal-flush": UNDERFLOW
    | {"gradient-underflow", "origin-module", "operator-differs", "backward-operator-differs"},
    "loss-scale-collapse": UNDERFLOW | {"gradient-underflow", "overflow"},
    "loss-scale-stuck": frozenset({"parameters-not-updated", "loss-scale-collapse"}),
    "loss-scale-unstable": UNDERFLOW | {"gradient-underflow", "loss-scale-collapse"},
    "skipped-step-applied": frozenset(
        {"nan-origin", "overflow", "optimizer-state-differs", "optimizer-formula-differs"}
    ),
    "clip-before-unscale": GRADIENTS | {"gradient-scaled", "origin-functional", "update-lost"},
    "recompute-differs": frozenset({"origin-module", "origin-functional", "backward-operator-differs"}),
    "parameters-not-updated": frozenset({"optimizer-formula-differs", "update-lost", "loss-scale-collapse"}),
    "gradient-scaled": GRADIENTS,
    "gradient-doubled": GRADIENTS,
    "loss-normalization": GRADIENTS | {"gradient-scaled"},
    "optimizer-state-differs": frozenset({"optimizer-formula-differs"}),
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
    if cause is finding or cause.code == finding.code:
        return False
    if cause.severity is not Severity.ERROR:
        return (cause.severity, finding.severity) == (Severity.WARNING,) * 2 and (cause.label, finding.label) in STILL
    if _in_one_module(cause, finding):
        return True
    if finding.label not in EXPLAINS.get(cause.label, frozenset()) | CURVES or cause.label in CURVES:
        return False
    if cause.label == "seed-mismatch" and _set_otherwise(finding):
        return False
    return cause.where.step is None or finding.where.step is None or cause.where.step <= finding.where.step


def _in_one_module(cause: Finding, finding: Finding) -> bool:
    """Whether what explains the first difference explains this in the same module, or alike in another one."""
    if finding.label == "shape-differs" and finding.severity is not Severity.ERROR:
        return _routed(cause.where, finding.where)
    if cause.label == "structure-differs" and cause.where.phase in SUMMED:
        return _one_phase(cause.where, finding.where) or _later_batches(cause, finding)
    if finding.label == "independent-origin":
        return _alike(cause, finding)
    if cause.label not in SET_OTHERWISE or finding.label not in AT_ONE_PLACE:
        return False
    inside = f"{finding.where.name}.".startswith(f"{cause.where.name}.")
    return inside and _one_phase(cause.where, finding.where)


def _one_phase(ours: Place, theirs: Place) -> bool:
    return (ours.step, ours.phase) == (theirs.step, theirs.phase)


def _routed(ours: Place, theirs: Place) -> bool:
    """Whether a shape inside a model follows: how many tokens an expert gets depends on all that came before.

    An argument of the code that is to blame may be why it is.
    """
    later = ours.step is not None and theirs.step is not None and ours.step <= theirs.step
    return later and theirs.phase == Phase.FORWARD and ours.name != theirs.name


def _alike(cause: Finding, finding: Finding) -> bool:
    """Whether the same is true of the module of a later difference: it drops elements, has that setting or mode."""
    if cause.label in CHANCE:
        return bool(finding.evidence.get("drops"))
    if cause.label == "module-config-differs":
        return cause.arguments.get("attribute") in finding.evidence.get("settings", ())
    modules = cause.evidence.get("modules", ()) if cause.label == "train-eval-mode" else ()
    name = finding.where.name
    return any(module.startswith("<") or f"{name}.".startswith(f"{module}.") for module in modules)


def _later_batches(cause: Finding, finding: Finding) -> bool:
    """Whether batches differ because one run has drawn more for the step before."""
    later = cause.where.step is not None and finding.where.step is not None and cause.where.step < finding.where.step
    return later and finding.label in DATA | {"data-shifted"} and finding.severity is not Severity.ERROR


def _set_otherwise(finding: Finding) -> bool:
    """Whether the order of the data stays another one when the seeds agree.

    A generator of the DataLoader's own counts if only one run has it: two of them may have been given the seeds.
    """
    settings = finding.evidence.get("loader_settings") or {}
    return not UNSEEDED.isdisjoint(settings) or None in settings.get("generator_seed", ())
