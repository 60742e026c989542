"""Why two runs part: rules over the walk, their findings in order, the verdict and its sentence."""

from __future__ import annotations

from align import wording
from align.comparison import Walk
from align.diagnosis.causes import in_order
from align.diagnosis.inspecting import inspect
from align.diagnosis.registry import PAIR_RULES, job_rule, rule, run_rule
from align.exponents import exponents_of_pairs, skipped_steps
from align.records import DiffResult, Finding, Severity, Verdict
from align.sentences import say

PARTING_LOSSES = "loss-diverges"
"""What the timelines tell of losses that drift apart, which is no proof."""

__all__ = ["diagnose", "inspect", "job_rule", "rule", "run_rule"]


def diagnose(walk: Walk) -> DiffResult:
    """Run all rules over the walk; the root cause stands first."""
    findings = in_order(PAIR_RULES.findings(walk))
    divergence = walk.divergence
    return DiffResult(
        reference_path=walk.reference_path,
        candidate_path=walk.candidate_path,
        reference=walk.reference,
        candidate=walk.candidate,
        verdict=_verdict(walk),
        summary=_summary(walk, findings),
        first_divergence=divergence,
        findings=findings,
        resolution=walk.resolution,
        comparisons=walk.comparisons,
        only_reference=walk.only_reference,
        only_candidate=walk.only_candidate,
        counts=walk.counts,
        reference_timeline=walk.reference_timeline,
        candidate_timeline=walk.candidate_timeline,
        modules=tuple(walk.modules.values()),
        pairing=walk.pairing,
        exponents=exponents_of_pairs(
            walk.comparisons, divergence, skipped_steps(walk.reference_timeline, walk.candidate_timeline)
        ),
    )


def _later(walk: Walk, findings: tuple[Finding, ...]) -> str:
    """What is known of losses behind the steps that were captured, and may not stand below "aligned"; else empty."""
    end = max(walk.steps, default=-1)
    later = (each for each in findings if each.severity is Severity.WARNING and each.label == PARTING_LOSSES)
    return next((each.summary for each in later if each.where.step is not None and each.where.step > end), "")


def _verdict(walk: Walk) -> Verdict:
    """Diverged with a first difference; aligned where enough was judged and agrees."""
    if walk.divergence is not None:
        return Verdict.DIVERGED
    return Verdict.ALIGNED if walk.enough_judged else Verdict.INCOMPARABLE


def _summary(walk: Walk, findings: tuple[Finding, ...]) -> str:
    """The first finding's sentence; without a divergence that of the note that says what could be seen."""
    first = walk.divergence
    if first is None:
        agreement = next((finding.summary for finding in findings if finding.label == "within-noise"), "Aligned.")
        if _verdict(walk) is Verdict.ALIGNED:
            return _later(walk, findings) or agreement
        share = say("only {}", wording.percent(walk.judged_share)) if walk.judged_share else say("none")
        steps = wording.steps(walk.steps)
        return say(
            "These captures cannot be compared: of the tensors that {} computed {} could be judged.", steps, share
        )
    if findings and findings[0].severity is Severity.ERROR:
        return findings[0].summary
    return say(
        "{}, {}: {} {} is the first tensor that differs.",
        wording.step(first.step, first.micro),
        first.phase,
        first.name,
        first.slot,
    )
