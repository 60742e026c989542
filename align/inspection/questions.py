"""The questions that are put to every run, in the order of a training step, each answered in one sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from align.inspection import learning_questions, nonfinite_question, ranks_questions, scale_questions, start_questions
from align.inspection.inspection import Inspection, Job
from align.records import Reply

Question: TypeAlias = Callable[[Inspection], Reply]

QUESTIONS: tuple[Question, ...] = (
    start_questions.checkpoint,
    start_questions.data,
    nonfinite_question.finite,
    nonfinite_question.headroom,
    learning_questions.recomputing,
    scale_questions.fp16_range,
    scale_questions.loss_scale,
    scale_questions.clipping,
    scale_questions.skipped_steps,
    learning_questions.optimizer,
    learning_questions.parameters,
    learning_questions.loss,
    learning_questions.step_time,
)
"""What is asked of one run."""

JOB_QUESTIONS: tuple[Callable[[Job], Reply], ...] = (
    ranks_questions.ranks,
    ranks_questions.samples,
    ranks_questions.weights,
    ranks_questions.masks,
    ranks_questions.gradients,
    ranks_questions.norm,
)
"""What is asked of all ranks of a job together; a run of one process is not asked."""
