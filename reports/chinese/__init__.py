"""The sentences in Chinese: one catalogue for each part of the program that says them."""

from __future__ import annotations

from collections.abc import Mapping

from align.reports import phrases
from align.reports.chinese import (
    accept_oddities,
    acceptance,
    computing,
    curves,
    errors,
    inspecting,
    reading_errors,
    setup,
    tables,
    weights,
    words,
)
from align.reports.chinese.evidence import EVIDENCE, FACTS
from align.reports.chinese.labels import LABELS
from align.reports.language import Language

CATALOGUES: Mapping[str, Mapping[str, str]] = {
    "acceptance": acceptance.SENTENCES,
    "accept_oddities": accept_oddities.SENTENCES,
    "curves": curves.SENTENCES,
    "setup": setup.SENTENCES,
    "computing": computing.SENTENCES,
    "inspecting": inspecting.SENTENCES,
    "tables": tables.SENTENCES,
    "weights": weights.SENTENCES,
    "errors": errors.SENTENCES,
    "reading_errors": reading_errors.SENTENCES,
    "words": words.SENTENCES,
}


def _merged() -> dict[str, str]:
    """All catalogues as one; what stands inside a sentence is also known without the blanks around it."""
    merged = {template: said for entries in CATALOGUES.values() for template, said in entries.items()}
    return {template.strip(): said for template, said in merged.items()} | merged


LANGUAGE = Language("zh", phrases.CHINESE, _merged(), LABELS, EVIDENCE, FACTS)
