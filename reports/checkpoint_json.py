"""The JSON of a comparison of checkpoints (format `align/1`), with the keys of the JSON of runs where they apply."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from align.reports.columns import columnar, finite, rounded
from align.reports.json_report import FORMAT, finding_entry, plain, rendered
from align.sentences import tree

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from align.checkpoint_records import CheckpointResult, EntryRow

DIGITS = 6

_TEXTS: Mapping[str, Callable[[EntryRow], str]] = {
    "reference": lambda row: row.reference,
    "candidate": lambda row: row.candidate,
    "relation": lambda row: row.relation,
    "said": lambda row: row.said,
    "paired_by": lambda row: row.way,
    "reference_dtype": lambda row: row.reference_dtype,
    "candidate_dtype": lambda row: row.candidate_dtype,
    "reference_shape": lambda row: _shape(row.reference_shape),
    "candidate_shape": lambda row: _shape(row.candidate_shape),
}
_NUMBERS: Mapping[str, Callable[[EntryRow], Any]] = {
    "relative_l2": lambda row: finite(rounded(row.relative_l2, DIGITS)),
    "candidate_place": lambda row: row.candidate_place,
}


def checkpoint_json(result: CheckpointResult) -> str:
    """The document as text, with a newline at its end."""
    return f"{rendered(checkpoint_document(result), '')}\n"


def checkpoint_document(result: CheckpointResult) -> dict[str, Any]:
    """The document as plain values, its keys in a fixed order."""
    return {
        "format": FORMAT,
        "command": "checkpoint",
        "verdict": str(result.verdict),
        "summary": result.summary,
        "first_divergence": plain(result.first_divergence),
        "findings": [finding_entry(finding) for finding in result.findings],
        "sentences": {
            "summary": tree(result.summary),
            "notes": list(map(tree, result.notes)),
            "said": list(map(tree, dict.fromkeys(row.said for row in result.rows))),
        },
        "counts": plain(result.counts),
        "checkpoints": {"reference": plain(result.reference), "candidate": plain(result.candidate)},
        "renamed": [{"rule": rule, "entries": count} for rule, count in result.renamed],
        "records": records_columns(result.rows),
        "only_reference": list(result.only_reference),
        "only_candidate": list(result.only_candidate),
        "notes": list(result.notes),
    }


def records_columns(rows: Sequence[EntryRow]) -> dict[str, Any]:
    """The pairs as columns, in the order of the reference."""
    return columnar(_TEXTS, _NUMBERS, rows)


def _shape(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))
