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
from align.sentences import Sentence, tree

if TYPE_CHECKING:
    from align.records import InspectResult, Table


def inspect_json(result: InspectResult) -> str:
    """The document as text, with a newline at its end."""
    return f"{rendered(inspect_document(result), '')}\n"


def inspect_document(result: InspectResult) -> dict[str, Any]:
    """The document as plain values, its keys in a fixed order."""
    return {
        "format": FORMAT,
        "command": "inspect",
        "verdict": str(result.verdict),
        "summary": result.summary,
        "first_divergence": plain(result.first),
        "findings": [finding_entry(finding) for finding in result.findings],
        "sentences": {
            "summary": tree(result.summary),
            "replies": [
                {"question": tree(reply.question), "sentence": tree(reply.sentence)} for reply in result.replies
            ],
            "tables": [_sentences(table) for table in result.tables],
        },
        "replies": plain(result.replies),
        "tables": plain(result.tables),
        "counts": plain(result.counts),
        "runs": {"candidate": run_entry(result.paths[0], result.run)},
        "paths": plain(result.paths),
        "captured": plain(result.captured),
        "exponents": plain(result.exponents),
        "modules": modules_columns(result.modules),
        "timeline": {"candidate": timeline_columns(result.timeline)},
    }


def _sentences(table: Table) -> dict[str, Any]:
    """What a table says: its titles, and of its cells those that are sentences, each with its row and column."""
    return {
        "title": tree(table.title),
        "lead": tree(table.lead),
        "question": tree(table.question),
        "columns": [tree(column.title) for column in table.columns],
        "cells": [
            [number, place, tree(cell)]
            for number, row in enumerate(table.rows)
            for place, cell in enumerate(row)
            if isinstance(cell, Sentence)
        ],
    }
