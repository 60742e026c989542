"""What `load_state_dict` left out: keys of the file that no parameter took, parameters that no key filled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from align.hooks.renames import renamed_part

if TYPE_CHECKING:
    from align.hooks.recorder import Recorder

MAXIMUM_LOADS = 16
EXAMPLES = 3


class LoadWatch:
    """Notes each call of `load_state_dict` by the script; those that a call makes itself are a part of it."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def loaded(self, module: Any, given: Any, answer: Any) -> None:
        """A module was given a state dict; the answer holds the keys that were missing and those that it has not."""
        run = self._recorder.run_info
        missing, unexpected = (list(getattr(answer, name, ())) for name in ("missing_keys", "unexpected_keys"))
        if len(run.loads) >= MAXIMUM_LOADS:
            return
        note = {
            "class": type(module).__name__,
            "step": self._recorder.clock.step,
            "keys": len(given),
            "missing": len(missing),
            "unexpected": len(unexpected),
            "missing_examples": missing[:EXAMPLES],
            "unexpected_examples": unexpected[:EXAMPLES],
            **(prefix_between(missing, unexpected) or _renaming(module, given, missing, unexpected)),
        }
        self._recorder.run_info = replace(run, loads=(*run.loads, note))


def _renaming(module: Any, given: Any, missing: Sequence[str], unexpected: Sequence[str]) -> dict[str, Any]:
    """What `renamed_part` finds in the keys that were left out on both sides."""
    if not missing or not unexpected:
        return {}
    own = dict(chain(module.named_parameters(remove_duplicate=False), module.named_buffers(remove_duplicate=False)))
    return renamed_part(*({key: _shape(values.get(key)) for key in keys} for keys, values in (
        (missing, own), (unexpected, given),
    )))  # fmt: skip


def _shape(value: Any) -> tuple[int, ...] | None:
    shape = getattr(value, "shape", None)
    return None if shape is None else tuple(shape)


def prefix_between(missing: Sequence[str], unexpected: Sequence[str]) -> dict[str, Any]:
    """The prefix that the file's keys have and the module's lack, or the other way round, and how many it explains."""
    for side, longer, shorter in (("file", unexpected, missing), ("module", missing, unexpected)):
        found = Counter(_prefixes(longer, set(shorter)))
        if found:
            prefix, explained = found.most_common(1)[0]
            return {"prefix": prefix, "prefix_in": side, "prefix_explains": explained}
    return {}


def _prefixes(longer: Iterable[str], shorter: set[str]) -> Iterable[str]:
    """What stands before the first dot or dots of a key whose rest is a key of the other side."""
    for key in longer:
        start = key.find(".")
        while start >= 0:
            if key[start + 1 :] in shorter:
                yield key[: start + 1]
                break
            start = key.find(".", start + 1)
