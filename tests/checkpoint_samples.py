"""State dicts of a small language model under the names of several frameworks, and files of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from safetensors.torch import save_file

from align.checkpoint_records import CheckpointResult
from align.commands import checkpoint_files
from align.records import Finding

WIDTH, HIDDEN, WORDS, LAYERS, HEADS = 32, 64, 100, 2, 4

State = dict[str, torch.Tensor]


def llama(seed: int = 0) -> State:
    """Under the names of Hugging Face."""
    rng = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=rng) * 0.02

    state = {"model.embed_tokens.weight": draw(WORDS, WIDTH)}
    for number in range(LAYERS):
        layer = f"model.layers.{number}"
        for part in ("q_proj", "k_proj", "v_proj", "o_proj"):
            state[f"{layer}.self_attn.{part}.weight"] = draw(WIDTH, WIDTH)
        state[f"{layer}.mlp.gate_proj.weight"] = draw(HIDDEN, WIDTH)
        state[f"{layer}.mlp.up_proj.weight"] = draw(HIDDEN, WIDTH)
        state[f"{layer}.mlp.down_proj.weight"] = draw(WIDTH, HIDDEN)
        state[f"{layer}.input_layernorm.weight"] = torch.ones(WIDTH)
        state[f"{layer}.post_attention_layernorm.weight"] = 1 + draw(WIDTH)
    state["model.norm.weight"] = torch.ones(WIDTH)
    state["lm_head.weight"] = draw(WORDS, WIDTH)
    return state


META = {
    "self_attn.q_proj": "attention.wq", "self_attn.k_proj": "attention.wk", "self_attn.v_proj": "attention.wv",
    "self_attn.o_proj": "attention.wo", "mlp.gate_proj": "feed_forward.w1", "mlp.down_proj": "feed_forward.w2",
    "mlp.up_proj": "feed_forward.w3", "input_layernorm": "attention_norm", "post_attention_layernorm": "ffn_norm",
    "model.embed_tokens": "tok_embeddings", "model.norm": "norm", "lm_head": "output", "model.layers": "layers",
}  # fmt: skip


def meta(state: State) -> State:
    """The names of Meta's Llama, with its rows of queries and keys."""

    def interleaved(weight: torch.Tensor) -> torch.Tensor:
        return weight.view(HEADS, 2, WIDTH // HEADS // 2, WIDTH).transpose(1, 2).reshape(WIDTH, WIDTH)

    found = {}
    for name, value in state.items():
        other = name
        for before, after in META.items():
            other = other.replace(before, after)
        found[other] = interleaved(value) if other.endswith(("wq.weight", "wk.weight")) else value
    return found


def megatron(state: State, *, by_heads: bool = True) -> State:
    """Queries, keys and values in one tensor, and gate and up; under names of Megatron-LM."""
    merged = ("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj")
    names = {"self_attn.o_proj": "self_attention.dense", "mlp.down_proj": "mlp.dense_4h_to_h", "model.": "encoder."}
    found = {}
    for name, value in state.items():
        if not any(part in name for part in merged):
            other = name
            for before, after in names.items():
                other = other.replace(before, after)
            found[other] = value
    for number in range(LAYERS):
        parts = [state[f"model.layers.{number}.self_attn.{part}_proj.weight"] for part in "qkv"]
        heads = torch.stack([part.view(HEADS, -1, WIDTH) for part in parts], dim=1).reshape(3 * WIDTH, WIDTH)
        fused = heads if by_heads else torch.cat(parts)
        found[f"encoder.layers.{number}.self_attention.query_key_value.weight"] = fused
        parts = [state[f"model.layers.{number}.mlp.{part}_proj.weight"] for part in ("gate", "up")]
        found[f"encoder.layers.{number}.mlp.dense_h_to_4h.weight"] = torch.cat(parts)
    return found


def changed(state: State, *changes: Callable[[State], object]) -> State:
    """A copy with changes."""
    copy = {name: value.clone() for name, value in state.items()}
    for change in changes:
        change(copy)
    return copy


def write(path: Path, state: Mapping[str, torch.Tensor]) -> Path:
    """A safetensors file."""
    save_file({name: value.contiguous().clone() for name, value in state.items()}, path)
    return path


def compared(folder: Path, reference: State, candidate: State, **asked: bool) -> CheckpointResult:
    """What `align checkpoint` says of two state dicts, through safetensors files."""
    ours, theirs = write(folder / "a.safetensors", reference), write(folder / "b.safetensors", candidate)
    return checkpoint_files(str(ours), str(theirs), **asked)


def told(result: CheckpointResult) -> list[tuple[str, str, str]]:
    """Severity, code and label of each finding."""
    return [(str(finding.severity), finding.code, finding.label) for finding in result.findings]


def only(result: CheckpointResult) -> Finding:
    """The one finding."""
    assert len(result.findings) == 1, told(result)
    return result.findings[0]
