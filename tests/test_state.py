"""The state of optimizers and generators, modes, settings and targets, as files hold them after real trainings."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import align
from align.hooks.generators import generator_states
from align.records import FactValue, ModuleInfo, Phase, TensorRecord
from tests.seen import Values, assert_same, facts, facts_of, record, records, values

FEATURES = 5
TASK_SEED = 3


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(FEATURES, 7)
        self.norm = nn.LayerNorm(7)
        self.out = nn.Linear(7, 2)

    def forward(self, x: torch.Tensor) -> Any:
        return self.out(torch.tanh(self.norm(self.fc(x))))


def batch(step: int) -> torch.Tensor:
    return torch.randn(6, FEATURES, generator=torch.Generator().manual_seed(100 + step))


def net() -> Net:
    torch.manual_seed(TASK_SEED)
    return Net()


# ---- the state of optimizers

Make = Callable[[list[nn.Parameter]], torch.optim.Optimizer]
OPTIMIZERS: dict[str, Make] = {
    "AdamW": lambda parameters: torch.optim.AdamW(parameters, lr=0.1),
    "AMSGrad": lambda parameters: torch.optim.Adam(parameters, lr=0.1, amsgrad=True),
    "SGD with momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    "Adagrad": lambda parameters: torch.optim.Adagrad(parameters, lr=0.1),
    "fused AdamW": lambda parameters: torch.optim.AdamW(parameters, lr=0.1, fused=True),
    "LBFGS": lambda parameters: torch.optim.LBFGS(parameters, lr=0.1, max_iter=3),
}
KEPT: dict[str, set[str]] = {
    "AdamW": {"exp_avg", "exp_avg_sq", "step"},
    "AMSGrad": {"exp_avg", "exp_avg_sq", "max_exp_avg_sq", "step"},
    "SGD with momentum": {"momentum_buffer"},
    "Adagrad": {"sum", "step"},
    "fused AdamW": {"exp_avg", "exp_avg_sq", "step"},
    "LBFGS": {"d", "prev_flat_grad", "H_diag", "t", "prev_loss", "n_iter", "func_evals"},
}
"""The entries of a parameter's state that are tensors or numbers; LBFGS has lists too, which are not recorded."""

Numbers = dict[tuple[str, str], FactValue]


def named_state(model: nn.Module, optimizer: torch.optim.Optimizer, suffix: str = "") -> tuple[Values, Numbers]:
    """What the optimizer itself holds now: arrays, and single numbers."""
    arrays: Values = {}
    numbers: Numbers = {}
    for path, parameter in model.named_parameters():
        owner, _, local = path.rpartition(".")
        for key, value in optimizer.state.get(parameter, {}).items():
            if isinstance(value, torch.Tensor) and value.dim():
                arrays[owner, f"{local}.{key}{suffix}"] = value.detach().numpy().copy()
            elif isinstance(value, (torch.Tensor, int, float)):
                numbers[owner, f"{local}.{key}{suffix}"] = value.item() if isinstance(value, torch.Tensor) else value
    return arrays, numbers


