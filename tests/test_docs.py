"""The documents say what the program does: code in them runs, commands in them exist, and none is left out."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import align
from align.cli import main
from scripts.write_command_line import page
from tests.running import python

if TYPE_CHECKING:
    import click

ROOT = Path(__file__).resolve().parents[1]
READMES = ("README.md", "README.zh-CN.md")
DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "fixtures").rglob("*.md")]


def blocks(document: Path, language: str) -> list[str]:
    """The fenced blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", document.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def commands(
    group: click.Command, path: tuple[str, ...] = ("align",)
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every visible command below a group, with the words that call it."""
    for name, command in getattr(group, "commands", {}).items():
        if not command.hidden:
            yield (*path, name), command
            yield from commands(command, (*path, name))


def options(command: click.Command) -> set[str]:
    """The long options of a command."""
    words = {word for parameter in command.params for word in (*parameter.opts, *parameter.secondary_opts)}
    return {word for word in words if word.startswith("--")} | {"--help"}


COMMANDS = dict(commands(main))


def command_lines(document: Path) -> Iterator[list[str]]:
    """The words of every line of a fenced block that calls align, without the words of the user's script."""
    for block in blocks(document, r"\w*"):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True) if line.startswith("align ") else []
            scripts = [place for place, word in enumerate(words) if word.endswith(".py")]
            if words:
                yield words[: scripts[0]] if scripts else words


@pytest.mark.parametrize("name", READMES)
def test_python_in_the_readme_runs(name: str, tmp_path: Path) -> None:
    code = blocks(ROOT / name, "python")
    assert code
    script = tmp_path / "readme.py"
    script.write_text("\n".join(code), encoding="utf-8")
    done = python(script, cwd=tmp_path)
    assert done.code == 0, done.stderr


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_and_option_is_documented(words: tuple[str, ...]) -> None:
    files = [ROOT / "README.md", ROOT / "docs" / "command-line.md"]
    text = "\n".join(file.read_text(encoding="utf-8") for file in files if file.is_file())
    missing = {word for word in (" ".join(words), *options(COMMANDS[words])) if word not in text}
    assert missing - {"--help"} == set()


def test_the_page_of_the_command_line_is_up_to_date() -> None:
    written = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    assert written == page(), "Run 'python scripts/write_command_line.py'."


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda file: str(file.relative_to(ROOT)))
def test_commands_in_documents_exist(document: Path) -> None:
    for words in command_lines(document):
        known = options(main) if words[1].startswith(("-", "[")) else options(COMMANDS[tuple(words[:2])])
        used = {word.partition("=")[0] for word in words if word.startswith("--")}
        assert used <= known, " ".join(words)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda file: str(file.relative_to(ROOT)))
def test_links_in_documents_lead_somewhere(document: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", document.read_text(encoding="utf-8"))
    local = [target for target in targets if not target.startswith(("http://", "https://"))]
    assert [target for target in local if not (document.parent / target).exists()] == []


def test_public_names_are_exact() -> None:
    assert align.__all__ == ["Recorder", "SameStart", "__version__", "open", "tap"]
    assert [name for name in align.__all__ if not hasattr(align, name)] == []
    assert set(align.__all__) <= set(dir(align))


def test_unknown_name_is_refused() -> None:
    with pytest.raises(AttributeError, match=r"^module 'align' has no attribute 'recorder'$"):
        _ = align.recorder


def test_changelog_names_the_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## \[({re.escape(align.__version__)}|Unreleased)\]", text, re.MULTILINE)
