"""Watching changes nothing: losses, parameters and generator states are the same bit for bit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from tests.running import STEPS, WORKLOADS, run_python
from tests.saved_states import differing_parts, same

DETAILS = ("stats", "sketch", "tensors")
PRECISIONS = ("fp32", "bf16", "fp16")
SIZE = {"gpt2.py": ("--layers", "2"), "llama.py": ("--layers", "2"), "digits_cnn.py": ("--workers", "2")}
STEP_OPTIONS = {"checkpointing.py": ("--reentrant",), "validation.py": ("--grad",)}

PROCESS = """
import gc, json, runpy, sys
from align.cli import main

plain, captures = json.loads(sys.stdin.read())
for script, *arguments in plain:
    sys.argv = [script, *arguments]
    runpy.run_path(script, run_name="__main__")
for arguments in captures:
    # What the plain runs have imported need not be looked through again.
    gc.collect()
    gc.freeze()
    code = main(arguments, prog_name="align", standalone_mode=False)
    assert not code, arguments
"""
"""All plain runs, then all captures: what the scripts import takes longer than most of them."""

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


WATCHED = [
    *(
        (f"{script}-{precision}", detail)
        for row, script in enumerate(SIZE)
        for column, precision in enumerate(PRECISIONS)
        for detail in dict.fromkeys(("sketch", DETAILS[(row + column) % 3]))
    ),
    *((name, detail) for name, (script, *_) in RUNS.items() if Path(script).name not in SIZE for detail in DETAILS),
    *(("gpt2.py checkpointed", detail) for detail in DETAILS),
]
"""Each workload and each precision at every detail, and the small scripts too."""


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The end state of every run, plain and captured."""
    folder = tmp_path_factory.mktemp("identity")

    def command(name: str, way: str) -> list[str]:
        return [*map(str, RUNS[name]), "--device", "cpu", "--save", str(folder / f"{name}.{way}")]

    plain = [command(name, "plain") for name in RUNS]
    captures = [
        ["capture", "--detail", detail, "-o", str(folder / f"{name}.{detail}.h5"), *command(name, detail)]
        for name, detail in WATCHED
    ]
    done = run_python("-c", PROCESS, given=json.dumps([plain, captures]), timeout=600)
    assert done.returncode == 0, done.stderr
    assert "trouble" not in done.stderr
    return folder


@pytest.mark.parametrize(("name", "detail"), WATCHED)
def test_a_captured_run_ends_as_the_plain_one(saved: Path, name: str, detail: str) -> None:
    assert differing_parts(saved / f"{name}.plain", saved / f"{name}.{detail}") == []


def test_a_difference_would_be_seen(saved: Path) -> None:
    plain = torch.load(saved / "gpt2.py-fp32.plain", weights_only=False)
    other = torch.load(saved / "gpt2.py-bf16.plain", weights_only=False)
    assert not same(plain["model"], other["model"])
    assert not same(plain["losses"], other["losses"])
