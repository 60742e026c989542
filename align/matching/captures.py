"""Which module of one capture is which of another: the names that both hold, and what is known of the modules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from align.capture_file import Capture
from align.matching.looks import Looks, look_at
from align.matching.rules import MapRule
from align.pairing import GIVEN, NamePairs, is_walked, pair_names
from align.records import INIT_STEP, TensorRecord


def pair_captures(
    reference: Capture, candidate: Capture, steps: Sequence[int], renames: Sequence[tuple[str, str]] = (),
    rules: Sequence[MapRule] = (),
) -> NamePairs:  # fmt: skip
    """Pair the module names of two captures; the first of their common steps tells what the modules are."""

    def looks() -> tuple[Looks, Looks]:
        return _looks(reference, steps[0]), _looks(candidate, steps[0])

    return pair_names(names_of(reference, steps[0]), names_of(candidate, steps[0]), renames, rules, looks)


def names_of(capture: Capture, step: int) -> Iterator[str]:
    """The names of modules and owners of parameters; arguments and the loss are no names of the model."""
    yield from capture.modules
    for records in _sources(capture, step):
        for record in records:
            if record.key.phase not in GIVEN:
                yield record.key.name


def _sources(capture: Capture, step: int) -> Iterator[list[TensorRecord]]:
    yield [record for record in capture.records(step) if is_walked(record)]
    if capture.has_init:
        yield capture.records(INIT_STEP)


def _looks(capture: Capture, step: int) -> Looks:
    initial = capture.records(INIT_STEP) if capture.has_init else ()
    return look_at(names_of(capture, step), capture.modules, initial, capture.records(step))
