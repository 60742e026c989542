"""Runs that start alike on demand: seeds, no dropout, the weights and the batches of another run."""

from __future__ import annotations

import gc
import pickle
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

import align
from align.errors import CaptureError
from align.hooks.initial_values import StartRefused
from align.hooks.no_dropout import NoDropout
from align.hooks.same_start import SameStart
from align.hooks.stored_values import as_tensor
from align.hooks.values import as_array
from align.records import INIT_STEP, Phase
from tests.running import BENIGN, diff
from tests.running import align as command

UNSEEDED = """
import sys
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = sys.argv[1]


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(32, 16)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
        self.norm = nn.BatchNorm1d(16)
        self.head = nn.Linear(16, 32)
        self.head.weight = self.embed.weight

    def forward(self, tokens):
        hidden = self.layer(self.embed(tokens))
        return self.head(self.norm(hidden.transpose(1, 2)).transpose(1, 2))


model = Model().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
tokens = torch.randint(32, (32, 9))
for batch, in DataLoader(TensorDataset(tokens), batch_size=8, shuffle=True):
    batch = batch.to(device)
    optimizer.zero_grad()
    logits = model(batch[:, :-1])
    nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten()).backward()
    optimizer.step()
"""


@pytest.fixture(autouse=True)
def _only_living_models() -> None:
    """A recorder finds optimizers that were made before it, those of other tests too."""
    gc.collect()


def script(folder: Path, text: str) -> Path:
    path = folder / "train.py"
    path.write_text(text)
    return path


# ---- the whole way


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture of the unseeded script on the CPU, without dropout."""
    folder = tmp_path_factory.mktemp("reference")
    path = folder / "cpu.h5"
    captured = command(
        "capture", "--device", "cpu", "--keep", "init,batches", "--no-dropout", "-o", path, script(folder, UNSEEDED),
        "cpu",
    )  # fmt: skip
    assert captured.code == 0, captured.stderr
    assert captured.last_line.endswith(f"{path}; 1 later step was not captured; same start: no dropout")
    with align.open(path) as capture:
        assert capture.run.kept == ("batches", "init")
        assert all(record.has_values for record in capture.records(INIT_STEP))
        kept = [record for record in capture.records(0) if record.has_values]
        assert [str(record.key) for record in kept if record.same_as is None] == [
            "step 0, input: <DataLoader> 0",
            "step 0, input: tokens value",
        ]
    return path


def test_a_script_that_seeds_nothing_is_aligned_across_devices(reference: Path, tmp_path: Path) -> None:
    train = reference.parent / "train.py"
    captured = command(
        "capture", "--device", "npu", "--no-dropout", "--init-from", reference, "--batches-from", reference,
        "-o", tmp_path / "npu.h5", train, "npu", simulator=BENIGN,
    )  # fmt: skip
    assert captured.code == 0, captured.stderr
    assert captured.last_line.endswith(
        f"same start: no dropout, 19 initial tensors from {reference}, 3 batches from {reference}"
    )
    with align.open(tmp_path / "npu.h5") as capture:
        assert capture.run.same_start == {
            "no_dropout": True, "init_from": str(reference), "batches_from": str(reference), "init_tensors": 19,
            "batches_taken": 3,
        }  # fmt: skip
    result = diff(reference, tmp_path / "npu.h5")
    assert str(result.verdict) == "aligned", result.summary
    alone = command("capture", "--device", "npu", "-o", tmp_path / "alone.h5", train, "npu", simulator=BENIGN)
    assert alone.code == 0, alone.stderr
    assert str(diff(reference, tmp_path / "alone.h5").verdict) == "diverged"


def test_weights_of_another_model_end_the_run_before_its_first_step(reference: Path, tmp_path: Path) -> None:
    path = script(
        tmp_path,
        "import torch\nfrom torch import nn\nmodel = nn.Linear(4, 1)\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "model(torch.ones(2, 4)).sum().backward()\noptimizer.step()\nprint('trained')\n",
    )
    refused = command("capture", "--init-from", reference, "-o", "run.h5", path, cwd=tmp_path)
    assert refused.code == 2
    assert refused.stdout == ""
    assert refused.stderr.splitlines()[1:] == [
        (
            f"align: Cannot take initial weights from '{reference}': none of its 19 tensors fits this model "
            "(<Linear>.weight: not in it; it begins with embed.weight). Name the capture of the same model, or leave "
            "out --init-from."
        )
    ]
    assert not (tmp_path / "run.h5").exists()


def test_a_reference_that_cannot_be_used_is_refused_before_the_script_begins(reference: Path, tmp_path: Path) -> None:
    path = script(tmp_path, "print('begun')\n")
    sentence = "there is no such file. Check the path, or make it with 'align capture -o no.h5'."
    for option in ("--init-from", "--batches-from"):
        refused = command("capture", option, "no.h5", "-o", "run.h5", path, cwd=tmp_path)
        assert (refused.code, refused.stdout) == (2, "")
        assert refused.stderr == f"align: Cannot read 'no.h5': {sentence}\n"
    refused = command("capture", "--force", "--init-from", reference, "-o", reference, path, cwd=tmp_path)
    assert refused.stderr == (
        f"align: Cannot take initial weights from '{reference}': the capture is written there. "
        "Name another file with -o.\n"
    )
    assert reference.stat().st_size > 0
    assert list(tmp_path.glob("*.h5")) == []


# ---- weights


def recorded(path: Path, model: nn.Module, batch: Any = None, steps: int = 1, **options: Any) -> align.Recorder:
    """Train a model whose outputs are averaged."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    given = batch if batch is not None else torch.linspace(-1, 1, 32).reshape(8, 4)
    with align.Recorder(path, **options) as recorder:
        for _ in range(steps):
            optimizer.zero_grad()
            model(given).float().square().mean().backward()
            optimizer.step()
    return recorder


