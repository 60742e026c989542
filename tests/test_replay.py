"""Replays: what they force, what they find that a comparison of two files does not, and what cannot be replayed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from align.capture_file import open_capture
from align.cli import main
from align.comparison import Walk, compare
from align.diagnosis import diagnose
from align.records import INIT_STEP, Phase, TensorKey
from align.replay import judge_replays
from align.replay_summary import Replayed
from tests.running import BENIGN, SHARED_PROCESS, STEPS, WORKLOADS, environment, run_python

SCRIPT = WORKLOADS / "one_percent.py"
DIGITS = WORKLOADS / "digits_cnn.py"
DIGITS_OPTIONS = ("--steps", "1", "--precision", "bf16")
WRONG = ("module", "functional", "inplace", "backward", "update")
KINDS = {
    "bf16": ("--accumulate", "2"),
    "fp16": ("--precision", "fp16", "--checkpointing"),
}


def capture_of(path: Path, *options: str, script: Path = SCRIPT, device: str = "cpu", steps: str = "0:2") -> list[str]:
    return [
        "capture", "--device", device, "--detail", "tensors", "--steps", steps, "-o", str(path), str(script), *options,
    ]  # fmt: skip


def replay_of(path: Path, precision: str, *options: str, script: Path = SCRIPT) -> list[str]:
    output = str(path.with_suffix(".replay.h5"))
    return [
        "replay-one", "--device", "cpu", "--capture", str(path), "-o", output, "--precision", precision, str(script),
        *options,
    ]  # fmt: skip


def run_all(commands: Sequence[Sequence[str]], *, simulated: bool = False) -> None:
    """Several commands in one process; all must succeed, without any trouble."""
    done = run_python("-c", SHARED_PROCESS, given=json.dumps(commands), simulator=BENIGN if simulated else None)
    codes = [line for line in done.stdout.splitlines() if line.startswith("<exit code")]
    assert codes == ["<exit code 0>"] * len(commands), f"{codes}\n{done.stderr[-3000:]}"
    assert [line for line in done.stderr.splitlines() if "trouble" in line] == []


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Captures of the script and their replays, those of `KINDS` by the script with another seed."""
    folder = tmp_path_factory.mktemp("replays")
    commands = []
    for name, options in KINDS.items():
        commands.append(capture_of(folder / f"{name}.h5", *options))
        commands.append(replay_of(folder / f"{name}.h5", "same", "--seed", "1", *options))
    for name in ("right", *WRONG):
        commands.append(capture_of(folder / f"{name}.h5", *(() if name == "right" else ("--wrong", name))))
        commands.append(replay_of(folder / f"{name}.h5", "fp64"))
    commands.append(capture_of(folder / "digits.h5", *DIGITS_OPTIONS, script=DIGITS))
    commands.append(replay_of(folder / "digits.h5", "fp64", *DIGITS_OPTIONS, script=DIGITS))
    npu = capture_of(folder / "npu.h5", *DIGITS_OPTIONS, script=DIGITS, device="npu")
    run_all([npu], simulated=True)
    commands.append(replay_of(folder / "npu.h5", "fp64", *DIGITS_OPTIONS, script=DIGITS))
    sketch = ["capture", "--device", "cpu", "--steps", "0:1", "--stop", "-o", str(folder / "sketch.h5"), str(SCRIPT)]
    later = capture_of(folder / "later.h5", steps="1:2")
    part = capture_of(folder / "part.h5", steps="0:1")
    part[1:1] = ["--phases", "init,input,forward"]
    other = capture_of(folder / "other.h5", script=STEPS / "accumulation.py", steps="0:1")
    run_all([*commands, sketch, later, part, other])
    return folder


def judged(reference: Path, candidate: Path) -> tuple[Walk, Walk]:
    """The comparison of two captures, and the same judged by their replays."""
    paths = [reference, reference.with_suffix(".replay.h5"), candidate, candidate.with_suffix(".replay.h5")]
    opened = [open_capture(path) for path in paths]
    walk = compare(opened[0], opened[2])
    found = judge_replays(walk, Replayed(opened[0], opened[1]), Replayed(opened[2], opened[3]))
    for each in opened:
        each.close()
    return walk, found


