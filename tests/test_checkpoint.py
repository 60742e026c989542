"""`align checkpoint` on pairs of files: what a converter, a wrapper or a broken copy makes of weights is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from align.cli import main
from align.commands import checkpoint_files
from align.records import Verdict
from align.reports.checkpoint_text import checkpoint_text
from tests.checkpoint_samples import (
    HIDDEN,
    WIDTH,
    State,
    changed,
    compared,
    llama,
    megatron,
    meta,
    only,
    told,
    write,
)

REFERENCE = llama()
UP = "model.layers.1.mlp.up_proj.weight"
GATE = "model.layers.1.mlp.gate_proj.weight"
ALIGNED, DIVERGED = Verdict.ALIGNED, Verdict.DIVERGED


def test_equal_files_are_aligned(tmp_path: Path) -> None:
    result = compared(tmp_path, REFERENCE, REFERENCE)
    assert (result.verdict, result.summary) == (ALIGNED, "The same 21 entries, equal to the bit.")
    assert result.findings == ()
    assert dict(result.counts) == {"paired": 21, "merged": 0, "only_reference": 0, "only_candidate": 0, "equal": 21}


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod.", "_orig_mod.module.", "base_model.model.", "net."])
def test_a_prefix_is_one_finding(prefix: str, tmp_path: Path) -> None:
    """C-PREFIX: no key matches, and strict=False says nothing."""
    result = compared(tmp_path, REFERENCE, {f"{prefix}{name}": value for name, value in REFERENCE.items()})
    finding = only(result)
    assert result.verdict is ALIGNED
    assert result.summary == "The same weights in 21 entries, apart from names."
    assert (finding.code, finding.label, str(finding.severity)) == ("AL303", "checkpoint-keys", "warning")
    assert finding.summary == (
        f"All 21 entries have other names in the candidate: '{prefix}' stands before the names of the candidate (21 "
        "names). With it all 21 entries hold the same values in the same order."
    )
    assert finding.advice == (
        "`load_state_dict(strict=False)` leaves out every name that it does not know, and only returns the list. Take "
        "the "
        f"prefix away before loading: `{{name.removeprefix('{prefix}'): tensor for name, tensor in state.items()}}`."
    )


def test_a_prefix_counts_where_names_must_be_equal(tmp_path: Path) -> None:
    wrapped = {f"module.{name}": value for name, value in REFERENCE.items()}
    assert compared(tmp_path, REFERENCE, wrapped, strict=True).verdict is DIVERGED


def test_wrappers_inside_names_are_seen_through(tmp_path: Path) -> None:
    inside = {name.replace("self_attn.", "self_attn._checkpoint_wrapped_module."): v for name, v in REFERENCE.items()}
    result = compared(tmp_path, REFERENCE, inside)
    assert result.verdict is ALIGNED
    assert result.renamed == (("wrappers: '_checkpoint_wrapped_module' in names of the candidate", 8),)


def test_another_framework_is_a_renaming_and_a_layout(tmp_path: Path) -> None:
    result = compared(tmp_path, REFERENCE, meta(REFERENCE))
    assert result.verdict is ALIGNED
    assert told(result) == [("warning", "AL303", "checkpoint-keys"), ("note", "AL304", "weight-permuted")]
    assert result.findings[1].summary == (
        "The rows of 4 matrices are interleaved on one side and in halves on the other, head by head and in every "
        "layer: model.layers.N.self_attn.k_proj.weight (N = 0-1) and model.layers.N.self_attn.q_proj.weight (N = 0-1). "
        "Meta's Llama and Hugging Face keep queries and keys so for their ways of rotating."
    )


def test_interleaved_rows_under_the_same_name_are_an_error(tmp_path: Path) -> None:
    """Near the last case: names that say that nothing was converted."""
    back = {name: meta(REFERENCE)[other] for name, other in zip(REFERENCE, meta(REFERENCE), strict=True)}
    result = compared(tmp_path, REFERENCE, back)
    assert result.verdict is DIVERGED
    assert {finding.code for finding in result.findings} == {"AL304"}
    assert "with its blocks" in result.summary or "with its rows" in result.summary


@pytest.mark.parametrize("by_heads", [True, False], ids=["head by head", "stacked"])
@pytest.mark.parametrize("turned", [False, True], ids=["merged", "split"])
def test_merged_tensors_are_found_with_their_order(by_heads: bool, turned: bool, tmp_path: Path) -> None:
    fused = megatron(REFERENCE, by_heads=by_heads)
    result = compared(tmp_path, *((fused, REFERENCE) if turned else (REFERENCE, fused)))
    assert result.verdict is ALIGNED
    assert result.counts["merged"] == 4
    orders = sorted(finding.evidence["order"] for finding in result.findings if finding.code == "AL304")
    attention = (
        "by turns, 4 times: 8 rows of q_proj, 8 rows of k_proj, 8 rows of v_proj"
        if by_heads
        else "one behind the other: q_proj, k_proj, v_proj"
    )
    assert orders == sorted([attention, "one behind the other: gate_proj, up_proj"])


def test_merged_in_short_floats_is_seen_through_the_rounding(tmp_path: Path) -> None:
    fused = {name: value.bfloat16() for name, value in megatron(REFERENCE).items()}
    result = compared(tmp_path, REFERENCE, fused, allow_cast=True)
    assert (result.verdict, result.counts["merged"]) == (ALIGNED, 4)


def glu(seed: int = 3) -> State:
    rng = torch.Generator().manual_seed(seed)
    return {
        "layers.0.mlp.gate_proj.weight": torch.randn(HIDDEN, WIDTH, generator=rng),
        "layers.0.mlp.gate_proj.bias": torch.randn(HIDDEN, generator=rng),
        "layers.0.mlp.up_proj.weight": torch.randn(HIDDEN, WIDTH, generator=rng),
        "layers.0.mlp.up_proj.bias": torch.randn(HIDDEN, generator=rng),
        "layers.0.mlp.down_proj.weight": torch.randn(WIDTH, HIDDEN, generator=rng),
    }


def joined(state: State, slot: str, *, by_shards: bool) -> torch.Tensor:
    """Gate and up in one tensor; `by_shards` as tensor parallelism over two ranks leaves them."""
    gate, up = (state[f"layers.0.mlp.{part}_proj.{slot}"] for part in ("gate", "up"))
    half = HIDDEN // 2
    parts = (gate[:half], up[:half], gate[half:], up[half:]) if by_shards else (gate, up)
    return torch.cat(parts)


@pytest.mark.parametrize("by_shards", [False, True], ids=["joined", "by shards"])
def test_a_bias_that_is_merged_by_shards_is_found(by_shards: bool, tmp_path: Path) -> None:
    """C-SWIGLU-BIAS: the weight is right, and the halves of the bias are interleaved by shard."""
    state = glu()
    fused = {
        "layers.0.mlp.fc.weight": joined(state, "weight", by_shards=False),
        "layers.0.mlp.fc.bias": joined(state, "bias", by_shards=by_shards),
        "layers.0.mlp.down_proj.weight": state["layers.0.mlp.down_proj.weight"],
    }
    result = compared(tmp_path, state, fused)
    assert result.counts["merged"] == 2
    if not by_shards:
        assert result.verdict is ALIGNED
        return
    assert result.verdict is DIVERGED
    assert result.first_divergence is not None
    assert (result.first_divergence.name, result.first_divergence.slot) == ("layers.0.mlp.fc", "bias")
    assert result.summary == (
        "layers.0.mlp.fc.bias of the candidate holds in one tensor what the reference keeps apart "
        "(layers.0.mlp.gate_proj and layers.0.mlp.up_proj), by turns, 2 times: 32 rows of gate_proj, 32 rows of "
        "up_proj. Its weight has them one behind the other: gate_proj, up_proj."
    )


def test_the_same_bias_in_two_merged_files(tmp_path: Path) -> None:
    state = glu()
    ours, theirs = (
        {"layers.0.mlp.fc.bias": joined(state, "bias", by_shards=by_shards), "layers.0.w.weight": torch.ones(2)}
        for by_shards in (False, True)
    )
    result = compared(tmp_path, ours, theirs)
    assert result.verdict is DIVERGED
    assert only(result).summary == (
        "layers.0.mlp.fc.bias: the candidate's tensor is the reference with its blocks of 32 elements in the order 0, "
        "2, 1, 3."
    )


def set_zeros(state: State) -> None:
    state[UP].view(-1)[1500:] = 0


def set_nan(state: State) -> None:
    state[UP][3, 4] = torch.nan


def set_few(state: State) -> None:
    state[UP][3, 4:9] = 7


def exchange(state: State) -> None:
    state[UP], state[GATE] = state[GATE], state[UP]


def transpose(state: State) -> None:
    state["model.layers.0.self_attn.o_proj.weight"] = state["model.layers.0.self_attn.o_proj.weight"].t()


def scale(state: State) -> None:
    for name in state:
        if "q_proj" in name:
            state[name] *= 0.125


def tie(state: State) -> None:
    state["lm_head.weight"] = state["model.embed_tokens.weight"].clone()


def drop_head(state: State) -> None:
    del state["lm_head.weight"]


def drop_layer(state: State) -> None:
    for name in [name for name in state if "layers.1" in name]:
        del state[name]


def move(state: State) -> None:
    rng = torch.Generator().manual_seed(9)
    for name in state:
        if "layers.0" not in name:
            state[name] += 0.001 * torch.randn(state[name].shape, generator=rng)


def pad(state: State) -> None:
    words = state["model.embed_tokens.weight"]
    state["model.embed_tokens.weight"] = torch.cat([words, torch.zeros(28, WIDTH)])


CHANGES: dict[str, tuple[Callable[[State], None], str, str]] = {
    "zeros": (
        set_zeros,
        "AL313",
        (
            f"{UP}: the candidate's tensor is the reference up to element 1,500, and zero in the 548 elements from "
            "there to the end."
        ),
    ),
    "nan": (
        set_nan,
        "AL313",
        f"{UP}: the candidate's tensor is NaN or infinite in 1 element, that of the reference in none.",
    ),
    "exchanged": (
        exchange,
        "AL303",
        (
            f"2 entries of the candidate hold the values of another entry: {GATE} holds that of {UP}; {UP} holds that "
            f"of {GATE}."
        ),
    ),
    "transposed": (
        transpose,
        "AL305",
        (
            "1 matrix of the candidate is that of the reference, transposed: model.layers.0.self_attn.o_proj.weight "
            "([32, 32])."
        ),
    ),
    "tied": (
        tie,
        "AL308",
        (
            "lm_head.weight and model.embed_tokens.weight are the same values in the candidate, and differ in the "
            "reference: they were tied on the way, and one of them is lost."
        ),
    ),
    "head left out": (
        drop_head,
        "AL308",
        (
            "lm_head.weight is left out in the candidate, as if it were tied to model.embed_tokens.weight, but in the "
            "reference its values are others: a model that ties them gets a wrong head."
        ),
    ),
    "padded": (
        pad,
        "AL104",
        (
            "model.embed_tokens.weight: shape [100, 32] in the reference, [128, 32] in the candidate; the first 100 "
            "rows hold the same values, so one was padded or cut (a vocabulary, mostly)."
        ),
    ),
}


@pytest.mark.parametrize("case", CHANGES)
def test_one_change_is_one_finding(case: str, tmp_path: Path) -> None:
    change, code, summary = CHANGES[case]
    result = compared(tmp_path, REFERENCE, changed(REFERENCE, change))
    assert result.verdict is DIVERGED
    assert (only(result).code, only(result).summary) == (code, summary)
    assert result.summary == summary


def test_a_few_elements_are_a_corruption(tmp_path: Path) -> None:
    finding = only(compared(tmp_path, REFERENCE, changed(REFERENCE, set_few)))
    assert (finding.code, finding.label, finding.where.name) == (
        "AL313",
        "weight-corrupted",
        UP.removesuffix(".weight"),
    )
    assert "5 elements" in finding.summary


def test_a_folded_scale_is_told_with_its_factor(tmp_path: Path) -> None:
    finding = only(compared(tmp_path, REFERENCE, changed(REFERENCE, scale)))
    assert (finding.code, finding.label) == ("AL312", "weight-scaled")
    assert "0.125 times the reference" in finding.summary


def test_entries_left_out_are_listed(tmp_path: Path) -> None:
    finding = only(compared(tmp_path, REFERENCE, changed(REFERENCE, drop_layer)))
    assert (finding.code, finding.evidence["entries"]) == ("AL303", 9)
    assert finding.summary.startswith("9 of 21 entries of the reference have no answer in the candidate: ")


def test_another_step_is_near_and_what_stood_still_is_told(tmp_path: Path) -> None:
    result = compared(tmp_path, REFERENCE, changed(REFERENCE, move))
    assert told(result) == [("error", "AL310", "initial-weights-differ"), ("warning", "AL307", "weight-stale")]
    assert result.findings[0].summary.startswith(
        "In 12 of 21 entries the candidate holds values near those of the reference"
    )
    assert result.findings[1].summary.startswith("8 entries did not change at all while 12 did")


def test_another_seed_is_one_finding(tmp_path: Path) -> None:
    finding = only(compared(tmp_path, REFERENCE, llama(seed=1)))
    assert (finding.code, finding.evidence["entries"]) == ("AL310", 18)
    assert "another draw of the same distribution, as two seeds give it" in finding.summary


@pytest.mark.parametrize("allow", [False, True])
def test_rounding_is_told_and_may_be_allowed(allow: bool, tmp_path: Path) -> None:
    rounded = {name: value.bfloat16() for name, value in REFERENCE.items()}
    result = compared(tmp_path, REFERENCE, rounded, allow_cast=allow)
    assert result.verdict is (ALIGNED if allow else DIVERGED)
    assert only(result).summary == (
        "All 21 entries are the reference's fp32 rounded to bf16, and nothing else differs in them."
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.float8_e4m3fn, torch.float8_e5m2])
def test_every_short_format_is_recognised(dtype: torch.dtype, tmp_path: Path) -> None:
    rounded = {name: value.to(dtype) for name, value in REFERENCE.items()}
    assert only(compared(tmp_path, REFERENCE, rounded)).code == "AL306"


def test_a_wider_dtype_with_the_same_numbers_is_the_same(tmp_path: Path) -> None:
    short = {name: value.bfloat16() for name, value in REFERENCE.items()}
    result = compared(tmp_path, short, {name: value.float() for name, value in short.items()})
    assert result.verdict is ALIGNED
    assert (
        only(result).summary
        == "All 21 entries are bf16 in the reference and fp32 in the candidate, with the same numbers."
    )


def test_rounding_kept_in_the_wide_dtype_is_told(tmp_path: Path) -> None:
    result = compared(tmp_path, REFERENCE, {name: value.bfloat16().float() for name, value in REFERENCE.items()})
    assert result.verdict is DIVERGED
    assert only(result).code == "AL306"
    assert "rounded to bf16, kept as fp32" in result.summary


def test_a_transposed_framework_is_a_layout(tmp_path: Path) -> None:
    """GPT-2 of Hugging Face keeps Conv1D matrices, nanoGPT and others a Linear of the same name."""
    rng = torch.Generator().manual_seed(2)
    ours = {
        f"transformer.h.{number}.{part}.weight": torch.randn(shape, generator=rng)
        for number in range(2)
        for part, shape in (("attn.c_attn", (32, 96)), ("attn.c_proj", (32, 32)), ("mlp.c_fc", (32, 128)))
    }
    result = compared(tmp_path, ours, {name: value.t() for name, value in ours.items()})
    assert (result.verdict, only(result).code, str(only(result).severity)) == (ALIGNED, "AL305", "note")
    one = dict(ours)
    one["transformer.h.1.attn.c_proj.weight"] = ours["transformer.h.1.attn.c_proj.weight"].t()
    assert compared(tmp_path, ours, one).verdict is DIVERGED


def test_tied_weights_saved_once_are_the_same(tmp_path: Path) -> None:
    tied = changed(REFERENCE, tie)
    result = compared(tmp_path, tied, changed(tied, drop_head))
    assert (result.verdict, only(result).code, str(only(result).severity)) == (ALIGNED, "AL308", "note")


@pytest.mark.parametrize("kind", ["GPT2", "T5"])
def test_real_models_saved_in_two_ways_hold_the_same(kind: str, tmp_path: Path) -> None:
    """`save_pretrained` leaves out tied weights, and a training script saves them twice, under a prefix."""
    from transformers import GPT2Config, GPT2LMHeadModel, T5Config, T5ForConditionalGeneration

    models: dict[str, Callable[[], nn.Module]] = {
        "GPT2": lambda: GPT2LMHeadModel(GPT2Config(n_layer=2, n_embd=32, n_head=2, vocab_size=99, n_positions=16)),
        "T5": lambda: T5ForConditionalGeneration(
            T5Config(vocab_size=99, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4)
        ),
    }
    model = models[kind]()
    model.save_pretrained(tmp_path / "model")  # type: ignore[operator]
    torch.save({"module": {f"module.{name}": value for name, value in model.state_dict().items()}}, tmp_path / "a.pt")
    result = checkpoint_files(str(tmp_path / "model"), str(tmp_path / "a.pt"))
    assert result.verdict is ALIGNED
    assert told(result) == [("warning", "AL303", "checkpoint-keys"), ("note", "AL308", "tied-weight-broken")]


def test_tied_weights_that_part_are_told(tmp_path: Path) -> None:
    result = compared(tmp_path, changed(REFERENCE, tie), REFERENCE)
    assert (result.verdict, only(result).code) == (DIVERGED, "AL308")
    assert "are the same values in the reference (tied weights), and differ in the candidate" in result.summary


def test_statistics_left_out_are_an_error_and_derived_buffers_are_not(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    whole = dict(model.state_dict()) | {"rotary_emb.inv_freq": torch.ones(4)}
    result = compared(tmp_path, whole, {name: value.detach() for name, value in model.named_parameters()})
    assert told(result) == [("error", "AL309", "buffer-differs"), ("note", "AL309", "buffer-differs")]
    assert result.summary == (
        "The candidate has no statistics of normalisation layers, the reference has 3: 1.num_batches_tracked, "
        "1.running_mean and 1.running_var. Without them a model evaluates with mean 0 and variance 1."
    )


def test_names_without_any_likeness_are_paired_by_their_values(tmp_path: Path) -> None:
    result = compared(tmp_path, REFERENCE, {f"w{number}": value for number, value in enumerate(REFERENCE.values())})
    assert (result.verdict, result.counts["paired"]) == (ALIGNED, 21)


def test_other_models_cannot_be_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ours = write(tmp_path / "a.safetensors", {"a.weight": torch.randn(3, 4)})
    theirs = write(tmp_path / "b.safetensors", {"b.x": torch.randn(7), "c.y": torch.randn(2)})
    assert main(["checkpoint", str(ours), str(theirs)], standalone_mode=False) == 2
    assert "No entry of the one answers an entry of the other (1 and 2 entries)" in capsys.readouterr().out


def adam_file(path: Path, order: Callable[[list[nn.Parameter]], list[nn.Parameter]]) -> Path:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4))
    optimizer = torch.optim.Adam(order(list(model.parameters())))
    model(torch.randn(8, 4)).square().sum().backward()
    optimizer.step()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
    return path


def test_states_of_the_wrong_parameter_are_told(tmp_path: Path) -> None:
    """The optimizer was built from the parameters in another order: numbers are all that its state has."""
    ours = adam_file(tmp_path / "a.pt", list)
    theirs = adam_file(tmp_path / "b.pt", lambda parameters: [*parameters[2:], *parameters[:2]])
    result = checkpoint_files(str(ours), str(theirs))
    finding = only(result)
    assert (result.verdict, finding.code, finding.label) == (DIVERGED, "AL701", "optimizer-state-differs")
    assert finding.summary == (
        "In the optimizer 6 states of the candidate belong to another parameter in the reference: number 0 (0.weight) "
        "has that of 2, number 1 (0.bias) has that of 3, number 2 (1.weight) has that of 4, number 3 (1.bias) has that "
        "of 5 and 2 more."
    )


def test_states_of_another_step_follow_from_its_weights(tmp_path: Path) -> None:
    ours = adam_file(tmp_path / "a.pt", list)
    saved = torch.load(ours, weights_only=True)
    rng = torch.Generator().manual_seed(4)
    for value in [*saved["model"].values(), *(one["exp_avg"] for one in saved["optimizer"]["state"].values())]:
        value.add_(0.01 * torch.randn(value.shape, generator=rng) * value.abs().mean())
    torch.save(saved, tmp_path / "b.pt")
    result = checkpoint_files(str(ours), str(tmp_path / "b.pt"))
    assert [(one.code, one.explained_by) for one in result.findings] == [("AL310", ""), ("AL701", "AL310")]
    assert result.findings[1].summary == (
        "In the optimizer the states of 6 of 6 parameters have other values than in the reference."
    )


def test_equal_states_are_no_finding(tmp_path: Path) -> None:
    ours, theirs = (adam_file(tmp_path / f"{name}.pt", list) for name in "ab")
    assert checkpoint_files(str(ours), str(theirs)).findings == ()


def test_the_text_fits_a_screen_and_all_lists_everything(tmp_path: Path) -> None:
    result = compared(tmp_path, REFERENCE, meta(REFERENCE))
    assert len(checkpoint_text(result).splitlines()) <= 40
    whole = checkpoint_text(result, whole=True)
    assert all(name in whole for name in REFERENCE)


def test_the_text_of_a_prefix(
    tmp_path: Path, golden: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    compared(Path(), REFERENCE, {f"_orig_mod.{name}": value for name, value in changed(REFERENCE, set_nan).items()})
    golden("checkpoint_prefix.txt", checkpoint_text(checkpoint_files("a.safetensors", "b.safetensors")))


def test_the_command_prints_json_and_exit_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    compared(tmp_path, REFERENCE, changed(REFERENCE, set_nan))
    paths = [str(tmp_path / f"{name}.safetensors") for name in "ab"]
    assert main(["checkpoint", *paths, "--json", "-"], standalone_mode=False) == 1
    document = json.loads(capsys.readouterr().out)
    assert list(document) == [
        "format", "command", "verdict", "summary", "first_divergence", "findings", "sentences", "counts", "checkpoints",
        "renamed", "records", "only_reference", "only_candidate", "notes",
    ]  # fmt: skip
    assert document["format"] == "align/1"
    assert document["first_divergence"]["name"] == UP.removesuffix(".weight")
    assert document["first_divergence"]["kind"] == "nonfinite"
    assert document["findings"][0]["label"] == "weight-corrupted"
    assert document["records"]["length"] == 21
    assert main(["checkpoint", paths[0], paths[0]], standalone_mode=False) == 0
    assert main(["checkpoint", paths[0], str(tmp_path / "none.pt")], standalone_mode=False) == 2
