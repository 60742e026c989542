"""Terminal text of an inspection: the verdict, what each question found, the findings with what to do."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

from align.records import State
from align.reports.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from align.records import InspectResult

MARKS = {State.GOOD: "ok", State.BAD: "bad", State.UNKNOWN: "?", State.ABSENT: "-"}


def inspect_text(result: InspectResult) -> str:
    """The whole text of an inspection, without colour."""
    return "".join(f"{line}\n" for line in _lines(result))


def print_inspection(result: InspectResult, stream: IO[str]) -> None:
    """Write the text to a stream."""
    stream.write(inspect_text(result))


def _lines(result: InspectResult) -> Iterator[str]:
    yield f"{result.verdict.value.upper()}  {', '.join(result.paths)}"
    yield visible(result.summary)
    yield ""
    for reply in result.replies:
        yield f"  {MARKS[reply.state]:>3}  {reply.question:<16} {visible(reply.sentence)}"
    for finding in result.findings:
        yield f"  {finding.severity} {finding.code} {finding.label}"
        yield f"    {visible(finding.summary)}"
        yield f"    What to do: {visible(finding.advice)}"