def update(model: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> None:
    def closure() -> float:
        optimizer.zero_grad()
        loss = model(batch(step)).square().mean()
        loss.backward()
        return float(loss.detach())

    if isinstance(optimizer, torch.optim.LBFGS):
        optimizer.step(closure)
    else:
        closure()
        optimizer.step()


def state_facts(capture: Any, step: int) -> Numbers:
    found = facts(capture, step, Phase.OPTIMIZER)
    return {
        (name, slot): value
        for (name, slot), value in found.items()
        if not name.startswith("group") and not slot.endswith(".group") and name != "optimizers"
    }


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_file_holds_what_the_optimizer_holds_after_each_step(tmp_path: Path, name: str) -> None:
    def train() -> list[tuple[Values, Numbers]]:
        model = net()
        optimizer = OPTIMIZERS[name](list(model.parameters()))
        states = []
        for step in range(2):
            update(model, optimizer, step)
            states.append(named_state(model, optimizer))
        return states

    states = record(tmp_path / "a.h5", train, steps="0:2", detail="tensors")
    with align.open(tmp_path / "a.h5") as capture:
        for step, (arrays, numbers) in enumerate(states):
            assert {slot.split(".")[1] for _, slot in (*arrays, *numbers)} == KEPT[name]
            found = values(capture, step, Phase.OPTIMIZER)
            assert_same({key: array for key, array in found.items() if not key[1].endswith(".before")}, arrays)
            known = state_facts(capture, step)
            assert {key: value for key, value in known.items() if not key[1].endswith(".before")} == numbers


@pytest.mark.parametrize("name", ["AdamW", "SGD with momentum", "LBFGS"])
def test_the_state_before_a_step_is_there_where_the_step_before_is_not(tmp_path: Path, name: str) -> None:
    def train() -> list[tuple[Values, Numbers]]:
        model = net()
        optimizer = OPTIMIZERS[name](list(model.parameters()))
        before = []
        for step in range(4):
            before.append(named_state(model, optimizer, ".before"))
            update(model, optimizer, step)
        return before

    before = record(tmp_path / "a.h5", train, steps="0,1,3", detail="tensors")
    with align.open(tmp_path / "a.h5") as capture:
        for step in capture.steps:
            arrays, numbers = before[step] if step == 3 else ({}, {})
            if name == "LBFGS" and step == 0:  # it makes its counters before it calls the closure
                numbers = {("fc", "weight.func_evals.before"): 0, ("fc", "weight.n_iter.before"): 0}
            found = values(capture, step, Phase.OPTIMIZER)
            assert_same({key: array for key, array in found.items() if key[1].endswith(".before")}, arrays)
            known = state_facts(capture, step)
            assert {key: value for key, value in known.items() if key[1].endswith(".before")} == numbers


def test_a_state_that_is_loaded_before_step_0_is_there_as_before(tmp_path: Path) -> None:
    first = net()
    optimizer = torch.optim.AdamW(first.parameters(), lr=0.1)
    for step in range(2):
        update(first, optimizer, step)
    weights, state = first.state_dict(), optimizer.state_dict()
    arrays, numbers = named_state(first, optimizer, ".before")
    del optimizer

    def resume() -> None:
        model = net()
        model.load_state_dict(weights)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        optimizer.load_state_dict(state)
        update(model, optimizer, 2)

    record(tmp_path / "a.h5", resume, steps="0", detail="tensors")
    with align.open(tmp_path / "a.h5") as capture:
        found = values(capture, 0, Phase.OPTIMIZER)
        assert_same({key: array for key, array in found.items() if key[1].endswith(".before")}, arrays)
        known = state_facts(capture, 0)
        assert {key: value for key, value in known.items() if key[1].endswith(".before")} == numbers
        assert set(numbers.values()) == {2.0}
        assert known["fc", "weight.step"] == 3.0


def test_sketches_of_states_are_those_of_their_values(tmp_path: Path) -> None:
    def train() -> torch.Tensor:
        model = nn.Linear(40, 30)
        optimizer = torch.optim.Adam(model.parameters())
        model(torch.ones(2, 40)).square().sum().backward()
        optimizer.step()
        found: torch.Tensor = optimizer.state[model.weight]["exp_avg_sq"]
        return found

    moment = record(tmp_path / "a.h5", train, steps="0").double().numpy()
    with align.open(tmp_path / "a.h5") as capture:
        found = records(capture, 0, Phase.OPTIMIZER)["<Linear>", "weight.exp_avg_sq"]
    assert found.stats is not None
    assert found.stats.total == pytest.approx(moment.sum(), rel=1e-6)
    assert found.stats.total_squares == pytest.approx(np.square(moment).sum(), rel=1e-6)
    assert found.sketch is not None
    assert len(found.sketch) == 251


# ---- the groups of optimizers


def test_groups_are_known_by_the_names_of_their_parameters(tmp_path: Path) -> None:
    def train() -> None:
        model = net()
        groups = [
            {"params": [model.fc.weight, model.out.weight], "weight_decay": 0.5},
            {"params": [model.fc.bias, model.out.bias, *model.norm.parameters()], "weight_decay": 0.0, "lr": 0.25},
        ]
        optimizer = torch.optim.AdamW(groups, lr=0.125, betas=(0.5, 0.75))
        update(model, optimizer, 0)

    record(tmp_path / "a.h5", train, steps="0")
    with align.open(tmp_path / "a.h5") as capture:
        found = facts(capture, 0, Phase.OPTIMIZER)
    assert {key: value for key, value in found.items() if key[1].endswith(".group")} == {
        ("fc", "weight.group"): "group0",
        ("out", "weight.group"): "group0",
        ("fc", "bias.group"): "group1",
        ("out", "bias.group"): "group1",
        ("norm", "weight.group"): "group1",
        ("norm", "bias.group"): "group1",
    }
    for group, decay, rate in (("group0", 0.5, 0.125), ("group1", 0.0, 0.25)):
        assert found[group, "class"] == "AdamW"
        assert found[group, "weight_decay"] == decay
        assert found[group, "lr"] == rate
        assert (found[group, "betas.0"], found[group, "betas.1"]) == (0.5, 0.75)
        assert found[group, "amsgrad"] is False
        assert found[group, "fused"] is None


@pytest.mark.parametrize("as_tensor", [False, True])
def test_the_learning_rate_of_each_step_is_the_one_that_was_used(tmp_path: Path, as_tensor: bool) -> None:
    def train() -> list[float]:
        model = net()
        rate = torch.tensor(0.5) if as_tensor else 0.5
        optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
        used = []
        for step in range(5):
            used.append(float(optimizer.param_groups[0]["lr"]))
            update(model, optimizer, step)
            scheduler.step()
        return used

    used = record(tmp_path / "a.h5", train, steps="0:3")
    assert used == [0.5, 0.25, 0.125, 0.0625, 0.03125]
    with align.open(tmp_path / "a.h5") as capture:
        found = [facts_of(capture, step, Phase.OPTIMIZER, "group0") for step in capture.steps]
        assert [one["lr"] for one in found] == used[:3]
        assert [one["initial_lr"] for one in found] == [0.5] * 3
        assert [row.learning_rate for row in capture.timeline] == used


def test_the_groups_of_a_second_optimizer_have_names_of_their_own(tmp_path: Path) -> None:
    def train() -> None:
        model = net()
        first = torch.optim.AdamW([*model.fc.parameters(), *model.norm.parameters()], lr=0.1)
        second = torch.optim.SGD(model.out.parameters(), lr=0.2, momentum=0.9)
        for step in range(2):
            model.zero_grad()
            model(batch(step)).square().mean().backward()
            second.step()
            first.step()

    record(tmp_path / "a.h5", train, steps="0:2")
    with align.open(tmp_path / "a.h5") as capture:
        for step in capture.steps:
            found = facts(capture, step, Phase.OPTIMIZER)
            assert {name: value for (name, slot), value in found.items() if slot == "class"} == {
                "group0": "AdamW",
                "<SGD#2>.group0": "SGD",
            }
            assert (found["group0", "lr"], found["<SGD#2>.group0", "lr"]) == (0.1, 0.2)
            assert found["out", "weight.group"] == "<SGD#2>.group0"
            assert found["norm", "bias.group"] == "group0"
            assert ("out", "weight.momentum_buffer") in records(capture, step, Phase.OPTIMIZER)


def test_a_phase_that_is_not_asked_for_leaves_nothing(tmp_path: Path) -> None:
    def train() -> None:
        model = net()
        update(model, torch.optim.AdamW(model.parameters()), 0)

    record(tmp_path / "a.h5", train, steps="0", phases=("forward", "param"))
    with align.open(tmp_path / "a.h5") as capture:
        assert {one.key.phase for one in capture.records(0)} == {Phase.FORWARD, Phase.PARAM}
        assert {one.key.phase for one in capture.facts(0)} == {Phase.FORWARD}


def test_modules_that_are_not_asked_for_have_no_state(tmp_path: Path) -> None:
    def train() -> None:
        model = net()
        update(model, torch.optim.AdamW(model.parameters()), 0)

    record(tmp_path / "a.h5", train, steps="0", modules=("fc",))
    with align.open(tmp_path / "a.h5") as capture:
        assert {name for name, _ in records(capture, 0, Phase.OPTIMIZER)} == {"fc"}
        assert {name for name, _ in facts(capture, 0, Phase.OPTIMIZER)} == {"group0", "fc", "optimizers"}


# ---- generators


def seeded_run(path: Path, extra: Callable[[], Any] | None = None) -> list[dict[str, int | None]]:
    """The hashes of all generators at the start of three steps; `extra` is called in step 1."""

    def train() -> None:
        random.seed(1)
        np.random.seed(2)  # noqa: NPY002  scripts seed the global generator
        torch.manual_seed(3)
        model = nn.Sequential(nn.Linear(FEATURES, 4), nn.Dropout(0.5))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(3):
            update(model, optimizer, step)
            random.gauss(0.0, 1.0)
            np.random.normal()  # noqa: NPY002
            if step == 1 and extra is not None:
                extra()

    record(path, train, steps="0:3")
    with align.open(path) as capture:
        return [{name: one.hash for (name, _), one in records(capture, step, Phase.RNG).items()} for step in range(3)]


@pytest.fixture(scope="module")
def plain_run(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, int | None]]:
    return seeded_run(tmp_path_factory.mktemp("plain") / "a.h5")


