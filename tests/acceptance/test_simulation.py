"""A small part of the benchmark: healthy pairs pass, each fault is found, and the first failure names its cause."""

from __future__ import annotations

import pytest

from align.acceptance import read_policy
from benchmarks.acceptance import Counts, measure, policies, table
from benchmarks.acceptance_simulation import BY_NAME, CASES, Right

PAIRS = 4
FIRST = {
    "first step +1 %": {"first-loss"},
    "+1 % everywhere": {"first-loss"},
    "bias 0.6 %": {"bias"},
    "bias 1 %": {"divergence", "bias"},
    "bias 3 %": {"divergence"},
    "late drift to 1 %": {"divergence", "bias"},
    "late drift to 3 %": {"divergence"},
    "5 more spikes": {"spikes"},
    "15 more spikes": {"spikes"},
    "batches one step late": {"shift"},
    "batches in another order": {"data-order"},
    "runs away": {"divergence"},
    "stalls": {"divergence"},
    "one NaN": {"non-finite"},
}
DEFAULT = {"default": read_policy()}


@pytest.mark.parametrize("name", BY_NAME)
def test_simulated_pairs_are_told_apart(name: str) -> None:
    counts = measure(BY_NAME[name], DEFAULT, PAIRS, 1000)
    if counts.case.right is Right.FAIL:
        assert counts.failed == 1.0
        named = {part.split()[0] for part in counts.first.split(", ")}
        assert named <= FIRST[name]
    else:
        assert counts.failed == 0.0
    if counts.case.right is Right.REMARK:
        assert counts.remarked > 0.5


def test_published_rules_miss_what_the_default_policy_finds() -> None:
    found = measure(BY_NAME["late drift to 1 %"], policies(), 2, 1000)
    assert found.failed == 1.0
    assert found.published == {"MindFormers": 0.0, "mean < 2 %": 0.0, "mean < 1 %": 0.0}


def test_the_table_has_a_row_for_each_kind() -> None:
    rows = [Counts(case, 1.0, 0.0, "bias 100%", {"MindFormers": 0.5}) for case in CASES]
    lines = table(rows).splitlines()
    assert lines[0] == "| pair | right | default: FAIL | with a remark | fails first | MindFormers |"
    assert lines[2] == "| healthy device, 0.1 % | passes | 100 | 0 | bias 100% | 50 |"
    assert len(lines) == 2 + len(CASES)