def different(path: Path) -> set[tuple[Phase, str]]:
    """Phase and name of every record whose values in the replay are not those of the capture, bit for bit."""
    found: set[tuple[Phase, str]] = set()
    with open_capture(path) as capture, open_capture(path.with_suffix(".replay.h5")) as replay:
        assert replay.steps == capture.steps == [0, 1]
        for step in (INIT_STEP, 0, 1):
            theirs = {record.key: record for record in replay.records(step)}
            ours = capture.records(step)
            assert [record.key for record in ours] == list(theirs)
            for record in ours:
                other = theirs[record.key]
                assert (other.dtype, other.same_as is None) == (record.dtype, record.same_as is None), record.key
                if capture.raw_values(record).tobytes() != replay.raw_values(other).tobytes():
                    found.add((record.key.phase, record.key.name))
    return found


# What a replay forces.


@pytest.mark.parametrize("kind", KINDS)
def test_a_replay_repeats_every_bit_of_its_capture_whatever_the_script_drew(folder: Path, kind: str) -> None:
    """The script began with other weights and batches; only what it drew itself outside of the model differs."""
    assert different(folder / f"{kind}.h5") == {(Phase.RNG, "torch"), (Phase.LOSS, "loss")}


def test_a_replay_says_what_it_replays(folder: Path) -> None:
    with open_capture(folder / "right.replay.h5") as replay:
        facts = replay.run.same_start
        dtypes = {record.dtype for record in replay.records(0) if record.key.phase is Phase.FORWARD}
        gradients = {record.dtype for record in replay.records(0) if record.key.phase is Phase.GRADIENT}
    told = {name: facts[name] for name in ("init_from", "replays", "replay_precision")}
    path = str(folder / "right.h5")
    assert told == {"init_from": path, "replays": path, "replay_precision": "fp64"}
    assert facts["replaced"] > 300
    assert "not_replaced" not in facts
    assert dtypes == {"float32", "float64"}  # what the model is given stays as it is
    assert gradients == {"float32"}


# What replays find.


def first_place(walk: Walk) -> tuple[Phase, str] | None:
    first = walk.first
    return None if first is None else (first.comparison.key.phase, first.owner)


@pytest.mark.parametrize(
    ("wrong", "place"),
    [
        ("module", (Phase.FORWARD, "blocks.1.up")),
        ("inplace", (Phase.FORWARD, "blocks.1")),
        ("functional", (Phase.BACKWARD, "blocks.1")),
        ("backward", (Phase.BACKWARD, "blocks.1")),
        ("update", (Phase.UPDATE, "blocks.1.down")),
    ],
)
def test_one_percent_is_found_in_bf16_where_it_starts(folder: Path, wrong: str, place: tuple[Phase, str]) -> None:
    walk = judged(folder / "right.h5", folder / f"{wrong}.h5")[1]
    assert first_place(walk) == place
    # Nothing else is accused: what follows from the fault is no error of its own.
    assert {suspect.owner for result in walk.results for suspect in result.suspects} == {place[1]}


def test_a_factor_is_told(folder: Path) -> None:
    result = diagnose(judged(folder / "right.h5", folder / "module.h5")[1])
    assert result.summary == (
        "blocks.1.up is a Linear in the reference and a Odd in the candidate. Step 0, forward: blocks.1.up output.0 is "
        "the first tensor that differs (relative L2 0.010, of it a common factor of 1.0097, 49.7x the floor)."
    )
    assert result.resolution.floor_method == "replay (fp64)"
    assert (result.resolution.smallest_visible_effect or 0.0) < 0.012


def test_benign_numerics_of_another_device_are_no_fault(folder: Path) -> None:
    walk = judged(folder / "digits.h5", folder / "npu.h5")[1]
    assert first_place(walk) is None
    assert walk.judged_share > 0.9
    # Decisions (ReLU, max-pool) are those of the capture, so that its backward is the same to the bit.
    exact = [each for each in walk.comparisons if each.key.name == "blocks.0.act" and each.key.phase is Phase.BACKWARD]
    assert [each.relative_l2 for each in exact] == [0.0] * len(exact) != []


