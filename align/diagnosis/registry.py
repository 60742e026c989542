"""The rules of diagnosis: plain functions with a stable code, ours and those of installed packages alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from typing import Generic, TypeVar

from align.comparison import Walk
from align.errors import UsageError
from align.inspection import Inspection, Job
from align.records import Finding

Subject = TypeVar("Subject")
"""What a rule reads: the walk over two captures, the inspection of one run, those of all ranks of a job."""

OWN_MODULES = (
    "seed_mismatch",
    "rng_mismatch",
    "duplicate_samples",
    "missing_samples",
    "data_shifted",
    "data_order",
    "labels_differ",
    "data_differs",
    "checkpoint_keys",
    "checkpoint_not_loaded",
    "checkpoint_partial",
    "tied_weight_broken",
    "weight_permuted",
    "weight_transposed",
    "weight_cast",
    "weight_stale",
    "weight_scaled",
    "weight_corrupted",
    "buffer_differs",
    "initial_weights",
    "train_eval_mode",
    "module_config",
    "same_start",
    "dropout_mask",
    "nan_origin",
    "overflow",
    "overflow_saturated",
    "isolated_corruption",
    "operator_differs",
    "recompute_differs",
    "loss_normalization",
    "gradient_norm",
    "gradients_not_reduced",
    "gradient_doubled",
    "gradient_scaled",
    "backward_operator",
    "origin_module",
    "origin_functional",
    "independent_origin",
    "gradient_missing",
    "hyperparameters",
    "weight_decay_groups",
    "optimizer_state",
    "learning_rate",
    "optimizer_formula",
    "skipped_step_applied",
    "clip_before_unscale",
    "gradient_underflow",
    "denormal_flush",
    "loss_scale_collapse",
    "loss_scale_stuck",
    "loss_scale_unstable",
    "dtype_differs",
    "shape_differs",
    "precision_mode",
    "operands_cut_off",
    "structure_differs",
    "layout_differs",
    "nondeterministic",
    "cpu_fallback",
    "loss_curves",
    "loss_bias",
    "step_time",
    "within_noise",
)

RUN_MODULES: tuple[str, ...] = (
    "checkpoint_keys",
    "duplicate_samples",
    "data_order_repeated",
    "nan_origin",
    "overflow",
    "overflow_saturated",
    "little_headroom",
    "skipped_step_applied",
    "clip_before_unscale",
    "gradient_scaled",
    "gradient_underflow",
    "denormal_flush",
    "loss_scale_collapse",
    "loss_scale_stuck",
    "loss_scale_unstable",
    "recompute_differs",
    "optimizer_formula",
    "not_updated",
    "update_lost",
    "weight_decay_groups",
    "gradient_norm",
    "loss_stall",
    "loss_spike",
    "step_time_cliff",
)
"""Modules of `align.diagnosis.run`, which read one run."""

JOB_MODULES: tuple[str, ...] = (
    "environment_differs",
    "ranks_differ",
    "gradients_not_reduced",
    "rng_mismatch",
    "duplicate_samples",
    "missing_samples",
    "rng_duplicated",
    "gradient_norm",
)
"""Modules of `align.diagnosis.job`, which read all ranks of one job."""

LAST = 1000


@dataclass(frozen=True, slots=True)
class Rule(Generic[Subject]):
    """One rule: what it is called, where its findings stand among others of their severity, and the function."""

    code: str
    label: str
    rank: int
    find: Callable[[Subject], Iterator[Finding]]

    @property
    def home(self) -> str:
        """Where the function is defined."""
        return f"{self.find.__module__}.{self.find.__qualname__}"


class RuleBook(Generic[Subject]):
    """The rules that read one kind of subject; ours are loaded at the first use, then those of installed packages.

    A package names its modules of rules under the entry point `group`; importing them registers the rules.
    """

    def __init__(self, package: str, modules: Sequence[str], group: str) -> None:
        self._homes = [f"{package}.{module}" for module in modules]
        self._group = group
        self._rules: dict[str, Rule[Subject]] = {}
        self._loaded = False

    def rule(
        self, code: str, label: str, rank: int = LAST
    ) -> Callable[[Callable[[Subject], Iterator[Finding]]], Callable[[Subject], Iterator[Finding]]]:
        """Register a function from a subject to findings under a code; of two findings the lower rank stands first."""

        def register(find: Callable[[Subject], Iterator[Finding]]) -> Callable[[Subject], Iterator[Finding]]:
            new = Rule(code, label, rank, find)
            known = self._rules.get(code)
            if known is not None and known.home != new.home:
                raise UsageError(
                    f"Cannot register rule {code} of {new.home}: {known.home} has that code. Give one of them another."
                )
            self._rules[code] = new
            return find

        return register

    def all(self) -> tuple[Rule[Subject], ...]:
        """Every rule in order of rank; loads them on the first call."""
        if not self._loaded:
            self._loaded = True
            for home in self._homes:
                import_module(home)
            for entry_point in entry_points(group=self._group):
                entry_point.load()
        return tuple(sorted(self._rules.values(), key=lambda known: (known.rank, known.code)))

    def findings(self, subject: Subject) -> list[tuple[int, Finding]]:
        """What all rules find, each with the rank of its rule."""
        return [(known.rank, finding) for known in self.all() for finding in known.find(subject)]


PAIR_RULES: RuleBook[Walk] = RuleBook("align.diagnosis", OWN_MODULES, "align.rules")
RUN_RULES: RuleBook[Inspection] = RuleBook("align.diagnosis.run", RUN_MODULES, "align.run_rules")
JOB_RULES: RuleBook[Job] = RuleBook("align.diagnosis.job", JOB_MODULES, "align.job_rules")

rule = PAIR_RULES.rule
run_rule = RUN_RULES.rule
job_rule = JOB_RULES.rule
