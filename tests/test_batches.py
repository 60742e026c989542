"""What DataLoaders hand out: which batch belongs to which step, what is known of it, and that nothing changes."""

from __future__ import annotations

import gc
import random
import weakref
from collections import namedtuple
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset
from torch.utils.data.distributed import DistributedSampler

import align
from align.hashing import hash_bytes, row_hashes
from align.hooks.nesting import tensors_in, with_tensors
from align.records import FactValue, Phase, TensorRecord
from tests.running import WORKLOADS
from tests.running import align as command

LOADER = "<DataLoader>"
X = torch.arange(96.0).reshape(24, 4) / 96
Y = torch.arange(24) % 2


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))


def train(net: nn.Module, batches: Any, epochs: int = 1) -> list[float]:
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    losses = []
    for _ in range(epochs):
        for batch in batches:
            (_, x), (_, y), *_ = tensors_in(batch, "")
            optimizer.zero_grad()
            loss = functional.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def ordinals(path: Path, name: str = LOADER) -> dict[tuple[int, int], FactValue]:
    """The ordinal of the batch of each step and micro-step."""
    with align.open(path) as capture:
        return {
            (fact.key.step, fact.key.micro): fact.value
            for step in capture.steps
            for fact in capture.facts(step)
            if fact.key.phase is Phase.INPUT and (fact.key.name, fact.key.slot) == (name, "batch")
        }


def inputs(path: Path, step: int, name: str = LOADER) -> dict[str, TensorRecord]:
    with align.open(path) as capture:
        return {r.key.slot: r for r in capture.records(step) if r.key.phase is Phase.INPUT and r.key.name == name}


def rows_of(record: TensorRecord) -> list[int] | None:
    return None if record.row_hashes is None else record.row_hashes.tolist()


# ---- what is recorded


def test_a_batch_has_hashes_of_itself_and_of_its_rows_and_says_which_one_it_is(tmp_path: Path) -> None:
    loader = DataLoader(TensorDataset(X, Y), batch_size=4, shuffle=True, generator=torch.Generator().manual_seed(3))
    seen = list(DataLoader(TensorDataset(X, Y), batch_size=4, shuffle=True, generator=torch.Generator().manual_seed(3)))
    with align.Recorder(tmp_path / "run.h5", steps="1:3", keep=["batches"], detail="stats") as recorder:
        train(model(), loader)
    assert dict(recorder.troubles) == {}
    assert ordinals(tmp_path / "run.h5") == {(1, 0): 1, (2, 0): 2}
    records = inputs(tmp_path / "run.h5", 2)
    assert sorted(records) == ["0", "1"]
    for slot, tensor in zip("01", seen[2], strict=True):
        array = tensor.numpy()
        assert records[slot].hash == hash_bytes(array)
        assert rows_of(records[slot]) == row_hashes(array).tolist()
        with align.open(tmp_path / "run.h5") as capture:
            assert np.array_equal(capture.values(records[slot]), array)
    given = inputs(tmp_path / "run.h5", 2, "input")["value"]
    assert given.hash == records["0"].hash
    assert rows_of(given) == rows_of(records["0"])
    assert given.has_values


def test_without_keep_no_values_of_batches_are_in_the_file(tmp_path: Path) -> None:
    with align.Recorder(tmp_path / "run.h5", steps="0"):
        train(model(), DataLoader(TensorDataset(X, Y), batch_size=4))
    assert [record.has_values for record in inputs(tmp_path / "run.h5", 0).values()] == [False, False]


def test_the_count_goes_on_over_epochs_and_loaders_are_numbered_by_their_first_use(tmp_path: Path) -> None:
    first = DataLoader(TensorDataset(X, Y), batch_size=12)
    second = DataLoader(TensorDataset(X, Y), batch_size=6)
    net = model()
    with align.Recorder(tmp_path / "run.h5", steps="0:20") as recorder:
        train(net, second, epochs=2)
        train(net, first)
    assert ordinals(tmp_path / "run.h5") == {(step, 0): step for step in range(8)}
    assert ordinals(tmp_path / "run.h5", "<DataLoader#2>") == {(8, 0): 0, (9, 0): 1}
    assert [(one["name"], one["batch_size"]) for one in recorder.run_info.loaders] == [
        (LOADER, 6),
        ("<DataLoader#2>", 12),
    ]


def test_a_validation_inside_the_training_leaves_no_batch_behind(tmp_path: Path) -> None:
    training, validation = DataLoader(TensorDataset(X, Y), batch_size=4), DataLoader(TensorDataset(X, Y), batch_size=8)
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with align.Recorder(tmp_path / "run.h5", steps="0:6"):
        for number, (x, y) in enumerate(training):
            functional.cross_entropy(net(x), y).backward()
            optimizer.step()
            for other, _ in validation:
                with torch.set_grad_enabled(number % 2 == 1):
                    net(other)
    assert ordinals(tmp_path / "run.h5") == {(step, 0): step for step in range(6)}
    assert ordinals(tmp_path / "run.h5", "<DataLoader#2>") == {}


