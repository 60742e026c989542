"""Rules for names, as `align checkpoint` tells them, in the form that `align diff` takes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

NUMBER = "N"
ARROW = " -> "


def map_lines(rules: Iterable[str]) -> tuple[str, ...]:
    """Lines of a file for `--map`, the longest pattern first; rules whose numbers do not agree are left out."""
    found = [line for rule in rules if (line := _line(rule)) is not None]
    return tuple(sorted(dict.fromkeys(found), key=lambda line: -line.index(ARROW)))


def rename_options(rules: Iterable[str]) -> tuple[str, ...]:
    """Options `--rename OLD=NEW`, of the rules that have no number in them."""
    parted = [rule.split(ARROW) for rule in rules]
    return tuple(
        f"--rename {shlex.quote(f'{names[0]}={names[1]}')}"
        for names in parted
        if len(names) == 2 and NUMBER not in {part for name in names for part in name.split(".")}  # noqa: PLR2004
    )


def _line(rule: str) -> str | None:
    r"""`a.N.b -> c.N` as `a\.(\d+)\.b -> c.\1`; None for what is no rule of two names with as many numbers."""
    before, arrow, after = rule.partition(ARROW)
    mine, other = before.split("."), after.split(".")
    if not arrow or ARROW in after or mine.count(NUMBER) != other.count(NUMBER) or re.search(r"[\s#]", before + after):
        return None
    pattern = r"\.".join(r"(\d+)" if part == NUMBER else re.escape(part) for part in mine)
    numbers = iter(range(1, mine.count(NUMBER) + 1))
    escaped = (part.replace("\\", r"\\") for part in other)
    replacement = ".".join(rf"\{next(numbers)}" if part == NUMBER else part for part in escaped)
    return f"{pattern}{ARROW}{replacement}"
