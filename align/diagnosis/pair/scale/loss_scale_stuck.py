"""AL607: the loss scale of one of two runs does not move where it should."""

from __future__ import annotations

from collections.abc import Iterator

from align.comparison import Walk
from align.diagnosis import scale_telling
from align.diagnosis.registry import rule
from align.records import Finding

CODE = "AL607"
LABEL = "loss-scale-stuck"


@rule(CODE, LABEL, rank=57)
def find(walk: Walk) -> Iterator[Finding]:
    """The loss scale of one of two runs does not move where it should."""
    yield from scale_telling.of_pair(walk, CODE, LABEL)
