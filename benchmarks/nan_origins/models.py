"""Five tiny models with ordinary code between their modules, and places in it (`at`) for what a case puts there."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from benchmarks.nan_origins.points import at

WIDTH = 12
WORDS = 13
LENGTH = 6
HEADS = 2
BATCH = 4
CLASSES = 5


class Act(nn.Module):
    """GELU, with a place inside; a leaf."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._point = name

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a tensor of the same shape."""
        return at(self._point, functional.gelu(x))


class Attention(nn.Module):
    """Causal attention whose scores and softmax are code of the module itself."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self._point = name

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return [batch, length, width]; the mask is added to the scores."""
        batch, length, _ = x.shape
        q, k, v = (
            layer(x).view(batch, length, HEADS, WIDTH // HEADS).transpose(1, 2) for layer in (self.q, self.k, self.v)
        )
        q = at(f"{self._point}.q", q)
        scores = at(f"{self._point}.scores", q @ k.transpose(-1, -2) / math.sqrt(WIDTH // HEADS)) + mask
        weights = at(f"{self._point}.weights", scores.softmax(-1))
        mixed = (weights.to(v.dtype) @ v).transpose(1, 2).reshape(batch, length, WIDTH)
        result: torch.Tensor = self.o(at(f"{self._point}.mixed", mixed))
        return result


class Mlp(nn.Module):
    """Two linear layers around an activation that is a module."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.fc, self.act, self.proj = nn.Linear(WIDTH, 2 * WIDTH), Act(f"{name}.act"), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a tensor of the same shape."""
        result: torch.Tensor = self.proj(self.act(self.fc(x)))
        return result


class Experts(nn.Module):
    """Two experts, each token to the better one."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.gate = nn.Linear(WIDTH, 2)
        self.experts = nn.ModuleList([Mlp(f"{name}.experts.{number}") for number in range(2)])
        self._point = name

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a tensor of the same shape."""
        scores = at(f"{self._point}.gate", self.gate(x)).softmax(-1)
        best = scores.argmax(-1)
        parts = []
        for number, expert in enumerate(self.experts):
            share = (best == number).unsqueeze(-1) * scores[..., number : number + 1]
            parts.append(at(f"{self._point}.share", share) * expert(x))
        return at(f"{self._point}.sum", parts[0] + parts[1])


class Block(nn.Module):
    """Attention and what follows it, with residual connections."""

    def __init__(self, name: str, *, experts: bool) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attn = Attention(f"{name}.attn")
        self.mlp: nn.Module = Experts(f"{name}.mlp") if experts else Mlp(f"{name}.mlp")
        self._point = name

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return a tensor of the same shape."""
        x = at(f"{self._point}.residual", x + self.attn(self.norm1(x), mask))
        result: torch.Tensor = x + self.mlp(self.norm2(x))
        return result


class Transformer(nn.Module):
    """A language model of two blocks; with `again` they are checkpointed."""

    def __init__(self, *, experts: bool = False, again: bool = False) -> None:
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.blocks = nn.ModuleList([Block(f"blocks.{number}", experts=experts) for number in range(2)])
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, CLASSES)
        self._again = again
        self.register_buffer("causal", torch.full((LENGTH, LENGTH), -math.inf).triu(1))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return [batch, length, classes]."""
        x = at("embedded", self.embed(tokens))
        mask = at("mask", self.get_buffer("causal"))
        for block in self.blocks:
            x = checkpoint(block, x, mask, use_reentrant=False) if self._again else block(x, mask)
        return at("logits", self.head(self.norm(x)))


class Images(nn.Module):
    """Convolutions with batch norm, and pooling in the model's own code."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.bn1, self.act1 = nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), Act("act1")
        self.conv2, self.bn2, self.act2 = nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4), Act("act2")
        self.head = nn.Linear(4, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return [batch, classes]."""
        x = self.act1(self.bn1(self.conv1(x)))
        x = at("between", x)
        x = self.act2(self.bn2(self.conv2(x)))
        return at("logits", self.head(at("pooled", x.mean((2, 3)))))


class Recurrent(nn.Module):
    """A cell that is called once for each position, then a GRU."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.cell, self.mix = nn.GRUCell(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.gru = nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return [batch, length, classes]."""
        x = self.embed(tokens)
        hidden = torch.zeros_like(x[:, 0])
        outputs = []
        for position in range(LENGTH):
            hidden = at(f"hidden.{position}", self.cell(self.mix(x[:, position]), hidden.to(x.dtype)))
            outputs.append(hidden)
        return at("logits", self.head(self.gru(torch.stack(outputs, 1))[0]))


class Scale(nn.Module):
    """A scale and a shift of its own, with a place inside; a leaf with parameters."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.gain, self.bias = nn.Parameter(torch.ones(WIDTH)), nn.Parameter(torch.zeros(WIDTH))
        self._point = name

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a tensor of the same shape."""
        return at(self._point, x * self.gain + self.bias)


class Regressor(nn.Module):
    """Linear layers with much ordinary code between them, and an output that nothing uses."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.scale, self.act, self.fc2 = (
            nn.Linear(8, WIDTH),
            Scale("scale"),
            Act("act"),
            nn.Linear(WIDTH, WIDTH),
        )
        self.side = nn.Linear(WIDTH, 2)
        self.head = nn.Linear(WIDTH, CLASSES)
        self.register_buffer("least", torch.full((WIDTH,), math.inf))
        self.register_buffer("greatest", torch.full((WIDTH,), -math.inf))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return [batch, classes]."""
        x = self.act(self.scale(self.fc1(x)))
        x = at("between", x)
        x = x + at("after", self.fc2(x))
        at("side", self.side(x.detach()))
        return at("logits", self.head(at("last", x)))


MODELS: Mapping[str, Callable[[], nn.Module]] = {
    "transformer": Transformer,
    "checkpointed": lambda: Transformer(again=True),
    "experts": lambda: Transformer(experts=True),
    "images": Images,
    "recurrent": Recurrent,
    "regressor": Regressor,
}


def draw_batch(model: str, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A batch and its classes, another one for each step."""
    generator = torch.Generator().manual_seed(100 + step)
    if model in {"images", "regressor"}:
        shape = (BATCH, 1, 6, 6) if model == "images" else (BATCH, 8)
        return torch.randn(shape, generator=generator), torch.randint(CLASSES, (BATCH,), generator=generator)
    tokens = torch.randint(WORDS, (BATCH, LENGTH), generator=generator)
    return tokens, torch.randint(CLASSES, (BATCH, LENGTH), generator=generator)
