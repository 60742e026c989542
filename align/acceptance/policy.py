"""Policies of acceptance: which criteria count, with which limits, and where each limit is from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from align.acceptance.policy_keys import FLOOR_TIMES, FORMS, SMALLEST, Form
from align.acceptance_records import Limit, PolicyInfo
from align.records import Word


class Need(Word):
    """Whether the verdict depends on a criterion: always, never, or where it could be measured."""

    ALWAYS = "always"
    NEVER = "never"
    WHEN_MEASURED = "when measured"


@dataclass(frozen=True, slots=True)
class Setting:
    """What a policy says of one criterion; `numbers` are its other numbers, those with a default always."""

    code: str
    need: Need
    limit: float | None
    source: str
    numbers: Mapping[str, float]

    @property
    def form(self) -> Form:
        """How this criterion is written."""
        return FORMS[self.code]

    def limited(self, value: float | None = None, source: str | None = None) -> Limit | None:
        """The limit as it is shown; `value` and `source` where these are not the policy's own."""
        value = self.limit if value is None else value
        return None if value is None else Limit(value, self.form.way, self.source if source is None else source)


@dataclass(frozen=True, slots=True)
class Policy:
    """Criteria in their order, and what holds for all of them.

    Differences are relative to the reference's loss, or to the share `smallest` of its first loss where that is more.
    Repeats of the reference raise a limit to `floor_times` what they differ by. Below `minimum_steps` an acceptance is
    preliminary.
    """

    name: str
    title: str
    settings: tuple[Setting, ...]
    minimum_steps: int
    minimum_source: str
    smallest: float = SMALLEST.default or 0.0
    floor_times: float = FLOOR_TIMES.default or 1.0
    floor_source: str = ""
    path: str = ""
    sha256: str = ""
    text: str = ""

    @property
    def info(self) -> PolicyInfo:
        """What an acceptance tells of its policy."""
        return PolicyInfo(self.name, self.path, self.sha256, self.minimum_steps, self.text)

    def setting(self, code: str) -> Setting | None:
        """What is said of one criterion, None where the policy leaves it out."""
        return next((each for each in self.settings if each.code == code), None)