def plain_model() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Linear(6, 2))


def initial(path: Path) -> dict[str, tuple[int | None, str]]:
    with align.open(path) as capture:
        records = capture.records(INIT_STEP)
        return {f"{record.key.name}.{record.key.slot}": (record.hash, record.dtype) for record in records}


def taken(path: Path) -> SameStart:
    return SameStart(init_from=str(path))


def test_parameters_and_buffers_come_from_the_reference(tmp_path: Path) -> None:
    first = plain_model()
    with torch.no_grad():
        first.get_buffer("1.running_mean").add_(0.5)
    recorded(tmp_path / "one.h5", first, keep=["init"], detail="stats")
    recorder = recorded(tmp_path / "two.h5", plain_model(), same_start=taken(tmp_path / "one.h5"))
    assert dict(recorder.troubles) == {}
    assert recorder.run_info.same_start["init_tensors"] == 9
    assert initial(tmp_path / "two.h5") == initial(tmp_path / "one.h5")


def test_bfloat16_weights_come_bit_for_bit_and_others_are_cast(tmp_path: Path) -> None:
    batch = torch.linspace(-1, 1, 32).reshape(8, 4).bfloat16()
    recorded(tmp_path / "bf16.h5", nn.Linear(4, 3).bfloat16(), batch, keep=["init"])
    recorded(tmp_path / "same.h5", nn.Linear(4, 3).bfloat16(), batch, same_start=taken(tmp_path / "bf16.h5"))
    assert initial(tmp_path / "same.h5") == initial(tmp_path / "bf16.h5")
    wide = nn.Linear(4, 3)
    kept: dict[str, torch.Tensor] = {}
    wide.register_forward_pre_hook(lambda module, _: kept.update(weight=module.weight.detach().clone()))
    recorder = recorded(tmp_path / "fp32.h5", wide, same_start=taken(tmp_path / "bf16.h5"), keep=["init"])
    assert dict(recorder.troubles) == {}
    assert torch.equal(kept["weight"], kept["weight"].bfloat16().float())
    back = nn.Linear(4, 3).bfloat16()
    recorded(tmp_path / "back.h5", back, batch, same_start=taken(tmp_path / "fp32.h5"))
    assert initial(tmp_path / "back.h5") == initial(tmp_path / "bf16.h5")


class Tied(nn.Module):
    def __init__(self, *, tied: bool = True) -> None:
        super().__init__()
        self.embed = nn.Linear(4, 4, bias=False)
        self.head = nn.Linear(4, 4, bias=False)
        if tied:
            self.head.weight = self.embed.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.head(self.embed(x))
        return out


def test_tied_weights_stay_tied(tmp_path: Path) -> None:
    recorded(tmp_path / "one.h5", Tied(), keep=["init"])
    model = Tied()
    recorder = recorded(tmp_path / "two.h5", model, same_start=taken(tmp_path / "one.h5"))
    assert dict(recorder.troubles) == {}
    assert recorder.run_info.same_start["init_tensors"] == 1
    assert model.head.weight is model.embed.weight
    assert initial(tmp_path / "two.h5") == initial(tmp_path / "one.h5")


