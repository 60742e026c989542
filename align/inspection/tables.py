"""The tables that analyses give to reports: one function each, in the order of the questions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from align.inspection import fit_table, headroom_table, learning_table, nonfinite_table, ranks_table, scale_questions
from align.inspection.inspection import Inspection, Job
from align.records import Table

MakesTables: TypeAlias = Callable[[Inspection], Iterable[Table]]

TABLES: tuple[MakesTables, ...] = (
    nonfinite_table.tables,
    headroom_table.tables,
    scale_questions.tables,
    fit_table.tables,
    learning_table.tables,
)
"""Functions from one run to its tables; none where the run holds nothing for them. A table without rows is left out."""

JOB_TABLES: tuple[Callable[[Job], Iterable[Table]], ...] = (ranks_table.tables,)
"""Functions from all ranks of a job to tables."""


def tables_of(job: Job) -> tuple[Table, ...]:
    """The tables of the first rank, then those of the job."""
    of_run = [table for tables in TABLES for table in tables(job.ranks[0])]
    of_job = [table for tables in JOB_TABLES for table in tables(job)]
    return tuple(table for table in (*of_run, *of_job) if table.rows)
