"""AL211 in one run: every epoch reads the data in one order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from align import wording
from align.diagnosis import telling
from align.diagnosis.registry import run_rule
from align.inspection import Inspection
from align.inspection.epochs import RepeatedOrder
from align.records import Finding, Severity
from align.sentences import say

CODE = "AL211"
LABEL = "data-order-repeated"


@run_rule(CODE, LABEL, rank=70)
def find(inspection: Inspection) -> Iterator[Finding]:
    """Batches that come again in their order: a warning where the loader shuffles, a note where that is not known.

    A loader that was told not to shuffle does what it should, and one batch that is given again and again is a test of
    the training: neither is told.
    """
    found = inspection.epochs.repeated
    if found is None or found.shuffles is False:
        return
    yield Finding(
        CODE,
        LABEL,
        Severity.WARNING if found.shuffles else Severity.NOTE,
        say(
            "From {} on the batches of the epoch before come again in the same order: {} of {}, each {} after it "
            "came first{}.",
            wording.step(found.key.step),
            wording.count(found.repeated),
            wording.plural(found.captured, "captured batch", "captured batches"),
            wording.plural(found.period, "batch", "batches"),
            ", although the loader shuffles" if found.shuffles else "",
        ),
        _advice(found),
        telling.place_of(found.key),
        {"period": found.period, "repeated": found.repeated, "captured": found.captured, "shuffle": found.shuffles},
        {"step": found.key.step, "period": found.period, "repeated": found.repeated, "captured": found.captured},
    )


def _advice(found: RepeatedOrder) -> str:
    if isinstance(found.settings.get("distributed"), Mapping):
        return "Call `sampler.set_epoch(epoch)` at the begin of each epoch: it shuffles by seed plus epoch."
    return (
        "Look for what seeds the order anew in each epoch: a generator made or seeded inside the loop, "
        "torch.manual_seed at its begin. Nothing is wrong where one order is meant."
    )
