"""Settings that differ between two real trainings are named: of a module, of its mode, of the way it was captured."""

from __future__ import annotations

from pathlib import Path

import pytest

from align.records import DiffResult, Severity
from tests.running import align, capture_all, diff

SCRIPT = """
import sys
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, p, scale):
        super().__init__()
        self.fc, self.norm, self.drop, self.head = nn.Linear(16, 64), nn.LayerNorm(64), nn.Dropout(p), nn.Linear(64, 4)
        self.scale = scale

    def forward(self, x):
        return self.head(self.drop(self.norm(torch.relu(self.fc(x)) * self.scale)))


given = dict(word.split("=") for word in sys.argv[1:])
torch.manual_seed(0)
model = Net(float(given.get("p", 0.1)), float(given.get("scale", 1.0)))
if "eval" in given:
    model.drop.eval()
loss = nn.CrossEntropyLoss(label_smoothing=float(given.get("smoothing", 0.0)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    x, y = torch.randn(64, 16), torch.randint(4, (64,))
    optimizer.zero_grad()
    loss(model(x), y).backward()
    optimizer.step()
del model, optimizer
"""

WORDS = ("p=0.1", "p=0.3", "eval=1", "scale=2", "smoothing=0.1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Captures of the script with one word each, and one without dropout."""
    path = tmp_path_factory.mktemp("settings")
    script = path / "train.py"
    script.write_text(SCRIPT, encoding="utf-8")
    capture_all("cpu", [(path / f"{word}.h5", [script, word]) for word in WORDS])
    done = align("capture", "--device", "cpu", "--no-dropout", "-o", path / "none.h5", script)
    assert done.code == 0, done.stderr
    return path


def compared(folder: Path, name: str) -> DiffResult:
    return diff(folder / "p=0.1.h5", folder / f"{name}.h5")


ROOT_CAUSES = {
    "p=0.3": "drop has p 0.1 in the reference and 0.3 in the candidate. Step 0, forward: drop output.0 ",
    "eval=1": (
        "In step 0 drop runs in training mode in the reference and in evaluation mode in the candidate. Step 0, "
        "forward: drop output.0 "
    ),
    "scale=2": "<Net> has scale 1.0 in the reference and 2.0 in the candidate. Step 0, forward: norm input.0 ",
    "smoothing=0.1": (
        "<CrossEntropyLoss> has label_smoothing 0.0 in the reference and 0.1 in the candidate. Step 0, forward: "
        "<CrossEntropyLoss> output.0 "
    ),
    "none": (
        "The runs were not made comparable alike: dropout was off in the candidate only. Step 0, forward: drop "
        "output.0 "
    ),
}
CODES = {"p=0.3": "AL107", "eval=1": "AL108", "scale=2": "AL107", "smoothing=0.1": "AL107", "none": "AL101"}


@pytest.mark.parametrize("name", ROOT_CAUSES)
def test_the_setting_is_the_root_cause(folder: Path, name: str) -> None:
    result = compared(folder, name)
    assert (result.findings[0].code, result.findings[0].severity) == (CODES[name], Severity.ERROR)
    assert result.summary == result.findings[0].summary
    assert result.summary.startswith(ROOT_CAUSES[name])


def test_a_run_compared_with_itself_has_no_such_finding(folder: Path) -> None:
    assert [finding.code for finding in compared(folder, "p=0.1").findings] == ["AL406"]
