"""Cases of several ranks as real processes: each job told by its own ranks, by two jobs, and under benign noise."""

from __future__ import annotations

from pathlib import Path

import pytest

from align.commands import diff_files
from align.records import Health, Phase, Severity, Verdict
from tests.rank_runs import capture_jobs
from tests.running import BENIGN, CASES, capture_all
from tests.said import accused, inspected

pytest.importorskip("torch")

LABELS = {
    "rank_partial_gradient": "gradients-not-reduced",
    "rank_norm_replicas": "gradient-norm-differs",
    "rank_extra_draw": "rng-mismatch",
    "rank_same_masks": "rng-duplicated",
    "rank_other_start": "ranks-differ",
    "rank_whole_data": "duplicate-samples",
    "rank_sampler_parts": "missing-samples",
}
"""What the files of one job's ranks tell by themselves; of `rank_token_means` no rank knows what the loss should be."""

PLACES = {
    "rank_partial_gradient": (0, "update", "up", "weight"),
    "rank_norm_replicas": (0, "optimizer", "clip", "norm"),
    "rank_extra_draw": (0, "forward", "drop", "output.0"),
    "rank_same_masks": (0, "forward", "drop", "output.0"),
    "rank_other_start": (-1, "init", "first", "weight"),
    "rank_whole_data": (0, "input", "x", "value"),
    "rank_sampler_parts": (None, "input", "<DataLoader>", None),
}

PAIRS = {
    "rank_token_means": (0, Phase.UPDATE, "embed", "loss-normalization"),
    "rank_partial_gradient": (0, Phase.UPDATE, "up", "gradients-not-reduced"),
    "rank_norm_replicas": (0, Phase.UPDATE, "norm", "gradient-norm-differs"),
    "rank_extra_draw": (0, Phase.FORWARD, "drop", "rng-mismatch"),
    "rank_whole_data": (0, Phase.INPUT, "x", "data-order"),
    "rank_sampler_parts": (0, Phase.INPUT, "x", "missing-samples"),
}
"""Where rank 0 of the bad job parts from rank 0 of the good one; the others differ on rank 1 first."""

ALONE = ("rank_token_means", "rank_partial_gradient")
"""What one process can run as well."""

