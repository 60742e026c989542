"""The simulated NPU: what it can do, that it equals the CPU, and that every knob and fault does what it says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import running, warm

pytest.importorskip("torch")

SIMULATOR = Path(__file__).parents[1] / "fixtures" / "npu_sim"
AUTOLOAD = "TORCH_DEVICE_BACKEND_AUTOLOAD"


def run_python(*args: str, sim: Any = None, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run Python with the simulator on its path; `sim` is the value of ALIGN_NPU_SIM."""
    return subprocess.run(
        [sys.executable, *args], env=environment(sim, variables), capture_output=True, text=True, check=False
    )


def forked(*args: str, sim: Any = None) -> subprocess.CompletedProcess[str]:
    """Run Python in a fork of a process that has imported torch without any device, so that it can bring its own."""
    return warm.run(args, environment(sim, {AUTOLOAD: "0"}), waiting_in=running.environment())


CHECK = """
import runpy, sys, torch_npu
sys.argv = sys.argv[1:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


def checked(check: str, *args: str, sim: Any = None) -> subprocess.CompletedProcess[str]:
    """Run one of the checks."""
    return forked("-c", CHECK, f"npu_sim_checks.{check}", *args, sim=sim)


def environment(sim: Any, variables: dict[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in {AUTOLOAD, "RANK", "LOCAL_WORLD_SIZE"}}
    text = {} if sim is None else {"ALIGN_NPU_SIM": sim if isinstance(sim, str) else json.dumps(sim)}
    return {**kept, "PYTHONPATH": str(SIMULATOR), "OMP_NUM_THREADS": "1", **text, **variables}


def answer(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The JSON object in the last line that the program printed."""
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    return done.stderr.strip().splitlines()[-1]


@pytest.fixture(scope="module")
def capabilities() -> dict[str, Any]:
    return answer(checked("capabilities"))


CAPABILITIES = {
    "tensors": "ok",
    "numbers_in_the_place_of_tensors": "ok",
    "other_device_refused": (
        "Expected all tensors to be on the same device, but found at least two devices, npu:0 and cpu!"
    ),
    "statistics_of_a_capture": "ok",
    "device_functions": "Invalid device ID 3: this process has 1 simulated device(s).",
    "streams_and_memory": "ok",
    "package": "2.13.0+sim",
    "private_formats": "ok",
    "float_status": "ok",
    "switches": "ok",
    "overflow_functions": "Unsupported api when soc_version >= Ascend910B1, please use npu_check_overflow",
    "random_numbers": "ok",
    "autocast": "ok",
    "loss_scalers": "ok",
    "hooks": "ok",
    "checkpointing": "ok",
    "copies_and_files": "ok",
    "data_loader_with_workers": "ok",
    "recurrent_layers": "ok",
    "autograd_features": "ok",
    "dispatch_mode": "ok",
    "hf32_switches": "ok",
}


@pytest.mark.parametrize("name", CAPABILITIES)
def test_device_can_do_what_scripts_use(capabilities: dict[str, Any], name: str) -> None:
    assert capabilities[name] == CAPABILITIES[name]


def test_every_capability_is_in_the_table(capabilities: dict[str, Any]) -> None:
    assert set(capabilities) == set(CAPABILITIES)


def test_training_is_bit_equal_to_the_cpu_without_knobs() -> None:
    pytest.importorskip("transformers")
    results = answer(checked("bit_equality", sim={"autocast": "cpu"}))
    assert len(results) == 16
    assert {name: equal for name, equal in results.items() if equal is not True} == {}


@pytest.fixture(scope="module")
def knobs() -> dict[str, Any]:
    return answer(checked("knobs"))


def test_every_knob_changes_results_at_rounding_level(knobs: dict[str, Any]) -> None:
    measured = {name: value for name, value in knobs.items() if " " in name}
    assert len(measured) == 29
    assert {name: value for name, value in measured.items() if not 0 < max(value) < 6} == {}


def test_ftz_makes_subnormal_results_zero(knobs: dict[str, Any]) -> None:
    assert knobs["flushed_subnormals"] == [0.0, 2.0**-14, 0.0]


