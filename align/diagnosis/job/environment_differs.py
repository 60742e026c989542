"""AL101 among ranks: they run on other kinds of devices, or with other versions or precisions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from align import wording
from align.diagnosis.registry import job_rule
from align.inspection import Job
from align.records import Finding, Place, RunInfo, Severity
from align.sentences import joined, say

CODE = "AL101"
LABEL = "environment-differs"


class Facet(NamedTuple):
    """A fact that all ranks of a job have in common, in words, and how it is read."""

    name: str
    read: Callable[[RunInfo], object]


DEVICE = Facet("the parameters are on", lambda run: run.parameters_on or run.device_type)
FACETS = (
    Facet("the device is", lambda run: run.device_name),
    Facet("torch is", lambda run: run.versions.get("torch")),
    Facet("CANN is", lambda run: run.versions.get("cann")),
    Facet("CUDA is", lambda run: run.versions.get("cuda")),
    Facet("autocast is", lambda run: run.autocast or say("off")),
    Facet("deterministic algorithms are", lambda run: run.flags.get("deterministic")),
    Facet("TF32 in matrix products is", lambda run: run.flags.get("matmul_allow_tf32")),
)


@job_rule(CODE, LABEL, rank=15)
def find(job: Job) -> Iterator[Finding]:
    """An error where ranks train on other types of devices; a warning of other versions and precisions."""
    runs = [inspection.view.run for inspection in job.ranks]
    wrong = _differing(runs, DEVICE)
    differing = [found for facet in FACETS if (found := _differing(runs, facet))] if not wrong else [wrong]
    if not differing:
        return
    odd = sorted({rank for ranks in _groups(runs, DEVICE if wrong else _first(runs))[1:] for rank in ranks})
    yield Finding(
        CODE,
        LABEL,
        Severity.ERROR if wrong else Severity.WARNING,
        say("The ranks do not run alike: {}.", joined("; ", differing)),
        "Start every rank on the device of its own number (`torch.npu.set_device(local_rank)`, "
        "`torch.cuda.set_device(local_rank)`) and fail where it has none, instead of going on on the CPU; `align "
        "capture --device npu` does."
        if wrong
        else "Install the same versions on all hosts, and set precision on every rank alike.",
        Place(rank=odd[0] if len(odd) == 1 else None),
        {"ranks": odd},
        {"differing": differing, "ranks": odd},
    )


def _differing(runs: list[RunInfo], facet: Facet) -> str:
    """`the parameters are on npu on rank 0, on cpu on rank 1`; empty where all ranks agree."""
    groups = _groups(runs, facet)
    if len(groups) < 2:  # noqa: PLR2004 - one group is agreement
        return ""
    told = [say("{} on {}", _value(runs, facet, ranks), wording.ranks(ranks)) for ranks in groups]
    return say("{} {}", facet.name, joined(", ", told))


def _first(runs: list[RunInfo]) -> Facet:
    return next(facet for facet in FACETS if len(_groups(runs, facet)) > 1)


def _groups(runs: list[RunInfo], facet: Facet) -> list[list[int]]:
    """The ranks by what they say, the most first."""
    found: dict[str, list[int]] = {}
    for run in runs:
        found.setdefault(str(facet.read(run)), []).append(run.rank)
    return sorted(found.values(), key=lambda ranks: (-len(ranks), ranks))


def _value(runs: list[RunInfo], facet: Facet, ranks: list[int]) -> str:
    return str(facet.read(next(run for run in runs if run.rank == ranks[0])))
