"""Results without what should not leave a company: hosts, folders, command lines, the environment."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, TypeVar

from align.acceptance_records import AcceptResult
from align.checkpoint_records import CheckpointResult
from align.curve_records import Curves
from align.records import DiffResult, Finding, InspectResult, RunInfo
from align.reports.reading import Result
from align.sentences import Sentence

T = TypeVar("T")
R = TypeVar("R", bound=Result)

REDACTED = "redacted"

_ADDRESS = re.compile(r"\b[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"`<>]+")
_MAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}")
_IPV4 = re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?(?![\w.])")
_WINDOWS = re.compile(r"(?<!\w)(?:[A-Za-z]:|\\)\\(?:[^\\\s'\"`<>|:;,()]+\\)*([^\\\s'\"`<>|:;,()]*)")
_POSIX = re.compile(r"(?<![\w./~)\]-])~?/(?:[^/\s'\"`<>|:;,()]+/)*([^/\s'\"`<>|:;,()]*)")
"""Absolute paths, of which the last part stays."""

UNTOUCHED: Mapping[type, frozenset[str]] = {
    DiffResult: frozenset({"comparisons", "modules", "only_reference", "only_candidate", "first_divergence"}),
    InspectResult: frozenset({"modules", "first"}),
    CheckpointResult: frozenset({"rows", "only_reference", "only_candidate", "renamed", "first_divergence"}),
    Finding: frozenset({"where"}),
    Curves: frozenset({"kind", "steps", "columns", "nonfinite", "skipped", "taken", "sha256"}),
}
"""Fields that hold names in models, which are no paths whatever they look like, or numbers."""


def redacted(result: R) -> R:
    """The result with file names instead of paths, and no hosts, addresses, command lines and environment variables.

    Sentences keep what they say; paths and hosts in them are replaced as everywhere. Paths in free text that hold
    blanks are known only where they are paths of the result itself.
    """
    names = _file_names(_paths(result))
    hosts = {run.host for run in _runs(result) if run.host}

    def scrub(text: str) -> str:
        for path, name in names.items():
            text = text.replace(path, name)
        for host in sorted(hosts, key=len, reverse=True):
            text = re.sub(rf"(?<![\w-]){re.escape(host)}(?![\w-])", REDACTED, text)
        for pattern in (_ADDRESS, _MAIL, _IPV4):
            text = pattern.sub(REDACTED, text)
        for pattern in (_WINDOWS, _POSIX):
            text = pattern.sub(lambda found: found[1] or found.group(), text)
        return text

    cleared: R = _scrubbed(result, scrub)
    return cleared


def _paths(result: Result) -> list[str]:
    """The paths of a result, that of the reference before that of the candidate."""
    if isinstance(result, DiffResult):
        return [result.reference_path, result.candidate_path]
    if isinstance(result, InspectResult):
        return list(result.paths)
    paths = [result.reference.path, result.candidate.path]
    return [*paths, *result.floors, result.policy.path] if isinstance(result, AcceptResult) else paths


def _runs(result: Result) -> list[RunInfo]:
    if isinstance(result, DiffResult):
        return [result.reference, result.candidate]
    if isinstance(result, InspectResult):
        return [result.run]
    if isinstance(result, CheckpointResult):
        return []
    return [run for run in result.runs if run is not None]


def _file_names(paths: list[str]) -> dict[str, str]:
    """What stands for each path, the longest first; two files of one name in two folders stay two."""
    names: dict[str, str] = {}
    for path in filter(None, paths):
        if path not in names:
            name = PureWindowsPath(path).name if "\\" in path else PurePosixPath(path).name
            taken = sum(other == name or other.endswith(f"/{name}") for other in names.values())
            names[path] = f"{taken + 1}/{name}" if taken else name
    return {path: names[path] for path in sorted(names, key=len, reverse=True) if path != names[path]}


def _scrubbed(value: Any, scrub: Callable[[str], str]) -> Any:
    """A value with every text in it scrubbed."""
    if isinstance(value, RunInfo):
        return _run(value, scrub)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kept = UNTOUCHED.get(type(value), frozenset())
        fields = [field.name for field in dataclasses.fields(value) if field.name not in kept]
        return dataclasses.replace(value, **{name: _scrubbed(getattr(value, name), scrub) for name in fields})
    if isinstance(value, Mapping):
        return {key: _scrubbed(entry, scrub) for key, entry in value.items()}
    if isinstance(value, (tuple, list)):
        return tuple(_scrubbed(entry, scrub) for entry in value)
    return _text(value, scrub) if isinstance(value, str) else value


def _text(text: str, scrub: Callable[[str], str]) -> str:
    if isinstance(text, Sentence):
        return Sentence(scrub(text), scrub(text.template), tuple(_scrubbed(each, scrub) for each in text.arguments))
    # Words of an enumeration stay what they are.
    return scrub(text) if type(text) is str else text


def _run(run: RunInfo, scrub: Callable[[str], str]) -> RunInfo:
    """The facts of a run without those that tell where it ran and how it was started."""
    fields = {field.name: _scrubbed(getattr(run, field.name), scrub) for field in dataclasses.fields(run)}
    fields.update(
        host=REDACTED if run.host else "",
        command=(REDACTED,) if run.command else (),
        environment=dict.fromkeys(run.environment, REDACTED),
        process_id=0,
    )
    return RunInfo(**fields)
