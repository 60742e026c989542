"""What a capture holds, as tables that tests compare whole."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import align
from align.capture_file import Capture
from align.records import INIT_STEP, FactValue, Phase, TensorRecord

Facts = dict[tuple[str, str], FactValue]
Records = dict[tuple[str, str], TensorRecord]
Values = dict[tuple[str, str], NDArray[Any]]


def record(path: Path, run: Callable[[], Any], **options: Any) -> Any:
    """Record what `run` trains and give back what it returns; there must be no trouble.

    Optimizers that earlier tests have left behind are collected first: a recorder takes note of all that live.
    """
    gc.collect()
    with align.Recorder(path, force=True, **options) as recorder:
        result = run()
    assert dict(recorder.troubles) == {}
    return result


def facts(capture: Capture, step: int, phase: Phase, *, micro: int = 0, call: int = 0) -> Facts:
    """The facts of one phase of a step by name and slot."""
    found = [
        fact for fact in capture.facts(step) if (fact.key.phase, fact.key.micro, fact.key.call) == (phase, micro, call)
    ]
    return {fact.key.owner: fact.value for fact in found}


def facts_of(
    capture: Capture, step: int, phase: Phase, name: str, *, micro: int = 0, call: int = 0
) -> dict[str, FactValue]:
    """The facts of one name by slot."""
    return {
        slot: value
        for (owner, slot), value in facts(capture, step, phase, micro=micro, call=call).items()
        if owner == name
    }


def records(capture: Capture, step: int, phase: Phase) -> Records:
    """The records of one phase of a step by name and slot; there must be no two of one key."""
    found = [one for one in capture.records(step) if one.key.phase is phase]
    table = {one.key.owner: one for one in found}
    assert len(table) == len(found)
    return table


def initial(capture: Capture) -> Records:
    """The records before step 0 by name and slot."""
    return records(capture, INIT_STEP, Phase.INIT)


def initial_hashes(path: Path) -> dict[str, int | None]:
    """The hashes of what is recorded before step 0, by `module.slot`."""
    with align.open(path) as capture:
        return {f"{name}.{slot}": one.hash for (name, slot), one in initial(capture).items()}


def values(capture: Capture, step: int, phase: Phase) -> Values:
    """The values of one phase of a step by name and slot."""
    return {key: capture.values(one) for key, one in records(capture, step, phase).items()}


def assert_same(found: Values, expected: Values) -> None:
    """The same names and slots with the same numbers, bit for bit."""
    assert found.keys() == expected.keys()
    for key, array in expected.items():
        assert found[key].dtype == array.dtype, key
        assert np.array_equal(found[key], array, equal_nan=True), key
