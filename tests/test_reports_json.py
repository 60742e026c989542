"""The JSON of a comparison: its keys, its numbers, its size."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from align.records import Status
from align.reports.json_report import diff_json
from tests import report_samples
from tests.test_reports_text import SAMPLES


def strict(text: str) -> Any:
    """Read JSON as other tools do: NaN and Infinity are refused."""

    def refuse(word: str) -> None:
        raise AssertionError(word)

    return json.loads(text, parse_constant=refuse)


def test_json_is_the_golden_one(golden: Callable[[str, str], None]) -> None:
    golden("diff_equality.json", diff_json(report_samples.equality()))


@pytest.mark.parametrize("name", SAMPLES)
def test_json_has_every_key_in_its_order(name: str) -> None:
    read = strict(diff_json(SAMPLES[name]()))

    assert list(read) == [
        "format",
        "command",
        "verdict",
        "summary",
        "first_divergence",
        "findings",
        "sentences",
        "resolution",
        "counts",
        "runs",
        "made_comparable",
        "pairing",
        "records",
        "only_reference",
        "only_candidate",
        "exponents",
        "modules",
        "timeline",
    ]
    assert read["format"] == "align/1"


def test_first_divergence_is_null_when_aligned() -> None:
    assert strict(diff_json(report_samples.aligned()))["first_divergence"] is None


def test_first_divergence_names_place_and_numbers() -> None:
    first = strict(diff_json(report_samples.diverged()))["first_divergence"]

    assert list(first) == [
        *("step", "micro", "phase", "name", "slot", "call", "kind", "origin"),
        *("relative_l2", "floor", "times_floor", "aspect"),
    ]
    assert (first["phase"], first["name"], first["kind"], first["origin"]) == (
        "forward",
        "layers.2.mlp.act",
        "value",
        "module",
    )


def test_records_are_columns_that_give_back_every_pair() -> None:
    result = report_samples.diverged()

    records = strict(diff_json(result))["records"]
    columns, words = records["columns"], records["dictionaries"]

    assert records["length"] == len(result.comparisons)
    for place, pair in enumerate(result.comparisons):
        texts = {name: words[name][columns[name][place]] for name in words}
        assert (texts["name"], texts["slot"], texts["phase"]) == (pair.key.name, pair.key.slot, str(pair.key.phase))
        assert texts["status"] == str(pair.status)
        assert columns["step"][place] == pair.key.step
        known = pair.relative_l2 is not None
        assert columns["relative_l2"][place] == (pytest.approx(pair.relative_l2, rel=1e-5) if known else None)


def test_nan_and_infinity_are_words() -> None:
    result = report_samples.nonfinite()
    place = next(i for i, pair in enumerate(result.comparisons) if pair.status is Status.NONFINITE)

    read = strict(diff_json(dataclasses.replace(result, counts={"paired": 3})))

    assert read["records"]["columns"]["relative_l2"][place] == "nan"
    assert read["timeline"]["candidate"]["loss"][1] == "nan"
    assert read["counts"] == {"paired": 3}


def test_numbers_of_numpy_in_evidence_are_plain_numbers() -> None:
    result = report_samples.diverged()
    evidence: dict[str, Any] = {
        "shift": np.float32(0.5),
        "rows": np.int64(3),
        "equal": np.array([True])[0],
        "ratio": math.inf,
    }
    finding = dataclasses.replace(result.findings[0], evidence=evidence)

    read = strict(diff_json(dataclasses.replace(result, findings=(finding,))))

    assert read["findings"][0]["evidence"] == {"shift": 0.5, "rows": 3, "equal": True, "ratio": "inf"}


def test_twenty_thousand_records_stay_small() -> None:
    result = report_samples.huge()

    assert len(result.comparisons) > 20_000
    assert len(diff_json(result)) < 200 * len(result.comparisons)


def test_json_says_how_the_runs_were_made_comparable() -> None:
    read = strict(diff_json(report_samples.prepared()))

    assert read["made_comparable"] == (
        "Made comparable: the candidate took its initial weights and batches from gpu.h5; dropout was off in both; "
        "seed 1 in the reference."
    )
    assert read["runs"]["reference"]["same_start"] == {"seed": 1, "no_dropout": True}
    assert read["timeline"]["candidate"]["loss_scale_after"][0] == 32768.0
    assert read["timeline"]["candidate"]["clip_limit"][0] == 1.0
    assert strict(diff_json(report_samples.aligned()))["made_comparable"] is None
