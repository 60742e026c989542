"""Reading policies: TOML, each key checked, a sentence for whatever is wrong with one."""

from __future__ import annotations

import difflib
import hashlib
import importlib
import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from pathlib import Path
from types import ModuleType
from typing import Any

from align.acceptance.policy import Need, Policy, Setting
from align.acceptance.policy_keys import FLOOR_TIMES, FORMS, SMALLEST, STEPS, Number
from align.errors import PolicyError
from align.sentences import say

BUILT_IN = Path(__file__).parent / "policies"
SUFFIX = ".toml"
DEFAULT = "default"
DEEPEST = 8
"""So many policies may extend one another."""

NEEDS = {True: Need.ALWAYS, False: Need.NEVER, "when measured": Need.WHEN_MEASURED}
TOP = ("name", "title", "extends", "minimum_steps", "minimum_source", "loss", "floor", "criteria")
LOSS = ("smallest",)
FLOOR = ("times", "source")
COMMON = ("required", "limit", "source", "use")
KINDS = {list: say("a list"), datetime: say("a datetime"), date: say("a date"), time: say("a time")}
"""What TOML has beside texts, numbers and tables."""

Table = Mapping[str, Any]


def built_in_policies() -> list[str]:
    """The names of the policies that come with align."""
    return sorted(file.stem for file in BUILT_IN.glob(f"*{SUFFIX}"))


def policy_text(name: str) -> str:
    """A policy as it stands in its file; `name` is that of a built-in one or a path. Raises PolicyError."""
    return _decoded(*_source(name))


def read_policy(name: str = DEFAULT) -> Policy:
    """Read a built-in policy by its name, or a file; raises PolicyError for whatever is wrong with it."""
    place, content = _source(name)
    text = _decoded(place, content)
    built_in = place.parent == BUILT_IN
    table = _extended(place, _parsed(place, text), depth=0)
    policy = _policy(Checked(str(place)), table, place.stem)
    digest = hashlib.sha256(content).hexdigest()
    return replace(policy, path="" if built_in else str(place), sha256=digest, text=text)


def _source(name: str) -> tuple[Path, bytes]:
    own = BUILT_IN / f"{name}{SUFFIX}"
    place = own if name in built_in_policies() else Path(name)
    try:
        return place, place.read_bytes()
    except FileNotFoundError as error:
        known = built_in_policies()
        raise PolicyError(
            say(
                "{} `align accept --show-policy {}` prints one to start from.",
                _guessed(
                    say(
                        "Cannot find the policy '{}': there is no such file, and the built-in policies are {}",
                        name,
                        ", ".join(known),
                    ),
                    name,
                    known,
                ),
                DEFAULT,
            )
        ) from error
    except OSError as error:
        raise PolicyError(
            say(
                "Cannot read the policy '{}': {}. Name a TOML file, or one of {}.",
                name,
                error.strerror or error,
                ", ".join(built_in_policies()),
            )
        ) from error


