"""The recorder as a library: what it sees, and that it leaves no trace behind."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import signal
import threading
import warnings
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.optim import optimizer as optimizers
from torch.overrides import TorchFunctionMode
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

import align
from align.errors import CaptureError, UsageError
from align.hashing import hash_bytes
from align.records import INIT_STEP, Phase, TensorRecord

RecordsOf = dict[tuple[str, str], TensorRecord]


def train(model: nn.Module, batch: Callable[[], Any], steps: int = 2, **options: Any) -> list[float]:
    """Train with SGD; the model's forward returns the loss."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, **options)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model(batch())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def recorded(tmp_path: Path, model: nn.Module, batch: Any, phase: Phase = Phase.FORWARD, **options: Any) -> RecordsOf:
    """The records of step 0 in one phase, by name and slot."""
    with align.Recorder(tmp_path / "run.h5", steps="0", **options) as recorder:
        train(model, lambda: batch)
    assert dict(recorder.troubles) == {}
    with align.open(tmp_path / "run.h5") as capture:
        return {(r.key.name, r.key.slot): r for r in capture.records(0) if r.key.phase is phase}


class Loss(nn.Module):
    """Any module, with its output made a loss."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Any) -> Any:
        return self.inner(x).square().mean()


# ---- no trace


def test_everything_is_put_back(tmp_path: Path) -> None:
    places: list[tuple[Any, str]] = [
        (nn.Module, "_call_impl"),
        (torch.autograd, "backward"),
        (torch.optim.Optimizer, "__init__"),
        (torch, "compile"),
        (torch.amp.GradScaler, "scale"),
        (torch.amp.GradScaler, "step"),
    ]
    hooks = optimizers._global_optimizer_pre_hooks
    before = [vars(owner)[name] for owner, name in places]

    def watch_and_fail() -> None:
        with align.Recorder(tmp_path / "run.h5"):
            assert all(vars(owner)[name] is not old for (owner, name), old in zip(places, before, strict=True))
            raise RuntimeError("stop here")

    with pytest.raises(RuntimeError, match="stop here"):
        watch_and_fail()
    assert [vars(owner)[name] for owner, name in places] == before
    assert not hooks


def test_models_stay_clean_while_they_are_watched(tmp_path: Path) -> None:
    model = Loss(nn.Linear(3, 2))
    with align.Recorder(tmp_path / "run.h5"):
        train(model, lambda: torch.ones(4, 3))
        assert not model._forward_hooks
        assert not model._backward_hooks
        twin = copy.deepcopy(model)
        thawed = pickle.loads(pickle.dumps(model))
        assert torch.equal(twin(torch.ones(1, 3)), thawed(torch.ones(1, 3)))
    assert all(not parameter._backward_hooks for parameter in model.parameters())


def test_no_activation_is_kept_alive(tmp_path: Path) -> None:
    alive: list[weakref.ref[torch.Tensor]] = []

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(64, 64)

        def forward(self, x: torch.Tensor) -> Any:
            y = torch.tanh(self.fc(x))
            alive.append(weakref.ref(y))
            return self.fc(y)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.blocks = nn.ModuleList(Block() for _ in range(4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for block in self.blocks:
                x = checkpoint(block, x, use_reentrant=False)
            living.append(sum(reference() is not None for reference in alive))
            return x.square().mean()

    living: list[int] = []
    with align.Recorder(tmp_path / "run.h5"):
        train(Net(), lambda: torch.ones(8, 64), steps=1)
    assert living == [0]
    gc.collect()
    assert all(reference() is None for reference in alive)


def test_the_users_modes_do_not_see_our_operators(tmp_path: Path) -> None:
    class Counting(TorchFunctionMode):
        def __init__(self) -> None:
            super().__init__()
            self.calls = 0

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.calls += 1
            return func(*args, **(kwargs or {}))

    def counted() -> tuple[int, int]:
        torch.manual_seed(0)
        model = Loss(nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 8)))
        with Counting() as functions, FlopCounterMode(display=False) as flops:
            train(model, lambda: torch.ones(4, 8))
        return functions.calls, flops.get_total_flops()

    plain = counted()
    with align.Recorder(tmp_path / "run.h5", detail="tensors") as recorder:
        watched = counted()
    assert watched == plain
    assert recorder.steps_written == [0, 1]
    assert dict(recorder.troubles) == {}


def test_a_forked_child_leaves_the_file_alone(tmp_path: Path) -> None:
    model = Loss(nn.Linear(3, 2))
    with align.Recorder(tmp_path / "run.h5"):
        train(model, lambda: torch.ones(4, 3), steps=1)
        child = os.fork()
        if child == 0:
            train(model, lambda: torch.ones(4, 3), steps=1)
            os._exit(0)
        os.waitpid(child, 0)
        train(model, lambda: torch.ones(4, 3), steps=1)
    with align.open(tmp_path / "run.h5") as capture:
        assert capture.steps == [0, 1]
        assert capture.run.outcome == "finished"


# ---- names and slots


def test_arguments_and_results_are_named_by_their_paths(tmp_path: Path) -> None:
    @dataclass
    class Output:
        hidden: torch.Tensor
        extra: None = None

    class Pair(NamedTuple):
        first: torch.Tensor
        second: torch.Tensor

    class Inner(nn.Module):
        def forward(self, x: torch.Tensor, *, scale: torch.Tensor, flag: bool = True) -> Output:
            return Output(x * scale if flag else x)

    class Split(nn.Module):
        def forward(self, batch: dict[str, Any]) -> tuple[Pair, list[torch.Tensor]]:
            return Pair(batch["x"], batch["x"] + 1), [batch["x"] + 2]

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc, self.inner, self.split = nn.Linear(3, 3), Inner(), Split()

        def forward(self, batch: dict[str, Any]) -> Any:
            hidden = self.inner(self.fc(batch["x"]), scale=torch.tensor(2.0)).hidden
            pair, _ = self.split({"x": hidden, "note": "text"})
            return pair.second.square().mean()

    records = recorded(tmp_path, Net(), {"x": torch.ones(2, 3), "ids": torch.ones(2, dtype=torch.int64)})
    slots = {name: [slot for owner, slot in records if owner == name] for name, _ in records}
    assert slots == {
        "<Net>": ["input.0.x", "input.0.ids", "output.0"],
        "fc": ["input.0", "output.0"],
        "inner": ["input.0", "input.scale", "output.hidden"],
        "split": ["input.0.x", "output.0.first", "output.0.second", "output.1.0"],
    }
    inputs = recorded(tmp_path / "..", Net(), {"x": torch.ones(2, 3)}, Phase.INPUT, force=True)
    assert [(name, slot) for name, slot in inputs] == [("batch", "x")]


def test_a_module_that_is_no_member_is_named_below_its_caller(tmp_path: Path) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(3, 3)

        def forward(self, x: torch.Tensor) -> Any:
            return nn.Softmax(-1)(nn.Softmax(-1)(self.fc(x))).square().mean()

    with align.Recorder(tmp_path / "run.h5", steps="0"):
        train(Net(), lambda: torch.ones(2, 3))
    with align.open(tmp_path / "run.h5") as capture:
        calls = [r.key.call for r in capture.records(0) if (r.key.name, r.key.slot) == ("<Net>.<Softmax>", "output.0")]
    assert calls == [0, 1]


def test_wrappers_leave_no_trace_in_names(tmp_path: Path) -> None:
    plain = recorded(tmp_path, Loss(nn.Linear(3, 2)), torch.ones(4, 3))
    wrapped = recorded(tmp_path, nn.DataParallel(Loss(nn.Linear(3, 2))), torch.ones(4, 3), force=True)
    assert list(wrapped) == list(plain)


def test_a_head_that_shares_its_weights_belongs_to_the_root(tmp_path: Path) -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Embedding(7, 4)
            self.head = nn.Linear(4, 7, bias=False)
            self.head.weight = self.body.weight

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return functional.cross_entropy(self.head(self.body(ids)), ids)

    records = recorded(tmp_path, Model(), torch.arange(7))
    assert {name for name, _ in records} == {"<Model>", "body", "head"}


@pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning")  # torch's own, when it loads its compiler
def test_a_compiled_model_runs_eagerly_and_this_is_said(tmp_path: Path) -> None:
    try:
        records = recorded(tmp_path, Loss(nn.Linear(3, 2)), torch.ones(4, 3))
        with align.Recorder(tmp_path / "compiled.h5", steps="0") as recorder:
            train(torch.compile(Loss(nn.Linear(3, 2))), lambda: torch.ones(4, 3))  # type: ignore[arg-type]
        assert recorder.compile_seen
        with align.open(tmp_path / "compiled.h5") as capture:
            assert capture.run.flags["compile_switched_off"] is True
            forward = [r.key for r in capture.records(0) if r.key.phase is Phase.FORWARD]
        assert [(key.name, key.slot) for key in forward] == list(records)
    finally:
        torch._dynamo.config.disable = False


# ---- odd tensors and odd training


def test_tensors_of_other_kinds_are_recorded_by_what_is_known(tmp_path: Path) -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(5, 3, sparse=True)

        def forward(self, ids: torch.Tensor) -> Any:
            x = self.embed(ids)
            self.odd = Passed()(torch.zeros(0, 3), torch.ones(2, dtype=torch.complex64), torch.eye(2).to_sparse(), x)
            return x.square().mean()

    class Passed(nn.Module):
        def forward(self, *values: torch.Tensor) -> torch.Tensor:
            return values[-1]

    with align.Recorder(tmp_path / "run.h5", steps="0", detail="tensors") as recorder:
        train(Odd(), lambda: torch.tensor([1, 2, 2]))
    assert dict(recorder.troubles) == {}
    with align.open(tmp_path / "run.h5") as capture:
        found = {r.key.slot: r for r in capture.records(0) if r.key.name.endswith("<Passed>")}
        gradient = next(r for r in capture.records(0) if r.key.phase is Phase.GRADIENT)
    assert found["input.0"].shape == (0, 3)
    assert found["input.1"].dtype == "complex64"
    assert found["input.2"].shape == (2, 2)
    assert (found["input.2"].layout, found["input.2"].has_values) == ("sparse_coo", False)
    assert gradient.shape == (5, 3)
    assert (gradient.layout, gradient.stats.count if gradient.stats else 0) == ("sparse_coo", 9)


def test_values_are_those_of_the_time_of_the_hook(tmp_path: Path) -> None:
    class InPlace(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(3, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return functional.relu_(self.fc(x)).square().mean()

    torch.manual_seed(0)
    model = InPlace()
    expected = model.fc(torch.ones(2, 3)).detach()
    assert (expected < 0).any()
    with align.Recorder(tmp_path / "run.h5", steps="0", detail="tensors"):
        train(model, lambda: torch.ones(2, 3))
    with align.open(tmp_path / "run.h5") as capture:
        output = next(r for r in capture.records(0) if (r.key.name, r.key.slot) == ("fc", "output.0"))
        assert (capture.values(output) == expected.numpy()).all()


def test_an_inference_mode_teacher_is_recorded(tmp_path: Path) -> None:
    class Student(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(3, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with torch.inference_mode():
                target = teacher(x)
            return functional.mse_loss(self.fc(x), target.clone())

    teacher = nn.Linear(3, 3)
    with align.Recorder(tmp_path / "run.h5", steps="0:2", detail="tensors") as recorder:
        train(Student(), lambda: torch.ones(2, 3), steps=3)
    assert dict(recorder.troubles) == {}
    assert recorder.steps_written == [0, 1]


def test_a_failed_forward_that_the_script_catches_is_forgotten(tmp_path: Path) -> None:
    class Sometimes(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(3, 3)
            self.fail = True

        def forward(self, x: torch.Tensor) -> Any:
            y = self.fc(x)
            if self.fail:
                self.fail = False
                raise ValueError("once")
            return y.square().mean()

    model = Sometimes()
    with align.Recorder(tmp_path / "run.h5", steps="0") as recorder:
        with pytest.raises(ValueError, match="once"):
            model(torch.ones(2, 3))
        train(model, lambda: torch.ones(2, 3))
    assert dict(recorder.troubles) == {}
    with align.open(tmp_path / "run.h5") as capture:
        outputs = [r.key.call for r in capture.records(0) if (r.key.name, r.key.slot) == ("fc", "output.0")]
        assert outputs == [0]
        assert capture.run.outcome == "finished"


def test_two_forwards_before_one_backward_are_two_calls(tmp_path: Path) -> None:
    model = nn.Linear(3, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with align.Recorder(tmp_path / "run.h5") as recorder:
        for _ in range(2):
            first = model(torch.ones(2, 3)).mean()
            loss = first + model(torch.zeros(2, 3)).mean() + model(torch.ones(1, 3)).mean()
            del first
            loss.backward()
            optimizer.step()
    assert dict(recorder.troubles) == {}
    with align.open(tmp_path / "run.h5") as capture:
        for step in (0, 1):
            records = capture.records(step)
            assert [r.key.call for r in records if r.key.slot == "output.0"] == [0, 1, 2]
            assert sorted(r.key.call for r in records if r.key.slot == "grad_output.0") == [0, 1, 2]


def test_weights_loaded_after_a_first_look_are_the_initial_ones(tmp_path: Path) -> None:
    model = nn.Linear(3, 3)
    with align.Recorder(tmp_path / "run.h5", steps="0", detail="tensors"):
        model(torch.ones(1, 3))
        with torch.no_grad():
            model.weight.fill_(0.25)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model(torch.ones(1, 3)).sum().backward()
        optimizer.step()
    with align.open(tmp_path / "run.h5") as capture:
        weight = next(r for r in capture.records(INIT_STEP) if r.key.slot == "weight")
        assert (capture.values(weight) == 0.25).all()


def test_buffers_are_those_before_the_first_forward(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with align.Recorder(tmp_path / "run.h5", steps="0", detail="tensors"):
        (model(torch.eye(3)).sum() + model(torch.ones(2, 3)).sum()).backward()
        optimizer.step()
    with align.open(tmp_path / "run.h5") as capture:
        counter = next(r for r in capture.records(INIT_STEP) if r.key.slot == "num_batches_tracked")
        assert capture.values(counter) == 0


def test_without_any_torch_optimizer_each_backward_is_a_step(tmp_path: Path) -> None:
    model = nn.Linear(3, 1)
    with align.Recorder(tmp_path / "run.h5", steps="0:") as recorder:
        for _ in range(3):
            model.zero_grad()
            model(torch.ones(2, 3)).mean().backward()
            with torch.no_grad():
                for parameter in model.parameters():
                    assert parameter.grad is not None
                    parameter.sub_(0.1 * parameter.grad)
    assert recorder.steps_written == [0, 1, 2]


# ---- refusals


def test_one_recorder_at_a_time(tmp_path: Path) -> None:
    with align.Recorder(tmp_path / "a.h5"):
        message = f"Cannot record into '{tmp_path / 'b.h5'}': '{tmp_path / 'a.h5'}' is being recorded. Close it first."
        with pytest.raises(CaptureError) as refused, align.Recorder(tmp_path / "b.h5"):
            pass
        assert str(refused.value) == message


def test_an_unknown_detail_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        align.Recorder(tmp_path / "a.h5", detail="all")
    assert str(refused.value) == "Cannot capture at detail 'all': choose stats, sketch or tensors."


# ---- what scripts do that we did not think of at first


def test_a_thread_that_only_evaluates_is_left_alone(tmp_path: Path) -> None:
    wrong: list[str] = []
    done = threading.Event()

    def evaluate() -> None:
        metric = nn.Linear(3, 3)
        while not done.is_set():
            functional.mse_loss(metric(torch.ones(2, 3)), torch.zeros(2, 3))
            if not torch.is_grad_enabled():
                wrong.append("worker")

    thread = threading.Thread(target=evaluate)
    with align.Recorder(tmp_path / "run.h5", steps="0:8") as recorder:
        thread.start()
        losses = train(Loss(nn.Linear(3, 2)), lambda: torch.ones(4, 3), steps=8)
        done.set()
        thread.join()
        assert torch.is_grad_enabled()
    assert (wrong, len(losses)) == ([], 8)
    assert dict(recorder.troubles) == {}


def test_of_several_training_threads_the_first_is_captured_and_this_is_said(tmp_path: Path) -> None:
    def work() -> None:
        train(Loss(nn.Linear(3, 2)), lambda: torch.ones(4, 3), steps=12)

    with align.Recorder(tmp_path / "run.h5", steps="0:") as recorder:
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert set(recorder.troubles) <= {"Another thread trains too: only the first one that did is captured"}
    assert recorder.steps_written == list(range(12))


def test_backward_takes_any_iterable_of_tensors(tmp_path: Path) -> None:
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with align.Recorder(tmp_path / "run.h5", steps="0") as recorder:
        output = model(torch.ones(4, 3))
        parts: Any = (part for part in (output.sum(), output.mean()))
        torch.autograd.backward(parts)
        optimizer.step()
        assert model.weight.grad is not None
    assert dict(recorder.troubles) == {}
    with align.open(tmp_path / "run.h5") as capture:
        assert len([r for r in capture.records(0) if r.key.phase is Phase.LOSS]) == 2


def test_an_optimizer_whose_step_takes_a_number_gets_it(tmp_path: Path) -> None:
    class Scaled(torch.optim.SGD):
        def step(self, factor: Any = None) -> None:  # type: ignore[override]
            assert factor == 0.5
            super().step()

    model = nn.Linear(3, 2)
    optimizer = Scaled(model.parameters(), lr=0.1)
    with align.Recorder(tmp_path / "run.h5", steps="0") as recorder:
        model(torch.ones(4, 3)).sum().backward()
        optimizer.step(0.5)
    assert dict(recorder.troubles) == {}


def test_scripted_and_pickled_losses_work_as_before(tmp_path: Path) -> None:
    class Criterion(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return functional.cross_entropy(x, y)

    model = nn.Linear(3, 2)
    model.loss = functional.cross_entropy  # type: ignore[assignment]
    with align.Recorder(tmp_path / "run.h5", steps="0") as recorder:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            scripted = torch.jit.script(Criterion())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scripted(model(torch.ones(4, 3)), torch.tensor([0, 1, 0, 1])).backward()
        optimizer.step()
        assert pickle.loads(pickle.dumps(model)).loss is functional.cross_entropy
    assert dict(recorder.troubles) == {}
    with align.open(tmp_path / "run.h5") as capture:
        target = next(r for r in capture.records(0) if r.key.slot == "target")
        assert target.hash == hash_bytes(np.array([0, 1, 0, 1]))


def test_targets_packed_by_hooks_of_the_user_are_not_unpacked(tmp_path: Path) -> None:
    unpacked: list[int] = []

    def unpack(tensor: torch.Tensor) -> torch.Tensor:
        unpacked.append(1)
        return tensor

    def run() -> int:
        unpacked.clear()
        model = nn.Linear(3, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpack):
            loss = functional.cross_entropy(model(torch.ones(4, 3)), torch.tensor([0, 1, 0, 1]))
        loss.backward()
        optimizer.step()
        return len(unpacked)

    plain = run()
    with align.Recorder(tmp_path / "run.h5", steps="0"):
        assert run() == plain


def test_what_a_signal_handler_raises_is_the_scripts(tmp_path: Path) -> None:
    class LateError(Exception):
        pass

    def handler(*_: Any) -> None:
        raise LateError

    class Items(dict[str, Any]):
        def items(self) -> Any:
            # While align looks through the output, the alarm rings.
            signal.raise_signal(signal.SIGUSR1)
            return super().items()

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(3, 3)

        def forward(self, x: torch.Tensor) -> Any:
            return Items(x=self.fc(x))

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with align.Recorder(tmp_path / "run.h5") as recorder, pytest.raises(LateError):
            Net()(torch.ones(1, 3))
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert dict(recorder.troubles) == {}


def test_values_that_change_behind_torchs_back_are_seen(tmp_path: Path) -> None:
    buffer = torch.zeros(2, 3)
    model = nn.Linear(3, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with align.Recorder(tmp_path / "run.h5", steps="0", detail="tensors"):
        for value in (1.0, 2.0):
            buffer.numpy()[:] = value
            model(buffer).sum().backward()
        assert model.bias.grad is not None
        model.bias.grad.data.neg_()
        optimizer.step()
    with align.open(tmp_path / "run.h5") as capture:
        batches = [r for r in capture.records(0) if r.key.phase is Phase.INPUT]
        assert [capture.values(batch)[0, 0] for batch in batches] == [1.0, 2.0]
        update = next(r for r in capture.records(0) if (r.key.phase, r.key.slot) == (Phase.UPDATE, "bias"))
        assert (capture.values(update) == -4.0).all()


def test_two_roots_of_one_class_have_two_names(tmp_path: Path) -> None:
    first, second = nn.Linear(3, 3), nn.Linear(3, 1)
    optimizers_of_both = [torch.optim.SGD(module.parameters(), lr=0.1) for module in (first, second)]
    with align.Recorder(tmp_path / "run.h5", steps="0"):
        second(first(torch.ones(2, 3))).sum().backward()
        for optimizer in optimizers_of_both:
            optimizer.step()
    with align.open(tmp_path / "run.h5") as capture:
        assert {r.key.name for r in capture.records(0) if r.key.phase is Phase.GRADIENT} == {"<Linear>", "<Linear#2>"}
        assert {r.key.call for r in capture.records(0)} == {0}


def test_modules_that_change_places_take_the_name_of_their_place(tmp_path: Path) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)

        def forward(self, x: torch.Tensor) -> Any:
            return self.b(self.a(x)).sum()

    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with align.Recorder(tmp_path / "run.h5", steps="0:2"):
        for _ in range(2):
            model(torch.ones(2, 3)).backward()
            optimizer.step()
            model.a, model.b = model.b, model.a
    with align.open(tmp_path / "run.h5") as capture:
        for step in (0, 1):
            forward = [r.key.name for r in capture.records(step) if r.key.slot == "output.0"]
            assert forward == ["a", "b", "<Net>"]


def test_a_second_backward_through_one_call_is_no_other_call(tmp_path: Path) -> None:
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with align.Recorder(tmp_path / "run.h5", steps="0"):
        outputs = model(torch.ones(2, 3, requires_grad=True)), model(torch.zeros(2, 3, requires_grad=True))
        torch.autograd.grad(outputs[0].sum(), model.weight, retain_graph=True)
        (outputs[0].sum() + outputs[1].sum()).backward()
        optimizer.step()
    with align.open(tmp_path / "run.h5") as capture:
        backward = sorted((r.key.call, r.key.slot) for r in capture.records(0) if r.key.phase is Phase.BACKWARD)
    once = ["grad_input.0", "grad_output.0"]
    assert backward == [*((0, slot) for slot in [*once, "grad_output.0.again"]), *((1, slot) for slot in once)]


def test_containers_that_hold_themselves_are_entered_once(tmp_path: Path) -> None:
    class Ring(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(3, 3)

        def forward(self, x: torch.Tensor) -> Any:
            ring: list[Any] = [self.fc(x)]
            ring.extend([ring, ring, ring])
            return ring

    model = Ring()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with align.Recorder(tmp_path / "run.h5", steps="0"):
        model(torch.ones(2, 3))[0].sum().backward()
        optimizer.step()
    with align.open(tmp_path / "run.h5") as capture:
        slots = [r.key.slot for r in capture.records(0) if r.key.name == "<Ring>" and r.key.phase is Phase.FORWARD]
    assert slots == ["input.0", "output.0"]


def test_a_recursive_model_meets_the_recursion_limit_no_sooner(tmp_path: Path) -> None:
    class Tree(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(1, 1)

        def forward(self, x: torch.Tensor, depth: int) -> Any:
            return self.fc(x) if depth == 0 else self(x, depth - 1) + 1

    model, depth = Tree(), 10
    with suppress(RecursionError):
        while True:
            model(torch.ones(1, 1), depth + 5)
            depth += 5
    with align.Recorder(tmp_path / "run.h5", steps="0") as recorder:
        model(torch.ones(1, 1), depth)
    assert dict(recorder.troubles) == {}


@pytest.mark.parametrize("steps", [3, range(3)])
def test_steps_that_are_no_text_are_refused(tmp_path: Path, steps: Any) -> None:
    with pytest.raises(UsageError) as refused:
        align.Recorder(tmp_path / "run.h5", steps=steps)
    assert str(refused.value) == (
        f"Cannot read the steps '{steps}': give ranges such as 0:3 (steps 0, 1 and 2), single steps such as 100, "
        "or both as 0:3,100."
    )


def test_a_closed_recorder_is_not_opened_again(tmp_path: Path) -> None:
    recorder = align.Recorder(tmp_path / "run.h5")
    with recorder:
        pass
    with pytest.raises(CaptureError) as refused, recorder:
        pass
    assert str(refused.value) == (
        f"Cannot record into '{tmp_path / 'run.h5'}' again: this recorder was closed. Make a new one."
    )
