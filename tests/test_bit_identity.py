"""Watching changes nothing: losses, parameters and generator states are the same bit for bit."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.running import STEPS, WORKLOADS, capture_all, environment

DETAILS = ("stats", "sketch", "tensors")
PRECISIONS = ("fp32", "bf16", "fp16")
SIZE = {"gpt2.py": ("--layers", "2"), "llama.py": ("--layers", "2"), "digits_cnn.py": ("--workers", "2")}
STEP_OPTIONS = {"checkpointing.py": ("--reentrant",), "validation.py": ("--grad",)}

PLAIN_PROCESS = """
import json, runpy, sys

for script, *arguments in json.loads(sys.stdin.read()):
    sys.argv = [script, *arguments]
    runpy.run_path(script, run_name="__main__")
"""

SHORT = ("--steps", "4", "--dropout", "0.1")

RUNS: dict[str, tuple[str | Path, ...]] = {
    **{
        f"{script}-{precision}": (WORKLOADS / script, *options, "--precision", precision, *SHORT)
        for script, options in SIZE.items()
        for precision in PRECISIONS
    },
    **{
        path.name: (path, *STEP_OPTIONS.get(path.name, ()))
        for path in sorted(STEPS.glob("*.py"))
        if path.stem != "exception"
    },
    "checkpointing.py non-reentrant": (STEPS / "checkpointing.py",),
    "gpt2.py checkpointed": (WORKLOADS / "gpt2.py", "--layers", "2", "--checkpointing", *SHORT),
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The end state of every run, plain and captured at each detail."""
    folder = tmp_path_factory.mktemp("identity")
    plain = [
        [*map(str, script), "--device", "cpu", "--save", str(folder / f"{name}.plain")] for name, script in RUNS.items()
    ]
    subprocess.run(
        [sys.executable, "-c", PLAIN_PROCESS], input=json.dumps(plain), text=True, check=True, capture_output=True,
        env=environment(), timeout=600,
    )  # fmt: skip
    captures: list[tuple[Path, Sequence[str | Path]]] = [
        (
            folder / f"{name}.{detail}.h5",
            ["--detail", detail, *script, "--device", "cpu", "--save", folder / f"{name}.{detail}"],
        )
        for name, script in RUNS.items()
        for detail in DETAILS
    ]
    capture_all("auto", captures)
    return folder


def same(ours: Any, theirs: Any) -> bool:
    """Whether two saved states are equal bit for bit."""
    if isinstance(ours, torch.Tensor):
        return ours.dtype == theirs.dtype and bytes(ours.reshape(-1).view(torch.uint8).numpy()) == bytes(
            theirs.reshape(-1).view(torch.uint8).numpy()
        )
    if isinstance(ours, dict):
        return list(ours) == list(theirs) and all(same(ours[key], theirs[key]) for key in ours)
    if isinstance(ours, (list, tuple)):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    return repr(ours) == repr(theirs)


@pytest.mark.parametrize("detail", DETAILS)
@pytest.mark.parametrize("name", RUNS)
def test_a_captured_run_ends_as_the_plain_one(saved: Path, name: str, detail: str) -> None:
    plain = torch.load(saved / f"{name}.plain", weights_only=False)
    captured = torch.load(saved / f"{name}.{detail}", weights_only=False)
    assert set(plain) >= {"model", "losses", "rng"}
    for part in plain:
        assert same(plain[part], captured[part]), f"{part} differs"


def test_a_difference_would_be_seen(saved: Path) -> None:
    plain = torch.load(saved / "gpt2.py-fp32.plain", weights_only=False)
    other = torch.load(saved / "gpt2.py-bf16.plain", weights_only=False)
    assert not same(plain["model"], other["model"])
    assert not same(plain["losses"], other["losses"])
