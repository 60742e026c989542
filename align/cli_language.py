"""The language that a command speaks: the option that names it, and what is said on stderr in it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from align.reports.language import Language

_ASKED = "align.language"
"""Where the contexts of one command line share the code that was asked for."""

Function = TypeVar("Function", bound=Callable[..., Any])


def _remember(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:  # noqa: ARG001 - click's
    """Errors are told by the group, whose context has none of the command's options."""
    ctx.meta[_ASKED] = value
    return value


def spoken(function: Function) -> Function:
    """The option of a command that speaks several languages."""
    return click.option(
        "--lang",
        type=click.Choice(["en", "zh"]),
        is_eager=True,
        callback=_remember,
        help="The language of text, page and errors. [default: by the locale]",
    )(function)


def language() -> Language:
    """The language of what is said on stderr: that of the command's option, else that of the environment."""
    from align.reports.language import chosen

    return chosen(click.get_current_context().meta.get(_ASKED), sys.stderr.encoding)


def complain(text: str) -> None:
    """Say on stderr what went wrong."""
    click.echo(f"align: {language().said(text)}", err=True)