def test_saturate_has_no_inf_and_sets_the_overflow_flag(knobs: dict[str, Any]) -> None:
    before, exp_12, sqrt_minus_1, checked, after, inf_nan = knobs["saturation"]
    assert (before, exp_12, sqrt_minus_1) == (False, 65504.0, 0.0)
    assert (checked, after, inf_nan) == (True, False, False)


def test_benign_preset_moves_every_gradient_a_little(knobs: dict[str, Any]) -> None:
    smallest, greatest = knobs["benign_training"]
    assert 0 < smallest < greatest < 1e-5


@pytest.fixture(scope="module")
def faults() -> dict[str, Any]:
    return answer(forked("-m", "npu_sim_checks.injected_faults"))


def test_every_action_makes_the_result_that_it_names(faults: dict[str, Any]) -> None:
    assert len(faults["actions"]) == 11
    assert [name for name, right in faults["actions"].items() if not right] == []


def test_faults_leave_all_else_alone(faults: dict[str, Any]) -> None:
    assert faults["untouched"] == []
    assert faults["only_the_npu_is_faulty"] is True


@pytest.mark.parametrize(
    "name", ["backward_of_k", "backward_of_v", "second_call_only", "second_operator_of_a_parent", "class_name"]
)
def test_fault_hits_the_operator_that_it_names(faults: dict[str, Any], name: str) -> None:
    assert faults[name] is True


def test_fault_without_module_counts_in_the_run(faults: dict[str, Any]) -> None:
    assert faults["without_module"] == [True, False, True]


def test_faults_ignore_what_hooks_and_modes_compute(faults: dict[str, Any]) -> None:
    assert faults["observer_changes_nothing"] == []
    assert faults["dispatch_mode_changes_nothing"] == []


def test_fault_hits_say_where(faults: dict[str, Any]) -> None:
    assert faults["hits"] == [
        *([index, "aten::add", f"actions.{name}", 1, 0, False] for index, name in enumerate(ACTIONS)),
        [13, "aten::sigmoid", "late", 1, 0, False],
        [14, "aten::tanh", "twice", 1, 1, False],
        [15, "aten::exp", "special", 1, 0, False],
        [18, "aten::native_layer_norm", "norm", 1, 0, False],
        [12, "aten::mm", "attention.v", 1, 0, True],
        [11, "aten::mm", "attention.k", 1, 1, True],
    ]


ACTIONS = ("scale", "add", "zero", "negate", "nan", "inf", "element", "first_operand", "row_shift", "bf16", "fp16")

UNMODIFIED = """
import torch, torch_npu
from torch.utils.checkpoint import checkpoint
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.GELU(), torch.nn.Linear(4, 1)).to("npu")
x = torch.ones(2, 4, device="npu", requires_grad=True)
checkpoint(model, x, use_reentrant=False).sum().backward()
"""


def test_hits_of_an_unmodified_script_are_written_and_cover_recomputation(tmp_path: Path) -> None:
    hits = tmp_path / "hits.json"
    fault = {"op": "gelu", "module": "<GELU>", "action": "scale"}
    done = forked("-c", UNMODIFIED, sim={"faults": [fault], "hits_file": str(hits)})
    assert done.returncode == 0, done.stderr
    hit = {"fault": 0, "op": "aten::gelu", "module": "1", "call": 0, "nth": 0, "backward": False}
    assert json.loads(hits.read_text()) == [hit, hit]


LACKING = """
import json, torch, torch_npu, warnings
warnings.simplefilter("error")
torch.ones(3).npu().exp().exp()
rows = {}
for op in ("aten::exp", "aten::exp.out", "aten::exp_", "aten::mul.out", "aten::nonzero", "aten::cumsum"):
    table = torch._C._dispatch_dump_table(op).splitlines()
    rows[op] = "[backend fallback]" in next(row for row in table if row.startswith("PrivateUse1:"))
print(json.dumps(rows))
"""


@pytest.fixture(scope="module")
def lacking() -> subprocess.CompletedProcess[str]:
    """A program that calls an operator which the device has not."""
    return forked("-c", LACKING, sim={"numerics": {"cpu_fallback": ["aten::exp", "aten::nonzero"]}})


