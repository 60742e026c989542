"""AL303 in one run: load_state_dict left parameters as they were, and the keys tell why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from align import wording
from align.diagnosis.registry import run_rule
from align.inspection import Inspection
from align.loading import left_out, rename_advice, tell_load
from align.records import INIT_STEP, Finding, Phase, Place, Severity
from align.sentences import say

CODE = "AL303"
LABEL = "checkpoint-keys"


@run_rule(CODE, LABEL, rank=20)
def find(inspection: Inspection) -> Iterator[Finding]:
    """A load before the first step whose keys would fit but for a prefix or a renamed part of the names.

    It is an error where none of them was taken, and where more than half of the names have the renamed part. Keys that
    are missing and keys too many without such a prefix or part are a note: a new head on an old body has both.
    """
    load = left_out(inspection.view.run.loads)
    if load is None:
        return
    prefix, explained = load.get("prefix"), int(load.get("prefix_explains", 0))
    nothing = explained == load["missing"] == load["unexpected"] == load["keys"]
    most = bool(load.get("renamed")) and 2 * explained > load["keys"]
    told = prefix or load.get("renamed")
    severity = Severity.ERROR if nothing or most else Severity.WARNING if told else Severity.NOTE
    yield Finding(
        CODE,
        LABEL,
        severity,
        say("{}: {}.", _opening(load, nothing=nothing), tell_load(load)),
        _advice(load),
        Place(INIT_STEP, str(Phase.INIT)),
        dict(load),
        {"prefix": prefix, "explained": explained},
    )


def _opening(load: Mapping[str, Any], *, nothing: bool) -> str:
    if nothing:
        return "Nothing of the checkpoint was loaded, since no key fits"
    missing = wording.plural(int(load["missing"]), "parameter or buffer", "parameters and buffers")
    return say("The checkpoint did not fill {}", missing)


def _advice(load: Mapping[str, Any]) -> str:
    do = rename_advice(load)
    if not do:
        return (
            "Nothing to do where a new part is put on an old model. Else rename the keys, and load with "
            "`strict=True`, which refuses keys that do not fit."
        )
    return say("{} before loading, and load with `strict=True`, which refuses keys that do not fit.", do)
