"""What only an NPU can tell, captured on the simulated one: switches, the overflow flag, operators on the CPU."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

import align
from align.hooks.warned import FALLBACK
from align.records import RunInfo, TimelineRow
from tests.rank_runs import run_ranks
from tests.running import align as run_align
from tests.running import capture_all, python, run_python

LACKING = {"numerics": {"cpu_fallback": ["aten::exp", "aten::nonzero", "aten::unfold_backward", "aten::addcdiv*"]}}
SATURATING = {"numerics": {"saturate": True}}

WARNING = (
    "[W compiler_depend.ts:51] Warning: CAUTION: The operator '{}' is not currently supported on the NPU backend and "
    "will fall back to run on the CPU. This may have performance implications. (function npu_cpu_fallback)\n"
)


def captured(path: Path) -> tuple[RunInfo, list[TimelineRow]]:
    with align.open(path) as capture:
        return capture.run, list(capture.timeline)


def written(folder: Path, text: str) -> Path:
    script = folder / "train.py"
    script.write_text(text)
    return script


def capture(
    folder: Path, text: str, simulator: Mapping[str, Any], **variables: str
) -> tuple[RunInfo, list[TimelineRow]]:
    path = folder / "run.h5"
    done = run_align(
        "capture", "--device", "npu", "-o", path, written(folder, text), simulator=simulator, cwd=folder, **variables
    )
    assert done.code == 0, done.stderr
    assert "trouble" not in done.last_line, done.stderr
    return captured(path)


# ---- switches

SWITCHES = """
import warnings
import torch, torch_npu

warnings.simplefilter("ignore")
torch.npu.matmul.allow_hf32 = True
torch.npu.matmul.cube_math_type = torch.npu.CubeMathType.ALLOW_FP32_DOWN_PRECISION
torch.npu.config.allow_internal_format = True
torch.npu.set_option({"ACL_PRECISION_MODE": "allow_fp32_to_fp16"})
torch.npu.set_compile_mode(jit_compile=True)
torch.use_deterministic_algorithms(True)
model = torch.nn.Linear(3, 1).to("npu")
optimizer = torch.optim.SGD(model.parameters(), 0.1)
model(torch.ones(2, 3).npu()).sum().backward()
optimizer.step()
assert torch_npu._C._npu_get_deterministic_level() == 0, "watching has set the level"
"""


def test_switches_of_the_npu_are_kept(tmp_path: Path) -> None:
    variables = {
        "NPU_ASD_CONFIG": "enable:true,with_checksum:true",
        "NPU_ASD_SIGMA_THRESH": "1",
        "TORCH_NPU_WARNING_DISABLE": "1",
        "ACL_OP_COMPILER_CACHE_DIR": "somewhere",
    }
    run, timeline = capture(tmp_path, SWITCHES, {}, **variables)
    flags = {
        name: value for name, value in run.flags.items() if name not in {"npu_soc_version", "float32_matmul_precision"}
    }
    assert flags == {
        "deterministic": True,
        "acl_precision_mode": "allow_fp32_to_fp16",
        "npu_silent_check": "NPU_ASD_CONFIG=enable:true,with_checksum:true",
        "transfer_to_npu": True,
        "npu_matmul_allow_hf32": True,
        "npu_conv_allow_hf32": False,
        "npu_cube_math_type": "ALLOW_FP32_DOWN_PRECISION",
        "npu_deterministic_level": 1,
        "npu_allow_internal_format": True,
        "npu_matmul_format_nd": True,
        "npu_jit_compile": True,
        "inf_nan_mode": True,
    }
    assert {name: run.environment.get(name) for name in variables} == {**variables, "ACL_OP_COMPILER_CACHE_DIR": None}
    assert [row.overflow for row in timeline] == [False]


BROKEN_READERS = """
import torch, torch_npu

def broken(*_):
    raise RuntimeError("no such thing in this version")

