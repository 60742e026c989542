"""Cases whose cause lies beside the tensors of the walk: what their files hold, and what is said of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from align.capture_file import Capture, open_capture
from align.records import DiffResult, Origin, Phase, Severity, TensorRecord, Verdict
from tests.running import CASES, capture_all, diff
from tests.said import told
from tests.seen import Records, facts, facts_of, initial, records

NAMES = (
    "clip_before_unscale",
    "overflow_collapse",
    "recompute_rng",
    "tied_head",
    "scheduler_world_size",
    "norm_decay_group",
    "saturating_overflow",
    "same_dropout_every_rank",
)
VARIANTS = ("good", "bad")
WITH_VALUES = "same_dropout_every_rank"
GREATEST = 65504.0
"""The greatest finite float16."""


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every case, good and bad, all its steps; one of them with its values too."""
    folder = tmp_path_factory.mktemp("cases")
    runs: list[tuple[Path, list[str | Path]]] = [
        (folder / f"{name}.{variant}.h5", ["--steps", "0:", CASES / f"{name}.py", "--variant", variant])
        for name in NAMES
        for variant in VARIANTS
    ]
    runs += [
        (
            folder / f"{WITH_VALUES}.{variant}.values.h5",
            ["--steps", "0:", "--detail", "tensors", CASES / f"{WITH_VALUES}.py", "--variant", variant],
        )
        for variant in VARIANTS
    ]
    capture_all("cpu", runs)
    return folder


@dataclass(frozen=True)
class Pair:
    """Both variants of a case, open."""

    good: Capture
    bad: Capture


@pytest.fixture
def pair(captures: Path, request: pytest.FixtureRequest) -> Iterator[Pair]:
    """The case that the test's parameter names."""
    name: str = request.param
    with open_capture(captures / f"{name}.good.h5") as good, open_capture(captures / f"{name}.bad.h5") as bad:
        yield Pair(good, bad)


