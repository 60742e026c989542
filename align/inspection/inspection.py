"""All that is found out of one run; each part is worked out when a question or a rule first asks for it."""

from __future__ import annotations

from functools import cached_property

from align.inspection.epochs import Epochs, epochs_of
from align.inspection.growth import Growth, growth_of
from align.inspection.headroom import Headroom, headrooms
from align.inspection.learning import Learning, learning_of
from align.inspection.loss_curve import LossCurve, loss_curve
from align.inspection.nonfinite import NonfiniteInRun, find_nonfinite
from align.inspection.optimizer_check import OptimizerCheck, optimizer_check
from align.inspection.ranks import Holdings, holdings_of
from align.inspection.ranks_data import Parts, SameSamples, same_samples, sampler_parts
from align.inspection.ranks_draws import Draws, duplicated_draws, parted_draws
from align.inspection.ranks_gradients import Reduction, reduction_of
from align.inspection.ranks_norm import NormCheck, check_ranks, check_run
from align.inspection.ranks_weights import Unlike, unlike
from align.inspection.saturation import Saturation, find_saturation
from align.inspection.scaling import Scaling, scaling
from align.inspection.stall import LostUpdates, Standstill, lost_updates, standstill
from align.inspection.step_times import StepTimes, step_times
from align.inspection.underflow import Underflow, underflow
from align.inspection.unscaling import WrongDivisor, wrong_divisor
from align.inspection.view import RunView
from align.recomputing import Recomputing, check_recomputing


class Inspection:
    """One run and what was found out of it. Raises nothing: what cannot be told is an answer."""

    def __init__(self, view: RunView) -> None:
        self.view = view

    @cached_property
    def epochs(self) -> Epochs:
        """Whether batches come again."""
        return epochs_of(self.view)

    @cached_property
    def nonfinite(self) -> NonfiniteInRun:
        """Where NaN and Inf start, and what of them is meant."""
        return find_nonfinite(self.view)

    @cached_property
    def saturation(self) -> Saturation | None:
        """The first tensor that stands exactly at the limit of its format."""
        return find_saturation(self.view)

    @cached_property
    def headrooms(self) -> tuple[Headroom, ...]:
        """How far each module's outputs are from the limit of their format, the nearest first."""
        return headrooms(self.view)

    @cached_property
    def scaling(self) -> Scaling:
        """What the run does with its loss scale."""
        return scaling(self.view)

    @cached_property
    def wrong_divisor(self) -> WrongDivisor | None:
        """The first step whose gradients are divided by another scale than its loss was multiplied by."""
        return wrong_divisor(self.view, self.scaling.courses)

    @cached_property
    def underflow(self) -> Underflow:
        """Which gradients are too small for float16."""
        return underflow(self.view)

    @cached_property
    def recomputing(self) -> tuple[Recomputing, ...]:
        """What activation checkpoints computed again, in each captured step in which they did."""
        found = (check_recomputing(step, self.view.step(step).records, self.view.modules) for step in self.view.steps)
        return tuple(one for one in found if one is not None)

    @cached_property
    def learning(self) -> Learning:
        """Which parameters get gradients, which the optimizer has, which move."""
        return learning_of(self.view)

    @cached_property
    def standstill(self) -> Standstill | None:
        """Why parameters are not updated."""
        return standstill(self.view, self.learning)

    @cached_property
    def lost_updates(self) -> LostUpdates | None:
        """Updates that are too small for the dtype of their parameters."""
        return lost_updates(self.learning)

    @cached_property
    def optimizer_check(self) -> OptimizerCheck:
        """Whether the optimizer does what its settings say."""
        return optimizer_check(self.view)

    @cached_property
    def clip_norm(self) -> NormCheck | None:
        """The norm that was found in clipping, against that of the gradients."""
        return check_run(self.view)

    @cached_property
    def loss_curve(self) -> LossCurve:
        """Whether the loss falls, where it jumps."""
        return loss_curve(self.view.timeline, takes_turns=self.learning.turns)

    @cached_property
    def growth(self) -> Growth | None:
        """Whose gradient grew first up to the first jump of the loss."""
        first = self.loss_curve.first_jump
        return None if first is None else growth_of(self.view, first.step + first.steps)

    @cached_property
    def step_times(self) -> StepTimes:
        """How long the steps take."""
        return step_times(self.view.timeline, self.view.steps)


class Job:
    """The inspections of all ranks of one job, in the order of ranks; one for a run of one process."""

    def __init__(self, ranks: tuple[Inspection, ...]) -> None:
        self.ranks = ranks

    @cached_property
    def holdings(self) -> Holdings:
        """What the ranks hold of each parameter, and what their optimizers take."""
        return holdings_of([inspection.view for inspection in self.ranks])

    @cached_property
    def reduction(self) -> Reduction | None:
        """Whether the gradients of replicas were reduced."""
        return reduction_of(self.holdings)

    @cached_property
    def unlike(self) -> Unlike | None:
        """What should be one on all ranks and is not."""
        return unlike(self.holdings)

    @cached_property
    def duplicated_draws(self) -> Draws | None:
        """Two ranks that drop the same elements of different tensors."""
        return duplicated_draws(self.holdings)

    @cached_property
    def parted_draws(self) -> Draws | None:
        """Two ranks that drop other elements of one tensor."""
        return parted_draws(self.holdings)

    @cached_property
    def same_samples(self) -> SameSamples | None:
        """Two replicas that train on the same batches."""
        return same_samples(self.holdings)

    @cached_property
    def sampler_parts(self) -> Parts | None:
        """The parts of the data that the samplers of all ranks read."""
        return sampler_parts(self.holdings)

    @cached_property
    def clip_norm(self) -> NormCheck | None:
        """The norm that was found in clipping, against that of the gradients of all ranks."""
        return check_ranks(self.holdings)
