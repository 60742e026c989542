"""AL506: what an activation checkpoint computes again must be what it computed first, in one run and between two."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from align.diagnosis.run import recompute_differs
from align.inspection import learning_questions
from align.records import ModuleInfo, Phase, Reply, Severity, State, TensorKey, TensorRecord, Verdict
from tests.builders import diff_files, record_of, write_capture
from tests.learning_runs import answer, found, told
from tests.seen import record

WIDTH = 24


class Block(nn.Module):
    """A linear layer, dropout, and what a test adds behind."""

    def __init__(self, rate: float = 0.0) -> None:
        super().__init__()
        self.fc = nn.Linear(WIDTH, WIDTH)
        self.drop = nn.Dropout(rate)
        self.act = nn.Tanh()

    def forward(self, x: torch.Tensor) -> Any:
        return self.act(self.drop(self.fc(x)))


class Net(nn.Module):
    """Two blocks, of which the second is checkpointed by the function that is given."""

    def __init__(self, rate: float, again: Callable[..., Any]) -> None:
        super().__init__()
        self.first, self.second, self.head = nn.Linear(WIDTH, WIDTH), Block(rate), nn.Linear(WIDTH, 4)
        self._again = again

    def forward(self, x: torch.Tensor) -> Any:
        return self.head(self._again(self.second, self.first(x)))


def plainly(block: nn.Module, x: torch.Tensor) -> Any:
    return block(x)


def keeping(block: nn.Module, x: torch.Tensor) -> Any:
    return checkpoint(block, x, use_reentrant=False)


def drawing(block: nn.Module, x: torch.Tensor) -> Any:
    return checkpoint(block, x, use_reentrant=False, preserve_rng_state=False)


def reentering(block: nn.Module, x: torch.Tensor) -> Any:
    return checkpoint(block, x, use_reentrant=True)


class Overwriting(torch.autograd.Function):
    """A checkpoint of one's own whose input is written to between its two calls, with or without autocast again."""

    factor = 1.0
    dtype: torch.dtype | None = None

    @staticmethod
    def forward(ctx: Any, block: nn.Module, x: torch.Tensor) -> Any:
        ctx.block = block
        ctx.save_for_backward(x)
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=Overwriting.dtype is not None):
            return block(x).float()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        (x,) = ctx.saved_tensors
        again = (x * Overwriting.factor).detach().requires_grad_()
        with torch.enable_grad():
            output = ctx.block(again)
        torch.autograd.backward(output, gradient)
        return None, again.grad


def own(block: nn.Module, x: torch.Tensor) -> Any:
    return Overwriting.apply(block, x)  # type: ignore[no-untyped-call]


def train(
    again: Callable[..., Any], rate: float = 0.0, before_backward: Callable[[nn.Module], Any] = lambda _model: None
) -> None:
    torch.manual_seed(0)
    model = Net(rate, again)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(1)
    for step in range(2):
        torch.manual_seed(10 + step)
        model.train()
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(
            model(torch.randn(32, WIDTH, generator=generator)), torch.randint(4, (32,), generator=generator)
        )
        before_backward(model)
        loss.backward()
        optimizer.step()


def captured(path: Path, *given: Any, **options: Any) -> Path:
    record(path, lambda: train(*given, **options))
    return path


def reply_of(path: Path) -> Reply:
    return answer(path, learning_questions.recomputing)


def test_a_checkpoint_that_keeps_the_generator_repeats_its_forward(tmp_path: Path) -> None:
    path = captured(tmp_path / "a.h5", keeping, 0.3)
    assert told(path, recompute_differs.find) == []
    reply = reply_of(path)
    assert reply.state is State.GOOD
    assert reply.sentence.startswith("All ")
    assert reply.sentence.endswith(" tensors that checkpoints computed again are as they were first: equal to the bit.")


def test_without_checkpoints_there_is_nothing_to_ask(tmp_path: Path) -> None:
    path = captured(tmp_path / "a.h5", plainly, 0.3)
    assert (reply_of(path).state, told(path, recompute_differs.find)) == (State.ABSENT, [])


def test_dropout_that_is_drawn_anew_is_named(tmp_path: Path) -> None:
    path = captured(tmp_path / "a.h5", drawing, 0.3)
    (finding,) = found(path, recompute_differs.find)
    assert finding.severity is Severity.ERROR
    assert finding.summary.startswith(
        "Step 0: an activation checkpoint computes second.drop output.0 again in the backward, and drops other "
        "elements than the first time ("
    )
    assert finding.advice.startswith(
        "Let the checkpoint put the random generator back: checkpoint(..., preserve_rng_state=True)"
    )
    assert (finding.where.phase, finding.where.name, finding.where.slot) == ("forward", "second.drop", "output.0")
    assert reply_of(path).sentence == "second.drop output.0 is not repeated as it was computed first, in step 0."


