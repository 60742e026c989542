"""AL702 in one run: the optimizer does not do what its own settings say."""

from __future__ import annotations

from collections.abc import Iterator

from align import optimizer_explanation, wording
from align.diagnosis.registry import run_rule
from align.inspection import Inspection
from align.inspection.optimizer_check import OptimizerCheck
from align.optimizer_replay import FormulaError
from align.records import Finding, Place, Severity
from align.sentences import capital, joined, say

CODE = "AL702"
LABEL = "optimizer-formula-differs"

BY_SCRIPT = frozenset(("weight_decay", "class"))
"""What a script may do to the parameters itself, on purpose."""


@run_rule(CODE, LABEL, rank=54)
def find(inspection: Inspection) -> Iterator[Finding]:
    """The first step that does not follow from the settings.

    An error where a state does not, or where one other setting explains all of it; else a script that changes
    parameters between the steps would look the same.
    """
    check = inspection.optimizer_check
    if check.step is None:
        return
    first = check.errors[0]
    explanation = check.explanation
    other = explanation is not None and explanation.setting not in BY_SCRIPT
    sure = bool(check.states) or other
    yield Finding(
        CODE,
        LABEL,
        Severity.ERROR if sure else Severity.WARNING,
        say("{} {}", _summary(check, first, sure=sure), optimizer_explanation.told(explanation)),
        _advice(check),
        Place(step=check.step, phase="optimizer", name=first.owner[0]),
        {
            "what": first.what,
            "relative_l2": first.error,
            "allowed": first.allowed,
            "factor": first.factor,
            "whats": sorted({error.what for error in check.errors}),
            "parameters": len({error.owner for error in check.errors}),
            "checked": check.checked,
            "setting": explanation.setting if explanation is not None else None,
            "told": explanation.told if explanation is not None else None,
            "really": explanation.really if explanation is not None else None,
        },
        {"step": check.step, "what": first.what, "name": first.owner[0]},
    )


def _summary(check: OptimizerCheck, first: FormulaError, *, sure: bool) -> str:
    step, kinds = capital(wording.step(check.step or 0)), wording.listing(check.kinds) or "its formula"
    error = say("relative L2 {}", wording.relative(first.error))
    if sure:
        return say(
            "{}: the optimizer does not do what {} with its settings does, in {}; first {} of {}: {}.",
            step,
            kinds,
            _parameters(check),
            optimizer_explanation.what_differs(first),
            joined(" ", first.owner),
            error,
        )
    return say(
        "{}: {} {} not end where {} with its settings puts {}; first {}: its update differs by {}. Either the "
        "optimizer computes it otherwise, or the script changes parameters itself, as clamping and averaging do.",
        step,
        _parameters(check),
        "does" if _one(check) else "do",
        kinds,
        "it" if _one(check) else "them",
        joined(" ", first.owner),
        error,
    )


def _one(check: OptimizerCheck) -> bool:
    return len({error.owner for error in check.errors}) == 1


def _parameters(check: OptimizerCheck) -> str:
    owners = {error.owner for error in check.errors}
    return say(
        "{} of {} that could be replayed", wording.count(len(owners)), wording.plural(check.checked, "parameter")
    )


def _advice(check: OptimizerCheck) -> str:
    text = (
        "Compare the optimizer's code and kernel with its settings: a fused or patched implementation, a wrapper that "
        "changes the rate or the decay."
    )
    if check.states:
        return text
    return say("Nothing is wrong where the script changes parameters between the steps on purpose. Else: {}", text)
