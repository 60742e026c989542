"""What the pages are filled in with: the templates, their filters and the signs of badges."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import resources

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

SIGNS = {
    "error": "\u2715",
    "warning": "\u25b2",
    "note": "i",
    "pass": "\u2713",
    "unknown": "\u25cb",
    "absent": "\u2013",
}
"""The sign of each badge: colour never speaks alone."""


@lru_cache
def templates() -> Environment:
    """The environment of the templates: what is filled in is escaped, a name without a value is an error."""
    environment = Environment(
        loader=FunctionLoader(resource),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["marked"] = marked
    return environment


def marked(sentence: str) -> Markup:
    """The sentence escaped, with what stands between backticks as code."""
    escaped = str(escape(sentence))
    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", escaped))  # noqa: S704 - escaped one line above


def resource(name: str) -> str:
    """The text of a file beside the templates."""
    return (resources.files("align.reports") / "templates" / name).read_text(encoding="utf-8")
