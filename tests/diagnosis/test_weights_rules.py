"""AL301 to AL309, AL312, AL313: what the initial weights of one run are to those of the other."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from align.records import INIT_STEP, DiffResult, Phase, RunInfo, Severity, TensorKey, TensorRecord
from tests.builders import Array, diff_files, record_of, write_capture
from tests.numpy_run import Fault, make, to_bfloat16

SAME = (
    "To compare the models as they are, capture the reference with `align capture --keep init`, the candidate with "
    "`align capture --init-from REF.h5`; or load the same checkpoint in both."
)

LOAD: dict[str, Any] = {
    "class": "Net", "step": 0, "keys": 34, "missing": 2, "unexpected": 2,
    "missing_examples": ["blocks.0.mlp.fc.weight", "blocks.0.mlp.fc.bias"],
    "unexpected_examples": ["blocks.0.mlp.inner.weight", "blocks.0.mlp.inner.bias"],
}  # fmt: skip


def trained(weight: Array) -> Array:
    """A weight that a training has moved, the same in each run."""
    seed = int(np.abs(weight).sum() * 1000)
    return weight + np.random.default_rng(seed).normal(0.0, 0.1, weight.shape)


def moved(weight: Array) -> Array:
    """A weight that is near the other one, in no simple relation."""
    return weight + 0.05 * np.sin(np.arange(weight.size)).reshape(weight.shape)


def diff(
    folder: Path, ours: Mapping[str, Fault], theirs: Mapping[str, Fault], *, load: dict[str, Any] | None = None
) -> DiffResult:
    loads: tuple[tuple[dict[str, Any], ...], ...] = ((), ()) if load is None else ((LOAD | {"missing": 0},), (load,))
    runs = [RunInfo(outcome="finished", loads=each) for each in loads]
    return diff_files(
        make(folder / "a.h5", steps=1, initial=ours, run=runs[0]),
        make(folder / "b.h5", steps=1, initial=theirs, run=runs[-1]),
    )


def labels(result: DiffResult) -> list[str]:
    return [finding.label for finding in result.findings]


def test_weights_that_were_not_loaded_are_told_with_their_side(tmp_path: Path) -> None:
    result = diff(tmp_path, {}, {"*": trained})
    assert labels(result) == ["checkpoint-not-loaded"]
    assert result.summary == (
        "The reference has not loaded the weights that the candidate starts from: 34 of 34 initial tensors "
        "(embed.weight, head.weight, blocks.0.attn.q.weight and 31 more) differ, and 26 of them stand there as a new "
        "model is drawn (gains 1, biases 0, fresh matrices). No module was judged."
    )
    assert result.findings[0].advice == (
        "See whether the reference calls load_state_dict at all, on this model, and what it answers: missing and "
        f"unexpected keys, `strict=False`. {SAME}"
    )


def test_two_draws_are_another_seed_and_no_checkpoint_that_was_not_loaded(tmp_path: Path) -> None:
    result = diff_files(make(tmp_path / "a.h5", steps=1), make(tmp_path / "b.h5", steps=1, seed=1))
    assert labels(result) == ["seed-mismatch", "initial-weights-differ"]


PART = ("blocks.0.mlp.fc.weight", "blocks.0.mlp.fc.bias", "blocks.0.norm1.weight", "blocks.0.norm1.bias")


def test_a_part_that_was_not_loaded_is_told_with_its_names(tmp_path: Path) -> None:
    result = diff(tmp_path, {"*": trained}, {"*": trained, **dict.fromkeys(PART, np.asarray)})
    assert labels(result) == ["checkpoint-partially-loaded"]
    assert result.summary == (
        "The candidate has loaded a part of the weights only: 30 tensors are equal, 4 of 34 initial tensors "
        "(blocks.0.mlp.fc.weight, blocks.0.mlp.fc.bias, blocks.0.norm1.weight and 1 more) were drawn anew there. No "
        "module was judged."
    )


def test_a_part_that_is_drawn_otherwise_is_not_taken_for_a_part_of_a_checkpoint(tmp_path: Path) -> None:
    """Nothing says that these runs load anything: what is equal was drawn from one seed."""
    drawn = dict.fromkeys(PART, trained)
    result = diff_files(make(tmp_path / "a.h5", steps=1, initial=drawn), make(tmp_path / "b.h5", steps=1))
    assert "checkpoint-partially-loaded" not in labels(result)


def test_other_ways_to_draw_are_no_checkpoint_that_was_not_loaded(tmp_path: Path) -> None:
    """Biases of zeros here, drawn ones there, and no gain that a training has moved: nothing was loaded for sure."""
    biases = [f"blocks.{block}.{name}.bias" for block in (0, 1) for name in ("attn.q", "attn.k", "mlp.fc", "mlp.proj")]
    ours = dict.fromkeys(biases, trained) | {"head.weight": trained, "embed.weight": trained}
    result = diff_files(make(tmp_path / "a.h5", steps=1, initial=ours), make(tmp_path / "b.h5", steps=1, seed=1))
    assert not {"checkpoint-not-loaded", "checkpoint-partially-loaded"} & set(labels(result))


def test_keys_that_a_load_left_out_explain_weights_that_were_not_loaded(tmp_path: Path) -> None:
    fresh = dict.fromkeys(("blocks.0.mlp.fc.weight", "blocks.0.mlp.fc.bias"), np.asarray)
    result = diff(tmp_path, {"*": trained}, {"*": trained, **fresh}, load=LOAD)
    assert [(finding.label, finding.explained_by) for finding in result.findings] == [
        ("checkpoint-keys", ""),
        ("checkpoint-partially-loaded", "AL303"),
    ]
    assert result.summary == (
        "In the candidate the keys of the checkpoint are not those of the model: load_state_dict of Net was given 34 "
        "keys, does not know 2 of them (such as 'blocks.0.mlp.inner.weight') and misses 2 of its own (such as "
        "'blocks.0.mlp.fc.weight'). 2 of 34 initial tensors (blocks.0.mlp.fc.weight and blocks.0.mlp.fc.bias) keep "
        "what they were drawn as. No module was judged."
    )
    assert result.findings[0].advice.startswith("Rename the keys as the model names them, and load with `strict=True`")


def test_a_load_that_left_keys_out_is_no_cause_of_weights_that_are_scaled(tmp_path: Path) -> None:
    assert labels(diff(tmp_path, {}, {"head.weight": lambda weight: 2.0 * weight}, load=LOAD)) == ["weight-scaled"]


def test_weights_under_other_names_are_told(tmp_path: Path) -> None:
    first, second = (make_matrix(number) for number in (1, 2))
    third = make_matrix(3)
    ours = {"a": first, "b": second, "c": third}
    result = diff_matrices(tmp_path, ours, {"a": second, "b": third, "c": first})
    assert labels(result)[0] == "checkpoint-keys"
    assert result.summary.startswith("The candidate holds weights of the reference under other names: a.weight is ")


@pytest.mark.parametrize(
    ("change", "label", "words"),
    [
        (
            lambda weight: np.roll(weight, 1, axis=0),
            "weight-permuted",
            "is the values of the reference in another order",
        ),
        (lambda weight: -0.5 * weight, "weight-scaled", "is -0.5 times the reference"),
        (lambda weight: -weight, "weight-scaled", "is the reference with its sign flipped"),
        (
            lambda weight: np.where(np.arange(weight.size).reshape(weight.shape) == 7, 9.0, weight),
            "weight-corrupted",
            "is the reference but for 1 element",
        ),
        (moved, "initial-weights-differ", ""),
    ],
    ids=["permuted", "scaled", "sign", "corrupted", "moved"],
)
def test_a_weight_is_related(tmp_path: Path, change: Fault, label: str, words: str) -> None:
    result = diff(tmp_path, {}, {"head.weight": change})
    assert labels(result) == [label]
    assert result.findings[0].severity is Severity.ERROR
    if words:
        assert f"1 of 34 initial tensors (head.weight). In the candidate head.weight {words}" in result.summary


def make_matrix(seed: int, rows: int = 12, columns: int = 9) -> Array:
    return np.random.default_rng(seed).normal(size=(rows, columns)).astype(np.float32)


def diff_matrices(folder: Path, ours: Mapping[str, Array], theirs: Mapping[str, Array], **more: Any) -> DiffResult:
    """Two runs whose models hold these matrices; `after` are those of the reference after step 0."""
    after = more.get("after", {})

    def write(path: Path, matrices: Mapping[str, Array], later: Mapping[str, Array]) -> Path:
        initial = [record_of(TensorKey(INIT_STEP, Phase.INIT, name, "weight"), one) for name, one in matrices.items()]
        x = make_matrix(99)
        step: list[TensorRecord] = [
            record_of(TensorKey(0, Phase.INPUT, "x", "value"), x),
            *(record_of(TensorKey(0, Phase.FORWARD, name, "output.0"), x) for name in matrices),
            *(record_of(TensorKey(0, Phase.PARAM, name, "weight"), one) for name, one in later.items()),
        ]
        return write_capture(path, {INIT_STEP: initial, 0: step})

    return diff_files(
        write(folder / "a.h5", ours, {**ours, **after}),
        write(folder / "b.h5", theirs, {name: theirs[name] for name in ours}),
    )


def test_a_weight_of_other_shape_is_transposed_only_with_the_same_values(tmp_path: Path) -> None:
    weight = make_matrix(1)
    result = diff_matrices(tmp_path, {"fc": weight}, {"fc": np.ascontiguousarray(weight.T)})
    assert "weight-transposed" in labels(result)
    (tmp_path / "other").mkdir()
    other = diff_matrices(tmp_path / "other", {"fc": weight}, {"fc": make_matrix(2, 9, 12)})
    assert "weight-transposed" not in labels(other)


def test_a_weight_that_went_through_fewer_bits_is_cast(tmp_path: Path) -> None:
    weight = make_matrix(1)
    result = diff_matrices(tmp_path, {"fc": weight}, {"fc": to_bfloat16(weight)})
    assert labels(result)[0] == "weight-cast"
    assert "In the candidate fc.weight is the reference rounded to bf16" in result.summary


def test_a_weight_of_a_step_later_is_stale(tmp_path: Path) -> None:
    weight, moved = make_matrix(1), make_matrix(1) + np.float32(0.01)
    result = diff_matrices(tmp_path, {"fc": weight}, {"fc": moved}, after={"fc": moved})
    assert labels(result)[0] == "weight-stale"
    assert "In the candidate fc.weight is that of the reference after step 0" in result.summary


def test_a_weight_that_is_another_one_in_one_run_only_was_tied(tmp_path: Path) -> None:
    embed, head = make_matrix(1), make_matrix(2)
    result = diff_matrices(tmp_path, {"embed": embed, "head": head}, {"embed": embed, "head": embed})
    assert labels(result)[0] == "tied-weight-broken"
    assert result.summary == (
        "In the candidate head.weight is a copy of embed.weight, in the reference it is a tensor of its own. No module "
        "was judged."
    )


def test_constant_weights_are_no_copies_of_one_another(tmp_path: Path) -> None:
    ones = np.ones((12, 9), np.float32)
    result = diff_matrices(tmp_path, {"a": ones, "b": make_matrix(2)}, {"a": ones, "b": ones})
    assert "tied-weight-broken" not in labels(result)


def buffers(path: Path, table: Array, weight: Array, *, dtype: str = "float32", module: str = "rope") -> Path:
    """A run with one trained weight and a table; with a table of another dtype `module` computes something else."""
    keys = [TensorKey(INIT_STEP, Phase.INIT, name, slot) for name, slot in (("fc", "weight"), ("rope", "inv_freq"))]
    initial = [record_of(keys[0], weight), record_of(keys[1], table, dtype=dtype)]
    x = make_matrix(99)
    off = {name: np.float32(1.1 if dtype != "float32" and name == module else 1.0) for name in ("rope", "other")}
    step = [
        *(
            record_of(TensorKey(0, Phase.FORWARD, name, slot), array)
            for name, factor in off.items()
            for slot, array in (("input.0", x), ("output.0", x * factor))
        ),
        record_of(TensorKey(0, Phase.FORWARD, "fc", "output.0"), x),
        record_of(TensorKey(0, Phase.PARAM, "fc", "weight"), weight),
    ]
    return write_capture(path, {INIT_STEP: initial, 0: step})


def test_a_table_that_no_optimizer_trains_is_a_buffer(tmp_path: Path) -> None:
    table = (10000.0 ** -(np.arange(16) / 16)).astype(np.float32)
    weight = make_matrix(1)
    result = diff_files(
        buffers(tmp_path / "a.h5", table, weight), buffers(tmp_path / "b.h5", to_bfloat16(table), weight)
    )
    assert labels(result)[0] == "buffer-differs"
    assert result.summary.startswith(
        "Tensors that no optimizer trains (buffers, frozen parameters) differ: 1 of 2 initial tensors (rope.inv_freq). "
        "In the candidate rope.inv_freq is the reference rounded to bf16 (relative L2 "
    )
    trained_one = diff_files(
        buffers(tmp_path / "c.h5", table, weight), buffers(tmp_path / "d.h5", table, to_bfloat16(weight))
    )
    assert labels(trained_one)[0] == "weight-cast"


@pytest.mark.parametrize(("module", "is_told"), [("rope", True), ("other", False)], ids=["its module", "another one"])
def test_a_table_of_a_shorter_dtype_explains_what_its_module_computes(
    tmp_path: Path, module: str, *, is_told: bool
) -> None:
    table = (10000.0 ** -(np.arange(16) / 16)).astype(np.float32)
    weight = make_matrix(1)
    candidate = buffers(tmp_path / "b.h5", to_bfloat16(table), weight, dtype="bfloat16", module=module)
    result = diff_files(buffers(tmp_path / "a.h5", table, weight), candidate)
    assert ("buffer-differs" in labels(result)) is is_told
    if is_told:
        assert result.summary.startswith(
            "rope.inv_freq, which no optimizer trains, is fp32 in the reference and bf16 in the candidate (relative L2 "
        )
