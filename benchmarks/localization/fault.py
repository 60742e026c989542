"""A fault at work in a model, and where it is then right to say that the runs part.

The right answers are pairs of phase and module name. They follow from containment: a wrong output is its module's; what
goes wrong between the children of a module is that module's; a wrong gradient of an input is the module's whose
backward made it, or of the module in whose code it arose.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.localization.intercept import Operator, Site, replace_operators

WEIGHTED = {"Linear", "Conv1D", "Conv2d"}
NORMS = {"LayerNorm", "LlamaRMSNorm", "BatchNorm2d"}
ACTIVATIONS = {"NewGELUActivation", "SiLUActivation", "SiLU", "ReLU", "GELU", "GELUTanh"}
EMBEDDINGS = {"Embedding"}
FIRST = {"stem", "embed", "transformer.wte", "transformer.wpe", "model.embed_tokens", "tokens", "positions"}
BLOCKS = {
    "gpt2": ("GPT2Block", (("add", 0, 0), ("add", 1, 1))),
    "llama": ("LlamaDecoderLayer", (("add", 0, 1), ("add", 1, 1))),
    "cnn": ("ConvBlock", (("add", 0, 0),)),
    "gru": ("ResidualMlp", (("add", 0, 1),)),
    "moe": ("MixtureBlock", (("add", 0, 1), ("add", 1, 1))),
}
"""The class of the residual blocks, and of each residual sum: operator, which one, which argument is the branch."""

ATTENTION = {
    "gpt2": ("GPT2Attention", "eager_attention_forward"),
    "llama": ("LlamaAttention", "eager_attention_forward"),
    "moe": ("Attention", "attend"),
}


def lots(seed: str | float) -> random.Random:
    """What draws places."""
    return random.Random(seed)  # noqa: S311 - no secret


@dataclass
class Fault:
    """A fault at work. `answers` are the right pairs of phase and module."""

    model: nn.Module
    kind: str
    large: bool
    family: str
    precision: str
    random: random.Random
    answers: list[tuple[str, str]] = field(default_factory=list)
    undo: ExitStack = field(default_factory=ExitStack)
    of_loss: Callable[[Tensor], Tensor] = field(default=lambda loss: loss)
    before_update: Callable[[], None] = field(default=lambda: None)
    clips_first: bool = False

    @property
    def few_bits(self) -> int:
        """Bits of mantissa of a format that is too short, in this class of precision."""
        return 3 if self.large else 5 if self.precision == "bf16" else 7

    def size(self, large: float, small: float) -> float:
        """One of two numbers."""
        return large if self.large else small

    def modules(self, classes: set[str]) -> list[tuple[str, nn.Module]]:
        """The modules of these classes by name."""
        return [(name, m) for name, m in self.model.named_modules() if type(m).__name__ in classes]

    def one_module(self, classes: set[str], phase: str, *, inner: bool = False) -> nn.Module:
        """One of them by lot, noted as the right answer; `inner`: none whose input takes no gradient."""
        found = self.modules(classes)
        if inner:
            found = [(name, m) for name, m in found if name not in FIRST]
        name, module = self.random.choice(found)
        self.answers.append((phase, name))
        return module

    def attention(self, phase: str = "forward") -> tuple[nn.Module, str]:
        """One attention by lot and the name of the function where it mixes."""
        name, code = ATTENTION[self.family]
        return self.one_module({name}, phase), code

    def replace(self, module: nn.Module, site: Site, operator: Operator) -> None:
        """Replace one operator of a module's own code."""
        replace_operators(module, {site: operator})


INJECTORS: dict[str, Callable[[Fault], None]] = {}


def kind_of_fault(*names: str) -> Callable[[Callable[[Fault], None]], Callable[[Fault], None]]:
    """Register what puts faults of these kinds into a model."""

    def register(injector: Callable[[Fault], None]) -> Callable[[Fault], None]:
        INJECTORS.update(dict.fromkeys(names, injector))
        return injector

    return register


def scaled(x: Tensor, factor: Tensor | float) -> Tensor:
    """The same dtype, multiplied in float32."""
    return (x.float() * factor).to(x.dtype)


def rms(x: Tensor) -> Tensor:
    """The root mean square, a scalar of float32."""
    return x.detach().float().square().mean().sqrt()


def one_channel(x: Tensor, factor: float, place: random.Random) -> Tensor:
    """A factor for one of the channels: the last dimension, of images the second; the greatest of three by lot."""
    dim = 1 if x.dim() == 4 else -1
    strength = x.detach().float().square().sum([d for d in range(x.dim()) if d != dim % x.dim()])
    draws = [place.randrange(x.shape[dim]) for _ in range(3)]
    factors = torch.ones(x.shape[dim], device=x.device)
    factors[max(draws, key=lambda draw: float(strength[draw]))] = factor
    return factors.view(-1, 1, 1) if x.dim() == 4 else factors


def one_element(x: Tensor, index: int) -> Tensor:
    """1 at one element."""
    mark = torch.zeros(x.numel(), device=x.device)
    mark[index % x.numel()] = 1.0
    return mark.view(x.shape)


def residual_site(fault: Fault, phase: str) -> tuple[nn.Module, Site, int]:
    """A block by lot, one of its residual sums, and which argument of the sum is the branch."""
    name, sums = BLOCKS[fault.family]
    function, nth, branch = fault.random.choice(sums)
    return fault.one_module({name}, phase), Site(function, nth=nth), branch


def with_argument(args: tuple[Any, ...], place: int, change: Callable[[Tensor], Tensor]) -> tuple[Any, ...]:
    """The arguments with one of them changed."""
    return (*args[:place], change(args[place]), *args[place + 1 :])


def owners(fault: Fault, parameter: nn.Parameter) -> list[str]:
    """The modules that hold a parameter; several where it is shared."""
    return [n for n, m in fault.model.named_modules() if any(p is parameter for p in m.parameters(recurse=False))]


def one_weight(fault: Fault, phase: str) -> nn.Parameter:
    """A matrix by lot, noted as the right answer."""
    names = [name for name, p in fault.model.named_parameters() if p.dim() > 1]
    parameter = fault.model.get_parameter(fault.random.choice(names))
    fault.answers.extend((phase, name) for name in owners(fault, parameter))
    return parameter