def test_a_forward_without_backward_does_not_take_the_batch_from_the_one_with(tmp_path: Path) -> None:
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with align.Recorder(tmp_path / "run.h5", steps="0:3"):
        for x, y in DataLoader(TensorDataset(X, Y), batch_size=8):
            with torch.no_grad():
                net(x)
            net(x)
            functional.cross_entropy(net(x), y).backward()
            optimizer.step()
    assert ordinals(tmp_path / "run.h5") == {(0, 0): 0, (1, 0): 1, (2, 0): 2}


def test_a_batch_that_the_model_labelled_itself_is_one_of_its_batches(tmp_path: Path) -> None:
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    labelled, unlabelled = (DataLoader(TensorDataset(data, Y), batch_size=8) for data in (X, -X))
    with align.Recorder(tmp_path / "run.h5", steps="0:3"):
        others = iter(unlabelled)
        batches = iter(labelled)
        for _ in range(3):
            other, _ = next(others)
            with torch.no_grad():
                guess = net(other).argmax(1)
            x, y = next(batches)
            (functional.cross_entropy(net(x), y) + functional.cross_entropy(net(other), guess)).backward()
            optimizer.step()
    expected = {(step, 0): step for step in range(3)}
    assert ordinals(tmp_path / "run.h5") == ordinals(tmp_path / "run.h5", "<DataLoader#2>") == expected


def test_each_micro_step_has_its_own_batch_also_when_all_are_fetched_before(tmp_path: Path) -> None:
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    iterator = iter(DataLoader(TensorDataset(X, Y), batch_size=2))
    with align.Recorder(tmp_path / "run.h5", steps="1:3"):
        for _ in range(3):
            for x, y in [next(iterator) for _ in range(4)]:
                functional.cross_entropy(net(x), y).backward()
            optimizer.step()
            optimizer.zero_grad()
    assert ordinals(tmp_path / "run.h5") == {(step, micro): 4 * step + micro for step in (1, 2) for micro in range(4)}


def test_two_loaders_for_one_step_both_belong_to_it(tmp_path: Path) -> None:
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    pair = (DataLoader(TensorDataset(X, Y), batch_size=4), DataLoader(TensorDataset(-X, Y), batch_size=4))
    with align.Recorder(tmp_path / "run.h5", steps="0:3"):
        for (x, y), (other, _) in zip(*pair, strict=True):
            (functional.cross_entropy(net(x), y) + net(other).square().mean()).backward()
            optimizer.step()
    expected = {(step, 0): step for step in range(3)}
    assert ordinals(tmp_path / "run.h5") == ordinals(tmp_path / "run.h5", "<DataLoader#2>") == expected


@pytest.mark.parametrize("steps", ["0:3", "2:4"])
def test_accelerate_fetches_one_batch_ahead(tmp_path: Path, steps: str) -> None:
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net, optimizer, loader = accelerator.prepare(net, optimizer, DataLoader(TensorDataset(X, Y), batch_size=4))
    with align.Recorder(tmp_path / "run.h5", steps=steps) as recorder:
        for x, y in loader:
            accelerator.backward(functional.cross_entropy(net(x.flip(1)), y))  # not what the loader handed out
            optimizer.step()
            optimizer.zero_grad()
    assert dict(recorder.troubles) == {}
    assert ordinals(tmp_path / "run.h5") == {(step, 0): step for step in recorder.steps_written}


def test_the_trainer_of_transformers_gets_each_batch_to_its_micro_step(tmp_path: Path) -> None:
    captured = command(
        "capture", "--device", "cpu", "-o", tmp_path / "run.h5", "--every", "2", "--keep", "init,batches",
        WORKLOADS / "ways" / "hf_trainer.py",
    )  # fmt: skip
    assert captured.code == 0, captured.stderr
    assert "trouble" not in captured.last_line
    with align.open(tmp_path / "run.h5") as capture:
        assert capture.steps == [0, 2]
        assert capture.run.steps_requested == "0: every 2"
        assert capture.run.kept == ("batches", "init")
        facts = {str(fact.key): fact.value for fact in capture.facts(2)}
    assert ordinals(tmp_path / "run.h5") == {(0, 0): 0, (0, 1): 1, (2, 0): 4, (2, 1): 5}
    assert facts["step 2, micro 1, input: labels valid_targets"] == 16
    assert facts["step 2, micro 1, input: labels ignored_targets"] == 0


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Iterator[Any]:
        yield from zip(X, Y, strict=True)


