"""The JSON of an inspection (format `align/1`), with the keys that the JSON of a comparison has where they apply."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from align.reports.json_report import (
    FORMAT,
    finding_entry,
    modules_columns,
    plain,
    rendered,
    run_entry,
    timeline_columns,
)

if TYPE_CHECKING:
    from align.records import InspectResult


def inspect_json(result: InspectResult) -> str:
    """The document as text, with a newline at its end."""
    return f"{rendered(inspect_document(result), '')}\n"


def inspect_document(result: InspectResult) -> dict[str, Any]:
    """The document as plain values, its keys in a fixed order."""
    return {
        "format": FORMAT,
        "verdict": str(result.verdict),
        "summary": result.summary,
        "first_divergence": plain(result.first),
        "findings": [finding_entry(finding) for finding in result.findings],
        "replies": plain(result.replies),
        "tables": plain(result.tables),
        "counts": plain(result.counts),
        "runs": {"candidate": run_entry(result.paths[0], result.run)},
        "paths": plain(result.paths),
        "captured": plain(result.captured),
        "modules": modules_columns(result.modules),
        "timeline": {"candidate": timeline_columns(result.timeline)},
    }
