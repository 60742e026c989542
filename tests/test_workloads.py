"""Every example script runs on the CPU, says what it did, and saves what it says."""

from __future__ import annotations

import json
import math
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.running import Outcome, python

torch = pytest.importorskip("torch")

FIXTURES = Path(__file__).parent.parent / "fixtures"
WORKLOADS = ["gpt2", "llama", "digits_cnn"]
LIBRARIES = ["transformers", "sklearn"]
CASES = ["where_sqrt", "key_norm_eps", "packed_mask", "all_ignored", "bf16_split", "double_shift"]
STEPS = sorted(path.stem for path in (FIXTURES / "workloads/steps").glob("*.py"))
# The other ways run, with and without capture, in test_ways_of_training.py.
COMPILED = ["wrapper", "method", "submodule", "function"]
BENCHMARK_SIZE = ["--layers", "6", "--width", "512", "--heads", "8", "--batch", "4", "--length", "256"]


PRECISIONS = ["fp32", "bf16", "fp16"]
OPTIONS = {
    "gpt2-checkpointing": ("gpt2", ["--checkpointing", "--accumulate", "2", "--dropout", "0.1"]),
    "gpt2-sdpa-fused": ("gpt2", ["--attention", "sdpa", "--fused", "--clip", "0"]),
    "gpt2-benchmark-size": ("gpt2", ["--optimizer", "sgd", *BENCHMARK_SIZE, "--steps", "1"]),
    "llama-sdpa": ("llama", ["--attention", "sdpa", "--accumulate", "2", "--dropout", "0.1"]),
    "digits-workers": ("digits_cnn", ["--workers", "2", "--optimizer", "adamw", "--layers", "3"]),
}

STRICT = """
import os, runpy, sys, warnings
warnings.filterwarnings("error", category=UserWarning, module=r"torch\\Z")
"""
"""Warnings from torch are errors."""

ONE = f"""{STRICT}
sys.argv = sys.argv[1:]
sys.path[0] = os.path.dirname(sys.argv[0])
runpy.run_path(sys.argv[0], run_name="__main__")
"""

EACH = f"""{STRICT}
import contextlib, io, json, traceback

def ended():
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except Exception:
        traceback.print_exc()
        return 1
    return 0

for sys.argv in json.loads(sys.stdin.read()):
    sys.path[0] = os.path.dirname(sys.argv[0])
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as errors:
        code = ended()
    print(json.dumps([code, out.getvalue(), errors.getvalue()]), flush=True)
"""
"""Importing transformers takes longer than any of the scripts."""