def test_equal_runs_have_equal_generators_in_every_step(tmp_path: Path, plain_run: list[dict[str, int | None]]) -> None:
    first = seeded_run(tmp_path / "b.h5")
    assert first == plain_run
    assert set(first[0]) == {"python", "numpy", "torch"}
    for name in first[0]:
        assert len({hashes[name] for hashes in first}) == 3, name


@pytest.mark.parametrize(
    ("name", "draw"),
    [
        ("python", random.random),
        ("python", lambda: random.gauss(0.0, 1.0)),
        ("numpy", lambda: np.random.normal()),  # noqa: NPY002, PLW0108
        ("numpy", lambda: np.random.randint(5)),  # noqa: NPY002
        ("torch", lambda: torch.rand(1)),
        ("torch", lambda: torch.randn(1)),
    ],
)
def test_one_draw_more_changes_that_generator_from_the_next_step_on(
    tmp_path: Path, plain_run: list[dict[str, int | None]], name: str, draw: Callable[[], Any]
) -> None:
    plain, more = plain_run, seeded_run(tmp_path / "b.h5", draw)
    assert plain[:2] == more[:2]
    assert {one for one in plain[2] if plain[2][one] != more[2][one]} == {name}


def test_reading_the_generators_draws_nothing(tmp_path: Path) -> None:
    random.seed(4)
    random.gauss(0.0, 1.0)
    np.random.seed(5)  # noqa: NPY002
    np.random.normal()  # noqa: NPY002
    torch.manual_seed(6)
    first = {name: state.clone() for name, state in generator_states("cpu")}
    again = dict(generator_states("cpu"))
    assert all(torch.equal(first[name], again[name]) for name in first)

    def drawn() -> list[float]:
        return [random.gauss(0.0, 1.0), random.random(), np.random.normal(), float(torch.randn(()))]  # noqa: NPY002

    states = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    unwatched = drawn()
    random.setstate(states[0])
    np.random.set_state(states[1])  # noqa: NPY002
    torch.set_rng_state(states[2])
    model = Net()
    torch.set_rng_state(states[2])
    record(tmp_path / "a.h5", lambda: update(model, torch.optim.SGD(model.parameters(), lr=0.1), 0), steps="0")
    assert drawn() == unwatched


