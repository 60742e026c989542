"""The JSON of a comparison (format `align/1`): everything that a report shows, tensors and steps as columns."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from align.records import TimelineRow
from align.reports.columns import columnar, finite
from align.reports.kept import kept
from align.reports.language import ENGLISH
from align.reports.remarks import comparable
from align.reports.rows import largest, resolution
from align.sentences import tree

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from align.records import Comparison, DiffResult, Finding, ModuleInfo, RunInfo, TensorKey, TensorRecord

FORMAT = "align/1"


def diff_json(result: DiffResult) -> str:
    """The document as text, with a newline at its end."""
    return f"{rendered(document(result), '')}\n"


def document(result: DiffResult) -> dict[str, Any]:
    """The document as plain values, its keys in a fixed order."""
    return {
        "format": FORMAT,
        "command": "diff",
        "verdict": str(result.verdict),
        "summary": result.summary,
        "first_divergence": plain(result.first_divergence),
        "findings": [finding_entry(finding) for finding in result.findings],
        "sentences": {
            "summary": tree(result.summary),
            "precision": tree(result.resolution.precision),
            "floor_method": tree(result.resolution.floor_method),
            "pairing_notes": list(map(tree, result.pairing.notes)),
        },
        "resolution": plain(result.resolution),
        "counts": plain(result.counts),
        "runs": {
            "reference": run_entry(result.reference_path, result.reference),
            "candidate": run_entry(result.candidate_path, result.candidate),
        },
        "made_comparable": comparable(result, ENGLISH) or None,
        "pairing": plain(result.pairing),
        "records": records_columns(result.comparisons),
        "only_reference": _keys(result.only_reference),
        "only_candidate": _keys(result.only_candidate),
        "exponents": plain(result.exponents),
        "modules": modules_columns(result.modules),
        "timeline": {
            "reference": timeline_columns(result.reference_timeline),
            "candidate": timeline_columns(result.candidate_timeline),
        },
    }


_KEY_TEXTS: Mapping[str, Callable[[TensorKey], str]] = {
    "phase": lambda key: str(key.phase),
    "name": lambda key: key.name,
    "slot": lambda key: key.slot,
}
_KEY_NUMBERS: Mapping[str, Callable[[TensorKey], Any]] = {
    "step": lambda key: key.step,
    "micro": lambda key: key.micro,
    "call": lambda key: key.call,
}
_TEXTS: Mapping[str, Callable[[Comparison], str]] = {
    "phase": lambda pair: str(pair.key.phase),
    "name": lambda pair: pair.key.name,
    "slot": lambda pair: pair.key.slot,
    "status": lambda pair: str(pair.status),
    "aspect": lambda pair: str(pair.aspect),
    "reference_dtype": lambda pair: pair.reference.dtype,
    "candidate_dtype": lambda pair: pair.candidate.dtype,
    "reference_shape": lambda pair: _shape(pair.reference),
    "candidate_shape": lambda pair: _shape(pair.candidate),
    "reference_hash": lambda pair: _hash(pair.reference),
    "candidate_hash": lambda pair: _hash(pair.candidate),
}
_NUMBERS: Mapping[str, Callable[[Comparison], Any]] = {
    "step": lambda pair: pair.key.step,
    "micro": lambda pair: pair.key.micro,
    "call": lambda pair: pair.key.call,
    "relative_l2": lambda pair: _number(pair.relative_l2),
    "floor": lambda pair: _number(pair.floor),
    "times_floor": lambda pair: _number(pair.times_floor),
    "limit": lambda pair: _number(pair.limit),
    "unit": lambda pair: _number(pair.unit),
    "part": lambda pair: _number(pair.part),
    "resolution": lambda pair: _number(resolution(pair)),
    "reference_nans": lambda pair: pair.reference.stats.nans if pair.reference.stats else None,
    "candidate_nans": lambda pair: pair.candidate.stats.nans if pair.candidate.stats else None,
    "reference_infs": lambda pair: _infs(pair.reference),
    "candidate_infs": lambda pair: _infs(pair.candidate),
}
_ANSWER_TEXTS: Mapping[str, Callable[[Comparison], str]] = {
    "candidate_name": lambda pair: pair.candidate.key.name,
    "candidate_slot": lambda pair: pair.candidate.key.slot,
}
_ANSWER_NUMBERS: Mapping[str, Callable[[Comparison], Any]] = {
    "candidate_micro": lambda pair: pair.candidate.key.micro,
    "candidate_call": lambda pair: pair.candidate.key.call,
}
"""Columns that are there only where a candidate's tensor has another name or number than the reference's."""


_STATISTICS = ("absolute_maximum", "mean", "rms", "zeros", "subnormals")
_UNKNOWN = (None,) * len(_STATISTICS)


def records_columns(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """The pairs as columns, in execution order."""
    alike = all(pair.key == pair.candidate.key for pair in comparisons)
    texts = _TEXTS if alike else {**_TEXTS, **_ANSWER_TEXTS}
    table = columnar(texts, _NUMBERS if alike else {**_NUMBERS, **_ANSWER_NUMBERS}, comparisons)
    for side in ("reference", "candidate"):
        rows = [_of_floats(getattr(pair, side)) for pair in comparisons]
        table["columns"].update({f"{side}_{name}": [row[i] for row in rows] for i, name in enumerate(_STATISTICS)})
    return table


def _keys(keys: Sequence[TensorKey]) -> dict[str, Any]:
    return columnar(_KEY_TEXTS, _KEY_NUMBERS, keys)


def _shape(record: TensorRecord) -> str:
    return "x".join(map(str, record.shape))


def _hash(record: TensorRecord) -> str:
    """The hash of its bytes in hexadecimal, empty where it has none."""
    return "" if record.hash is None else f"{record.hash & (2**64 - 1):016x}"


def _infs(record: TensorRecord) -> int | None:
    return record.stats.positive_infs + record.stats.negative_infs if record.stats else None


def _of_floats(record: TensorRecord) -> tuple[Any, ...]:
    """The statistics of a tensor of floats; of another, and of one without a finite element, they are not known."""
    if largest(record) is None:
        return _UNKNOWN
    return tuple(_number(getattr(record.stats, name)) for name in _STATISTICS)


def _number(value: float | None) -> float | str | None:
    return value if value is None or type(value) is int else finite(kept(value))


def timeline_columns(timeline: Sequence[TimelineRow]) -> dict[str, Any]:
    """The steps as columns of full precision."""
    names = [field.name for field in dataclasses.fields(TimelineRow)]
    return {"length": len(timeline), **{name: [plain(getattr(row, name)) for row in timeline] for name in names}}


def plain(value: Any) -> Any:
    """A value that JSON can hold; NaN and infinities become the words nan, inf and -inf."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    return _plain_scalar(value)


