"""The JSON of an acceptance (format `align/1`): all that its document shows, curves as columns of full precision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from align.reports.json_report import FORMAT, plain, rendered
from align.sentences import tree

if TYPE_CHECKING:
    from align.acceptance_records import AcceptResult, Criterion
    from align.curve_records import Curves


def accept_json(result: AcceptResult) -> str:
    """The document as text, with a newline at its end."""
    return f"{rendered(accept_document(result), '')}\n"


def accept_document(result: AcceptResult) -> dict[str, Any]:
    """The document as plain values, its keys in a fixed order.

    Under `sentences` they stand as templates with arguments, from which they can be said in another language.
    """
    return {
        "format": FORMAT,
        "command": "accept",
        "verdict": str(result.verdict),
        "preliminary": result.preliminary,
        "summary": str(result.summary),
        "criteria": [_criterion(each) for each in result.criteria],
        "counts": _counts(result),
        "steps": result.steps,
        "window": result.window,
        "recorded": {"reference": result.recorded[0], "candidate": result.recorded[1]},
        "policy": plain(result.policy),
        "floors": list(result.floors),
        "deviations": [str(each) for each in result.deviations],
        "not_covered": [str(each) for each in result.not_covered],
        "notes": [str(each) for each in result.notes],
        "title": result.title,
        "project": result.project,
        "made": result.made,
        "align_version": result.align_version,
        "runs": {"reference": _run(result.reference), "candidate": _run(result.candidate)},
        "curves": {"reference": _curves(result.reference), "candidate": _curves(result.candidate)},
        "sentences": {
            "summary": tree(result.summary),
            "criteria": [
                {
                    "sentence": tree(each.sentence),
                    "advice": tree(each.advice),
                    "limit": None if each.limit is None else {"source": tree(each.limit.source)},
                }
                for each in result.criteria
            ],
            **{name: [tree(each) for each in getattr(result, name)] for name in ("deviations", "not_covered", "notes")},
        },
    }


def _criterion(criterion: Criterion) -> dict[str, Any]:
    limit = criterion.limit
    return {
        "code": criterion.code,
        "outcome": str(criterion.outcome),
        "required": criterion.required,
        "measured": plain(criterion.measured),
        "measure": str(criterion.measure),
        "limit": None if limit is None else plain(limit),
        "remark": criterion.remark,
        "sentence": str(criterion.sentence),
        "advice": str(criterion.advice),
        "evidence": plain(criterion.evidence),
    }


def _counts(result: AcceptResult) -> dict[str, int]:
    outcomes = [str(each.outcome) for each in result.criteria]
    return {
        "required": sum(each.required for each in result.criteria),
        **{outcome.replace(" ", "_"): outcomes.count(outcome) for outcome in ("pass", "fail", "not measured")},
    }


def _run(curves: Curves) -> dict[str, Any]:
    run = plain(curves.run) or {}
    taken = {str(quantity): name for quantity, name in curves.taken.items()}
    return {
        **run,
        "path": curves.path,
        "kind": str(curves.kind),
        "sha256": curves.sha256,
        "taken": taken,
        "curve_notes": [str(note) for note in curves.notes],
    }


def _curves(curves: Curves) -> dict[str, Any]:
    """The steps and what was recorded, a list each."""
    columns = {str(quantity): plain(values.tolist()) for quantity, values in curves.columns.items()}
    flags = {name: getattr(curves, name).tolist() for name in ("nonfinite", "skipped")}
    return {"length": len(curves.steps), "step": curves.steps.tolist(), **columns, **flags}