# ---- configuration and modes


class Mixed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(4, eps=0.25)
        self.drop = nn.Dropout(p=0.125)
        self.act = nn.GELU(approximate="tanh")
        self.proj = nn.Linear(4, 3, bias=False)
        self.activation = functional.silu
        self.scales = [1, 2.5]
        self.dtype_of_sums = torch.bfloat16
        self._hidden = "not public"
        self.table = torch.ones(3)

    def forward(self, x: torch.Tensor) -> Any:
        return self.activation(self.proj(self.act(self.drop(self.norm(x)))))


def modules_of(path: Path, model: nn.Module, x: Any) -> dict[str, ModuleInfo]:
    def train() -> None:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        found = model(x)
        (found if isinstance(found, torch.Tensor) else found.logits).square().mean().backward()
        optimizer.step()

    record(path, train, steps="0")
    with align.open(path) as capture:
        return capture.modules


def test_settings_of_modules_are_kept(tmp_path: Path) -> None:
    found = modules_of(tmp_path / "a.h5", Mixed(), torch.ones(2, 4))
    assert found["norm"].config == {"elementwise_affine": True, "eps": 0.25, "normalized_shape": [4]}
    assert found["drop"].config == {"inplace": False, "p": 0.125}
    assert found["act"].config == {"approximate": "tanh"}
    assert found["proj"].config == {"in_features": 4, "out_features": 3}
    assert found["<Mixed>"].config == {"activation": "silu", "dtype_of_sums": "bfloat16", "scales": [1, 2.5]}


