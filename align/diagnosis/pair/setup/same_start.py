"""AL101: only one of the runs was made comparable, or what was taken from a capture is not what the other run has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import NamedTuple

from align import wording
from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.pair.setup import explaining
from align.diagnosis.registry import rule
from align.records import Finding, Kind, Phase, Place
from align.sentences import joined, say

CODE = "AL101"
LABEL = "environment-differs"

SWITCHES = {"no_dropout": "dropout was off", "deterministic": "deterministic algorithms were on"}
ADVICE = {
    "no_dropout": "Capture the {} with `align capture --no-dropout` too.",
    "deterministic": "Capture the {} with `align capture --deterministic` too.",
}


WRAPPERS = "parallel_wrappers"

OWN = {
    "init_from": "Load one checkpoint into what was not taken, or seed both runs alike (`align capture --seed 1`).",
    "batches_from": (
        "What the script makes itself (noise, batches without a DataLoader) is not taken: seed both runs alike "
        "(`align capture --seed 1`), or draw it on the CPU."
    ),
}
"""What to do about what `--init-from` and `--batches-from` left as it was."""


class Circumstance(NamedTuple):
    """One thing that differs in how the captures were made, and what to do about it."""

    name: str
    sentence: str
    advice: str


@rule(CODE, LABEL, rank=33)
def find(walk: Walk) -> Iterator[Finding]:
    """What was done to one run only; an error where the first difference is the output of a dropout left on."""
    found = [*_one_sided(walk), *_taken_from_elsewhere(walk), *_other_parallelism(walk)]
    if not found:
        return
    sure = found[0].name == "no_dropout" and _first_is_dropout(walk)
    summary = say("The runs were not made comparable alike: {}.", wording.listing([each.sentence for each in found]))
    first = walk.first if sure else None
    yield Finding(
        CODE,
        LABEL,
        explaining.severity(walk, sure=sure),
        summary if first is None else say("{} {}", summary, explaining.first_sentence(first)),
        joined(" ", (each.advice for each in found if each.advice)),
        Place() if first is None else telling.place_of(first.comparison.key),
        {"reference": dict(walk.reference.same_start), "candidate": dict(walk.candidate.same_start)},
        {"differing": [each.name for each in found]},
    )


def _one_sided(walk: Walk) -> Iterator[Circumstance]:
    for name, words in SWITCHES.items():
        ours, theirs = (bool(run.same_start.get(name)) for run in (walk.reference, walk.candidate))
        if ours != theirs:
            side, other = ("reference", "candidate") if ours else ("candidate", "reference")
            yield Circumstance(name, say("{} in the {} only", words, side), say(ADVICE[name], other))


def _taken_from_elsewhere(walk: Walk) -> Iterator[Circumstance]:
    """Weights or batches that were taken from a capture, and differ all the same."""
    first_of_step = next((result.unequal[0] for result in walk.results if result.unequal), None)
    batches = first_of_step is not None and first_of_step.pair.key.phase is Phase.INPUT
    for name, count, differ, what, option in (
        ("init_from", "init_tensors", bool(walk.unequal_weights), "initial weights", "--init-from"),
        ("batches_from", "batches_taken", batches, say("batches"), "--batches-from"),
    ):
        for side, run in (("reference", walk.reference), ("candidate", walk.candidate)):
            source = run.same_start.get(name)
            if differ and source:
                others = "candidate" if side == "reference" else "reference"
                path = PurePath(walk.candidate_path if side == "reference" else walk.reference_path).name
                file = PurePath(str(source)).name
                sentence = say("the {} took its {} from {}, and they are not those of the {}", side, what, file, others)
                advice = say("Take them from the capture that is compared with: `align capture {} {}`.", option, path)
                if run.same_start.get(count) == 0:
                    sentence = say(
                        "the {} was to take its {} from {} and found none of its own there", side, what, file
                    )
                    advice = OWN[name]
                elif file == path:
                    sentence = say("the {} took its {} from {}, and some that differ are its own", side, what, file)
                    advice = OWN[name]
                yield Circumstance(name, sentence, advice)


def _other_parallelism(walk: Walk) -> Iterator[Circumstance]:
    """How many processes share the work, and what wraps the model for them."""
    runs = (walk.reference, walk.candidate)
    advice = "Run both in the same parallel way before judging losses and metrics: wrapper, processes, batch of each."
    worlds = [wording.plural(run.world_size, "process", "processes") for run in runs]
    if worlds[0] != worlds[1]:
        yield Circumstance(
            "world_size", say("the reference ran in {} and the candidate in {}", worlds[0], worlds[1]), advice
        )
    wrappers = [wording.listing(list(run.flags.get(WRAPPERS, ()))) or "no parallel wrapper" for run in runs]
    if wrappers[0] != wrappers[1]:
        words = say("the model runs in {} in the reference and in {} in the candidate", wrappers[0], wrappers[1])
        yield Circumstance(WRAPPERS, words, "" if worlds[0] != worlds[1] else advice)


def _first_is_dropout(walk: Walk) -> bool:
    first = walk.first
    if first is None or first.kind is not Kind.VALUE or first.statistics_only:
        return False
    key = first.comparison.key
    return key.slot.startswith("output") and telling.is_dropout(walk.modules.get(key.name))
