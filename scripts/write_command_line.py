"""Writes docs/command-line.md from the commands themselves."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import click

from align.cli import main

PAGE = Path(__file__).resolve().parents[1] / "docs" / "command-line.md"


def page() -> str:
    """The whole page."""
    head = "# Command line\n\nThis page is written by `python scripts/write_command_line.py`.\n"
    sections = [section(name, command) for name, command in walk("align", main)]
    return "\n".join([head, *sections])


def walk(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    """A command and all visible commands below it, with the words that call each."""
    yield name, command
    for word, below in getattr(command, "commands", {}).items():
        if not below.hidden:
            yield from walk(f"{name} {word}", below)


def section(name: str, command: click.Command) -> str:
    """One command: how to call it, what it does, its options."""
    context = click.Context(command, info_name=name)
    usage = " ".join([name, *command.collect_usage_pieces(context)])
    lines = [f"## {name}", "", "```", usage, "```", "", help_text(command), ""]
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    if options:
        lines += ["| option | meaning |", "|---|---|", *(row(option, context) for option in options), ""]
    return "\n".join(lines)


def help_text(command: click.Command) -> str:
    """The words of a command's help; what stands there line by line becomes a block."""
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    return "\n\n".join(
        "```\n" + paragraph.removeprefix("\b\n") + "\n```" if paragraph.startswith("\b") else paragraph
        for paragraph in paragraphs
    )


def row(option: click.Option, context: click.Context) -> str:
    """One line of the table of options."""
    names = ", ".join([*option.opts, *option.secondary_opts])
    value = "" if option.is_flag else " " + option.make_metavar(context)
    default = f" Default: `{option.default}`." if option.show_default and option.default is not None else ""
    cells = [f"`{names}{value}`", f"{option.help}{default}"]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"Wrote {PAGE}")
