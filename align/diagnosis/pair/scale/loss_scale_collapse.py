"""AL606: the loss scale of one of two runs falls and falls."""

from __future__ import annotations

from collections.abc import Iterator

from align.comparison import Walk
from align.diagnosis import scale_telling
from align.diagnosis.registry import rule
from align.records import Finding

CODE = "AL606"
LABEL = "loss-scale-collapse"


@rule(CODE, LABEL, rank=56)
def find(walk: Walk) -> Iterator[Finding]:
    """The loss scale of one of two runs falls and falls."""
    yield from scale_telling.of_pair(walk, CODE, LABEL)
