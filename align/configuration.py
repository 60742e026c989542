"""What is set differently in the modules of two runs: attributes that change numbers, and training mode."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from align.matching.rules import is_root
from align.pairing import NamePairs
from align.records import Fact, ModuleInfo, Phase

SAME_NUMBER = 1e-6
"""A setting that went through float32, as 1e-05 and 9.999999747e-06, is the same one."""

MODEL_CONFIG = "config."
"""Begins the names of what a whole model was built from; its modules may have taken any of it."""

TRAINING = "training"

ModuleCall: TypeAlias = tuple[str, int, int]
"""A module by name, the micro-step, and which of its calls."""

# The lists come from the attributes of 45 modules of torch.nn and of the GPT-2, Llama and BERT models of transformers
# with the configurations they are built from, read one by one. Words are the parts between underscores and dots.
IGNORED_WORDS = frozenset(
    ("cache", "cached", "checkpoint", "checkpointing", "debug", "device", "devices", "dir", "dtype", "elapsed", "file",
     "filename", "logger", "logging", "name", "path", "reentrant", "repo", "timestamp", "url", "verbose", "version")
)  # fmt: skip
"""Names, places and bookkeeping; recomputing gives the same numbers; dtypes are compared tensor by tensor."""

IGNORED_NAMES = frozenset(
    ("architectures", "block_idx", "bos_token_id", "call_count", "calls", "count", "counter", "decoder_start_token_id",
     "enable_nested_tensor", "eos_token_id", "epoch", "finetuning_task", "global_step", "idx", "index", "inplace",
     "iteration", "iterations", "layer_id", "layer_idx", "layer_index", "layer_num", "layer_number", "mask_check",
     "model_type", "num_calls", "output_attentions", "output_hidden_states", "return_dict", "return_dict_in_generate",
     "sep_token_id", "step", "steps", "task_specific_params", TRAINING, "use_nested_tensor")
)  # fmt: skip
"""Counters, the place of a layer, what only generation or evaluation reads, and what is returned besides."""

IGNORED_TABLES = ("id2label.", "label2id.")
"""The words for classes, one entry each."""

_DEVICE = re.compile(r"(cpu|cuda|npu|xpu|mps|hpu|mlu|musa|meta)(:\d+)?")
_DTYPE = re.compile(r"(torch\.)?(b?float|u?int|complex|half|double|bool|fp|bf)\d*(_e\dm\d\w*)?")
_PLACE = re.compile(r"[~.]{0,2}/|[A-Za-z]:\\|.* at 0x[0-9a-f]+")


@dataclass(frozen=True, slots=True)
class ConfigDifference:
    """One attribute of one module that both runs have with another value; `name` is that of the reference."""

    name: str
    attribute: str
    reference: Any
    candidate: Any


def config_differences(
    modules: Mapping[str, ModuleInfo], candidate: Mapping[str, ModuleInfo], names: NamePairs
) -> tuple[ConfigDifference, ...]:
    """Every attribute that may change numbers and differs, in the order of the reference's modules.

    An attribute that only one run has is told by no one: versions of a library add and drop them.
    """
    return tuple(
        difference
        for name, ours in modules.items()
        if (theirs := candidate.get(names.of(name))) is not None and ours.config != theirs.config
        for difference in _differences(name, ours.config, theirs.config)
    )


def _differences(name: str, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[ConfigDifference]:
    for attribute, value in ours.items():
        if attribute in theirs and not same_setting(value, theirs[attribute]) and not is_ignored(attribute):
            other = theirs[attribute]
            if not _says_nothing(value, other):
                yield ConfigDifference(name, attribute, value, other)


def same_setting(ours: Any, theirs: Any) -> bool:
    """Whether two settings are the same; numbers up to the rounding of float32."""
    if isinstance(ours, (list, tuple)) and isinstance(theirs, (list, tuple)):
        return len(ours) == len(theirs) and all(map(same_setting, ours, theirs))
    if isinstance(ours, bool) or isinstance(theirs, bool):
        return ours is theirs
    if isinstance(ours, (int, float)) and isinstance(theirs, (int, float)):
        both_nan = math.isnan(ours) and math.isnan(theirs)
        return both_nan or ours == theirs or math.isclose(ours, theirs, rel_tol=SAME_NUMBER)
    return bool(ours == theirs)


def is_ignored(attribute: str) -> bool:
    """Whether an attribute of this name never changes numbers."""
    path = attribute.removeprefix(MODEL_CONFIG)
    if path.startswith(IGNORED_TABLES):
        return True
    last = path.rpartition(".")[2]
    return last in IGNORED_NAMES or not IGNORED_WORDS.isdisjoint(re.split(r"[_.]", path.lower()))


def _says_nothing(ours: Any, theirs: Any) -> bool:
    """Whether two words only say where things are, or in which dtype."""
    words = (ours, theirs)
    if not all(isinstance(word, str) for word in words):
        return False
    return any(all(pattern.fullmatch(word) for word in words) for pattern in (_DEVICE, _DTYPE)) or any(
        _PLACE.match(word) for word in words
    )


class Modes:
    """Which modules of one step were in training mode.

    The facts name the outermost modules that were called, and those inside whose mode is another one.
    """

    def __init__(self, facts: Sequence[Fact], modules: Mapping[str, ModuleInfo]) -> None:
        self._modes: dict[ModuleCall, bool] = {
            (fact.key.name, fact.key.micro, fact.key.call): bool(fact.value)
            for fact in facts
            if (fact.key.phase, fact.key.slot) == (Phase.FORWARD, TRAINING) and fact.value is not None
        }
        self._root = next((name for name, _, _ in self._modes if _is_main_root(name, modules)), "")

    @property
    def told(self) -> tuple[ModuleCall, ...]:
        """The calls that the facts tell of."""
        return tuple(self._modes)

    def of(self, name: str, micro: int, call: int) -> bool | None:
        """Whether the module was in training mode; None where that is not known."""
        for holder in (name, *self._holders(name)):
            for number in (call, 0):
                mode = self._modes.get((holder, micro, number))
                if mode is not None:
                    return mode
        return None

    def _holders(self, name: str) -> Iterator[str]:
        """The root of a module (the main one, where its name has no prefix), then its parents from the nearest on."""
        yield f"{name.partition('>')[0]}>" if name.startswith("<") else self._root
        while "." in name:
            name = name.rpartition(".")[0]
            yield name


def _is_main_root(name: str, modules: Mapping[str, ModuleInfo]) -> bool:
    """Whether it is the root whose modules have no prefix: it has children, and none that begins with its name."""
    if not is_root(name) or (name in modules and modules[name].leaf):
        return False
    return not any(other.startswith(f"{name}.") for other in modules)