def _plain_scalar(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return finite(float(value))
    # What is left are words, and numbers of numpy.
    return plain(value.item()) if hasattr(value, "item") else str(value)


def finding_entry(finding: Finding) -> dict[str, Any]:
    """A finding as plain values, and its sentences as they can be said in another language."""
    names = ("code", "label", "severity", "summary", "where", "evidence", "arguments", "advice", "explained_by")
    sentences = {"summary": tree(finding.summary), "advice": tree(finding.advice)}
    return {**{name: plain(getattr(finding, name)) for name in names}, "sentences": sentences}


def run_entry(path: str, run: RunInfo) -> dict[str, Any]:
    """A run and the path of its capture."""
    return {"path": path, **plain(run)}


def modules_columns(modules: Sequence[ModuleInfo]) -> dict[str, Any]:
    """The modules as columns."""
    names = ("name", "class_name", "leaf", "compute_dtype")
    return {"length": len(modules), **{name: [plain(getattr(module, name)) for module in modules] for name in names}}


def rendered(value: Any, indent: str) -> str:
    """JSON with one entry a line, but every list of plain values on one line: columns stay short."""
    deeper = f"{indent}  "
    if isinstance(value, dict) and value:
        entries = [f"{deeper}{json.dumps(key)}: {rendered(entry, deeper)}" for key, entry in value.items()]
        return "{\n" + ",\n".join(entries) + f"\n{indent}}}"
    if isinstance(value, list) and any(isinstance(entry, (dict, list)) for entry in value):
        return "[\n" + ",\n".join(f"{deeper}{rendered(entry, deeper)}" for entry in value) + f"\n{indent}]"
    return json.dumps(value, allow_nan=False)
