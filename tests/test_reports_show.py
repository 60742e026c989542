"""What `align show` prints, whole."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from align.errors import UsageError
from align.records import INIT_STEP, Fact, FactValue, ModuleInfo, Phase, TensorKey, TensorRecord, TensorStats
from align.reports.show import Contents, show_text
from tests import report_samples


def contents(steps: int = 12) -> Contents:
    """The candidate of the sample with NaN, as one capture."""
    records: dict[int, list[TensorRecord]] = {}
    for pair in report_samples.nonfinite().comparisons:
        records.setdefault(pair.key.step, []).append(pair.candidate)
    timeline = report_samples.timeline(steps)
    skipped = dataclasses.replace(timeline[-1], skipped=True, nonfinite=True, loss_scale=65536.0, micros=2)
    run = dataclasses.replace(report_samples.NPU, notes=("2 tensors could not be read.",))
    modules = {module.name: module for module in report_samples.modules(2)}
    return Contents("runs/npu.h5", run, modules, records, (*timeline[:-1], skipped))


def test_show_without_names_is_the_golden_text(golden: Callable[[str, str], None]) -> None:
    golden("show_run.txt", show_text(contents()))


def test_show_with_names_is_the_golden_text(golden: Callable[[str, str], None]) -> None:
    golden("show_tensors.txt", show_text(contents(), ("layers.1.attn", "*.mlp.fc1.weight", "input_ids")))


def facts() -> dict[int, list[Fact]]:
    """Two steps of a scaled training with two parameter groups and one module in evaluation mode."""
    noted: dict[int, list[Fact]] = {}
    for step in (0, 1):
        optimizer, scaler, forward = Phase.OPTIMIZER, Phase.SCALER, Phase.FORWARD
        rows: list[tuple[Phase, str, str, FactValue]] = [
            (forward, "<GPT>", "training", True),
            (forward, "layers.0.attn", "training", False),
            (scaler, "GradScaler", "scale", 65536.0),
            (scaler, "GradScaler", "skipped", step == 0),
            (optimizer, "group0", "class", "AdamW"),
            (optimizer, "group0", "lr", 1e-3 / (1 + step)),
            (optimizer, "group0", "weight_decay", 0.1),
            (optimizer, "group0", "foreach", None),
            (optimizer, "group0", "maximize", False),
            (optimizer, "layers.0.attn", "weight.group", "group0"),
            (optimizer, "layers.0.mlp.fc1", "weight.group", "group0"),
            (optimizer, "layers.0.attn", "weight.step", 1.0 + step),
            (optimizer, "clip", "norm", 1.25),
            (optimizer, "clip", "limit", 1.0),
        ]
        noted[step] = [Fact(TensorKey(step, phase, name, slot), value) for phase, name, slot, value in rows]
    return noted


def prepared() -> Contents:
    """A capture with everything that format 2 holds."""
    sample = report_samples.prepared()
    held = contents(2)
    configured = dataclasses.replace(held.modules["layers.1.ln_1"], config={"eps": 1e-5, "elementwise_affine": True})
    records = {step: list(noted) for step, noted in held.records.items()}
    for step in (0, 1):
        key = TensorKey(step, Phase.RNG, "torch", "state")
        records[step].append(TensorRecord(key, 900, "uint8", (5056,), hash=0x2D066F215844ABCD + step))
        first = next(each for each in records[step] if each.key.name == "layers.1.ln_1")
        again = dataclasses.replace(first.key, slot="output.0.recomputed")
        records[step].append(dataclasses.replace(first, key=again, order=901, recomputed=True, layout="channels_last"))
    return Contents(
        "runs/npu.h5",
        sample.candidate,
        {**held.modules, "layers.1.ln_1": configured, "idle": ModuleInfo("idle", "Identity")},
        records,
        sample.candidate_timeline,
        facts=facts(),
    )


def test_show_tells_facts_states_loaders_and_the_same_start(golden: Callable[[str, str], None]) -> None:
    golden("show_facts.txt", show_text(prepared()))


def test_show_with_a_name_tells_configuration_layout_and_recomputation(golden: Callable[[str, str], None]) -> None:
    golden("show_configuration.txt", show_text(prepared(), ("layers.1.ln_1", "layers.0.attn.weight.*", "GradScaler")))


def test_show_of_a_module_without_a_tensor_says_so() -> None:
    assert show_text(prepared(), ("idle",)) == "idle (Identity): no tensor captured\n"


def test_show_of_a_fact_needs_no_tensor() -> None:
    assert show_text(prepared(), ("group0",)) == (
        "  optimizer group0: class AdamW; lr 0.001, 0.0005; weight_decay 0.1; foreach none; maximize no\n"
    )


def test_a_long_timeline_leaves_out_its_middle() -> None:
    text = show_text(contents(500))

    assert "\n  ... 480 more steps\n" in text
    assert len(text.splitlines()) < 90


def test_an_empty_capture_says_so() -> None:
    empty = Contents("npu.h5", report_samples.NPU, {}, {})

    assert show_text(empty).endswith("\nTensors captured\n  none\n\nModules (0)\n")


def test_a_name_that_is_not_there_names_close_ones() -> None:
    with pytest.raises(UsageError) as caught:
        show_text(contents(), ("layers.1.atn",))

    listed = "'layers.1.attn', 'layers.0.attn', 'layers.1.ln_2'"
    reason = "no tensor of 'runs/npu.h5' has that name"
    assert str(caught.value) == f"Cannot show 'layers.1.atn': {reason}. Names in it: {listed}; * stands for anything."


def test_a_name_in_an_empty_capture_is_a_sentence() -> None:
    with pytest.raises(UsageError) as caught:
        show_text(Contents("npu.h5", report_samples.NPU, {}, {INIT_STEP: ()}), ("x",))

    assert str(caught.value) == "Cannot show 'x': 'npu.h5' holds no tensor. Capture it again with --steps 0:1."


@pytest.mark.parametrize(
    ("alive", "steps", "ending"),
    [
        (True, 37, "unfinished: still running; the last finished step is 36"),
        (False, 37, "unfinished: killed; the last finished step is 36"),
        (None, 37, "unfinished: killed or still running; the last finished step is 36"),
        (False, 0, "unfinished: killed; no step is finished"),
    ],
)
def test_an_unfinished_capture_says_what_is_known(alive: bool | None, steps: int, ending: str) -> None:
    run = dataclasses.replace(report_samples.NPU, outcome="unfinished")
    held = Contents("npu.h5", run, {}, {}, report_samples.timeline(steps), alive=alive)

    assert show_text(held).splitlines()[0] == f"npu.h5: {ending}, align 0.1.0, format {run.format_version}"


def test_values_are_shown_whole_and_nested_tensors_by_their_elements() -> None:
    kinds: dict[str, tuple[str, str, list[float | complex]]] = {
        "complex": ("complex64", "", [0.5 - 1.25j, complex(2.0, float("inf"))]),
        "integer": ("int64", "", [2**63 - 1, -3]),
        "parts": ("float32", "nested", []),
    }
    stats = TensorStats(count=30, minimum=-1.5, maximum=2.5, total=3.0, total_squares=30.0)
    records = [
        TensorRecord(
            TensorKey(0, Phase.FORWARD, "fc", slot), order, dtype, () if layout else (30,), stats, layout=layout
        )
        for order, (slot, (dtype, layout, _)) in enumerate(kinds.items())
    ]
    values = {(0, order): shown for order, (_, _, shown) in enumerate(kinds.values())}
    text = show_text(Contents("npu.h5", report_samples.NPU, {}, {0: records}, values=values), ("fc",))

    assert text == (
        "           dtype      shape           min    max    mean    rms  zeros  NaN  Inf  hash  remarks\n"
        "step 0, forward: fc\n"
        "  complex  complex64  [30]         -1.500  2.500  0.1000  1.000  0.0 %    0    0\n"
        "      values: 0.5000 - 1.250i, 2.000 + Infi ... (2 of 30)\n"
        "  integer  int64      [30]             -1      2  0.1000  1.000  0.0 %    0    0\n"
        "      values: 9,223,372,036,854,775,807, -3 ... (2 of 30)\n"
        "  parts    fp32       30 elements  -1.500  2.500  0.1000  1.000  0.0 %    0    0        nested\n"
    )
