"""The facts of a run: machine, versions, switches that change numbers, and how it ended."""

from __future__ import annotations

import hashlib
import os
import platform
import random
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch

import align
from align.hooks.autocast import autocast_dtype
from align.hooks.npu_flags import READER_ERRORS, npu_flags
from align.records import RunInfo

LIBRARIES = (
    "torch", "torch_npu", "numpy", "transformers", "accelerate", "lightning", "deepspeed", "megatron-core",
    "flash-attn", "triton", "peft", "safetensors",
)  # fmt: skip

ENVIRONMENT = (
    "ACL_DUMP_DATA", "ACL_OP_COMPILER_CACHE_MODE", "ACL_OP_INIT_MODE", "ACL_PRECISION_MODE", "ASCEND_HOME_PATH",
    "ASCEND_LAUNCH_BLOCKING", "ASCEND_RT_VISIBLE_DEVICES", "ATB_LLM_LCOC_ENABLE", "ATB_MATMUL_SHUFFLE_K_ENABLE",
    "CLOSE_MATMUL_K_SHIFT", "COMBINED_ENABLE", "CUBLAS_WORKSPACE_CONFIG", "CUDA_LAUNCH_BLOCKING",
    "CUDA_VISIBLE_DEVICES", "HCCL_ALGO", "HCCL_BUFFSIZE", "HCCL_DETERMINISTIC", "HCCL_OP_EXPANSION_MODE",
    "INF_NAN_MODE_ENABLE", "INF_NAN_MODE_FORCE_DISABLE", "LCCL_DETERMINISTIC", "LOCAL_RANK", "MKL_NUM_THREADS",
    "MULTI_STREAM_MEMORY_REUSE", "NCCL_ALGO", "NPU_ASD_CONFIG", "NPU_ASD_ENABLE", "NPU_ASD_SIGMA_THRESH",
    "NPU_ASD_UPPER_THRESH", "NPU_INDUCTOR_FALLBACK_LIST", "NVIDIA_TF32_OVERRIDE", "OMP_NUM_THREADS",
    "PER_STREAM_QUEUE", "PYTHONHASHSEED", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_NO_NPU_MEMORY_CACHING",
    "PYTORCH_NPU_ALLOC_CONF", "RANK", "TASK_QUEUE_ENABLE", "TORCHINDUCTOR_NPU_BACKEND",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "TORCH_DEVICE_BACKEND_AUTOLOAD", "TORCH_HCCL_ZERO_COPY",
    "TORCH_NPU_DEVICE_CAPABILITY", "TORCH_NPU_DISABLED_WARNING", "TORCH_NPU_FALLBACK_CPU_DISABLE",
    "TORCH_NPU_LAZY_FUSION", "TORCH_NPU_LEGACY_IMPL_LIST", "TORCH_NPU_LOGS", "TORCH_NPU_USE_COMPATIBLE_IMPL",
    "TORCH_NPU_WARNING_DISABLE", "TORCH_TRANSFER_TO_NPU", "WORLD_SIZE",
)  # fmt: skip
"""Variables that change numbers or explain them; no other variable is written, whatever it holds.

Left out although torch_npu reads them: ACL_OP_COMPILER_CACHE_DIR and TORCH_ACL_INIT_CONFIG_PATH, which are paths and
may name people. ASCEND_HOME_PATH stays: it tells which of several installations of CANN was used.
"""


def describe_run(run: RunInfo) -> RunInfo:
    """Fill in what is known before training starts."""
    return replace(
        run,
        align_version=align.__version__,
        versions=_versions(),
        environment={name: os.environ[name] for name in ENVIRONMENT if name in os.environ},
        rank=int(os.environ.get("RANK", "0")),
        world_size=int(os.environ.get("WORLD_SIZE", "1")),
        simulated=bool(getattr(sys.modules.get("torch_npu"), "is_simulated", False)),
        command=run.command or tuple(sys.argv),
        started=_now(),
    )