def case(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("pair", [name], indirect=True)


def equal(first: TensorRecord, second: TensorRecord) -> bool:
    """Whether two tensors were measured the same, to the last bit of their sketches."""
    if first.sketch is None or second.sketch is None:  # integers have none, but a hash
        return first.hash == second.hash is not None
    return np.array_equal(first.sketch, second.sketch) and repr(first.stats) == repr(second.stats)


def unequal(first: Records, second: Records) -> set[tuple[str, str]]:
    """The names and slots of two phases that are not the same on both sides."""
    assert first.keys() == second.keys()
    return {key for key, one in first.items() if not equal(one, second[key])}


def joint_norm(found: Records) -> float:
    return math.sqrt(sum(one.stats.total_squares for one in found.values() if one.stats is not None))


# ---- what the files hold


@case("clip_before_unscale")
def test_clipping_of_scaled_gradients_is_told_and_measured(pair: Pair) -> None:
    scale = 65536.0
    for step in pair.bad.steps:
        good, bad = (facts_of(side, step, Phase.OPTIMIZER, "clip") for side in (pair.good, pair.bad))
        assert (good["scaled"], bad["scaled"]) == (False, True)
        assert (good["limit"], bad["limit"]) == (1.0, 1.0)
        assert facts_of(pair.bad, step, Phase.SCALER, "GradScaler")["scale"] == scale
        assert joint_norm(records(pair.bad, step, Phase.UPDATE)) == pytest.approx(1.0 / scale, rel=1e-3)
        assert joint_norm(records(pair.good, step, Phase.UPDATE)) <= 1.0 + 1e-3
    first_good, first_bad = (side.timeline[0] for side in (pair.good, pair.bad))
    assert first_bad.clip_norm == pytest.approx(scale * first_good.clip_norm, rel=1e-5)
    assert unequal(records(pair.good, 0, Phase.GRADIENT), records(pair.bad, 0, Phase.GRADIENT)) == set()
    # The curve of the symptom: nothing is learned.
    good_losses, bad_losses = ([row.loss for row in side.timeline] for side in (pair.good, pair.bad))
    assert good_losses[-1] < 0.3 * good_losses[0]
    assert bad_losses[-1] > 0.99 * bad_losses[0]


@case("overflow_collapse")
def test_an_overflow_in_every_step_is_followed_down_the_loss_scale(pair: Pair) -> None:
    for step in pair.bad.steps:
        good, bad = (records(side, step, Phase.FORWARD) for side in (pair.good, pair.bad))
        assert (good["up", "output.0"].dtype, bad["up", "output.0"].dtype) == ("bfloat16", "float16")
        before, wide, narrow = (
            one.stats for one in (bad["up", "input.0"], good["up", "output.0"], bad["up", "output.0"])
        )
        assert before is not None
        assert wide is not None
        assert narrow is not None
        assert before.nonfinite == 0
        assert (wide.nonfinite, wide.absolute_maximum > GREATEST) == (0, True)
        assert narrow.positive_infs + narrow.negative_infs > 0
        assert facts_of(pair.bad, step, Phase.SCALER, "GradScaler")["found_inf"] == 1.0
        assert records(pair.bad, step, Phase.UPDATE) == {}
    rows = pair.bad.timeline
    assert [row.loss_scale for row in rows] == [65536.0 / 2**step for step in range(8)]
    assert [row.loss_scale_after for row in rows] == [65536.0 / 2 ** (step + 1) for step in range(8)]
    assert all(row.skipped and row.nonfinite for row in rows)
    assert unequal(records(pair.bad, 0, Phase.PARAM), records(pair.bad, 7, Phase.PARAM)) == set()
    assert facts(pair.good, 0, Phase.SCALER) == {}
    assert not any(row.skipped or row.nonfinite for row in pair.good.timeline)


@case("recompute_rng")
def test_a_mask_that_is_drawn_anew_is_seen_beside_the_first(pair: Pair) -> None:
    repeated = {f"layers.{number}.{part}" for number in (0, 1) for part in ("up", "drop")}
    good, bad = (records(side, 0, Phase.FORWARD) for side in (pair.good, pair.bad))
    again = {(name, "output.0.recomputed") for name in repeated}
    assert {key for key, one in bad.items() if one.recomputed} == again
    assert unequal(good, bad) == {(name, slot) for name, slot in again if name.endswith(".drop")}
    for side, replayed in ((good, True), (bad, False)):
        for name in repeated:
            same = equal(side[name, "output.0"], side[name, "output.0.recomputed"])
            assert same == (replayed or name.endswith(".up")), name
    assert unequal(records(pair.good, 0, Phase.LOSS), records(pair.bad, 0, Phase.LOSS)) == set()
    assert unequal(records(pair.good, 0, Phase.RNG), records(pair.bad, 0, Phase.RNG)) == set()
    gradients = unequal(records(pair.good, 0, Phase.GRADIENT), records(pair.bad, 0, Phase.GRADIENT))
    assert not any(name == "head" for name, _ in gradients)
    assert ("layers.1.down", "weight") in gradients


@case("tied_head")
def test_a_head_that_is_the_embedding_has_its_hash(pair: Pair) -> None:
    good, bad = initial(pair.good), initial(pair.bad)
    assert {key for key, one in good.items() if one.hash != bad[key].hash} == {("head", "weight")}
    assert bad["head", "weight"].hash == bad["embed", "weight"].hash is not None
    assert good["head", "weight"].hash != good["embed", "weight"].hash
    assert equal(bad["head", "weight"], bad["embed", "weight"])
    forward = unequal(records(pair.good, 0, Phase.FORWARD), records(pair.bad, 0, Phase.FORWARD))
    assert forward == {("head", "output.0"), ("<LanguageModel>", "output.0")}
    assert pair.bad.timeline[0].loss > 1.3 * pair.good.timeline[0].loss


@case("scheduler_world_size")
def test_the_rate_of_every_step_is_told(pair: Pair) -> None:
    good, bad = (
        [facts_of(side, step, Phase.OPTIMIZER, "group0")["lr"] for step in side.steps] for side in (pair.good, pair.bad)
    )
    assert good == [0.15 * (1 - step / 32) for step in range(10)]
    assert bad == [0.15 * max(0.0, 1 - 4 * step / 32) for step in range(10)]
    assert bad[:3] == good[::4]
    assert unequal(records(pair.good, 0, Phase.PARAM), records(pair.bad, 0, Phase.PARAM)) == set()
    assert unequal(records(pair.good, 1, Phase.UPDATE), records(pair.bad, 1, Phase.UPDATE)) == set()
    assert len(unequal(records(pair.good, 1, Phase.PARAM), records(pair.bad, 1, Phase.PARAM))) == 4


@case("norm_decay_group")
def test_the_group_of_every_parameter_is_told(pair: Pair) -> None:
    def decay(side: Capture) -> dict[str, object]:
        found = facts(side, 0, Phase.OPTIMIZER)
        names = ("hidden", "norm", "out")
        return {name: found[str(found[name, "weight.group"]), "weight_decay"] for name in names}

    assert decay(pair.good) == {"hidden": 0.1, "norm": 0.0, "out": 0.1}
    assert decay(pair.bad) == {"hidden": 0.1, "norm": 0.1, "out": 0.1}
    good, bad = (records(side, 0, Phase.PARAM) for side in (pair.good, pair.bad))
    assert unequal(good, bad) == {("norm", "weight")}
    before, kept, decayed = initial(pair.good)["norm", "weight"], good["norm", "weight"], bad["norm", "weight"]
    assert before.sketch is not None
    assert kept.sketch is not None
    assert decayed.sketch is not None
    # Of no more elements than buckets a sketch is the values; rate x decay x weight is missing.
    assert abs(kept.sketch) - abs(decayed.sketch) == pytest.approx(1e-2 * 0.1 * abs(before.sketch), rel=1e-3)


@case("saturating_overflow")
def test_numbers_that_are_pinned_at_the_greatest_are_seen(pair: Pair) -> None:
    good, bad = (records(side, 2, Phase.FORWARD)["gate", "output.0"].stats for side in (pair.good, pair.bad))
    assert good is not None
    assert bad is not None
    assert (good.positive_infs, bad.positive_infs, bad.maximum) == (2, 0, GREATEST)
    assert records(pair.bad, 2, Phase.FORWARD)["gate", "output.0"].dtype == "float16"
    good_rows, bad_rows = pair.good.timeline, pair.bad.timeline
    assert [row.skipped for row in good_rows] == [False, False, True, False, False, False]
    assert [row.loss_scale for row in good_rows] == [8.0, 8.0, 8.0, 4.0, 4.0, 4.0]
    assert not any(row.skipped or row.nonfinite for row in bad_rows)
    assert {(row.loss_scale, row.loss_scale_after) for row in bad_rows} == {(8.0, 8.0)}
    assert records(pair.good, 2, Phase.UPDATE) == {}
    assert len(records(pair.bad, 2, Phase.UPDATE)) == 4
    assert [facts_of(side, 2, Phase.SCALER, "GradScaler")["skipped"] for side in (pair.good, pair.bad)] == [True, False]


def masks(capture: Capture, step: int) -> tuple[TensorRecord, TensorRecord]:
    found = records(capture, step, Phase.FORWARD)
    return found["replicas.0.drop", "output.0"], found["replicas.1.drop", "output.0"]


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_elements_that_both_ranks_drop_are_seen_in_the_values(captures: Path, variant: str) -> None:
    with open_capture(captures / f"{WITH_VALUES}.{variant}.values.h5") as capture:
        for step in capture.steps:
            first, second = (capture.values(one) for one in masks(capture, step))
            assert not np.array_equal(first, second)
            assert np.array_equal(first == 0.0, second == 0.0) == (variant == "bad")


@case(WITH_VALUES)
def test_of_the_elements_that_both_ranks_drop_a_sketch_tells_their_number(pair: Pair) -> None:
    for side, duplicated in ((pair.good, False), (pair.bad, True)):
        for step in side.steps:
            first, second = masks(side, step)
            assert first.sketch is not None
            assert second.sketch is not None
            assert first.stats is not None
            assert second.stats is not None
            assert (first.stats.zeros == second.stats.zeros) == duplicated
            # 448 elements in 251 buckets: the ones whose every element was dropped are exactly zero.
            assert np.array_equal(first.sketch == 0.0, second.sketch == 0.0) == duplicated
            assert 60 < np.count_nonzero(first.sketch == 0.0) < 120


# ---- what is said of them


@dataclass(frozen=True)
class Answer:
    """The first divergence, and the modules that errors may point to."""

    step: int
    phase: Phase
    name: str
    slot: str
    origin: Origin
    accused: frozenset[str]


ANSWERS = {
    "clip_before_unscale": Answer(0, Phase.UPDATE, "hidden", "weight", Origin.OPTIMIZER, frozenset({"hidden"})),
    "overflow_collapse": Answer(0, Phase.FORWARD, "up", "output.0", Origin.MODULE, frozenset({"up", "GradScaler"})),
    "recompute_rng": Answer(
        0, Phase.BACKWARD, "layers.1.drop", "grad_output.0", Origin.FUNCTIONAL, frozenset({"layers.1", "layers.1.drop"})
    ),
    "tied_head": Answer(-1, Phase.INIT, "head", "weight", Origin.WEIGHTS, frozenset({"head"})),
    "scheduler_world_size": Answer(1, Phase.PARAM, "hidden", "weight", Origin.OPTIMIZER, frozenset({"hidden"})),
    "norm_decay_group": Answer(0, Phase.PARAM, "norm", "weight", Origin.OPTIMIZER, frozenset({"norm"})),
    "saturating_overflow": Answer(2, Phase.FORWARD, "gate", "output.0", Origin.MODULE, frozenset({"gate"})),
    WITH_VALUES: Answer(0, Phase.FORWARD, "replicas.1.drop", "output.0", Origin.MODULE, frozenset({"replicas.1.drop"})),
}


def compared(captures: Path, name: str) -> DiffResult:
    return diff(captures / f"{name}.good.h5", captures / f"{name}.bad.h5")


@pytest.mark.parametrize("name", ANSWERS)
def test_the_first_divergence_is_where_the_fault_is(captures: Path, name: str) -> None:
    result, answer = compared(captures, name), ANSWERS[name]
    first = result.first_divergence
    assert result.verdict is Verdict.DIVERGED
    assert first is not None
    assert (first.step, first.phase, first.name, first.slot, first.origin) == (
        answer.step, answer.phase, answer.name, answer.slot, answer.origin,
    )  # fmt: skip
    accused = {finding.where.name for finding in result.findings if finding.severity is Severity.ERROR}
    assert accused <= answer.accused


def test_a_group_that_decays_in_one_run_only_is_told_and_no_module_is_accused(captures: Path) -> None:
    result = compared(captures, "norm_decay_group")
    assert told(result) == [("weight-decay-groups", Severity.ERROR)]
    assert result.summary == (
        "Step 0: the weight decay of norm weight is 0 in the reference and 0.1 in the candidate; that of the other 2 "
        "parameters agrees. All gradients of the step agree: the runs part in the optimizer."
    )
