"""A gradient of an output that several codes use: which of them made it cannot be told, and all are named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from align.ahead import look_ahead
from align.capture_file import open_capture
from align.commands import diff_files
from align.diagnosis import telling
from align.pairing import Pair
from align.records import DiffResult, Phase, TensorKey
from align.reports.text import diff_text
from tests.builders import walk_files
from tests.seen import record

Change = Callable[[torch.Tensor], torch.Tensor]


def unchanged(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


class _Louder(torch.autograd.Function):
    """Passes its input on; its backward is 1 % too large."""

    @staticmethod
    def forward(context: Any, x: torch.Tensor) -> torch.Tensor:  # noqa: ARG004 - the signature of torch
        return x.clone()

    @staticmethod
    def backward(context: Any, *gradients: torch.Tensor) -> Any:  # noqa: ARG004 - as above
        return gradients[0] * 1.01


def louder(x: torch.Tensor) -> torch.Tensor:
    found: torch.Tensor = _Louder.apply(x)  # type: ignore[no-untyped-call]
    return found


class Coder(nn.Module):
    """Draws around what two heads make of its input, and returns what both made, for the loss."""

    def __init__(self, inside: Change) -> None:
        super().__init__()
        self.mean, self.spread, self.out = nn.Linear(64, 48), nn.Linear(64, 48), nn.Linear(48, 64)
        self._inside = inside

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        mean, spread = self.mean(x), self.spread(x)
        return self.out(self._inside(mean * torch.exp(spread))), mean, spread


class Heads(nn.Module):
    """Two heads whose outputs are returned and not used."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.left, self.right = nn.Linear(64, 48), nn.Linear(48, 48), nn.Linear(48, 48)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = self.body(x)
        return self.left(hidden), self.right(hidden)


class Stages(nn.Module):
    """Returns what a layer made and hands it to the next."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(64, 48), nn.Linear(48, 48)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = self.first(x)
        return self.second(hidden), hidden


def capture(path: Path, make: Callable[[], nn.Module], after: Change = unchanged) -> Path:
    """One step; the loss is made of all outputs, of the last after a change."""

    def train() -> None:
        torch.manual_seed(0)
        model = make()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        *others, last = model(torch.randn(32, 64))
        loss = functional.mse_loss(after(last), torch.ones_like(last))
        for other in others:
            loss = loss + other.square().mean()
        loss.backward()
        optimizer.step()

    record(path, train, steps="0")
    return path


def diff(tmp_path: Path, inside: Change, after: Change) -> DiffResult:
    files = [
        capture(tmp_path / "a.h5", lambda: Coder(unchanged)),
        capture(tmp_path / "b.h5", lambda: Coder(inside), after),
    ]
    return diff_files(*map(str, files))


@pytest.mark.parametrize(("inside", "after"), [(louder, unchanged), (unchanged, louder)], ids=["inside", "after"])
def test_both_users_are_named(tmp_path: Path, inside: Change, after: Change) -> None:
    found = diff(tmp_path, inside, after)
    cause = found.findings[0]
    assert cause.label == "origin-functional"
    assert cause.summary.endswith(
        " It is made by the backward of the code of <Coder> or of the training script (loss), which both can use it."
    )
    assert cause.advice == (
        "Compare the operators of <Coder> and of the training script that follow spread, and their backward, in both "
        "runs."
    )
    assert cause.evidence["made_by_one_of"] == ["<Coder>", "the training script"]
    assert (cause.where.name, cause.where.slot, cause.where.call) == ("<Coder>", None, 0)
    assert "  error AL402 origin-functional  <Coder>, step 0, backward\n" in diff_text(found)


@pytest.mark.parametrize(
    ("make", "name", "users"),
    [
        (lambda: Coder(unchanged), "spread", ("<Coder>", "")),
        (lambda: Coder(unchanged), "mean", ("<Coder>", "")),
        (lambda: Coder(unchanged), "out", ("",)),
        (Heads, "left", ("",)),
        (Heads, "right", ("",)),
        (Heads, "body", ("<Heads>",)),
        (Stages, "first", ("<Stages>", "")),
        (Stages, "second", ("",)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_who_can_use_an_output(
    tmp_path: Path, make: Callable[[], nn.Module], name: str, users: tuple[str, ...]
) -> None:
    with open_capture(capture(tmp_path / "a.h5", make)) as file:
        records = file.records(0)
    ahead = look_ahead(Pair(each, each) for each in records)
    wanted = TensorKey(0, Phase.BACKWARD, name, "grad_output.0")
    assert ahead.users(next(each for each in records if each.key == wanted)) == users


def test_the_script_alone_has_no_name_but_a_title(tmp_path: Path) -> None:
    one, other = capture(tmp_path / "a.h5", Heads), capture(tmp_path / "b.h5", Heads, louder)
    found = diff_files(str(one), str(other))
    assert (found.findings[0].where.name, found.findings[0].where.slot) == ("", None)
    assert found.summary.endswith(" It is made by the backward of the training script (loss).")
    assert "  error AL402 origin-functional  training script, step 0, backward\n" in diff_text(found)
    walk = walk_files(one, other)
    assert walk.first is not None
    assert telling.users_of(walk, walk.first) == ("",)
