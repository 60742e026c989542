"""The frame that every page stands in: one file with two languages, two themes and no need of network or script.

How a page uses it:

* Its template extends `sheet.html.j2`, which is the body of a page in one language, and fills in the blocks
  `skip` (the href of the first section), `report` (what kind of report this is), `head` (the verdict and what belongs
  to it; the macro `verdict` of `parts.html.j2` writes badge and sentence), `contents` (links to the sections), `main`
  (sections with an `h2` and an id each), `footer`, and where it has keys of its own `keys`
  (`<div><dt><kbd>..</kbd></dt><dd>..</dd></div>`).
* Phrases whose key is a method or a field of `Language` are named in brackets: `t.keys` is not `t["keys"]`.
* The module that makes the page calls `whole_page(Sheet(template, context), language)`. `context(language)` gives the
  values of the template, among them `title`; it is called once for the language asked for and once for the other one,
  whose body stands in a `<template>` until a reader wants it. `t`, `signs`, `count` and `switch` are there anyway.
* `<table class="sortable" data-csv="NAME">` is sorted by its header buttons, filtered, counted and saved as CSV by
  `tables.js`, which every page has. A cell with `data-value` is sorted and saved by that value. Headers of numbers have
  the class `number`. `data-tools="none"` leaves filter and CSV away, as tables of less than 8 rows do by themselves;
  `data-tools="always"` asks for them. The table may stand in a `<div class="scroll">`.
* `<button type="button" class="copy script-only" data-copy="ID">` copies the text of the element with that id.
* `class="script-only"` is seen only where scripts run, `static-only` only where they do not and on paper, `screen-only`
  not on paper. `details` are opened on paper.
* Scripts of its own are files beside the templates, named in `Sheet.scripts`. They run in the function that holds
  `frame.js`, and put their start into `starters`: it is called with the body at first and again after the language was
  switched, and may give back a function that ends what it began. `word(key, {places})` says a phrase that
  `Sheet.words` names, `remember(key, value)` and `remembered(key)` keep the state of the page in its address.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

from align import wording
from align.reports.language import LANGUAGES, Language

SIGNS = {
    "error": "\u2715",
    "warning": "\u25b2",
    "note": "i",
    "pass": "\u2713",
    "unknown": "\u25cb",
    "absent": "\u2013",
}
"""The sign of each badge: colour never speaks alone."""

STYLES = ("page.css", "controls.css")
SCRIPTS = ("frame.js", "tables.js")
WORDS = (
    "copied",
    "copy_failed",
    "csv",
    "csv_how",
    "rows_filter",
    "rows_of",
    "nothing",
    "nothing_together",
    "nothing_word",
    "theme_dark",
    "theme_light",
)
"""The phrases that the scripts of every page say."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """What one page is made of; see the head of this module.

    `styles` and `scripts` are files beside the templates, `words` the keys of the phrases that the scripts say,
    `more_words` what else they say, `data` the text of a JSON document for them, which `script_safe` has made.
    """

    template: str
    context: Callable[[Language], Mapping[str, Any]]
    styles: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    more_words: Callable[[Language], Mapping[str, str]] = lambda _: {}
    data: str = ""


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


def whole_page(sheet: Sheet, language: Language) -> str:
    """The text of the whole file, shown in `language` and able to switch to the other one."""
    other = other_language(language)
    early = resource("theme.js")
    script = _script((*SCRIPTS, *sheet.scripts))
    shown = _body(sheet, language, other)
    hidden = _body(sheet, other, language) if other is not None else None
    spoken = [language] if other is None else [language, other]
    words = {each["language"]: _words(sheet, each) for each in spoken}
    return (
        templates()
        .get_template("frame.html.j2")
        .render(
            t=language,
            shown=shown,
            hidden=hidden,
            style=Markup("\n".join(resource(name) for name in (*STYLES, *sheet.styles))),  # noqa: S704 - our own files
            early=Markup(early),  # noqa: S704 - our own file
            script=Markup(script),  # noqa: S704 - our own files
            hashes=[_digest(early), _digest(script)],
            words=Markup(script_safe(words)),  # noqa: S704 - escaped for a script element
            data=Markup(sheet.data),  # noqa: S704 - as above
        )
    )


def other_language(language: Language) -> Language | None:
    """The language that a page can be switched to, None where there is only one."""
    return next((LANGUAGES[code] for code in LANGUAGES if code != language.code), None)


def _body(sheet: Sheet, language: Language, other: Language | None) -> dict[str, Any]:
    """The body of a page in one language, its title and the code of its language."""
    context = dict(sheet.context(language))
    context.update(t=language, signs=SIGNS, count=wording.count, switch=other)
    text = templates().get_template(sheet.template).render(context)
    return {"title": context["title"], "language": language["language"], "body": Markup(text)}  # noqa: S704 - rendered


def _words(sheet: Sheet, language: Language) -> dict[str, str]:
    """What the scripts of a page say in one language."""
    return {**{key: language[key] for key in (*WORDS, *sheet.words)}, **sheet.more_words(language)}


def _script(names: tuple[str, ...]) -> str:
    """Several files as one function: their names are theirs."""
    return "\n".join(
        ['"use strict";', "(function () {", *(resource(name).rstrip() for name in names), "start();", "}());"]
    )


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def script_safe(value: Any) -> str:
    """JSON of a value that cannot end the script element it stands in."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    for letter in "&<>\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def marked(sentence: str) -> Markup:
    """The sentence escaped, with what stands between backticks as code."""
    escaped = str(escape(sentence))
    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", escaped))  # noqa: S704 - escaped one line above


def resource(name: str) -> str:
    """The text of a file beside the templates."""
    return (resources.files("align.reports") / "templates" / name).read_text(encoding="utf-8")
