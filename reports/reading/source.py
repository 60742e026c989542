"""The text of a saved result: where it comes from, and whether it is one."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from align import __version__
from align.errors import ReportError
from align.reports.json_report import FORMAT
from align.reports.writing import is_capture
from align.sentences import say

STDIN = "-"
FAMILY = "align/"
"""How the format of any version begins."""
AGAIN = say("Write it again with --json.")
TOO_DEEP = say("its lists are nested too deeply")


def read_source(path: str) -> bytes:
    """The bytes of a file, or of standard input for `-`; raises ReportError where they cannot be had."""
    if path == STDIN:
        return sys.stdin.buffer.read()
    file = Path(path)
    try:
        if is_capture(file):
            raise ReportError(
                say(
                    "Cannot read '{}': it is an HDF5 file, such as a capture, and no saved result. `align inspect "
                    "{}` looks at a capture; `align report` reads what --json wrote.",
                    path,
                    path,
                )
            )
        return file.read_bytes()
    except (OSError, ValueError) as error:
        raise ReportError(
            say("Cannot read '{}': {}. Name the file that --json wrote, or - for standard input.", path, _reason(error))
        ) from error


def parse(data: bytes, name: str) -> dict[str, Any]:
    """The document as JSON has it; raises ReportError for what is no result of this format."""
    if not data.strip():
        raise ReportError(say("Cannot read '{}': it is empty. {}", name, AGAIN))
    try:
        found = json.loads(data.decode("utf-8-sig"), parse_constant=_refuse)
    except UnicodeDecodeError as error:
        raise ReportError(
            say("Cannot read '{}': byte {} is not UTF-8, as JSON is. {}", name, error.start, AGAIN)
        ) from error
    except json.JSONDecodeError as error:
        raise ReportError(say("Cannot read '{}': {}. {}", name, _broken(error), AGAIN)) from error
    except RecursionError as error:
        raise ReportError(say("Cannot read '{}': {}. {}", name, TOO_DEEP, AGAIN)) from error
    except ValueError as error:
        # Python refuses to read whole numbers of thousands of digits.
        reason = str(error).partition(";")[0].partition(":")[0]
        raise ReportError(
            say("Cannot read '{}': it holds a number that cannot be read ({}). {}", name, reason, AGAIN)
        ) from error
    return _checked(found, name)


def _checked(found: Any, name: str) -> dict[str, Any]:
    """The document, where it says that it is one and has the version that is read here."""
    version = found.get("format") if isinstance(found, dict) else None
    if not isinstance(found, dict) or not isinstance(version, str) or not version.startswith(FAMILY):
        raise ReportError(
            say(
                'Cannot read \'{}\': it is JSON, but no result of align (its "format" is not "{}"). Name the file '
                "that --json wrote.",
                name,
                FORMAT,
            )
        )
    if version != FORMAT:
        raise ReportError(
            say(
                "Cannot read '{}': its format is {}, and align {} reads {}. Use the align that wrote it.",
                name,
                repr(version[:40]),
                __version__,
                repr(FORMAT),
            )
        )
    return found


def _broken(error: json.JSONDecodeError) -> str:
    """Where the text stops being JSON; one that is right up to its end is cut off."""
    if error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated string"):
        return say("it is cut off in line {}", error.doc.rstrip().count(chr(10)) + 1)
    wrong = error.msg[:1].lower() + error.msg[1:]
    return say("it is not JSON ({} in line {}, column {})", wrong, error.lineno, error.colno)


def _refuse(word: str) -> Any:
    raise ValueError(word)


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError):
        return say("there is no such file")
    if isinstance(error, IsADirectoryError):
        return say("it is a folder")
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
