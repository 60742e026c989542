"""Dropout that lets everything through: what is changed in place afterwards, and what only looks like it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import nn
from torch.nn import functional

from align.hooks.no_dropout import NoDropout


@pytest.fixture(autouse=True)
def _no_dropout() -> Iterator[None]:
    switch = NoDropout()
    switch.install()
    yield
    switch.remove()


class DropPath(nn.Module):
    """Named as such modules are everywhere."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.bernoulli(torch.full((len(x), 1), 0.5)) * 2 if self.training else x


class MlpWithDropPath(nn.Module):
    """Of such a name, and it computes."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = self.layer(x)
        return made


class ScaledDropPath(nn.Module):
    """Of such a name, with a weight of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.full((4,), 3.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.scale


DROPS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "dropout": lambda x: functional.dropout(x, 0.5, training=True),
    "alpha": lambda x: functional.alpha_dropout(x, 0.5, training=True),
    "feature alpha": lambda x: functional.feature_alpha_dropout(x, 0.5, training=True),
    "1d": lambda x: functional.dropout1d(x, 0.5, training=True),
    "torch": lambda x: torch.dropout(x, 0.5, train=True),
    "feature": lambda x: torch.feature_dropout(x, 0.5, train=True),
    "native": lambda x: torch.native_dropout(x, 0.5, True)[0],
    "module": nn.Dropout(0.5),
    "path": DropPath(),
}


@pytest.mark.parametrize("name", DROPS)
def test_what_is_let_through_is_not_the_input_itself(name: str) -> None:
    leaf = torch.tensor([[0.5, -0.0, 1e-42, -3.0]] * 3, requires_grad=True)
    x = leaf.tanh()  # whose backward needs what it gave
    made = DROPS[name](x)
    assert made.detach().numpy().tobytes() == x.detach().numpy().tobytes()
    before = x.detach().clone()
    made += 1
    assert torch.equal(x, before)
    made.sum().backward()
    own = leaf.detach().requires_grad_()
    own.tanh().sum().backward()
    assert leaf.grad is not None
    assert own.grad is not None
    assert torch.equal(leaf.grad, own.grad)


def test_what_drops_in_place_gives_back_its_input() -> None:
    x = torch.ones(3, 4)
    assert functional.dropout(x, 0.5, training=True, inplace=True) is x
    assert torch.dropout_(x, 0.5, train=True) is x
    assert nn.Dropout(0.5, inplace=True)(x) is x
    assert torch.equal(x, torch.ones(3, 4))


def test_where_nothing_would_be_dropped_the_functions_do_as_ever() -> None:
    x = torch.ones(3, 4)
    assert functional.dropout(x, 0.5, training=False) is x
    assert functional.dropout(x, 0.0, training=True) is x
    assert torch.dropout(x, 0.5, train=False) is x
    assert DropPath().eval()(x) is x
    with pytest.raises(ValueError, match="dropout probability has to be between 0 and 1"):
        functional.dropout(x, 2.0, training=False)


def test_a_residual_that_is_added_in_place_trains_as_without_dropout() -> None:
    torch.manual_seed(0)
    one, two = nn.Linear(4, 4), nn.Linear(4, 4)
    x = torch.linspace(-1, 1, 8).reshape(2, 4)
    losses = []
    for drop in (lambda hidden: functional.dropout(hidden, 0.1, training=True), torch.clone):
        hidden = torch.sigmoid(one(x))
        made = drop(hidden)
        made += two(hidden)
        gradients = torch.autograd.grad(made.square().mean(), [one.weight, two.weight])
        losses.append([made.sum().item(), *(gradient.sum().item() for gradient in gradients)])
    assert losses[0] == losses[1]


def test_modules_that_compute_go_on_computing_whatever_their_name() -> None:
    x = torch.ones(2, 4)
    mlp = MlpWithDropPath()
    assert torch.equal(mlp(x), mlp.layer(x))
    assert torch.equal(ScaledDropPath()(x), 3 * x)
    assert torch.equal(DropPath()(x), x)


def test_an_lstm_with_a_list_of_states_runs_without_dropout() -> None:
    torch.manual_seed(0)
    cells = nn.LSTM(4, 8, 2, dropout=0.5)
    x = torch.ones(3, 2, 4)
    states = [torch.zeros(2, 2, 8), torch.zeros(2, 2, 8)]
    first, second = cells(x, states)[0], cells(x, states)[0]
    assert torch.equal(first, second)
    assert torch.equal(first, cells(x)[0])
    packed = nn.utils.rnn.pack_padded_sequence(x, [3, 3])
    assert torch.equal(cells(packed, states)[0].data, cells(packed)[0].data)
    assert torch.allclose(first, cells.eval()(x)[0])
