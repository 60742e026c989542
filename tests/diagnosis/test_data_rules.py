"""AL202, AL203, AL205 to AL209: what both runs are given, told from the hashes of samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from align.records import DiffResult, ModuleInfo, Phase, RunInfo, Severity, TensorKey, TensorRecord
from tests.builders import Array, diff_files, record_of, write_capture
from tests.numpy_run import make
from tests.said import told

TAKING = (
    "capture the reference with `align capture --keep batches`, the candidate with "
    "`align capture --batches-from REF.h5`"
)
STREAM = np.random.default_rng(8).integers(0, 50, (64, 16))
BATCH = 4
LOADER: dict[str, Any] = {
    "name": "<DataLoader>", "dataset": "TensorDataset", "length": 64, "batch_size": 4, "sampler": "RandomSampler",
    "shuffle": True, "generator_seed": 1, "num_workers": 0,
}  # fmt: skip


def stream(order: list[int]) -> Callable[[Array], Array]:
    """The samples of these numbers, a batch at each step."""
    batches = iter(np.split(STREAM[order], len(order) // BATCH))
    return lambda _: next(batches)


def diff(
    folder: Path, ours: list[int], theirs: list[int], loaders: tuple[Any, Any] = ({}, {}), **more: Any
) -> DiffResult:
    runs = [RunInfo(outcome="finished", loaders=(loader,) if loader else ()) for loader in loaders]
    steps = len(ours) // BATCH
    return diff_files(
        make(folder / "a.h5", steps=steps, batch=stream(ours), run=runs[0]),
        make(folder / "b.h5", steps=steps, batch=stream(theirs), run=runs[1], **more),
    )


FIRST = list(range(12))


@pytest.mark.parametrize(
    ("theirs", "label", "summary"),
    [
        (
            [1, 0, 2, 3, *FIRST[4:]],
            "data-order",
            ("The batches hold the same samples in another order: 2 of 12 stand elsewhere in their batch in steps 0-2; "
            "the model was not judged."),
        ),
        (
            [0, 1, 2, 3, 8, 5, 10, 7, 11, 6, 9, 4],
            "data-order",
            ("The runs read the same 12 samples in steps 0-2, in another order from step 1 on; the model was not "
            "judged from there on."),
        ),
        (
            [30, 7, 32, 33, 11, 35, 36, 37, 38, 2, 40, 41],
            "data-order",
            ("The runs read the data in another order from step 0 on: 3 of the candidate's 12 samples in steps 0-2 are "
            "among the reference's, at other places; the model was not judged."),
        ),
        (
            list(range(4, 16)),
            "data-shifted",
            ("The candidate is 1 batch (4 samples) ahead of the reference in the same data: 8 samples of steps 0-2 "
            "agree when moved by that; the model was not judged."),
        ),
        (
            [40, 41, *range(10)],
            "data-shifted",
            ("The reference is 2 samples ahead of the candidate in the same data: 10 samples of steps 0-2 agree when "
            "moved by that; the model was not judged."),
        ),
        (
            [0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 6, 7],
            "duplicate-samples",
            ("The candidate trains on 4 samples again that the reference reads once, of 12 in steps 0-2; the model "
            "was not judged from there on."),
        ),
        (
            [0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12],
            "missing-samples",
            ("The candidate leaves out 1 sample that the reference trains on in steps 0-2, the 11 others stand in "
            "the same order; the model was not judged from there on."),
        ),
        (
            [0, 1, 2, 3, 4, 25, 6, 7, 8, 9, 10, 11],
            "data-differs",
            ("The batches of step 1 differ (tokens) in 1 of 12 samples, the others stand in order; the model was not "
            "judged from there on."),
        ),
        (list(range(30, 42)), "data-differs", "The batches of step 0 differ (tokens); the model was not judged."),
        # Those that both have stand at their own places.
        (
            [0, 1, 2, 3, *range(30, 38)],
            "data-differs",
            "The batches of step 1 differ (tokens); the model was not judged from there on.",
        ),
    ],
    ids=["in the batch", "shuffled", "partly", "a batch ahead", "two samples behind", "duplicates", "missing",
         "changed", "others", "others from step 1 on"],
)  # fmt: skip
def test_what_the_samples_are_is_one_finding(tmp_path: Path, theirs: list[int], label: str, summary: str) -> None:
    result = diff(tmp_path, FIRST, theirs)
    assert told(result) == [(label, Severity.ERROR)]
    assert result.summary == summary
    assert TAKING in result.findings[0].advice


def test_the_same_samples_are_no_finding(tmp_path: Path) -> None:
    assert told(diff(tmp_path, FIRST, FIRST)) == [("within-noise", Severity.NOTE)]


def test_loaders_of_one_dataset_that_are_set_differently_explain_other_samples(tmp_path: Path) -> None:
    result = diff(tmp_path, FIRST, list(range(30, 42)), (LOADER, LOADER | {"generator_seed": 2}))
    assert told(result) == [("data-order", Severity.ERROR)]
    assert result.summary == (
        "The runs read other samples of one dataset from step 0 on: none of the candidate's 12 in steps 0-2 is among "
        "the reference's; the model was not judged. The DataLoaders are set differently: generator seed 1 and 2."
    )


@pytest.mark.parametrize("change", [{}, {"length": 63, "generator_seed": 2}], ids=["alike", "another dataset"])
def test_loaders_that_explain_nothing_leave_other_samples_what_they_are(tmp_path: Path, change: dict[str, Any]) -> None:
    assert told(diff(tmp_path, FIRST, list(range(30, 42)), (LOADER, LOADER | change))) == [
        ("data-differs", Severity.ERROR)
    ]


@pytest.mark.parametrize(
    ("change", "folded"),
    [
        ({"generator_seed": 2}, True),
        ({"num_workers": 2}, True),
        ({"generator_seed": None}, False),
        ({"shuffle": False, "sampler": "SequentialSampler"}, False),
    ],
)
def test_another_seed_explains_the_order_unless_the_loaders_are_set_to_another_one(
    tmp_path: Path, change: dict[str, Any], folded: bool
) -> None:
    runs = [RunInfo(seeds={"torch": seed}, loaders=(LOADER | extra,)) for seed, extra in ((1, {}), (2, change))]
    ours = make(tmp_path / "a.h5", steps=1, batch=stream([0, 1, 2, 3]), run=runs[0])
    found = diff_files(ours, make(tmp_path / "b.h5", steps=1, batch=stream([2, 3, 0, 1]), run=runs[1])).findings
    assert [(each.label, each.explained_by) for each in found[:2]] == [
        ("seed-mismatch", ""),
        ("data-order", "AL201" if folded else ""),
    ]


@pytest.mark.parametrize(("change", "sorts"), [({}, True), ({"shuffle": False}, False)])
def test_an_order_that_no_setting_explains_may_be_that_of_the_files(
    tmp_path: Path, change: dict[str, Any], sorts: bool
) -> None:
    result = diff(tmp_path, FIRST[:4], [2, 3, 0, 1], (LOADER, LOADER | change))
    listed = " Where all of that agrees, sort what the dataset lists: os.listdir and glob promise no order."
    assert result.findings[0].advice == (
        f"Feed both runs the same batches: {TAKING}; or set the same shuffling, sampler seed, number of workers and "
        "number of ranks in both scripts, and seed before the DataLoader is read (torch.manual_seed, `generator=` of "
        f"the DataLoader, or `align capture --seed 1` where the script sets no seed).{listed if sorts else ''}"
    )


def test_workers_that_each_read_the_whole_stream_are_named(tmp_path: Path) -> None:
    settings = {"name": "<DataLoader>", "dataset": "Stream", "length": None, "num_workers": 2}
    result = diff(tmp_path, FIRST, [0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 6, 7], (settings, settings))
    assert result.findings[0].advice == (
        "Each of the 2 workers reads the whole IterableDataset unless the dataset gives it a part "
        f"(torch.utils.data.get_worker_info()). To compare the models as they are, {TAKING}."
    )


def test_a_batch_in_another_order_after_the_runs_parted_is_a_warning(tmp_path: Path) -> None:
    faults = {(0, "forward head"): lambda array: array * 1.5}
    result = diff(tmp_path, FIRST, [0, 1, 2, 3, 7, 6, 5, 4, 8, 9, 10, 11], faults=faults)
    assert told(result) == [("origin-module", Severity.ERROR), ("data-order", Severity.WARNING)]


# ---- inputs of one batch


def given(path: Path, **inputs: Array) -> Path:
    """A run of one step whose model is given these arguments; `target` is what the loss is given."""
    records = [
        record_of(TensorKey(0, Phase.INPUT, name, "value"), array) for name, array in inputs.items() if name != "target"
    ]
    x = np.random.default_rng(0).normal(size=(4, 8)).astype(np.float32)
    records += [record_of(TensorKey(0, Phase.FORWARD, "fc", slot), x) for slot in ("input.0", "output.0")]
    if "target" in inputs:
        records.append(record_of(TensorKey(0, Phase.LOSS, "loss", "target"), inputs["target"]))
    return write_capture(path, {0: records}, modules=[ModuleInfo("fc", "Linear")])


IDS = STREAM[:4]
PLACES = np.arange(16)[None].repeat(4, 0)


def test_the_same_tokens_with_other_positions_are_made_otherwise(tmp_path: Path) -> None:
    result = diff_files(
        given(tmp_path / "a.h5", ids=IDS, positions=PLACES % 8), given(tmp_path / "b.h5", ids=IDS, positions=PLACES)
    )
    assert told(result) == [("data-differs", Severity.ERROR)]
    assert result.summary == ("The batches of step 0 differ (positions), while ids agree; the model was not judged.")
    assert result.findings[0].advice == (
        "The samples are the same, positions was made otherwise from them: compare how both scripts collate, pad, pack "
        "and mask (attention mask, position ids, segment ids)."
    )


def test_a_mask_of_ones_that_agrees_says_nothing_of_the_samples(tmp_path: Path) -> None:
    mask = np.ones((4, 16), np.int64)
    result = diff_files(
        given(tmp_path / "a.h5", ids=IDS, mask=mask), given(tmp_path / "b.h5", ids=IDS[::-1], mask=mask)
    )
    assert told(result) == [("data-order", Severity.ERROR)]


def test_labels_of_the_same_inputs_differ(tmp_path: Path) -> None:
    result = diff_files(
        given(tmp_path / "a.h5", ids=IDS, labels=IDS), given(tmp_path / "b.h5", ids=IDS, labels=IDS + 1)
    )
    assert told(result) == [("labels-differ", Severity.ERROR)]
    assert result.summary == (
        "Step 0, input: the other inputs agree, the labels (labels) differ. No module is to blame."
    )


def test_labels_that_come_with_other_inputs_are_other_data(tmp_path: Path) -> None:
    other = STREAM[20:24]
    result = diff_files(
        given(tmp_path / "a.h5", ids=IDS, labels=IDS), given(tmp_path / "b.h5", ids=other, labels=other)
    )
    assert told(result) == [("data-differs", Severity.ERROR)]


def test_targets_that_are_shifted_are_told_with_how_many_agree(tmp_path: Path) -> None:
    flat = IDS.reshape(-1)
    result = diff_files(
        given(tmp_path / "a.h5", ids=IDS, target=flat), given(tmp_path / "b.h5", ids=IDS, target=np.roll(flat, -1))
    )
    assert told(result)[0] == ("labels-differ", Severity.ERROR)
    assert result.summary == (
        "Step 0, loss: the logits agree, the targets handed to the loss differ: they are shifted by one place along "
        "the sequence (the candidate's are those that stand one place later in the reference, 63 of 63 agree). No "
        "module is to blame."
    )


# ---- generators

X = np.random.default_rng(1).normal(size=(64, 64)).astype(np.float32)


def drawn(path: Path, states: list[str], mask: int, run: RunInfo, generator: str = "torch") -> Path:
    """A run of as many steps as states, in whose last step a dropout drops the elements of a mask of its own."""
    steps: dict[int, list[TensorRecord]] = {}
    for step, state in enumerate(states):
        kept = np.random.default_rng(mask if step == len(states) - 1 else 0).random(X.shape) >= 0.1
        dropped = (X * kept / 0.9).astype(np.float32)
        state_bytes = np.frombuffer(state.encode(), np.uint8)
        steps[step] = [
            record_of(TensorKey(step, Phase.RNG, generator, "state"), state_bytes),
            *(record_of(TensorKey(step, Phase.FORWARD, "drop", slot), array) for slot, array in
              (("input.0", X), ("output.0", dropped))),
            record_of(TensorKey(step, Phase.PARAM, "fc", "weight"), X),
        ]  # fmt: skip
    return write_capture(path, steps, modules=[ModuleInfo("drop", "Dropout")], run=run)


SEEDED = RunInfo(outcome="finished", seeds={"torch": 1})


def test_a_generator_that_parts_although_the_seeds_agree_explains_other_masks(tmp_path: Path) -> None:
    result = diff_files(
        drawn(tmp_path / "a.h5", ["a", "b"], 1, SEEDED), drawn(tmp_path / "b.h5", ["a", "c"], 2, SEEDED)
    )
    assert [(finding.label, finding.explained_by) for finding in result.findings] == [
        ("rng-mismatch", ""),
        ("dropout-mask-differs", "AL202"),
        ("origin-module", "AL202"),
    ]
    assert result.summary == (
        "The seeds agree, but the generator of torch (CPU) differs as step 1 begins: after step 0 has begun one run "
        "draws numbers that the other does not. Step 1, forward: drop then drops other elements. No module is to blame."
    )


@pytest.mark.parametrize(
    ("ours", "theirs", "generator"),
    [
        (SEEDED, replace(SEEDED, device_type="npu"), "torch"),
        (replace(SEEDED, device_type="cuda"), replace(SEEDED, device_type="npu"), "device"),
        (SEEDED, SEEDED, "python"),
        (replace(SEEDED, seeds={}), replace(SEEDED, seeds={}), "torch"),
    ],
    ids=["another device draws elsewhere", "devices differ", "python was not seeded", "no seed is known"],
)
def test_states_that_cannot_be_compared_are_not_told(
    tmp_path: Path, ours: RunInfo, theirs: RunInfo, generator: str
) -> None:
    result = diff_files(
        drawn(tmp_path / "a.h5", ["b"], 1, ours, generator), drawn(tmp_path / "b.h5", ["c"], 2, theirs, generator)
    )
    assert "rng-mismatch" not in [finding.label for finding in result.findings]


def test_states_that_differ_without_consequence_are_not_told(tmp_path: Path) -> None:
    result = diff_files(
        drawn(tmp_path / "a.h5", ["a", "b"], 1, SEEDED), drawn(tmp_path / "b.h5", ["a", "c"], 1, SEEDED)
    )
    assert "rng-mismatch" not in [finding.label for finding in result.findings]
