"""The rules that a user gives for names: `--rename OLD=NEW`, and the regular expressions of a `--map` file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from align.errors import UsageError
from align.sentences import say

ARROW = " -> "
EXAMPLE = r"'model\.h\.(\d+) -> layers.\1'"


@dataclass(frozen=True, slots=True)
class MapRule:
    """One line of a `--map` file.

    The pattern matches the begin of a name, up to a dot or its end; what follows stays. An empty replacement takes
    that begin away.
    """

    pattern: re.Pattern[str]
    replacement: str
    text: str
    place: str

    def applied(self, name: str) -> str | None:
        """The name that the rule makes of it, None where the pattern does not match or nothing would be left."""
        found = self.pattern.match(name)
        if found is None:
            return None
        new = found.expand(self.replacement) + name[found.end() :]
        return new.removeprefix(".") or None


def read_rules(path: str | os.PathLike[str]) -> tuple[MapRule, ...]:
    """The rules of a file, one per line, `PATTERN -> REPLACEMENT`; a # begins a comment, at the begin or after a blank.

    Raises UsageError that names the file, the line and what is wrong with it.
    """
    shown = os.fspath(path)
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        msg = say("Cannot read the rules of '{}': there is no such file. Check the path given to --map.", shown)
        raise UsageError(msg) from error
    except UnicodeDecodeError as error:
        msg = say(
            "Cannot read the rules of '{}': it is no text in UTF-8. Write one rule a line, such as {}.", shown, EXAMPLE
        )
        raise UsageError(msg) from error
    except OSError as error:
        reason = os.strerror(error.errno or 0).lower()
        msg = say("Cannot read the rules of '{}': {}. Check the path given to --map.", shown, reason)
        raise UsageError(msg) from error
    lines = [(number, re.sub(r"(^|\s)#.*", "", line).strip()) for number, line in enumerate(text.splitlines(), 1)]
    rules = tuple(_rule(line, shown, number) for number, line in lines if line)
    if not rules:
        raise UsageError(
            say("Cannot use the rules of '{}': it holds none. Write one a line, such as {}.", shown, EXAMPLE)
        )
    return rules


def _rule(line: str, path: str, number: int) -> MapRule:
    place = say("line {} of '{}'", number, path)
    pattern, arrow, replacement = f"{line} ".partition(ARROW)
    pattern, replacement = pattern.strip(), replacement.strip()
    if not arrow or not pattern:
        raise UsageError(say("Cannot read {}, '{}': write PATTERN -> REPLACEMENT, such as {}.", place, line, EXAMPLE))
    try:
        compiled = re.compile(rf"(?:{pattern})(?=\.|$)")
    except re.error as error:
        msg = say(
            "Cannot read {}, '{}': '{}' is no regular expression ({}). Mend the pattern.",
            place,
            line,
            pattern,
            error.msg,
        )
        raise UsageError(msg) from error
    _check_replacement(compiled, replacement, place, line)
    return MapRule(compiled, replacement, line, place)


def _check_replacement(pattern: re.Pattern[str], replacement: str, place: str, line: str) -> None:
    """Refuse a replacement that names a group that the pattern does not have."""
    try:
        # The template is parsed whether the pattern matches or not.
        re.compile(f"(?:{pattern.pattern})|").sub(replacement, "")
    except (re.error, IndexError) as error:
        msg = say(
            "Cannot read {}, '{}': the replacement '{}' cannot be used ({}). Name groups that the pattern "
            "has, as \\1 or \\g<name>.",
            place,
            line,
            replacement,
            error,
        )
        raise UsageError(msg) from error


def renamed(name: str, renames: Sequence[tuple[str, str]]) -> str:
    """The name after the longest rename that is the whole name or a dotted prefix of it.

    An empty old name is a prefix for all names, under which the root is a module like others; an empty new name takes
    a prefix away.
    """
    rename = rename_of(name, renames)
    if rename is None:
        return name
    old, new = rename
    if not old:
        return new if is_root(name) else name if name.startswith("<") else f"{new}.{name}"
    if name == old:
        return new or name
    return new + name[len(old) :] if new else name[len(old) + 1 :]


def rename_of(name: str, renames: Sequence[tuple[str, str]]) -> tuple[str, str] | None:
    """The longest rename that is the whole name or a dotted prefix of it, None where none is."""
    found = [rename for rename in renames if not rename[0] or name == rename[0] or name.startswith(f"{rename[0]}.")]
    return max(found, key=lambda rename: len(rename[0]), default=None)


def mapped(name: str, rules: Iterable[MapRule]) -> tuple[str, MapRule] | None:
    """What the first rule that matches makes of a name, and that rule."""
    for rule in rules:
        new = rule.applied(name)
        if new is not None:
            return new, rule
    return None


def is_root(name: str) -> bool:
    """Whether it is the name of a root itself, its class in angle brackets."""
    return name.startswith("<") and name.endswith(">")
