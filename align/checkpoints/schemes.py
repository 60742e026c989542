"""Names that frameworks give to the same parts of a transformer, so that names can be paired before values are read.

The tables hold the names of Hugging Face (GPT-2, GPT-NeoX, Llama, Qwen, BERT), Meta's Llama, Megatron-LM and nanoGPT. A
name that is not in them has no role; two names with one role on a side have none either.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

LAYER = re.compile(r"^(?:.*\.)?(?:h|layers?|blocks?)\.(\d+)\.(.+)$")
ATTENTION = r"(?:self_attn|self_attention|attention|attn)"
FEED_FORWARD = r"(?:mlp|feed_forward|ffn)"

_IN_LAYER: Mapping[str, str] = {
    "q": f"{ATTENTION}\\.(?:self\\.)?(?:q_proj|wq|query|q|linear_q)",
    "k": f"{ATTENTION}\\.(?:self\\.)?(?:k_proj|wk|key|k|linear_k)",
    "v": f"{ATTENTION}\\.(?:self\\.)?(?:v_proj|wv|value|v|linear_v)",
    "qkv": f"{ATTENTION}\\.(?:c_attn|qkv|query_key_value|Wqkv|wqkv|qkv_proj|W_pack|linear_qkv|in_proj)",
    "o": f"{ATTENTION}\\.(?:o_proj|wo|o|out_proj|c_proj|dense|proj|output\\.dense|linear_proj)",
    "gate": f"{FEED_FORWARD}\\.(?:gate_proj|w1|gate)",
    "up": f"{FEED_FORWARD}\\.(?:up_proj|w3)",
    "gate_up": f"{FEED_FORWARD}\\.(?:gate_up_proj|gate_up|w13)",
    "down": f"{FEED_FORWARD}\\.(?:down_proj|w2|c_proj|fc2|dense_4h_to_h|linear_fc2|fc_out)|output\\.dense",
    "up_or_both": f"{FEED_FORWARD}\\.(?:c_fc|fc1|dense_h_to_4h|linear_fc1|fc_in|up)|intermediate\\.dense",
    "norm1": r"(?:ln_1|input_layernorm|attention_norm|norm1|ln1)",
    "norm2": r"(?:ln_2|post_attention_layernorm|ffn_norm|norm2|ln2|pre_mlp_layernorm)",
}
_OUTSIDE: Mapping[str, str] = {
    "embedding": r"(?:.*\.)?(?:embed_tokens|tok_embeddings|wte|word_embeddings|embed_in|embedding|embed)",
    "positions": r"(?:.*\.)?(?:wpe|position_embeddings|embed_positions)",
    "norm": r"(?:.*\.)?(?:ln_f|norm|final_layernorm|final_layer_norm|final_norm)",
    "head": r"(?:.*\.)?(?:lm_head|output|embed_out|output_layer|head)",
}
_COMPILED = tuple(
    {role: re.compile(f"(?:{pattern})\\.(weight|bias)") for role, pattern in table.items()}
    for table in (_IN_LAYER, _OUTSIDE)
)


@dataclass(frozen=True, slots=True)
class Role:
    """A part of a transformer: which layer (-1: none), which part, weight or bias."""

    layer: int
    part: str
    slot: str


def role_of(name: str) -> Role | None:
    """The role of a name, None where no table has it."""
    inside = LAYER.match(name)
    table, layer, rest = (_COMPILED[0], int(inside[1]), inside[2]) if inside else (_COMPILED[1], -1, name)
    for part, pattern in table.items():
        found = pattern.fullmatch(rest)
        if found is not None:
            return Role(layer, part, found[1])
    return None


def roles_of(names: Iterable[str]) -> dict[Role, str]:
    """The names by role; a role that two names have is left out."""
    found: dict[Role, list[str]] = {}
    for name in names:
        role = role_of(name)
        if role is not None:
            found.setdefault(role, []).append(name)
    return {role: own[0] for role, own in found.items() if len(own) == 1}
