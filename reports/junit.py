"""JUnit XML for build servers: a suite for each result, a case for each criterion, finding or question."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from align.acceptance_records import Outcome
from align.records import Health, Severity, State, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from align.acceptance_records import AcceptResult, Criterion
    from align.checkpoint_records import CheckpointResult
    from align.records import DiffResult, Finding, InspectResult

_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML file may hold."""


@dataclass(frozen=True, slots=True)
class Case:
    """One test case: `failure` says why it fails, `skipped` why it was not run, `output` what it has to say."""

    name: str
    failure: str = ""
    skipped: str = ""
    output: str = ""
    kind: str = ""


def accept_junit(result: AcceptResult) -> str:
    """A case for each criterion; a missed one fails where it is required, else it only says so."""
    cases = [_criterion(each) for each in result.criteria]
    properties = {
        "verdict": str(result.verdict),
        "preliminary": str(result.preliminary).lower(),
        "summary": str(result.summary),
        "steps": str(result.steps),
        "policy": result.policy.name,
        "policy.sha256": result.policy.sha256,
        "reference": result.reference.path,
        "reference.sha256": result.reference.sha256,
        "candidate": result.candidate.path,
        "candidate.sha256": result.candidate.sha256,
    }
    return _document("align.accept", cases, properties, made=result.made)


def diff_junit(result: DiffResult) -> str:
    """A case for the verdict and one for each finding; findings of severity error fail."""
    properties = {
        "verdict": str(result.verdict),
        "reference": result.reference_path,
        "candidate": result.candidate_path,
    }
    return _document("align.diff", [_verdict(result), *map(_finding, result.findings)], properties)


def checkpoint_junit(result: CheckpointResult) -> str:
    """A case for the verdict and one for each finding; findings of severity error fail."""
    properties = {
        "verdict": str(result.verdict),
        "reference": result.reference.path,
        "candidate": result.candidate.path,
    }
    return _document("align.checkpoint", [_verdict(result), *map(_finding, result.findings)], properties)


def inspect_junit(result: InspectResult) -> str:
    """A case for the verdict, one for each question and one for each finding."""
    questions = [
        Case(
            f"question: {reply.question}",
            failure=reply.sentence if reply.state is State.BAD else "",
            skipped=reply.sentence if reply.state in {State.UNKNOWN, State.ABSENT} else "",
            output=reply.sentence if reply.state in {State.GOOD, State.ODD} else "",
            kind=str(reply.state),
        )
        for reply in result.replies
    ]
    properties = {"verdict": str(result.verdict), "run": ", ".join(result.paths)}
    return _document("align.inspect", [_verdict(result), *questions, *map(_finding, result.findings)], properties)


def _verdict(result: DiffResult | CheckpointResult | InspectResult) -> Case:
    if result.verdict in {Verdict.DIVERGED, Health.UNHEALTHY}:
        return Case("verdict", failure=result.summary, kind=str(result.verdict))
    if result.verdict in {Verdict.INCOMPARABLE, Health.UNKNOWN}:
        return Case("verdict", skipped=result.summary)
    return Case("verdict", output=result.summary)


def _criterion(criterion: Criterion) -> Case:
    text = " ".join(part for part in (criterion.sentence, criterion.advice) if part)
    if criterion.outcome is Outcome.NOT_MEASURED:
        if criterion.required:
            return Case(criterion.code, failure=text, kind="not measured, but required")
        return Case(criterion.code, skipped=text)
    if criterion.outcome is Outcome.FAIL and criterion.required:
        return Case(criterion.code, failure=text, kind=str(criterion.outcome))
    return Case(criterion.code, output=text)


def _finding(finding: Finding) -> Case:
    place = " ".join(filter(None, (finding.where.name, finding.where.slot)))
    name = f"{finding.code} {finding.label}{f': {place}' if place else ''}"
    text = " ".join(filter(None, (finding.summary, finding.advice)))
    if finding.severity is Severity.ERROR:
        return Case(name, failure=text, kind=finding.label)
    return Case(name, output=text)


def _document(name: str, cases: Sequence[Case], properties: dict[str, str], *, made: str = "") -> str:
    """The file: counts, properties and cases, in the order that readers of the format expect."""
    counts = {
        "tests": str(len(cases)),
        "failures": str(sum(bool(case.failure) for case in cases)),
        "errors": "0",
        "skipped": str(sum(bool(case.skipped) for case in cases)),
        "time": "0",
    }
    root = Element(
        "testsuites", {"name": "align", **{key: counts[key] for key in ("tests", "failures", "errors", "time")}}
    )
    suite = SubElement(root, "testsuite", {"name": name, **counts, **({"timestamp": _timestamp(made)} if made else {})})
    listed = SubElement(suite, "properties")
    for key, value in properties.items():
        SubElement(listed, "property", {"name": key, "value": _legal(value)})
    for case in cases:
        _add(suite, name, case)
    indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(root, encoding="unicode")}\n'


def _add(suite: Element, classname: str, case: Case) -> None:
    element = SubElement(suite, "testcase", {"name": _legal(case.name), "classname": classname, "time": "0"})
    if case.failure:
        failure = SubElement(
            element, "failure", {"message": _legal(case.failure), "type": _legal(case.kind) or "failure"}
        )
        failure.text = _legal(case.failure)
    if case.skipped:
        SubElement(element, "skipped", {"message": _legal(case.skipped)})
    if case.output:
        SubElement(element, "system-out").text = _legal(case.output)


def _timestamp(made: str) -> str:
    """`2026-01-07T10:31:05`, as the format has it: without an offset."""
    return made[:19].replace(" ", "T")


def _legal(text: str) -> str:
    """The text without what no XML file may hold: each such character as an escape of its code."""
    return _ILLEGAL.sub(lambda found: f"\\u{ord(found.group()):04x}", str(text))