NAMES = (*LABELS, "rank_token_means")
NOISY = ("rank_partial_gradient", "rank_norm_replicas", "rank_extra_draw", "rank_same_masks")
"""Also captured on the simulated NPU."""


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every case good and bad, on two ranks; some on the simulated NPU, and in one process."""
    folder = tmp_path_factory.mktemp("ranks")
    variants = ("good", "bad")
    capture_jobs(
        [(folder / f"{name}.{one}.h5", [CASES / f"{name}.py", "--variant", one]) for name in NAMES for one in variants]
    )
    capture_jobs(
        [
            (folder / f"{name}.{one}.npu.h5", [CASES / f"{name}.py", "--variant", one, "--device", "npu"])
            for name in NOISY
            for one in variants
        ],
        device="npu",
        simulator=BENIGN,
    )
    capture_all("cpu", [(folder / f"{name}.one.h5", [CASES / f"{name}.py", "--variant", "good"]) for name in ALONE])
    return folder


@pytest.mark.parametrize("name", LABELS)
def test_the_ranks_of_one_job_tell_the_cause(captures: Path, name: str) -> None:
    result = inspected(captures / f"{name}.bad.h5")
    first = result.findings[0]
    assert (first.label, first.severity, result.verdict) == (LABELS[name], Severity.ERROR, Health.UNHEALTHY)
    assert (first.where.step, first.where.phase, first.where.name, first.where.slot) == PLACES[name]
    assert [one.label for one in result.findings if one.severity is not Severity.NOTE] == [LABELS[name]]


@pytest.mark.parametrize("name", NAMES)
def test_the_good_job_is_healthy(captures: Path, name: str) -> None:
    result = inspected(captures / f"{name}.good.h5")
    assert (result.verdict, accused(captures / f"{name}.good.h5")) == (Health.HEALTHY, [])
    assert len(result.paths) == 2


@pytest.mark.parametrize("name", NOISY)
def test_noise_of_a_device_changes_nothing(captures: Path, name: str) -> None:
    good, bad = (captures / f"{name}.{variant}.npu.h5" for variant in ("good", "bad"))
    assert accused(good) == []
    assert [one.label for one in accused(bad)] == [LABELS[name]]
    if "drop" not in PLACES[name]:  # the masks of the simulated device are its own
        assert diff_files(str(captures / f"{name}.good.h5"), str(good)).verdict is Verdict.ALIGNED


@pytest.mark.parametrize("name", PAIRS)
def test_rank_0_parts_from_the_good_job_where_the_fault_reaches_it(captures: Path, name: str) -> None:
    result = diff_files(str(captures / f"{name}.good.rank0000.h5"), str(captures / f"{name}.bad.rank0000.h5"))
    first = result.first_divergence
    assert first is not None
    assert (first.step, first.phase, first.name, result.findings[0].label) == PAIRS[name]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("rank_same_masks", (0, Phase.FORWARD, "drop", "seed-mismatch")),
        ("rank_other_start", (-1, Phase.INIT, "first", "seed-mismatch")),
    ],
)
def test_two_jobs_part_on_the_rank_that_differs_first(
    captures: Path, name: str, expected: tuple[int, Phase, str, str]
) -> None:
    result = diff_files(str(captures / f"{name}.good.h5"), str(captures / f"{name}.bad.h5"))
    first = result.first_divergence
    assert first is not None
    assert (result.reference.rank, result.counts["ranks"], result.findings[0].where.rank) == (1, 2, 1)
    assert (first.step, first.phase, first.name, result.findings[0].label) == expected


@pytest.mark.parametrize("name", ALONE)
def test_one_process_is_what_two_ranks_should_be(captures: Path, name: str) -> None:
    alone = captures / f"{name}.one.h5"
    assert diff_files(str(alone), str(captures / f"{name}.good.h5")).verdict is Verdict.ALIGNED
    result = diff_files(str(alone), str(captures / f"{name}.bad.h5"))
    first = result.first_divergence
    assert first is not None
    assert (first.step, first.phase, first.name, result.findings[0].label) == PAIRS[name]


def test_what_is_said_of_gradients_that_are_not_reduced(captures: Path) -> None:
    summary = inspected(captures / "rank_partial_gradient.bad.h5").summary
    assert summary == (
        "Step 0, update: both ranks begin with the same weights, but the optimizer of each takes gradients of its own: "
        "not one of 4 parameters has the same gradient on them (relative L2 1.1 to 1.6; first up weight). Nothing "
        "reduces the gradients, so each rank trains a model of its own."
    )


def test_what_is_said_of_a_norm_that_counts_replicas(captures: Path) -> None:
    summary = inspected(captures / "rank_norm_replicas.bad.h5").summary
    assert summary == (
        "Step 0, optimizer: the gradients are clipped by a norm of 2.972, but theirs is 2.451. The difference is what "
        "all ranks hold: 4 parameters (norm weight, norm bias, out weight and 1 more) count 2 times, once for each "
        "rank. The gradients are multiplied by 0.01682 instead of 0.0204."
    )


def test_what_is_said_of_other_weights_of_the_ranks(captures: Path) -> None:
    bad = str(captures / "rank_token_means.bad.h5")
    result = diff_files(str(captures / "rank_token_means.one.h5"), bad)
    assert result.summary == (
        "Step 0, update: losses and gradients of this rank agree in both runs, but what the optimizer takes in the "
        "reference is 0.6667 of this rank's gradients and 0.3333 of what the candidate takes, in all 5 parameters: the "
        "gradients of the ranks are averaged with other weights. If the candidate takes their plain mean, the "
        "reference weighs this rank 0.8333 and the other 0.1667."
    )
