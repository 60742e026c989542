"""The numbers of one line of a log, and what stands before each: `step 3 | loss: 2.31, lr=1e-4` gives three."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from align.curve_files.names import TRAINING, VALIDATION, words

_DIGITS = r"(?:\d{0,2}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d*(?:\.\d*)?)(?:[eE][-+]?\d+)?"
_FRACTION = r"\d+(?:[eE][-+]?\d+)?"
_NAN, _INF = r"[aA][nN](?!\w)", r"[nN][fF](?:[iI][nN][iI][tT][yY])?(?!\w)"
# One set of characters comes first, so that the search for the next number is a fast one; then what may follow it.
_NUMBER = re.compile(
    r"[-+.\dnNiI](?<![\w.].)"
    rf"(?:(?<=\d){_DIGITS}|(?<=[-+])(?:\d{_DIGITS}|\.{_FRACTION}|[nN]{_NAN}|[iI]{_INF})|(?<=\.){_FRACTION}"
    rf"|(?<=[nN]){_NAN}|(?<=[iI]){_INF})"
)
_UNIT = re.compile(r"\s?(ms|us|s|K|M|G|B)(?![\w/])")
_UNIT_BEGINS = frozenset(" musKMGB")
_LETTERS = frozenset("nNfFyY")
_TIMES = frozenset({"ms", "us", "s"})
_LARGE = {"K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9}
_BEFORE_NUMBER = " :=\t[('\"{~>"
_LABEL = re.compile(r"[^,;|{}\[\]()<>\"'\t:=]*(?:\([\w/ .]{0,40}\))?$")
_PARTS = re.compile(r"\s{2,}|\s-\s")
_AT_STEP = re.compile(r"(.*loss)\s+(?:at|after|for|in|of|on)$", re.IGNORECASE)
_LONGEST_LABEL = 120
_SAYS_WHAT = re.compile(rf"(?<![\w./\\-])({'|'.join(sorted(VALIDATION | TRAINING))})(?![\w./\\-])", re.IGNORECASE)
_MAY_BE_NAN = frozenset({"loss", "norm", "scale", "lr", "rate", "nll", "ppl"})
_OTHER_COUNTS = frozenset(
    {"number", "num", "of", "total", "max", "warmup", "per", "skipped", "nan", "remaining", "log", "save", "every"}
)
_STEPS = frozenset({"step", "steps", "iteration", "iterations", "iter", "iters", "it", "itr", "update"})


@dataclass(frozen=True, slots=True)
class Label:
    """What the text before a number says: its name, a step that ends the name, of what kind of data it is."""

    name: str
    joined: bool
    validation: bool | None
    loss_at: str = ""


def numbers_in(line: str) -> list[tuple[str, float, bool]]:
    """Name, number, and whether it is of validation, for each number of a line that has a name.

    A time that has its unit behind it gets it into its name, so that `time 12.5ms` is called `time (ms)`.
    """
    found: list[tuple[str, float, bool]] = []
    begin, validation, pending = 0, False, ""
    for match in _NUMBER.finditer(line):
        start, end = match.span()
        label = _label(line[max(begin, start - _LONGEST_LABEL) : start])
        text = match.group()
        if text[-1] in _LETTERS and not _is_value(label):
            continue
        if label.validation is not None:
            validation = label.validation
        name, pending = label.name or pending, label.loss_at
        number = float(text.replace(",", "") if "," in text else text)
        begin = end
        if line[end : end + 1] in _UNIT_BEGINS and (unit := _UNIT.match(line, end)):
            begin = unit.end()
            number *= _LARGE.get(unit[1], 1.0)
            if unit[1] in _TIMES and name and name[-1] != ")":
                name = f"{name} ({unit[1]})"
        if name:
            found.append((name, number, validation))
    return found


def _is_value(label: Label) -> bool:
    """Whether `nan` behind this is a number and not a word: `number of nan iterations` has none."""
    found = words(label.name)
    return bool(label.name) and (label.joined or (bool(found) and found[-1] in _MAY_BE_NAN))


@lru_cache(maxsize=8192)
def _label(gap: str) -> Label:
    """What stands between two numbers, or before the first."""
    text = gap.rstrip(_BEFORE_NUMBER)
    joined = any(mark in gap[len(text) :] for mark in ":=['\"")
    found = _LABEL.search(text)
    name = _PARTS.split(found.group().strip(" -*#\\/") if found else "")[-1]
    says = _SAYS_WHAT.findall(gap)
    validation = None if not says else says[-1].lower() in VALIDATION
    first, _, last = name.rpartition(" ")
    if last.lower() in _STEPS and _OTHER_COUNTS.isdisjoint(words(first)):
        at = _AT_STEP.match(first)
        return Label(last, joined, validation, at[1].strip() if at else "")
    return Label(name, joined, validation)
