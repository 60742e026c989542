"""AL702: from equal gradients and rates, the parameters move differently."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.registry import rule
from align.records import Finding, Place, Severity
from align.updates import UpdateCheck

CODE = "AL702"
LABEL = "optimizer-formula-differs"


@rule(CODE, LABEL, rank=56)
def find(walk: Walk) -> Iterator[Finding]:
    """The update of the whole model, where the runs part in it."""
    check = next((check for check in walk.update_checks if check.differs), None)
    if check is None or not telling.parts_in_update(walk, check.step):
        return
    yield Finding(
        CODE,
        LABEL,
        Severity.ERROR,
        f"{wording.step(check.step).capitalize()}: the gradients agree, the learning rates are equal, but the "
        f"parameters move differently: {_how(check)}. No module is to blame.",
        "Compare the optimizer and its settings in both runs: betas, epsilon, momentum, weight decay, rates of other "
        "parameter groups, fused or foreach kernels.",
        Place(step=check.step, phase="optimizer", name=telling.first_name(walk)),
        {
            "ratio": check.ratio,
            "allowed_ratio": 1.0 + check.allowed,
            "relative_l2": check.relative_l2,
            "gradient_relative_l2": check.gradient_error,
            "decay": check.decay,
            "decay_deviations": check.decay_deviations,
            "elements": check.elements,
        },
        {"step": check.step, "ratio": check.ratio, "relative_l2": check.relative_l2},
    )


def _how(check: UpdateCheck) -> str:
    if check.other_size:
        return (
            f"over the whole model the update of the candidate is {wording.factor(check.ratio)} times as large as that "
            f"of the reference (relative L2 {wording.relative(check.relative_l2)})"
        )
    return (
        f"the candidate draws them to 0 {'more' if check.decay > 0 else 'less'}, as a weight decay does that is "
        f"{'larger' if check.decay > 0 else 'smaller'} by about {wording.relative(abs(check.decay))}"
    )