def test_dropout_that_is_drawn_anew_at_rate_0_is_none(tmp_path: Path) -> None:
    assert told(captured(tmp_path / "a.h5", drawing, 0.0), recompute_differs.find) == []


def test_a_model_in_another_mode_is_named(tmp_path: Path) -> None:
    path = captured(tmp_path / "a.h5", reentering, 0.3, before_backward=lambda model: model.eval())
    (finding,) = found(path, recompute_differs.find)
    assert "and drops none the second time (" in finding.summary
    assert finding.advice.startswith("Leave the model in one mode between forward and backward")


def test_an_input_that_is_written_to_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Overwriting, "factor", 1.01)
    (finding,) = found(captured(tmp_path / "a.h5", own), recompute_differs.find)
    assert finding.where.name == "second.fc"
    assert "and it differs from the first time by relative L2 9.3e-3." in finding.summary
    assert finding.advice.startswith("Look for what changed between the two forwards: an input or a buffer")


def test_an_input_that_is_left_alone_is_none(tmp_path: Path) -> None:
    assert told(captured(tmp_path / "a.h5", own), recompute_differs.find) == []


def test_autocast_that_is_not_entered_again_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Overwriting, "dtype", torch.bfloat16)
    (finding,) = found(captured(tmp_path / "a.h5", own), recompute_differs.find)
    assert (
        "second.fc output.0 again in the backward, and it is fp32 the second time, bf16 the first." in finding.summary
    )
    assert finding.advice.startswith("Run the second forward under the same autocast as the first")


# ---- devices that are not deterministic


def repeated(error: float, dtype: str = "float32") -> dict[int, list[TensorRecord]]:
    """A forward of three layers and its repetition, each value off by a random share."""
    random = np.random.default_rng(0)
    records = []
    for name in ("a", "b", "c"):
        key = TensorKey(0, Phase.FORWARD, name, "output.0")
        value = random.standard_normal((64, 64)).astype(np.float32)
        away = (value * (1.0 + error * random.standard_normal(value.shape))).astype(np.float32)
        records.append(record_of(key, value, dtype=dtype))
        again = record_of(replace(key, slot="output.0.recomputed"), away, dtype=dtype, recomputed=True)
        records.append(again)
    return {0: records}


@pytest.mark.parametrize(
    ("error", "dtype", "differs"),
    [
        (2e-7, "float32", False), (1e-4, "float32", True), (1e-3, "bfloat16", False), (1e-2, "bfloat16", False),
        (0.1, "bfloat16", True),
    ],
)  # fmt: skip
def test_what_rounding_does_is_no_finding(tmp_path: Path, error: float, dtype: str, differs: bool) -> None:
    modules = [ModuleInfo(name, "Linear") for name in "abc"]
    path = write_capture(tmp_path / "a.h5", repeated(error, dtype), modules=modules)
    assert bool(found(path, recompute_differs.find)) is differs
    if not differs:
        assert reply_of(path).sentence == (
            "All 3 tensors that checkpoints computed again are as they were first: 0 to the bit, the others within "
            "rounding."
        )


# ---- two runs


@pytest.mark.parametrize("reference", [keeping, plainly], ids=["a good checkpoint", "no checkpoint"])
def test_between_two_runs_it_is_the_cause_and_keeps_the_place(tmp_path: Path, reference: Callable[..., Any]) -> None:
    good, bad = captured(tmp_path / "a.h5", reference, 0.3), captured(tmp_path / "b.h5", drawing, 0.3)
    result = diff_files(good, bad)
    first = result.first_divergence
    assert first is not None
    assert (first.step, first.phase) == (0, Phase.BACKWARD)
    assert first.name.startswith("second")
    assert (result.findings[0].label, result.findings[0].severity) == ("recompute-differs", Severity.ERROR)
    assert result.findings[0].where.name == first.name
    assert all(one.explained_by == "AL506" for one in result.findings[1:] if one.severity is Severity.ERROR)
    assert "an activation checkpoint of the candidate computes second.drop output.0 again" in result.summary


def test_what_parts_before_is_the_cause(tmp_path: Path) -> None:
    """Runs with other weights part in them, though one also draws its masks anew."""
    good, bad = tmp_path / "a.h5", tmp_path / "b.h5"
    captured(good, keeping, 0.3)

    def other(block: nn.Module, x: torch.Tensor) -> Any:
        return drawing(block, 1.01 * x)

    captured(bad, other, 0.3)
    result = diff_files(good, bad)
    labels = {one.label: one.severity for one in result.findings}
    assert labels["recompute-differs"] is Severity.WARNING
    assert result.findings[0].label != "recompute-differs"


def test_two_good_checkpoints_are_aligned(tmp_path: Path) -> None:
    good, again = captured(tmp_path / "a.h5", keeping, 0.3), captured(tmp_path / "b.h5", keeping, 0.3)
    result = diff_files(good, again)
    assert result.verdict is Verdict.ALIGNED
    assert "recompute-differs" not in {one.label for one in result.findings}