def _decoded(place: Path, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PolicyError(
            say("Cannot read the policy '{}': byte {} is not UTF-8. Save the file as UTF-8 text.", place, error.start)
        ) from error


def _toml() -> ModuleType:
    """The reader of TOML: Python's own from 3.11 on, before that the package of which it was made."""
    return importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")


def _parsed(place: Path, text: str) -> Table:
    try:
        table: Table = _toml().loads(text)
    except ValueError as error:
        raise PolicyError(
            say(
                "Cannot read the policy '{}': it is not valid TOML: {}. `align accept --show-policy {}` prints "
                "one to start from.",
                place,
                error,
                DEFAULT,
            )
        ) from error
    return table


def _extended(place: Path, table: Table, depth: int) -> Table:
    """The table with what it extends below it; the criteria of the base come first, in its order."""
    checked = Checked(str(place))
    checked.keys("", table, TOP)
    if "extends" not in table:
        return table
    name = checked.text("", table, "extends")
    if depth >= DEEPEST:
        raise PolicyError(
            say(
                "Cannot read the policy '{}': more than {} policies extend one another, or one extends itself "
                "through '{}'. Let it extend a built-in policy.",
                place,
                DEEPEST,
                name,
            )
        )
    beside = place.parent / name
    base_place, content = _source(name if name in built_in_policies() else str(beside))
    base = _extended(base_place, _parsed(base_place, _decoded(base_place, content)), depth + 1)
    return _merged(checked, base, table)


def _merged(checked: Checked, base: Table, table: Table) -> dict[str, Any]:
    merged = {**{key: value for key, value in base.items() if key != "name"}, **table}
    for part in ("loss", "floor"):
        merged[part] = {**base.get(part, {}), **checked.table(part, table)}
    criteria = dict(base.get("criteria", {}))
    for code, said in checked.table("criteria", table).items():
        where = f"criteria.{code}"
        own = checked.is_table(where, said)
        if "limit" in own and "source" not in own:
            checked.lacks_source(where)
        criteria[code] = {**criteria.get(code, {}), **own}
    if "minimum_steps" in table and "minimum_source" not in table:
        checked.lacks_source("", "minimum_source")
    merged["criteria"] = criteria
    return merged


@dataclass(frozen=True, slots=True)
class Checked:
    """Takes values out of the tables of one file; all its errors name that file and the place in it."""

    path: str

    def wrong(self, where: str, what: str) -> PolicyError:
        """The error for something in a table of the file."""
        inside = say("in [{}], ", where) if where else ""
        return PolicyError(say("Cannot read the policy '{}': {}{}", self.path, inside, what))

    def lacks_source(self, where: str, key: str = "source") -> None:
        """Raise: a limit without a source is nobody's."""
        limit = "minimum_steps" if key == "minimum_source" else "limit"
        raise self.wrong(
            where,
            say(
                "'{}' has no '{}'. Say where it is from, such as {} = \"project limit, agreed 2026-01\".",
                limit,
                key,
                key,
            ),
        )

    def keys(self, where: str, table: Table, known: Iterable[str]) -> None:
        """Raise where the table has a key that is not known."""
        listed = list(known)
        for key in table:
            if key not in listed:
                unknown = _guessed(say("'{}' is not known", key), key, listed)
                raise self.wrong(where, say("{} Known are {}.", unknown, ", ".join(listed)))

    def is_table(self, where: str, value: Any) -> Table:
        """The value, which must be a table."""
        if not isinstance(value, Mapping):
            raise self.wrong(
                "", say("'{}' is {}, not a table. Write [{}] above its keys.", where, _written(value), where)
            )
        return value

    def table(self, where: str, inside: Table) -> Table:
        """A table of the file, empty where it is not there."""
        return self.is_table(where, inside.get(where, {}))

    def text(self, where: str, table: Table, key: str, default: str = "") -> str:
        """A text that says something."""
        value = table.get(key, default)
        if not isinstance(value, str):
            raise self.wrong(where, say("'{}' is {}, not a text. Write it in quotes.", key, _written(value)))
        return value.strip()

    def number(self, where: str, table: Table, key: str, form: Number) -> float | None:
        """A number in its range, or its default."""
        if key not in table:
            return form.default
        value = table[key]
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.wrong(where, say("'{}' is {}, not a number. Write it without quotes.", key, _written(value)))
        if form.whole and value != math.floor(value if math.isfinite(value) else 0.5):
            raise self.wrong(where, say("'{}' is {}, not a whole number.", key, value))
        if not form.low <= value <= form.high:
            raise self.wrong(
                where, say("'{}' is {}, which is outside of what is allowed: {}.", key, value, _range(form))
            )
        return float(value)


def _policy(checked: Checked, table: Table, stem: str) -> Policy:
    criteria = checked.table("criteria", table)
    loss, floor = checked.table("loss", table), checked.table("floor", table)
    checked.keys("loss", loss, LOSS)
    checked.keys("floor", floor, FLOOR)
    read = (_setting(checked, code, said) for code, said in criteria.items())
    settings = tuple(setting for setting in read if setting is not None)
    if not settings:
        raise checked.wrong(
            "", say("it has no criteria. Write 'extends = \"default\"', or tables such as [criteria.bias].")
        )
    minimum = checked.number("", table, "minimum_steps", STEPS)
    source = checked.text("", table, "minimum_source")
    if minimum is None:
        raise checked.wrong(
            "", say("'minimum_steps' is missing. Write how many steps an acceptance needs, such as 1000.")
        )
    if not source:
        checked.lacks_source("", "minimum_source")
    return Policy(
        name=checked.text("", table, "name") or stem,
        title=checked.text("", table, "title"),
        settings=settings,
        minimum_steps=int(minimum),
        minimum_source=source,
        smallest=checked.number("loss", loss, "smallest", SMALLEST) or 0.0,
        floor_times=checked.number("floor", floor, "times", FLOOR_TIMES) or 1.0,
        floor_source=checked.text("floor", floor, "source"),
    )


def _setting(checked: Checked, code: str, said: Any) -> Setting | None:
    """One criterion, None where the policy leaves it out by `use = false`."""
    where = f"criteria.{code}"
    if code not in FORMS:
        unknown = _guessed(say("'{}' is not a criterion", where), code, FORMS)
        raise checked.wrong("", say("{} Known are {}.", unknown, ", ".join(FORMS)))
    form = FORMS[code]
    table = checked.is_table(where, said)
    checked.keys(where, table, (*COMMON, *form.numbers))
    if not _use(checked, where, table):
        return None
    limit = _limit(checked, where, table, code)
    source = checked.text(where, table, "source")
    if limit is not None and not source:
        checked.lacks_source(where)
    numbers = {key: checked.number(where, table, key, number) for key, number in form.numbers.items()}
    given = {key: number for key, number in numbers.items() if number is not None}
    return Setting(code, _need(checked, where, table, judged=limit is not None), limit, source, given)


def _use(checked: Checked, where: str, table: Table) -> bool:
    use = table.get("use", True)
    if not isinstance(use, bool):
        raise checked.wrong(where, say("'use' is {}. Write true or false.", _written(use)))
    return use


def _limit(checked: Checked, where: str, table: Table, code: str) -> float | None:
    form = FORMS[code]
    if form.limit is None:
        if "limit" in table:
            raise checked.wrong(where, say("'limit' is not taken: the limits are those of the file of operators."))
        return None
    limit = checked.number(where, table, "limit", form.limit)
    if limit is None and not form.may_lack_limit:
        raise checked.wrong(where, say("'limit' is missing. Write a number, allowed: {}.", _range(form.limit)))
    return limit


def _need(checked: Checked, where: str, table: Table, *, judged: bool) -> Need:
    said = table.get("required", "when measured")
    if not isinstance(said, (bool, str)) or said not in NEEDS:
        raise checked.wrong(where, say("'required' is {}. Write true, false or \"when measured\".", _written(said)))
    need = NEEDS[said]
    if need is Need.ALWAYS and not judged and FORMS[where.partition(".")[2]].may_lack_limit:
        raise checked.wrong(
            where, say("'required' is true, but there is no 'limit' to be met. Write one, with its source.")
        )
    return need


def _guessed(sentence: str, word: str, known: Iterable[str]) -> str:
    """The sentence on a word that is not known, with the one that may be meant."""
    near = difflib.get_close_matches(word, list(known), 1, 0.5)
    return say("{}; did you mean '{}'?", sentence, near[0]) if near else say("{}.", sentence)


def _range(form: Number) -> str:
    top = say("any greater number") if math.isinf(form.high) else f"{form.high:.12g}"
    return say("{} to {}", f"{form.low:.12g}", top)


def _written(value: Any) -> str:
    """A value as it may stand in a sentence."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return say('the text "{}"', value[:60])
    if isinstance(value, (int, float)):
        return say("the number {}", value)
    return say("a table") if isinstance(value, Mapping) else KINDS.get(type(value), type(value).__name__)