torch_npu._C._npu_getOption = broken
torch.npu.is_jit_compile_false = broken
torch.npu.utils.is_support_inf_nan = broken
del torch_npu._C._npu_get_deterministic_level, torch.npu.get_mm_bmm_format_nd, torch.npu._backends
model = torch.nn.Linear(3, 1).to("npu")
optimizer = torch.optim.SGD(model.parameters(), 0.1)
model(torch.ones(2, 3).npu()).sum().backward()
optimizer.step()
"""


def test_readers_that_fail_leave_only_their_own_flag_out(tmp_path: Path) -> None:
    path = tmp_path / "run.h5"
    done = run_align("capture", "--device", "npu", "-o", path, written(tmp_path, BROKEN_READERS), simulator={})
    assert done.code == 0, done.stderr
    run, _ = captured(path)
    assert {name for name in run.flags if "npu" in name} == {
        "transfer_to_npu", "npu_matmul_allow_hf32", "npu_conv_allow_hf32",
    }  # fmt: skip
    assert run.parameters_on == "npu"


# ---- the overflow flag

SCALED = """
import sys
import torch, torch_npu

kind, save = sys.argv[1:3]
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).to("npu")
optimizer = torch.optim.SGD(model.parameters(), 0.01)
scaler = {
    "torch": lambda: torch.amp.GradScaler("npu", init_scale=2.0**18, growth_interval=2),
    "npu": lambda: torch.npu.amp.GradScaler(init_scale=2.0**18, growth_interval=2),
    "static": lambda: torch.npu.amp.GradScaler(init_scale=2.0**18, dynamic=False),
}[kind]()
losses = []
for step in range(5):
    optimizer.zero_grad()
    with torch.autocast("npu", dtype=torch.float16):
        loss = model(torch.linspace(-40, 40, 24).view(6, 4).npu()).float().pow(2).mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    losses.append((loss.item(), scaler.get_scale(), torch_npu._C._npu_get_soc_version()))
torch.save({"losses": losses, "model": {n: t.cpu() for n, t in model.state_dict().items()}}, save)
"""


@pytest.mark.parametrize(
    ("kind", "skipped", "overflow"),
    [
        ("torch", [True, True, True, False, False], [True, True, True, False, False]),
        ("npu", [True, True, True, False, False], [True, True, True, False, False]),
        ("static", [False] * 5, [True] * 5),
    ],
    ids=["torch's scaler", "torch_npu's scaler", "static scaler"],
)
def test_overflow_of_a_saturating_device_is_told_and_left_to_the_scaler(
    tmp_path: Path, kind: str, skipped: list[bool], overflow: list[bool]
) -> None:
    script, path = written(tmp_path, SCALED), tmp_path / "run.h5"
    plain = python(script, kind, tmp_path / "plain", simulator=SATURATING)
    assert plain.code == 0, plain.stderr
    options = ("--device", "npu", "--steps", "0:5", "-o", path)
    done = run_align("capture", *options, script, kind, tmp_path / "watched", simulator=SATURATING)
    assert done.code == 0, done.stderr
    assert done.stdout == plain.stdout
    run, timeline = captured(path)
    assert run.flags["inf_nan_mode"] is False
    assert [row.overflow for row in timeline] == overflow
    assert [row.skipped for row in timeline] == skipped
    assert_same_end(tmp_path / "plain", tmp_path / "watched")


# ---- operators that fall back to the CPU

FALLING = """
import sys
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(6, 4)

    def forward(self, x):
        x = self.inner(x).exp()
        x.detach().cpu().nonzero()
        return (x * 1).exp_().unfold(1, 2, 2).sum() + x.detach().nonzero().shape[0]

torch.manual_seed(0)
model = Net().to("npu")
optimizer = torch.optim.Adam(model.parameters(), 1e-3, foreach=False)
for _ in range(3):
    optimizer.zero_grad()
    model(torch.ones(3, 6).npu() / 9).backward()
    optimizer.step()
    torch.ones(2).npu().exp()
