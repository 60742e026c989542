"""Many captures or replays in one process, each through the command line of its own; jobs come as JSON on stdin."""

from __future__ import annotations

import contextlib
import gc
import io
import json
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from align.cli import main


def set_knobs(knobs: dict[str, Any]) -> None:
    """Put the simulated NPU into the state that these knobs describe; all others are off."""
    from dataclasses import asdict

    from torch_npu.simulator.numerics import change
    from torch_npu.simulator.settings import Numerics

    change(**{**asdict(Numerics()), **knobs})


def run(job: dict[str, Any]) -> dict[str, Any]:
    """One capture or replay; the file gets its name when it is complete."""
    path = Path(job["path"])
    unfinished = path.with_name(f"unfinished-{path.name}")
    if job["knobs"] is not None:
        set_knobs(job["knobs"])
    said, began = io.StringIO(), time.perf_counter()
    arguments = [*job["command"], "--force", "-o", str(unfinished), *job["script"]]
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            code = main(arguments, prog_name="align", standalone_mode=False) or 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except Exception:  # noqa: BLE001  one capture that fails must not end the others; it is reported
            traceback.print_exc(file=said)
            code = 1
    words = said.getvalue()
    if code == 0 and "trouble" not in words:
        unfinished.replace(path)
    else:
        code = code or 3
    return {"path": job["path"], "code": code, "seconds": time.perf_counter() - began, "said": words[-2000:]}


if __name__ == "__main__":
    for place, each in enumerate(json.loads(sys.stdin.read())):
        print(json.dumps(run(each)), file=sys.__stdout__, flush=True)
        if place == 0:
            # What the first run imported stays: the collector need not look at it again, a sixth of the time.
            gc.collect()
            gc.freeze()