Pair = namedtuple("Pair", ["x", "y"])  # noqa: PYI024  as people write it


class Rows(Dataset[Any]):
    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __len__(self) -> int:
        return len(X)

    def __getitem__(self, index: int) -> Any:
        x, y = X[index], Y[index]
        made = {
            "dict": {"x": x, "meta": {"y": y, "name": f"row {index}"}},
            "tuple": (x, (y, index)),
            "namedtuple": Pair(x, y),
        }
        return made[self.kind]


@pytest.mark.parametrize(
    ("dataset", "workers", "slots"),
    [
        (Rows("dict"), 2, ["meta.y", "x"]),
        (Rows("tuple"), 0, ["0", "1.0", "1.1"]),
        (Rows("namedtuple"), 0, ["x", "y"]),
        (Stream(), 0, ["0", "1"]),
        (Stream(), 2, ["0", "1"]),
    ],
    ids=["dict, workers", "tuple", "namedtuple", "iterable", "iterable, workers"],
)
def test_batches_of_every_kind_are_taken_from_another_run(
    tmp_path: Path, dataset: Any, workers: int, slots: list[str]
) -> None:
    from align.hooks.same_start import SameStart

    loader = DataLoader(dataset, batch_size=4, num_workers=workers)
    with align.Recorder(tmp_path / "one.h5", keep=["batches"], steps="0:2"):
        losses = train(model(), loader)
    assert sorted(inputs(tmp_path / "one.h5", 0)) == slots
    kept = X.clone(), Y.clone()
    X.mul_(-1)
    Y.sub_(1).neg_()
    try:
        asked = SameStart(batches_from=str(tmp_path / "one.h5"))
        with align.Recorder(tmp_path / "two.h5", same_start=asked, steps="0:2") as recorder:
            again = train(model(), DataLoader(dataset, batch_size=4, num_workers=workers))
    finally:
        X.copy_(kept[0])
        Y.copy_(kept[1])
    assert dict(recorder.troubles) == {}
    assert again[:2] == losses[:2]
    assert again[2:] != losses[2:]
    assert recorder.run_info.same_start == {"batches_from": str(tmp_path / "one.h5"), "batches_taken": 2}
    for slot, record in inputs(tmp_path / "two.h5", 1).items():
        assert record.hash == inputs(tmp_path / "one.h5", 1)[slot].hash


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (
            DataLoader(TensorDataset(X[:, None], Y), batch_size=8),
            "0 is float32 (8, 1, 4) here and float32 (8, 4) there",
        ),
        (DataLoader(TensorDataset(X.double(), Y), batch_size=8), "0 is float64 (8, 4) here and float32 (8, 4) there"),
        (DataLoader(TensorDataset(X, Y, Y), batch_size=8), "2 is not in it"),
    ],
    ids=["shape", "dtype", "structure"],
)
def test_a_batch_of_another_structure_is_not_taken(tmp_path: Path, other: Any, reason: str) -> None:
    from align.hooks.same_start import SameStart

    path = tmp_path / "one.h5"
    with align.Recorder(path, keep=["batches"], steps="0"):
        train(model(), DataLoader(TensorDataset(X, Y), batch_size=8))
    net = nn.Sequential(nn.Flatten(), model()).to(other.dataset.tensors[0].dtype)
    with align.Recorder(tmp_path / "two.h5", same_start=SameStart(batches_from=str(path))) as recorder:
        train(net, other)
    assert recorder.notes() == (
        f"Batch 0 of <DataLoader> was not taken from '{path}': {reason}",
        f"No batch was taken from '{path}': no batch of this run is in it",
    )
    assert recorder.run_info.same_start == {
        "batches_from": str(path), "batches_taken": 0, "batches_missed": 3,
        "batches_why_missed": f"batch 0 of <DataLoader>: {reason}",
    }  # fmt: skip


# ---- settings


