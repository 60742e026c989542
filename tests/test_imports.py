"""Who may import whom, read from the source; and what the commands load, seen in real processes."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.running import run_python

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Layer:
    """Modules of one kind; a package's name stands for all that it holds."""

    modules: tuple[str, ...]
    layers: tuple[str, ...]
    libraries: tuple[str, ...]


LAYERS = {
    "words": Layer(
        (
            "align",
            "align.acceptance_records",
            "align.checkpoint_records",
            "align.curve_records",
            "align.errors",
            "align.records",
            "align.sentences",
            "align.tapping",
            "align.watching",
            "align.wording",
        ),
        (),
        ("numpy",),
    ),
    "file": Layer(
        (
            "align.capture_checks",
            "align.capture_file",
            "align.capture_format",
            "align.capture_index",
            "align.capture_reader",
            "align.capture_request",
            "align.capture_writer",
            "align.checkpoint_files",
            "align.damage",
            "align.format_page",
            "align.gathered",
            "align.hashing",
            "align.kept_values",
            "align.put_down",
            "align.put_down_process",
            "align.replay_checks",
            "align.sketch",
            "align.staging",
            "align.space_limit",
            "align.staging",
            "align.steady_file",
            "align.value_source",
            "align.value_types",
        ),
        ("words",),
        ("h5py", "numpy"),
    ),
    # Modules that no other layer names: pure functions over records.
    "middle": Layer((), ("words", "file"), ("numpy",)),
    "diagnosis": Layer(("align.checkpoints", "align.diagnosis"), ("words", "file", "middle"), ("numpy",)),
    "hooks": Layer(("align.hooks",), ("words", "file"), ("numpy", "torch", "torch_npu")),
    "reports": Layer(("align.reports",), ("words",), ("jinja2", "markupsafe", "matplotlib", "numpy", "rich")),
    "cli": Layer(
        (
            "align.accepting",
            "align.cli",
            "align.cli_accept",
            "align.cli_language",
            "align.cli_report",
            "align.commands",
            "align.__main__",
        ),
        ("words", "file", "middle", "diagnosis", "hooks", "reports"),
        ("click", "rich"),
    ),
}

# `align` itself holds no code but lazy names; it says where they live.
LAZY_HOMES = {"align.capture_file", "align.hooks.recorder", "align.hooks.same_start", "align.tapping"}

# torch may be missing or broken where captures are compared, and both libraries are slow to load.
PROGRAM = """
import json, sys
from align.cli import main
if "--no-torch" in sys.argv:
    sys.argv.remove("--no-torch")
    sys.modules["torch"] = None
status = 0
try:
    main(sys.argv[1:], prog_name="align")
except SystemExit as end:
    status = end.code or 0
loaded = [name for name in ("torch", "matplotlib") if sys.modules.get(name) is not None]
print(json.dumps({"status": status, "loaded": loaded}), file=sys.stderr)
"""


def product_files() -> dict[str, Path]:
    """Every module of the package, by the name it is imported by."""
    folders = {"align": ROOT / "align", "align.hooks": ROOT / "hooks", "align.reports": ROOT / "reports"}
    files: dict[str, Path] = {}
    for package, folder in folders.items():
        for file in sorted(folder.rglob("*.py")):
            parts = file.relative_to(folder).with_suffix("").parts
            files[".".join((package, *parts)).removesuffix(".__init__")] = file
    return files


FILES = product_files()


def layer_of(module: str) -> str:
    """The layer that names the module, or the package that it is in."""
    package = ".".join(module.split(".")[:2])
    return next((name for name, layer in LAYERS.items() if package in layer.modules), "middle")


@cache
def imports_of(file: Path, module: str) -> tuple[tuple[str, int, bool], ...]:
    """Each module imported by a file, the line, and whether that happens when the file is imported."""
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    return tuple(
        (name, getattr(node, "lineno", 0), not inside)
        for node, inside in statements(ast.parse(file.read_text(encoding="utf-8")))
        for name in imported_names(node, package)
    )


