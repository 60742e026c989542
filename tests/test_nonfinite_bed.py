"""Real trainings whose NaN and Inf start at a known place, or are meant: a part of the bed of `benchmarks`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from benchmarks.nan_origins.capturing import trained
from benchmarks.nan_origins.cases import BENIGN, CASES
from benchmarks.nan_origins.judging import judge
from tests.running import capture_all

SMALL = frozenset({"regressor", "images"})
"""The models of which every training is captured here; they take a third of the time of the others."""

ALSO = frozenset(
    {
        "masked row", "fp16 scores", "no expert left", "own backward in attention", "NaN in a fused weight",
        "one of the calls", "checkpointed backward", "masked keys", "scale a little too large", "one expert full",
    }
)  # fmt: skip

CHOSEN = {case.name: case for case in CASES if case.model in SMALL or case.name in ALSO}


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """One capture of each chosen training, made in one process."""
    folder = tmp_path_factory.mktemp("bed")
    files = {name: folder / f"{name}.h5" for name in CHOSEN}
    capture_all("cpu", [(file, trained(CHOSEN[name])) for name, file in files.items()])
    return files


@pytest.mark.parametrize("name", CHOSEN)
def test_the_place_and_the_label_are_right_and_what_is_meant_is_left_alone(
    captures: Mapping[str, Path], name: str
) -> None:
    case = CHOSEN[name]
    found = judge(case, captures[name])
    assert (found.where, found.label) == (case.where, case.label if case.where else None), found.summary


def test_the_whole_bed_is_as_large_as_it_claims() -> None:
    assert len(CASES) - len(BENIGN) >= 60
    assert len(BENIGN) >= 20
    assert len({case.name for case in CASES}) == len(CASES)
    assert {case.precision for case in CASES} == {"fp32", "bf16", "fp16"}
