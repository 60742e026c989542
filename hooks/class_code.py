"""Whose code a module's forward is: a digest of the files that hold it, and whether it can draw random numbers."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from torch import nn

LIBRARY = "torch"
"""Stands for the digest of torch's own modules: whatever their version, they compute what their settings say."""

LIBRARY_PACKAGE = "torch.nn"

RANDOM_NAMES = re.compile(
    r"rand|drop|bernoulli|multinomial|normal_|uniform_|exponential|poisson|gumbel|noise|sampl|rrelu"
)
"""What is in the names of functions and arguments that draw random numbers; more names only make a rule silent."""

DEEPEST = 8


def code_facts(kind: type[nn.Module]) -> dict[str, Any]:
    """`code`, a digest that is equal for equal code, and `random`, whether its forward may draw random numbers.

    The digest is of the whole files that define the class, its bases up to torch's own and its forward, so helpers and
    constants beside them count; it is empty where a file cannot be read, as for classes made at run time.
    """
    forward = getattr(kind, "forward", None)
    homes = [base.__module__ for base in kind.__mro__ if issubclass(base, nn.Module)]
    own = [home for home in homes if not _is_library(home)]
    if isinstance(forward, FunctionType) and not _is_library(forward.__module__ or ""):
        own.append(forward.__module__ or "")
    names = set(_names(kind, forward))
    random = not names or any(RANDOM_NAMES.search(name) for name in names)
    return {"code": _digest(tuple(dict.fromkeys(own))) if own else LIBRARY, "random": random}


def merged(known: dict[str, Any] | None, found: dict[str, Any]) -> dict[str, Any]:
    """The facts of a name that several classes have: where they differ in code, whose code it is is not known."""
    if known is None:
        return found
    return {
        "code": known["code"] if known["code"] == found["code"] else "",
        "random": known["random"] or found["random"],
    }


def _is_library(home: str) -> bool:
    return home == LIBRARY_PACKAGE or home.startswith(f"{LIBRARY_PACKAGE}.")


@lru_cache(maxsize=256)
def _digest(homes: tuple[str, ...]) -> str:
    digest = hashlib.sha256()
    for home in homes:
        path = getattr(sys.modules.get(home), "__file__", None)
        try:
            digest.update(Path(path or "").read_bytes())
        except OSError:
            return ""
    return digest.hexdigest()[:16]


def _names(kind: type[nn.Module], function: Any) -> Iterator[str]:
    """What the code of a function refers to, and that of the methods and functions of its own file that it calls."""
    waiting, done = [(function, 0)], set()
    while waiting:
        each, depth = waiting.pop()
        if not isinstance(each, FunctionType) or each.__code__ in done:
            continue
        done.add(each.__code__)
        found = list(_words(each.__code__))
        yield from found
        if depth < DEEPEST:
            for name in found:
                called = (getattr(kind, name, None), each.__globals__.get(name))
                waiting += [(one, depth + 1) for one in called if getattr(one, "__module__", None) == each.__module__]


def _words(code: CodeType) -> Iterator[str]:
    """Names of globals and attributes, and of keyword arguments; of functions inside, too."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _words(constant)
        elif isinstance(constant, tuple):
            yield from (item for item in constant if isinstance(item, str))
