"""All that is found out of one run; each part is worked out when a question or a rule first asks for it."""

from __future__ import annotations

from align.inspection.view import RunView


class Inspection:
    """One run and what was found out of it. Raises nothing: what cannot be told is an answer."""

    def __init__(self, view: RunView) -> None:
        self.view = view


class Job:
    """The inspections of all ranks of one job, in the order of ranks; one for a run of one process."""

    def __init__(self, ranks: tuple[Inspection, ...]) -> None:
        self.ranks = ranks
