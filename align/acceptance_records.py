"""The records of acceptance: criteria, what was measured, and what it comes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from align.curve_records import Curves
from align.records import RunInfo, Word


class Acceptance(Word):
    """The outcome of `align accept`."""

    PASS = "pass"  # noqa: S105 - no password
    FAIL = "fail"
    UNKNOWN = "unknown"


class Outcome(Word):
    """The outcome of one criterion; one that passes with a remark stands among the deviations."""

    PASS = "pass"  # noqa: S105 - no password
    FAIL = "fail"
    NOT_MEASURED = "not measured"


class Measure(Word):
    """How the number of a criterion is written."""

    PERCENT = "percent"
    RELATIVE = "relative"
    TIMES = "times"
    COUNT = "count"
    STEP = "step"
    NUMBER = "number"
    SECONDS = "seconds"


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit as a policy gives it: `value`, the way to read it (`at most`, `at least`), and where it is from."""

    value: float
    way: str
    source: str


@dataclass(frozen=True, slots=True)
class Criterion:
    """One line of an acceptance: what was measured against which limit, and what follows.

    `code` is its stable name in policies, such as `mean-error`. `measured` is None where it could not be told. The
    `sentence` says what was measured and, of a failure, where (the step); `advice` what to run or to look at, of a
    criterion that was not measured how to measure it. `remark` marks one that passes and is worth a word.
    """

    code: str
    outcome: Outcome
    measured: float | None
    measure: Measure
    limit: Limit | None
    required: bool
    sentence: str
    advice: str = ""
    remark: bool = False
    evidence: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PolicyInfo:
    """Which policy was applied: its name, the file (empty for one that is built in), its hash, and what it says."""

    name: str
    path: str
    sha256: str
    minimum_steps: int
    text: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class AcceptResult:
    """All that `align accept` knows; text, JSON, JUnit, Markdown and the document are renderings of it.

    `steps` is the number of steps that were compared, `preliminary` says that the policy asks for more. `criteria`
    stand in the order of the policy. `deviations` are sentences worth a word, `not_covered` what this acceptance says
    nothing of (never empty). `window` is the length of the means over steps, in steps. `title` and `project` are what
    the user gave for the head of the document.

    `reference` and `candidate` are the curves at the common steps, in the reference's numbers: both are equally long.
    `recorded` says at how many steps each file has a loss, `floors` which repeats of the reference were given.
    """

    reference: Curves
    candidate: Curves
    policy: PolicyInfo
    verdict: Acceptance
    summary: str
    criteria: tuple[Criterion, ...]
    steps: int
    preliminary: bool
    window: int
    deviations: tuple[str, ...] = ()
    not_covered: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    title: str = ""
    project: str = ""
    made: str = ""
    align_version: str = ""
    floors: tuple[str, ...] = ()
    recorded: tuple[int, int] = (0, 0)

    @property
    def runs(self) -> tuple[RunInfo | None, RunInfo | None]:
        """What is known of both runs."""
        return self.reference.run, self.candidate.run
