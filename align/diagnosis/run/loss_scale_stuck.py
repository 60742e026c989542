"""AL607: the loss scale of one run does not move where it should."""

from __future__ import annotations

from collections.abc import Iterator

from align.diagnosis import scale_telling
from align.diagnosis.registry import run_rule
from align.inspection import Inspection
from align.records import Finding

CODE = "AL607"
LABEL = "loss-scale-stuck"


@run_rule(CODE, LABEL, rank=44)
def find(inspection: Inspection) -> Iterator[Finding]:
    """The loss scale of one run does not move where it should."""
    yield from scale_telling.of_run(inspection, CODE, LABEL)