def test_what_does_not_fit_keeps_the_scripts_values_and_is_named(tmp_path: Path) -> None:
    recorded(tmp_path / "one.h5", Tied(), keep=["init"])
    recorder = recorded(tmp_path / "two.h5", Tied(tied=False), same_start=taken(tmp_path / "one.h5"))
    assert recorder.notes() == (
        (
            f"1 initial tensor was not taken from '{tmp_path / 'one.h5'}': head.weight (not in it); there the weights "
            "are the script's own"
        ),
    )
    wider = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Linear(6, 3, bias=False))
    recorded(tmp_path / "three.h5", plain_model(), keep=["init"])
    recorder = recorded(tmp_path / "four.h5", wider, same_start=taken(tmp_path / "three.h5"))
    assert recorder.notes() == (
        (
            f"1 initial tensor was not taken from '{tmp_path / 'three.h5'}': 2.weight ((3, 6) here, (2, 6) there); "
            "there the weights are the script's own"
        ),
        f"1 initial tensor was not found in this model but in '{tmp_path / 'three.h5'}': 2.bias",
    )


def test_lazy_parameters_are_left_alone_and_named(tmp_path: Path) -> None:
    recorded(tmp_path / "one.h5", nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2)), keep=["init"])
    lazy = nn.Sequential(nn.Linear(4, 4), nn.LazyLinear(2))
    recorder = recorded(tmp_path / "two.h5", lazy, same_start=taken(tmp_path / "one.h5"))
    assert recorder.notes() == (
        (
            f"2 initial tensors were not taken from '{tmp_path / 'one.h5'}': 1.weight (lazy, sharded or otherwise not "
            "to be written), 1.bias (lazy, sharded or otherwise not to be written); there the weights are the script's "
            "own"
        ),
    )


def adversaries() -> tuple[nn.Module, nn.Module]:
    return nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 2)), nn.Sequential(nn.Linear(2, 4), nn.Linear(4, 1))


def play(generator: nn.Module, discriminator: nn.Module, teacher: nn.Module) -> list[float]:
    optimizers = [torch.optim.SGD(one.parameters(), lr=0.1) for one in (generator, discriminator)]
    losses = []
    objectives: list[tuple[Callable[[], torch.Tensor], torch.optim.Optimizer]]
    noise = torch.linspace(-1, 1, 8).reshape(4, 2)
    for _ in range(2):
        with torch.no_grad():
            wanted = teacher(noise)
        fake = generator(noise)
        objectives = [
            (lambda: discriminator(fake.detach()).mean(), optimizers[1]),  # noqa: B023  called at once
            (lambda: (discriminator(fake) - wanted).square().mean(), optimizers[0]),  # noqa: B023
        ]
        for objective, optimizer in objectives:
            optimizer.zero_grad()
            loss = objective()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def test_both_models_of_a_gan_and_a_teacher_start_as_in_the_reference(tmp_path: Path) -> None:
    with align.Recorder(tmp_path / "one.h5", keep=["init"]):
        losses = play(*adversaries(), nn.Linear(2, 1))
    with align.Recorder(tmp_path / "two.h5", same_start=taken(tmp_path / "one.h5")) as recorder:
        again = play(*adversaries(), nn.Linear(2, 1))
    assert dict(recorder.troubles) == {}
    assert again == losses
    assert recorder.run_info.same_start["init_tensors"] == 10


def test_copies_of_the_weights_that_an_optimizer_has_are_told(tmp_path: Path) -> None:
    recorded(tmp_path / "one.h5", nn.Linear(4, 3), keep=["init"])
    model = nn.Linear(4, 3)
    copies = [parameter.detach().clone().requires_grad_() for parameter in model.parameters()]
    optimizer = torch.optim.SGD(copies, lr=0.1)
    with align.Recorder(tmp_path / "two.h5", same_start=taken(tmp_path / "one.h5")) as recorder:
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
    assert recorder.run_info.same_start["init_tensors"] == 2
    sentence = (
        f"2 parameters were in an optimizer but in no module, and not taken from '{tmp_path / 'one.h5'}': copies of "
        "weights that were made before keep the script's values"
    )
    assert recorder.notes() == (sentence,)


