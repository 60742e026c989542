"""Which records answer each other."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from align.commands import parse_rename
from align.errors import ComparisonError
from align.matching.rules import renamed
from align.pairing import check_same_model, pair_names, pair_records
from align.records import Phase, RunInfo, TensorKey, TensorRecord, Verdict
from align.reports.text import diff_text
from tests.builders import Array, diff_files, record_of, write_capture


def _record(name: str, slot: str = "output.0", order: int = 0, *, micro: int = 0, call: int = 0) -> TensorRecord:
    return record_of(TensorKey(0, Phase.FORWARD, name, slot, micro, call), np.zeros(3, np.float32), order)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("transformer.h.0", "model.layers.0"),
        ("transformer.h.0.attn", "model.layers.0.attn"),
        ("transformer.h.01", "transformer.h.01"),
        ("lm_head", "head"),
        ("lm_head.weight", "head.weight"),
        ("other", "other"),
    ],
)
def test_a_rename_takes_the_longest_whole_name_or_dotted_prefix(name: str, expected: str) -> None:
    renames = [("lm_head", "head"), ("transformer", "wrong"), ("transformer.h.0", "model.layers.0")]
    expected = expected.replace("transformer", "wrong")
    assert renamed(name, renames) == expected


def test_records_are_paired_by_phase_name_slot_micro_and_call() -> None:
    names = pair_names(["a"], ["b"], [("a", "b")])
    ours = [_record("a", order=1), _record("a", order=0, call=1), _record("a", "input.0", 2)]
    theirs = [_record("b", order=0), _record("b", order=1, call=1), _record("b", order=2, micro=1)]
    paired = pair_records(0, ours, theirs, names)
    assert [(str(pair.key), str(pair.candidate.key)) for pair in paired.pairs] == [
        ("step 0, forward: a output.0, call 1", "step 0, forward: b output.0, call 1"),
        ("step 0, forward: a output.0", "step 0, forward: b output.0"),
    ]
    assert [str(key) for key in paired.only_reference] == ["step 0, forward: a input.0"]
    assert [str(key) for key in paired.only_candidate] == ["step 0, micro 1, forward: b output.0"]


def test_the_lone_roots_of_both_sides_are_one_place() -> None:
    names = pair_names(["<Net>", "fc", "<Loss>"], ["<NetNPU>", "fc", "<Loss>"])
    assert names.of("<Net>") == "<NetNPU>"
    assert names.only_reference == names.only_candidate == ()


def test_two_unpaired_roots_are_not_guessed() -> None:
    names = pair_names(["<Net>", "<Teacher>", "fc"], ["<NetNPU>", "<Other>", "fc"])
    assert names.only_reference == ("<Net>", "<Teacher>")
    assert names.only_candidate == ("<NetNPU>", "<Other>")


def test_half_of_the_names_is_enough() -> None:
    check_same_model(pair_names(["a", "b"], ["a", "c"]), "gpu.h5", "npu.h5")


def test_other_models_are_refused_with_two_examples() -> None:
    names = pair_names(["fc", "wte", "h.0"], ["fc", "embed", "layers.0"])
    message = (
        "Cannot compare 'gpu.h5' with 'npu.h5': they hold different models. Only 1 of 3 names of the reference have "
        "a partner; for example 'wte' is only in the reference and 'embed' only in the candidate. If modules were "
        "renamed, pair them with --rename OLD=NEW or --map FILE; `align show RUN.h5` lists what each holds."
    )
    with pytest.raises(ComparisonError, match=f"^{re.escape(message)}$"):
        check_same_model(names, "gpu.h5", "npu.h5")


def test_a_rename_of_an_unknown_name_is_refused() -> None:
    message = (
        "Cannot rename 'h' to 'layers': the reference has no module of that name. List its modules with `align show`."
    )
    with pytest.raises(ComparisonError, match=f"^{re.escape(message)}$"):
        pair_names(["fc", "head"], ["fc"], [("h", "layers")])


@pytest.mark.parametrize(
    ("renames", "notes"),
    [
        ([("fc", "zzz")], ["'fc=zzz' matches 2 names of the reference, but the candidate has no free module"]),
        ([("fc", "zzz"), ("fc.a", "fc.a")], ["'fc=zzz' matches 1 name of the reference, but the candidate has no"]),
        ([("fc", "zzz"), ("fc", "head")], ["'fc=zzz' matches 2", "'fc=head' matches no name of the reference that is"]),
        ([("fc", "fc")], []),
        ([("fc", "head")], []),
    ],
)
def test_a_rename_that_does_nothing_is_told(renames: list[tuple[str, str]], notes: list[str]) -> None:
    found = pair_names(["fc", "fc.a"], ["fc", "fc.a", "head"], renames).notes
    assert len(found) == len(notes)
    assert all(note.startswith(f"The rename {start}") for note, start in zip(found, notes, strict=True))
    assert all(note.endswith((" of a name that it makes.", " that is left to it.")) for note in found)


def test_blanks_around_the_names_of_a_rename_are_left_out() -> None:
    assert parse_rename(" blocks.0 = layers.0. ") == ("blocks.0", "layers.0")


def test_two_models_without_a_common_name_are_refused() -> None:
    message = (
        "Cannot compare 'gpu.h5' with 'npu.h5': they have no name in common; for example 'fc' is only in the reference "
        "and 'conv' only in the candidate. If modules were renamed, pair them with --rename OLD=NEW or --map FILE; "
        "`align show RUN.h5` lists what each holds."
    )
    with pytest.raises(ComparisonError, match=f"^{re.escape(message)}$"):
        check_same_model(pair_names(["fc"], ["conv"]), "gpu.h5", "npu.h5")


# Shards

WEIGHT, BIAS, DATA = (
    np.random.default_rng(0).normal(size=shape).astype(np.float32) for shape in ((16, 40), (16,), (4, 40))
)


def _rank(path: Path, weight: Array, bias: Array, *, ranks: int, layout: str = "") -> Path:
    """A capture of one rank: a linear module with the part of its parameters that the rank holds."""

    def parameters(step: int, phase: Phase) -> list[TensorRecord]:
        return [
            record_of(TensorKey(step, phase, "fc", slot), value, layout=layout)
            for slot, value in (("weight", weight), ("bias", bias))
        ]

    forward = [
        record_of(TensorKey(0, Phase.FORWARD, "fc", slot), value)
        for slot, value in (("input.0", DATA), ("output.0", DATA @ WEIGHT.T + BIAS))
    ]
    steps = {-1: parameters(-1, Phase.INIT), 0: [*forward, *parameters(0, Phase.GRADIENT)]}
    return write_capture(path, steps, run=RunInfo(outcome="finished", world_size=ranks))


@pytest.mark.parametrize(
    ("weight", "bias", "layout"),
    [
        pytest.param(WEIGHT[:8], BIAS[:8], "dtensor(Shard(0))", id="FSDP of the second generation"),
        pytest.param(WEIGHT.reshape(-1)[:328], BIAS[:0], "", id="FSDP of the first generation"),
    ],
)
def test_a_part_of_a_parameter_is_not_judged(tmp_path: Path, weight: Array, bias: Array, layout: str) -> None:
    whole = _rank(tmp_path / "ddp.h5", WEIGHT, BIAS, ranks=2)
    result = diff_files(whole, _rank(tmp_path / "fsdp.h5", weight, bias, ranks=2, layout=layout))
    assert result.verdict is Verdict.ALIGNED
    assert [finding.label for finding in result.findings] == ["within-noise"]
    assert {comparison.key.phase for comparison in result.comparisons} == {Phase.FORWARD}
    assert result.only_reference == result.only_candidate == ()
    assert "note: Of 4 tensors one run holds a part only (shards): they were not compared.\n" in diff_text(result)


def test_one_rank_holds_all_so_that_another_shape_is_a_difference(tmp_path: Path) -> None:
    whole = _rank(tmp_path / "a.h5", WEIGHT, BIAS, ranks=1)
    result = diff_files(whole, _rank(tmp_path / "b.h5", WEIGHT.reshape(-1), BIAS, ranks=1))
    assert result.findings[0].label == "shape-differs"


def test_a_whole_parameter_of_another_shape_is_a_difference_in_several_ranks(tmp_path: Path) -> None:
    whole = _rank(tmp_path / "a.h5", WEIGHT, BIAS, ranks=2)
    result = diff_files(whole, _rank(tmp_path / "b.h5", WEIGHT[:, :20], BIAS, ranks=2))
    assert result.findings[0].label == "shape-differs"
