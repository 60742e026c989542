"""Pages of the sample comparisons, each made once in a process."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from pathlib import Path

from align.records import DiffResult, TensorKey
from align.reports.html import diff_page
from align.reports.writing import write_text
from tests import report_samples
from tests.test_reports_text import SAMPLES

HOSTILE = '=1+1"><img src=x onerror=alert(1)><script>alert(2)</script>'
"""The name of a module that tries to be markup, and a formula."""


def renamed(result: DiffResult, old: str, new: str) -> DiffResult:
    """The result with another name for one module, everywhere that a report shows it."""

    def key(given: TensorKey) -> TensorKey:
        return dataclasses.replace(given, name=given.name.replace(old, new))

    pairs = tuple(
        dataclasses.replace(
            pair,
            reference=dataclasses.replace(pair.reference, key=key(pair.reference.key)),
            candidate=dataclasses.replace(pair.candidate, key=key(pair.candidate.key)),
        )
        for pair in result.comparisons
    )
    first = result.first_divergence
    return dataclasses.replace(
        result,
        summary=result.summary.replace(old, new),
        comparisons=pairs,
        first_divergence=first and dataclasses.replace(first, name=first.name.replace(old, new)),
        findings=tuple(
            dataclasses.replace(
                finding,
                summary=finding.summary.replace(old, new),
                advice=finding.advice.replace(old, new),
                where=dataclasses.replace(finding.where, name=finding.where.name.replace(old, new)),
            )
            for finding in result.findings
        ),
        only_candidate=tuple(map(key, result.only_candidate)),
    )


def hostile() -> DiffResult:
    """A comparison in which one module is called like that."""
    return renamed(report_samples.diverged(), "layers.2.mlp.act", HOSTILE)


RESULTS: dict[str, Callable[[], DiffResult]] = {**SAMPLES, "hostile": hostile}


@cache
def page_of(name: str) -> str:
    """The page of a sample."""
    return diff_page(RESULTS[name]())


def written(name: str, folder: Path) -> Path:
    """The page of a sample as a file."""
    path = folder / f"{name}.html"
    write_text(str(path), page_of(name))
    return path
