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
from align.sentences import say

Subject = TypeVar("Subject")
"""What a rule reads: the walk over two captures, the inspection of one run, those of all ranks of a job."""

PAIR_MODULES = (
    "data.seed_mismatch",
    "data.rng_mismatch",
    "data.duplicate_samples",
    "data.missing_samples",
    "data.data_shifted",
    "data.data_order",
    "data.labels_differ",
    "data.data_differs",
    "weights.checkpoint_keys",
    "weights.checkpoint_not_loaded",
    "weights.checkpoint_partial",
    "weights.tied_weight_broken",
    "weights.weight_permuted",
    "weights.weight_transposed",
    "weights.weight_cast",
    "weights.weight_stale",
    "weights.weight_scaled",
    "weights.weight_corrupted",
    "weights.buffer_differs",
    "weights.initial_weights",
    "setup.train_eval_mode",
    "setup.module_config",
    "setup.same_start",
    "data.dropout_mask",
    "scale.nan_origin",
    "scale.overflow",
    "scale.overflow_saturated",
    "forward.isolated_corruption",
    "forward.operator_differs",
    "backward.recompute_differs",
    "backward.loss_normalization",
    "backward.gradient_norm",
    "backward.gradients_not_reduced",
    "backward.gradient_doubled",
    "backward.gradient_scaled",
    "backward.backward_operator",
    "forward.origin_module",
    "forward.origin_functional",
    "forward.independent_origin",
    "backward.gradient_missing",
    "setup.hyperparameters",
    "update.weight_decay_groups",
    "update.optimizer_state",
    "update.learning_rate",
    "update.optimizer_formula",
    "scale.skipped_step_applied",
    "scale.clip_before_unscale",
    "scale.gradient_underflow",
    "scale.denormal_flush",
    "scale.loss_scale_collapse",
    "scale.loss_scale_stuck",
    "scale.loss_scale_unstable",
    "setup.dtype_differs",
    "setup.shape_differs",
    "setup.precision_mode",
    "setup.operands_cut_off",
    "setup.structure_differs",
    "setup.layout_differs",
    "forward.nondeterministic",
    "setup.cpu_fallback",
    "curves.loss_curves",
    "curves.loss_bias",
    "curves.step_time",
    "forward.within_noise",
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
                    say(
                        "Cannot register rule {} of {}: {} has that code. Give one of them another.",
                        code,
                        new.home,
                        known.home,
                    )
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


PAIR_RULES: RuleBook[Walk] = RuleBook("align.diagnosis.pair", PAIR_MODULES, "align.rules")
RUN_RULES: RuleBook[Inspection] = RuleBook("align.diagnosis.run", RUN_MODULES, "align.run_rules")
JOB_RULES: RuleBook[Job] = RuleBook("align.diagnosis.job", JOB_MODULES, "align.job_rules")

rule = PAIR_RULES.rule
run_rule = RUN_RULES.rule
job_rule = JOB_RULES.rule
