"""Make sure that training will run where `--device` says, before the script's first line.

The import of torch is part of it: an installed torch_npu whose CANN cannot be loaded makes `import torch`
itself fail, and that cannot be repaired in the same process.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from align.errors import CaptureError
from align.sentences import capital, say

AUTOLOAD = "TORCH_DEVICE_BACKEND_AUTOLOAD"
DEVICES = ("auto", "cpu", "cuda", "npu")
SOURCE_CANN = say("source /usr/local/Ascend/ascend-toolkit/set_env.sh (or your CANN's set_env.sh)")


DETERMINISTIC = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8", "HCCL_DETERMINISTIC": "true"}
"""Variables that torch and CANN want before they are loaded: cuBLAS is deterministic with a workspace of fixed size
only, and collectives on an NPU where they are told to."""


def prepare_device(device: str, *, transfer: bool = True, deterministic: bool = False) -> None:
    """Import torch so that this device is used; raise CaptureError with the remedy where it cannot be."""
    if deterministic:
        for name, value in DETERMINISTIC.items():
            os.environ.setdefault(name, value)
    if find_spec("torch") is None:
        raise CaptureError(
            say(
                "Cannot capture: torch is not installed in this Python. Install it, or run align from the "
                "environment of the training."
            )
        )
    if device == "npu":
        _prepare_npu(transfer=transfer)
    elif device == "cpu":
        _prepare_cpu()
    else:
        _import_torch()
        if device == "cuda":
            _require_cuda()


def _prepare_cpu() -> None:
    """Hide accelerators; torch reads these variables when it is imported."""
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    os.environ["ASCEND_RT_VISIBLE_DEVICES"] = ""
    os.environ[AUTOLOAD] = "0"
    importlib.import_module("torch")


def _import_torch() -> None:
    try:
        importlib.import_module("torch")
    except RuntimeError as error:
        if "Failed to load the backend extension" not in str(error):
            raise
        cause = error.__cause__ or error
        raise CaptureError(
            say(
                "Cannot import torch: torch_npu is installed but CANN cannot be loaded ({}). For the NPU, {} "
                "first; for another device, give --device cpu or set {}=0.",
                cause,
                SOURCE_CANN,
                AUTOLOAD,
            )
        ) from error


def _require_cuda() -> None:
    import torch

    if not torch.cuda.is_available():
        raise CaptureError(
            say(
                "Cannot capture on cuda: torch {} sees no CUDA device. Check nvidia-smi and that torch was built "
                "for CUDA, or give --device cpu.",
                torch.__version__,
            )
        )


def _prepare_npu(*, transfer: bool) -> None:
    if find_spec("torch_npu") is None:
        raise CaptureError(
            say(
                "Cannot capture on npu: torch_npu is not installed in this Python. Install the torch_npu that "
                "fits your torch and CANN."
            )
        )
    with _variable_kept(AUTOLOAD, "0"):
        import torch

        try:
            importlib.import_module("torch_npu")
        except ImportError as error:
            raise CaptureError(
                say(
                    "Cannot capture on npu: torch_npu is installed but CANN cannot be loaded ({}). {}, then try again.",
                    error,
                    capital(SOURCE_CANN),
                )
            ) from error
    npu = getattr(torch, "npu", None)
    if npu is None or not npu.is_available():
        raise CaptureError(
            say(
                "Cannot capture on npu: torch_npu is loaded but sees no NPU. Check npu-smi info and "
                "ASCEND_RT_VISIBLE_DEVICES."
            )
        )
    if transfer:
        importlib.import_module("torch_npu.contrib.transfer_to_npu")


@contextmanager
def _variable_kept(name: str, value: str) -> Iterator[None]:
    """Set an environment variable for a while; torch_npu leaves it changed when its import fails."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = before
