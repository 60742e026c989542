"""How a comparison was made, as commands that can be copied."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from align.reports.visible import visible

if TYPE_CHECKING:
    from align.records import DiffResult, RunInfo
    from align.reports.language import Language

DEFAULT_DETAIL = "sketch"
EVERYWHERE = frozenset({"cpu", "cuda", "npu"})


@dataclass(frozen=True, slots=True)
class Block:
    """Lines to copy under a title."""

    title: str
    text: str


def blocks(result: DiffResult, phrases: Language) -> tuple[Block, ...]:
    """The command of the comparison, and for each side that of its capture and the versions that it had."""
    compared = shlex.join(["align", "diff", result.reference_path, result.candidate_path])
    made = [Block(phrases["reproduce_compare"], visible(compared))]
    sides = (
        (phrases["reference"], result.reference_path, result.reference),
        (phrases["candidate"], result.candidate_path, result.candidate),
    )
    for side, path, run in sides:
        command = capture_command(path, run)
        if command:
            made.append(Block(phrases["reproduce_capture"].format(side=side), visible(command)))
    made.extend(Block(phrases["reproduce_versions"].format(side=side), _versions(run)) for side, _, run in sides)
    return tuple(made)


def capture_command(path: str, run: RunInfo) -> str:
    """The command that makes such a capture again, empty where the script's own is not known."""
    if not run.command:
        return ""
    options = ["-o", path]
    if run.device_type in EVERYWHERE:
        options += ["--device", run.device_type]
    if run.steps_requested:
        options += ["--steps", run.steps_requested]
    if run.detail != DEFAULT_DETAIL:
        options += ["--detail", run.detail]
    for pattern in run.modules_requested:
        options += ["--modules", pattern]
    return shlex.join(["align", "capture", *options, *run.command])


def _versions(run: RunInfo) -> str:
    """A version a line, and the hash of the script."""
    lines = [f"align {run.align_version}", *(f"{name} {version}" for name, version in sorted(run.versions.items()))]
    if run.script_hash:
        lines.append(f"script {run.script_hash}")
    return "\n".join(visible(line) for line in lines)
