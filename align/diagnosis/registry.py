"""The rules of diagnosis: plain functions with a stable code, ours and those of installed packages alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import TypeAlias

from align.comparison import Walk
from align.errors import UsageError
from align.records import Finding

RuleFunction: TypeAlias = Callable[[Walk], Iterator[Finding]]

ENTRY_POINT_GROUP = "align.rules"
"""A package names its modules of rules under this group; importing them registers the rules."""

OWN_MODULES = (
    "seed_mismatch",
    "data_differs",
    "initial_weights",
    "train_eval_mode",
    "module_config",
    "same_start",
    "dropout_mask",
    "nan_origin",
    "overflow",
    "origin_module",
    "origin_functional",
    "independent_origin",
    "gradient_missing",
    "hyperparameters",
    "learning_rate",
    "optimizer_formula",
    "dtype_differs",
    "shape_differs",
    "precision_mode",
    "operands_cut_off",
    "structure_differs",
    "within_noise",
)

LAST = 1000


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: what it is called, where its findings stand among others of their severity, and the function."""

    code: str
    label: str
    rank: int
    find: RuleFunction

    @property
    def home(self) -> str:
        """Where the function is defined."""
        return f"{self.find.__module__}.{self.find.__qualname__}"


_RULES: dict[str, Rule] = {}


def rule(code: str, label: str, rank: int = LAST) -> Callable[[RuleFunction], RuleFunction]:
    """Register a function from a walk to findings under a code; of two findings the lower rank stands first."""

    def register(find: RuleFunction) -> RuleFunction:
        new = Rule(code, label, rank, find)
        known = _RULES.get(code)
        if known is not None and known.home != new.home:
            raise UsageError(
                f"Cannot register rule {code} of {new.home}: {known.home} has that code. Give one of them another."
            )
        _RULES[code] = new
        return find

    return register


def all_rules() -> tuple[Rule, ...]:
    """Every rule in order of rank; loads them on the first call."""
    _load()
    return tuple(sorted(_RULES.values(), key=lambda known: (known.rank, known.code)))


@lru_cache(maxsize=1)
def _load() -> None:
    for module in OWN_MODULES:
        import_module(f"align.diagnosis.{module}")
    for entry_point in entry_points(group=ENTRY_POINT_GROUP):
        entry_point.load()
