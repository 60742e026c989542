"""No rule reads a name: renaming all modules at random changes no verdict and no place."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.localization import judging
from benchmarks.localization.plan import Pair
from tests.localization import captured
from tests.renaming import NewNames, rename_modules

PAIRS = (
    "cnn-bf16-0-reduction_order",
    "cnn-bf16-0-bias_dropped-large",
    "cnn-bf16-0-pooling-large",
    "moe-fp32-0-chunks",
    "moe-fp32-0-activation_formula-small",
    "moe-fp32-0-router_top_k-large",
    "moe-fp32-0-input_gradient-large",
    "moe-fp32-0-one_update_gradient-large",
)


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("renamed")


@pytest.fixture(scope="module")
def pairs(work: Path) -> dict[str, Pair]:
    return captured(PAIRS, work)


@pytest.mark.parametrize("name", PAIRS)
def test_renaming_all_modules_changes_nothing_but_their_names(pairs: dict[str, Pair], work: Path, name: str) -> None:
    pair, names = pairs[name], NewNames(seed=len(name))
    for path in (pair.reference, pair.candidate):
        rename_modules(work / path, work / f"renamed-{path}", names)
    before = judging.ask(work / pair.reference, work / pair.candidate)
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