def test_another_model_is_refused_in_python_too(tmp_path: Path) -> None:
    recorded(tmp_path / "one.h5", nn.Linear(4, 3), keep=["init"])
    with pytest.raises(StartRefused) as refused:
        recorded(tmp_path / "two.h5", nn.Linear(4, 2), same_start=taken(tmp_path / "one.h5"))
    assert refused.value.code == (
        f"Cannot take initial weights from '{tmp_path / 'one.h5'}': none of its 2 tensors fits this model "
        "(<Linear>.weight: (2, 4) here, (3, 4) there; it begins with <Linear>.weight). Name the capture of the same "
        "model, or leave out --init-from."
    )


def test_captures_without_the_values_are_refused(tmp_path: Path) -> None:
    recorded(tmp_path / "one.h5", nn.Linear(4, 3))
    for asked, sentence in (
        (
            taken(tmp_path / "one.h5"),
            (
                f"Cannot take initial weights from '{tmp_path / 'one.h5'}': it holds no values of them. "
                "Capture it again with --keep init."
            ),
        ),
        (
            SameStart(batches_from=str(tmp_path / "one.h5")),
            (
                f"Cannot take batches from '{tmp_path / 'one.h5'}': it holds no values of them. "
                "Capture it again with --keep batches."
            ),
        ),
    ):
        with pytest.raises(CaptureError) as refused, align.Recorder(tmp_path / "two.h5", same_start=asked):
            pass
        assert str(refused.value) == sentence
    recorded(tmp_path / "later.h5", nn.Linear(4, 3), phases=["forward"])
    with pytest.raises(CaptureError, match=r"it holds none \(its phases or modules left them out\)\. Capture it"):
        recorded(tmp_path / "two.h5", nn.Linear(4, 3), same_start=taken(tmp_path / "later.h5"))
    assert not (tmp_path / "two.h5").exists()


def test_each_rank_starts_from_its_own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for rank in range(2):
        recorded(tmp_path / f"one.rank{rank:04d}.h5", nn.Linear(4, 3), keep=["init"])
    for rank in range(3):
        monkeypatch.setenv("RANK", str(rank))
        recorded(tmp_path / f"two{rank}.h5", nn.Linear(4, 3), same_start=taken(tmp_path / "one.h5"))
        own = min(rank, 1)
        assert initial(tmp_path / f"two{rank}.h5") == initial(tmp_path / f"one.rank{own:04d}.h5")


