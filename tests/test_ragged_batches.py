"""Batches whose sizes differ from run to run: they are taken as a whole, or not at all, and counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_sequence, pad_sequence
from torch.utils.data import DataLoader

import align
from align.hooks.nesting import numbers_in
from align.hooks.same_start import SameStart
from tests.running import align as command

ROWS = [torch.linspace(0, 1, 3 * size).reshape(size, 3) for size in range(1, 13)]


def padded(rows: list[torch.Tensor]) -> dict[str, torch.Tensor]:
    made = pad_sequence(rows, batch_first=True)
    return {"x": made, "mask": made.sum(-1) > 0}


def packed(rows: list[torch.Tensor]) -> PackedSequence:
    return pack_sequence(rows, enforce_sorted=False)


def with_lengths(rows: list[torch.Tensor]) -> dict[str, Any]:
    return {**padded(rows), "lengths": [len(row) for row in rows], "names": ["row"] * len(rows)}


class Reader(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cells = nn.GRU(3, 4, batch_first=True)

    def forward(self, batch: Any) -> torch.Tensor:
        x = batch if isinstance(batch, PackedSequence) else batch["x"]
        found: torch.Tensor = self.cells(x)[1]
        return found if isinstance(batch, PackedSequence) else found * batch["mask"].float().mean()


def read(path: Path, seed: int, collate: Callable[..., Any], **options: Any) -> tuple[align.Recorder, list[float]]:
    torch.manual_seed(0)
    model = Reader()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    order = torch.Generator().manual_seed(seed)
    rows: Any = ROWS  # a list will do for a dataset
    loader: Iterable[Any] = DataLoader(rows, 3, shuffle=True, collate_fn=collate, generator=order)
    with align.Recorder(path, **options) as recorder:
        for batch in loader:
            optimizer.zero_grad()
            loss = model(batch).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return recorder, losses


@pytest.mark.parametrize("collate", [padded, packed])
def test_batches_of_other_sizes_are_taken_whole(tmp_path: Path, collate: Callable[..., Any]) -> None:
    path = tmp_path / "one.h5"
    _, losses = read(path, 1, collate, keep=["batches"])
    recorder, again = read(tmp_path / "two.h5", 2, collate, same_start=SameStart(batches_from=str(path)))
    assert dict(recorder.troubles) == {}
    assert again[:3] == losses[:3]
    assert again[3] != losses[3]
    assert recorder.run_info.same_start == {"batches_from": str(path), "batches_taken": 3}


def test_a_batch_of_other_sizes_with_numbers_of_its_own_is_not_taken(tmp_path: Path) -> None:
    path = tmp_path / "one.h5"
    read(path, 1, with_lengths, keep=["batches"], steps="0")
    asked = SameStart(batches_from=str(path))
    recorder, _ = read(tmp_path / "two.h5", 2, with_lengths, same_start=asked)
    why = "its sizes differ, and lengths.0 is no tensor and would be the script's own"
    assert recorder.notes() == (
        f"Batch 0 of <DataLoader> was not taken from '{path}': {why}",
        f"No batch was taken from '{path}': no batch of this run is in it",
    )
    assert recorder.run_info.same_start["batches_why_missed"] == f"batch 0 of <DataLoader>: {why}"
    recorder, _ = read(tmp_path / "three.h5", 1, with_lengths, same_start=asked)
    assert recorder.notes() == ("Batches of <DataLoader> hold more than tensors (lengths.0): that is the script's own",)
    assert recorder.run_info.same_start == {
        "batches_from": str(path), "batches_taken": 1, "batches_missed": 2,
        "batches_why_missed": "batch 1 of <DataLoader>: not in it",
    }  # fmt: skip


def test_batches_are_counted_also_where_they_are_not_recorded(tmp_path: Path) -> None:
    path = tmp_path / "one.h5"
    read(path, 1, padded, keep=["batches"], steps="0:3")
    asked = SameStart(batches_from=str(path))
    recorder, _ = read(tmp_path / "two.h5", 2, padded, same_start=asked, phases=["loss"], steps="2:4")
    assert recorder.run_info.same_start == {
        "batches_from": str(path), "batches_taken": 1, "batches_missed": 1,
        "batches_why_missed": "batch 3 of <DataLoader>: not in it",
    }  # fmt: skip


SCRIPT = """
import torch
from torch.utils.data import DataLoader
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in DataLoader(torch.randn(12, 4), batch_size=3):
    model(x).mean().backward()
    optimizer.step()
"""


def test_the_last_line_says_how_many_were_taken(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    kept = command("capture", "--steps", "0", "--keep", "batches", "-o", "ref.h5", "train.py", cwd=tmp_path)
    assert kept.code == 0, kept.stderr
    taken = command("capture", "--batches-from", "ref.h5", "-o", "run.h5", "train.py", cwd=tmp_path)
    assert taken.code == 0, taken.stderr
    assert taken.last_line.endswith("same start: 1 of 3 batches from ref.h5 (batch 1 of <DataLoader>: not in it)")


def test_numbers_that_are_no_tensors_are_found() -> None:
    batch = {"x": torch.ones(2), "at": (1, "word", None), "y": [np.ones(2), {"z": np.float32(1)}], "flag": True}
    assert list(numbers_in(batch, "")) == [".at.0", ".y.0", ".y.1.z", ".flag"]
