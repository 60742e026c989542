"""A part of the localisation benchmark: healthy pairs are aligned, faults are found where they are, by no name."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from benchmarks.localization import judging
from benchmarks.localization.plan import Pair
from tests.localization import captured
from tests.renaming import NewNames, rename_modules

HEALTHY = (
    "cnn-fp32-0-everything",
    "cnn-fp32-0-late_affine",
    "cnn-bf16-0-reduction_order",
    "cnn-bf16-0-one_pass_norms",
    "gru-tf32-0-everything",
    "gru-tf32-0-chunks",
    "moe-fp32-0-chunks",
    "moe-fp16-1-formulas_and_ulp",
)

FOUND = (
    "cnn-fp32-0-output_scale-large",
    "cnn-fp32-0-channel_scale-small",
    "cnn-fp32-0-padding_mode-small",
    "cnn-fp32-0-residual_gradient-small",
    "cnn-bf16-0-saturation-large",
    "cnn-bf16-0-pooling-large",
    "gru-tf32-0-bias_dropped-large",
    "gru-tf32-0-input_gradient-large",
    "gru-tf32-0-weight_gradient-large",
    "moe-fp32-0-softmax_short-small",
    "moe-fp32-0-router_top_k-large",
    "moe-fp32-0-softmax_backward-large",
    "moe-fp32-0-loss_scale-small",
    "moe-fp16-1-positions_off-large",
    "moe-fp16-1-one_update_gradient-large",
    "moe-fp16-1-clip_first-large",
)

RENAMED = (
    "cnn-bf16-0-reduction_order",
    "cnn-bf16-0-pooling-large",
    "gru-tf32-0-bias_dropped-large",
    "gru-tf32-0-input_gradient-large",
    "moe-fp32-0-chunks",
    "moe-fp32-0-activation_formula-small",
    "moe-fp32-0-router_top_k-large",
    "moe-fp16-1-one_update_gradient-large",
)


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("localization")


@pytest.fixture(scope="module")
def pairs(work: Path) -> dict[str, Pair]:
    return captured({*HEALTHY, *FOUND, *RENAMED}, work)


@cache
def answered(reference: Path, candidate: Path) -> dict[str, Any]:
    """What is said of two captures."""
    return judging.ask(reference, candidate)


def judged(pair: Pair, work: Path) -> judging.Judgement:
    """The judgement of a pair."""
    return judging.read_answer(pair, answered(work / pair.reference, work / pair.candidate))


@pytest.mark.parametrize("name", HEALTHY)
def test_nothing_is_said_of_a_healthy_pair(pairs: dict[str, Pair], work: Path, name: str) -> None:
    found = judged(pairs[name], work)
    assert found.verdict == "aligned", judging.line(found)


@pytest.mark.parametrize("name", FOUND)
def test_a_fault_is_found_where_it_is(pairs: dict[str, Pair], work: Path, name: str) -> None:
    found = judged(pairs[name], work)
    assert found.exact, judging.line(found)


@pytest.mark.parametrize("name", RENAMED)
def test_renaming_all_modules_changes_nothing_but_their_names(pairs: dict[str, Pair], work: Path, name: str) -> None:
    """No rule reads a name: with other ones, drawn by lot, verdict and place are the same."""
    pair, names = pairs[name], NewNames(seed=len(name))
    for path in (pair.reference, pair.candidate):
        rename_modules(work / path, work / f"renamed-{path}", names)
    before = answered(work / pair.reference, work / pair.candidate)
    after = judging.ask(work / f"renamed-{pair.reference}", work / f"renamed-{pair.candidate}")

    assert after["verdict"] == before["verdict"]
    assert [row["times_floor"] for row in judging.rows(after["records"])] == [
        row["times_floor"] for row in judging.rows(before["records"])
    ]
    assert [finding["code"] for finding in after["findings"]] == [finding["code"] for finding in before["findings"]]
    renamed, plain = judging.read_answer(pair, after), judging.read_answer(pair, before)
    assert renamed.phase == plain.phase
    assert renamed.name == (names.of(plain.name) if plain.name in before["modules"]["name"] else plain.name)
    assert plain.right
