"""Watching changes nothing: losses, parameters and generator states are the same bit for bit."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from tests.running import STEPS, WORKLOADS, capture_all, run_python
from tests.saved_states import differing_parts, same

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
    done = run_python("-c", PLAIN_PROCESS, given=json.dumps(plain), timeout=600)
    assert done.returncode == 0, done.stderr
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


@pytest.mark.parametrize("detail", DETAILS)
@pytest.mark.parametrize("name", RUNS)
def test_a_captured_run_ends_as_the_plain_one(saved: Path, name: str, detail: str) -> None:
    assert differing_parts(saved / f"{name}.plain", saved / f"{name}.{detail}") == []


def test_a_difference_would_be_seen(saved: Path) -> None:
    plain = torch.load(saved / "gpt2.py-fp32.plain", weights_only=False)
    other = torch.load(saved / "gpt2.py-bf16.plain", weights_only=False)
    assert not same(plain["model"], other["model"])
    assert not same(plain["losses"], other["losses"])
