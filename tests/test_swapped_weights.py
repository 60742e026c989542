"""Models that are called with other tensors in the place of their parameters: what is recorded is their own."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import torch
from torch import nn
from torch.func import functional_call

import align
from align.hashing import hash_bytes
from align.hooks.same_start import SameStart
from align.records import Phase
from tests.seen import initial_hashes


def model() -> nn.Sequential:
    return nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))


def adapt(net: nn.Module, steps: int) -> list[dict[str, torch.Tensor]]:
    """Inner steps through other weights, outer steps on the true ones; the parameters before each outer step."""
    torch.manual_seed(1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    seen = []
    for _ in range(steps):
        seen.append({name: one.detach().clone() for name, one in net.named_parameters()})
        x = torch.rand(4, 2)
        weights: dict[str, torch.Tensor] = dict(net.named_parameters())
        inner = functional_call(net, weights, (x,)).square().mean()
        gradients = torch.autograd.grad(inner, list(weights.values()), create_graph=True)
        adapted = {name: one - 0.5 * two for (name, one), two in zip(weights.items(), gradients, strict=True)}
        optimizer.zero_grad()
        functional_call(net, adapted, (x,)).square().mean().backward()
        optimizer.step()
    return seen


def from_the_first_call(net: nn.Module) -> dict[str, torch.Tensor]:
    """No call ever runs with the parameters themselves."""
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    seen = {name: one.detach().clone() for name, one in net.named_parameters()}
    shifted = {name: one + 0.25 for name, one in net.named_parameters()}
    functional_call(net, shifted, (torch.ones(4, 2),)).square().mean().backward()
    optimizer.step()
    return seen


def hashes(tensors: dict[str, torch.Tensor]) -> dict[str, int | None]:
    return {name: hash_bytes(one.numpy()) for name, one in tensors.items()}


def test_the_initial_state_is_that_of_the_true_parameters(tmp_path: Path) -> None:
    net = model()
    with align.Recorder(tmp_path / "run.h5") as recorder:
        before = adapt(net, 2)
    assert dict(recorder.troubles) == {}
    assert initial_hashes(tmp_path / "run.h5") == hashes(before[0])
    names = sorted(before[0])
    with align.open(tmp_path / "run.h5") as capture:
        for step in (0, 1):
            for phase in (Phase.GRADIENT, Phase.UPDATE, Phase.PARAM):
                keys = [one.key for one in capture.records(step) if one.key.phase is phase]
                assert sorted(f"{key.name}.{key.slot}" for key in keys) == names


def test_parameters_that_only_stand_aside_are_seen_and_loaded(tmp_path: Path) -> None:
    with align.Recorder(tmp_path / "one.h5", keep=["init"]) as recorder:
        before = from_the_first_call(model())
    assert dict(recorder.troubles) == {}
    assert recorder.steps_written == [0]
    assert initial_hashes(tmp_path / "one.h5") == hashes(before)
    with align.Recorder(tmp_path / "two.h5", same_start=SameStart(init_from=str(tmp_path / "one.h5"))) as recorder:
        adapt(model(), 1)
    assert dict(recorder.troubles) == {}
    assert initial_hashes(tmp_path / "two.h5") == hashes(before)


def test_nothing_changes_for_being_watched(tmp_path: Path) -> None:
    results = []
    for watched in (False, True):
        torch.manual_seed(0)
        net = model()
        recorder = align.Recorder(tmp_path / "run.h5", detail="tensors", keep=["init", "batches"])
        with recorder if watched else nullcontext():
            before = adapt(net, 3)
        results.append([*(hashes(one) for one in before), torch.get_rng_state().tolist()])
    assert results[0] == results[1]


def test_a_models_weights_given_to_another_keep_their_names(tmp_path: Path) -> None:
    torch.manual_seed(0)
    own, other = model(), model()
    optimizer = torch.optim.SGD([*own.parameters(), *other.parameters()], lr=0.1)
    known = {f"{name}": one.detach().clone() for name, one in own.named_parameters()}
    known |= {f"<Sequential#2>.{name}": one.detach().clone() for name, one in other.named_parameters()}
    with align.Recorder(tmp_path / "run.h5") as recorder:
        x = torch.ones(4, 2)
        loss = own(x).mean() + functional_call(other, dict(own.named_parameters()), (x,)).mean() + other(x).mean()
        loss.backward()
        optimizer.step()
    assert dict(recorder.troubles) == {}
    assert initial_hashes(tmp_path / "run.h5") == hashes(known)