def flags_now(device_type: str) -> dict[str, Any]:
    """The fields that are known at the first training forward: device, seeds, autocast and switches."""
    module = getattr(torch, device_type, None)
    return {
        "device_type": device_type,
        "device_name": _device_name(module, device_type),
        "device_count": int(module.device_count()) if module is not None and hasattr(module, "device_count") else 1,
        "seeds": _seeds(module),
        "autocast": autocast_dtype(device_type),
        "flags": {name: value for name, value in _flags().items() if value is not None},
    }


def ended_run(
    run: RunInfo, error: BaseException | None, *, failed_in: str, steps_seen: int, notes: tuple[str, ...]
) -> RunInfo:
    """Fill in how the run ended."""
    outcome = "finished"
    if isinstance(error, SystemExit):
        outcome = "finished" if error.code in (None, 0) else f"exit code {error.code}"
    elif error is not None:
        place = f"module {failed_in}, " if failed_in else ""
        outcome = f"exception: {type(error).__name__} in {place}step {steps_seen}"
    return replace(run, ended=_now(), outcome=outcome, steps_seen=steps_seen, notes=notes)


def script_hash(path: Path) -> str:
    """SHA-256 of the script's bytes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _now() -> str:
    return datetime.now().astimezone().isoformat(timespec="seconds")


def _versions() -> dict[str, str]:
    """Python, the operating system and those of our list of libraries that are installed."""
    found = {"python": platform.python_version(), "platform": platform.platform()}
    found |= {name: version for name in LIBRARIES if (version := _installed_version(name))}
    found["torch"] = str(torch.__version__)
    torch_npu = sys.modules.get("torch_npu")
    if torch_npu is not None:
        found["torch_npu"] = str(torch_npu.__version__)
    for name, value in (("cuda", torch.version.cuda), ("hip", getattr(torch.version, "hip", None))):
        if value:
            found[name] = str(value)
    cann = _cann_version()
    return {**found, "cann": cann} if cann else found


@cache
def _installed_version(library: str) -> str:
    """The version that is installed, as its metadata have it; empty where there is none."""
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return ""


def _cann_version() -> str:
    utils = getattr(getattr(torch, "npu", None), "utils", None)
    reader = getattr(utils, "get_cann_version", None)
    try:
        return str(reader("CANN")) if reader is not None else ""
    except READER_ERRORS:
        return ""  # an installation of CANN without its version files


def _device_name(module: Any, device_type: str) -> str:
    if device_type == "cpu":
        return platform.processor() or platform.machine()
    return str(module.get_device_name()) if hasattr(module, "get_device_name") else device_type


def _seeds(module: Any) -> dict[str, Any]:
    """The initial seeds of torch and of the device, and digests of the states of python's and numpy's generators."""
    seeds: dict[str, Any] = {"torch": torch.initial_seed()}
    if module is not torch.cpu and hasattr(module, "initial_seed"):
        seeds["device"] = module.initial_seed()
    seeds["python_state"] = _digest(repr(random.getstate()).encode())
    state = np.random.get_state(legacy=False)  # noqa: NPY002  scripts seed the global generator
    seeds["numpy_state"] = _digest(repr(_plain(state)).encode())
    return seeds


def _plain(state: Any) -> Any:
    return (
        {key: _plain(value) for key, value in state.items()}
        if isinstance(state, Mapping)
        else np.asarray(state).tolist()
    )


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def _flags() -> dict[str, Any]:
    """The switches that change numbers; None for those that this build does not have."""
    return {
        "matmul_allow_tf32": torch.backends.cuda.matmul.allow_tf32 if torch.version.cuda else None,
        "cudnn_allow_tf32": torch.backends.cudnn.allow_tf32 if torch.version.cuda else None,
        "cudnn_benchmark": torch.backends.cudnn.benchmark if torch.version.cuda else None,
        "fp16_reduced_precision_reduction": (
            torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction if torch.version.cuda else None
        ),
        "bf16_reduced_precision_reduction": (
            torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction if torch.version.cuda else None
        ),
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        **npu_flags(),
    }