def test_the_settings_of_loaders_are_read_and_nothing_is_drawn(tmp_path: Path) -> None:
    sampler: DistributedSampler[Any] = DistributedSampler(
        TensorDataset(X, Y), num_replicas=2, rank=1, shuffle=True, seed=7
    )
    sampler.set_epoch(2)
    loaders = [
        DataLoader(TensorDataset(X, Y), batch_size=4, sampler=sampler, drop_last=True),
        DataLoader(Stream(), batch_size=8, num_workers=2, prefetch_factor=3, persistent_workers=True),
        DataLoader(Rows("dict"), batch_size=3, shuffle=True, generator=torch.Generator().manual_seed(11)),
    ]
    with align.Recorder(tmp_path / "run.h5") as recorder:
        for loader in loaders:
            list(loader)
    common = {
        "pin_memory": False, "timeout": 0, "collate": "default_collate", "generator_seed": None,
        "batch_sampler": "BatchSampler", "drop_last": False, "num_workers": 0, "prefetch_factor": None,
        "persistent_workers": False,
    }  # fmt: skip
    assert recorder.run_info.loaders == (
        {
            **common, "name": LOADER, "dataset": "TensorDataset", "length": 24, "batch_size": 4, "drop_last": True,
            "sampler": "DistributedSampler", "shuffle": True,
            "distributed": {
                "rank": 1, "num_replicas": 2, "seed": 7, "epoch": 2, "shuffle": True, "drop_last": False,
            },
        },
        {
            **common, "name": "<DataLoader#2>", "dataset": "Stream", "length": None, "batch_size": 8, "num_workers": 2,
            "prefetch_factor": 3, "persistent_workers": True, "sampler": "_InfiniteConstantSampler", "shuffle": None,
        },
        {
            **common, "name": "<DataLoader#3>", "dataset": "Rows", "length": 24, "batch_size": 3,
            "sampler": "RandomSampler", "shuffle": True, "generator_seed": 11,
        },
    )  # fmt: skip


def generators() -> tuple[Any, ...]:
    state = np.random.get_state(legacy=True)  # noqa: NPY002  scripts draw from the global generator
    return random.getstate(), state[1].tobytes(), state[2:], torch.get_rng_state().numpy().tobytes()  # type: ignore[index]


@pytest.mark.parametrize("workers", [0, 2])
def test_watching_loaders_changes_nothing(tmp_path: Path, workers: int) -> None:
    def run() -> tuple[list[float], list[bytes], tuple[Any, ...]]:
        random.seed(1)
        np.random.seed(1)  # noqa: NPY002
        net = model()
        loader = DataLoader(TensorDataset(X, Y), batch_size=4, shuffle=True, num_workers=workers)
        losses = train(net, loader, epochs=2)
        return losses, [parameter.detach().numpy().tobytes() for parameter in net.parameters()], generators()

    plain = run()
    with align.Recorder(tmp_path / "run.h5", steps="0:", keep=["init", "batches"]):
        watched = run()
    assert watched == plain


def test_no_batch_is_kept_alive(tmp_path: Path) -> None:
    loader = DataLoader(TensorDataset(X, Y), batch_size=4)
    with align.Recorder(tmp_path / "run.h5", steps="0:3", keep=["batches"]):
        batch = next(iter(loader))
        alive = weakref.ref(batch[0])
        del batch
        gc.collect()
        assert alive() is None


def test_loaders_are_left_as_they_were(tmp_path: Path) -> None:
    from torch.utils.data import dataloader

    before = dict(vars(dataloader._BaseDataLoaderIter))
    with align.Recorder(tmp_path / "run.h5"):
        assert dict(vars(dataloader._BaseDataLoaderIter)) != before
    assert dict(vars(dataloader._BaseDataLoaderIter)) == before


# ---- targets that do not count


def test_ignored_targets_are_counted(tmp_path: Path) -> None:
    class Scored(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(4, 2)

        def forward(self, x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
            return functional.cross_entropy(self.fc(x), labels)

    net = Scored()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    labels = torch.tensor([1, -100, 0, -100])
    with align.Recorder(tmp_path / "run.h5", steps="0"):
        net(X[:4], labels=labels).backward()
        optimizer.step()
    with align.open(tmp_path / "run.h5") as capture:
        found = {
            (fact.key.name, fact.key.slot): fact.value for fact in capture.facts(0) if fact.key.phase is Phase.INPUT
        }
    assert found == {("labels", "valid_targets"): 2, ("labels", "ignored_targets"): 2}


# ---- taking the containers apart and together


@dataclass(frozen=True)
class Sample:
    x: torch.Tensor
    y: Any


def test_a_batch_is_put_together_again_without_touching_the_old_one() -> None:
    from transformers import BatchEncoding

    x, y, new = torch.zeros(2), torch.ones(2), torch.full((2,), 5.0)
    for batch in (
        [x, (y, "word")], {"x": x, "y": [y, None]}, Pair(x, y), Sample(x, {"deep": y}), BatchEncoding({"x": x, "y": y}),
    ):  # fmt: skip
        made = with_tensors(batch, {id(x): new})
        assert type(made) is type(batch)
        assert [path for path, _ in tensors_in(made, "")] == [path for path, _ in tensors_in(batch, "")]
        assert [id(tensor) for _, tensor in tensors_in(made, "")] == [id(new), id(y)]
        assert [id(tensor) for _, tensor in tensors_in(batch, "")] == [id(x), id(y)]
        assert with_tensors(batch, {}) is batch
