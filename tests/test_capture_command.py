"""`align capture` as its user meets it: what it runs, what it says, and every way it can be refused."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import h5py
import pytest
import torch

from align.capture_file import open_capture
from align.records import INIT_STEP, Phase
from tests.running import BENIGN, ROOT, STEPS, align, environment, python

TINY = STEPS / "accumulation.py"
BROKEN = {"broken_cann": "libhccl.so"}


def script(folder: Path, text: str, name: str = "train.py") -> Path:
    path = folder / name
    path.write_text(text)
    return path


TRAINING = """
import sys, torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(16, 4)
for step in range(int(sys.argv[1]) if len(sys.argv) > 1 else 5):
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    print(step, flush=True)
"""


# ---- what it does


def test_the_script_runs_as_python_would_run_it(tmp_path: Path) -> None:
    probe = script(
        tmp_path,
        "import sys, pathlib, pickle, __main__\n"
        "class Thing:\n    pass\n"
        "print(__name__, __file__, sys.argv, sys.path[0], __spec__, __package__)\n"
        "print(type(pickle.loads(pickle.dumps(Thing()))).__name__, __main__.Thing is Thing)\n"
        "import helper\nprint(helper.__file__)\n",
    )
    script(tmp_path, "", "helper.py")
    plain = python(probe.name, "--lr", "0.1", "-v", cwd=tmp_path, fresh=True)
    captured = align("capture", "-o", "run.h5", probe.name, "--lr", "0.1", "-v", cwd=tmp_path, fresh=True)
    assert captured.stdout == plain.stdout
    assert captured.code == plain.code == 0


def test_a_module_runs_as_python_m_would_run_it(tmp_path: Path) -> None:
    package = tmp_path / "project"
    package.mkdir()
    script(package, "", "__init__.py")
    script(
        package, "import sys\nprint(__name__, __package__, __spec__.name, sys.argv[1:], sys.path[0])\n", "__main__.py"
    )
    script(package, "import sys\nprint(__name__, __package__, __spec__.name, sys.argv[1:], sys.path[0])\n", "train.py")
    for name in ("project", "project.train"):
        plain = python("-m", name, "a", "-b", cwd=tmp_path, fresh=True)
        captured = align("capture", "--force", "-o", "run.h5", "-m", name, "a", "-b", cwd=tmp_path)
        assert captured.stdout == plain.stdout
        assert captured.code == 0


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        ("sys.exit(7)", 7),
        ("sys.exit()", 0),
        ("sys.exit('no data')", 1),
        ("raise ValueError('no data')", 1),
        ("pass", 0),
    ],
)
def test_the_exit_code_is_the_scripts_own(tmp_path: Path, ending: str, code: int) -> None:
    path = script(tmp_path, f"import sys\n{ending}\n")
    plain = python(path, fresh=True)
    captured = align("capture", "-o", tmp_path / "run.h5", path)
    assert captured.code == plain.code == code
    ours = [line for line in captured.stderr.splitlines() if not line.startswith("align: ")]
    assert ours == plain.stderr.splitlines()


def test_the_last_line_says_what_was_captured(tmp_path: Path) -> None:
    captured = align("capture", "--device", "cpu", script(tmp_path, TRAINING), cwd=tmp_path)
    assert captured.stdout == "0\n1\n2\n3\n4\n"
    assert captured.code == 0
    pattern = (
        r"align: captured 3 steps \(0-2\), [\d,]+ records, [\d.]+ kB: train\.cpu\.h5; 2 later steps were not captured"
    )
    assert re.fullmatch(pattern, captured.last_line)


def test_stop_ends_the_script_after_the_last_captured_step(tmp_path: Path) -> None:
    captured = align(
        "capture", "--stop", "--steps", "1:3", "-o", "run.h5", script(tmp_path, TRAINING), "50", cwd=tmp_path
    )
    assert captured.stdout == "0\n1\n2\n"
    assert captured.code == 0
    with open_capture(tmp_path / "run.h5") as capture:
        assert capture.steps == [1, 2]
        assert capture.has_init
        assert [row.step for row in capture.timeline] == [0, 1, 2]
        assert capture.run.outcome == "finished"


def test_a_run_that_raises_keeps_its_finished_steps_and_says_where_it_failed(tmp_path: Path) -> None:
    captured = align("capture", "-o", tmp_path / "run.h5", STEPS / "exception.py")
    assert captured.code == 1
    assert captured.stderr.splitlines()[-2] == "ValueError: this call was meant to fail"
    assert captured.last_line.endswith("; the run ended early (exception: ValueError in module 1, step 2)")
    with open_capture(tmp_path / "run.h5") as capture:
        assert capture.steps == [0, 1]
        assert capture.run.outcome == "exception: ValueError in module 1, step 2"


def test_modules_and_phases_choose_what_is_kept(tmp_path: Path) -> None:
    align(
        "capture",
        "-o",
        tmp_path / "run.h5",
        "--modules",
        "fc*",
        "--phases",
        "forward,gradient",
        "--detail",
        "stats",
        TINY,
    )
    with open_capture(tmp_path / "run.h5") as capture:
        records = capture.records(0)
        assert {record.key.name for record in records} == {"fc1", "fc2"}
        assert {str(record.key.phase) for record in records} == {"forward", "gradient"}
        assert all(record.sketch is None for record in records)
        assert not capture.has_init


@pytest.mark.parametrize(
    ("options", "phases"),
    [
        (["--phases", "optimizer"], {"input"}),
        (["--modules", "0", "--phases", "gradient"], {"input", "gradient"}),
        (["--steps", "0,2", "--phases", "init,param"], {"input", "param"}),
    ],
)
def test_what_is_kept_is_kept_whatever_is_left_out(tmp_path: Path, options: list[str], phases: set[str]) -> None:
    path = tmp_path / "run.h5"
    captured = align("capture", "-o", path, *options, "--keep", "init,batches", script(tmp_path, TRAINING))
    assert captured.code == 0, captured.stderr
    with open_capture(path) as capture:
        records = capture.records(INIT_STEP)
        assert [(record.key.name, record.key.slot, record.has_values) for record in records] == [
            ("0", "weight", True), ("0", "bias", True), ("2", "weight", True), ("2", "bias", True),
        ]  # fmt: skip
        for step in capture.steps:
            assert {str(record.key.phase) for record in capture.records(step)} == phases
            assert [record.has_values for record in capture.records(step) if record.key.phase is Phase.INPUT] == [True]


def test_values_are_plain_hdf5_under_their_names(tmp_path: Path) -> None:
    align("capture", "-o", tmp_path / "run.h5", "--detail", "tensors", script(tmp_path, TRAINING))
    with h5py.File(tmp_path / "run.h5", locking=False) as file, open_capture(tmp_path / "run.h5") as capture:
        values = file["step0/forward/2/output.0"][...]
        record = next(r for r in capture.records(0) if (r.key.name, r.key.slot) == ("2", "output.0"))
        assert values.shape == (16, 1)
        assert (capture.values(record) == values).all()
        shown = align("show", tmp_path / "run.h5", "2.output.0").stdout
        assert f"values: {values[0, 0]:.4g}" in shown
        assert record.stats is not None
        assert record.stats.total == pytest.approx(float(values.sum()), rel=1e-5)


def test_the_simulated_npu_is_labelled_and_its_setting_is_not_written(tmp_path: Path) -> None:
    captured = align("capture", "--device", "npu", "-o", tmp_path / "run.h5", TINY, "--device", "npu", simulator=BENIGN)
    assert captured.code == 0, captured.stderr
    with open_capture(tmp_path / "run.h5") as capture:
        assert capture.run.simulated
        assert capture.run.parameters_on == "npu"
        assert capture.run.versions["torch_npu"] == "2.13.0+sim"
    assert b"benign" not in (tmp_path / "run.h5").read_bytes()
    assert b"ALIGN_NPU_SIM" not in (tmp_path / "run.h5").read_bytes()


def test_a_script_that_says_cuda_runs_on_the_npu(tmp_path: Path) -> None:
    path = script(tmp_path, TRAINING.replace("x = ", "model.cuda()\nx = ").replace("(16, 4)", "(16, 4, device='cuda')"))
    captured = align("capture", "--device", "npu", "-o", tmp_path / "run.h5", path, simulator={})
    assert captured.code == 0, captured.stderr
    with open_capture(tmp_path / "run.h5") as capture:
        assert capture.run.parameters_on == "npu"
        assert capture.run.flags["transfer_to_npu"] is True
    refused = align("capture", "--device", "npu", "--no-transfer", "-o", tmp_path / "other.h5", path, simulator={})
    assert refused.code == 1


def test_each_rank_writes_its_own_file(tmp_path: Path) -> None:
    for rank in ("0", "1"):
        align("capture", "-o", tmp_path / "run.h5", script(tmp_path, TRAINING), RANK=rank, WORLD_SIZE="2")
    assert sorted(path.name for path in tmp_path.glob("*.h5")) == ["run.rank0000.h5", "run.rank0001.h5"]
    align(
        "capture",
        "-o",
        tmp_path / "run.h5",
        script(tmp_path, TRAINING),
        RANK="0",
        WORLD_SIZE="2",
        TORCHELASTIC_RESTART_COUNT="1",
    )
    assert (tmp_path / "run.rank0000.restart1.h5").exists()
    shown = align("show", tmp_path / "run.h5")
    assert shown.code == 0


def test_a_glob_that_matches_no_module_is_told(tmp_path: Path) -> None:
    captured = align("capture", "-o", "run.h5", "--modules", "zzz*", TINY, cwd=tmp_path)
    assert captured.last_line.endswith("; no module has a name like zzz*")


def test_every_takes_each_nth_step_of_the_whole_run(tmp_path: Path) -> None:
    captured = align("capture", "--every", "3", "-o", "run.h5", script(tmp_path, TRAINING), "8", cwd=tmp_path)
    assert captured.stderr.splitlines()[0] == (
        f"align: capturing steps 0: every 3 of {tmp_path / 'train.py'} into run.h5"
    )
    with open_capture(tmp_path / "run.h5") as capture:
        assert capture.steps == [0, 3, 6]
    captured = align(
        "capture", "--force", "--every", "2", "--steps", "1:5", "-o", "run.h5", script(tmp_path, TRAINING), "8",
        cwd=tmp_path,
    )  # fmt: skip
    with open_capture(tmp_path / "run.h5") as capture:
        assert capture.steps == [1, 3]


def test_exponents_of_all_floats_are_counted_on_demand(tmp_path: Path) -> None:
    for option, counted in (([], False), (["--exponents"], True)):
        align("capture", "--force", *option, "-o", tmp_path / "run.h5", script(tmp_path, TRAINING))
        with open_capture(tmp_path / "run.h5") as capture:
            output = next(record for record in capture.records(0) if record.key.slot == "output.0")
            assert (output.exponents is not None) is counted


def test_no_more_values_are_kept_than_the_size_allows(tmp_path: Path) -> None:
    path = script(tmp_path, TRAINING.replace("(16, 4)", "(4096, 4)"))
    options = ("--steps", "0:", "--detail", "tensors", "-o", tmp_path / "run.h5")
    captured = align("capture", *options, "--max-size", "1MB", path, "20")
    assert captured.code == 0
    assert captured.last_line.endswith("on: run.h5 has reached --max-size 1.0 MB")
    assert (tmp_path / "run.h5").stat().st_size < 3_000_000  # 15 MB without it
    with open_capture(tmp_path / "run.h5") as capture:
        assert capture.steps == list(range(20))
        assert any(record.has_values for record in capture.records(0))
        assert not any(record.has_values for record in capture.records(19))


# ---- what it refuses, before the script's first line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["missing.py"],
            "Cannot run 'missing.py': it does not exist. Give the path of the training script, or -m MODULE.",
        ),
        (["folder"], "Cannot run 'folder': it is a folder. Give the path of the training script, or -m MODULE."),
        (["-m", "no.such"], "Cannot run -m no.such: No module named 'no'. Check the name and PYTHONPATH."),
        (
            ["--steps", "3:1", "train.py"],
            (
                "Cannot read the steps '3:1': give ranges such as 0:3 (steps 0, 1 and 2), single steps such as 100, "
                "or both as 0:3,100."
            ),
        ),
        (
            ["--phases", "forwards", "train.py"],
            (
                "Cannot capture the phase 'forwards': choose from all, init, input, forward, loss, backward, gradient, "
                "update, param, optimizer, scaler, rng."
            ),
        ),
        (
            ["--keep", "weights", "train.py"],
            "Cannot keep 'weights': choose from init, batches.",
        ),
        (
            ["--max-size", "big", "train.py"],
            "Cannot read the size 'big': write a number and a unit, such as 500MB or 2GB.",
        ),
        (
            ["-o", "folder", "train.py"],
            "Cannot write 'folder': it is a folder. Give a file name with -o, such as folder/run.h5.",
        ),
        (
            ["--device", "cuda", "train.py"],
            (
                f"Cannot capture on cuda: torch {torch.__version__} sees no CUDA device. "
                "Check nvidia-smi and that torch was built for CUDA, or give --device cpu."
            ),
        ),
        (
            ["--device", "npu", "train.py"],
            (
                "Cannot capture on npu: torch_npu is not installed in this Python. "
                "Install the torch_npu that fits your torch and CANN."
            ),
        ),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_it_refuses_in_one_sentence(tmp_path: Path, arguments: list[str], message: str) -> None:
    script(tmp_path, TRAINING)
    (tmp_path / "folder").mkdir()
    outcome = align("capture", *arguments, cwd=tmp_path)
    assert outcome.stderr == f"align: {message}\n"
    assert outcome.stdout == ""
    assert outcome.code == 2
    assert list(tmp_path.glob("*.h5")) == []


def test_an_existing_file_is_refused_before_training(tmp_path: Path) -> None:
    (tmp_path / "run.h5").write_text("precious")
    outcome = align("capture", "-o", "run.h5", script(tmp_path, TRAINING), cwd=tmp_path)
    assert outcome.code == 2
    assert outcome.stdout == ""
    sentence = "it exists. Name another file, or replace it with --force (in Python, force=True)."
    assert outcome.stderr == f"align: Cannot write 'run.h5': {sentence}\n"
    assert (tmp_path / "run.h5").read_text() == "precious"
    assert align("capture", "--force", "-o", "run.h5", script(tmp_path, TRAINING), cwd=tmp_path).code == 0


def test_a_folder_that_is_not_there_is_refused_before_training(tmp_path: Path) -> None:
    outcome = align("capture", "-o", "no/run.h5", script(tmp_path, TRAINING), cwd=tmp_path)
    assert outcome.code == 2
    assert outcome.stdout == ""
    assert outcome.stderr == "align: Cannot write 'no/run.h5': there is no folder 'no'. Create it first.\n"


def test_without_torch_it_says_so(tmp_path: Path) -> None:
    program = "import sys; sys.modules['torch'] = None; from align.cli import main; main(['capture', 'train.py'])"
    script(tmp_path, TRAINING)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=tmp_path, env=environment()
    )
    assert done.returncode == 2
    assert done.stderr == (
        "align: Cannot capture: torch is not installed in this Python. "
        "Install it, or run align from the environment of the training.\n"
    )


def test_a_cann_that_cannot_be_loaded_is_named_with_the_remedy(tmp_path: Path) -> None:
    path = script(tmp_path, TRAINING)
    outcome = align("capture", "--device", "npu", path, simulator=BROKEN, cwd=tmp_path, fresh=True)
    assert outcome.code == 2
    assert outcome.stderr == (
        "align: Cannot capture on npu: torch_npu is installed but CANN cannot be loaded (libhccl.so: cannot open "
        "shared object file: No such file or directory). Source /usr/local/Ascend/ascend-toolkit/set_env.sh (or your "
        "CANN's set_env.sh), then try again.\n"
    )
    outcome = align("capture", path, simulator=BROKEN, cwd=tmp_path, fresh=True)
    assert outcome.code == 2
    assert outcome.stderr == (
        "align: Cannot import torch: torch_npu is installed but CANN cannot be loaded (libhccl.so: cannot open shared "
        "object file: No such file or directory). For the NPU, source /usr/local/Ascend/ascend-toolkit/set_env.sh (or "
        "your CANN's set_env.sh) first; for another device, give --device cpu or set TORCH_DEVICE_BACKEND_AUTOLOAD=0.\n"
    )
    assert align("capture", "--device", "cpu", path, simulator=BROKEN, cwd=tmp_path, fresh=True).code == 0


# ---- what goes wrong while the script runs


def test_parameters_elsewhere_than_asked_are_told(tmp_path: Path) -> None:
    captured = align("capture", "--device", "npu", "-o", tmp_path / "run.h5", script(tmp_path, TRAINING), simulator={})
    assert captured.code == 0
    assert captured.last_line.endswith(
        "; --device npu was asked but the parameters were on cpu: pass the device to your script"
    )


def test_a_script_without_training_captures_nothing_and_says_why(tmp_path: Path) -> None:
    path = script(tmp_path, "print('hello')")
    captured = align("capture", "-o", "run.h5", path, cwd=tmp_path)
    assert captured.code == 0
    assert captured.last_line == (
        "align: captured no step: no module was called in grad mode and followed by backward and an optimizer step; "
        "no file was kept"
    )
    assert not (tmp_path / "run.h5").exists()
    assert align("capture", "--strict", "--force", "-o", "run.h5", path, cwd=tmp_path).code == 2


def test_steps_beyond_the_end_are_told(tmp_path: Path) -> None:
    captured = align("capture", "--steps", "100", "-o", "run.h5", script(tmp_path, TRAINING), cwd=tmp_path)
    assert captured.last_line == (
        "align: captured no step: the run had 5 and --steps 100 asks for none of them: run.h5"
    )


def test_a_hook_of_ours_that_fails_never_stops_the_training(tmp_path: Path) -> None:
    # A key that cannot be turned into text makes our naming of the output fail.
    path = script(
        tmp_path,
        TRAINING.replace(
            "model = nn.Sequential",
            "class Bad:\n    def __str__(self): raise OSError('no text')\n    __repr__ = __str__\n"
            "class Odd(nn.Module):\n    def forward(self, x): return {Bad(): x}\n"
            "class Back(nn.Module):\n    def forward(self, x): return list(x.values())[0]\n"
            "model = nn.Sequential",
        ).replace("nn.ReLU()", "Odd(), Back()"),
    )
    plain = python(path)
    captured = align("capture", "-o", tmp_path / "run.h5", path)
    assert captured.code == 0
    assert captured.stdout == plain.stdout
    assert " troubles while capturing: CallWatch._" in captured.last_line
    assert "OSError: no text" in captured.last_line
    with open_capture(tmp_path / "run.h5") as capture:
        assert capture.steps == [0, 1, 2]
        assert any("OSError: no text" in note for note in capture.run.notes)
    assert align("capture", "--strict", "--force", "-o", tmp_path / "run.h5", path).code == 2


@pytest.mark.parametrize(
    ("method", "count", "told"),
    [
        ("fork", 2, "2 child processes trained and were not captured (rank0, rank1)"),
        ("spawn", 1, "1 child process trained and was not captured (rank0)"),
    ],
    ids=["fork", "spawn"],
)
def test_child_processes_that_train_are_counted_and_named(tmp_path: Path, method: str, count: int, told: str) -> None:
    path = script(
        tmp_path,
        "import torch, torch.multiprocessing as mp\nfrom torch import nn\n"
        "def work(rank):\n"
        "    model = nn.Linear(2, 1); optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "    model(torch.ones(1, 2)).sum().backward(); optimizer.step()\n"
        "if __name__ == '__main__':\n"
        f"    context = mp.get_context('{method}')\n"
        "    children = [context.Process(target=work, args=(rank,), name=f'rank{rank}') "
        f"for rank in range({count})]\n"
        "    [child.start() for child in children]; [child.join() for child in children]\n"
        "    print([child.exitcode for child in children])\n",
    )
    captured = align("capture", "-o", "run.h5", path, cwd=tmp_path)
    assert captured.stdout == f"{[0] * count}\n"
    assert captured.last_line == (
        "align: captured no step: no module was called in grad mode and followed by backward and an optimizer step; "
        f"no file was kept; {told}: to capture each rank, start them with torchrun --nproc-per-node {count} "
        "-m align capture ..."
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_a_full_disk_closes_the_capture_and_training_goes_on(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(small)], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip("this machine does not allow mounting a tmpfs")
    try:
        path = script(tmp_path, TRAINING.replace("(8, 1)", "(8, 20000)"))
        captured = align("capture", "--steps", "0:", "--detail", "tensors", "-o", small / "run.h5", path, "8")
        assert captured.code == 0
        assert captured.stdout == "".join(f"{step}\n" for step in range(8))
        assert "no space left on device" in captured.last_line
        with open_capture(small / "run.h5") as capture:
            assert any("no space left on device" in note for note in capture.run.notes)
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_the_repository_root_is_where_tests_think() -> None:
    assert (ROOT / "pyproject.toml").is_file()
