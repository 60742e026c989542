"""What is wrong with one run, or with the ranks of one job: rules and questions over its inspection, the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from align import wording
from align.asked_steps import none_of_asked, within
from align.diagnosis.causes import in_order
from align.diagnosis.registry import JOB_RULES, RUN_RULES
from align.errors import ComparisonError
from align.exponents import exponents_of_run, skipped_steps
from align.inspection import Inspection, Job, RunView
from align.inspection.ending import ending
from align.inspection.grades import graded
from align.inspection.questions import JOB_QUESTIONS, QUESTIONS
from align.inspection.ranks_merging import check_one_job, merged
from align.inspection.tables import tables_of
from align.records import Finding, Health, InspectResult, Reply, Severity, State
from align.sentences import joined, say


def inspect(views: Sequence[RunView]) -> InspectResult:
    """Inspect one run, or all ranks of one job in their order.

    Raises ComparisonError where a file holds no step and no row of the timeline, and for files of different jobs.
    """
    for view in views:
        if not view.steps and not view.timeline:
            raise ComparisonError(
                say(
                    "Cannot inspect '{}': it holds no finished step and no row of a timeline. Capture it again and "
                    "let at least one training step end.",
                    view.path,
                )
            )
    check_one_job(views)
    job = Job(tuple(Inspection(view) for view in views))
    findings = in_order([*_of_runs(job), *JOB_RULES.findings(job)])
    replies = graded(_replies(job), findings)
    verdict = _verdict(views, findings, replies)
    first = views[0]
    wrong = [finding for finding in findings if finding.severity is Severity.ERROR]
    return InspectResult(
        paths=tuple(view.path for view in views),
        run=first.run,
        verdict=verdict,
        summary=wrong[0].summary if wrong else _top(views, verdict, findings),
        findings=findings,
        replies=replies,
        timeline=first.timeline,
        modules=tuple(first.modules.values()),
        counts={
            "steps": max(len(view.timeline) for view in views),
            "captured_steps": len(first.steps),
            "records": sum(len(first.step(number).records) for number in first.steps),
            "findings": len(findings),
        },
        first=wrong[0].where if wrong else None,
        tables=tables_of(job),
        captured=first.steps,
        exponents=exponents_of_run(
            (record for number in first.steps for record in first.step(number).records), skipped_steps(first.timeline)
        ),
    )


def _of_runs(job: Job) -> list[tuple[int, Finding]]:
    """The findings of each rank; in a job of several ranks each says its own."""
    found: list[tuple[int, Finding]] = []
    for inspection in job.ranks:
        rank = inspection.view.run.rank if len(job.ranks) > 1 else None
        for order, finding in RUN_RULES.findings(inspection):
            found.append((order, replace(finding, where=replace(finding.where, rank=rank))))
    return found


def _replies(job: Job) -> tuple[Reply, ...]:
    """The answers to all questions: of several ranks the worst to each, then those of the ranks together."""
    numbers = [inspection.view.run.rank for inspection in job.ranks]
    answers = [[question(inspection) for inspection in job.ranks] for question in QUESTIONS]
    own = [merged(list(zip(numbers, replies, strict=True))) for replies in answers]
    return (*own, *(question(job) for question in JOB_QUESTIONS)) if len(job.ranks) > 1 else tuple(own)


def _verdict(views: Sequence[RunView], findings: Sequence[Finding], replies: Sequence[Reply]) -> Health:
    """Unhealthy with an error; healthy where at least one question found all well, and not by the timeline alone."""
    if any(finding.severity is Severity.ERROR for finding in findings):
        return Health.UNHEALTHY
    if not any(view.steps for view in views):
        return Health.UNKNOWN
    return Health.HEALTHY if any(reply.state is State.GOOD for reply in replies) else Health.UNKNOWN


def _top(views: Sequence[RunView], verdict: Health, findings: Sequence[Finding]) -> str:
    """What is said of a run without an error: how it ended, where it did not end by itself, before all else."""
    told = _summary(views, verdict, findings)
    ended = ending(views)
    return joined(" ", (ended, told)) if ended else told


def _summary(views: Sequence[RunView], verdict: Health, findings: Sequence[Finding]) -> str:
    """One sentence on a run without an error."""
    captured, seen = len(views[0].steps), len(views[0].timeline)
    scope = say("{}, of which {} captured", wording.plural(seen, "step"), wording.count(captured))
    warnings = sum(finding.severity is Severity.WARNING for finding in findings)
    also = say("; {}", wording.plural(warnings, "warning")) if warnings else ""
    if verdict is Health.UNKNOWN and not any(view.steps for view in views):
        why = none_of_asked(views[0].run)
        none = (
            say("No step was captured, since the capture holds {}", why)
            if why
            else say("No step was captured ({})", scope)
        )
        seen_wrong = wording.plural(warnings, "warning") if warnings else "nothing wrong"
        again = within(views[0].run) if why else "--steps 0:3"
        return say(
            "{}. The timeline alone tells {}, and not whether the run is healthy; capture it again with {}.",
            none,
            seen_wrong,
            again,
        )
    if verdict is Health.UNKNOWN and warnings:
        return say("Whether this run is healthy cannot be told ({}): no question found all well{}.", scope, also)
    if verdict is Health.UNKNOWN:
        return say("Nothing can be told of this run ({}): no question has what it needs.", scope)
    return say("Nothing is wrong in what was captured ({}){}.", scope, also)
