"""The same training steps watched by msprobe (MindStudio Probe), which serves the same purpose on Ascend.

msprobe patches torch for good where it is imported, and knows one level per process. So each level trains
in a process of its own, with the interpreter that has msprobe installed (an environment of its own will do), and
waits there while others are timed. Run as a program, this file is such a process.

The data are taken between `start` and `stop` around forward and backward, as its guides show. The optimizer's step is
left out: msprobe would take every operation in it at the levels L1 and mix, which makes them dearer still.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

import torch

from benchmarks.training import Seconds, Size, Training

PACKAGES = ("mindstudio-probe", "torch", "transformers")
ROOT = Path(__file__).resolve().parent.parent

VERSIONS = """
import json, sys
from importlib.metadata import PackageNotFoundError, version
found = {}
for name in sys.argv[1:]:
    try:
        found[name] = version(name)
    except PackageNotFoundError:
        pass
print(json.dumps(found))
"""


@dataclass(frozen=True)
class Dump:
    """What msprobe is told to keep: `level` is L0 (modules), L1 (operations) or mix, `task` statistics or tensor."""

    level: str
    task: str

    @property
    def name(self) -> str:
        """The words of the table."""
        return f"msprobe {self.level}, {self.task}"


DUMPS = (Dump("L0", "statistics"), Dump("L1", "statistics"), Dump("mix", "statistics"), Dump("L0", "tensor"))


class PeerError(Exception):
    """msprobe cannot be measured; the text says why, and what to do."""


def find_msprobe(python: str) -> str:
    """The version of msprobe that this interpreter has; PeerError where it lacks it or what the model needs."""
    advice = (
        "To measure it too, install it into an environment of its own (python -m venv peer; peer/bin/pip install "
        f"{PACKAGES[0]} torch=={torch.__version__.split('+')[0]} transformers) and give "
        "--peer-python peer/bin/python."
    )
    try:
        done = subprocess.run([python, "-c", VERSIONS, *PACKAGES], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise PeerError(f"msprobe is not measured: cannot run '{python}': {error}. {advice}") from error
    found = json.loads(done.stdout)
    missing = [name for name in PACKAGES if name not in found]
    if missing:
        raise PeerError(f"msprobe is not measured: '{python}' has no {', '.join(missing)}. {advice}")
    if found["torch"].split("+")[0] != torch.__version__.split("+")[0]:
        raise PeerError(
            f"msprobe is not measured: '{python}' has torch {found['torch']}, this benchmark {torch.__version__}, so "
            f"their steps would not be the same. {advice}"
        )
    return str(found[PACKAGES[0]])


class Peer:
    """A process in which msprobe watches the training; it begins by one plain and one watched step, not timed."""

    def __init__(self, python: str, dump: Dump, size: Size, device: torch.device, folder: Path) -> None:
        self.name = dump.name
        settings = {**asdict(dump), "size": asdict(size), "device": str(device), "folder": str(folder)}
        folder.mkdir()
        self._log = folder / "log"
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [python, __file__, json.dumps(settings)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, env=environment,
            )  # fmt: skip
        self._answer()

    def run(self, steps: int) -> list[Seconds]:
        """Seconds of this many watched steps, after one plain step that is not timed."""
        commands = self._process.stdin
        assert commands is not None  # noqa: S101  tells the type checker what Popen was asked for
        try:
            commands.write(f"{steps}\n")
            commands.flush()
        except BrokenPipeError:
            pass  # the process has ended; its log says why
        return [Seconds(*values) for values in self._answer()]

    def _answer(self) -> list[list[float]]:
        answers = self._process.stdout
        assert answers is not None  # noqa: S101  as above
        line = answers.readline()
        if not line:
            words = self._log.read_text(errors="replace").strip().splitlines()[-1:] or ["it said nothing"]
            raise PeerError(f"{self.name} is not measured: its process ended: {words[0]}")
        answer: list[list[float]] = json.loads(line)
        return answer

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()


class WatchedTraining(Training):
    """The training with msprobe's calls in it."""

    def __init__(self, dump: Dump, size: Size, device: torch.device, folder: Path) -> None:
        from msprobe.pytorch import PrecisionDebugger

        self._dumped = folder / "dump"
        config = folder / "config.json"
        config.write_text(
            json.dumps(
                {
                    "task": dump.task, "dump_path": str(self._dumped), "rank": [], "step": [], "level": dump.level,
                    dump.task: {"scope": [], "list": [], "data_mode": ["all"]},
                }
            )
        )  # fmt: skip
        self._debugger = PrecisionDebugger(config_path=str(config))
        self.watched = False
        super().__init__(size, device)

    def forward_and_backward(self) -> None:
        """The same, between `start` and `stop`."""
        if not self.watched:
            super().forward_and_backward()
            return
        self._debugger.start(model=self.model)
        super().forward_and_backward()
        self._debugger.stop()
        self._debugger.step()

    def time(self, steps: int) -> list[Seconds]:
        """Seconds of this many watched steps, after one plain step; what they wrote is checked and removed."""
        self.watched = False
        self.run(1)
        self.watched = True
        seconds = self.run(steps)
        written = list(self._dumped.glob("step*/*/dump.json"))
        if len(written) != steps:
            raise PeerError(f"msprobe wrote {len(written)} dumps in {steps} steps, see '{self._dumped}'.")
        for folder in self._dumped.glob("step*"):
            shutil.rmtree(folder)
        return seconds


def serve(settings: str, commands: IO[str], answers: IO[str]) -> None:
    """Time as many steps as each line asks for, and answer with a line of JSON: [wall, cpu] of each step."""
    given = json.loads(settings)
    torch.set_num_threads(1)
    dump = Dump(given["level"], given["task"])
    training = WatchedTraining(dump, Size(**given["size"]), torch.device(given["device"]), Path(given["folder"]))
    training.time(1)
    print("[]", file=answers, flush=True)
    for line in commands:
        print(json.dumps(training.time(int(line))), file=answers, flush=True)


def main() -> None:
    """Serve; what msprobe prints goes to the log."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    serve(sys.argv[1], sys.stdin, answers)


if __name__ == "__main__":
    main()
