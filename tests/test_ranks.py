"""What the ranks of a job tell of one another: each cause, what looks like it and is not, and what is well."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from align.commands import inspect_files
from align.errors import ComparisonError
from align.inspection.ranks_merging import merged
from align.records import InspectResult, Reply, RunInfo, Severity, State
from tests.builders import Array
from tests.rank_files import Rank, gradients, inspect_ranks, random, weights

FIRST, SECOND = random(90, 4, 5), random(91, 4, 5)
RUN = RunInfo(outcome="finished", parameters_on="cpu")
ERROR, WARNING = Severity.ERROR, Severity.WARNING


def found(result: InspectResult) -> list[tuple[str, Severity]]:
    """The labels that the ranks of a job are accused of."""
    return [(one.label, one.severity) for one in result.findings if one.severity is not Severity.NOTE]


def replicas(**changes: object) -> list[Rank]:
    """Two healthy replicas, of which the second has these changes."""
    return [Rank(batch=FIRST), replace(Rank(batch=SECOND), **changes)]  # type: ignore[arg-type]


def test_healthy_replicas_are_accused_of_nothing(tmp_path: Path) -> None:
    assert found(inspect_ranks(tmp_path, replicas())) == []


# ---- weights


def test_other_weights_and_one_gradient_are_told(tmp_path: Path) -> None:
    result = inspect_ranks(tmp_path, replicas(init=weights(7)))
    assert found(result) == [("ranks-differ", ERROR)]
    assert result.findings[0].where.rank == 1
    assert result.summary.startswith("Before step 0 rank 1 holds other weights than rank 0: 2 of 3 parameters differ (")


def test_other_weights_and_other_gradients_may_be_parts(tmp_path: Path) -> None:
    assert found(inspect_ranks(tmp_path, replicas(init=weights(7), updates=gradients(70)))) == []


def test_weights_that_differ_in_rounding_are_one(tmp_path: Path) -> None:
    near = {owner: (value * np.float32(1 + 1e-7)).astype(np.float32) for owner, value in weights().items()}
    assert found(inspect_ranks(tmp_path, replicas(init=near))) == []


def test_buffers_of_replicas_that_differ_are_a_warning(tmp_path: Path) -> None:
    table = {("fc", "table"): random(5, 8)}
    ranks = [replace(one, buffers=table) for one in replicas()]
    assert found(inspect_ranks(tmp_path, ranks)) == []
    ranks[1] = replace(ranks[1], buffers={("fc", "table"): random(6, 8)})
    (tmp_path / "other").mkdir()
    assert found(inspect_ranks(tmp_path / "other", ranks)) == [("ranks-differ", WARNING)]


def stepped(rate: float) -> dict[tuple[str, str], Array]:
    """The parameters after a step of gradient descent."""
    return {owner: value - np.float32(rate) * gradients(50)[owner] for owner, value in weights().items()}


def test_a_setting_that_depends_on_the_rank_is_told(tmp_path: Path) -> None:
    settings = {"momentum": 0.0, "weight_decay": 0.0}
    ranks = [
        replace(one, params=stepped(rate), settings={"lr": rate, **settings})
        for one, rate in zip(replicas(), (0.1, 0.2), strict=True)
    ]
    result = inspect_ranks(tmp_path, ranks)
    differing = next(one for one in result.findings if one.label == "ranks-differ")
    assert (differing.severity, differing.where.step, differing.where.phase) == (ERROR, 0, "param")
    assert "The optimizers are set differently: lr is 0.1 and 0.2 on the ranks in their order." in differing.summary


def test_parameters_after_equal_steps_are_equal(tmp_path: Path) -> None:
    assert found(inspect_ranks(tmp_path, [replace(one, params=stepped(0.1)) for one in replicas()])) == []


# ---- gradients


def test_gradients_of_each_rank_are_not_reduced(tmp_path: Path) -> None:
    result = inspect_ranks(tmp_path, replicas(updates=gradients(70)))
    assert found(result) == [("gradients-not-reduced", ERROR)]
    assert (result.findings[0].where.phase, result.findings[0].where.name) == ("update", "fc")


def test_some_gradients_of_their_own_may_be_meant(tmp_path: Path) -> None:
    mixed = {**gradients(50), ("head", "weight"): random(77, 3, 6)}
    assert found(inspect_ranks(tmp_path, replicas(updates=mixed))) == [("gradients-not-reduced", WARNING)]


def test_ranks_with_one_batch_need_no_reduction(tmp_path: Path) -> None:
    assert found(inspect_ranks(tmp_path, replicas(updates=gradients(70), batch=FIRST)))[:1] != [
        ("gradients-not-reduced", ERROR)
    ]


def test_weights_that_begin_as_constants_tell_nothing(tmp_path: Path) -> None:
    ones = {owner: np.ones_like(value) for owner, value in weights().items()}
    ranks = [replace(one, init=ones) for one in replicas(updates=gradients(70))]
    assert found(inspect_ranks(tmp_path, ranks)) == []


# ---- masks


def masked(batch: Array, mask_seed: int) -> tuple[Array, Array]:
    """What a dropout is given and makes of it."""
    given = np.tile(batch, (40, 40))
    kept = np.random.default_rng(mask_seed).random(given.shape) < 0.5
    return given, np.where(kept, 2 * given, 0).astype(np.float32)


def test_the_same_mask_on_other_samples_is_told(tmp_path: Path) -> None:
    ranks = [replace(one, masked=masked(one.batch, 3), state=5) for one in replicas()]
    assert found(inspect_ranks(tmp_path, ranks)) == [("rng-duplicated", ERROR)]


def test_masks_of_their_own_are_well(tmp_path: Path) -> None:
    ranks = [replace(one, masked=masked(one.batch, seed), state=seed) for seed, one in enumerate(replicas())]
    assert found(inspect_ranks(tmp_path, ranks)) == []


def test_one_equal_count_without_equal_states_may_be_chance(tmp_path: Path) -> None:
    ranks = [replace(one, masked=masked(one.batch, 3), state=seed) for seed, one in enumerate(replicas())]
    assert found(inspect_ranks(tmp_path, ranks)) == []


def parted(mask_seeds: tuple[int, int], seeds: tuple[int, int]) -> list[Rank]:
    """Two ranks with one batch that hold parts of a weight and drop elements of one tensor."""
    given = random(8, 4, 5)
    return [
        Rank(
            init={**weights(), ("head", "weight"): random(30 + place, 3, 6)},
            updates={**gradients(50), ("head", "weight"): random(40 + place, 3, 6)},
            batch=FIRST,
            masked=masked(given, mask_seeds[place]),
            state=mask_seeds[place],
            run=replace(RUN, seeds={"torch": seeds[place]}),
        )
        for place in range(2)
    ]


@pytest.mark.parametrize(
    ("masks", "seeds", "expected"),
    [((3, 4), (1, 1), [("rng-mismatch", ERROR)]), ((3, 4), (1, 2), [("rng-mismatch", WARNING)]), ((3, 3), (1, 1), [])],
    ids=["seeded alike", "seeded apart", "one mask"],
)
def test_a_shared_tensor_is_dropped_alike(
    tmp_path: Path, masks: tuple[int, int], seeds: tuple[int, int], expected: list[tuple[str, Severity]]
) -> None:
    assert found(inspect_ranks(tmp_path, parted(masks, seeds))) == expected


# ---- samples


def loader(**settings: object) -> RunInfo:
    """A run whose DataLoader has these settings."""
    return replace(RUN, loaders=({"name": "<DataLoader>", "dataset": "D", "length": 64, "batch_size": 4, **settings},))


def test_replicas_with_one_batch_are_a_warning_without_a_loader(tmp_path: Path) -> None:
    result = inspect_ranks(tmp_path, replicas(batch=FIRST))
    assert found(result) == [("duplicate-samples", WARNING)]
    assert result.findings[0].summary.startswith("Both ranks train on the same samples in step 0: all 4 samples of x")


def test_ranks_that_hold_parts_of_the_weights_share_their_batch(tmp_path: Path) -> None:
    assert found(inspect_ranks(tmp_path, parted((3, 3), (1, 1)))) == []


def test_blank_batches_are_the_same_everywhere(tmp_path: Path) -> None:
    blank = np.zeros((4, 5), np.float32)
    assert found(inspect_ranks(tmp_path, [replace(one, batch=blank) for one in replicas()])) == []


@pytest.mark.parametrize(
    ("of", "parts", "missing"),
    [(4, (0, 1), [2, 3]), (2, (0, 0), [1]), (2, (0, 1), None), (1, (0, 0), None)],
    ids=["of a larger job", "the same part", "all parts", "one part"],
)
def test_parts_that_no_rank_reads_are_told(
    tmp_path: Path, of: int, parts: tuple[int, int], missing: list[int] | None
) -> None:
    ranks = [
        replace(one, run=loader(distributed={"num_replicas": of, "rank": part}))
        for one, part in zip(replicas(), parts, strict=True)
    ]
    result = inspect_ranks(tmp_path, ranks)
    assert found(result) == ([] if missing is None else [("missing-samples", ERROR)])
    assert missing is None or result.findings[0].evidence["missing"] == missing


def test_parts_of_ranks_that_are_not_there_are_not_missed(tmp_path: Path) -> None:
    ranks = [
        replace(one, run=loader(distributed={"num_replicas": 4, "rank": part})) for part, one in enumerate(replicas())
    ]
    result = inspect_ranks(tmp_path, ranks, world=4)
    assert found(result) == []
    assert next(one for one in result.replies if one.question == "ranks") == Reply(
        "ranks", State.UNKNOWN,
        "2 of 4 ranks were read: the files of ranks 2-3 are not there. What only they do cannot be told; copy them "
        "beside the others.",
    )  # fmt: skip


# ---- the norm of clipping


def joint(*parts: Array) -> float:
    return math.sqrt(sum(float((part.astype(np.float64) ** 2).sum()) for part in parts))


def with_parts(norms: tuple[float, float] | None, *, factor: float = 1.0) -> list[Rank]:
    """Two ranks that share all but one weight, and the norms that they clip by (a limit that is not reached)."""
    ranks = []
    for place in range(2):
        updates = {**gradients(50), ("head", "weight"): random(40 + place, 3, 6)}
        clip = (joint(*updates.values()) * factor, 1e3) if norms is None else (norms[place], 1e3)
        init = {**weights(), ("head", "weight"): random(30 + place, 3, 6)}
        ranks.append(Rank(init=init, updates=updates, batch=FIRST, clip=clip))
    return ranks


def shared_and_parts() -> tuple[float, float]:
    shared = joint(gradients(50)["fc", "weight"], gradients(50)["fc", "bias"])
    return shared, joint(random(40, 3, 6), random(41, 3, 6))


def test_the_norm_over_all_ranks_is_right(tmp_path: Path) -> None:
    norm = math.hypot(*shared_and_parts())
    assert found(inspect_ranks(tmp_path, with_parts((norm, norm)))) == []


def test_what_all_ranks_hold_counts_once(tmp_path: Path) -> None:
    shared, parts = shared_and_parts()
    norm = math.sqrt(2 * shared**2 + parts**2)
    assert found(inspect_ranks(tmp_path, with_parts((norm, norm)))) == [("gradient-norm-differs", ERROR)]


def test_a_norm_of_one_part_is_told(tmp_path: Path) -> None:
    result = inspect_ranks(tmp_path, with_parts(None))
    assert found(result) == [("gradient-norm-differs", ERROR)]
    assert "each rank clips by the norm of what it holds (" in result.summary


def test_a_norm_that_is_not_understood_is_not_judged(tmp_path: Path) -> None:
    assert found(inspect_ranks(tmp_path, with_parts((3.0, 3.0)))) == []


@pytest.mark.parametrize(
    ("twice", "expected"),
    [(("head", "weight"), [("gradient-norm-differs", WARNING)]), (None, [])],
    ids=["one twice", "a part of them"],
)
def test_a_norm_in_one_process(
    tmp_path: Path, twice: tuple[str, str] | None, expected: list[tuple[str, Severity]]
) -> None:
    values = list(gradients(50).values())
    norm = joint(*values, gradients(50)[twice]) if twice else joint(*values[:2])
    path = Rank(clip=(norm, 1e3)).write(tmp_path / "run.h5", 0, 1)
    assert found(inspect_files(str(path))) == expected


# ---- one job


def test_a_rank_on_another_device_is_told(tmp_path: Path) -> None:
    ranks = [replace(one, run=replace(RUN, parameters_on=device)) for one, device in
             zip([*replicas(), Rank(batch=random(92, 4, 5))], ("npu", "cpu", "npu"), strict=True)]  # fmt: skip
    result = inspect_ranks(tmp_path, ranks)
    assert found(result) == [("environment-differs", ERROR)]
    assert (result.summary, result.findings[0].where.rank) == (
        "The ranks do not run alike: the parameters are on npu on ranks 0, 2, cpu on rank 1.",
        1,
    )


def test_other_versions_are_a_warning(tmp_path: Path) -> None:
    ranks = [replace(one, run=replace(RUN, versions={"torch": version})) for one, version in
             zip(replicas(), ("2.8.0", "2.9.0"), strict=True)]  # fmt: skip
    assert found(inspect_ranks(tmp_path, ranks)) == [("environment-differs", WARNING)]


@pytest.mark.parametrize(
    ("runs", "worlds", "numbers", "reason"),
    [
        ((RUN, RUN), (2, 4), (0, 1), "one is of a job of 2 ranks, the other of 4"),
        ((RUN, RUN), (2, 2), (0, 0), "both are rank 0"),
        ((RUN, replace(RUN, script_hash="b")), (2, 2), (0, 1), "they ran different scripts, or versions of one script"),
        (
            (
                replace(RUN, started="2026-01-01T10:00:00+00:00", ended="2026-01-01T11:00:00+00:00"),
                replace(RUN, started="2026-01-02T10:00:00+00:00", ended="2026-01-02T11:00:00+00:00"),
            ),
            (2, 2),
            (0, 1),
            "one had ended (2026-01-01T11:00:00+00:00) before the other began",
        ),
    ],
    ids=["world size", "rank", "script", "time"],
)
def test_files_of_different_jobs_are_refused(
    tmp_path: Path, runs: tuple[RunInfo, RunInfo], worlds: tuple[int, int], numbers: tuple[int, int], reason: str
) -> None:
    for place in range(2):
        Rank(run=runs[place]).write(tmp_path / f"run.rank000{place}.h5", numbers[place], worlds[place])
    first, second = (tmp_path / f"run.rank000{place}.h5" for place in range(2))
    expected = (
        f"Cannot inspect '{first}' and '{second}' together: {reason}, so they are not of one job. Remove the files of "
        "the older job, or name one file."
    )
    with pytest.raises(ComparisonError, match=f"^{re.escape(expected)}$"):
        inspect_files(str(tmp_path / "run.h5"))


def answer(state: State, sentence: str = "It is so.") -> Reply:
    return Reply("loss", state, sentence)


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([State.GOOD, State.GOOD], answer(State.GOOD)),
        ([State.GOOD, State.BAD, State.BAD], answer(State.BAD, "Ranks 1-2: It is so.")),
        ([State.BAD, State.BAD], answer(State.BAD)),
        ([State.GOOD, State.UNKNOWN], answer(State.GOOD, "Rank 0: It is so. It cannot be told of rank 1.")),
        ([State.UNKNOWN, State.ABSENT], answer(State.UNKNOWN, "Rank 0: It is so.")),
        ([State.ABSENT, State.ABSENT], answer(State.ABSENT)),
    ],
)
def test_answers_of_ranks_become_one(states: list[State], expected: Reply) -> None:
    assert merged([(rank, answer(state)) for rank, state in enumerate(states)]) == expected
