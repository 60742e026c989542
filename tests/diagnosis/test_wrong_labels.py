"""Pairs that differ in one known thing and were once given a wrong label, or a sentence that was not true."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from align.diagnosis.pair.data.batch_relation import batch_relation
from align.pairing import Pair
from align.records import (
    INIT_STEP,
    Fact,
    ModuleInfo,
    Phase,
    RunInfo,
    Severity,
    TensorKey,
    TensorRecord,
)
from tests.builders import Array, diff_files, record_of, write_capture
from tests.said import told

RANDOM = np.random.default_rng(3)
X = RANDOM.normal(size=(8, 64)).astype(np.float32)
Y = RANDOM.normal(size=(8, 64)).astype(np.float32)
TORCH = {"code": "torch", "random": False}


def seen(name: str, slot: str, array: Array, phase: Phase = Phase.FORWARD, step: int = 0) -> TensorRecord:
    return record_of(TensorKey(step, phase, name, slot), array)


def initial(name: str, array: Array) -> TensorRecord:
    module, _, slot = name.rpartition(".")
    return record_of(TensorKey(INIT_STEP, Phase.INIT, module, slot), array)


def one_module(
    path: Path,
    output: Array,
    *,
    given: Mapping[str, Array] | None = None,
    weights: Mapping[str, Array] | None = None,
    module: ModuleInfo | None = None,
    run: RunInfo | None = None,
) -> Path:
    """A run of a module `attn` that is given X and what `given` says."""
    info = module or ModuleInfo("attn", "Linear", matmul=True)
    records = [seen("attn", "input.0", X)]
    records += [seen("attn", slot, array) for slot, array in (given or {}).items()]
    records.append(seen("attn", "output.0", output))
    first = [initial(name, array) for name, array in (weights or {}).items()]
    training = Fact(TensorKey(0, Phase.FORWARD, "attn", "training"), True)
    return write_capture(
        path,
        {INIT_STEP: first, 0: records} if first else {0: records},
        modules=[info],
        run=run or RunInfo(outcome="finished", classes={info.class_name: TORCH}),
        facts={0: [training]},
    )


def masked(places: int) -> Array:
    mask = np.zeros((4, 16), dtype=np.float32)
    mask.reshape(-1)[:places] = -np.inf
    return mask


def test_a_mask_that_hides_other_elements_is_no_fault_of_the_module(tmp_path: Path) -> None:
    result = diff_files(
        one_module(tmp_path / "a.h5", Y, given={"input.mask": masked(9)}),
        one_module(tmp_path / "b.h5", Y + X, given={"input.mask": masked(0)}),
    )
    assert told(result) == [("origin-functional", Severity.ERROR)]
    assert "Its argument input.mask differs already: the training script made it." in result.summary


def test_a_mask_of_large_negative_numbers_hides_as_many(tmp_path: Path) -> None:
    finite = np.where(np.isinf(masked(9)), np.float32(-1e30), np.float32(0))
    result = diff_files(
        one_module(tmp_path / "a.h5", Y, given={"input.mask": masked(9)}),
        one_module(tmp_path / "b.h5", Y, given={"input.mask": finite}),
    )
    assert [finding.label for finding in result.findings] == ["within-noise"]


def test_an_argument_of_one_run_is_told(tmp_path: Path) -> None:
    result = diff_files(
        one_module(tmp_path / "a.h5", Y, given={"input.mask": masked(9)}, weights={"attn.weight": X}),
        one_module(tmp_path / "b.h5", X - 2 * Y, weights={"attn.weight": X}),
    )
    assert told(result)[0] == ("origin-module", Severity.ERROR)
    assert result.summary.endswith(
        "Its inputs agree but for input.mask, which only the reference gives it: the code that calls it differs."
    )


def test_a_weight_that_one_run_has_alone_is_no_other_operator(tmp_path: Path) -> None:
    result = diff_files(
        one_module(tmp_path / "a.h5", Y, weights={"embed.weight": X}),
        one_module(tmp_path / "b.h5", Y + X, weights={"embed.weight": X, "attn.weight": Y}),
    )
    assert told(result)[:2] == [("tied-weight-broken", Severity.ERROR), ("origin-module", Severity.ERROR)]
    assert result.findings[1].explained_by == "AL308"
    assert result.summary.startswith(
        "attn.weight is a tensor of its own in the candidate; in the reference attn has none under its name: it uses "
        "that of another module (tied weights) or makes it."
    )


def copies(path: Path, seed: int) -> Path:
    """Two layers that are copies of one another, as deepcopy makes them."""
    draws = np.random.default_rng(seed)
    matrix, bias = draws.normal(size=(32, 32)).astype(np.float32), draws.normal(size=32).astype(np.float32)
    head = draws.normal(size=(32, 32)).astype(np.float32)
    weights = {"0.weight": matrix, "0.bias": bias, "1.weight": matrix, "1.bias": bias, "head.weight": head}
    return one_module(path, Y, weights=weights)


def test_layers_that_are_copies_in_both_runs_are_not_tied_in_one(tmp_path: Path) -> None:
    result = diff_files(copies(tmp_path / "a.h5", 1), copies(tmp_path / "b.h5", 2))
    assert [finding.label for finding in result.findings[:2]] == ["seed-mismatch", "initial-weights-differ"]


def loaded(missing: tuple[str, ...] = (), keys: int = 4) -> RunInfo:
    load: dict[str, Any] = {
        "class": "Net", "step": 0, "keys": keys, "missing": len(missing), "unexpected": 0,
        "missing_examples": list(missing), "unexpected_examples": [],
    }  # fmt: skip
    return RunInfo(outcome="finished", loads=(load,))


WEIGHTS: dict[str, Array] = {
    "0.weight": RANDOM.normal(size=(32, 32)).astype(np.float32),
    "0.gain": RANDOM.normal(1.0, 0.1, 32).astype(np.float32),
    "1.weight": RANDOM.normal(size=(32, 32)).astype(np.float32),
    "1.running_var": RANDOM.normal(1.0, 0.1, 32).astype(np.float32),
}


def with_weights(path: Path, changed: Mapping[str, Array], run: RunInfo) -> Path:
    """A run that begins with WEIGHTS and trains all but the running variance."""
    weights = WEIGHTS | dict(changed)
    first = [initial(name, array) for name, array in weights.items()]
    after = [
        seen(module, slot, weights[f"{module}.{slot}"], Phase.PARAM)
        for module, slot in (("0", "weight"), ("0", "gain"), ("1", "weight"))
    ]
    return write_capture(path, {INIT_STEP: first, 0: [seen("0", "output.0", Y), *after]}, run=run)


def test_what_a_load_was_not_given_is_partially_loaded_however_near(tmp_path: Path) -> None:
    result = diff_files(
        with_weights(tmp_path / "a.h5", {}, loaded()),
        with_weights(tmp_path / "b.h5", {"1.weight": WEIGHTS["1.weight"] + 0.3 * X[:1, :32]}, loaded(("1.weight",))),
    )
    assert told(result) == [("checkpoint-partially-loaded", Severity.ERROR)]
    assert result.summary == (
        "The candidate has loaded a part of the weights only: 3 tensors are equal, 1 of 4 initial tensors (1.weight) "
        "was drawn anew there. No module was judged."
    )


def test_a_run_that_was_given_every_tensor_has_loaded_its_weights(tmp_path: Path) -> None:
    near = {name: array + np.float32(1e-3) * np.sin(np.arange(array.size, dtype=np.float32)).reshape(array.shape)
            for name, array in WEIGHTS.items()}  # fmt: skip
    result = diff_files(
        with_weights(tmp_path / "a.h5", {"1.running_var": np.ones(32, np.float32)}, loaded()),
        with_weights(tmp_path / "b.h5", near, loaded()),
    )
    assert "checkpoint-not-loaded" not in [finding.label for finding in result.findings]
    assert "as if no checkpoint had been loaded" not in result.summary


def test_running_statistics_that_were_reset_are_a_buffer(tmp_path: Path) -> None:
    result = diff_files(
        with_weights(tmp_path / "a.h5", {}, loaded()),
        with_weights(tmp_path / "b.h5", {"1.running_var": np.ones(32, np.float32)}, loaded()),
    )
    assert told(result) == [("buffer-differs", Severity.ERROR)]


def rounded(array: Array) -> Array:
    return array.astype(np.float16).astype(np.float32)


def test_buffers_that_are_rounded_as_the_weights_are_stand_with_them(tmp_path: Path) -> None:
    result = diff_files(
        with_weights(tmp_path / "a.h5", {}, loaded()),
        with_weights(tmp_path / "b.h5", {name: rounded(array) for name, array in WEIGHTS.items()}, loaded()),
    )
    assert told(result) == [("weight-cast", Severity.ERROR)]


ATTENTION = ModuleInfo("attn", "MultiheadAttention", leaf=False, config={"dropout": 0.1})


def on(device: str, **seeds: int) -> RunInfo:
    return RunInfo(outcome="finished", device_type=device, seeds=seeds, classes={"MultiheadAttention": {}})


@pytest.mark.parametrize(
    ("runs", "size", "label"),
    [
        ((on("cuda", torch=1), on("npu", torch=1)), 0.3, "dropout-mask-differs"),
        ((on("cuda", torch=1), on("cuda", torch=2)), 0.3, "seed-mismatch"),
        ((on("cuda", torch=1), on("npu", torch=1)), 1e-3, "origin-module"),
        ((on("cuda", torch=1), on("cuda", torch=1)), 0.3, "origin-module"),
    ],
    ids=["other devices", "other seeds", "too small for a mask", "one device and seed"],
)
def test_dropout_inside_a_module_is_no_fault_of_it(
    tmp_path: Path, runs: tuple[RunInfo, RunInfo], size: float, label: str
) -> None:
    result = diff_files(
        one_module(tmp_path / "a.h5", Y, module=ATTENTION, run=runs[0]),
        one_module(tmp_path / "b.h5", Y + np.float32(size) * X, module=ATTENTION, run=runs[1]),
    )
    assert (result.findings[0].label, result.findings[0].severity) == (label, Severity.ERROR)
    assert all(finding.explained_by for finding in result.findings[1:] if finding.severity is Severity.ERROR)


IMAGES = RANDOM.normal(0.4, 0.2, (4, 3, 8, 8)).astype(np.float32)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda x: 2 * x, "2 times the reference's"),
        (lambda x: (x - 0.5) / 0.25, "4 times the reference's - 2"),
        (lambda x: x + 1, "the reference's + 1"),
        (lambda x: x[:, ::-1].copy(), "the same numbers in another order"),
        (lambda x: x + 0.1 * np.cos(np.arange(x.size)).reshape(x.shape), ""),
        (lambda x: np.full_like(x, 3.0), ""),
    ],
    ids=["scaled", "normalised", "moved", "channels exchanged", "noise", "constant"],
)
def test_what_a_batch_is_to_the_other(tmp_path: Path, change: Callable[[Array], Array], words: str) -> None:
    def records(images: Array) -> list[TensorRecord]:
        return [seen("images", "value", images, Phase.INPUT), seen("conv", "output.0", Y)]

    other = change(IMAGES).astype(np.float32)
    files = [
        write_capture(tmp_path / name, {0: records(images)}) for name, images in (("a.h5", IMAGES), ("b.h5", other))
    ]
    related = batch_relation(Pair(records(IMAGES)[0], records(other)[0]))
    assert (related.words if related is not None else "") == words
    result = diff_files(*files)
    said = f": the candidate's images is {words}" if words else ""
    assert result.summary == f"The batches of step 0 differ (images){said}; the model was not judged."


@pytest.mark.parametrize(
    ("rms", "error", "label"),
    [(8.0, 3e-6, "within-noise"), (8.0, 3e-5, "origin-module"), (1.0, 3e-6, "origin-module")],
    ids=["sharp softmax", "more than that", "flat softmax"],
)
def test_a_sharp_softmax_enlarges_rounding(tmp_path: Path, rms: float, error: float, label: str) -> None:
    attention = ModuleInfo("attn", "MultiheadAttention", matmul=True)
    source = np.random.default_rng(1).normal(0.0, rms, (8, 64)).astype(np.float32)
    noise = np.random.default_rng(2).normal(0.0, error, Y.shape)

    def run(path: Path, output: Array) -> Path:
        records = [seen("attn", "input.0", source), seen("attn", "output.0", output.astype(np.float32))]
        return write_capture(path, {0: records}, modules=[attention])

    result = diff_files(run(tmp_path / "a.h5", Y), run(tmp_path / "b.h5", Y * (1 + noise)))
    assert result.findings[0].label == label


LOADER: dict[str, Any] = {"name": "<DataLoader>", "dataset": "Data", "length": 64, "shuffle": False, "num_workers": 0}


def test_workers_do_not_make_other_samples(tmp_path: Path) -> None:
    def run(workers: int) -> RunInfo:
        return RunInfo(outcome="finished", loaders=({**LOADER, "num_workers": workers},))

    files = [
        write_capture(tmp_path / name, {0: [seen("x", "value", array, Phase.INPUT)]}, run=run(workers))
        for name, array, workers in (("a.h5", X, 0), ("b.h5", (X + 0.1 * Y).astype(np.float32), 2))
    ]
    assert [finding.label for finding in diff_files(*files).findings] == ["data-differs"]


def routed(path: Path, tokens: int, order: int) -> Path:
    records = [seen("x", "value", np.roll(X, order, 0), Phase.INPUT), seen("expert", "input.0", Y[:tokens])]
    return write_capture(path, {0: [*records, seen("head", "output.0", Y)]})


def test_tokens_that_an_expert_gets_follow_from_the_order_of_the_data(tmp_path: Path) -> None:
    result = diff_files(routed(tmp_path / "a.h5", 4, 0), routed(tmp_path / "b.h5", 5, 1))
    assert [finding.label for finding in result.findings][:2] == ["data-order", "shape-differs"]
    assert result.findings[1].explained_by == "AL203"


NOISY = ModuleInfo("vae", "Vae", leaf=False)


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ((("cuda", 1), ("cuda", 2)), ["seed-mismatch", "origin-functional"]),
        ((("cuda", 1), ("npu", 1)), ["origin-functional"]),
    ],
    ids=["other seeds", "other devices"],
)
def test_noise_between_modules_may_be_of_another_seed(
    tmp_path: Path, runs: tuple[tuple[str, int], tuple[str, int]], expected: list[str]
) -> None:
    def run(path: Path, device: str, seed: int, given: Array) -> Path:
        records = [
            seen("vae", "input.0", X),
            record_of(TensorKey(0, Phase.FORWARD, "vae.mean", "output.0"), X, within="vae"),
            record_of(TensorKey(0, Phase.FORWARD, "vae.dec", "input.0"), given, within="vae"),
            record_of(TensorKey(0, Phase.FORWARD, "vae.dec", "output.0"), given, within="vae"),
        ]
        modules = [NOISY, ModuleInfo("vae.mean", "Linear"), ModuleInfo("vae.dec", "Linear")]
        info = RunInfo(
            outcome="finished", device_type=device, seeds={"torch": seed},
            classes={"Vae": {"code": "aa", "random": True}, "Linear": TORCH},
        )  # fmt: skip
        return write_capture(path, {0: records}, modules=modules, run=info)

    result = diff_files(run(tmp_path / "a.h5", *runs[0], X + Y), run(tmp_path / "b.h5", *runs[1], X - Y))
    assert [finding.label for finding in result.findings] == expected
    said = "may draw random numbers, and two kinds of device never draw the same." in result.findings[-1].summary
    assert said == (runs[0][0] != runs[1][0])


def passes(path: Path, second: int) -> Path:
    """A step of one pass or more, whose update is what all of them made."""
    forward = [record_of(TensorKey(0, Phase.FORWARD, "fc", "output.0", micro), Y) for micro in range(second)]
    gradient = record_of(TensorKey(0, Phase.GRADIENT, "fc", "weight"), X)
    update = record_of(TensorKey(0, Phase.UPDATE, "fc", "weight"), (X * (1 + 0.4 * second)).astype(np.float32))
    return write_capture(path, {0: [*forward, gradient, update]})


def test_a_pass_more_in_a_step_explains_its_update(tmp_path: Path) -> None:
    result = diff_files(passes(tmp_path / "a.h5", 1), passes(tmp_path / "b.h5", 2))
    assert told(result)[0] == ("structure-differs", Severity.ERROR)
    assert result.summary.startswith(
        "Step 0 has 1 micro-step in the reference and 2 micro-steps in the candidate before the optimizer steps, and "
        "gradients add up over all of them: fc weight is the first that differs ("
    )
    assert all(finding.explained_by == "AL105" for finding in result.findings[1:])
