"""AL107: settings of modules that differ: named where they explain, told as a fact elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from align.configuration import ConfigDifference, config_differences, is_ignored, same_setting
from align.pairing import pair_names
from align.records import DiffResult, ModuleInfo, RunInfo, Severity, Verdict
from tests.builders import Array, diff_files
from tests.numpy_run import make
from tests.said import told

Configs = Mapping[str, Mapping[str, Any]]


def scaled(array: Array) -> Array:
    changed: Array = array * np.float32(1.01)
    return changed


def diff(folder: Path, ours: Configs, theirs: Configs, point: str = "", **options: Any) -> DiffResult:
    """Two runs with these settings; the candidate's tensor at the point is 1 % too large."""
    reference = make(folder / "a.h5", steps=1, configs=ours)
    faults = {(0, point): scaled} if point else {}
    return diff_files(reference, make(folder / "b.h5", steps=1, configs=theirs, faults=faults, **options))


def test_the_setting_of_the_module_that_parts_the_runs_is_the_cause(tmp_path: Path) -> None:
    ours, theirs = {"blocks.1.norm1": {"eps": 1e-5}}, {"blocks.1.norm1": {"eps": 1e-6}}
    result = diff(tmp_path, ours, theirs, "forward blocks.1.norm1")
    assert told(result) == [("module-config-differs", Severity.ERROR), ("origin-module", Severity.ERROR)]
    finding = result.findings[0]
    assert finding.summary == result.summary
    assert finding.summary == (
        "blocks.1.norm1 has eps 1e-05 in the reference and 1e-06 in the candidate. Step 0, forward: blocks.1.norm1 "
        "output.0 is the first tensor that differs (relative L2 0.010, 102,000x the floor)."
    )
    assert finding.advice == "Build blocks.1.norm1 with the same eps in both runs."
    assert (finding.where.name, finding.where.slot, finding.where.step) == ("blocks.1.norm1", "output.0", 0)
    assert finding.evidence["examples"] == ["blocks.1.norm1 eps: 1e-05 / 1e-06"]


def test_the_setting_of_the_code_between_modules_is_the_cause(tmp_path: Path) -> None:
    ours, theirs = {"blocks.0.attn": {"scaling": 0.17}}, {"blocks.0.attn": {"scaling": 0.18}}
    result = diff(tmp_path, ours, theirs, "between blocks.0.attn")
    assert told(result) == [("module-config-differs", Severity.ERROR), ("origin-functional", Severity.ERROR)]
    assert result.summary == (
        "blocks.0.attn has scaling 0.17 in the reference and 0.18 in the candidate. Step 0, forward: blocks.0.attn.o "
        "input.0 is the first tensor that differs (relative L2 9.6e-3, 103,000x the floor); the code of blocks.0.attn "
        "between blocks.0.attn.v and blocks.0.attn.o made it."
    )


def test_the_nearest_module_above_the_fault_is_named(tmp_path: Path) -> None:
    ours: Configs = {"<Net>": {"multiplier": 1.0}, "blocks.0.mlp": {"alpha": 1, "beta": 2}, "blocks.0.mlp.fc": {"p": 1}}
    theirs: Configs = {
        "<Net>": {"multiplier": 2.0},
        "blocks.0.mlp": {"alpha": 3, "beta": 4},
        "blocks.0.mlp.fc": {"p": 2},
    }
    result = diff(tmp_path, ours, theirs, "forward blocks.0.mlp.act")
    assert told(result)[0] == ("module-config-differs", Severity.ERROR)
    assert result.summary.startswith(
        "blocks.0.mlp has alpha 1 and beta 2 in the reference, alpha 3 and beta 4 in the candidate; 2 other settings "
        "differ too. Step 0, forward: blocks.0.mlp.act output.0 is the first"
    )


def test_a_setting_elsewhere_is_a_warning(tmp_path: Path) -> None:
    ours, theirs = {"blocks.0.norm1": {"eps": 1e-5}}, {"blocks.0.norm1": {"eps": 1e-6}}
    result = diff(tmp_path, ours, theirs, "forward blocks.1.mlp.act")
    assert told(result) == [("origin-module", Severity.ERROR), ("module-config-differs", Severity.WARNING)]
    assert result.findings[1].summary == ("blocks.0.norm1 has eps 1e-05 in the reference and 1e-06 in the candidate.")


def test_a_setting_without_a_consequence_is_a_note(tmp_path: Path) -> None:
    names = ("blocks.0.norm1", "blocks.0.norm2", "blocks.1.norm1")
    ours, theirs = ({name: {"eps": eps} for name in names} for eps in (1e-5, 1e-6))
    result = diff(tmp_path, ours, theirs)
    assert result.verdict is Verdict.ALIGNED
    assert told(result) == [("module-config-differs", Severity.NOTE), ("within-noise", Severity.NOTE)]
    assert result.findings[0].summary == (
        "blocks.0.norm1 has eps 1e-05 in the reference and 1e-06 in the candidate; 2 other modules differ likewise."
    )
    assert result.findings[0].advice == (
        "Nothing that was compared differs because of it. Build blocks.0.norm1 with the same eps in both runs."
    )


