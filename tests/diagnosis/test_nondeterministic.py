"""AL405: one run, repeated, does not give the same bits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from align.records import DiffResult, RunInfo, Severity
from tests.builders import Array, diff_files
from tests.numpy_run import make

RUN = RunInfo(
    outcome="finished",
    device_type="npu",
    device_name="Ascend910B",
    script_hash="ab",
    seeds={"torch": 1},
    command=("train.py",),
    flags={"deterministic": False},
)


def rounded(array: Array) -> Array:
    """Every other element one unit in the last place off."""
    return np.where(np.arange(array.size).reshape(array.shape) % 2, array, array * (1 + 2.0**-23))


def diff(folder: Path, point: str, run: RunInfo = RUN, other: RunInfo = RUN, **options: Any) -> DiffResult:
    reference = folder.parent / "a.h5" if run is RUN and not options.get("detail") else folder / "a.h5"
    if not reference.exists():
        make(reference, steps=1, run=run, **{name: value for name, value in options.items() if name != "faults"})
    faults = {(0, point): rounded, **options.pop("faults", {})} if point else {}
    return diff_files(reference, make(folder / "b.h5", steps=1, run=other, faults=faults, **options))


@pytest.mark.parametrize("deterministic", [False, True])
def test_the_first_operator_that_is_not_equal_is_named(tmp_path: Path, *, deterministic: bool) -> None:
    run = replace(RUN, flags={"deterministic": deterministic})
    result = diff(tmp_path, "forward blocks.0.mlp.fc", run, run)
    note = result.findings[0]
    assert [(each.label, each.severity) for each in result.findings] == [
        ("nondeterministic", Severity.NOTE),
        ("within-noise", Severity.NOTE),
    ]
    although = ", although deterministic algorithms are on" if deterministic else ""
    assert note.summary == (
        "Both files are of one run, repeated on one device: all is equal to the last bit up to step 0, forward, where "
        "blocks.0.mlp.fc output.0 differs by rounding (relative L2 6.1e-8). An operator in blocks.0.mlp.fc sums in "
        f"another order each time{although}."
    )
    how = (
        "The operator has no deterministic kernel, or a library around torch runs it: replace it in blocks.0.mlp.fc, "
        "or run it on the CPU, to get equal bits."
        if deterministic
        else "Capture both with `align capture --deterministic` to get equal bits, where there are such kernels."
    )
    assert note.advice == (
        f"{how} That is no fault; such a repeat tells what rounding does to this model: give it to `align diff REF.h5 "
        "CAND.h5 --floor REPEAT.h5`."
    )
    assert (note.where.step, note.where.phase, note.where.name) == (0, "forward", "blocks.0.mlp.fc")


def test_in_the_backward_too(tmp_path: Path) -> None:
    note = diff(tmp_path, "backward blocks.0.mlp.fc").findings[0]
    assert (note.label, note.where.phase, note.where.name) == ("nondeterministic", "backward", "blocks.0.mlp.fc")


def test_beside_a_fault_it_is_a_warning(tmp_path: Path) -> None:
    result = diff(
        tmp_path, "forward blocks.0.mlp.fc", faults={(0, "forward blocks.1.attn.o"): lambda array: array * 1.5}
    )
    assert [(each.label, each.severity) for each in result.findings] == [
        ("origin-module", Severity.ERROR),
        ("nondeterministic", Severity.WARNING),
    ]


@pytest.mark.parametrize(
    "other",
    [
        {"device_name": "Ascend910A"},
        {"seeds": {"torch": 2}},
        {"command": ("train.py", "--lr", "1")},
        {"versions": {"torch": "2.6"}},
        {"flags": {"deterministic": True}},
        {"script_hash": ""},
    ],
    ids=lambda other: next(iter(other)),
)
def test_two_runs_that_are_set_otherwise_are_no_repeat(tmp_path: Path, other: dict[str, Any]) -> None:
    result = diff(tmp_path, "forward blocks.0.mlp.fc", other=replace(RUN, **other))
    assert "nondeterministic" not in {finding.label for finding in result.findings}


def test_equal_bits_are_no_finding(tmp_path: Path) -> None:
    assert [finding.label for finding in diff(tmp_path, "").findings] == ["within-noise"]


def test_statistics_alone_do_not_tell(tmp_path: Path) -> None:
    result = diff(tmp_path, "forward blocks.0.mlp.fc", detail="stats")
    assert "nondeterministic" not in {finding.label for finding in result.findings}
