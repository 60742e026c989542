"""AL606: the loss scale falls and falls in one run."""

from __future__ import annotations

from collections.abc import Iterator

from align.diagnosis import scale_telling
from align.diagnosis.registry import run_rule
from align.inspection import Inspection
from align.records import Finding

CODE = "AL606"
LABEL = "loss-scale-collapse"


@run_rule(CODE, LABEL, rank=45)
def find(inspection: Inspection) -> Iterator[Finding]:
    """The loss scale falls and falls in one run."""
    yield from scale_telling.of_run(inspection, CODE, LABEL)
