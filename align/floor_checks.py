"""Whether a capture shows what rounding does to the reference: each reason why not is a sentence."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence

from align import metrics, wording
from align.capture_file import Capture
from align.equality import Answer, judge_equality
from align.errors import ComparisonError
from align.pairing import LARGEST_SHARE_WITHOUT_PARTNER, NamePairs, Pair, PairedStep
from align.records import INIT_STEP, Detail, Phase, RunInfo
from align.sentences import joined, say
from align.tolerance import PRECISIONS, conv_precision, matmul_precision

MOVED_BY_AT_MOST = 1.5
"""A perturbed tensor lies within its unit roundoff, or within one step of its format (two of the format's units); half
as much again is the error of a sketch, 18 % at most, and what a script computes of its batch."""

ALIKE = frozenset({"TF32", "HF32"})
"""Both shorten float32 to 11 bits."""

GIVEN = frozenset({Phase.INIT, Phase.INPUT})


def check_not_perturbed(reference: Capture, candidate: Capture) -> None:
    """Refuse to judge a run that was moved on purpose against one that was not."""
    runs = (reference.run.perturbed, candidate.run.perturbed)
    if not any(runs) or all(runs[0].get(name) == runs[1].get(name) for name in ("seed", "unit")):
        return
    if all(runs):
        seeds = joined(" and ", (f"--perturb {run.get('seed')}" for run in runs))
        raise ComparisonError(
            say(
                "Cannot judge '{}' and '{}': they were captured with {}, which moved the weights and float "
                "inputs of each by other numbers on purpose. Capture both scripts without --perturb, and compare "
                "with `align diff REF.h5 CAND.h5 --floor {}`.",
                reference.path,
                candidate.path,
                seeds,
                reference.path,
            )
        )
    moved = candidate if runs[1] else reference
    by = say(" by {}", moved.run.perturbed["by"]) if "by" in moved.run.perturbed else ""
    role = (
        f"`align diff {reference.path} CAND.h5 --floor {candidate.path}`"
        if runs[1]
        else f"`align diff REF.h5 {candidate.path} --floor {reference.path}`"
    )
    raise ComparisonError(
        say(
            "Cannot judge '{}': it was captured with --perturb {}, which moved its weights and float "
            "inputs{} on purpose. It shows what rounding does; compare with {}.",
            moved.path,
            moved.run.perturbed.get("seed"),
            by,
            role,
        )
    )


def floor_steps(reference: Capture, candidate: Capture, floor: Capture) -> list[int]:
    """The steps of the comparison that a floor holds; raises ComparisonError where it cannot be one."""
    _check_other_run(reference, candidate, floor)
    if not floor.steps:
        raise _refused(
            floor, say("it holds no finished step. Capture it again and let at least one training step end.")
        )
    common = sorted(set(reference.steps) & set(candidate.steps))
    found = [step for step in floor.steps if step in common]
    if common and not found:
        raise _refused(
            floor,
            say(
                "it holds {} and the comparison is over {}. Capture it with the same --steps.",
                wording.steps(floor.steps),
                wording.steps(common),
            ),
        )
    if Detail.STATS in {floor.run.detail, reference.run.detail}:
        which = say("it holds") if floor.run.detail == Detail.STATS else say("the reference '{}' holds", reference.path)
        raise _refused(
            floor,
            say(
                "{} only statistics, from which the size of a difference cannot be told. Capture it again with "
                "--detail sketch.",
                which,
            ),
        )
    return found


def is_same_run(one: Capture, other: Capture) -> bool:
    """Whether two captures are one file, or copies of the same run."""
    if _is_same_file(one, other):
        return True
    return bool(one.run.started) and one.run == other.run and _durations(one) == _durations(other)


def _is_same_file(one: Capture, other: Capture) -> bool:
    return os.path.realpath(one.path) == os.path.realpath(other.path)


def _check_other_run(reference: Capture, candidate: Capture, floor: Capture) -> None:
    for side, capture in (("reference", reference), ("candidate", candidate)):
        if not is_same_run(floor, capture):
            continue
        what = (
            say("it is the {} itself", side)
            if _is_same_file(floor, capture)
            else say("it is a capture of the same run as the {}", side)
        )
        why = say("shows no rounding") if side == "reference" else say("would explain every difference")
        raise _refused(
            floor,
            say("{}, which {}. Capture the reference's script once more with `align capture --perturb 1`.", what, why),
        )


def _durations(capture: Capture) -> list[float]:
    """How long each step took, which no two runs have alike."""
    return [row.seconds for row in capture.timeline if not math.isnan(row.seconds)]


def check_floor(
    reference: Capture, candidate: Capture, floor: Capture, names: NamePairs, paired: Sequence[PairedStep]
) -> None:
    """Refuse a floor of another model, device, precision, start or data."""
    _check_same_model(reference, floor, names)
    if floor.run.perturbed and floor.run.device_type != reference.run.device_type:
        raise _refused(
            floor,
            say(
                "it is a perturbed run on {}, and the reference ran on {}. Run `align capture --perturb 1` where "
                "the reference ran.",
                floor.run.device_type,
                reference.run.device_type,
            ),
        )
    _check_precision(reference, candidate, floor, names)
    for phase, what, options in (
        (
            Phase.INIT,
            say("initial weights"),
            say("`--seed`, or `--init-from` a capture of the reference with --keep init"),
        ),
        (
            Phase.INPUT,
            say("batches"),
            say("`--seed`, or `--batches-from` a capture of the reference with --keep batches"),
        ),
    ):
        apart = [
            pair for each in paired for pair in each.pairs if pair.key.phase is phase and _differs(pair, floor.run)
        ]
        if apart:
            key = apart[0].key
            place = f"{key.name} {key.slot}" if phase is Phase.INPUT and key.slot != "value" else key.name
            place = f"{key.name}.{key.slot}" if phase is Phase.INIT else place
            when = "" if key.step == INIT_STEP else say(" in {}", wording.step(key.step))
            raise _refused(
                floor,
                say(
                    "its {} are not the reference's (first {}{}), so that its differences are no rounding. Capture "
                    "it from the same start: {}.",
                    what,
                    place,
                    when,
                    options,
                ),
            )


def names_of(capture: Capture) -> list[str]:
    """The names of the modules of a capture, or of what has records where it knows no modules."""
    if capture.modules:
        return list(capture.modules)
    step = capture.steps[0]
    return list(dict.fromkeys(each.key.name for each in capture.records(step) if each.key.phase not in GIVEN))


def _check_same_model(reference: Capture, floor: Capture, names: NamePairs) -> None:
    shared = len(names.partner) - len(names.only_reference)
    for side, total in (("reference", len(names.partner)), ("floor", shared + len(names.only_candidate))):
        if total and (total - shared) / total > LARGEST_SHARE_WITHOUT_PARTNER:
            examples = [
                say("'{}' is only in the {}", only[0], where)
                for only, where in ((names.only_reference, "reference"), (names.only_candidate, "floor"))
                if only
            ]
            raise _refused(
                floor,
                say(
                    "it is of another model than the reference '{}': only {} of {} names of the {} have a partner; "
                    "for example {}. Capture the reference's own script with `align capture --perturb 1`.",
                    reference.path,
                    shared,
                    total,
                    side,
                    wording.listing(examples),
                ),
            )


def _check_precision(reference: Capture, candidate: Capture, floor: Capture, names: NamePairs) -> None:
    """A perturbed reference works in the reference's precision, any other good run in that of one of both sides."""
    apart = precision_apart(reference, floor, names)
    allowed = not floor.run.perturbed and not precision_apart(candidate, floor, names)
    if apart and not allowed:
        raise _refused(
            floor,
            say(
                "it works in another precision than the reference ({}). Capture it with the settings of the reference.",
                apart,
            ),
        )


def is_finer(floor: Capture, candidate: Capture) -> bool:
    """Whether the candidate works more coarsely than what a floor shows: what a run was moved by, or works in."""
    if not precision_apart(candidate, floor):
        return False
    moved_by = floor.run.perturbed.get("unit")
    shown = moved_by if isinstance(moved_by, float) else _coarsest_unit(floor)
    return _coarsest_unit(candidate) > shown


def _coarsest_unit(capture: Capture) -> float:
    """The largest unit roundoff of what a run computes in."""
    modules = capture.modules.values()
    formats = [capture.run.autocast, *(module.compute_dtype for module in modules)]
    units = [PRECISIONS[name].unit for name in formats if name is not None and name in PRECISIONS]
    if any(module.matmul for module in modules):
        units.append(matmul_precision(capture.run).unit)
    if any(module.conv for module in modules):
        units.append(conv_precision(capture.run).unit)
    return max(units, default=0.0)


def precision_apart(one: Capture, other: Capture, names: NamePairs | None = None) -> str:
    """The first setting or module in whose precision two runs differ, empty where they do in none."""
    for what, ours, theirs in _modes(one, other):
        if ours != theirs and not {ours, theirs} <= ALIKE:
            return say("{}: {} there, {} here", what, ours, theirs)
    for name, module in one.modules.items():
        other_module = other.modules.get(names.of(name) if names is not None else name)
        if other_module is None or not (module.matmul or module.conv):
            continue
        dtypes = (module.compute_dtype, other_module.compute_dtype)
        if dtypes[0] != dtypes[1] and dtypes[0] is not None and dtypes[1] is not None:
            return say("{}: {} there, {} here", name, wording.dtype(dtypes[0]), wording.dtype(dtypes[1]))
    return ""


def _modes(one: Capture, other: Capture) -> Iterator[tuple[str, str, str]]:
    yield "autocast", _autocast(one.run), _autocast(other.run)
    if any(module.matmul for module in one.modules.values()):
        yield say("matrix products"), matmul_precision(one.run).name, matmul_precision(other.run).name
    if any(module.conv for module in one.modules.values()):
        yield say("convolutions"), conv_precision(one.run).name, conv_precision(other.run).name


def _autocast(run: RunInfo) -> str:
    return say("off") if run.autocast is None else wording.dtype(run.autocast)


def _differs(pair: Pair, run: RunInfo) -> bool:
    """Whether a weight or batch differs by more than rounding, or than it was moved by."""
    found = judge_equality(pair)
    if found.answer is not Answer.UNEQUAL:
        return False
    unit = run.perturbed.get("unit")
    if not isinstance(unit, float) or found.relative_l2 is None:
        return True
    step = 2.0 * PRECISIONS[pair.reference.dtype].unit
    return found.relative_l2 > MOVED_BY_AT_MOST * max(unit, step)


def check_not_equal(floor: Capture, paired: Sequence[PairedStep]) -> None:
    """Refuse a run that is equal to the reference in all that it computed."""
    computed = [
        pair
        for each in paired
        for pair in each.pairs
        if pair.key.phase not in GIVEN and metrics.is_float_pair(pair) and pair.reference.numel
    ]
    if not computed:
        raise _refused(
            floor,
            say("no tensor of it answers one of the reference. Capture both with the same --phases and --modules."),
        )
    if all(pair.same_shape and metrics.identical(pair) for pair in computed):
        raise _refused(
            floor,
            say(
                "it is equal to the reference to the bit, so it shows no rounding; capture one with `align "
                "capture --perturb 1`."
            ),
        )


def _refused(floor: Capture, why: str) -> ComparisonError:
    return ComparisonError(say("Cannot use '{}' as a floor: {}", floor.path, why))
