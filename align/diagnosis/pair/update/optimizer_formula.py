"""AL702: from equal gradients and rates, the parameters move differently."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.registry import rule
from align.optimizer_explanation import told, what_differs
from align.optimizer_replay import FormulaCheck
from align.records import Finding, Place, Severity
from align.sentences import capital, say
from align.updates import UpdateCheck

CODE = "AL702"
LABEL = "optimizer-formula-differs"


@rule(CODE, LABEL, rank=56)
def find(walk: Walk) -> Iterator[Finding]:
    """An update that leaves its own settings, else the update of the whole model, where the runs part in it."""
    formula = next(iter(walk.formula_checks), None)
    if formula is not None and telling.parts_in_update(walk, formula.step):
        yield _own_settings(walk, formula)
        return
    check = next((check for check in walk.update_checks if check.differs), None)
    if check is not None and telling.parts_in_update(walk, check.step):
        yield _other_update(walk, check)


def _own_settings(walk: Walk, check: FormulaCheck) -> Finding:
    first = check.errors[0]
    side = "candidate" if check.candidate else "reference"
    owners = {error.owner for error in check.errors}
    name = say("{} {}", first.owner[0], first.owner[1])
    return Finding(
        CODE,
        LABEL,
        Severity.ERROR,
        say(
            "{}: the optimizer of the {} does not do what its own settings say, in {} of {} parameters that could "
            "be replayed; first {} of {}: relative L2 {}, {} times what the settings give.{} No module is to blame.",
            capital(wording.step(check.step)),
            side,
            len(owners),
            check.checked,
            what_differs(first),
            name,
            wording.relative(first.error),
            wording.factor(first.factor),
            _explained(check),
        ),
        say(
            "Compare the optimizer's kernel and code in the {} with its settings: the learning rate, betas, epsilon "
            "and weight decay that it really uses, a fused or patched implementation, changes of parameters around "
            "the step.",
            side,
        ),
        Place(step=check.step, phase="optimizer", name=telling.first_name(walk)),
        {
            "side": side,
            "what": first.what,
            "relative_l2": first.error,
            "factor": first.factor,
            "parameters": len(owners),
            "checked": check.checked,
            "whats": sorted({error.what for error in check.errors}),
            "setting": check.explanation.setting if check.explanation is not None else None,
            "really": check.explanation.really if check.explanation is not None else None,
        },
        {"step": check.step, "side": side, "what": first.what, "name": first.owner[0], "factor": first.factor},
    )


def _explained(check: FormulaCheck) -> str:
    return "" if check.explanation is None else say(" {}", told(check.explanation))


def _other_update(walk: Walk, check: UpdateCheck) -> Finding:
    return Finding(
        CODE,
        LABEL,
        Severity.ERROR,
        say(
            "{}: the gradients agree, the learning rates are equal, but the parameters move differently: {}. No "
            "module is to blame.",
            capital(wording.step(check.step)),
            _how(check),
        ),
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
            "own_ratio": check.own_ratio,
        },
        {"step": check.step, "ratio": check.ratio, "relative_l2": check.relative_l2},
    )


def _how(check: UpdateCheck) -> str:
    if check.other_size:
        return say(
            "over the whole model the update of the candidate is {} times as large as that of the reference "
            "(relative L2 {})",
            wording.factor(check.ratio),
            wording.relative(check.relative_l2),
        )
    if check.owner is not None and not check.decays:
        return say(
            "the update of {} {} is {} times as large in the candidate as in the reference",
            check.owner[0],
            check.owner[1],
            wording.factor(check.own_ratio),
        )
    return say(
        "the candidate draws them to 0 {}, as a weight decay does that is {} by about {}",
        say("more" if check.decay > 0 else "less"),
        "larger" if check.decay > 0 else "smaller",
        wording.relative(abs(check.decay)),
    )
