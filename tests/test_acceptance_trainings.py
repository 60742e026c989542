"""A part of the bed of real paired trainings: healthy pairs are not accused, faults that a loss shows are found."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from benchmarks.paired_trainings.arithmetic import PRECISIONS, product
from benchmarks.paired_trainings.models import TASKS
from benchmarks.paired_trainings.recipes import CASES, Case, Recipe
from benchmarks.paired_trainings.training import run_name, train
from tests.running import ROOT, Outcome, python

HEALTHY = "healthy, bf16 autocast, other sums"
FAULTS = ("learning rate x 2", "another order of data", "one NaN")
STEPS = 100


def bed(work: Path, *arguments: str) -> Outcome:
    chosen = ("--models", "cnn", "--seeds", "1", "--steps", str(STEPS), "--cases", HEALTHY, *FAULTS)
    return python("-m", "benchmarks.acceptance_trainings", "--work", work, *chosen, *arguments, cwd=ROOT)


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("trainings")


@pytest.fixture(scope="module")
def told(work: Path) -> Outcome:
    return bed(work)


def rows(outcome: Outcome) -> dict[str, list[str]]:
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in outcome.stdout.splitlines()]
    return {name: others for name, *others in cells[2:]}


def test_a_healthy_device_passes_and_faults_fail(told: Outcome) -> None:
    assert told.code == 0, told.stderr
    verdicts = {name: others[:3] for name, others in rows(told).items()}
    assert verdicts == {
        HEALTHY: ["passes", "0 / 0 / 0 / 1", "0 / 0 / 0 / 1"],
        "learning rate x 2": ["fails", "1 / 0 / 0 / 0", "1 / 0 / 0 / 0"],
        "another order of data": ["fails", "1 / 0 / 0 / 0", "1 / 0 / 0 / 0"],
        "one NaN": ["fails", "1 / 0 / 0 / 0", "1 / 0 / 0 / 0"],
    }


def test_what_fails_first_is_what_is_wrong(told: Outcome) -> None:
    first = {name: others[3] for name, others in rows(told).items()}
    assert first == {
        HEALTHY: "-",
        "learning rate x 2": "early-window 1",
        "another order of data": "data-order 1",
        "one NaN": "non-finite 1",
    }


def test_runs_are_judged_again_without_training(told: Outcome, work: Path) -> None:
    before = {file: file.stat().st_mtime_ns for file in work.rglob("*.csv")}
    again = bed(work, "--judge-only", "--list")
    pairs, table = again.stdout.split("\n\n")
    assert table == told.stdout
    assert [line.split(":")[0] for line in pairs.splitlines()] == [f"{name}, cnn 0" for name in (HEALTHY, *FAULTS)]
    assert {file: file.stat().st_mtime_ns for file in work.rglob("*.csv")} == before


def test_judging_without_runs_says_what_to_do(tmp_path: Path) -> None:
    outcome = bed(tmp_path, "--judge-only")
    said = f"No pair of {STEPS} steps is in '{tmp_path}'. Train first: leave out --judge-only.\n"
    assert (outcome.code, outcome.stdout) == (2, said)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_both_devices_of_a_class_are_as_exact_as_each_other(precision: str) -> None:
    random = torch.Generator().manual_seed(0)
    first = torch.randn(40, 60, generator=random, requires_grad=True)
    second = torch.randn(60, 20, generator=random)
    made = PRECISIONS[precision]
    exact = first.detach().double() @ second.double()
    errors, gradients = [], []
    for device in (made.reference, made.device):
        found = product(first, second, device)
        errors.append(float((found.detach() - exact).norm() / exact.norm()))
        gradients.append(torch.autograd.grad(found.sum(), first)[0])
    assert 0 < max(errors) < 8 * made.unit
    assert max(errors) < 3 * min(errors)
    torch.testing.assert_close(*gradients, rtol=4 * made.unit, atol=80 * made.unit)


def test_a_run_is_repeated_bit_for_bit() -> None:
    runs = [train(TASKS["gpt"], Recipe(PRECISIONS["tf32"].device), 3, 1) for _ in range(2)]
    assert runs[0] == runs[1]


def test_no_two_recipes_share_a_file() -> None:
    recipes = {recipe for case in CASES for recipe in (case.reference, case.candidate(STEPS), *case.repeats(2))}
    assert len({run_name(recipe) for recipe in recipes}) == len(recipes)


def test_a_fault_changes_nothing_else() -> None:
    healthy = Case("bf16").candidate(STEPS)
    changed = {
        case.fault: [
            name for name in healthy.__slots__ if getattr(case.candidate(STEPS), name) != getattr(healthy, name)
        ]
        for case in CASES
        if case.fault
    }
    assert changed == {
        "learning rate x 1.1": ["rate"],
        "learning rate x 2": ["rate"],
        "another order of data": ["order"],
        "clipping dropped": ["clip"],
        "weight decay 0": ["decay"],
        "frozen layer": ["frozen"],
        "eps 1e-3": ["eps"],
        "2 % wrong labels": ["mislabelled"],
        "stall": ["stalled_from"],
        "one NaN": ["lost_at"],
    }
