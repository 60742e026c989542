"""Sentences on which elements of the first tensor that differs are wrong."""

from __future__ import annotations

from typing import Any

from align import wording
from align.sentences import say
from align.wrong_part import WrongPart


def told(part: WrongPart | None) -> str:
    """Where the wrong elements are, in a sentence begun with a blank; empty where they are everywhere or not known."""
    if part is None:
        return ""
    if part.dimension is not None:
        return say(" {}", _slice(part))
    if part.run is not None:
        return say(" {}", _run(*part.run, part.numel))
    if part.grows is not None:
        begin, end = map(wording.relative, part.growth)
        return say(" The relative difference grows along dimension {}, from {} to {}.", part.grows, begin, end)
    return ""


def _slice(part: WrongPart) -> str:
    last = part.dimension == len(part.shape) - 1
    what = say("column" if last and len(part.shape) > 1 else "element" if last else "place")
    along = "" if last else say(" along dimension {}", part.dimension)
    several = part.stop - part.start > 1
    places = say("{} to {}", part.start, part.stop - 1) if several else f"{part.start}"
    ends = ", the last," if part.stop == part.length and part.start > 0 else ""
    return say(
        "Only {}{} {} of {}{}{} differ{} beyond rounding; the others agree.",
        what,
        say("s") if several else "",
        places,
        part.length,
        along,
        ends,
        "" if several else say("s"),
    )


def _run(start: int, stop: int, numel: int) -> str:
    if stop - start == 1:
        return say(
            "Only element {} of {} (in row-major order) differs beyond rounding; the others agree.", start, numel
        )
    return say(
        "Only elements {} to {} of {} (in row-major order) differ beyond rounding; the others agree.",
        start,
        stop - 1,
        numel,
    )


def evidence(part: WrongPart | None) -> dict[str, Any]:
    """The numbers behind the sentence."""
    if part is None:
        return {}
    found: dict[str, Any] = {"wrong_elements": part.count}
    if part.dimension is not None:
        found["wrong_slice"] = {"dimension": part.dimension, "start": part.start, "stop": part.stop}
    if part.run is not None:
        found["wrong_run"] = list(part.run)
    if part.grows is not None:
        found["grows_along"] = part.grows
    return found
