"""AL608: the loss scale of one run jumps, or too many steps are skipped."""

from __future__ import annotations

from collections.abc import Iterator

from align.diagnosis import scale_telling
from align.diagnosis.registry import run_rule
from align.inspection import Inspection
from align.records import Finding

CODE = "AL608"
LABEL = "loss-scale-unstable"


@run_rule(CODE, LABEL, rank=43)
def find(inspection: Inspection) -> Iterator[Finding]:
    """The loss scale of one run jumps, or too many steps are skipped."""
    yield from scale_telling.of_run(inspection, CODE, LABEL)