print("a line of the script", file=sys.stderr)
"""


def test_calls_of_operators_without_a_kernel_are_counted_in_the_first_step(tmp_path: Path) -> None:
    run, _ = capture(tmp_path, FALLING, LACKING)
    assert run.fallbacks == {"aten::addcdiv": 2, "aten::exp": 2, "aten::nonzero": 1}


def test_first_step_is_the_first_that_is_captured(tmp_path: Path) -> None:
    path = tmp_path / "run.h5"
    script = written(tmp_path, FALLING)
    done = run_align("capture", "--device", "npu", "--steps", "1", "-o", path, script, simulator=LACKING)
    assert done.code == 0, done.stderr
    assert captured(path)[0].fallbacks == {"aten::addcdiv": 2, "aten::exp": 2, "aten::nonzero": 1}


IN_A_FILE = """
import os, sys
from align.cli import main
log, mode, *arguments = sys.argv[1:]
os.dup2(os.open(log, os.O_WRONLY | {"wb": os.O_TRUNC, "ab": os.O_APPEND}[mode]), 2)
main(arguments, prog_name="align")
"""


@pytest.mark.parametrize("mode", ["wb", "ab"])
def test_warnings_in_a_file_tell_of_the_backward_and_stay_as_they_were(tmp_path: Path, mode: str) -> None:
    path, log = tmp_path / "run.h5", tmp_path / "log"
    log.write_text("")
    earlier = WARNING.format("aten::tan.out")  # of another run, in a log that is appended to
    if mode == "ab":
        log.write_text(earlier)
    script = written(tmp_path, FALLING)
    done = python("-c", IN_A_FILE, log, mode, "capture", "--device", "npu", "-o", path, script, simulator=LACKING)
    assert done.code == 0, log.read_text()
    assert captured(path)[0].fallbacks == {
        "aten::addcdiv": 2, "aten::exp": 2, "aten::nonzero": 1, "aten::unfold_backward": 0,
    }  # fmt: skip
    text = log.read_text()
    assert [line for line in text.splitlines(keepends=True) if not line.startswith("align: ")] == [
        *([earlier] if mode == "ab" else []),
        WARNING.format("aten::exp.out"),
        WARNING.format("aten::nonzero"),
        WARNING.format("aten::unfold_backward"),
        WARNING.format("aten::addcdiv.out"),
        "a line of the script\n",
    ]


def test_nothing_falls_back_where_nothing_is_missing(tmp_path: Path) -> None:
    assert capture(tmp_path, FALLING, {})[0].fallbacks == {}


@pytest.mark.parametrize(
    ("text", "operators"),
    [
        (WARNING.format("aten::fmax.out"), ["aten::fmax"]),
        (
            (
                "CAUTION: The operator aten::unfold_backward is currently not supported on the NPU backend. Now this "
                "operator will fallback to run on the CPU and may have performance implications."
            ),
            ["aten::unfold_backward"],
        ),
        (
            (
                "CPU fallback is allowed because TORCH_NPU_FALLBACK_CPU_DISABLE=0. Since the NPU interface does not "
                "support operator 'aten::_sparse_csr_sum.dim_dtype', the operator will fall back to CPU."
            ),
            ["aten::_sparse_csr_sum"],
        ),
        ("The operator 'aten::add' is supported.", []),
        ("The operator is not currently supported on the NPU backend", []),
    ],
    ids=["boxed fallback", "own fallback", "sparse", "supported", "no name"],
)
def test_wordings_of_the_device(text: str, operators: list[str]) -> None:
    assert [name.decode() for name in FALLBACK.findall(text.encode())] == operators


PIPE = """
import os, sys
from align.hooks.warned import WarnedOperators
watch = WarnedOperators()
watch.open()
os.write(2, sys.argv[1].encode())
if len(sys.argv) > 2:
    os.dup2(os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT), 2)
print(sorted(watch.read()))
"""


def test_a_pipe_is_left_alone() -> None:
    done = python("-c", PIPE, WARNING.format("aten::exp.out"))
    assert (done.code, done.stdout, done.stderr) == (0, "[]\n", WARNING.format("aten::exp.out"))


def test_stderr_that_was_led_elsewhere_is_not_read(tmp_path: Path) -> None:
    log = tmp_path / "log"
    program = f"import os, sys\nos.dup2(os.open(sys.argv.pop(1), os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2){PIPE}"
    for other, expected in (((), "['aten::exp']\n"), ((tmp_path / "other",), "[]\n")):
        done = python("-c", program, log, WARNING.format("aten::exp.out"), *other)
        assert (done.code, done.stdout) == (0, expected), log.read_text()


def test_a_closed_stderr_is_no_trouble() -> None:
    done = python(
        "-c", PIPE.replace("watch.open()", "os.close(2); watch.open(); os.open(os.devnull, os.O_RDWR)"), "text"
    )
    assert (done.code, done.stdout) == (0, "[]\n")


# ---- training stays as it is

IDENTITY = """
import random, sys
import numpy as np
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

