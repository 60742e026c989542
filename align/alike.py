"""What the modules of a model that was called without gradients compute: read from others of their class.

A capture sees matrix products and convolutions in the graph that autograd keeps; a teacher leaves none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from align.records import ModuleInfo

MATMUL_WORDS = ("Linear", "LSTM", "GRU", "RNN", "MultiheadAttention", "Bilinear")
CONV_WORDS = ("Conv",)
"""Parts of the names of classes whose forward is a matrix product or a convolution."""


def completed(modules: Mapping[str, ModuleInfo]) -> dict[str, ModuleInfo]:
    """The modules by name; what is not known of a leaf is taken from one of its class, else from its class's name."""
    seen: dict[str, ModuleInfo] = {}
    for module in modules.values():
        if module.leaf and _is_known(module):
            seen.setdefault(module.class_name, module)
    return {name: _completed(module, seen.get(module.class_name)) for name, module in modules.items()}


def _completed(module: ModuleInfo, other: ModuleInfo | None) -> ModuleInfo:
    if not module.leaf or _is_known(module):
        return module
    if other is not None:
        return replace(
            module,
            matmul=other.matmul,
            conv=other.conv,
            piecewise=other.piecewise,
            chooses=other.chooses,
            normalises=other.normalises,
        )
    matmul, conv = (any(word in module.class_name for word in words) for words in (MATMUL_WORDS, CONV_WORDS))
    return replace(module, matmul=matmul, conv=conv) if matmul or conv else module


def _is_known(module: ModuleInfo) -> bool:
    return module.matmul or module.conv or module.piecewise