def test_the_command_runs_the_script_and_keeps_the_replays(folder: Path, tmp_path: Path) -> None:
    kept, page = tmp_path / "kept", tmp_path / "result.json"
    files = [str(folder / "right.h5"), str(folder / "inplace.h5")]
    options = ["--device", "cpu", "--precision", "fp32", "--keep", str(kept), "--json", str(page)]
    done = CliRunner().invoke(main, ["replay", *options, *files, str(SCRIPT)], env=environment())
    assert done.exit_code == 1, done.output
    assert done.stderr.splitlines()[:2] == [f"align: replaying {file} in fp32" for file in files]
    assert "step 0 loss" not in done.output
    result = json.loads(page.read_text())
    assert result["verdict"] == "diverged"
    assert result["resolution"]["floor_method"] == "replay (fp32)"
    assert result["findings"][0]["where"]["name"] == "blocks.1"
    assert sorted(path.name for path in kept.iterdir()) == ["candidate-replay.h5", "reference-replay.h5"]


# What cannot be replayed.

AGAIN = "Capture it again with --detail tensors --steps 0:1."


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("sketch", f"it holds no values of the initial weights. {AGAIN}"),
        ("later", f"its first step is 1, and a replay begins at step 0 with the initial weights. {AGAIN}"),
        (
            "part",
            (
                "the phases loss, backward, gradient, update, param, optimizer, scaler, rng were left out of it, and a "
                f"replay needs every tensor. {AGAIN}"
            ),
        ),
    ],
)
def test_a_capture_that_cannot_be_replayed_is_refused(folder: Path, name: str, why: str) -> None:
    path = folder / f"{name}.h5"
    done = CliRunner().invoke(main, ["replay", str(folder / "right.h5"), str(path), str(SCRIPT)])
    assert (done.exit_code, done.stderr) == (2, f"align: Cannot replay '{path}': {why}\n")


def test_a_script_of_another_model_is_refused(folder: Path) -> None:
    """What the child says last is told; it ends before it trains."""
    path, script = str(folder / "right.h5"), STEPS / "accumulation.py"
    done = CliRunner().invoke(main, ["replay", "--device", "cpu", path, path, str(script)], env=environment())
    assert done.exit_code == 2
    assert done.stderr.splitlines()[1].startswith(
        f"align: Cannot take initial weights from '{path}': none of its 22 tensors fits this model"
    )
    assert done.stderr.endswith(f"Give the script and arguments that '{path}' is of.\n")


def test_a_script_that_is_not_there_is_told(folder: Path) -> None:
    path = str(folder / "right.h5")
    done = CliRunner().invoke(main, ["replay", "--device", "cpu", path, path, "nowhere.py"], env=environment())
    assert done.exit_code == 2
    assert done.stderr.splitlines()[1] == (
        "align: Cannot run 'nowhere.py': it does not exist. Give the path of the training script, or -m MODULE."
    )


def test_options_behind_the_captures_are_refused(folder: Path) -> None:
    path = str(folder / "right.h5")
    done = CliRunner().invoke(main, ["replay", path, path, "--device", "cpu", str(SCRIPT)])
    assert done.exit_code == 2
    assert done.stderr == (
        "align: Cannot run the script '--device': the options of align replay stand before the first capture, what "
        "follows the script is the script's own.\n"
    )


def test_captures_of_different_models_are_refused_before_anything_runs(folder: Path) -> None:
    paths = [str(folder / "right.h5"), str(folder / "other.h5")]
    done = CliRunner().invoke(main, ["replay", *paths, str(SCRIPT)])
    assert done.exit_code == 2
    assert done.stderr.startswith(f"align: Cannot compare '{paths[0]}' with '{paths[1]}'")


def test_every_gradient_of_the_capture_is_in_the_replay(folder: Path) -> None:
    """Also those that are added to in a second micro-step, and those of what a checkpoint computes again."""
    for kind in KINDS:
        path = folder / f"{kind}.h5"
        with open_capture(path) as capture, open_capture(path.with_suffix(".replay.h5")) as replay:
            keys: list[set[TensorKey]] = [
                {record.key for record in each.records(1) if record.key.phase in {Phase.BACKWARD, Phase.GRADIENT}}
                for each in (capture, replay)
            ]
        assert keys[0] == keys[1]
        assert len(keys[0]) > 40
