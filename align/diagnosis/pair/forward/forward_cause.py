"""Which of the labels of a first difference in a module's code is known to hold: one of them, or the plain one."""

from __future__ import annotations

import math
from collections.abc import Sequence

from align.comparison import Walk
from align.configuration import Modes, config_differences
from align.diagnosis import telling
from align.diagnosis.pair.forward.repeats import is_repeat
from align.equality import Answer
from align.matching.places import Places
from align.pairing import Pair
from align.records import Comparison, Kind, ModuleInfo, Origin, Phase
from align.walk import Suspect

LIBRARY = "torch"
"""What a capture calls the code of torch's own modules."""

LARGEST_SIMILARITY = 0.5
"""Above this cosine the wrong elements are the right ones in part: unreduced, scaled, of another shard."""

FEWEST_FOREIGN = 4
"""Fewer elements in a row may be one decision that another value tipped (a rounding, a quantisation, a choice)."""


def is_isolated(walk: Walk) -> bool:
    """Whether a few elements that lie side by side in memory hold something else, and all others agree.

    Whole rows are not told: code can treat a row, a token or the last columns otherwise. Neither are zeros (masks,
    frozen parts) and values that resemble the right ones.
    """
    first, part = walk.first, walk.wrong_part
    if first is None or part is None or part.run is None or first.kind is not Kind.VALUE or first.statistics_only:
        return False
    if first.origin not in {Origin.MODULE, Origin.FUNCTIONAL, Origin.OPTIMIZER} or first.argument:
        return False
    if part.zeros or (part.count > 1 and abs(part.similarity) > LARGEST_SIMILARITY):
        return False
    if _whole_rows(part.shape, *part.run) or _may_decide(walk, first.comparison):
        return False
    return part.count >= FEWEST_FOREIGN or is_library(walk, first.comparison.key.name)


def _whole_rows(shape: Sequence[int], start: int, stop: int) -> bool:
    """Whether a run in memory is a row or several, or the end of a vector or of one row, as code makes them."""
    if len(shape) < 2:  # noqa: PLR2004 - a vector
        return stop == math.prod(shape)
    row = shape[-1]
    if row == 1 or (start % row == 0 and stop % row == 0):
        return True
    # A part of one row, up to its end, is the last columns of one token.
    return start // row == (stop - 1) // row and stop % row == 0


def _may_decide(walk: Walk, comparison: Comparison) -> bool:
    """Whether a decision that flipped in the module can change single elements."""
    module = walk.modules.get(comparison.key.name)
    return module is None or module.chooses or (module.piecewise and comparison.key.phase is not Phase.GRADIENT)


def is_library(walk: Walk, name: str) -> bool:
    """Whether a module is one of torch's own."""
    module = walk.modules.get(name)
    return module is not None and walk.reference.classes.get(module.class_name, {}).get("code") == LIBRARY


def is_operator(walk: Walk) -> bool:
    """Whether all that is known of a module without children is equal in both runs, and its output is not.

    Equal are its class and the code of that, its settings, mode, parameters and inputs, and nothing random runs in it:
    what is left is the operator behind it.
    """
    first = walk.first
    if first is None or first.statistics_only or (first.kind, first.origin) != (Kind.VALUE, Origin.MODULE):
        return False
    key = first.comparison.key
    if key.phase is not Phase.FORWARD or not key.slot.startswith("output") or is_repeat(walk.reference, walk.candidate):
        return False
    ours, theirs = modules_of(walk, key.name)
    if ours is None or theirs is None or not (ours.leaf and theirs.leaf):
        return False
    return (
        _same_code(walk, ours, theirs)
        and _same_settings(walk, ours, theirs)
        and _same_mode(walk, first)
        and _same_parameters(walk, first)
        and not _other_dtype(walk, first)
        and not telling.given_in_one_run(walk, first)
    )