def test_a_models_configuration_is_kept_once_at_the_root(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(n_layer=1, n_head=2, n_embd=8, n_positions=16, vocab_size=11, resid_pdrop=0.0)
    found = modules_of(tmp_path / "a.h5", transformers.GPT2LMHeadModel(config), torch.zeros(1, 4, dtype=torch.long))
    root = found["<GPT2LMHeadModel>"].config
    assert root["config.activation_function"] == "gelu_new"
    assert root["config.layer_norm_epsilon"] == 1e-5
    assert root["config.resid_pdrop"] == 0.0
    below = [name for name, module in found.items() if any(key.startswith("config.") for key in module.config)]
    assert below == ["<GPT2LMHeadModel>"]
    assert found["transformer.h.0.ln_1"].config["eps"] == 1e-5


class Unreadable:
    def to_dict(self) -> dict[str, Any]:
        raise RuntimeError("This configuration cannot be read.")


class Configured(nn.Module):
    """A model whose settings are odd."""

    def __init__(self, *, unreadable: bool) -> None:
        super().__init__()
        self.fc = nn.Linear(FEATURES, 2)
        self.endless: list[Any] = [1]
        if unreadable:
            self.config = Unreadable()
        else:
            self.endless.append(self.endless)

    def forward(self, x: torch.Tensor) -> Any:
        return self.fc(x)


@pytest.mark.parametrize("unreadable", [True, False])
def test_settings_that_cannot_be_read_cost_nothing_else(tmp_path: Path, unreadable: bool) -> None:
    model = Configured(unreadable=unreadable)
    with align.Recorder(tmp_path / "a.h5", steps="0"):
        update(model, torch.optim.SGD(model.parameters(), lr=0.1), 0)
    with align.open(tmp_path / "a.h5") as capture:
        assert ("<Configured>", "grad_output.0") in records(capture, 0, Phase.BACKWARD)
        assert "<Configured>" in capture.modules


def test_modes_are_told_of_the_root_and_where_they_differ(tmp_path: Path) -> None:
    def train() -> None:
        model = Mixed()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step, (evaluated, trained) in enumerate([((), ()), (("drop", "norm"), ()), (("",), ("act",))]):
            model.train()
            for name in evaluated:
                model.get_submodule(name).eval()
            for name in trained:
                model.get_submodule(name).train()
            model(torch.ones(2, 4) + step).sum().backward()
            optimizer.step()

    record(tmp_path / "a.h5", train, steps="0:3")
    with align.open(tmp_path / "a.h5") as capture:
        assert [facts(capture, step, Phase.FORWARD) for step in capture.steps] == [
            {("<Mixed>", "training"): True},
            {("<Mixed>", "training"): True, ("drop", "training"): False, ("norm", "training"): False},
            {("<Mixed>", "training"): False, ("act", "training"): True},
        ]


# ---- targets


def test_valid_targets_are_counted_in_each_micro_step(tmp_path: Path) -> None:
    targets = [torch.tensor([1, -100, 0, -100]), torch.tensor([-100, -100, -100, 2])]

    def train() -> None:
        model = nn.Linear(FEATURES, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for target in targets:
            (functional.cross_entropy(model(batch(0)[:4]), target) / 2).backward()
        optimizer.step()

    record(tmp_path / "a.h5", train, steps="0")
    with align.open(tmp_path / "a.h5") as capture:
        for micro, valid in enumerate([2, 1]):
            found = facts_of(capture, 0, Phase.LOSS, "loss", micro=micro)
            assert found == {"ignore_index": -100, "valid_targets": valid, "factor": 0.5}


def test_an_ignored_index_of_ones_own_is_known(tmp_path: Path) -> None:
    def train() -> None:
        model = nn.Linear(FEATURES, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        target = torch.tensor([2, 1, 2, 0, 2, 1])
        functional.nll_loss(torch.log_softmax(model(batch(0)), -1), target, ignore_index=2).backward()
        optimizer.step()

    record(tmp_path / "a.h5", train, steps="0")
    with align.open(tmp_path / "a.h5") as capture:
        assert facts_of(capture, 0, Phase.LOSS, "loss") == {"ignore_index": 2, "valid_targets": 3}


def test_valid_targets_of_each_of_two_losses_are_told(tmp_path: Path) -> None:
    def train() -> None:
        model = nn.Linear(FEATURES, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        logits = model(batch(0)[:4])
        first = functional.cross_entropy(logits, torch.tensor([1, -100, -100, 0]))
        second = functional.cross_entropy(logits, torch.tensor([-100, 1, 2, 0]))
        (first + second).backward()
        optimizer.step()

    record(tmp_path / "a.h5", train, steps="0")
    with align.open(tmp_path / "a.h5") as capture:
        found = [one.value for one in capture.facts(0) if one.key.slot == "valid_targets"]
    assert sorted(int(value or 0) for value in found) == [2, 3]


# ---- exponents

CODES = {"float16": (np.uint16, 10, 32), "bfloat16": (np.uint16, 7, 256), "float32": (np.uint32, 23, 256)}


def counted(raw: Any, dtype: str) -> list[int]:
    """How many elements have each exponent code, from their bits."""
    word, mantissa, codes = CODES[dtype]
    found: list[int] = np.bincount((raw.view(word).reshape(-1) >> mantissa) & (codes - 1), minlength=codes).tolist()
    return found


def half_run(path: Path, dtype: torch.dtype, **options: Any) -> list[tuple[TensorRecord, Any]]:
    """The records of a training in a 16-bit dtype with their raw values."""

    def train() -> None:
        model = nn.Linear(FEATURES, 40).to(dtype)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        weights = torch.logspace(-8, 3, 40).to(dtype)
        (model(batch(0).to(dtype)) * weights).sum().backward()
        optimizer.step()

    torch.manual_seed(0)
    record(path, train, steps="0", detail="tensors", **options)
    with align.open(path) as capture:
        return [(one, capture.raw_values(one)) for one in capture.records(0) if one.dtype in CODES]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_exponents_of_16_bit_gradients_are_counted(tmp_path: Path, dtype: torch.dtype) -> None:
    found = half_run(tmp_path / "a.h5", dtype)
    gradients = {Phase.BACKWARD, Phase.GRADIENT, Phase.UPDATE}
    assert {one.key.phase for one, _ in found if one.exponents is not None} == gradients
    for one, raw in found:
        if one.key.phase in gradients:
            assert one.exponents is not None, one.key
            assert one.exponents.tolist() == counted(raw, one.dtype), one.key
    weight = next(one for one, _ in found if one.key.phase is Phase.GRADIENT and one.key.slot == "weight")
    assert weight.exponents is not None
    assert np.count_nonzero(weight.exponents) > 10


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_exponents_of_all_floats_are_counted_where_that_is_asked_for(tmp_path: Path, dtype: torch.dtype) -> None:
    found = half_run(tmp_path / "a.h5", dtype, exponents=True)
    assert {one.key.phase for one, _ in found} > {Phase.INPUT, Phase.FORWARD, Phase.BACKWARD, Phase.PARAM}
    for one, raw in found:
        assert one.exponents is not None, one.key
        assert one.exponents.tolist() == counted(raw, one.dtype), one.key


def test_exponents_of_32_bit_gradients_are_not_counted_unasked(tmp_path: Path) -> None:
    assert all(one.exponents is None for one, _ in half_run(tmp_path / "a.h5", torch.float32))