@pytest.mark.parametrize(
    ("attribute", "point", "severity"),
    [
        ("config.hidden_act", "forward blocks.1.mlp.act", Severity.ERROR),
        ("config.hidden_act", "forward blocks.1.norm1", Severity.WARNING),
        ("config.rms_norm_eps", "forward blocks.1.norm1", Severity.ERROR),
        ("config.attention_dropout", "between blocks.1.attn", Severity.ERROR),
        ("config.initializer_range", "forward blocks.1.mlp.act", Severity.WARNING),
    ],
)
def test_the_configuration_of_a_model_explains_what_it_concerns(
    tmp_path: Path, attribute: str, point: str, severity: Severity
) -> None:
    result = diff(tmp_path, {"<Net>": {attribute: "a"}}, {"<Net>": {attribute: "b"}}, point)
    found = next(finding for finding in result.findings if finding.label == "module-config-differs")
    assert found.severity is severity


def test_weights_that_were_drawn_with_another_range_are_explained(tmp_path: Path) -> None:
    ours, theirs = {"<Net>": {"config.initializer_range": 0.02}}, {"<Net>": {"config.initializer_range": 0.01}}
    result = diff(tmp_path, ours, theirs, initial={"head.weight": lambda weight: 0.5 * weight})
    assert told(result) == [("weight-scaled", Severity.ERROR), ("module-config-differs", Severity.ERROR)]
    (tmp_path / "other").mkdir()
    eps = diff(
        tmp_path / "other",
        {"head": {"eps": 1}},
        {"head": {"eps": 2}},
        initial={"head.weight": lambda weight: 2 * weight},
    )
    assert told(eps) == [("weight-scaled", Severity.ERROR), ("module-config-differs", Severity.WARNING)]


def test_a_module_that_was_not_captured_explains_the_code_around_it(tmp_path: Path) -> None:
    ours, theirs = {"blocks.0.attn.drop": {"p": 0.0}}, {"blocks.0.attn.drop": {"p": 0.1}}
    extra = [ModuleInfo("blocks.0.attn.drop", "Dropout")]
    options = {"extra_modules": extra}
    reference = make(tmp_path / "a.h5", steps=1, configs=ours, **options)
    for requested, severity in (((), Severity.WARNING), (("blocks.*",), Severity.ERROR)):
        run = RunInfo(outcome="finished", modules_requested=requested)
        candidate = make(
            tmp_path / f"b{len(requested)}.h5", steps=1, configs=theirs, run=run,
            faults={(0, "between blocks.0.attn"): scaled}, **options,
        )  # fmt: skip
        found = next(each for each in diff_files(reference, candidate).findings if each.code == "AL107")
        assert found.severity is severity
        assert found.advice == (
            "Build blocks.0.attn.drop with the same p in both runs. Or capture both with `align capture --no-dropout`."
        )


@pytest.mark.parametrize(
    "attribute",
    [
        "layer_idx", "inplace", "training", "name_or_path", "max_seq_len_cached", "gradient_checkpointing",
        "config._name_or_path", "config.transformers_version", "config.dtype", "config.use_cache",
        "config.id2label.0", "config.architectures", "output_device", "use_reentrant",
    ],
)  # fmt: skip
def test_what_never_changes_numbers_is_not_told(attribute: str) -> None:
    assert is_ignored(attribute)


@pytest.mark.parametrize(
    "attribute",
    [
        "eps", "p", "approximate", "ignore_index", "log_target", "count_include_pad", "num_heads", "padding_idx",
        "variance_epsilon", "attention_dropout", "is_causal", "reduction", "original_max_seq_len", "rank",
        "config.hidden_act", "config.num_hidden_layers", "config.rope_parameters.rope_theta", "stride", "momentum",
    ],
)  # fmt: skip
def test_what_changes_numbers_is_told(attribute: str) -> None:
    assert not is_ignored(attribute)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({"where": "cuda:0"}, {"where": "npu:0"}),
        ({"precision": "torch.float16"}, {"precision": "bfloat16"}),
        ({"weights": "/data/a.bin"}, {"weights": "./b.bin"}),
        ({"act_fn": "<function f at 0x7f00>"}, {"act_fn": "<function f at 0x7f11>"}),
        ({"eps": 1e-5}, {"eps": 9.999999747378752e-06}),
        ({"eps": float("nan")}, {"eps": float("nan")}),
        ({"betas": (0.9, 1)}, {"betas": [0.9, 1.0]}),
        ({"only_here": 1}, {"only_there": 2}),
    ],
)
def test_values_that_are_no_difference(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    reference, candidate = ({"m": ModuleInfo("m", "M", config=config)} for config in (ours, theirs))
    assert config_differences(reference, candidate, pair_names(["m"], ["m"])) == ()


def test_a_renamed_module_is_compared_with_its_partner() -> None:
    reference = {"fc": ModuleInfo("fc", "Linear", config={"eps": 1}), "other": ModuleInfo("other", "Linear")}
    candidate = {"dense": ModuleInfo("dense", "Linear", config={"eps": 2})}
    found = config_differences(reference, candidate, pair_names(["fc"], ["dense"], [("fc", "dense")]))
    assert found == (ConfigDifference("fc", "eps", 1, 2),)


SETTINGS = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=True) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)


@given(SETTINGS, SETTINGS)
def test_being_the_same_setting_is_reflexive_and_symmetric(ours: Any, theirs: Any) -> None:
    assert same_setting(ours, ours)
    assert same_setting(ours, theirs) == same_setting(theirs, ours)


def test_true_is_not_one() -> None:
    assert not same_setting(True, 1)
