"""What is recorded beside the walk explains and is never judged: it changes nothing of what is told of the walk."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from align.capture_file import open_capture
from align.pairing import is_walked
from align.records import DiffResult, Finding, Phase, TensorKey, TensorRecord
from tests.builders import diff_files, walk_files, write_capture
from tests.numpy_run import make

VERSION_1 = Path(__file__).parent / "data" / "version1.h5"


OF_EVIDENCE = "recompute-differs"
"""What the evidence itself shows: what is recomputed in these files is not what was computed first."""


def told_of_walk(result: DiffResult) -> list[Finding]:
    """The findings that are not about the evidence alone."""
    return [finding for finding in result.findings if finding.label != OF_EVIDENCE]


def found_in(result: DiffResult) -> tuple[object, ...]:
    """All that was found, and what was judged on the way."""
    return (
        (result.verdict, result.summary, result.first_divergence, told_of_walk(result)),
        (result.resolution, result.counts),
        (result.only_reference, result.only_candidate, result.modules),
        [(each.key, each.status, each.relative_l2, each.floor, each.limit) for each in result.comparisons],
    )


@pytest.mark.parametrize("wrong", [False, True], ids=["aligned", "diverged"])
@pytest.mark.parametrize("sides", [(1, 2), (0, 2), (1, 0)], ids=["both", "candidate only", "reference only"])
def test_evidence_changes_nothing_of_the_comparison(tmp_path: Path, wrong: bool, sides: tuple[int, int]) -> None:
    faults = {(1, "forward blocks.1.mlp.act"): lambda array: 1.01 * array} if wrong else {}

    def pair(name: str, ours: int, theirs: int) -> tuple[Path, Path]:
        reference = make(tmp_path / f"a{name}.h5", evidence=ours)
        return reference, make(tmp_path / f"b{name}.h5", evidence=theirs, pieces=4, faults=faults)

    plain = diff_files(*pair("0", 0, 0))
    found = diff_files(*pair("1", *sides))
    assert found_in(found) == found_in(plain)
    assert [finding.severity.value for finding in told_of_walk(found)] == ["error" if wrong else "note"]


def test_the_walk_hands_the_evidence_to_the_rules(tmp_path: Path) -> None:
    walk = walk_files(make(tmp_path / "a.h5", evidence=1, steps=1), make(tmp_path / "b.h5", evidence=2, steps=1))
    assert [(str(pair.key.phase), pair.key.name, pair.key.slot) for pair in walk.evidence[0].pairs] == [
        ("rng", "torch", "state"),
        ("input", "<DataLoader>", "value.0"),
        ("optimizer", "head", "weight.exp_avg"),
        ("optimizer", "no.such.module", "weight.step"),
        ("forward", "blocks.0", "output.0.recomputed"),
    ]
    assert walk.evidence[0].pairs[0].reference.hash != walk.evidence[0].pairs[0].candidate.hash
    assert walk.names.only_reference == ()


def test_a_file_of_version_1_is_compared_with_one_of_this_version(tmp_path: Path) -> None:
    """The same records, written anew with evidence beside them."""
    with open_capture(VERSION_1) as capture:
        old = {step: capture.records(step) for step in ([-1] if capture.has_init else []) + capture.steps}
        run, modules, timeline = capture.run, list(capture.modules.values()), capture.timeline
    assert run.format_version == 1
    state = TensorRecord(TensorKey(0, Phase.RNG, "torch", "state"), 0, "uint8", (8,), hash=1)
    steps = {
        step: [*records, *([dataclasses.replace(state, key=dataclasses.replace(state.key, step=step))] * (step >= 0))]
        for step, records in old.items()
    }
    new_run = dataclasses.replace(run, phases=(*run.phases, "optimizer", "scaler", "rng"))
    new = write_capture(tmp_path / "new.h5", steps, modules=modules, run=new_run, timeline=timeline)
    for pair in ((VERSION_1, new), (new, VERSION_1)):
        result = diff_files(*pair)
        assert {str(each.status) for each in result.comparisons} <= {"equal", "not judged"}
        assert [finding.label for finding in result.findings] == ["within-noise"]
        assert result.only_reference == result.only_candidate == ()


@pytest.mark.parametrize("phase", Phase)
def test_records_of_new_phases_stand_aside(phase: Phase) -> None:
    record = TensorRecord(TensorKey(0, phase, "head", "weight"), 0, "float32", (2,))
    assert is_walked(record) == (phase not in {Phase.OPTIMIZER, Phase.SCALER, Phase.RNG})