def statements(node: ast.AST, *, inside: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    """A node, each statement under it, and whether a function holds it; an import is never in an expression."""
    yield node, inside
    inside = inside or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    for part in ("body", "orelse", "finalbody", "handlers", "cases"):
        for inner in getattr(node, part, ()):
            yield from statements(inner, inside=inside)


def imported_names(node: ast.AST, package: str) -> Iterator[str]:
    """The modules that one statement imports."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
        base = ".".join([*above, *([node.module] if node.module else [])])
        for alias in node.names:
            full = f"{base}.{alias.name}"
            yield full if full in FILES else base


def test_the_table_names_only_what_exists() -> None:
    named = {module for layer in LAYERS.values() for module in layer.modules}
    assert sorted(named - set(FILES)) == []


def forbidden(module: str) -> Iterator[str]:
    """What a module imports and may not, with the line and the layer that it is in."""
    name = layer_of(module)
    layer = LAYERS[name]
    allowed = {name, *layer.layers}
    for imported, line, _ in imports_of(FILES[module], module):
        top = imported.partition(".")[0]
        if top == "align":
            wrong = layer_of(imported) not in allowed and not (module == "align" and imported in LAZY_HOMES)
        else:
            wrong = top not in layer.libraries and top not in sys.stdlib_module_names
        if wrong:
            yield f"{module}, line {line}: {imported} ('{name}' may import {sorted(allowed)} and {layer.libraries})"


def test_imports_follow_the_directions() -> None:
    assert [wrong for module in FILES for wrong in forbidden(module)] == []


def test_matplotlib_is_imported_where_a_page_is_drawn_only() -> None:
    at_import = [
        f"{module}, line {line}"
        for module, file in FILES.items()
        for name, line, top in imports_of(file, module)
        if top and name.partition(".")[0] == "matplotlib"
    ]
    assert at_import == []


def test_training_scripts_know_nothing_of_align() -> None:
    scripts = [*(ROOT / "fixtures" / "workloads").rglob("*.py"), *(ROOT / "fixtures" / "cases").rglob("*.py")]
    assert scripts
    knowing = {
        str(script)
        for script in scripts
        for name, _, _ in imports_of(script, script.stem)
        if name.partition(".")[0] in ("align", "hooks", "reports")
    }
    assert knowing == set()


def align(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own and let it say what it loaded."""
    command = [sys.executable, "-c", PROGRAM, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment)


def said(done: subprocess.CompletedProcess[str]) -> dict[str, object]:
    lines = done.stderr.splitlines()
    assert lines, done.stdout
    assert lines[-1].startswith("{"), done.stderr
    answer: dict[str, object] = json.loads(lines[-1])
    return answer


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture of a small training script."""
    folder = tmp_path_factory.mktemp("capture")
    script = ROOT / "fixtures" / "workloads" / "steps" / "accumulation.py"
    done = run_python("-c", PROGRAM, "capture", "--device", "cpu", "-o", "run.h5", script, cwd=folder)
    assert said(done) == {"status": 0, "loaded": ["torch"]}
    return folder / "run.h5"


def test_importing_align_loads_nothing_heavy() -> None:
    program = "import sys, align; print(sorted({'torch', 'h5py', 'numpy', 'matplotlib', 'click'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_help_loads_neither_torch_nor_matplotlib(tmp_path: Path) -> None:
    assert said(align("--help", folder=tmp_path)) == {"status": 0, "loaded": []}


def test_diff_works_without_torch_and_loads_no_matplotlib(capture: Path) -> None:
    done = align("diff", str(capture), str(capture), "--no-torch", folder=capture.parent)
    assert said(done) == {"status": 0, "loaded": []}


def test_diff_loads_matplotlib_for_a_page_only(capture: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    done = align("diff", str(capture), str(capture), "--html", str(page), "--no-torch", folder=tmp_path)
    answer = said(done)
    assert answer["status"] == 0
    assert "torch" not in str(answer["loaded"])
    assert page.is_file()


def test_show_works_without_torch(capture: Path) -> None:
    done = align("show", str(capture), "--no-torch", folder=capture.parent)
    assert said(done) == {"status": 0, "loaded": []}
