"""The five models of the benchmark, their data and how their weights come to be worth comparing."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

TOKENS, LENGTH, SAMPLES = 96, 32, 4
IMAGES, SIDE, LABELS = 8, 16, 10
SIGNAL, UNROLLED = 24, 10


def build_gpt2() -> nn.Module:
    """Three blocks of Hugging Face's GPT-2; input embedding and head share their weight."""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=TOKENS, n_positions=LENGTH + 8, n_embd=64, n_layer=3, n_head=4, resid_pdrop=0.0, embd_pdrop=0.0,
        attn_pdrop=0.0, bos_token_id=0, eos_token_id=0, use_cache=False, attn_implementation="eager",
    )  # fmt: skip
    model: nn.Module = GPT2LMHeadModel(config)
    return model


def build_llama() -> nn.Module:
    """Three blocks of Hugging Face's Llama: RMS norms, rotary positions, two heads for keys and values."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=TOKENS, hidden_size=64, intermediate_size=160, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=LENGTH + 8, bos_token_id=0, eos_token_id=0, pad_token_id=None,
        use_cache=False, tie_word_embeddings=False, attn_implementation="eager",
    )  # fmt: skip
    model: nn.Module = LlamaForCausalLM(config)
    return model


class ConvBlock(nn.Module):
    """Two convolutions with batch norm around a residual."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.act1 = nn.ReLU()
        self.act2 = nn.ReLU()
        self.shortcut = nn.Conv2d(inputs, outputs, 1, stride=stride) if stride > 1 or inputs != outputs else None

    def forward(self, x: Tensor) -> Tensor:
        """Images to images, [batch, outputs, side / stride, side / stride]."""
        kept = x if self.shortcut is None else self.shortcut(x)
        x = self.act1(self.bn1(self.conv1(x)))
        x = self.bn2(self.conv2(x))
        found: Tensor = self.act2(x + kept)
        return found


class ResidualNet(nn.Module):
    """A stem, five residual blocks, the mean over pixels and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(16)
        self.act = nn.ReLU()
        widths = [(16, 16, 1), (16, 32, 2), (32, 32, 1), (32, 48, 2), (48, 48, 1)]
        self.blocks = nn.ModuleList(ConvBlock(*width) for width in widths)
        self.head = nn.Linear(48, LABELS)

    def forward(self, images: Tensor) -> Tensor:
        """Scores, [batch, labels]."""
        x = self.act(self.norm(self.stem(images)))
        for block in self.blocks:
            x = block(x)
        found: Tensor = self.head(x.mean((2, 3)))
        return found


class GruCell(nn.Module):
    """A gated recurrent unit whose gates are code between its two layers."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.from_input = nn.Linear(inputs, 3 * width)
        self.from_state = nn.Linear(width, 3 * width)

    def forward(self, x: Tensor, state: Tensor) -> Tensor:
        """The next state, [batch, width]."""
        reset, update, new = self.from_input(x).chunk(3, -1)
        reset_state, update_state, new_state = self.from_state(state).chunk(3, -1)
        reset, update = torch.sigmoid(reset + reset_state), torch.sigmoid(update + update_state)
        new = torch.tanh(new + reset * new_state)
        return new + update * (state - new)


class ResidualMlp(nn.Module):
    """Norm, two layers, residual."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.act = nn.GELU()
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """The same shape."""
        found: Tensor = x + self.down(self.act(self.up(self.norm(x))))
        return found


class Recurrent(nn.Module):
    """One cell, unrolled over a signal, and residual blocks over the states."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(SIGNAL, 48)
        self.cell = GruCell(48, 48)
        self.blocks = nn.ModuleList(ResidualMlp(48) for _ in range(4))
        self.norm = nn.LayerNorm(48)
        self.head = nn.Linear(48, SIGNAL)

    def forward(self, signal: Tensor) -> Tensor:
        """The next values of the signal, [batch, times, signal]."""
        inputs = self.embed(signal)
        state = torch.zeros_like(inputs[:, 0])
        states = []
        for time in range(inputs.shape[1]):
            state = self.cell(inputs[:, time], state)
            states.append(state)
        x = torch.stack(states, 1)
        for block in self.blocks:
            x = block(x)
        found: Tensor = self.head(self.norm(x))
        return found


