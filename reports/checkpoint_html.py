"""The page of two checkpoints: one file that needs neither network nor script."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from align import __version__, wording
from align.reports.checkpoint_entries import Shown, kind_text, relations_of, said_of, shown_entries
from align.reports.checkpoint_view import (
    CATEGORY_ROLES,
    LARGEST_APART,
    SMALLEST_APART,
    STATIC_ROWS,
    make_checkpoint_page,
    relative_text,
    slug,
    way_of,
)
from align.reports.language import ENGLISH, LANGUAGES, Language
from align.reports.templating import SIGNS, Sheet, script_safe, whole_page
from align.reports.visible import shortened, visible

if TYPE_CHECKING:
    from align.checkpoint_records import CheckpointResult

LONGEST_NAME = 400
"""Characters of a name that the rows of the script hold; the JSON has all."""
PREFIXES = ("entry_",)


def checkpoint_page(result: CheckpointResult, phrases: Language = ENGLISH) -> str:
    """The whole page as text."""
    entries = shown_entries(result)
    sheet = Sheet(
        template="checkpoint.html.j2",
        context=partial(_context, result, entries),
        styles=("tables.css", "checkpoint.css"),
        scripts=("checkpoint.js",) if entries else (),
        words=(*(key for key in ENGLISH if key.startswith(PREFIXES)), "entries_shown", "reference", "candidate"),
        data=script_safe(entries_data(entries)) if entries else "",
    )
    return whole_page(sheet, phrases)


def _context(result: CheckpointResult, entries: Sequence[Shown], phrases: Language) -> dict[str, Any]:
    """What the template fills in, in one language."""
    page = make_checkpoint_page(result, entries, phrases)
    return {
        "title": page.title,
        "page": page,
        "static_rows": STATIC_ROWS,
        "low": wording.relative(SMALLEST_APART),
        "high": wording.relative(LARGEST_APART),
        "version": __version__,
    }


def entries_data(entries: Sequence[Shown]) -> dict[str, Any]:
    """All rows for the script, as columns: words once, rows as their places; of a name that is the same 0."""
    kinds, places = _numbered(entries, _kinds)
    relations = list(relations_of(entries))
    roles = {entry.relation: CATEGORY_ROLES[entry.category] for entry in entries}
    return {
        "relations": [slug(each) for each in relations],
        "words": {
            language["language"]: [visible(language.word(each)) for each in relations]
            for language in LANGUAGES.values()
        },
        "roles": [roles[each] for each in relations],
        "signs": SIGNS,
        "reference": [shortened(entry.reference, LONGEST_NAME) for entry in entries],
        "candidate": [
            0 if entry.candidate == entry.reference else shortened(entry.candidate, LONGEST_NAME) for entry in entries
        ],
        "relation": [relations.index(entry.relation) for entry in entries],
        "relative": [_number(entry) for entry in entries],
        "written": [relative_text(entry.row.relative_l2 if entry.row else None) for entry in entries],
        "kind": places,
        "kinds": [kind.split("\n") for kind in kinds],
        "said": _in_all_languages(entries, said_of),
        "way": _in_all_languages(entries, way_of),
    }


def _in_all_languages(entries: Sequence[Shown], text: Callable[[Shown, Language], str]) -> dict[str, Any]:
    """By the code that pages have for a language: each text once, and the place of each entry's."""
    return {language["language"]: _encoded(entries, text, language) for language in LANGUAGES.values()}


def _encoded(entries: Sequence[Shown], text: Callable[[Shown, Language], str], language: Language) -> dict[str, Any]:
    words, places = _numbered(entries, lambda entry: text(entry, language))
    return {"words": words, "places": places}


def _kinds(entry: Shown) -> str:
    row = entry.row
    if row is None:
        return "\n"
    return "\n".join(
        (kind_text(row.reference_dtype, row.reference_shape), kind_text(row.candidate_dtype, row.candidate_shape))
    )


def _number(entry: Shown) -> float | None:
    """What a row is sorted and saved by; infinite and unknown ones have none, which JSON could not hold."""
    value = entry.row.relative_l2 if entry.row is not None else None
    return value if value is not None and math.isfinite(value) else None


def _numbered(entries: Sequence[Shown], text: Callable[[Shown], str]) -> tuple[list[str], list[int]]:
    """Each text once, and the place of each entry's."""
    places: dict[str, int] = {}
    codes = [places.setdefault(text(entry), len(places)) for entry in entries]
    return list(places), codes
