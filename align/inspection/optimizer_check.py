"""Whether the optimizer of a run does what its own settings say: its formula, replayed step by step.

What does not follow its settings is asked what would explain it: another rate, epsilon, decay, another beta. A script
that changes parameters itself between two steps (clamping, a decay of its own) leaves the states of the optimizer as
its formula has them, so that a parameter which no other setting explains is told with less certainty.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from align.clipping import joint_norm
from align.inspection.learning import parameters_before
from align.inspection.view import RunView, StepView
from align.loss_scales import loss_scale_of
from align.optimizer_explanation import explained
from align.optimizer_records import OptimizerRecords, by_owner, states_after, states_before
from align.optimizer_replay import Explanation, FormulaError, groups_of, replay
from align.records import Owner, Phase

UPDATE = "update"

MOVING = "LBFGS"
"""Moves the parameters several times within one step."""


@dataclass(frozen=True, slots=True)
class OptimizerCheck:
    """The replay of a run's optimizer.

    `steps` could be replayed, `parameters` is how many of them. `step` is the first in which something does not
    follow, `errors` what does not, `checked` how many parameters that step has, and `explanation` what would explain
    all of it, None where nothing that was tried does. `nearest` is the largest error of all that follows, over what
    is allowed.
    """

    steps: tuple[int, ...] = ()
    parameters: int = 0
    kinds: tuple[str, ...] = ()
    step: int | None = None
    errors: tuple[FormulaError, ...] = ()
    checked: int = 0
    explanation: Explanation | None = None
    nearest: float = 0.0

    @property
    def states(self) -> tuple[FormulaError, ...]:
        """The states that do not follow: nothing but the optimizer changes them."""
        return tuple(error for error in self.errors if error.what != UPDATE)


def optimizer_check(view: RunView) -> OptimizerCheck:
    """Replay every captured step that updated and of which enough is known."""
    rows = {row.step: row for row in view.timeline}
    left_out = {step for step, row in rows.items() if row.skipped or row.nonfinite or MOVING in row.optimizer}
    found = OptimizerCheck()
    owners: set[Owner] = set()
    for number in view.steps:
        if number in left_out:
            continue
        step = view.step(number)
        records = records_of(view, step)
        tensors = replay(records).tensors
        if not tensors:
            continue
        wrong = tuple(tensor for tensor in tensors if tensor.error > tensor.allowed)
        owners |= {tensor.owner for tensor in tensors}
        near = max((tensor.error / tensor.allowed for tensor in tensors if tensor not in wrong), default=0.0)
        found = replace(found, steps=(*found.steps, number), nearest=max(found.nearest, near))
        if wrong and found.step is None:
            checked = len({tensor.owner for tensor in tensors})
            explanation = explained(records, wrong)
            found = replace(found, step=number, errors=wrong, checked=checked, explanation=explanation)
        kinds = {str(group["class"]) for group in groups_of(step.facts).values() if "class" in group}
        found = replace(found, kinds=tuple(sorted({*found.kinds, *kinds})))
    return replace(found, parameters=len(owners))


def records_of(view: RunView, step: StepView) -> OptimizerRecords:
    """What is known of the optimizer around one step."""
    states = step.by_phase[Phase.OPTIMIZER]
    kept = step.step - 1 in view.steps
    return OptimizerRecords(
        parameters_before(view, step.step),
        by_owner(step.by_phase[Phase.PARAM]),
        by_owner(step.by_phase[Phase.UPDATE]),
        states_after(view.step(step.step - 1).by_phase[Phase.OPTIMIZER]) if kept else states_before(states),
        states_after(states),
        step.facts,
    )


def clipping(view: RunView, number: int) -> tuple[float, float] | None:
    """By what the gradients of a step shrank between backward and update, and by what norm and limit of clipping say.

    None where one of the two is not known.
    """
    step = view.step(number)
    gradients, updates = (by_owner(step.by_phase[phase]) for phase in (Phase.GRADIENT, Phase.UPDATE))
    row = next((row for row in view.timeline if row.step == number), None)
    if row is None or not updates or updates.keys() - gradients.keys() or not row.clip_norm > 0.0:
        return None
    before = joint_norm(gradients[owner] for owner in updates)
    after = joint_norm(updates.values())
    if not before > 0.0:
        return None
    return after / (before / loss_scale_of(row)), min(1.0, row.clip_limit / (row.clip_norm + 1e-6))