def run(script: str, *args: str) -> Outcome:
    """Run a script of `fixtures` in its own process, with warnings from torch as errors."""
    return python("-c", ONE, FIXTURES / script, *args)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the workloads save what they trained."""
    return tmp_path_factory.mktemp("workloads")


@pytest.fixture(scope="module")
def workloads(saved: Path) -> dict[str, Outcome]:
    """Every workload in each precision, and with its options, in one process."""
    for library in LIBRARIES:
        if find_spec(library) is None:  # only the scripts import them: it takes seconds
            pytest.skip(f"{library} is not installed")
    commands = {
        f"{name}-{precision}": (name, ["--precision", precision, "--save", str(saved / f"{name}-{precision}")])
        for name in WORKLOADS
        for precision in PRECISIONS
    } | OPTIONS
    given = [
        [str(FIXTURES / f"workloads/{name}.py"), "--device", "cpu", "--steps", "2", *options]
        for name, options in commands.values()
    ]
    done = python("-c", EACH, given=json.dumps(given))
    assert done.code == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {name: Outcome(*line) for name, line in zip(commands, lines, strict=True)}


def losses_of(finished: Outcome) -> list[float]:
    """Return the printed losses of a script that ended well."""
    assert finished.code == 0, finished.stderr
    printed = re.findall(r"^step (\d+) loss (\S+)", finished.stdout, flags=re.MULTILINE)
    assert [int(step) for step, _ in printed] == list(range(len(printed)))
    return [float(loss) for _, loss in printed]


def assert_saved(path: Path, losses: list[float]) -> None:
    """Check that the file holds these losses, finite weights and the states of three generators."""
    saved = torch.load(path, weights_only=False)
    assert saved["losses"] == losses
    assert set(saved["rng"]) == {"python", "numpy", "torch"}
    assert all(weight.isfinite().all() for weight in saved["model"].values())


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", WORKLOADS)
def test_a_workload_trains_and_saves(workloads: dict[str, Outcome], saved: Path, name: str, precision: str) -> None:
    losses = losses_of(workloads[f"{name}-{precision}"])
    assert len(losses) == 2
    assert losses[1] < losses[0]
    assert_saved(saved / f"{name}-{precision}", losses)


@pytest.mark.parametrize("name", OPTIONS)
def test_a_workload_takes_its_options(workloads: dict[str, Outcome], name: str) -> None:
    losses = losses_of(workloads[name])
    assert losses
    assert all(math.isfinite(loss) for loss in losses)


@pytest.mark.parametrize(("variant", "precision"), [("good", "fp32"), ("bad", "bf16")])
@pytest.mark.parametrize("name", CASES)
def test_a_case_runs(name: str, variant: str, precision: str) -> None:
    losses = losses_of(run(f"cases/{name}.py", "--variant", variant, "--precision", precision, "--steps", "2"))
    assert len(losses) == 2
    assert all(math.isfinite(loss) for loss in losses)


@pytest.mark.parametrize("variant", ["good", "bad"])
def test_all_ignored_poisons_only_the_bad_run(variant: str) -> None:
    losses = losses_of(run("cases/all_ignored.py", "--variant", variant))
    expected = [False, False, True, True, True] if variant == "bad" else [False] * 5
    assert [math.isnan(loss) for loss in losses] == expected


@pytest.mark.parametrize("name", [name for name in STEPS if name != "exception"])
def test_a_step_script_trains_and_saves(name: str, tmp_path: Path) -> None:
    path = tmp_path / "run.pt"
    losses = losses_of(run(f"workloads/steps/{name}.py", "--steps", "2", "--save", str(path)))
    assert len(losses) == 2
    assert_saved(path, losses)


def test_the_exception_comes_at_step_2_and_what_was_trained_is_saved(tmp_path: Path) -> None:
    path = tmp_path / "run.pt"
    finished = run("workloads/steps/exception.py", "--save", str(path))
    assert finished.code == 1
    assert finished.stderr.splitlines()[-1] == "ValueError: this call was meant to fail"
    assert finished.stdout.count("step ") == 2
    assert_saved(path, torch.load(path, weights_only=False)["losses"])


@pytest.mark.parametrize("name", ["scaler_skip", "fused_scaler"])
def test_the_first_three_steps_are_skipped(name: str) -> None:
    finished = run(f"workloads/steps/{name}.py", "--steps", "5")
    losses = losses_of(finished)
    assert re.findall(r"scale (\S+)$", finished.stdout, flags=re.MULTILINE) == [
        "262144.0",
        "131072.0",
        "65536.0",
        "32768.0",
        "32768.0",
    ]
    assert losses[0] == losses[1] == losses[2] == losses[3] > losses[4]


def test_validation_in_grad_mode_changes_no_loss() -> None:
    plain = run("workloads/steps/validation.py", "--steps", "2")
    with_grad = run("workloads/steps/validation.py", "--steps", "2", "--grad")
    assert losses_of(plain) == losses_of(with_grad)
    assert plain.stdout == with_grad.stdout


def test_both_kinds_of_checkpointing_train_alike() -> None:
    plain = run("workloads/steps/checkpointing.py", "--steps", "2")
    reentrant = run("workloads/steps/checkpointing.py", "--steps", "2", "--reentrant")
    assert losses_of(plain) == losses_of(reentrant)


def test_compiled_training_is_compiled_however_it_is_asked_for() -> None:
    script = "workloads/ways/compiled.py"
    plain = losses_of(run(script, "--how", "none"))
    probe = f"""
import runpy, sys, torch
from torch._dynamo.utils import counters
for how in {COMPILED}:
    counters.clear()
    torch._dynamo.reset()
    sys.argv = ["compiled.py", "--how", how, "--backend", "eager"]
    runpy.run_path({str(FIXTURES / script)!r}, run_name="__main__")
    print(how, counters["stats"]["unique_graphs"])
"""
    done = python("-c", probe)
    assert done.code == 0, done.stderr
    assert re.findall(r"^(\w+) (\d+)$", done.stdout, flags=re.MULTILINE) == [(how, "1") for how in COMPILED]
    compiled = [float(loss) for loss in re.findall(r"loss (\S+)$", done.stdout, flags=re.MULTILINE)]
    assert compiled == plain * len(COMPILED)


def test_a_wrong_backward_leaves_the_first_loss_and_changes_the_next() -> None:
    right = losses_of(run("workloads/steps/shared_input.py", "--steps", "2"))
    wrong = losses_of(run("workloads/steps/shared_input.py", "--steps", "2", "--wrong-backward", "k_proj"))
    assert right[0] == wrong[0]
    assert right[1] != wrong[1]
