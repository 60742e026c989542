"""Checkpoints of real writers are read as they were written, without torch, and nothing in them is run."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import types
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from align.checkpoint_files import Checkpoint, open_checkpoint
from align.errors import CheckpointError

ROOT = Path(__file__).resolve().parent.parent

DTYPES = [
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2, torch.bool,
    torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.uint16, torch.uint32, torch.uint64,
    torch.complex64,
]  # fmt: skip


def drawn(dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
    """Values of any dtype."""
    numbers = torch.randn(shape, generator=torch.Generator().manual_seed(1)) * 50
    return (numbers.abs() if "uint" in str(dtype) else numbers).to(dtype)


def raw(tensor: torch.Tensor) -> bytes:
    """The logical bytes."""
    flat = tensor.detach().contiguous().reshape(-1)
    return bytes(flat.view(torch.uint8).numpy().tobytes()) if flat.numel() else b""


def assert_holds(checkpoint: Checkpoint, state: dict[str, torch.Tensor]) -> None:
    """Names, dtypes, shapes and bytes are those of the state."""
    assert set(checkpoint.entries) == set(state)
    for name, tensor in state.items():
        entry = checkpoint.entries[name]
        assert (entry.dtype, entry.shape) == (str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape))
        assert entry.read(0, entry.numel).tobytes() == raw(tensor)
        if entry.numel > 2:
            item = tensor.element_size()
            assert entry.read(1, entry.numel - 1).tobytes() == raw(tensor)[item:-item]


STATE = {f"part.{str(dtype).removeprefix('torch.')}": drawn(dtype, (5, 3)) for dtype in DTYPES} | {
    "scalar": torch.tensor(3.5),
    "empty": torch.zeros(0, 4),
}


@pytest.mark.parametrize("legacy", [False, True], ids=["zip", "legacy"])
def test_torch_files_hold_what_was_saved(legacy: bool, tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    torch.save(STATE, path, _use_new_zipfile_serialization=not legacy)
    with open_checkpoint(path) as checkpoint:
        assert checkpoint.what == "torch"
        assert_holds(checkpoint, STATE)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_every_pickle_protocol_is_read(protocol: int, tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    torch.save(OrderedDict(STATE), path, pickle_protocol=protocol)
    with open_checkpoint(path) as checkpoint:
        assert_holds(checkpoint, STATE)


def test_safetensors_hold_what_was_saved(tmp_path: Path) -> None:
    save_file(STATE, tmp_path / "a.safetensors", metadata={"format": "pt"})
    with open_checkpoint(tmp_path / "a.safetensors") as checkpoint:
        assert checkpoint.what == "safetensors"
        assert_holds(checkpoint, STATE)


@pytest.mark.parametrize("legacy", [False, True], ids=["zip", "legacy"])
def test_views_are_read_in_logical_order(legacy: bool, tmp_path: Path) -> None:
    base = torch.randn(40, 30, 4)
    state = {
        "transposed": base[..., 0].t(),
        "sliced": base[3:20:2, 5:],
        "expanded": base[:1, :1].expand(6, 5, 4),
        "channels_last": base[None].permute(0, 3, 1, 2),
        "parameter": nn.Parameter(base),
    }
    path = tmp_path / "a.pt"
    torch.save(state, path, _use_new_zipfile_serialization=not legacy)
    with open_checkpoint(path) as checkpoint:
        assert_holds(checkpoint, state)


def test_memory_that_is_shared_is_seen(tmp_path: Path) -> None:
    weight = torch.randn(4, 3)
    torch.save({"embed.weight": weight, "head.weight": weight, "part": weight[1:]}, tmp_path / "a.pt")
    with open_checkpoint(tmp_path / "a.pt") as checkpoint:
        assert {name: entry.tied_to for name, entry in checkpoint.entries.items()} == {
            "embed.weight": "",
            "head.weight": "embed.weight",
            "part": "",
        }


def test_tensors_of_an_npu_are_read_where_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """torch_npu saves tensors by a function of its own, which is named and not called."""
    storage = types.ModuleType("torch_npu.utils.storage")

    def _rebuild_npu_tensor(*_: Any) -> None: ...

    _rebuild_npu_tensor.__module__ = storage.__name__
    _rebuild_npu_tensor.__qualname__ = "_rebuild_npu_tensor"
    storage.__dict__["_rebuild_npu_tensor"] = _rebuild_npu_tensor
    for name, module in (("torch_npu", types.ModuleType("torch_npu")), ("torch_npu.utils", types.ModuleType("u"))):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setitem(sys.modules, storage.__name__, storage)
    weight = torch.randn(4, 3)

    class OnNpu:
        def __reduce__(self) -> tuple[Any, ...]:
            stored = weight.untyped_storage()
            typed = torch.storage.TypedStorage(wrap_storage=stored, dtype=torch.float32, _internal=True)
            return _rebuild_npu_tensor, (typed, 0, (4, 3), (3, 1), False, OrderedDict(), 29)

    torch.save({"w.weight": OnNpu()}, tmp_path / "npu.pt")
    with open_checkpoint(tmp_path / "npu.pt") as checkpoint:
        assert_holds(checkpoint, {"w.weight": weight})


def test_a_training_checkpoint_is_the_model_and_its_optimizer(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.randn(5, 4)).sum().backward()
    optimizer.step()
    saved = {
        "epoch": 3, "args": {"path": Path("x"), "rate": np.float64(0.5)}, "model": model.state_dict(),
        "optim": {"adam": optimizer.state_dict()}, "ema": {"a.weight": torch.ones(3)},
    }  # fmt: skip
    torch.save(saved, tmp_path / "a.pt")
    with open_checkpoint(tmp_path / "a.pt") as checkpoint:
        assert_holds(checkpoint, dict(model.state_dict()))
        assert checkpoint.others == {"ema": 1}
        adam = checkpoint.optimizers["optim.adam"]
        assert adam.order == (0, 1, 2, 3)
        exp_avg = optimizer.state_dict()["state"][2]["exp_avg"]
        assert adam.states[2]["exp_avg"].read(0, 3).tobytes() == raw(exp_avg)


def test_what_is_no_plain_tensor_is_named(tmp_path: Path) -> None:
    torch.save(
        {"a.w": torch.eye(3).to_sparse(), "b.w": torch.ones(2), "c.w": torch.ones(2, device="meta")}, tmp_path / "a.pt"
    )
    with open_checkpoint(tmp_path / "a.pt") as checkpoint:
        assert {name: entry.why for name, entry in checkpoint.entries.items()} == {
            "a.w": "it is sparse",
            "b.w": "",
            "c.w": "it is on the device 'meta' and has no values",
        }


class Bomb:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("kind", ["zip", "legacy", "plain pickle"])
def test_a_pickle_with_code_is_refused_and_not_run(kind: str, tmp_path: Path) -> None:
    path, mark = tmp_path / "evil.bin", tmp_path / "it ran"
    if kind == "plain pickle":
        import pickle

        path.write_bytes(pickle.dumps({"w": Bomb(mark)}))
    else:
        torch.save({"w": torch.ones(3), "x": Bomb(mark)}, path, _use_new_zipfile_serialization=kind == "zip")
    with pytest.raises(CheckpointError) as caught, open_checkpoint(path):
        pass
    assert str(caught.value) == (
        f"Cannot read '{path}': its pickle asks for 'posix.mkdir', which may be code and not weights. Nothing of it "
        "was run. Load it where it was made, and save the weights alone: `torch.save(model.state_dict(), "
        "'weights.pt')`, or a safetensors file."
    )
    assert not mark.exists()


def test_a_whole_model_is_refused(tmp_path: Path) -> None:
    torch.save(nn.Linear(2, 2), tmp_path / "model.pt")
    with (
        pytest.raises(CheckpointError, match=r"its pickle asks for 'torch\.nn\.modules\.linear\.Linear'"),
        open_checkpoint(tmp_path / "model.pt"),
    ):
        pass


def test_a_checkpoint_is_compared_without_torch(tmp_path: Path) -> None:
    torch.save(STATE, tmp_path / "a.pt")
    save_file(STATE, tmp_path / "a.safetensors")
    program = "import sys; sys.modules['torch'] = None; from align.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "checkpoint", "a.pt", "a.safetensors"],
        cwd=tmp_path, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "The same 18 entries, equal to the bit." in done.stdout


def test_shards_of_transformers_are_one_checkpoint(tmp_path: Path) -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(n_layer=2, n_embd=32, n_head=2, vocab_size=300, n_positions=16))
    model.save_pretrained(tmp_path / "shards", max_shard_size="40KB")
    assert len(list((tmp_path / "shards").glob("*.safetensors"))) > 1
    state = {name: tensor for name, tensor in model.state_dict().items() if name != "lm_head.weight"}
    for path in (tmp_path / "shards", tmp_path / "shards" / "model.safetensors.index.json"):
        with open_checkpoint(path) as checkpoint:
            assert_holds(checkpoint, state)
            assert checkpoint.what.startswith("safetensors, ")


def test_an_index_of_pickles_is_read(tmp_path: Path) -> None:
    names = list(STATE)
    torch.save({name: STATE[name] for name in names[:7]}, tmp_path / "pytorch_model-00001-of-00002.bin")
    torch.save({name: STATE[name] for name in names[7:]}, tmp_path / "pytorch_model-00002-of-00002.bin")
    shards = {name: f"pytorch_model-0000{1 if name in names[:7] else 2}-of-00002.bin" for name in names}
    import json

    (tmp_path / "pytorch_model.bin.index.json").write_text(json.dumps({"metadata": {}, "weight_map": shards}))
    with open_checkpoint(tmp_path) as checkpoint:
        assert checkpoint.what == "torch, 2 files"
        assert_holds(checkpoint, STATE)


def test_a_folder_is_its_checkpoint_and_the_optimizer_beside_it(tmp_path: Path) -> None:
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), momentum=0.9)
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    save_file(dict(model.state_dict()), tmp_path / "model.safetensors")
    torch.save(optimizer.state_dict(), tmp_path / "optimizer.pt")
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    (tmp_path / "config.json").write_text("{}")
    with open_checkpoint(tmp_path) as checkpoint:
        assert_holds(checkpoint, dict(model.state_dict()))
        assert list(checkpoint.optimizers["optimizer"].states) == [0, 1]
        assert checkpoint.notes == (
            f"Of the folder '{tmp_path}' model.safetensors is compared; it also holds pytorch_model.bin.",
        )


def test_a_compressed_archive_is_no_file_of_torch(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    torch.save(STATE, buffer)
    with zipfile.ZipFile(buffer) as old, zipfile.ZipFile(tmp_path / "a.pt", "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    with (
        pytest.raises(CheckpointError, match="its zip is compressed, as torch never does"),
        open_checkpoint(tmp_path / "a.pt"),
    ):
        pass
