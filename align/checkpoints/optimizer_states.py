"""States of optimizers: whether each stands with the parameter that it belongs to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from align import wording
from align.checkpoint_files import Checkpoint, Entry, OptimizerState
from align.checkpoints.bytes_first import BytesReader
from align.checkpoints.contents import fingerprint
from align.checkpoints.keys import STATISTICS, is_derived
from align.checkpoints.telling import Compared, finding
from align.records import Finding, Severity
from align.sentences import say

SHOWN = 4
IN_ORDER = (
    "Build the optimizer from the parameters in the order in which it was saved: its states have numbers, no names."
)


def optimizer_states(compared: Compared) -> Iterator[Finding]:
    """States that stand with another parameter than in the reference, of another shape, or are missing."""
    for label, theirs in compared.candidate.optimizers.items():
        yield from _wrong_shapes(compared, label, theirs)
    ours = list(compared.reference.optimizers.items())
    if not ours or not compared.candidate.optimizers:
        return
    others = list(compared.candidate.optimizers.items())
    for (label, mine), (_, other) in zip(ours, others, strict=False):
        yield from _compare(compared, label, mine, other)


def _wrong_shapes(compared: Compared, label: str, optimizer: OptimizerState) -> Iterator[Finding]:
    """A state whose shape is not that of the parameter at its place in the order of the file."""
    names = parameter_names(compared.candidate, optimizer)
    wrong = []
    for number, name in names.items():
        shape = compared.candidate.entries[name].shape if name in compared.candidate.entries else None
        moments = [entry for entry in optimizer.states.get(number, {}).values() if entry.numel > 1]
        if shape is not None and moments and all(sorted(entry.shape) != sorted(shape) for entry in moments):
            wrong.append(
                say(
                    "number {} ({}) is {}, its state {}",
                    number,
                    name,
                    wording.shape(shape),
                    wording.shape(moments[0].shape),
                )
            )
    if wrong and optimizer.names:
        yield finding(
            "AL701",
            Severity.ERROR,
            say(
                "In the {} of the {} {} cannot belong to the parameter of that number: {}.",
                label,
                compared.candidate_word,
                wording.plural(len(wrong), "state"),
                wording.listing(wrong[:SHOWN], len(wrong)),
            ),
            IN_ORDER,
            wrong=len(wrong),
            optimizer=label,
        )


def parameter_names(checkpoint: Checkpoint, optimizer: OptimizerState) -> Mapping[int, str]:
    """The name of each parameter number: as the groups tell, else in the order of the file where the counts agree.

    Tied entries are one parameter, and buffers none.
    """
    if optimizer.names:
        return optimizer.names
    names = [
        name
        for name, entry in checkpoint.entries.items()
        if not entry.tied_to and not STATISTICS.search(name) and not is_derived(name, entry)
    ]
    return dict(zip(sorted(optimizer.order), names, strict=True)) if len(names) == len(optimizer.order) else {}


def _compare(compared: Compared, label: str, ours: OptimizerState, theirs: OptimizerState) -> Iterator[Finding]:
    moved, changed = _differing(compared, ours, theirs)
    if moved:
        yield _moved(label, moved, parameter_names(compared.candidate, theirs))
    if changed:
        yield finding(
            "AL701",
            Severity.ERROR,
            say(
                "In the {} the states of {} of {} parameters have other values than in the reference.",
                label,
                changed,
                len(theirs.states),
            ),
            "Check the steps at which both were saved.",
            changed=changed,
            optimizer=label,
        )
    if len(ours.states) != len(theirs.states):
        yield finding(
            "AL701",
            Severity.ERROR,
            say(
                "The {} holds states of {} in the reference and of {} in the candidate.",
                label,
                wording.plural(len(ours.states), "parameter"),
                len(theirs.states),
            ),
            "Compare the parameter groups of both: some parameters are not given to the optimizer, or got no gradient.",
            optimizer=label,
        )


def _differing(compared: Compared, ours: OptimizerState, theirs: OptimizerState) -> tuple[dict[int, int], int]:
    """The reference's number of each state that belongs to another parameter there; how many have values of none."""
    expected = _expected(compared, ours, theirs)
    reader = BytesReader()
    moved: dict[int, int] = {}
    homes: dict[int, int] | None = None
    changed = 0
    for number, state in theirs.states.items():
        home = expected.get(number)
        if home is None or home not in ours.states or _same(state, ours.states[home], reader):
            continue
        if homes is None:
            homes = _homes(ours.states)
        found = homes.get(_content(state) or -1)
        if found is not None and found != home:
            moved[number] = found
        else:
            changed += 1
    return moved, changed


def _moved(label: str, moved: Mapping[int, int], names: Mapping[int, str]) -> Finding:
    """What is said of states that stand with another parameter."""
    told = [say("{} has that of {}", _with_name(number, names), home) for number, home in list(moved.items())[:SHOWN]]
    return finding(
        "AL701",
        Severity.ERROR,
        say(
            "In the {} {} of the candidate {} to another parameter in the reference: {}.",
            label,
            wording.plural(len(moved), "state"),
            "belongs" if len(moved) == 1 else "belong",
            wording.listing(told, len(moved)),
        ),
        IN_ORDER,
        moved=dict(list(moved.items())[:50]),
        optimizer=label,
    )


def _expected(compared: Compared, ours: OptimizerState, theirs: OptimizerState) -> dict[int, int]:
    """The number of the reference for each number of the candidate: by the names of the parameters where known."""
    mine, others = parameter_names(compared.reference, ours), parameter_names(compared.candidate, theirs)
    numbers = {name: number for number, name in mine.items()}
    partners = {pair.names.candidate: pair.names.reference for pair in compared.pairs}
    if mine and others and all(name in partners for name in others.values()):
        found = {number: numbers.get(partners[name]) for number, name in others.items()}
        return {number: home for number, home in found.items() if home is not None}
    return {number: number for number in theirs.states}


def _with_name(number: int, names: Mapping[int, str]) -> str:
    return say("number {} ({})", number, names[number]) if number in names else say("number {}", number)


def _same(ours: Mapping[str, Entry], theirs: Mapping[str, Entry], reader: BytesReader) -> bool:
    if ours.keys() != theirs.keys():
        return False
    return all(
        (mine.shape, mine.dtype) == (theirs[slot].shape, theirs[slot].dtype)
        and mine.bytes_at is not None
        and theirs[slot].bytes_at is not None
        and reader.same(mine, theirs[slot])
        for slot, mine in ours.items()
    )


def _homes(states: Mapping[int, Mapping[str, Entry]]) -> dict[int, int]:
    """The number of the parameter by what its state holds; what two parameters hold alike is left out."""
    found: dict[int, list[int]] = {}
    for number, state in states.items():
        content = _content(state)
        if content is not None:
            found.setdefault(content, []).append(number)
    return {content: numbers[0] for content, numbers in found.items() if len(numbers) == 1}


def _content(state: Mapping[str, Entry]) -> int | None:
    """A hash of the moments of one parameter; None where there are none, or they are all zero."""
    moments: Sequence[Entry] = [entry for entry in state.values() if entry.readable and entry.numel > 1]
    prints = [fingerprint(entry) for entry in moments]
    telling = [each.multiset for each in prints if not each.constant]
    return hash(tuple(telling)) if telling else None
