"""Pairs of files that tempt to a wrong sentence: exchanged layers, merged and changed, adapters, nested tables, NaN."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from align.checkpoint_records import CheckpointResult
from align.commands import checkpoint_files
from align.errors import CheckpointError
from align.records import Verdict
from tests.checkpoint_samples import LAYERS, State, changed, compared, llama, only, told, write

ERROR_OTHER_NAMES = ("error", "AL303", "checkpoint-keys")
LAYER = "model.layers."


def trained() -> State:
    """No two layers and no two gains alike."""
    rng = torch.Generator().manual_seed(7)
    return {name: value + 0.01 * torch.randn(value.shape, generator=rng) for name, value in llama().items()}


REFERENCE = trained()


def renumbered(state: State, numbers: dict[int, int]) -> State:
    """Layers under other numbers; those that are not named are left out."""
    found = {}
    for name, value in state.items():
        if not name.startswith(LAYER):
            found[name] = value
            continue
        number, _, rest = name.removeprefix(LAYER).partition(".")
        if int(number) in numbers:
            found[f"{LAYER}{numbers[int(number)]}.{rest}"] = value
    return found


def fused(state: State, change: Callable[[torch.Tensor], torch.Tensor] = lambda rows: rows, *, heads: int = 1) -> State:
    """Queries, keys and values in one tensor, in so many turns."""
    found = {name: value for name, value in state.items() if not any(f"{part}_proj" in name for part in "qkv")}
    for number in range(LAYERS):
        layer = f"{LAYER}{number}.self_attn"
        parts = [state[f"{layer}.{part}_proj.weight"].view(heads, -1, 32) for part in "qkv"]
        found[f"{layer}.qkv_proj.weight"] = change(torch.cat(parts, dim=1).reshape(-1, 32))
    return found


def saved(folder: Path, value: object) -> CheckpointResult:
    """The reference against what a training script saved."""
    torch.save(value, folder / "b.pt")
    return checkpoint_files(str(write(folder / "a.safetensors", REFERENCE)), str(folder / "b.pt"))


def test_exchanged_layers_are_one_finding_with_their_gains(tmp_path: Path) -> None:
    """The gains of two norms are near each other, which is neither another step nor another model."""
    finding = only(compared(tmp_path, REFERENCE, renumbered(REFERENCE, {0: 1, 1: 0})))
    assert finding.summary == (
        "18 entries of the candidate hold the values of another entry: model.layers.0 holds those of model.layers.1; "
        "model.layers.1 holds those of model.layers.0."
    )


def test_a_layer_left_out_is_what_is_missing(tmp_path: Path) -> None:
    finding = only(compared(tmp_path, REFERENCE, renumbered(REFERENCE, {1: 0})))
    assert finding.summary.startswith("9 entries of the candidate hold the values of another entry: model.layers.0 ")
    assert "The values of model.layers.0.input_layernorm.weight, " in finding.summary
    assert finding.summary.endswith(" are nowhere in it.")


def test_more_exchanged_entries_than_evidence_keeps_leave_no_second_accusation(tmp_path: Path) -> None:
    rng = torch.Generator().manual_seed(3)
    ours = {f"experts.{number}.w.weight": torch.randn(8, 4, generator=rng) for number in range(60)}
    theirs = {f"experts.{(number + 1) % 60}.w.weight": ours[f"experts.{number}.w.weight"] for number in range(60)}
    assert told(compared(tmp_path, ours, theirs)) == [ERROR_OTHER_NAMES]


def test_the_layer_with_another_order_is_accused_and_not_the_others(tmp_path: Path) -> None:
    three = {**REFERENCE, **renumbered(REFERENCE, {1: 2})}
    candidate = fused(three)
    extra = [three[f"model.layers.2.self_attn.{part}_proj.weight"] for part in "qvk"]
    for part in "qkv":
        candidate.pop(f"model.layers.2.self_attn.{part}_proj.weight", None)
    candidate["model.layers.2.self_attn.qkv_proj.weight"] = torch.cat(extra)
    three = {name: value + (0.5 if ".2." in name else 0.0) for name, value in three.items()}
    candidate = {name: value + (0.5 if ".2." in name else 0.0) for name, value in candidate.items()}
    result = compared(tmp_path, three, candidate)
    assert [one[0] for one in told(result)] == ["error", "note"]
    assert result.summary.startswith("model.layers.2.self_attn.qkv_proj.weight of the candidate holds in one tensor")
    assert result.summary.endswith(
        "q_proj, v_proj, k_proj. Most layers hold them one behind the other: q_proj, k_proj, v_proj."
    )


@pytest.mark.parametrize("heads", [1, 4])
def test_merged_tensors_of_another_step_are_near_in_the_order_that_fits(heads: int, tmp_path: Path) -> None:
    rng = torch.Generator().manual_seed(5)
    candidate = fused(REFERENCE, lambda rows: rows + 1e-3 * torch.randn(rows.shape, generator=rng), heads=heads)
    result = compared(tmp_path, REFERENCE, candidate)
    assert told(result) == [("error", "AL310", "initial-weights-differ"), ("note", "AL304", "weight-permuted")]
    assert ("by turns, 4 times: 8 rows of q_proj" in result.findings[1].summary) is (heads == 4)


def test_merged_tensors_without_likeness_cannot_be_told(tmp_path: Path) -> None:
    rng = torch.Generator().manual_seed(5)
    result = compared(tmp_path, REFERENCE, fused(REFERENCE, lambda rows: torch.randn(rows.shape, generator=rng)))
    assert result.verdict is Verdict.INCOMPARABLE
    assert "(its parts were merged and changed, and their order is not known)" in only(result).summary


def test_stacked_experts_are_the_same_weights(tmp_path: Path) -> None:
    rng = torch.Generator().manual_seed(3)
    ours = {f"mlp.experts.{number}.w1.weight": torch.randn(8, 16, generator=rng) for number in range(12)}
    theirs = {"mlp.experts.w1": torch.stack(list(ours.values()))}
    result = compared(tmp_path, ours, theirs)
    assert (result.verdict, told(result)) == (Verdict.ALIGNED, [("note", "AL304", "weight-permuted")])
    assert "one behind the other, in the order of their numbers" in only(result).summary


def test_parts_of_a_model_in_tables_of_their_own_are_one_model(tmp_path: Path) -> None:
    """Megatron-LM keeps the embedding, the layers and the head apart."""
    inside = {name.removeprefix("model."): value for name, value in REFERENCE.items() if "layers" in name}
    model = {
        "embedding": {"word_embeddings": {"weight": REFERENCE["model.embed_tokens.weight"]}},
        "encoder": {**inside, "norm.weight": REFERENCE["model.norm.weight"]},
        "output_layer": {"weight": REFERENCE["lm_head.weight"]},
    }
    result = saved(tmp_path, {"model": {"language_model": model}, "rng_state": [torch.zeros(8, dtype=torch.uint8)]})
    assert (result.verdict, told(result)) == (Verdict.ALIGNED, [("warning", "AL303", "checkpoint-keys")])


def test_the_average_of_the_weights_is_not_taken_for_the_model(tmp_path: Path) -> None:
    average = {name: value * 0.9 for name, value in REFERENCE.items()} | {"n_averaged": torch.tensor(3)}
    result = saved(tmp_path, {"ema_model": average, "model": REFERENCE})
    assert (result.verdict, result.findings) == (Verdict.ALIGNED, ())


def test_a_lazy_conjugate_is_not_taken_for_what_is_stored(tmp_path: Path) -> None:
    numbers = torch.randn(3, 4, dtype=torch.complex64)
    for name, value in (("a", numbers), ("b", numbers.conj())):
        torch.save({"w": value}, tmp_path / f"{name}.pt")
    result = checkpoint_files(str(tmp_path / "a.pt"), str(tmp_path / "b.pt"))
    assert result.verdict is Verdict.INCOMPARABLE
    assert only(result).summary == "Not compared: w (it is a lazy view (is_conj) of what is stored)."


def test_adapters_are_told_as_such(tmp_path: Path) -> None:
    adapters = {f"base_model.model.layers.{number}.q_proj.lora_A.weight": torch.randn(2, 4) for number in range(3)}
    beside = compared(tmp_path, REFERENCE, {**REFERENCE, **adapters})
    assert only(beside).summary.startswith("Only the candidate has 3 entries of adapters (LoRA), which change the ")
    alone = compared(tmp_path, REFERENCE, adapters)
    assert (alone.verdict, told(alone)) == (Verdict.INCOMPARABLE, [("warning", "AL303", "checkpoint-keys")])


def test_quantized_weights_are_not_called_unrelated(tmp_path: Path) -> None:
    name = "model.layers.0.mlp.up_proj.weight"
    result = compared(tmp_path, REFERENCE, changed(REFERENCE) | {name: (REFERENCE[name] * 1000).to(torch.int8)})
    assert only(result).summary == (
        f"1 of 21 entries is fp32 in the reference and int8 in the candidate, with other numbers, as quantized weights "
        f"are: {name}. How near they are cannot be told without applying their scales."
    )


def test_weights_that_begin_at_zero_are_not_called_corrupted(tmp_path: Path) -> None:
    name = "model.layers.0.mlp.up_proj.weight"
    before = changed(REFERENCE) | {name: torch.zeros_like(REFERENCE[name])}
    finding = only(compared(tmp_path, before, REFERENCE))
    assert (finding.code, finding.summary) == (
        "AL310", f"1 of 21 entries is all zeros in the reference, and not in the candidate: {name}.",
    )  # fmt: skip


def test_a_file_of_nan_alone_has_no_tied_weights(tmp_path: Path) -> None:
    finding = only(compared(tmp_path, REFERENCE, {name: value * torch.nan for name, value in REFERENCE.items()}))
    assert finding.code == "AL313"
    assert finding.summary.endswith(
        "the candidate's tensor is NaN or infinite everywhere, that of the reference in none."
    )


def test_a_head_that_is_missing_with_others_is_no_broken_tie(tmp_path: Path) -> None:
    kept = {name: value for name, value in REFERENCE.items() if "layers.0" in name or "embed" in name}
    assert told(compared(tmp_path, REFERENCE, kept)) == [ERROR_OTHER_NAMES]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"weight_map": {"w": "a.safetensors", "w": "a.safetensors"}}', "(a name stands in it twice)"),
        (f'{{"weight_map": {{"w": "{"x" * 5000}"}}}}', "1 of its 1 shards are not there"),
    ],
    ids=["twice", "long"],
)
def test_an_index_that_makes_no_sense_is_refused(text: str, said: str, tmp_path: Path) -> None:
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(text)
    with pytest.raises(CheckpointError) as caught:
        checkpoint_files(str(index), str(index))
    assert said in str(caught.value)


def test_files_without_tensors_or_of_a_hundred_dimensions_are_refused(tmp_path: Path) -> None:
    for header, said in (
        (b"{}", "there is no tensor in it"),
        (b'{"w":{"dtype":"U8","shape":[%s],"data_offsets":[0,1]}}' % b",".join([b"1"] * 100), "'w' has 100 dimensions"),
    ):
        path = tmp_path / "a.safetensors"
        path.write_bytes(len(header).to_bytes(8, "little") + header + (b"0" if b"w" in header else b""))
        with pytest.raises(CheckpointError) as caught:
            checkpoint_files(str(path), str(path))
        assert said in str(caught.value)
