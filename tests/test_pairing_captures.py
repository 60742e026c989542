"""One network captured in several ways: other names, other calls, other modules; aligned, or wrong at its place."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from align.records import DiffResult, Kind, Origin, Phase, Verdict
from align.reports.text import diff_text
from tests.running import WORKLOADS, align, capture_all, diff

SCRIPT = WORKLOADS / "ways" / "restructured.py"

compared = cache(diff)

NUMBERED = {"0": "0", "1": "2", "2": "3"}
"""Where one block is inserted behind the first."""

WAYS = (
    "extra-call", "no-grad", "extra-micro", "inserted", "adapter", "wrapped", "renamed", "renamed,keys-first",
    "renamed,inserted", "wrapped,renamed", "renamed,extra-call,no-grad",
)  # fmt: skip
FAULTY = ("inserted", "wrapped,renamed", "renamed,extra-call,no-grad", "extra-micro")
NAMES = {"emb": "embed_tokens", "h": "layers", "norm": "input_layernorm", "query": "q_proj", "key": "k_proj",
         "up": "fc_in", "act": "activation", "down": "fc_out", "cell": "recurrence", "head": "output"}  # fmt: skip


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """The captures by `--ways`, or `--ways+fault`."""
    folder = tmp_path_factory.mktemp("pairing")
    runs = ["", *WAYS, *(f"{ways}+{fault}" for ways in FAULTY for fault in ("1.act", "state"))]
    paths = {run: folder / f"{run or 'plain'}.h5" for run in runs}
    commands: list[tuple[Path, list[str | Path]]] = []
    for run, path in paths.items():
        ways, _, fault = run.partition("+")
        options = ["--steps", "0:1", "--stop"] if fault else []
        commands.append((path, [*options, SCRIPT, "--ways", ways, *(["--fault", fault] if fault else [])]))
    # One with statistics and one step only.
    paths["stats"] = folder / "stats.h5"
    commands.append((paths["stats"], ["--detail", "stats", "--steps", "0:1", SCRIPT]))
    capture_all("cpu", commands)
    return paths


def _expected(ways: str, name: str) -> str:
    """The name that a module of the plain network has when it is built in these ways."""
    if name == "<Net>":
        renamed = "<Port>" if "renamed" in ways else name
        return renamed if "wrapped" not in ways else "<Wrapper>" if "renamed" in ways else "net"
    parts = name.split(".")
    if "inserted" in ways and parts[0] == "h":
        parts[1] = NUMBERED[parts[1]]
    if "renamed" in ways:
        parts = [NAMES.get(part, part) for part in parts]
    return ".".join(["net", *parts] if "wrapped" in ways else parts)


@pytest.mark.parametrize("ways", WAYS)
def test_the_same_numbers_are_aligned_however_the_model_is_built(captures: Mapping[str, Path], ways: str) -> None:
    result = compared(captures[""], captures[ways])
    assert result.verdict is Verdict.ALIGNED
    assert result.only_reference == ()
    assert {finding.label for finding in result.findings} <= {"structure-differs", "within-noise"}
    for pair in result.comparisons:
        if pair.key.phase not in {Phase.INPUT, Phase.LOSS}:
            assert pair.candidate.key.name == _expected(ways, pair.key.name)
    # Only one kind of rounding may differ: sums of gradients in another order.
    unequal = [pair for pair in result.comparisons if pair.relative_l2]
    assert not unequal or ways == "renamed,keys-first"


@pytest.mark.parametrize("ways", FAULTY)
@pytest.mark.parametrize(
    ("fault", "name", "slot", "call", "origin"),
    [("1.act", "h.1.act", "output.0", 0, Origin.MODULE), ("state", "cell", "input.1", 2, Origin.FUNCTIONAL)],
)
def test_what_is_wrong_is_found_at_its_place(
    captures: Mapping[str, Path], ways: str, fault: str, name: str, slot: str, call: int, origin: Origin
) -> None:
    first = compared(captures[""], captures[f"{ways}+{fault}"]).first_divergence
    assert first is not None
    assert (first.step, first.micro, first.phase, first.kind) == (0, 0, Phase.FORWARD, Kind.VALUE)
    assert (first.name, first.slot, first.call, first.origin) == (name, slot, call, origin)


def _notes(result: DiffResult) -> str:
    text = diff_text(result, width=10_000)
    return "\n".join(line for line in text.splitlines() if line.startswith("note: ")).partition("seen.\n")[2]


@pytest.mark.parametrize(
    ("ways", "notes"),
    [
        ("adapter", ""),
        (
            "inserted",
            (
                "note: 14 modules were paired by order, class and parameter shapes: h.N -> h.N+1 (confidence 1.00); "
                "check with --map."
            ),
        ),
        (
            "extra-micro",
            (
                "note: In step 0 the reference has 2 micro-steps and the candidate 3 micro-steps: they were paired by "
                "what the model was given, 0 with 1 and 1 with 2 (confidence 1.00)."
            ),
        ),
        (
            "extra-call",
            (
                "note: cell is called 4 times in the reference and 5 times in the candidate (step 0): its calls were "
                "paired by their inputs, 0 with 1, 1 with 2, 2 with 3 and 1 more (confidence 1.00)."
            ),
        ),
        (
            "no-grad",
            (
                "note: h.1 is called once in the reference and 2 times in the candidate (step 0): its calls were "
                "paired by their inputs, 0 with 1 (confidence 1.00); so were those of 6 more modules."
            ),
        ),
    ],
)
def test_the_pairing_is_told_in_one_line(captures: Mapping[str, Path], ways: str, notes: str) -> None:
    assert _notes(compared(captures[""], captures[ways])) == notes


@pytest.mark.parametrize(
    ("ways", "summary"),
    [
        ("adapter", "3 names only in the candidate (such as adapter)"),
        ("extra-micro", "2 micro-steps only in the candidate (such as micro-step 0 of step 0)"),
        ("extra-call", "4 calls only in the candidate (such as call 0 of cell in step 0)"),
        ("no-grad", "4 calls only in the candidate (such as call 0 of h.1 in step 0)"),
    ],
)
def test_what_only_one_run_has_is_told(captures: Mapping[str, Path], ways: str, summary: str) -> None:
    result = compared(captures[""], captures[ways])
    found = [finding.summary for finding in result.findings if finding.label == "structure-differs"]
    assert found == [f"The structure of the runs differs: {summary}."]


def test_the_documents_hold_the_pairing(captures: Mapping[str, Path], tmp_path: Path) -> None:
    page, document = tmp_path / "report.html", tmp_path / "report.json"
    done = align("diff", captures[""], captures["renamed,extra-call,no-grad"], "--html", page, "--json", document)
    assert done.code == 0, done.stderr
    pairing = json.loads(document.read_text())["pairing"]
    groups = {(each["reference"], each["candidate"]): each for each in pairing["names"]}
    assert groups["h.N.query", "layers.N.q_proj"]["modules"] == 3
    assert groups["<Net>", "<Port>"]["method"] == "root"
    assert {each["name"]: each["totals"] for each in pairing["calls"] if each["step"] == 0}["cell"] == [4, 5]
    row = page.read_text().partition("<h3>Pairs that are not of equal names</h3>")[2].partition("</table>")[0]
    assert '<bdi class="name">h.N.query</bdi></td><td><bdi class="name">layers.N.q_proj</bdi>' in row


def test_rules_pair_what_they_name(captures: Mapping[str, Path], tmp_path: Path) -> None:
    rules = tmp_path / "rules.txt"
    lines = [f"(h\\.\\d+\\.)?{old} -> \\1{new}" for old, new in NAMES.items() if old != "h"]
    rules.write_text("\n".join(["# the layers", r"h\.(\d+)\.norm -> layers.\1.input_layernorm", *lines, "wte -> tok"]))
    done = align("diff", captures[""], captures["renamed"], "--map", rules, "--all")
    assert done.code == 0, done.stderr
    text = " ".join(done.stdout.split())
    assert "note: 6 modules were paired by the rules given: h.N.norm -> layers.N.input_layernorm, emb ->" in text
    assert (
        f"note: The rule in line 12 of '{rules}', 'wte -> tok', matches no name of the reference that is left to it."
    ) in text


def test_rules_that_cannot_be_read_end_the_command(captures: Mapping[str, Path], tmp_path: Path) -> None:
    rules = tmp_path / "rules.txt"
    rules.write_text("emb = tok\n")
    done = align("diff", captures[""], captures["renamed"], "--map", rules, "--all")
    assert (done.code, done.stdout) == (2, "")
    assert done.stderr == (
        f"align: Cannot read line 1 of '{rules}', 'emb = tok': write PATTERN -> REPLACEMENT, such as "
        "'model\\.h\\.(\\d+) -> layers.\\1'.\n"
    )


def test_other_steps_and_another_detail_are_told(captures: Mapping[str, Path]) -> None:
    result = compared(captures[""], captures["stats"])
    assert result.verdict is Verdict.ALIGNED
    notes = diff_text(result, width=10_000)
    assert (
        "note: The reference holds steps 0-1, the candidate step 0: only what both hold was compared. Capture both "
        "with the same --steps to compare all of it.\n"
        "note: The candidate was captured with --detail stats, the other run with --detail sketch: they were compared "
        "by what both hold. Capture both with --detail sketch to see more.\n"
    ) in notes
