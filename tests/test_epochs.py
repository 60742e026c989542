"""Whether a run reads its data in one order in each epoch, and what load_state_dict left out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import align
from align.commands import inspect_files
from align.hooks.loads import prefix_between
from align.hooks.renames import renamed_part
from align.records import Fact, Finding, Phase, RunInfo, Severity, State, TensorKey, TimelineRow
from tests.builders import record_of, write_capture

STREAM = np.random.default_rng(3).normal(size=(64, 8)).astype(np.float32)
SHUFFLED: dict[str, Any] = {"name": "<DataLoader>", "length": 16, "batch_size": 4, "shuffle": True, "num_workers": 0}
EPOCH = ((3, 1, 2, 0), (7, 5, 4, 6), (8, 11, 9, 10), (12, 15, 14, 13))
OTHER = ((1, 7, 9, 0), (3, 5, 4, 2), (8, 11, 13, 10), (12, 15, 14, 6))


def run(path: Path, batches: Sequence[Sequence[int]], loader: dict[str, Any]) -> Path:
    """A run whose loader hands out these samples, a batch at each step."""
    steps, facts, timeline = {}, {}, []
    for step, samples in enumerate(batches):
        key = TensorKey(step, Phase.INPUT, "<DataLoader>", "0")
        steps[step] = [record_of(key, STREAM[list(samples)])]
        facts[step] = [Fact(TensorKey(step, Phase.INPUT, "<DataLoader>", "batch"), step)]
        timeline.append(TimelineRow(step, 1.0, 0.1, np.nan, 1.0, 0.1, False, False, 1, "SGD"))
    info = RunInfo(outcome="finished", loaders=(loader,))
    return write_capture(path, steps, run=info, timeline=timeline, facts=facts)


def findings(path: Path) -> list[Finding]:
    return [finding for finding in inspect_files(str(path)).findings if finding.code in {"AL208", "AL211"}]


def reply(path: Path) -> tuple[State, str]:
    return next((each.state, each.sentence) for each in inspect_files(str(path)).replies if each.question == "data")


def test_an_order_that_comes_again_although_the_loader_shuffles_is_a_warning(tmp_path: Path) -> None:
    [finding] = findings(run(tmp_path / "a.h5", [*EPOCH, *EPOCH[:2]], SHUFFLED))
    assert (finding.label, finding.severity, finding.where.step) == ("data-order-repeated", Severity.WARNING, 4)
    assert finding.summary == (
        "From step 4 on the batches of the epoch before come again in the same order: 2 of 6 captured batches, each 4 "
        "batches after it came first, although the loader shuffles."
    )


def test_a_sampler_that_is_not_told_the_epoch_is_named(tmp_path: Path) -> None:
    loader = SHUFFLED | {"distributed": {"num_replicas": 1, "epoch": 0}}
    [finding] = findings(run(tmp_path / "a.h5", [*EPOCH, *EPOCH], loader))
    assert finding.advice == (
        "Call `sampler.set_epoch(epoch)` at the begin of each epoch: it shuffles by seed plus epoch."
    )


def test_where_it_is_not_known_whether_the_loader_shuffles_it_is_a_note(tmp_path: Path) -> None:
    [finding] = findings(run(tmp_path / "a.h5", [*EPOCH, *EPOCH], SHUFFLED | {"shuffle": None}))
    assert finding.severity is Severity.NOTE


@pytest.mark.parametrize(
    ("batches", "loader"),
    [
        ([*EPOCH, *OTHER], SHUFFLED),
        ([*EPOCH, *EPOCH], SHUFFLED | {"shuffle": False}),
        ([EPOCH[0]] * 8, SHUFFLED),
        ([*EPOCH, EPOCH[0]], SHUFFLED),
        ([*EPOCH, EPOCH[0], OTHER[1]], SHUFFLED),
        (EPOCH, SHUFFLED | {"length": None, "num_workers": 2}),
        ([EPOCH[0]] * 8, SHUFFLED | {"length": None, "num_workers": 2, "shuffle": None}),
        ([EPOCH[0], EPOCH[0], EPOCH[1], EPOCH[1]], SHUFFLED | {"num_workers": 2}),
    ],
    ids=["another order", "it does not shuffle", "one batch", "one batch came again", "the next is another one",
         "workers that share", "workers and one batch", "a dataset with a length"],
)  # fmt: skip
def test_what_is_meant_or_may_be_chance_is_not_told(
    tmp_path: Path, batches: Sequence[Sequence[int]], loader: dict[str, Any]
) -> None:
    assert findings(run(tmp_path / "a.h5", batches, loader)) == []


def test_batches_that_come_once_from_each_worker_are_a_warning(tmp_path: Path) -> None:
    loader = SHUFFLED | {"length": None, "num_workers": 2, "shuffle": None}
    [finding] = findings(run(tmp_path / "a.h5", [EPOCH[0], EPOCH[0], EPOCH[1], EPOCH[1], EPOCH[2]], loader))
    assert (finding.label, finding.severity, finding.where.step) == ("duplicate-samples", Severity.WARNING, 1)
    assert finding.summary == (
        "Each of the 2 workers of the DataLoader gives the same batches: 2 of 5 captured batches are copies of the one "
        "before."
    )


def test_the_question_says_what_to_capture(tmp_path: Path) -> None:
    assert reply(run(tmp_path / "a.h5", EPOCH[:3], SHUFFLED)) == (
        State.UNKNOWN,
        (
            "Whether the order changes from epoch to epoch cannot be told of 3 batches (an epoch has 4); capture "
            "two more than an epoch with --phases input --steps 0:6."
        ),
    )
    assert reply(run(tmp_path / "b.h5", [*EPOCH, *OTHER], SHUFFLED))[0] is State.GOOD
    assert reply(run(tmp_path / "c.h5", EPOCH, SHUFFLED | {"shuffle": False}))[0] is State.ABSENT


# ---- load_state_dict


@pytest.mark.parametrize(
    ("missing", "unexpected", "expected"),
    [
        (
            ["a.w", "b.w"],
            ["module.a.w", "module.b.w"],
            {"prefix": "module.", "prefix_in": "file", "prefix_explains": 2},
        ),
        (["net.a.w", "c"], ["a.w"], {"prefix": "net.", "prefix_in": "module", "prefix_explains": 1}),
        (["a.w"], ["b.w"], {}),
        (["a.w"], [], {}),
    ],
    ids=["in the file", "in the model", "other names", "an adapter"],
)
def test_the_prefix_that_would_make_keys_fit_is_found(
    missing: list[str], unexpected: list[str], expected: dict[str, Any]
) -> None:
    assert prefix_between(missing, unexpected) == expected


LAYERS = {f"layers.{number}.{name}": (number + 2,) for number in range(3) for name in ("weight", "bias")}
BLOCKS = {f"blocks.{name.partition('.')[2]}": shape for name, shape in LAYERS.items()}


@pytest.mark.parametrize(
    ("missing", "unexpected", "expected"),
    [
        (BLOCKS, LAYERS, {"renamed": "layers", "renamed_to": "blocks", "prefix_explains": 6}),
        (BLOCKS, {**LAYERS, "layers.0.bias": (9,)}, {}),
        ({**BLOCKS, "head.weight": (2,)}, {**LAYERS, "top.weight": (2,)}, {}),
        ({"head.weight": (2,), "head.bias": (2,)}, {"top.weight": (2,), "top.bias": (2,)}, {}),
    ],
    ids=["one part", "another shape", "more than one part", "a new head"],
)
def test_the_part_of_the_names_that_was_replaced_is_found(
    missing: dict[str, Any], unexpected: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert renamed_part(missing, unexpected) == expected


@pytest.mark.parametrize(("kept", "severity"), [(0, Severity.ERROR), (12, Severity.WARNING)], ids=["most", "a part"])
def test_a_load_that_calls_a_part_of_the_names_otherwise_is_told_with_it(
    tmp_path: Path, kept: int, severity: Severity
) -> None:
    torch.manual_seed(0)
    net = nn.Module()
    net.blocks = nn.Sequential(*(nn.Linear(2, 2) for _ in range(3)))
    net.rest = nn.ParameterList(nn.Parameter(torch.ones(1)) for _ in range(kept + 1))
    renamed = {name.replace("blocks", "layers"): value for name, value in net.state_dict().items()}
    with align.Recorder(tmp_path / "run.h5", steps="0:1"):
        net.load_state_dict(renamed, strict=False)
        net.blocks(torch.ones(3, 2)).sum().backward()
        torch.optim.SGD(net.parameters(), lr=0.1).step()

    result = inspect_files(str(tmp_path / "run.h5"))

    (finding,) = [finding for finding in result.findings if finding.label == "checkpoint-keys"]
    assert finding.severity is severity
    assert finding.summary == (
        f"The checkpoint did not fill 6 parameters and buffers: load_state_dict of Module was given {kept + 7} keys, "
        "does not know 6 of them (such as 'layers.0.weight') and misses 6 of its own (such as 'blocks.0.weight'); "
        "with 'blocks' in the place of 'layers' all of them would fit, in name and shape."
    )
    assert finding.advice == (
        "Put 'blocks' in the place of 'layers' in the keys before loading, and load with `strict=True`, which refuses "
        "keys that do not fit."
    )


def captured(path: Path, *keys: tuple[str, ...]) -> Path:
    """Train a layer that is given its own weights under these keys, load by load."""
    torch.manual_seed(0)
    net = nn.Linear(4, 2)
    weights = list(net.state_dict().values())
    with align.Recorder(path, steps="0:1"):
        for names in keys:
            net.load_state_dict(dict(zip(names, weights, strict=False)), strict=False)
        net(torch.ones(3, 4)).sum().backward()
        torch.optim.SGD(net.parameters(), lr=0.1).step()
    return path


@pytest.mark.parametrize(
    ("loads", "severity", "state"),
    [
        ([("module.weight", "module.bias")], Severity.ERROR, State.BAD),
        ([("weight", "module.bias")], Severity.WARNING, State.ODD),
        ([("weight", "shift")], Severity.NOTE, State.UNKNOWN),
        ([("weight",)], None, State.UNKNOWN),
        ([("module.weight", "module.bias"), ("weight", "bias")], None, State.GOOD),
        ([], None, State.ABSENT),
    ],
    ids=["all by a prefix", "one by a prefix", "another name", "a part", "at the second try", "none"],
)
def test_what_a_load_left_out_is_judged_by_its_keys(
    tmp_path: Path, loads: list[tuple[str, ...]], severity: Severity | None, state: State
) -> None:
    result = inspect_files(str(captured(tmp_path / "run.h5", *loads)))
    found = [finding.severity for finding in result.findings if finding.label == "checkpoint-keys"]
    assert found == ([severity] if severity is not None else [])
    assert next(each.state for each in result.replies if each.question == "checkpoint") is state
