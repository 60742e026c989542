"""Three small models whose products are all computed by one arithmetic, and the data that they learn."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.paired_trainings.arithmetic import Arithmetic, product

SIDE, LABELS = 8, 10
ROWS = 4
"""A digit is read as so many vectors, two rows of pixels each."""
KNOWN = "\n" + "".join(chr(code) for code in range(32, 127))
"""The end of a line and printable ASCII."""
CHARACTERS, LENGTH = len(KNOWN), 16
"""So many characters there are, and so many are a sample."""


class Layer(nn.Linear):
    """A linear layer on the device of the arithmetic."""

    def __init__(self, inputs: int, outputs: int, how: Arithmetic) -> None:
        super().__init__(inputs, outputs)
        self.how = how

    def forward(self, x: Tensor) -> Tensor:
        """[..., inputs] to [..., outputs]."""
        flat = product(x.reshape(-1, x.shape[-1]), self.weight.t(), self.how)
        return (flat + self.bias).reshape(*x.shape[:-1], -1)


class Recurrent(nn.Module):
    """A gated recurrent unit over the rows of a digit; its loss comes near 0."""

    def __init__(self, how: Arithmetic, width: int = 32) -> None:
        super().__init__()
        self.from_input = Layer(SIDE * SIDE // ROWS, 3 * width, how)
        self.from_state = Layer(width, 3 * width, how)
        self.head = Layer(width, LABELS, how)

    def forward(self, images: Tensor) -> Tensor:
        """Scores, [batch, labels]."""
        given = self.from_input(images.reshape(len(images), ROWS, -1))
        state = given.new_zeros(len(images), self.from_state.in_features)
        for row in range(ROWS):
            reset, update, new = given[:, row].chunk(3, -1)
            reset_state, update_state, new_state = self.from_state(state).chunk(3, -1)
            new = torch.tanh(new + torch.sigmoid(reset + reset_state) * new_state)
            state = new + torch.sigmoid(update + update_state) * (state - new)
        found: Tensor = self.head(state)
        return found


class Block(nn.Module):
    """Causal attention and a multilayer perceptron, each behind a norm and beside a residual."""

    def __init__(self, width: int, heads: int, how: Arithmetic) -> None:
        super().__init__()
        self.heads, self.how = heads, how
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.given, self.taken = Layer(width, 3 * width, how), Layer(width, width, how)
        self.up, self.down = Layer(width, 4 * width, how), Layer(4 * width, width, how)

    def forward(self, x: Tensor) -> Tensor:
        """[batch, length, width] to the same."""
        x = x + self._attention(self.norm1(x))
        found: Tensor = x + self.down(functional.gelu(self.up(self.norm2(x))))
        return found

    def _attention(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        parts = self.given(x).reshape(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        query, key, value = parts.flatten(1, 2).unbind(0)
        scores = product(query, key.transpose(-2, -1), self.how) * query.shape[-1] ** -0.5
        later = torch.ones(length, length, dtype=torch.bool).triu(1)
        kept = product(scores.masked_fill(later, -torch.inf).softmax(-1), value, self.how)
        found: Tensor = self.taken(kept.reshape(batch, self.heads, length, -1).transpose(1, 2).reshape(x.shape))
        return found


class Gpt(nn.Module):
    """A block that learns text."""

    def __init__(self, how: Arithmetic, width: int = 32) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(CHARACTERS, width), nn.Embedding(LENGTH, width)
        self.block = Block(width, 2, how)
        self.norm = nn.LayerNorm(width)
        self.head = Layer(width, CHARACTERS, how)

    def forward(self, text: Tensor) -> Tensor:
        """Scores of the next characters, [batch, length, characters]."""
        x = self.block(self.tokens(text) + self.places.weight)
        found: Tensor = self.head(self.norm(x))
        return found


class Convolutional(nn.Module):
    """Two convolutions of 3 by 3 pixels over a digit."""

    def __init__(self, how: Arithmetic) -> None:
        super().__init__()
        self.first, self.second = Layer(9, 8, how), Layer(72, 16, how)
        self.head = Layer(16 * 4, LABELS, how)

    def forward(self, images: Tensor) -> Tensor:
        """Scores, [batch, labels]."""
        x = self._convolved(images.reshape(-1, 1, SIDE, SIDE), self.first)
        found: Tensor = self.head(self._convolved(x, self.second).flatten(1))
        return found

    @staticmethod
    def _convolved(x: Tensor, layer: Layer) -> Tensor:
        """A convolution, and of each four pixels the largest."""
        patches = functional.unfold(x, 3, padding=1).transpose(1, 2)
        made = functional.relu(layer(patches)).transpose(1, 2).reshape(len(x), -1, *x.shape[2:])
        return functional.max_pool2d(made, 2)


def digits() -> tuple[Tensor, Tensor]:
    """The digits of scikit-learn: pixels from 0 to 1, [samples, 64], and labels."""
    from sklearn.datasets import load_digits

    data = load_digits()
    return torch.from_numpy(data.data).float() / 16, torch.from_numpy(data.target).long()


def sources() -> tuple[Tensor, Tensor]:
    """Sources of Python's own library as numbers of characters, [samples, length], and the character after each."""
    text = "".join(inspect.getsource(module) for module in (inspect, textwrap))
    known = torch.tensor([KNOWN.index(character) for character in text if character in KNOWN])
    count = (len(known) - 1) // LENGTH
    return known[: count * LENGTH].reshape(count, LENGTH), known[1 : count * LENGTH + 1].reshape(count, LENGTH)


@dataclass(frozen=True, slots=True)
class Task:
    """A model, what it learns, and how it is trained where nothing is wrong; `middle` is a parameter to hold still."""

    build: Callable[[Arithmetic], nn.Module]
    data: Callable[[], tuple[Tensor, Tensor]]
    rate: float
    batch: int
    classes: int
    middle: str


TASKS: Mapping[str, Task] = {
    "gru": Task(Recurrent, digits, 6e-3, 32, LABELS, "from_state.weight"),
    "gpt": Task(Gpt, sources, 3e-3, 8, CHARACTERS, "block.up.weight"),
    "cnn": Task(Convolutional, digits, 4e-3, 32, LABELS, "first.weight"),
}
