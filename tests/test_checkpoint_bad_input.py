"""What is no checkpoint, or half of one, is answered by a sentence and exit code 2; no bytes crash or hang a reader."""

from __future__ import annotations

import json
import pickle
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from align.checkpoint_files import open_checkpoint
from align.cli import main
from align.commands import checkpoint_files
from align.errors import AlignError
from align.records import Verdict

STATE = {"a.weight": torch.arange(12.0).view(4, 3), "a.bias": torch.ones(4)}


def header(table: object, data: int = 0) -> bytes:
    """A safetensors file with this header and so many bytes of data."""
    text = json.dumps(table).encode()
    return len(text).to_bytes(8, "little") + text + bytes(data)


def entry(dtype: str = "F32", shape: tuple[int, ...] = (2,), begin: int = 0, end: int = 8) -> dict[str, object]:
    """One entry of a header."""
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


BAD_FILES: dict[str, tuple[str, bytes, str]] = {
    "empty": ("a.safetensors", b"", "it is empty. Save or download it again."),
    "zeros": (
        "a.pt",
        bytes(100),
        "it begins with zeros only: it was not written to its end. Copy or download it again.",
    ),
    "web page": (
        "a.safetensors",
        b"\n<!DOCTYPE html><html><title>Access denied</title>",
        (
            "it is a web page, such as an error of the server it was downloaded from. Download it again and look at "
            "the page in a browser: it may ask to log in."
        ),
    ),
    "lfs pointer": (
        "a.safetensors",
        b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 5362031616\n",
        (
            "it is a Git LFS pointer to a file of 5,362,031,616 bytes, not the file. Run `git lfs pull` in its "
            "repository, or download the file itself."
        ),
    ),
    "noise": (
        "a.safetensors",
        b"\xff" * 64,
        (
            "it is no safetensors file: its first 8 bytes say that its header has 18,446,744,073,709,551,615 bytes. "
            "Save or download it again."
        ),
    ),
    "text": (
        "a.pt",
        b"these are my weights",
        (
            "it is neither a file of `torch.save` nor safetensors. Name a .pt, .bin or .safetensors file, a folder "
            "that holds one, or a capture."
        ),
    ),
    "other pickle": (
        "a.bin",
        pickle.dumps({"a": 1}),
        (
            "it is neither a file of `torch.save` nor safetensors. Name a .pt, .bin or .safetensors file, a folder "
            "that holds one, or a capture."
        ),
    ),
    "cut header": (
        "a.safetensors",
        header({"a": entry()}, 8)[:30],
        "it is truncated: its header has 61 bytes and 22 are there. Copy or download it again.",
    ),
    "cut data": (
        "a.safetensors",
        header({"a": entry()}, 5),
        "it is truncated: its tensors have 8 bytes and 5 are there. Copy or download it again.",
    ),
    "no json": (
        "a.safetensors",
        (4).to_bytes(8, "little") + b"{a:1",
        (
            "the header of 4 bytes is no JSON (Expecting property name enclosed in double quotes: line 1 column 2 "
            "(char 1)). Save or download it again."
        ),
    ),
    "list": ("a.safetensors", header([1]), "its header is no table of tensors. Save or download it again."),
    "no entry": (
        "a.safetensors",
        header({"a": 3}),
        "its header says nothing of use about 'a'. Save or download it again.",
    ),
    "dtype": (
        "a.safetensors",
        header({"a": entry("F33")}, 8),
        "'a' has the dtype 'F33', which is not known here. Update align, or convert the tensor.",
    ),
    "shape": (
        "a.safetensors",
        header({"a": entry(shape=(3,))}, 8),
        "'a' of shape [3] needs 12 bytes and has 8. Save or download it again.",
    ),
    "negative shape": (
        "a.safetensors",
        header({"a": entry(shape=(-1, -2))}, 8),
        "shape [-1, -2] or place [0, 8] of 'a' make no sense. Save or download it again.",
    ),
    "overlap": (
        "a.safetensors",
        header({"a": entry(), "b": entry(begin=4, end=12)}, 12),
        "the data of 'b' overlaps the tensor before it. Save or download it again.",
    ),
    "gap": (
        "a.safetensors",
        header({"a": entry(), "b": entry(begin=12, end=20)}, 20),
        "the data of 'b' leaves a gap before it. Save or download it again.",
    ),
    "more": (
        "a.safetensors",
        header({"a": entry()}, 10),
        "2 bytes follow the last tensor, which belong to none. Save or download it again.",
    ),
    "twice": (
        "a.safetensors",
        (90).to_bytes(8, "little")
        + b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":'.ljust(58)
        + b"1}".ljust(32),
        "the header of 90 bytes is no JSON (a name stands in it twice). Save or download it again.",
    ),
    "conflict": (
        "a.json",
        b'{"weight_map": {\n<<<<<<< HEAD\n"a": "x"\n=======\n"a": "y"\n>>>>>>> other\n}}',
        (
            "it holds the marks of an unfinished merge (<<<<<<<, >>>>>>>). Finish the merge, or take the index of one "
            "side whole."
        ),
    ),
    "cut index": (
        "a.json",
        b'{"weight_map": {"a": "model-1.safetens',
        "it is no whole JSON (Unterminated string starting at: line 1 column 22 (char 21)). Copy or download it again.",
    ),
    "other json": (
        "config.json",
        b'{"hidden_size": 64}',
        (
            "it has no table 'weight_map', so it is no index of a checkpoint. Name a .index.json file, a file with "
            "weights, or the folder."
        ),
    ),
    "missing shards": (
        "a.json",
        b'{"weight_map": {"a": "m-1.bin", "b": "m-2.bin"}}',
        "2 of its 2 shards are not there: m-1.bin, m-2.bin. Download them into the folder of the index.",
    ),
    "path in an index": (
        "a.json",
        b'{"weight_map": {"a": "../../etc/passwd"}}',
        "it says that 'a' is in '../../etc/passwd', which is no file beside it. Copy or download it again.",
    ),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_bad_file_is_told(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name, data, sentence = BAD_FILES[case]
    path = tmp_path / name
    path.write_bytes(data)
    good = tmp_path / "good.safetensors"
    save_file(STATE, good)
    assert main(["checkpoint", str(good), str(path)], standalone_mode=False) == 2
    said = capsys.readouterr()
    assert said.err == f"align: Cannot read '{path}': {sentence}\n"
    assert said.out == ""


def test_an_index_whose_shard_lacks_a_tensor_is_told(tmp_path: Path) -> None:
    save_file(STATE, tmp_path / "m-1.safetensors")
    table = {"a.weight": "m-1.safetensors", "gone": "m-1.safetensors"}
    path = tmp_path / "model.safetensors.index.json"
    path.write_text(json.dumps({"weight_map": table}))
    assert refusal(tmp_path) == (
        f"Cannot read '{tmp_path}': 1 of its 2 tensors are not in the shards that it names: gone. Index and shards are "
        "of different savings: take all of them from one."
    )


def test_a_folder_without_one_checkpoint_is_told(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    assert refusal(tmp_path) == (
        f"Cannot read '{tmp_path}': there is no checkpoint among its 1 files. Name a folder with .safetensors, .bin, "
        ".pt or an .index.json in it."
    )
    (tmp_path / "step-100").mkdir()
    save_file(STATE, tmp_path / "step-100" / "model.safetensors")
    assert refusal(tmp_path) == (
        f"Cannot read '{tmp_path}': the checkpoints are in folders below it: step-100. Name one of them."
    )
    for name in ("x.pt", "y.pt"):
        torch.save(STATE, tmp_path / name)
    assert refusal(tmp_path) == f"Cannot read '{tmp_path}': it holds 2 checkpoints: x.pt, y.pt. Name one of them."


def test_a_distributed_checkpoint_is_told_with_its_converter(tmp_path: Path) -> None:
    (tmp_path / ".metadata").write_bytes(b"x")
    (tmp_path / "__0_0.distcp").write_bytes(b"x")
    assert "`python -m torch.distributed.checkpoint.format_utils dcp_to_torch" in refusal(tmp_path)


def test_hdf5_that_is_no_capture_is_told(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "keras.h5", "w") as file:
        file["layer"] = np.ones(3)
    assert refusal(tmp_path / "keras.h5") == (
        f"Cannot read '{tmp_path / 'keras.h5'}': it is an HDF5 file, but not a capture. Name a file that 'align "
        "capture' wrote."
    )


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    assert refusal(tmp_path / "no.pt") == (
        f"Cannot read '{tmp_path / 'no.pt'}': there is no such file or folder. Check the path."
    )


def test_a_file_without_tensors_is_told(tmp_path: Path) -> None:
    torch.save({"epoch": 3}, tmp_path / "a.pt")
    assert refusal(tmp_path / "a.pt") == (
        f"Cannot read '{tmp_path / 'a.pt'}': there is no tensor in it (a dict). Name a file with weights."
    )


def refusal(path: Path) -> str:
    """The sentence with which a path is refused."""
    with pytest.raises(AlignError) as caught, open_checkpoint(path):
        pass
    return str(caught.value)


def saved_as(kind: str, path: Path) -> bytes:
    """A small checkpoint as the bytes of one kind of file."""
    if kind == "safetensors":
        save_file(STATE, path)
    else:
        torch.save({"model": STATE, "step": 3}, path, _use_new_zipfile_serialization=kind == "zip")
    return path.read_bytes()


def read_all(path: Path) -> None:
    """Open a file and read every tensor of it; only sentences may come of it."""
    refused = ""
    try:
        with open_checkpoint(path) as checkpoint:
            for one in checkpoint.entries.values():
                if one.bytes_at is not None:
                    one.read_into(0, memoryview(bytearray(one.nbytes)))
    except AlignError as error:
        refused = str(error)
    assert not refused or refused.startswith("Cannot read ")


FUZZ = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize("kind", ["safetensors", "zip", "legacy"])
def test_damaged_files_are_read_or_refused(kind: str, tmp_path: Path) -> None:
    whole = saved_as(kind, tmp_path / "whole")
    path = tmp_path / ("a.safetensors" if kind == "safetensors" else "a.pt")

    @FUZZ
    @given(
        st.lists(st.tuples(st.integers(0, len(whole) - 1), st.integers(0, 255)), max_size=6), st.integers(0, len(whole))
    )
    def damage(flips: list[tuple[int, int]], cut: int) -> None:
        data = bytearray(whole)
        for place, value in flips:
            data[place] = value
        path.write_bytes(data if cut % 2 else data[:cut])
        read_all(path)

    tracemalloc.start()
    damage()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50e6


@pytest.mark.parametrize("name", ["a.pt", "a.safetensors", "a.json"])
def test_bytes_of_any_kind_are_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    begins: list[Callable[[bytes], bytes]] = [bytes, lambda data: b"\x80\x02" + data, lambda data: b"PK\x03\x04" + data]

    @FUZZ
    @given(st.binary(max_size=300), st.integers(0, 2))
    def read(data: bytes, begin: int) -> None:
        path.write_bytes(begins[begin](data))
        read_all(path)

    read()


DTYPES = ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "int8", "int64", "uint64", "bool", "complex64")


@pytest.mark.parametrize("dtype", DTYPES)
def test_damaged_values_are_a_difference(dtype: str, tmp_path: Path) -> None:
    """Any bits in any dtype, NaN that signal and the largest exponents among them."""
    kind = getattr(torch, dtype)
    values = torch.randn(24, 16, generator=torch.Generator().manual_seed(0)).to(kind)
    whole, damaged = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    save_file({"layers.0.w.weight": values, "layers.0.w.bias": values[0].clone()}, whole)
    data = whole.read_bytes()
    first = len(data) - values.nbytes - values[0].nbytes

    @settings(max_examples=15, deadline=None)
    @given(st.lists(st.tuples(st.integers(first, len(data) - 1), st.integers(0, 255)), min_size=1, max_size=40))
    def damage(flips: list[tuple[int, int]]) -> None:
        changed = bytearray(data)
        for place, value in flips:
            changed[place] = value & 1 if dtype == "bool" else value
        damaged.write_bytes(changed)
        result = checkpoint_files(str(whole), str(damaged))
        if changed == data:
            assert result.verdict is Verdict.ALIGNED
        elif result.verdict is not Verdict.DIVERGED:
            assert set(result.counts) & {"equal, bits differ"}

    damage()


def test_tables_that_hold_themselves_end(tmp_path: Path) -> None:
    loop: dict[str, object] = {"w.weight": torch.ones(3)}
    loop["again"] = loop
    torch.save(loop, tmp_path / "loop.pt")
    with open_checkpoint(tmp_path / "loop.pt") as checkpoint:
        assert list(checkpoint.entries) == ["w.weight"]
    nested: object = torch.ones(3)
    for _ in range(30):
        nested = [nested, nested]
    torch.save({"w": nested}, tmp_path / "laughs.pt")
    assert refusal(tmp_path / "laughs.pt") == (
        f"Cannot read '{tmp_path / 'laughs.pt'}': it nests more than 500,000 values. Save the weights alone."
    )