def test_missing_operator_warns_once_on_file_descriptor_2_as_torch_npu_does(
    lacking: subprocess.CompletedProcess[str],
) -> None:
    assert lacking.returncode == 0
    assert lacking.stderr == (
        "[W compiler_depend.ts:51] Warning: CAUTION: The operator 'aten::exp.out' is not currently supported on the "
        "NPU backend and will fall back to run on the CPU. This may have performance implications. "
        "(function npu_cpu_fallback)\n"
    )


def test_only_missing_operators_reach_the_fallback_of_the_device(lacking: subprocess.CompletedProcess[str]) -> None:
    assert answer(lacking) == {
        "aten::exp": False,  # the composite kernel, which calls exp.out
        "aten::exp.out": True,
        "aten::exp_": False,
        "aten::mul.out": False,
        "aten::nonzero": True,
        "aten::cumsum": False,
    }


RANKS = """
import os, runpy, sys
rank = "0" if os.fork() else "1"
os.environ.update(RANK=rank, LOCAL_RANK=rank, LOCAL_WORLD_SIZE="2")
import torch_npu
with open(f"{sys.argv[1]}.{rank}", "w") as sys.stdout:
    runpy.run_module("npu_sim_checks.distributed", run_name="__main__", alter_sys=True)
sys.stdout = sys.__stdout__
if rank == "0":
    sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
"""


def test_two_ranks_over_hccl_equal_gloo(tmp_path: Path) -> None:
    fault = {"op": "hccl::reduce", "action": "scale", "value": 4, "rank": 0}
    store = tmp_path / "store"
    done = forked("-c", RANKS, str(store), sim={"faults": [fault]})
    assert done.returncode == 0, done.stderr
    assert [json.loads(Path(f"{store}.{rank}").read_text()) for rank in (0, 1)] == [
        {"equal_to_gloo": True, "faulty_reduce": [8.0, ["hccl::reduce"]]},
        {"equal_to_gloo": True, "faulty_reduce": [None, []]},
    ]


def test_transfer_to_npu_runs_a_cuda_script() -> None:
    assert answer(checked("transfer")) == {
        "devices": "npu:0",
        "tensors_and_modules": "npu:0",
        "autocast": ["torch.float16", "torch.float16", "torch.bfloat16", "torch.float16", "torch.bfloat16"],
        "loss_scalers": [8.0, 8.0, 8.0],
        "cuda_functions": "Ascend910B-sim",
        "nccl": "hccl",
    }


def test_transfer_to_npu_is_on_by_its_variable() -> None:
    done = run_python("-c", "import torch; print(torch.ones(1, device='cuda').device)", TORCH_TRANSFER_TO_NPU="1")
    assert done.stdout == "npu:0\n"


def test_autoload_can_be_switched_off_and_the_import_then_brings_the_device() -> None:
    script = (
        "import os, torch; print(hasattr(torch, 'npu')); import torch_npu; print(torch.ones(1, device='npu').device);"
        f"print(os.environ['{AUTOLOAD}'])"
    )
    done = forked("-c", script)
    assert done.stdout == "False\nnpu:0\n0\n", done.stderr


def test_import_of_torch_fails_without_cann() -> None:
    done = run_python("-c", "import torch", sim={"broken_cann": "libhccl.so"})
    assert done.returncode == 1
    assert "ImportError: libhccl.so: cannot open shared object file: No such file or directory\n" in done.stderr
    assert last_line(done) == (
        "RuntimeError: Failed to load the backend extension: torch_npu. "
        "You can disable extension auto-loading with TORCH_DEVICE_BACKEND_AUTOLOAD=0."
    )


def test_import_of_torch_npu_fails_without_cann_and_torch_stays_usable() -> None:
    script = """
import sys, torch
try:
    import torch_npu
except ImportError as error:
    print(error)
print("torch_npu" in sys.modules, torch._C._get_privateuse1_backend_name(), torch.ones(2).sum().item())
"""
    done = forked("-c", script, sim={"broken_cann": "libhccl.so"})
    assert done.stdout == (
        "libhccl.so: cannot open shared object file: No such file or directory\nFalse privateuseone 2.0\n"
    )


