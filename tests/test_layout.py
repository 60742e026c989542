"""The tree, the wheel, the source archive and the editable install hold the same package."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LINKS = ("hooks", "reports")

# The package is imported from the folder named by the argument; what pip wrote there is obeyed.
IMPORT = """
import site, sys
from importlib import import_module
from pathlib import Path
site.addsitedir(sys.argv[1])
sys.path.append(sys.argv[2])
import align, align.hooks, align.reports, align.cli
print(Path(align.__file__).parent)
"""
IMPORT_ALL = f"""{IMPORT}
root = Path(align.__file__).parent
for file in sorted(root.glob("*.py")) + sorted(root.glob("[a-z]*/*.py")):
    parts = file.relative_to(root.parent).with_suffix("").parts
    if parts[-1] not in ("__init__", "__main__"):
        import_module(".".join(parts))
"""


def run(*command: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )


def build(kind: str, source: Path, folder: Path) -> Path:
    """Build with the project's own build backend, as pip does."""
    folder.mkdir(parents=True, exist_ok=True)
    program = f"import hatchling.build as b, sys; print(b.build_{kind}(sys.argv[1]))"
    done = run(sys.executable, "-c", program, str(folder), cwd=source)
    assert done.returncode == 0, done.stderr
    return folder / done.stdout.split()[-1]


def imported_from(site_folder: Path, program: str) -> str:
    """Import from a folder alone, with no help from the tree, and say where the package was."""
    libraries = sysconfig.get_path("purelib")
    done = run(sys.executable, "-I", "-S", "-c", program, str(site_folder), libraries, cwd=site_folder)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def python_files(folder: Path) -> set[str]:
    return {str(file.relative_to(folder)) for file in folder.rglob("*.py")}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.mark.parametrize("name", LINKS)
def test_links_are_relative_links(name: str) -> None:
    assert (ROOT / "align" / name).readlink() == Path("..", name)


def test_every_package_is_a_package() -> None:
    folders = {file.parent for file in (ROOT / "align").rglob("*.py")} | {ROOT / name for name in LINKS}
    assert [str(folder) for folder in sorted(folders) if not (folder / "__init__.py").is_file()] == []


CHINESE = re.compile("[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef\u00b1\u00d7\u2013\u2014\u2026\u201c\u201d]")
"""Letters and full-width signs in which the program speaks Chinese; nothing else in code is beyond ASCII."""


def test_code_is_ascii_but_for_chinese() -> None:
    folders = ("align", "hooks", "reports", "fixtures", "benchmarks", "tests")
    files = [file for folder in folders for file in (ROOT / folder).rglob("*.py")]
    assert [str(file) for file in files if not CHINESE.sub("", file.read_text(encoding="utf-8")).isascii()] == []


def test_wheel_holds_what_the_tree_holds(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    tree = {
        f"{package}/{file.relative_to(folder)}"
        for package, folder in [("align/hooks", ROOT / "hooks"), ("align/reports", ROOT / "reports")]
        for file in folder.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    assert tree <= names
    assert {name for name in names if name.startswith(("hooks", "reports", "tests", "fixtures"))} == set()
    assert {"align/py.typed", "align/acceptance/policies/default.toml"} <= names


def test_wheel_imports_when_installed(wheel: Path, tmp_path: Path) -> None:
    target = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(target)]
    done = run(*pip, str(wheel), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert imported_from(target, IMPORT_ALL) == str(target / "align")


def test_source_archive_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    archive = build("sdist", ROOT, tmp_path)
    assert run("tar", "-xzf", str(archive), cwd=tmp_path).returncode == 0
    again = build("wheel", tmp_path / archive.name.removesuffix(".tar.gz"), tmp_path / "again")
    assert sorted(zipfile.ZipFile(again).namelist()) == sorted(zipfile.ZipFile(wheel).namelist())


def test_editable_install_imports_from_the_tree(tmp_path: Path) -> None:
    editable = build("editable", ROOT, tmp_path)
    zipfile.ZipFile(editable).extractall(tmp_path / "site")
    assert imported_from(tmp_path / "site", IMPORT) == str(ROOT / "align")


@pytest.mark.parametrize("name", LINKS)
def test_build_stops_when_a_link_is_a_plain_file(name: str, tmp_path: Path) -> None:
    for needed in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / needed, tmp_path)
    (tmp_path / "align").mkdir()
    shutil.copy(ROOT / "align" / "__init__.py", tmp_path / "align")
    for link in LINKS:
        (tmp_path / "align" / link).mkdir()
    (tmp_path / "align" / name).rmdir()
    (tmp_path / "align" / name).write_text(f"../{name}")
    program = "import hatchling.build as b; b.build_wheel('out')"
    done = run(sys.executable, "-c", program, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.strip() == (
        f"Cannot build align: '{tmp_path}/align/{name}' must be a link to the folder '{name}', but it is not a folder. "
        "Git was set up without symbolic links here; run 'git config core.symlinks true' and "
        f"'git checkout -- align/{name}'."
    )


@pytest.mark.parametrize("name", LINKS)
def test_a_module_of_the_same_name_beside_the_script_is_the_users(name: str, tmp_path: Path) -> None:
    (tmp_path / f"{name}.py").write_text("OWNER = 'user'\n")
    (tmp_path / "train.py").write_text(f"import align.{name}, {name}\nprint(align.{name}.__name__, {name}.OWNER)\n")
    done = run(sys.executable, "train.py", cwd=tmp_path, PYTHONPATH=str(ROOT))
    assert (done.stdout, done.stderr) == (f"align.{name} user\n", "")
