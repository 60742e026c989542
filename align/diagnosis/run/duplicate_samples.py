"""AL208 in one run: each worker of a DataLoader reads all samples."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.diagnosis import telling
from align.diagnosis.registry import run_rule
from align.inspection import Inspection
from align.records import Finding, Severity
from align.sentences import say

CODE = "AL208"
LABEL = "duplicate-samples"


@run_rule(CODE, LABEL, rank=69)
def find(inspection: Inspection) -> Iterator[Finding]:
    """Batches of an iterable dataset that come once from each worker; what a dataset holds twice is not told."""
    found = inspection.epochs.copies
    if found is None:
        return
    yield Finding(
        CODE,
        LABEL,
        Severity.WARNING,
        say(
            "Each of the {} workers of the DataLoader gives the same batches: {} of {} {} of the one before.",
            wording.count(found.workers),
            wording.count(found.copies),
            wording.plural(found.captured, "captured batch", "captured batches"),
            "is a copy" if found.copies == 1 else "are copies",
        ),
        "Let the IterableDataset give each worker its part: torch.utils.data.get_worker_info() tells its number, "
        "`itertools.islice(samples, worker.id, None, worker.num_workers)` takes every so many.",
        telling.place_of(found.key),
        {"workers": found.workers, "copies": found.copies, "captured": found.captured},
        {"workers": found.workers, "copies": found.copies, "captured": found.captured},
    )