def is_same_leaf(walk: Walk, first: Suspect) -> bool:
    """Whether the module of a first difference has no children and its class, code, settings and mode are equal."""
    ours, theirs = modules_of(walk, first.comparison.key.name)
    if ours is None or theirs is None or not (ours.leaf and theirs.leaf):
        return False
    return _same_code(walk, ours, theirs) and _same_settings(walk, ours, theirs) and _same_mode(walk, first)


def modules_of(walk: Walk, name: str) -> tuple[ModuleInfo | None, ModuleInfo | None]:
    """What both captures learned of a module."""
    return walk.modules.get(name), walk.candidate_modules.get(walk.names.of(name))


def _same_code(walk: Walk, ours: ModuleInfo, theirs: ModuleInfo) -> bool:
    facts = walk.reference.classes.get(ours.class_name), walk.candidate.classes.get(theirs.class_name)
    if facts[0] is None or facts[1] is None or ours.class_name != theirs.class_name or telling.is_dropout(ours):
        return False
    if facts[0].get("random", True) or facts[1].get("random", True):
        return False
    return bool(facts[0].get("code")) and facts[0]["code"] == facts[1].get("code")


def _same_settings(walk: Walk, ours: ModuleInfo, theirs: ModuleInfo) -> bool:
    differing = config_differences({ours.name: ours}, walk.candidate_modules, walk.names)
    is_torch = walk.reference.classes[ours.class_name].get("code") == LIBRARY
    return not differing and (is_torch or ours.config.keys() == theirs.config.keys())


def _same_mode(walk: Walk, first: Suspect) -> bool:
    modes = modes_of(walk, first)
    return modes is not None and modes[0] == modes[1]


def modes_of(walk: Walk, first: Suspect) -> tuple[bool | None, bool | None] | None:
    """Whether the call that made a first difference was in training mode in each run, None where that is not known."""
    key = first.comparison.key
    step = key.step
    answer = Places(walk.names, walk.pairing.calls, step).in_candidate((key.name, key.micro, key.call))
    modes = Modes(walk.reference_facts.get(step, ()), walk.modules).of(key.name, key.micro, key.call)
    others = Modes(walk.candidate_facts.get(step, ()), walk.candidate_modules)
    return (modes, others.of(*answer)) if answer is not None else None


def _same_parameters(walk: Walk, first: Suspect) -> bool:
    """Whether its parameters are known to agree: those of step 0 are the initial ones, later it has to have none.

    Those that one run has alone are tied to another module's in the other run, or are none there.
    """
    key = first.comparison.key
    if not walk.initial or telling.own_in_one_run(walk, key.name):
        return False
    if key.step == 0:
        own = [found.answer for found in walk.initial if found.pair.key.name == key.name]
        return set(own) <= {Answer.EQUAL, Answer.CLOSE}
    module = walk.modules[key.name]
    # A tied parameter stands under its first owner's name only.
    may_be_tied = module.matmul or module.conv or "Embed" in module.class_name
    phases = {Phase.INIT, Phase.GRADIENT, Phase.UPDATE, Phase.PARAM}
    return not may_be_tied and not any(
        each.key.name == key.name and each.key.phase in phases for each in walk.comparisons
    )


def _other_dtype(walk: Walk, first: Suspect) -> bool:
    """Whether the module computed in another format in the candidate."""
    key = first.comparison.key
    return any((pair.key.phase, pair.key.name) == (Phase.FORWARD, key.name) for pair in walk.dtype_differences)


def inputs_of(walk: Walk, first: Suspect) -> list[Pair]:
    """What the call was given that made the first difference."""
    key = first.comparison.key
    place = (key.step, key.phase, key.name, key.micro, key.call)
    return [
        Pair(each.reference, each.candidate)
        for each in walk.comparisons
        if each.key.slot.startswith("input")
        and (each.key.step, each.key.phase, each.key.name, each.key.micro, each.key.call) == place
    ]
