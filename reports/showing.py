"""Any result shown as the command that made it shows it, with that command's exit code."""

from __future__ import annotations

from align.acceptance_records import AcceptResult
from align.checkpoint_records import CheckpointResult
from align.records import DiffResult
from align.reports import accept_output
from align.reports.output import EXIT_CODES, HEALTH_EXIT_CODES, Wanted, show_checkpoint, show_diff, show_inspection
from align.reports.reading import Result


def show(result: Result, wanted: Wanted) -> int:
    """Print a result, write the files that were asked for, and give the exit code."""
    if isinstance(result, DiffResult):
        show_diff(result, wanted)
        return EXIT_CODES[result.verdict]
    if isinstance(result, CheckpointResult):
        show_checkpoint(result, wanted)
        return EXIT_CODES[result.verdict]
    if isinstance(result, AcceptResult):
        accept_output.show_acceptance(result, wanted)
        return accept_output.EXIT_CODES[result.verdict]
    show_inspection(result, wanted)
    return HEALTH_EXIT_CODES[result.verdict]