class Attention(nn.Module):
    """Causal attention in plain operators."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """The same shape; the mask is added to the scores."""
        found: Tensor = self.out(self.attend(self.query(x), self.key(x), self.value(x), mask))
        return found

    def attend(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
        """Mix the values by softmax of the scores."""
        parts = [part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in (query, key, value)]
        scores = torch.matmul(parts[0], parts[1].transpose(-1, -2)) * parts[0].shape[-1] ** -0.5
        weights = functional.softmax(scores + mask, dim=-1).to(parts[2].dtype)
        return torch.matmul(weights, parts[2]).transpose(1, 2).flatten(2)


class Expert(nn.Module):
    """Two layers."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, 2 * width)
        self.act = nn.GELU(approximate="tanh")
        self.down = nn.Linear(2 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """The same shape."""
        found: Tensor = self.down(self.act(self.up(x)))
        return found


class Mixture(nn.Module):
    """Four experts, of which each token takes two; every expert sees all tokens, so shapes do not depend on them."""

    def __init__(self, width: int, experts: int = 4, taken: int = 2) -> None:
        super().__init__()
        self.taken = taken
        self.router = nn.Linear(width, experts)
        self.experts = nn.ModuleList(Expert(width) for _ in range(experts))

    def forward(self, x: Tensor) -> Tensor:
        """The same shape."""
        gates = self.gates(self.router(x))
        out = torch.zeros_like(x)
        for index, expert in enumerate(self.experts):
            out = out + expert(x) * gates[..., index : index + 1]
        return out

    def gates(self, scores: Tensor) -> Tensor:
        """The shares of the experts, 0 for those that are not taken."""
        shares = functional.softmax(scores.float(), dim=-1)
        kept, which = torch.topk(shares, self.taken, dim=-1)
        kept = kept / kept.sum(-1, keepdim=True)
        return torch.zeros_like(shares).scatter(-1, which, kept)


class MixtureBlock(nn.Module):
    """Attention and a mixture of experts, each with norm and residual."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, 4)
        self.norm2 = nn.LayerNorm(width)
        self.mixture = Mixture(width)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """The same shape."""
        x = x + self.attention(self.norm1(x), mask)
        found: Tensor = x + self.mixture(self.norm2(x))
        return found


class MixtureNet(nn.Module):
    """Token and position embeddings, blocks, norm, head."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(TOKENS, 48)
        self.positions = nn.Embedding(LENGTH + 8, 48)
        self.blocks = nn.ModuleList(MixtureBlock(48) for _ in range(2))
        self.norm = nn.LayerNorm(48)
        self.head = nn.Linear(48, TOKENS)

    def forward(self, tokens: Tensor) -> Tensor:
        """Scores of the next token, [batch, length, tokens]."""
        length = tokens.shape[1]
        x = self.tokens(tokens) + self.positions(torch.arange(length, device=tokens.device))
        mask = torch.full((length, length), -math.inf, device=tokens.device).triu(1)
        for block in self.blocks:
            x = block(x, mask)
        found: Tensor = self.head(self.norm(x))
        return found


BUILDERS: dict[str, Callable[[], nn.Module]] = {
    "gpt2": build_gpt2,
    "llama": build_llama,
    "cnn": ResidualNet,
    "gru": Recurrent,
    "moe": MixtureNet,
}


def batch(model: str, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Inputs and targets: sequences, images or signals with something in them that can be learned."""
    if model == "cnn":
        labels = torch.randint(LABELS, (IMAGES,), generator=generator)
        waves = torch.linspace(0, 6.0, SIDE)
        numbers = labels[:, None, None]
        patterns = torch.sin(waves[:, None] * (1 + numbers) * 0.5 + waves * 0.7 * (numbers % 3))
        noise = torch.randn(IMAGES, 3, SIDE, SIDE, generator=generator)
        return patterns[:, None] * torch.tensor([1.0, 0.5, -0.7])[:, None, None] + 0.5 * noise, labels
    if model == "gru":
        starts = torch.rand(16, 1, SIGNAL, generator=generator) * 6
        times = torch.arange(UNROLLED + 1)[:, None] * torch.linspace(0.1, 1.0, SIGNAL)
        signal = torch.sin(starts + times) + 0.1 * torch.randn(16, UNROLLED + 1, SIGNAL, generator=generator)
        return signal[:, :-1].contiguous(), signal[:, 1:].contiguous()
    tokens = torch.randint(TOKENS, (SAMPLES, LENGTH), generator=generator)
    for place in range(1, LENGTH):
        follows = torch.rand(SAMPLES, generator=generator) < 0.7
        tokens[:, place] = torch.where(follows, (tokens[:, place - 1] * 5 + 3) % TOKENS, tokens[:, place])
    return tokens, tokens


def loss_of(model: str, output: Tensor, targets: Tensor) -> Tensor:
    """The mean loss."""
    if model == "gru":
        return functional.mse_loss(output, targets)
    if model == "cnn":
        return functional.cross_entropy(output, targets)
    return functional.cross_entropy(output[:, :-1].flatten(0, 1).float(), targets[:, 1:].flatten())


def stir(model: nn.Module) -> None:
    """Gains away from 1 and biases away from 0: constant ones hide faults."""
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for module in model.modules():
            is_norm = "Norm" in type(module).__name__
            for name, parameter in module.named_parameters(recurse=False):
                if parameter.dim() == 1:
                    size = 0.2 if is_norm and name == "weight" else 0.1
                    parameter.add_(size * torch.randn(parameter.shape, generator=generator))
