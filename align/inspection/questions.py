"""The questions that are put to every run, in the order of a training step, each answered in one sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from align.inspection.inspection import Inspection, Job
from align.records import Reply

Question: TypeAlias = Callable[[Inspection], Reply]

QUESTIONS: tuple[Question, ...] = ()
"""What is asked of one run."""

JOB_QUESTIONS: tuple[Callable[[Job], Reply], ...] = ()
"""What is asked of all ranks of a job together."""
