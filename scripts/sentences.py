"""Lists the sentences that the program says and the Chinese catalogues lack, and entries that nothing says."""

from __future__ import annotations

import ast
import errno
import os
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from string import Formatter
from typing import TypeGuard

from align.diagnosis.pair.data.given import ORDER_SETTINGS
from align.records import Phase
from align.relations import RelationKind
from align.reports.cards import WHOLES
from align.reports.chinese import CATALOGUES

ROOT = Path(__file__).resolve().parents[1]
SPEAKING = ("checkpoints", "diagnosis", "inspection", "relations")
"""The packages whose plain strings are sentences, too; elsewhere only `say` makes any, and counts of `plural`."""
PLAIN = frozenset(
    {
        "comparison",
        "loading",
        "measured_floor",
        "optimizer_explanation",
        "optimizer_replay",
        "replay_summary",
        "wording",
    }
)
"""Modules of `align` itself whose plain strings are."""
NO_SENTENCES = frozenset({" x ", "all zeros", "swapped axes", "checkpoint(..., preserve_rng_state=True)"})
"""Strings of several words that are code, or words of JSON."""
MAKES_SENTENCES = re.compile(r"align\.sentences import|^def say\(", re.MULTILINE)
SIDES = ("reference", "candidate")
SEVERAL_WORDS = re.compile(r"[A-Za-z]{2,}[^A-Za-z0-9_]* [a-z]|^[^A-Za-z]* [a-z]+")
OTHERS = frozenset(
    f"{begin}{word}"
    for begin in ("", "{} ")
    for word in (*WHOLES, *RelationKind, "stacked", "grouped", "merged", *(f"only in the {side}" for side in SIDES))
) | frozenset(name.replace("_", " ") for name in ORDER_SETTINGS)
"""Templates that are put together of words."""
SYSTEM = frozenset(
    os.strerror(number)
    for number in (
        errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENOSPC, errno.EROFS,
        errno.ENAMETOOLONG, errno.EIO, errno.ELOOP, errno.ENODEV,
    )
)  # fmt: skip
"""What the operating system says most often of a file that it does not read or write."""


def said() -> dict[str, str]:
    """Every template and plain sentence of the source, and where it stands."""
    return {text: f"{path.relative_to(ROOT)}:{line}" for path in sources() for line, text in sentences(path)}


@cache
def sources() -> tuple[Path, ...]:
    """The files that make sentences."""
    return tuple(
        path
        for folder in (ROOT / "align", ROOT / "reports", ROOT / "hooks")
        for path in sorted(folder.rglob("*.py"))
        if "chinese" not in path.parts
        if _speaks(path) or MAKES_SENTENCES.search(path.read_text(encoding="utf-8"))
    )


def _speaks(path: Path) -> bool:
    return bool({*SPEAKING} & {*path.relative_to(ROOT).parts}) or path.stem in PLAIN


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All that a file is made of, the outer before the inner."""
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@cache
def sentences(path: Path) -> tuple[tuple[int, str], ...]:
    """The lines and texts of a file: templates of `say`, nouns that are counted, plain sentences where such are."""
    silent = set(_silent(nodes(path)))
    found: dict[tuple[int, str], None] = {}
    for node in nodes(path):
        if isinstance(node, ast.Call) and _name(node) == "plural":
            found.update(dict.fromkeys((node.lineno, text) for text in _counted(node)))
            silent.update(node.args)
        elif isinstance(node, ast.Call) and _name(node) == "say":
            silent.update(node.args[:1])
            found.update(dict.fromkeys((node.lineno, text) for text in _templates(node)))
    for node in nodes(path) if _speaks(path) else ():
        if node not in silent and _is_sentence(node):
            found[node.lineno, str(node.value)] = None
    return tuple(found)


def _is_sentence(node: ast.AST) -> TypeGuard[ast.Constant]:
    text = getattr(node, "value", None) if isinstance(node, ast.Constant) else None
    return isinstance(text, str) and text not in NO_SENTENCES and SEVERAL_WORDS.search(text) is not None


def _templates(call: ast.Call) -> Iterator[str]:
    """What `say` is given, where it has words."""
    for first in call.args[:1]:
        if isinstance(first, ast.Constant) and re.search(r"[A-Za-z]", str(first.value)):
            yield str(first.value)


def _name(call: ast.Call) -> str:
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def _counted(call: ast.Call) -> Iterator[str]:
    """`{} tensor` and `{} tensors` of `plural(number, "tensor")`."""
    nouns = [node.value for node in call.args if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    if nouns:
        yield f"{{}} {nouns[0]}"
        yield f"{{}} {nouns[1] if len(nouns) > 1 else nouns[0] + 's'}"


def _silent(everything: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """What is no sentence where `say` does not make one: docstrings, the text of errors, parts of names, keys."""
    for node in everything:
        if isinstance(node, (ast.Raise, ast.JoinedStr, ast.Subscript)) or _is_error(node):
            yield from ast.walk(node)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value
        if isinstance(node, ast.Assign) and {getattr(target, "id", "") for target in node.targets} & {"message", "msg"}:
            yield from ast.walk(node)
        if isinstance(node, ast.Dict):
            yield from filter(None, node.keys)


def _is_error(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _name(node).endswith("Error")


def catalogue() -> dict[str, str]:
    """All entries, and the name of the catalogue that each is in."""
    return {template: name for name, entries in CATALOGUES.items() for template in entries}


def missing() -> dict[str, str]:
    """The sentences without an entry, and where they stand."""
    known = {template.strip() for template in catalogue()}
    return {text: place for text, place in said().items() if text.strip() not in known}


def unused() -> dict[str, str]:
    """The entries that nothing says, and their catalogues."""
    words = {
        node.value
        for path in sources()
        for node in nodes(path)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    policies = "".join(path.read_text(encoding="utf-8") for path in ROOT.glob("align/acceptance/policies/*.toml"))
    system = {*SYSTEM, *(each.lower() for each in SYSTEM), *(each[:1].lower() + each[1:] for each in SYSTEM)}
    known = {*words, *said(), *OTHERS, *system, *map(str, Phase)}
    return {
        template: name for template, name in catalogue().items() if template not in known and template not in policies
    }


def places(template: str) -> list[str]:
    """The places of a template by number, each once, in order."""
    fields = [field for _, field, _, _ in Formatter().parse(template) if field is not None]
    return sorted(field or str(number) for number, field in enumerate(fields))


if __name__ == "__main__":
    lacking, idle = missing(), unused()
    for text, place in lacking.items():
        sys.stdout.write(f"not in Chinese: {place}: {text!r}\n")
    for template, name in idle.items():
        sys.stdout.write(f"said by nothing: {name}: {template!r}\n")
    sys.exit(bool(lacking or idle))