way, save = sys.argv[1:3]

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.norm, self.dropout = nn.Linear(12, 12), nn.LayerNorm(12), nn.Dropout(0.3)

    def forward(self, x):
        return x + self.dropout(torch.exp(-self.norm(self.linear(x)).pow(2)))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks, self.head = nn.ModuleList(Block() for _ in range(3)), nn.Linear(12, 2)

    def forward(self, x):
        for block in self.blocks:
            if way == "plain":
                x = block(x)
            else:
                x = checkpoint(block, x, use_reentrant=way == "reentrant")
        product = (1 + x.sigmoid() / 50).prod()
        if way == "forces":  # a gradient inside a forward
            x = x + torch.autograd.grad(product, x, create_graph=True)[0]
        x.detach().nonzero()
        return self.head(x) * product

random.seed(0); np.random.seed(0); torch.manual_seed(0)
model = Net().to("npu")
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
scaler = torch.amp.GradScaler("npu", init_scale=2.0**20)
losses = []
for step in range(4):
    optimizer.zero_grad()
    x = torch.randn(5, 12, device="npu").requires_grad_()
    with torch.autocast("npu", dtype=torch.float16, enabled=way != "forces"):
        loss = model(x).float().pow(2).mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    losses.append((loss.item(), scaler.get_scale(), x.grad.cpu()))
torch.save({
    "model": {name: tensor.cpu() for name, tensor in model.state_dict().items()},
    "losses": losses,
    "rng": [torch.get_rng_state(), torch.npu.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()],
}, save)
"""
WAYS = ("plain", "reentrant", "non-reentrant", "forces")

EACH = """
import json, runpy, sys
for script, *arguments in json.loads(sys.stdin.read()):
    sys.argv = [script, *arguments]
    runpy.run_path(script, run_name="__main__")
"""


def bits(value: Any) -> Any:
    """A saved state with every tensor as its bytes."""
    if isinstance(value, torch.Tensor):
        return (str(value.dtype), bytes(value.reshape(-1).view(torch.uint8).numpy()))
    if isinstance(value, dict):
        return {key: bits(item) for key, item in value.items()}
    return [bits(item) for item in value] if isinstance(value, (list, tuple)) else repr(value)


def assert_same_end(plain: Path, watched: Path) -> None:
    expected, found = (torch.load(path, weights_only=False) for path in (plain, watched))
    assert set(expected) == set(found)
    for part in expected:
        assert bits(expected[part]) == bits(found[part]), f"{part} differs"


@pytest.fixture(scope="module")
def ends(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The end of each way to train, plain and watched, where operators of forward, backward and update fall back."""
    folder = tmp_path_factory.mktemp("identity")
    script = written(folder, IDENTITY)
    plain = [[str(script), way, str(folder / f"{way}.plain")] for way in WAYS]
    done = run_python("-c", EACH, given=json.dumps(plain), simulator=LACKING)
    assert done.returncode == 0, done.stderr
    capture_all("npu", [(folder / f"{way}.h5", [script, way, folder / f"{way}.watched"]) for way in WAYS], LACKING)
    return folder


@pytest.mark.parametrize("way", WAYS)
def test_training_ends_with_the_same_bits_while_calls_are_counted(ends: Path, way: str) -> None:
    run, _ = captured(ends / f"{way}.h5")
    assert run.fallbacks["aten::exp"] == 3
    assert run.fallbacks["aten::nonzero"] == 1
    assert_same_end(ends / f"{way}.plain", ends / f"{way}.watched")


