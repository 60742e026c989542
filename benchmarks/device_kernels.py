"""How many kernels a captured step launches on an accelerator, beside those that training launches itself.

Launching a kernel costs the host some microseconds, however little it does; small models wait for nothing else. The
simulated NPU counts: every operator that reaches the device is one kernel there. It trains a transformer encoder
(4 layers, width 256, batch 4 x 32, AdamW), each detail in a process of its own.

    python benchmarks/device_kernels.py
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SIMULATOR = ROOT / "fixtures" / "npu_sim"
STEPS = 4
DETAILS = ("stats", "sketch", "tensors")

TRAINING = """
import contextlib, sys
import torch, torch_npu
from torch_npu.simulator import kernels

import align

launched = 0
execute = kernels._execute

def counted(*given):
    global launched
    launched += 1
    return execute(*given)

kernels._execute = counted
path, detail, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(256, 4, 512, batch_first=True)
model = torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False).to("npu")
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
recorder = align.Recorder(path, steps=f"0:{steps}", detail=detail) if detail else contextlib.nullcontext()
with recorder:
    for step in range(steps):
        begin = launched
        loss = model(torch.randn(4, 32, 256).to("npu")).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(launched - begin)
"""


def main() -> None:
    """Print the kernels of the last step, plain and captured."""
    plain = kernels_of_a_step("")
    print(f"{'plain':10} {plain:7,} kernels a step")
    for detail in DETAILS:
        captured = kernels_of_a_step(detail)
        added = captured - plain
        print(f"{detail:10} {captured:7,} kernels a step, {captured / plain:.2f} x plain, {added:,} more")


def kernels_of_a_step(detail: str) -> int:
    """The kernels of the last step of a training that is captured at a detail; at none it is not."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", TRAINING, str(Path(folder) / "run.h5"), detail, str(STEPS)],
            capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": f"{ROOT}:{SIMULATOR}"},
        )  # fmt: skip
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return int(done.stdout.split()[-1])


if __name__ == "__main__":
    main()