DTYPES = ["float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "int64", "uint8", "bool", "complex64"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
def test_values_of_every_dtype_come_back(dtype: str, shape: tuple[int, ...]) -> None:
    made = torch.arange(float(np.prod(shape))).reshape(shape).to(getattr(torch, dtype))
    back = as_tensor(as_array(made), dtype)
    assert back is not None
    assert back.dtype is made.dtype
    assert back.shape == made.shape
    assert as_array(back).tobytes() == as_array(made).tobytes()


def test_a_dtype_that_torch_does_not_have_gives_no_tensor() -> None:
    assert as_tensor(np.zeros(2), "float3") is None


# ---- batches of a script without a DataLoader


class Scored(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor, *, targets: torch.Tensor) -> torch.Tensor:
        return functional.cross_entropy(self.fc(x), targets)


def score(path: Path, model: nn.Module, **options: Any) -> tuple[align.Recorder, list[float]]:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    with align.Recorder(path, **options) as recorder:
        for _ in range(2):
            for _ in range(2):
                loss = model(torch.rand(4, 4), targets=torch.randint(2, (4,)))
                loss.backward()
                losses.append(loss.item())
            optimizer.step()
            optimizer.zero_grad()
    return recorder, losses


def test_without_loaders_the_arguments_of_the_model_are_taken(tmp_path: Path) -> None:
    path = str(tmp_path / "one.h5")
    _, losses = score(tmp_path / "one.h5", Scored(), keep=["init", "batches"])
    recorder, again = score(tmp_path / "two.h5", Scored(), same_start=SameStart(init_from=path, batches_from=path))
    assert dict(recorder.troubles) == {}
    assert again == losses
    assert recorder.run_info.same_start == {
        "init_from": path, "batches_from": path, "init_tensors": 2, "batches_taken": 4, "batches_as": "inputs",
    }  # fmt: skip


def test_batches_of_another_shape_are_the_scripts_own(tmp_path: Path) -> None:
    class Flexible(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.ones(1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.scale * x

    path = tmp_path / "one.h5"
    recorded(path, Flexible(), torch.ones(8, 4), keep=["batches"])
    asked = SameStart(batches_from=str(path))
    recorder = recorded(tmp_path / "two.h5", Flexible(), torch.ones(6, 4), same_start=asked)
    assert recorder.notes() == (
        (
            f"What call 0 of <Flexible> is given was not taken from '{path}': x.value is float32 (6, 4) here and "
            "float32 (8, 4) there"
        ),
        f"No batch was taken from '{path}': no batch of this run is in it",
    )
    assert recorder.run_info.same_start == {
        "batches_from": str(path), "batches_taken": 0, "batches_missed": 1, "batches_as": "inputs",
        "batches_why_missed": "call 0 of <Flexible>: x.value is float32 (6, 4) here and float32 (8, 4) there",
    }  # fmt: skip


# ---- seeds and kernels


DRAWS = """
import os, random, numpy, torch
print(random.random(), numpy.random.rand(), torch.rand(1).item())
print(torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled())
print(os.environ.get("CUBLAS_WORKSPACE_CONFIG"), os.environ.get("HCCL_DETERMINISTIC"))
"""


def test_seed_and_deterministic_come_before_the_scripts_first_line(tmp_path: Path) -> None:
    path = script(tmp_path, DRAWS)
    random.seed(7)
    torch.manual_seed(7)
    drawn = f"{random.random()} {np.random.RandomState(7).rand()} {torch.rand(1).item()}"
    captured = command("capture", "--seed", "7", "--deterministic", "-o", "run.h5", path, cwd=tmp_path)
    assert captured.stdout.splitlines() == [drawn, "True True", ":4096:8 true"]
    assert captured.last_line.endswith("; no file was kept; same start: seed 7, deterministic kernels")
    captured = command(
        "capture", "-o", "run.h5", path, cwd=tmp_path, HCCL_DETERMINISTIC="strict", CUBLAS_WORKSPACE_CONFIG=":16:8"
    )
    assert captured.stdout.splitlines()[1:] == ["False False", ":16:8 strict"]


# ---- dropout


class DropPath(nn.Module):
    """Named as such modules are everywhere."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.bernoulli(torch.full((x.shape[0], x.shape[1], 1), 0.5))


class Attention(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        one = functional.scaled_dot_product_attention(x, x, x, None, 0.5)
        return one + functional.scaled_dot_product_attention(x, x, x, dropout_p=0.5)


class Weighted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, dropout=0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.attention(x, x, x)[0] + self.attention(x, x, x, need_weights=False)[0]  # type: ignore[no-any-return]


class Recurrent(nn.Module):
    def __init__(self, kind: Callable[..., nn.RNNBase], **options: Any) -> None:
        super().__init__()
        self.cells = kind(8, 8, 2, dropout=0.5, **options)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(x, [3] * x.shape[1])
        return self.cells(x)[0].sum() + self.cells(packed)[0].data.sum()  # type: ignore[no-any-return]


class Calls(nn.Module):
    """The functions themselves, with and without their defaults."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        drops: list[Callable[[torch.Tensor], torch.Tensor]] = [
            functional.dropout,
            lambda x: functional.alpha_dropout(x, training=True),
            lambda x: functional.feature_alpha_dropout(x, 0.5, training=True),
            functional.dropout1d,
            lambda x: functional.dropout3d(x[None])[0],
            lambda x: functional.dropout(x.clone(), inplace=True),
            lambda x: torch.dropout(x, 0.5, train=True),
            lambda x: torch.dropout_(x.clone(), 0.5, train=True),
            lambda x: torch.feature_dropout(x, 0.5, train=True),
            lambda x: torch.native_dropout(x, 0.5, True)[0],
        ]
        return torch.stack([drop(x) for drop in drops])


class Scripted(nn.Module):
    """TorchScript compiles while dropout is off."""

    def __init__(self) -> None:
        super().__init__()

        def drop(x: torch.Tensor) -> torch.Tensor:
            return functional.dropout(x, 0.5, training=True) + torch.dropout(x, 0.5, True)

        self.drop = torch.jit.script(drop)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = self.drop(x)
        return made


class Repeated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = checkpoint(self.inner, x, use_reentrant=False)
        return made


MODULES: dict[str, Callable[[], nn.Module]] = {
    "Dropout": lambda: nn.Dropout(0.5),
    "inplace": lambda: nn.Sequential(nn.Identity(), nn.Linear(8, 8), nn.Dropout(0.5, inplace=True)),
    "AlphaDropout": lambda: nn.AlphaDropout(0.5),
    "FeatureAlphaDropout": lambda: nn.FeatureAlphaDropout(0.5),
    "Dropout1d": lambda: nn.Dropout1d(0.5),
    "Dropout3d": lambda: nn.Sequential(nn.Unflatten(0, (3, 1)), nn.Dropout3d(0.5)),
    "DropPath": DropPath,
    "attention": Attention,
    "MultiheadAttention": Weighted,
    "TransformerEncoderLayer": lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.5),
    "LSTM": lambda: Recurrent(nn.LSTM, bidirectional=True),
    "GRU": lambda: Recurrent(nn.GRU),
    "RNN": lambda: Recurrent(nn.RNN),
    "functions": Calls,
    "checkpoint": Repeated,
}


@pytest.fixture
def no_dropout() -> Iterator[None]:
    switch = NoDropout()
    switch.install()
    yield
    switch.remove()


@pytest.mark.parametrize("name", MODULES)
def test_no_dropout_drops_anything(name: str) -> None:
    torch.manual_seed(0)
    model = MODULES[name]()
    x = torch.linspace(-1, 1, 3 * 4 * 8).reshape(3, 4, 8)
    assert not torch.equal(model(x), model(x))
    kept = pickle.dumps(model)
    switch = NoDropout()
    switch.install()
    try:
        state = torch.get_rng_state()
        first, second = model(x), model(x)
        assert torch.equal(torch.get_rng_state(), state)
        assert model.training
    finally:
        switch.remove()
    assert torch.equal(first, second)
    assert pickle.dumps(model) == kept
    assert not torch.equal(model(x), model(x))
    if name not in ("DropPath", "attention", "functions"):
        assert torch.allclose(first, model.eval()(x), atol=1e-6)


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")
@pytest.mark.usefixtures("no_dropout")
def test_no_dropout_in_what_torchscript_compiles() -> None:
    x = torch.ones(3, 4)
    assert torch.equal(Scripted()(x), 2 * x)

    class Cells(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cells = nn.LSTM(4, 4, 2, dropout=0.5)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.cells(x)[0]  # type: ignore[no-any-return]

    assert torch.jit.script(Cells())(x[None]).shape == (1, 3, 4)  # it keeps its dropout, and compiles


@pytest.mark.usefixtures("no_dropout")
def test_the_fused_attention_of_an_npu_keeps_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys
    from types import ModuleType

    given: list[Any] = []
    library = ModuleType("torch_npu")
    library.npu_fusion_attention = lambda *args, **kwargs: given.append((args, kwargs))  # type: ignore[attr-defined]
    original = library.npu_fusion_attention
    monkeypatch.setitem(sys.modules, "torch_npu", library)
    switch = NoDropout()
    switch.install()
    library.npu_fusion_attention("q", "k", "v", 2, "BSH", keep_prob=0.9)
    library.npu_fusion_attention("q", "k", "v", 2, "BSH", None, None, None, 0.5, 0.9)
    switch.remove()
    assert given == [
        (("q", "k", "v", 2, "BSH"), {"keep_prob": 1.0}),
        (("q", "k", "v", 2, "BSH", None, None, None, 0.5, 1.0), {}),
    ]
    assert library.npu_fusion_attention is original


def test_everything_is_put_back(tmp_path: Path) -> None:
    owners = (functional, torch, torch._VF, nn.Module)
    before = [dict(vars(owner)) for owner in owners]
    recorded(tmp_path / "run.h5", nn.Linear(4, 2), same_start=SameStart(no_dropout=True))
    assert [dict(vars(owner)) for owner in owners] == before


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_models_of_transformers_are_captured_without_dropout(tmp_path: Path, attention: str) -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=32, n_positions=16, n_embd=16, n_layer=1, n_head=2, attn_implementation=attention)
    model = GPT2LMHeadModel(config)
    tokens = torch.arange(16).reshape(2, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    losses = []
    with align.Recorder(tmp_path / "run.h5", same_start=SameStart(no_dropout=True)) as recorder:
        for _ in range(3):
            loss = model(tokens, labels=tokens).loss
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    assert dict(recorder.troubles) == {}
    assert losses == [losses[0]] * 3
    with align.open(tmp_path / "run.h5") as capture:
        assert capture.run.same_start == {"no_dropout": True}
        modes = {fact.value for fact in capture.facts(0) if fact.key.phase is Phase.FORWARD}
    assert modes == {True}
