"""What is told of replays besides their errors: whether they are of the same model, what they could not show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from align import wording
from align.capture_file import Capture
from align.comparison import Walk
from align.errors import ReplayError
from align.flow import is_output
from align.pairing import is_walked
from align.records import Comparison, Phase, Resolution, Status
from align.sentences import capital, joined, say
from align.walk import StepResult

TOLD = 3
"""How many modules are named."""

MOST_MISSING = 0.5
"""Above this share of tensors that do not come up in a replay the script trains another model."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """A capture and its replay."""

    capture: Capture
    replay: Capture


def check_replay(side: Replayed, script: str) -> None:
    """Raise ReplayError where the script that replayed a capture trains another model than that of the capture."""
    step = side.replay.steps[0] if side.replay.steps else None
    if step is None:
        raise ReplayError(
            say(
                "Cannot replay '{}': {} ended before its first step was over. Give the arguments with which it "
                "was captured.",
                side.capture.path,
                script,
            )
        )
    there = [record.key for record in side.capture.records(step) if is_walked(record)]
    answered = {record.key for record in side.replay.records(step)}
    missing = [key for key in there if key not in answered]
    if len(missing) > MOST_MISSING * len(there):
        raise ReplayError(
            say(
                "Cannot replay '{}' with {}: {} of its {} tensors of step {} do not come up ({} {} is the "
                "first). Give the script and arguments of that capture.",
                side.capture.path,
                script,
                f"{len(missing):,}",
                f"{len(there):,}",
                step,
                missing[0].name,
                missing[0].slot,
            )
        )


def resolution(results: Sequence[StepResult], walk: Walk, candidate: Replayed) -> Resolution:
    """The smallest local effect on a module output that would have been called a difference, typically."""
    effects = sorted(
        each.limit * each.floor
        for result in results
        for each in result.comparisons
        if each.key.phase is Phase.FORWARD and is_output(each.reference) and each.limit > 0.0
    )
    typical = effects[len(effects) // 2] if effects else None
    return Resolution(typical, walk.precisions.whole.name, say("replay ({})", replayed_in(candidate)))


def replayed_in(side: Replayed) -> str:
    """The precision of a replay: `same`, `fp32` or `fp64`."""
    return str(side.replay.run.same_start.get("replay_precision", "same"))


def _tell_drawn(names: Sequence[str]) -> Iterator[str]:
    if names:
        yield (
            say(
                "{} {} other elements in a replay: what random numbers made was not judged there. Capture both runs "
                "with --no-dropout.",
                wording.listing(names[:TOLD], len(names)),
                say("drops" if len(names) == 1 else "drop"),
            )
        )


def counts(comparisons: Sequence[Comparison]) -> dict[str, int]:
    """How many comparisons there are of each status."""
    statuses = Counter(comparison.status for comparison in comparisons)
    return {"paired": len(comparisons), **{str(status): statuses[status] for status in Status}}


def notes(reference: Replayed, candidate: Replayed, drawn: Collection[str]) -> tuple[str, ...]:
    """What could not be replayed, and what was not judged; `drawn` are the modules that drop other elements."""
    return (*_left_out(reference), *_left_out(candidate), *_tell_drawn(sorted(drawn)))


def _left_out(side: Replayed) -> Iterator[str]:
    facts = side.replay.run.same_start
    left = {str(why): int(count) for why, count in dict(facts.get("not_replaced", {})).items()}
    if left:
        reasons = joined(", ", (say("{}: {}", why, f"{count:,}") for why, count in left.items()))
        yield (
            say(
                "In the replay of {} {} {} left as computed ({}).",
                side.capture.path,
                wording.plural(sum(left.values()), "tensor"),
                "was" if sum(left.values()) == 1 else "were",
                reasons,
            )
        )
    refused = [str(name) for name in facts.get("replay_refused", ())]
    if refused:
        yield (
            say(
                "In the replay of {} {} computed in float32: {} not take {}.",
                side.capture.path,
                joined(", ", refused),
                "it does" if len(refused) == 1 else "they do",
                facts.get("replay_precision"),
            )
        )
    beyond = [step for step in side.capture.steps if step not in side.replay.steps]
    if beyond:
        yield say("{} of {} could not be replayed.", capital(wording.steps(beyond)), side.capture.path)