MODES = """
import json
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from align.hooks import fallbacks
from align.hooks.fallbacks import FallbackWatch

class Names(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(func._schema.name)
        return func(*args, **(kwargs or {}))

def height():
    return torch._C._len_torch_dispatch_stack()

engine = torch.autograd._engine_run_backward
results = {}
x = torch.ones(3, device="npu")

outer, watch = Names(), FallbackWatch()
with outer:
    with watch.watching():
        with watch.watching():
            x.exp()
    x.tan()
results["inside a mode of the user"] = [outer.seen, watch.found(), height()]

left, watch = Names(), FallbackWatch()
with watch.watching():
    left.__enter__()
    x.exp()
x.tan()
left.__exit__(None, None, None)
results["a mode that is left outside"] = [left.seen, watch.found(), height()]

taken, watch = Names(), FallbackWatch()
taken.__enter__()
with watch.watching():
    taken.__exit__(None, None, None)
    x.exp()
results["a mode that is left inside"] = [height()]

watch = FallbackWatch()
try:
    with watch.watching():
        raise KeyError("training")
except KeyError:
    results["an exception"] = [height(), torch.autograd._engine_run_backward is engine]

def on_functions():
    watch, one = FallbackWatch(), torch.ones(2, 2, dtype=torch.int8)
    with watch.watching():
        chosen = torch.cond(torch.zeros((), dtype=torch.bool), lambda y: y.exp(), lambda y: y.abs(), (x,))
        product = torch.ops.higher_order.out_dtype(torch.ops.aten.mm.default, torch.int32, one, one)
    return [chosen.tolist(), product.tolist(), watch.found(), height()]

results["operators on functions"] = on_functions()
del TorchDispatchMode.supports_higher_order_operators
fallbacks._Counting.supports_higher_order_operators = False
results["operators on functions, in an older torch"] = on_functions()

watch = FallbackWatch()
with watch.watching():
    x.cpu().exp()
    torch.exp(x, out=torch.empty(3, device="npu"))
watch.first_step_over()
with watch.watching():
    x.exp()
results["only on the device and in the first step"] = watch.found()
print(json.dumps(results))
"""


def test_the_modes_of_others_are_as_they_were() -> None:
    done = python("-c", MODES, simulator=LACKING)
    assert done.code == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "inside a mode of the user": [["aten::exp", "aten::tan"], {"aten::exp": 1}, 0],
        "a mode that is left outside": [["aten::exp", "aten::tan"], {"aten::exp": 1}, 0],
        "a mode that is left inside": [0],
        "an exception": [0, True],
        "operators on functions": [[1.0, 1.0, 1.0], [[2, 2], [2, 2]], {}, 0],
        "operators on functions, in an older torch": [[1.0, 1.0, 1.0], [[2, 2], [2, 2]], {}, 0],
        "only on the device and in the first step": {"aten::exp": 1},
    }


DDP = """
import os, sys
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Tanh(), nn.Linear(16, 2))

    def forward(self, x):
        return self.layers(x).exp()

rank = int(os.environ["RANK"])
dist.init_process_group("hccl", f"file://{sys.argv[1]}", rank=rank, world_size=2)
torch.manual_seed(0)
model = DistributedDataParallel(Net().to(f"npu:{rank}"))
optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
data = torch.randn(2, 6, 8, generator=torch.Generator().manual_seed(1))[rank].npu()
for _ in range(2):
    optimizer.zero_grad()
    model(data).pow(2).mean().backward()
    optimizer.step()
torch.save({name: tensor.cpu() for name, tensor in model.state_dict().items()}, f"{sys.argv[2]}{rank}")
dist.destroy_process_group()
"""


ALONE = "import json, runpy, sys; sys.argv = json.load(sys.stdin); runpy.run_path(sys.argv[0], run_name='__main__')"
CAPTURED = "import json, sys; from align.cli import main; main(json.load(sys.stdin), prog_name='align')"


def test_ranks_under_ddp_are_watched_and_train_as_before(tmp_path: Path) -> None:
    script = written(tmp_path, DDP)
    plain = [str(script), str(tmp_path / "plain.store"), str(tmp_path / "plain")]
    watched = ["capture", "--device", "npu", "-o", str(tmp_path / "run.h5"), str(script)]
    watched += [str(tmp_path / "watched.store"), str(tmp_path / "watched")]
    for program, arguments in ((ALONE, plain), (CAPTURED, watched)):
        done = run_ranks(program, given=json.dumps(arguments), simulator=LACKING)
        assert [rank.code for rank in done] == [0, 0], [rank.stderr for rank in done]
    for rank in ("0", "1"):
        assert_same_end(tmp_path / f"plain{rank}", tmp_path / f"watched{rank}")
        assert captured(tmp_path / f"run.rank000{rank}.h5")[0].fallbacks["aten::exp"] == 1


def test_the_simulated_warning_is_one_of_the_wordings() -> None:
    """Else the tests above would hold for the wrong text."""
    done = python("-c", "import torch; torch.ones(1).npu().exp()", simulator=LACKING)
    assert re.fullmatch(re.escape(WARNING.format("aten::exp.out")), done.stderr)
