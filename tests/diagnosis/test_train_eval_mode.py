"""AL108: training mode in one run, evaluation mode in the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from align.configuration import Modes
from align.records import DiffResult, Fact, ModuleInfo, Phase, Severity, TensorKey
from tests.builders import diff_files
from tests.numpy_run import dropped, make
from tests.said import told


def mode(name: str, *, training: bool, step: int = 0, micro: int = 0, call: int = 0) -> Fact:
    return Fact(TensorKey(step, Phase.FORWARD, name, "training", micro, call), training)


IN_TRAINING = {0: [mode("<Net>", training=True)]}


def diff(folder: Path, facts: Mapping[int, Sequence[Fact]], point: str = "", **options: Any) -> DiffResult:
    reference = make(folder / "a.h5", steps=1, facts=IN_TRAINING, **options)
    faults = {(0, point): dropped} if point else {}
    return diff_files(reference, make(folder / "b.h5", steps=1, facts=facts, faults=faults, **options))


def test_the_mode_of_the_code_that_parts_the_runs_is_the_cause(tmp_path: Path) -> None:
    result = diff(tmp_path, {0: [mode("<Net>", training=False)]}, "between blocks.0.attn")
    assert told(result) == [("train-eval-mode", Severity.ERROR), ("origin-functional", Severity.ERROR)]
    assert result.summary == (
        "In step 0 blocks.0.attn runs in training mode in the reference and in evaluation mode in the candidate; so "
        "does 1 other module. Step 0, forward: blocks.0.attn.o input.0 is the first tensor that differs (relative L2 "
        "0.33, 3,570,000x the floor); the code of blocks.0.attn between blocks.0.attn.v and blocks.0.attn.o made it."
    )
    assert result.findings[0].advice == (
        "Call train() on the model of the candidate before its steps, or freeze the same modules with eval() in both: "
        "dropout and batch norm compute something else in evaluation mode."
    )


@pytest.mark.parametrize(
    ("facts", "point", "severity"),
    [
        ([mode("<Net>", training=False)], "forward blocks.1.mlp.fc", Severity.WARNING),
        ([mode("<Net>", training=True), mode("blocks.0", training=False)], "forward blocks.1.mlp.act",
         Severity.WARNING),
        ([mode("<Net>", training=False)], "forward blocks.1.mlp.act", Severity.ERROR),
        ([mode("<Net>", training=True), mode("blocks.1.mlp.act", training=False)], "forward blocks.1.mlp.act",
         Severity.ERROR),
        ([mode("<Net>", training=False)], "", Severity.NOTE),
    ],
    ids=["a linear layer knows no mode", "elsewhere", "of a class of one's own", "of one module", "no consequence"],
)  # fmt: skip
def test_a_mode_matters_where_the_code_can_depend_on_it(
    tmp_path: Path, facts: list[Fact], point: str, severity: Severity
) -> None:
    act = [ModuleInfo("blocks.1.mlp.act", "NoisyGate")]
    result = diff(tmp_path, {0: facts}, point, extra_modules=act)
    assert [finding.severity for finding in result.findings if finding.code == "AL108"] == [severity]


def test_one_mode_in_both_runs_is_no_finding(tmp_path: Path) -> None:
    assert told(diff(tmp_path, IN_TRAINING, "forward blocks.0.mlp.fc")) == [("origin-module", Severity.ERROR)]


def test_a_mode_that_one_capture_does_not_tell_is_no_finding(tmp_path: Path) -> None:
    assert told(diff(tmp_path, {}, "between blocks.0.attn")) == [("origin-functional", Severity.ERROR)]


@pytest.mark.parametrize(
    ("name", "call", "expected"),
    [
        ("<Net>", 0, True),
        ("body.norm", 0, False),
        ("body.norm.scale", 0, True),
        ("body", 1, True),
        ("<Critic>.body", 0, False),
        ("<Critic>.drop", 1, True),
    ],
)
def test_a_module_without_a_fact_runs_as_its_root_does(name: str, call: int, expected: bool) -> None:
    facts = [
        mode("<Teacher>", training=False),
        mode("<Net>", training=True),
        mode("body.norm", training=False),
        mode("<Critic>", training=False),
        mode("<Critic>.drop", training=True, call=1),
    ]
    names = ("<Teacher>", "<Teacher>.body", "<Net>", "body", "body.norm", "<Critic>", "<Critic>.drop")
    modules = {each: ModuleInfo(each, "Module", leaf=each.count("<") == 0) for each in names}
    assert Modes(facts, modules).of(name, 0, call) is expected


def test_modules_that_are_called_without_their_root_are_roots_themselves() -> None:
    modes = Modes([mode("encoder", training=False), mode("encoder.drop", training=True)], {})
    assert (modes.of("encoder.fc", 0, 0), modes.of("encoder.drop", 0, 0), modes.of("head", 0, 0)) == (False, True, None)
