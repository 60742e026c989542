"""Two scripts behind two runs that part: a note says so, once, where both are known and are not one."""

from __future__ import annotations

from pathlib import Path

import pytest

from align.records import RunInfo
from tests.numpy_run import make
from tests.running import align

NOTE = (
    "note: The scripts of the two runs differ (0123456789ab in the reference, fedcba987654 in the candidate): compare "
    "them, a change there may be what parts the runs."
)
CHINESE = "标杆侧 0123456789ab"


def printed(folder: Path, hashes: tuple[str, str], rate: float, language: str) -> str:
    """What `align diff` prints of two runs of these scripts, the lines put together."""
    for name, script, learning in zip("ab", hashes, (1e-3, rate), strict=True):
        make(folder / f"{name}.h5", learning_rate=learning, run=RunInfo(outcome="finished", script_hash=script))
    return " ".join(align("diff", "a.h5", "b.h5", "--lang", language, cwd=folder).stdout.split())


MINE, OTHER = "0123456789abcdef", "fedcba9876543210"


@pytest.mark.parametrize(
    ("hashes", "rate", "times"),
    [
        ((MINE, OTHER), 0.1, 1),
        ((MINE, MINE), 0.1, 0),
        ((MINE, ""), 0.1, 0),
        (("", ""), 0.1, 0),
        ((MINE, OTHER), 1e-3, 0),
    ],
    ids=["other-script", "one-script", "one-unknown", "both-unknown", "aligned"],
)
def test_scripts_that_differ_are_noted_once_where_the_runs_part(
    tmp_path: Path, hashes: tuple[str, str], rate: float, times: int
) -> None:
    text = printed(tmp_path, hashes, rate, "en")

    assert text.count(NOTE) == times
    assert text.count("scripts of the two runs") == times


def test_the_note_is_there_in_chinese(tmp_path: Path) -> None:
    assert printed(tmp_path, (MINE, OTHER), 0.1, "zh").count(CHINESE) == 1