def test_failed_import_before_torch_leaves_autoload_off() -> None:
    script = f"import os\ntry: import torch_npu\nexcept ImportError: print(os.environ['{AUTOLOAD}'])"
    assert run_python("-c", script, sim={"broken_cann": "libhccl.so"}).stdout == "0\n"


KEYS = "numerics, faults, autocast, broken_cann, hits_file"
FAULT_KEYS = "op, action, module, nth, call, value, output, backward, rank"
NUMERIC_KEYS = (
    "k_chunk, k_reverse, acc_dtype, hf32_matmul, hf32_conv, hf32_bits, hf32_truncate, flip_reduce, online_softmax, "
    "one_pass_norm, norm_affine_late, fused_batch_norm, gelu_formula, ulp, ftz, saturate, cpu_fallback"
)
WRONG_SETTINGS = {
    "not json": (
        "{numerics",
        (
            "Cannot read ALIGN_NPU_SIM: it is not JSON (Expecting property name enclosed in double quotes: "
            'line 1 column 2 (char 1)). Write for example {"numerics": "benign"}.'
        ),
    ),
    "not an object": ("[]", f"Cannot read ALIGN_NPU_SIM: [] is not an object. Its keys are {KEYS}."),
    "key": ({"fault": []}, f"Cannot read ALIGN_NPU_SIM: it has no key 'fault'. Its keys are {KEYS}."),
    "knob": ({"numerics": {"chunk": 3}}, f"Cannot read numerics: it has no key 'chunk'. Its keys are {NUMERIC_KEYS}."),
    "preset": ({"numerics": "x"}, "Cannot read numerics: there is no preset 'x'. Presets are none, benign."),
    "type": ({"numerics": {"ulp": "1"}}, "Cannot read numerics: ulp is '1'. It must be a number."),
    "bool": ({"numerics": {"k_reverse": 1}}, "Cannot read numerics: k_reverse is 1. It must be true or false."),
    "dtype": (
        {"numerics": {"ftz": ["half"]}},
        "Cannot read numerics: 'half' is not a dtype that it knows. Use float16, bfloat16, float32.",
    ),
    "bits": ({"numerics": {"hf32_bits": 30}}, "Cannot read numerics: hf32_bits is 30. Use 1 to 22, 11 is HF32."),
    "autocast": ({"autocast": "cuda"}, "Cannot read autocast: it is 'cuda'. Use npu or cpu."),
    "library": ({"broken_cann": 1}, "Cannot read broken_cann: 1 is not a string. Put it in double quotes."),
    "faults": ({"faults": {}}, "Cannot read faults: {} is not a list. Put it in square brackets."),
    "fault key": (
        {"faults": [{"op": "mm", "action": "zero", "layer": "fc"}]},
        f"Cannot read fault 0: it has no key 'layer'. Its keys are {FAULT_KEYS}.",
    ),
    "no op": (
        {"faults": [{"action": "zero"}]},
        "Cannot read fault 0: it has no 'op'. Every fault needs an op and an action.",
    ),
    "action": (
        {"faults": [{"op": "mm", "action": "explode"}]},
        f"Cannot read fault 0: there is no action 'explode'. Actions are {', '.join(ACTIONS)}.",
    ),
}


@pytest.fixture(scope="module")
def settings_errors() -> list[str]:
    texts = [text if isinstance(text, str) else json.dumps(text) for text, _ in WRONG_SETTINGS.values()]
    return answer(checked("wrong_settings", *texts))["errors"]  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", WRONG_SETTINGS)
def test_wrong_settings_are_refused_with_a_sentence(settings_errors: list[str], name: str) -> None:
    assert settings_errors[list(WRONG_SETTINGS).index(name)] == WRONG_SETTINGS[name][1]


def test_wrong_settings_stop_the_import() -> None:
    done = forked("-c", "import torch_npu", sim={"fault": []})
    assert last_line(done) == f"torch_npu.simulator.settings.SettingsError: {WRONG_SETTINGS['key'][1]}"
