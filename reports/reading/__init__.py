"""Saved results back into results: what a document holds is enough for the text, the page, Markdown and JSON again."""

from __future__ import annotations

from typing import Any, TypeVar

from align.errors import ReportError
from align.reports.reading.results import Result, read_document
from align.reports.reading.sentences import with_sentences
from align.reports.reading.source import AGAIN, STDIN, TOO_DEEP, parse, read_source
from align.reports.reading.values import Misread
from align.sentences import say

R = TypeVar("R", bound=Result)

__all__ = ["Result", "as_saved", "read_file", "read_result"]


def read_file(path: str) -> Result:
    """The result that a file holds, `-` for standard input; raises ReportError where it holds none."""
    return read_result(read_source(path), say("standard input") if path == STDIN else path)


def read_result(data: bytes, name: str) -> Result:
    """The result that JSON holds; raises ReportError, which calls it `name`, where it is none."""
    document = parse(data, name)
    try:
        return read_document(with_sentences(document))
    except Misread as error:
        raise ReportError(
            say(
                "Cannot read '{}': {} {}. It was changed by hand or by another program: write it again with --json.",
                name,
                repr(error.place),
                error.wrong,
            )
        ) from error
    except RecursionError as error:
        raise ReportError(say("Cannot read '{}': {}. {}", name, TOO_DEEP, AGAIN)) from error


def as_saved(result: R, document: dict[str, Any]) -> R:
    """The result as its document holds it, from which pages are made: one from a saved result is then the same."""
    saved = read_document(with_sentences(document))
    if not isinstance(saved, type(result)):
        raise TypeError(type(saved).__name__)
    return saved
