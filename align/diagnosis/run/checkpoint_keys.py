"""AL303 in one run: load_state_dict left parameters as they were, and the keys tell why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from align import wording
from align.diagnosis.registry import run_rule
from align.inspection import Inspection
from align.loading import left_out, tell_load
from align.records import INIT_STEP, Finding, Phase, Place, Severity

CODE = "AL303"
LABEL = "checkpoint-keys"


@run_rule(CODE, LABEL, rank=20)
def find(inspection: Inspection) -> Iterator[Finding]:
    """A load before the first step whose keys would fit but for a prefix: an error where none of them was taken.

    Keys that are missing and keys too many without such a prefix are a note: a new head on an old body has both.
    """
    load = left_out(inspection.view.run.loads)
    if load is None:
        return
    prefix, explained = load.get("prefix"), int(load.get("prefix_explains", 0))
    nothing = explained == load["missing"] == load["unexpected"] == load["keys"]
    severity = Severity.ERROR if nothing else Severity.WARNING if prefix else Severity.NOTE
    yield Finding(
        CODE,
        LABEL,
        severity,
        f"{_opening(load, nothing=nothing)}: {tell_load(load)}.",
        _advice(load),
        Place(INIT_STEP, str(Phase.INIT)),
        dict(load),
        {"prefix": prefix, "explained": explained},
    )


def _opening(load: Mapping[str, Any], *, nothing: bool) -> str:
    if nothing:
        return "Nothing of the checkpoint was loaded, since no key fits"
    missing = wording.plural(int(load["missing"]), "parameter or buffer", "parameters and buffers")
    return f"The checkpoint did not fill {missing}"


def _advice(load: Mapping[str, Any]) -> str:
    prefix = load.get("prefix")
    if not prefix:
        return (
            "Nothing to do where a new part is put on an old model. Else rename the keys, and load with "
            "`strict=True`, which refuses keys that do not fit."
        )
    do = f"Take '{prefix}' from the keys" if load.get("prefix_in") == "file" else f"Put '{prefix}' before the keys"
    return f"{do} before loading, and load with `strict=True`, which refuses keys that do not fit."
