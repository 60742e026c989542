"""Which tensors a picture of exponents shows: from records, and from a capture through the command line."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest

from align.cli import main
from align.exponents import exponents_of_pairs, exponents_of_run, magnitudes_of, skipped_steps
from align.records import (
    Comparison,
    Divergence,
    Exponents,
    Kind,
    Origin,
    Phase,
    Status,
    TensorKey,
    TensorRecord,
    TensorStats,
)
from tests import report_samples
from tests.running import STEPS, align


def record(
    name: str, *, zeros: int = 0, subnormals: int = 0, infs: int = 0, phase: Phase = Phase.GRADIENT, step: int = 0
) -> TensorRecord:
    """A gradient of 100 elements of float16, its exponents counted."""
    codes = np.zeros(32, dtype=np.int64)
    codes[0], codes[-1], codes[15] = zeros + subnormals, infs, 100 - zeros - subnormals - infs
    stats = TensorStats(100, maximum=1.5, zeros=zeros, subnormals=subnormals, positive_infs=infs)
    key = TensorKey(step, phase, name, "weight")
    return TensorRecord(key, 0, "float16", (100,), stats, exponents=codes)


def pair(reference: TensorRecord, candidate: TensorRecord) -> Comparison:
    return Comparison(reference, candidate, Status.WITHIN)


def names(found: tuple[Exponents, ...]) -> list[str]:
    return [entry.key.name for entry in found]


def test_the_gradients_nearest_to_the_limits_of_their_format_stand_first_one_of_each_module() -> None:
    records = [record(f"m{number}", zeros=number) for number in range(9)]
    records += [record("m8", subnormals=50, step=1), record("act", zeros=90, phase=Phase.FORWARD)]

    found = exponents_of_run(records, ())

    assert names(found) == ["m8", "m7", "m6", "m5", "m4", "m3"]
    assert found[0].key.step == 1
    assert found[0].reference is None


def test_skipped_steps_come_last_and_what_is_at_no_limit_only_alone() -> None:
    records = [record("fine"), record("overflows", infs=100, step=1), record("fades", zeros=2)]

    assert names(exponents_of_run(records, {1})) == ["fades", "overflows"]
    assert names(exponents_of_run([record("fine"), record("too")], ())) == ["fine"]


def test_the_first_difference_stands_before_all_and_differences_of_both_runs_count() -> None:
    first = record("first", phase=Phase.FORWARD)
    pairs = [
        pair(record("same", zeros=40), record("same", zeros=40)),
        pair(record("fades", zeros=2), record("fades", zeros=40)),
        pair(first, first),
        pair(record("act", zeros=90, phase=Phase.FORWARD), record("act", zeros=90, phase=Phase.FORWARD)),
    ]
    divergence = Divergence(
        0, 0, Phase.FORWARD, "first", "weight", 0, Kind.VALUE, Origin.MODULE, 0.1, 0.01, 10.0
    )  # fmt: skip

    found = exponents_of_pairs(pairs, divergence, ())

    assert names(found) == ["first", "fades", "same"]
    assert found[1].reference is not None
    assert (found[1].reference.zeros, found[1].candidate.zeros) == (2, 40)
    assert names(exponents_of_pairs(pairs, None, ())) == ["fades", "same"]


def test_subnormals_of_float32_are_what_has_the_lowest_code_and_is_not_zero() -> None:
    codes = np.zeros(256, dtype=np.int64)
    codes[0], codes[127] = 7, 3
    whole = record("w")
    stats = TensorStats(10, maximum=1.0, zeros=5)

    found = magnitudes_of(dataclasses.replace(whole, dtype="float32", shape=(10,), stats=stats, exponents=codes))

    assert found is not None
    assert (found.zeros, found.subnormals, sum(found.codes)) == (5, 2, 10)


@pytest.mark.parametrize(
    "changed",
    [
        {"dtype": "float32", "exponents": None},
        {"dtype": "int64", "exponents": None},
        {"stats": None},
        {"stats": TensorStats(0), "shape": (0,)},
    ],
    ids=["fp32 uncounted", "integers", "no statistics", "empty"],
)
def test_what_is_neither_short_nor_counted_is_not_shown(changed: dict[str, object]) -> None:
    assert magnitudes_of(dataclasses.replace(record("w"), **changed)) is None  # type: ignore[arg-type]


def test_steps_that_either_run_skipped_are_skipped() -> None:
    rows = report_samples.timeline(3)
    other = (rows[0], dataclasses.replace(rows[1], skipped=True, loss=math.nan), rows[2])

    assert skipped_steps(rows, other) == {1}


def test_the_json_of_a_real_run_holds_its_exponents(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "run.h5"
    assert align("capture", "--device", "cpu", "-o", file, STEPS / "scaler_skip.py").code == 0

    for command in (["inspect", str(file)], ["diff", str(file), str(file)]):
        main([*command, "--json", "-"], prog_name="align", standalone_mode=False)
        found = json.loads(capsys.readouterr().out)["exponents"]
        assert found
        for entry in found:
            for side in ("reference", "candidate"):
                if entry[side] is not None:
                    assert entry[side]["dtype"] == "float16"
                    assert sum(entry[side]["codes"]) == entry[side]["count"]
        assert (found[0]["reference"] is None) == (command[0] == "inspect")
