"""JUnit XML: what build servers read of an acceptance, a comparison and an inspection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from align.records import DiffResult, Finding, Place, Severity, Verdict
from align.reports.junit import accept_junit, diff_junit, inspect_junit
from tests.acceptance.runs import judge, pair
from tests.inspect_samples import healthy, nan
from tests.report_samples import diverged

REFERENCE, HEALTHY = pair()
COUNTS = ("tests", "failures", "errors", "skipped")
CHILDREN = {"failure", "error", "skipped", "system-out", "system-err"}


def checked(text: str) -> ET.Element:
    """The suite of a document that follows the common schema of JUnit files."""
    root = ET.fromstring(text)  # noqa: S314 - our own
    assert text.startswith('<?xml version="1.0" encoding="UTF-8"?>\n<testsuites ')
    assert root.tag == "testsuites"
    (suite,) = root
    assert suite.tag == "testsuite"
    assert {"name", "time", *COUNTS} <= set(suite.attrib) <= {"name", "time", "timestamp", *COUNTS}
    properties, *cases = suite
    assert properties.tag == "properties"
    assert all(set(each.attrib) == {"name", "value"} and each.tag == "property" for each in properties)
    for case in cases:
        assert (case.tag, set(case.attrib)) == ("testcase", {"name", "classname", "time"})
        assert case.get("name")
        assert {child.tag for child in case} <= CHILDREN
        assert len([child for child in case if child.tag in {"failure", "error", "skipped"}]) <= 1
        assert all(child.get("message") for child in case if child.tag in {"failure", "skipped"})
        assert all(child.get("type") for child in case if child.tag == "failure")
    counted = {
        "tests": len(cases), "failures": len(suite.findall("testcase/failure")), "errors": 0,
        "skipped": len(suite.findall("testcase/skipped")),
    }  # fmt: skip
    assert {name: int(suite.get(name, "")) for name in COUNTS} == counted
    assert {name: root.get(name) for name in COUNTS[:3]} == {name: str(counted[name]) for name in COUNTS[:3]}
    return suite


def names(suite: ET.Element, kind: str) -> list[str]:
    """The cases that have such a child."""
    return [case.get("name", "") for case in suite.findall("testcase") if case.find(kind) is not None]


def test_an_acceptance_that_passes() -> None:
    suite = checked(accept_junit(replace(judge(REFERENCE, HEALTHY), made="2026-01-07 10:31:05+08:00")))
    assert suite.get("name") == "align.accept"
    assert suite.get("timestamp") == "2026-01-07T10:31:05"
    assert names(suite, "failure") == []
    assert names(suite, "skipped") == [
        "equal-start", "gradient-norm", "tensors", "operators", "step-time", "tokens-per-second",
    ]  # fmt: skip


def test_an_acceptance_that_fails() -> None:
    result = judge(REFERENCE, HEALTHY * 1.03)
    suite = checked(accept_junit(result))
    assert names(suite, "failure") == [
        "first-loss", "early-window", "divergence", "mean-error", "worst-window", "bias",
    ]  # fmt: skip
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert failure.get("type") == "fail"
    first = next(each for each in result.criteria if each.code == "first-loss")
    assert failure.text == f"{first.sentence} {first.advice}"


def test_a_required_criterion_that_was_not_measured_fails() -> None:
    suite = checked(accept_junit(judge(REFERENCE[:30], HEALTHY[:30])))
    assert names(suite, "failure") == ["shift", "data-order", "spikes", "bias"]


def finding(severity: Severity, name: str) -> Finding:
    return Finding("AL401", "origin-module", severity, f"{name} differs.", "Replay it.", Place(name=name))


def with_findings(verdict: Verdict, findings: Sequence[Finding]) -> DiffResult:
    return replace(diverged(), verdict=verdict, findings=tuple(findings))


def test_a_comparison() -> None:
    findings = [finding(Severity.ERROR, "layers.2"), finding(Severity.NOTE, "layers.3")]
    suite = checked(diff_junit(with_findings(Verdict.DIVERGED, findings)))
    assert names(suite, "failure") == ["verdict", "AL401 origin-module: layers.2"]
    assert names(suite, "system-out") == ["AL401 origin-module: layers.3"]
    assert names(checked(diff_junit(with_findings(Verdict.INCOMPARABLE, []))), "skipped") == ["verdict"]
    assert names(checked(diff_junit(with_findings(Verdict.ALIGNED, []))), "system-out") == ["verdict"]


def test_an_inspection() -> None:
    suite = checked(inspect_junit(nan()))
    assert names(suite, "failure")[0] == "verdict"
    assert any(name.startswith("question: ") for name in names(suite, "system-out"))
    assert names(checked(inspect_junit(healthy())), "failure") == []


@pytest.mark.parametrize("name", ["<script>&\"'", "nul \x00 and bell \x07", "surrogate \ud800", "\uffff", "\u4e2d"])
def test_no_name_breaks_the_file(name: str) -> None:
    suite = checked(diff_junit(with_findings(Verdict.DIVERGED, [finding(Severity.ERROR, name)])))
    assert len(suite.findall("testcase")) == 2
