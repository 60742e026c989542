"""The walk over two captures: benign pairs stay aligned, faults are found where they are."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from align import metrics
from align.comparison import Walk
from align.errors import ComparisonError
from align.pairing import Pair
from align.records import (
    Kind,
    ModuleInfo,
    Origin,
    Phase,
    RunInfo,
    Status,
    TensorKey,
    TensorRecord,
    TimelineRow,
    Verdict,
)
from tests.builders import Array, diff_files, record_of, walk_files, write_capture
from tests.numpy_run import Fault, make

Place = tuple[int, str, str, str, str, str]


@pytest.fixture(scope="module", params=[False, True], ids=["fp32", "bf16"])
def bfloat16(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(scope="module")
def reference(bfloat16: bool, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("reference") / "gpu.h5", bfloat16=bfloat16, steps=3)


def _times(factor: float) -> Fault:
    return lambda array: array * factor


def _place(walk: Walk) -> Place | None:
    first = walk.divergence
    if first is None:
        return None
    return (first.step, str(first.phase), first.name, first.slot, str(first.kind), str(first.origin))


def test_a_run_equals_itself(reference: Path) -> None:
    walk = walk_files(reference, reference)
    assert walk.first is None
    assert {comparison.status for comparison in walk.comparisons} == {Status.EQUAL}


@pytest.mark.parametrize("pieces", [2, 4])
def test_another_device_stays_aligned_over_three_steps(
    reference: Path, bfloat16: bool, pieces: int, tmp_path: Path
) -> None:
    walk = walk_files(reference, make(tmp_path / "npu.h5", bfloat16=bfloat16, pieces=pieces, steps=3))
    assert _place(walk) is None
    statuses = {comparison.status for comparison in walk.comparisons if comparison.key.phase is not Phase.PARAM}
    assert statuses <= {Status.EQUAL, Status.WITHIN, Status.NOT_JUDGED}


FAULTS: list[tuple[str, int, str, Fault, Place]] = [
    ("linear", 0, "forward blocks.0.mlp.fc", _times(1.3),
     (0, "forward", "blocks.0.mlp.fc", "output.0", "value", "module")),
    ("norm", 0, "forward blocks.1.norm1", _times(1.3),
     (0, "forward", "blocks.1.norm1", "output.0", "value", "module")),
    ("embedding", 0, "forward embed", _times(1.3), (0, "forward", "embed", "output.0", "value", "module")),
    ("attention core", 0, "between blocks.1.attn", _times(1.3),
     (0, "forward", "blocks.1.attn.o", "input.0", "value", "functional")),
    ("residual", 0, "between blocks.0", _times(1.3),
     (0, "forward", "blocks.0.norm2", "input.0", "value", "functional")),
    ("end of block", 0, "forward blocks.0", _times(1.3),
     (0, "forward", "blocks.0", "output.0", "value", "functional")),
    ("loss", 0, "loss", _times(4.0), (0, "loss", "loss", "value", "value", "loss")),
    ("gradient of the loss", 0, "backward loss", _times(2.0),
     (0, "backward", "<Net>", "grad_output.0", "value", "functional")),
    ("update", 0, "update", _times(2.0), (0, "update", "head", "weight", "value", "optimizer")),
    ("table gradient", 0, "gradient embed.weight", _times(2.0),
     (0, "gradient", "embed", "weight", "value", "module")),
    ("later step", 2, "forward blocks.0.mlp.fc", _times(1.5),
     (2, "forward", "blocks.0.mlp.fc", "output.0", "value", "module")),
    ("NaN", 1, "forward blocks.1.mlp.act", lambda a: np.where(a == a.max(), np.nan, a),
     (1, "forward", "blocks.1.mlp.act", "output.0", "nonfinite", "module")),
    ("NaN loss", 1, "loss", _times(math.nan), (1, "loss", "loss", "value", "nonfinite", "loss")),
    ("NaN backward", 1, "backward blocks.1.norm2", _times(math.nan),
     (1, "backward", "blocks.1.norm2", "grad_input.0", "nonfinite", "module")),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
@pytest.mark.parametrize(
    ("step", "point", "fault", "expected"), [row[1:] for row in FAULTS], ids=[r[0] for r in FAULTS]
)
def test_a_fault_is_found_where_it_is(
    reference: Path, bfloat16: bool, tmp_path: Path, step: int, point: str, fault: Fault, expected: Place
) -> None:
    candidate = make(tmp_path / "npu.h5", bfloat16=bfloat16, pieces=4, steps=step + 1, faults={(step, point): fault})
    walk = walk_files(reference, candidate)
    assert _place(walk) == expected


@pytest.mark.parametrize(
    ("point", "expected"),
    [
        ("forward head", (0, "forward", "head", "output.0", "value", "module")),
        ("backward blocks.1.attn.k", (0, "backward", "blocks.1.attn.k", "grad_input.0", "value", "module")),
        (
            "backward between blocks.1.attn.k",
            (0, "backward", "blocks.1.attn.k", "grad_output.0", "value", "functional"),
        ),
        ("backward blocks.0.mlp.act", (0, "backward", "blocks.0.mlp.act", "grad_input.0", "value", "module")),
        ("gradient blocks.0.mlp.fc.bias", (0, "gradient", "blocks.0.mlp.fc", "bias", "value", "module")),
    ],
)
def test_a_fault_of_one_in_a_thousand_is_found_in_fp32(tmp_path: Path, point: str, expected: Place) -> None:
    reference = make(tmp_path / "gpu.h5", steps=1)
    candidate = make(tmp_path / "npu.h5", steps=1, pieces=4, faults={(0, point): _times(1.001)})
    assert _place(walk_files(reference, candidate)) == expected


def test_after_the_origin_differences_are_propagated(tmp_path: Path) -> None:
    reference = make(tmp_path / "gpu.h5", steps=1)
    candidate = make(tmp_path / "npu.h5", steps=1, faults={(0, "forward blocks.0.mlp.fc"): _times(1.3)})
    walk = walk_files(reference, candidate)
    statuses = [comparison.status for comparison in walk.comparisons if comparison.key.phase is Phase.FORWARD]
    origin = statuses.index(Status.ORIGIN)
    assert set(statuses[:origin]) == {Status.EQUAL}
    assert set(statuses[origin + 1 :]) == {Status.PROPAGATED}


def test_a_bias_whose_gradient_is_only_noise_is_not_accused(reference: Path, bfloat16: bool, tmp_path: Path) -> None:
    walk = walk_files(reference, make(tmp_path / "npu.h5", bfloat16=bfloat16, pieces=4, steps=3))
    noisy = [
        comparison
        for comparison in walk.comparisons
        if (comparison.key.phase, comparison.key.slot) == (Phase.GRADIENT, "bias")
        and comparison.key.name.endswith("attn.k")
    ]
    assert max(comparison.relative_l2 or 0.0 for comparison in noisy) > 0.5
    assert {comparison.status for comparison in noisy} <= {Status.WITHIN, Status.NOT_JUDGED}


def test_the_embedding_table_differs_in_touched_rows_only_after_adam(tmp_path: Path) -> None:
    def few_words(tokens: Array) -> Array:
        return tokens % 2

    reference = make(tmp_path / "gpu.h5", steps=3, bfloat16=True, batch=few_words)
    candidate = make(tmp_path / "npu.h5", steps=3, bfloat16=True, pieces=4, batch=few_words)
    assert _place(walk_files(reference, candidate)) is None


def _relu_records(flipped: int, factor: float) -> list[TensorRecord]:
    random = np.random.default_rng(3)
    hidden = random.normal(size=(64, 256)).astype(np.float32)
    gradient = random.normal(size=hidden.shape).astype(np.float32)
    noise = random.normal(size=hidden.shape).astype(np.float32)
    near = hidden + np.float32(1e-7) * noise
    decisions = hidden > 0
    decisions.reshape(-1)[:flipped] ^= True
    return [
        record_of(TensorKey(0, Phase.FORWARD, "act", "input.0"), near),
        record_of(TensorKey(0, Phase.FORWARD, "act", "output.0"), np.maximum(near, 0)),
        record_of(TensorKey(0, Phase.BACKWARD, "act", "grad_output.0"), gradient),
        record_of(TensorKey(0, Phase.BACKWARD, "act", "grad_input.0"), gradient * decisions * np.float32(factor)),
    ]


@pytest.mark.parametrize(
    ("flipped", "factor", "diverged"), [(0, 1.0, False), (2, 1.0, False), (60, 1.0, True), (0, 1.001, True)]
)
def test_decisions_that_rounding_flips_are_left_out(
    tmp_path: Path, flipped: int, factor: float, diverged: bool
) -> None:
    modules = [ModuleInfo("act", "ReLU", piecewise=True)]
    reference = write_capture(tmp_path / "gpu.h5", {0: _relu_records(0, 1.0)}, modules=modules)
    candidate = write_capture(tmp_path / "npu.h5", {0: _relu_records(flipped, factor)}, modules=modules)
    walk = walk_files(reference, candidate)
    assert (_place(walk) == (0, "backward", "act", "grad_input.0", "value", "module")) is diverged


def test_gradients_are_compared_after_undoing_the_loss_scale(tmp_path: Path) -> None:
    reference = make(tmp_path / "gpu.h5", loss_scale=65536.0)
    candidate = make(tmp_path / "npu.h5", loss_scale=1024.0, pieces=2)
    assert _place(walk_files(reference, candidate)) is None
    unscaled = make(tmp_path / "plain.h5")
    assert _place(walk_files(reference, unscaled)) is None


def test_renaming_all_modules_changes_no_verdict(tmp_path: Path) -> None:
    def other_name(name: str) -> str:
        return ".".join(f"x{part}" for part in name.split("."))

    fault = {(0, "between blocks.1.attn"): _times(1.3)}
    plain = walk_files(make(tmp_path / "a.h5"), make(tmp_path / "b.h5", pieces=4, faults=fault))
    renamed = walk_files(
        make(tmp_path / "c.h5", rename=other_name), make(tmp_path / "d.h5", pieces=4, faults=fault, rename=other_name)
    )
    assert [(c.status, c.relative_l2, c.times_floor) for c in plain.comparisons] == [
        (c.status, c.relative_l2, c.times_floor) for c in renamed.comparisons
    ]
    assert renamed.divergence is not None
    assert renamed.divergence.name == "xblocks.x1.xattn.xo"


def test_a_rename_pairs_modules_of_other_names(tmp_path: Path) -> None:
    def layers(name: str) -> str:
        return name.replace("blocks", "layers")

    reference, candidate = make(tmp_path / "a.h5"), make(tmp_path / "b.h5", rename=layers)
    walk = walk_files(reference, candidate, renames=[("blocks", "layers")])
    assert (walk.first, walk.only_reference, walk.only_candidate) == (None, (), ())


def test_statistics_alone_find_a_scale_and_say_what_they_are(tmp_path: Path) -> None:
    reference = make(tmp_path / "gpu.h5", detail="stats")
    benign = walk_files(reference, make(tmp_path / "npu.h5", detail="stats", pieces=4))
    fault = {(0, "forward blocks.0.mlp.fc"): _times(1.01)}
    walk = walk_files(reference, make(tmp_path / "bad.h5", detail="stats", pieces=4, faults=fault))
    assert _place(benign) is None
    assert _place(walk) == (0, "forward", "blocks.0.mlp.fc", "output.0", "value", "unknown")
    assert walk.first is not None
    assert walk.first.statistics_only


def test_without_parameter_records_later_steps_are_not_judged(tmp_path: Path) -> None:
    drop = frozenset({Phase.PARAM})
    reference, candidate = make(tmp_path / "a.h5", drop=drop), make(tmp_path / "b.h5", drop=drop, pieces=4)
    walk = walk_files(reference, candidate)
    assert walk.first is None
    note = (
        "Capture the phase param too, and steps in a row from step 0: the parameters at the begin of step 1 were not "
        "captured, so the values were not judged there."
    )
    assert walk.notes == (note,)
    later = {c.status for c in walk.comparisons if c.key.step == 1 and c.key.phase is Phase.FORWARD}
    assert later == {Status.EQUAL, Status.NOT_JUDGED}


@pytest.mark.parametrize("phase", [Phase.FORWARD, Phase.BACKWARD])
def test_what_was_not_seen_accuses_no_one(tmp_path: Path, phase: Phase) -> None:
    drop = frozenset({phase})
    reference, candidate = make(tmp_path / "a.h5", drop=drop), make(tmp_path / "b.h5", drop=drop, pieces=4)
    assert walk_files(reference, candidate).first is None


def test_gradients_alone_cannot_be_compared(tmp_path: Path) -> None:
    drop = frozenset(Phase) - {Phase.GRADIENT}
    result = diff_files(make(tmp_path / "a.h5", drop=drop), make(tmp_path / "b.h5", drop=drop, pieces=4))
    assert result.verdict is Verdict.INCOMPARABLE
    assert result.summary == (
        "These captures cannot be compared: of the tensors that steps 0-1 computed none could be judged."
    )


@pytest.mark.parametrize(("factor", "diverged"), [(1 + 1e-6, False), (1.01, True)])
def test_code_that_was_not_captured_is_not_named(tmp_path: Path, factor: float, diverged: bool) -> None:
    x = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)
    paths = []
    for name, scale in (("a", 1.0), ("b", factor)):
        records = [
            record_of(TensorKey(0, Phase.FORWARD, "h.mlp", slot), x * np.float32(scale), within="h")
            for slot in ("input.0", "output.0")
        ]
        modules = [ModuleInfo(module, "Module") for module in ("h", "h.attn", "h.mlp", "h.norm")]
        paths.append(write_capture(tmp_path / f"{name}.h5", {0: records}, modules=modules))
    result = diff_files(*paths)
    first = result.first_divergence
    assert (first is not None) is diverged
    if first is not None:
        assert (first.slot, first.origin) == ("input.0", Origin.UNKNOWN)
        assert "code that was not captured made it" in result.summary


def test_gradients_that_one_run_did_not_see_are_not_missing(tmp_path: Path) -> None:
    reference = make(tmp_path / "a.h5")
    candidate = make(tmp_path / "b.h5", drop=frozenset({Phase.BACKWARD}), pieces=4)
    result = diff_files(reference, candidate)
    assert result.verdict is Verdict.ALIGNED
    assert [finding.label for finding in result.findings] == ["within-noise"]
    assert result.counts["only_reference"] > 0


def test_a_step_that_both_runs_skipped_may_overflow_on_one_side(tmp_path: Path) -> None:
    key = TensorKey(0, Phase.BACKWARD, "fc", "grad_output.0")
    finite = np.full(600, 60000.0, np.float16)
    overflown = np.where(np.arange(600) < 3, np.inf, finite).astype(np.float16)
    forward = record_of(TensorKey(0, Phase.FORWARD, "fc", "output.0"), np.ones(600, np.float16))
    paths = []
    for name, gradient, skipped in (("a", finite, True), ("b", overflown, True), ("c", overflown, False)):
        rows = [_timeline_row(skipped=skipped)]
        records = {0: [forward, record_of(key, gradient)]}
        paths.append(write_capture(tmp_path / f"{name}.h5", records, timeline=rows))
    assert walk_files(paths[0], paths[1]).first is None
    one_skipped = walk_files(paths[0], paths[2]).first
    assert one_skipped is not None
    assert one_skipped.kind is Kind.NONFINITE


def test_overflow_beside_the_greatest_number_is_a_matter_of_rounding(tmp_path: Path) -> None:
    key = TensorKey(0, Phase.BACKWARD, "fc", "grad_output.0")
    near, over = np.full(600, 65000.0, np.float16), np.full(600, np.inf, np.float16)
    forward = record_of(TensorKey(0, Phase.FORWARD, "fc", "output.0"), np.ones(600, np.float16))
    paths = [
        write_capture(tmp_path / f"{name}.h5", {0: [forward, record_of(key, gradient)]}, timeline=[_timeline_row()])
        for name, gradient in (("a", near), ("b", over))
    ]
    walk = walk_files(*paths)
    assert walk.first is None
    assert len(walk.results[0].explained) == 1


def _timeline_row(*, skipped: bool = False) -> TimelineRow:
    return TimelineRow(0, 1.0, 1e-3, 65536.0, math.nan, 0.1, skipped, False, 1, "Adam")


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ([0.0, -np.inf], [0.0, -np.inf]),
        ([0.0, -np.inf], [0.0, -3.4e38]),
        ([1.5, -np.inf], [1.5, -np.inf]),
        ([1.5, -np.inf], [1.5, -1e9]),
    ],
    ids=["mask", "mask against finite mask", "masked scores", "masked scores against large negative scores"],
)
def test_infinite_masks_are_legitimate(tmp_path: Path, ours: list[float], theirs: list[float]) -> None:
    paths = []
    for name, values in (("a", ours), ("b", theirs)):
        records = [
            record_of(TensorKey(0, Phase.FORWARD, "<Net>", "input.mask"), np.array(values * 8, np.float32)),
            record_of(TensorKey(0, Phase.FORWARD, "<Net>", "output.0"), np.ones(16, np.float32)),
        ]
        paths.append(write_capture(tmp_path / f"{name}.h5", {0: records}))
    assert walk_files(*paths).first is None


def test_what_is_not_finite_on_both_sides_is_not_judged(tmp_path: Path) -> None:
    paths = []
    for name, tail in (("a", 1.0), ("b", 2.0)):
        broken = np.array([np.nan, 1.0, tail], np.float32)
        records = [
            record_of(TensorKey(0, Phase.FORWARD, "fc", "input.0"), np.ones(3, np.float32)),
            record_of(TensorKey(0, Phase.FORWARD, "fc", "output.0"), broken),
            record_of(TensorKey(0, Phase.FORWARD, "act", "input.0"), np.full(3, tail, np.float32)),
        ]
        paths.append(write_capture(tmp_path / f"{name}.h5", {0: records}))
    walk = walk_files(*paths)
    assert walk.first is None
    assert [str(comparison.status) for comparison in walk.comparisons] == ["equal", "not judged", "not judged"]


def _mask_run(path: Path, length: int, factor: float) -> Path:
    x = np.random.default_rng(0).normal(size=(11, 64)).astype(np.float32)
    mask = np.triu(np.ones((length, length), bool), 1)
    records = [
        record_of(TensorKey(0, Phase.INPUT, "x", "value"), x),
        record_of(TensorKey(0, Phase.INPUT, "mask", "value"), mask),
        record_of(TensorKey(0, Phase.FORWARD, "<Net>", "input.0"), x),
        record_of(TensorKey(0, Phase.FORWARD, "<Net>", "input.1"), mask),
        record_of(TensorKey(0, Phase.FORWARD, "fa", "input.q"), x, within="<Net>"),
        record_of(TensorKey(0, Phase.FORWARD, "fa", "input.mask"), mask, within="<Net>"),
        record_of(TensorKey(0, Phase.FORWARD, "fa", "output.0"), x * np.float32(factor), within="<Net>"),
        record_of(TensorKey(0, Phase.FORWARD, "<Net>", "output.0"), x * np.float32(factor)),
    ]
    return write_capture(path, {0: records})


def test_an_argument_of_another_shape_explains_the_output_that_differs(tmp_path: Path) -> None:
    reference, candidate = _mask_run(tmp_path / "a.h5", 7, 1.0), _mask_run(tmp_path / "b.h5", 11, 1.5)
    result = diff_files(reference, candidate)
    first = result.first_divergence
    assert first is not None
    assert (first.name, first.slot, first.kind, first.origin) == ("fa", "output.0", Kind.VALUE, Origin.MODULE)
    assert [finding.label for finding in result.findings] == ["origin-module", "shape-differs"]
    assert result.findings[1].where.slot == "input.mask"


def test_an_argument_of_another_shape_alone_stops_nothing(tmp_path: Path) -> None:
    reference, candidate = _mask_run(tmp_path / "a.h5", 7, 1.0), _mask_run(tmp_path / "b.h5", 11, 1.0)
    assert diff_files(reference, candidate).verdict is Verdict.ALIGNED


def test_a_batch_of_another_shape_stops_the_walk_where_outputs_follow(tmp_path: Path) -> None:
    reference = make(tmp_path / "a.h5", steps=1)
    candidate = make(tmp_path / "b.h5", steps=1, batch=lambda tokens: tokens[:2])
    walk = walk_files(reference, candidate)
    assert _place(walk) == (0, "input", "tokens", "value", "shape", "input")


def test_another_batch_blames_no_module(tmp_path: Path) -> None:
    reference, candidate = make(tmp_path / "a.h5"), make(tmp_path / "b.h5", data_seed=7)
    walk = walk_files(reference, candidate)
    assert _place(walk) == (0, "input", "tokens", "value", "equality", "input")
    assert walk.counts["origin"] == 1


def test_other_targets_are_found_after_the_outputs(tmp_path: Path) -> None:
    reference = make(tmp_path / "a.h5", steps=1)
    candidate = make(tmp_path / "b.h5", steps=1, targets=lambda target: np.roll(target, -1, axis=1))
    assert _place(walk_files(reference, candidate)) == (0, "loss", "loss", "target", "equality", "input")


def test_other_weights_blame_no_module(tmp_path: Path) -> None:
    reference = make(tmp_path / "a.h5", steps=1)
    candidate = make(tmp_path / "b.h5", steps=1, initial={"head.weight": _times(2.0)})
    walk = walk_files(reference, candidate)
    assert _place(walk) == (-1, "init", "head", "weight", "equality", "weights")
    assert walk.counts["origin"] == 1


def test_weights_that_differ_by_rounding_enter_the_floor(tmp_path: Path) -> None:
    reference = make(tmp_path / "a.h5")
    candidate = make(tmp_path / "b.h5", pieces=4, initial={"*": _times(1 + 2.0**-23)})
    assert _place(walk_files(reference, candidate)) is None


def test_an_integer_argument_that_differs_lays_the_blame_on_who_made_it(tmp_path: Path) -> None:
    table = np.random.default_rng(0).normal(size=(40, 64)).astype(np.float32)
    paths = []
    for name, shift in (("a", 0), ("b", 1)):
        positions = np.arange(16) + shift
        records = [
            record_of(TensorKey(0, Phase.FORWARD, "<Net>", "input.0"), np.arange(16)),
            record_of(TensorKey(0, Phase.FORWARD, "wpe", "input.0"), positions, within="<Net>"),
            record_of(TensorKey(0, Phase.FORWARD, "wpe", "output.0"), table[positions], within="<Net>"),
        ]
        paths.append(write_capture(tmp_path / f"{name}.h5", {0: records}))
    walk = walk_files(*paths)
    assert _place(walk) == (0, "forward", "wpe", "output.0", "value", "functional")
    assert walk.first is not None
    assert (walk.first.owner, walk.first.argument) == ("<Net>", "input.0")


def test_a_total_gradient_never_accuses_one_consumer_alone(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)
    paths = []
    for name, factor in (("a", 1.0), ("b", 1.5)):
        records = [record_of(TensorKey(0, Phase.FORWARD, "attn", "input.0"), x)]
        for part in "qk":
            records += [
                record_of(TensorKey(0, Phase.FORWARD, part, "input.0"), x, within="attn"),
                record_of(TensorKey(0, Phase.FORWARD, part, "output.0"), x, within="attn"),
            ]
        changed = x * np.float32(factor)
        records += [
            record_of(TensorKey(0, Phase.BACKWARD, "q", "grad_output.0"), x, within="attn"),
            record_of(TensorKey(0, Phase.BACKWARD, "q", "grad_input.0"), x, within="attn"),
            record_of(TensorKey(0, Phase.BACKWARD, "q", "grad_input.1"), changed, total=True, within="attn"),
            record_of(TensorKey(0, Phase.BACKWARD, "k", "grad_output.0"), x, within="attn"),
            record_of(TensorKey(0, Phase.BACKWARD, "k", "grad_input.0"), changed, total=True, within="attn"),
        ]
        paths.append(write_capture(tmp_path / f"{name}.h5", {0: records}))
    walk = walk_files(*paths)
    assert _place(walk) == (0, "backward", "k", "grad_input.0", "value", "functional")
    assert walk.first is not None
    assert walk.first.owner == "attn"


def test_no_step_in_common_is_refused(tmp_path: Path) -> None:
    record = record_of(TensorKey(0, Phase.FORWARD, "fc", "output.0"), np.ones(3, np.float32))
    paths = [
        write_capture(tmp_path / f"{name}.h5", {step: [record] for step in steps})
        for name, steps in (("a", range(3)), ("b", range(5, 8)))
    ]
    message = (
        f"Cannot compare '{paths[0]}' with '{paths[1]}': they have no step in common. The reference has steps 0-2, "
        "the candidate steps 5-7. Capture both with the same --steps."
    )
    with pytest.raises(ComparisonError, match=f"^{re.escape(message)}$"):
        walk_files(*paths)


def test_a_capture_without_a_step_is_refused(tmp_path: Path) -> None:
    full, empty = make(tmp_path / "a.h5", steps=1), write_capture(tmp_path / "b.h5", {})
    message = (
        f"Cannot compare: the candidate '{empty}' holds no finished step. "
        "Capture it again and let at least one training step end."
    )
    with pytest.raises(ComparisonError, match=f"^{re.escape(message)}$"):
        walk_files(full, empty)


@pytest.mark.parametrize(
    ("asked", "steps", "message"),
    [
        (
            "100:103",
            4,
            (
                "Cannot compare: the candidate '{path}' holds none of the steps that were asked for (100-102): the run "
                "had 4 steps (0-3). Capture it again with --steps 0:3."
            ),
        ),
        (
            "7,20: every 5",
            1,
            (
                "Cannot compare: the candidate '{path}' holds none of the steps that were asked for (7, 20 and later): "
                "the run had 1 step (0). Capture it again with --steps 0:1."
            ),
        ),
        (
            "0:3",
            4,
            (
                "Cannot compare: the candidate '{path}' holds no finished step. Capture it again and let at least one "
                "training step end."
            ),
        ),
    ],
    ids=["beyond the end", "several", "something else failed"],
)
def test_a_capture_of_steps_that_the_run_has_not_says_so(tmp_path: Path, asked: str, steps: int, message: str) -> None:
    run = RunInfo(outcome="finished", steps_requested=asked, steps_seen=steps)
    full, empty = make(tmp_path / "a.h5", steps=1), write_capture(tmp_path / "b.h5", {}, run=run)

    with pytest.raises(ComparisonError, match=f"^{re.escape(message.format(path=empty))}$"):
        walk_files(full, empty)


def test_phases_that_do_not_meet_are_refused(tmp_path: Path) -> None:
    paths = [
        write_capture(
            tmp_path / f"{name}.h5", {0: [record_of(TensorKey(0, phase, "fc", slot), np.ones(3, np.float32))]}
        )
        for name, phase, slot in (("a", Phase.FORWARD, "output.0"), ("b", Phase.BACKWARD, "grad_output.0"))
    ]
    message = (
        f"Cannot compare '{paths[0]}' with '{paths[1]}': no record of one has an answer in the other. The reference "
        "has the phases forward, the candidate backward. Capture both with the same --phases."
    )
    with pytest.raises(ComparisonError, match=f"^{re.escape(message)}$"):
        walk_files(*paths)


finite = st.floats(-1e6, 1e6, width=32)


@settings(max_examples=60, deadline=None)
@given(st.lists(finite, min_size=1, max_size=400))
def test_a_tensor_is_at_no_distance_from_itself(values: list[float]) -> None:
    record = record_of(TensorKey(0, Phase.FORWARD, "fc", "output.0"), np.array(values, np.float32))
    pair = Pair(record, record)
    assert metrics.identical(pair)
    assert metrics.relative_l2(pair) == 0.0


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(finite, finite), min_size=1, max_size=400))
def test_the_absolute_distance_is_the_same_both_ways(values: list[tuple[float, float]]) -> None:
    arrays = np.array(values, np.float32).T
    key = TensorKey(0, Phase.FORWARD, "fc", "output.0")
    left, right = (record_of(key, array.copy()) for array in arrays)
    there, back = metrics.relative_l2(Pair(left, right)), metrics.relative_l2(Pair(right, left))
    assert there is not None
    assert back is not None
    norms = [record.stats.norm for record in (left, right) if record.stats is not None]
    bases = [norm or max(norms) for norm in norms]
    assert there * bases[0] == pytest.approx(back * bases[1], rel=1e-3, abs=1e-6 * max(norms))


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "b.c"]),
            st.sampled_from(["input.0", "output.0", "output.1"]),
            st.lists(st.floats(width=32), min_size=0, max_size=8),
        ),
        min_size=1,
        max_size=8,
        unique_by=lambda entry: entry[:2],
    )
)
def test_any_capture_is_aligned_with_itself(
    tmp_path_factory: pytest.TempPathFactory, entries: list[tuple[str, str, list[float]]]
) -> None:
    records = [
        record_of(TensorKey(0, Phase.FORWARD, name, slot), np.array(values, np.float32))
        for name, slot, values in entries
    ]
    path = write_capture(tmp_path_factory.mktemp("any") / "run.h5", {0: records})
    assert walk_files(path, path).first is None


def test_no_rule_looks_at_whether_a_device_is_simulated(tmp_path: Path) -> None:
    fault = {(0, "forward head"): _times(1.3)}
    reference = make(tmp_path / "a.h5", steps=1)
    results = [
        diff_files(reference, make(tmp_path / f"{name}.h5", steps=1, faults=fault, run=RunInfo(simulated=simulated)))
        for name, simulated in (("b", True), ("c", False))
    ]
    assert results[0].findings == results[1].findings
