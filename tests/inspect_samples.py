"""Inspections made by hand for the tests of the reports: the same numbers every time, no capture behind them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

from align.records import (
    Column,
    Curve,
    Finding,
    Health,
    InspectResult,
    Place,
    Reply,
    Severity,
    Shown,
    State,
    Table,
    TimelineRow,
)
from tests.report_samples import GPU, NPU, modules, scaled, timeline

QUESTIONS = (
    "non-finite values",
    "headroom",
    "loss scale",
    "underflow",
    "recomputing",
    "optimizer",
    "update",
    "loss",
    "step time",
    "ranks",
)
GOOD = {
    "non-finite values": "No NaN and no Inf in 1,214 tensors over steps 0-2.",
    "headroom": "The largest magnitude is 41.2 in layers.1.mlp.fc1, 1,590 times below the limit of fp16.",
    "loss scale": "The loss scale is steady at 65,536 (2^16); 1 of 12 steps was skipped, as is usual in the beginning.",
    "underflow": "No more than 0.3 % of the gradients of any layer vanish in fp16.",
    "optimizer": "AdamW: the updates of 24 parameters follow its formula; the largest difference is 3.1e-7.",
    "update": "Every parameter that has a gradient moves.",
    "loss": "The loss falls from 3.4000 to 2.0531 in 12 steps.",
    "step time": "Half of the steps take 318 ms or less, no step takes twice as long.",
}
ABSENT = {
    "recomputing": "No activation checkpoint in this run.",
    "ranks": "The run has one process.",
}
NOT_TOLD = (
    "Whether the optimizer follows its formula cannot be told: the capture has no phase param; capture with "
    "--phases all."
)


def replies(**others: tuple[State, str]) -> tuple[Reply, ...]:
    """One reply a question: all is well but for the others, whose questions have `_` for blanks."""
    given = {name.replace("__", "-").replace("_", " "): reply for name, reply in others.items()}
    known = {
        **{name: (State.GOOD, sentence) for name, sentence in GOOD.items()},
        **{name: (State.ABSENT, sentence) for name, sentence in ABSENT.items()},
        **given,
    }
    return tuple(Reply(name, *known[name]) for name in QUESTIONS)


def headroom(factor: float = 1.0, layers: int = 4) -> Table:
    """Largest magnitudes per layer."""
    rows = [
        (f"layers.{n}.mlp.fc1", "float16", 41.2 * factor * (n + 1), 65504 / (41.2 * factor * (n + 1)), n)
        for n in reversed(range(layers))
    ]
    return Table(
        name="headroom",
        title="Headroom to the largest number of the format",
        lead="How far the largest magnitude of each module lies below the largest number that its format has.",
        columns=(
            Column("module", Shown.NAME),
            Column("format"),
            Column("largest magnitude", Shown.NUMBER),
            Column("limit over largest", Shown.TIMES),
            Column("step", Shown.COUNT),
        ),
        rows=tuple(rows),
        question="headroom",
    )


def skips(rows: tuple[TimelineRow, ...], cause: str | None) -> Table:
    """The skipped steps and who overflowed."""
    return Table(
        name="skipped_steps",
        title="Skipped steps",
        lead="What was the first tensor with Inf or NaN in each step that was skipped.",
        columns=(
            Column("step", Shown.COUNT),
            Column("scale before", Shown.SCALE),
            Column("scale after", Shown.SCALE),
            Column("first tensor", Shown.NAME),
        ),
        rows=tuple(
            (row.step, row.loss_scale, row.loss_scale_after, cause if row.step < 3 else None)
            for row in rows
            if row.skipped
        ),
        question="loss scale",
        curve=Curve.LOSS_SCALE,
    )


def healthy() -> InspectResult:
    """A run of which every question says that all is well."""
    rows = scaled(timeline(12), after=32768.0)
    return InspectResult(
        paths=("runs/gpu.h5",),
        run=dataclasses.replace(GPU, autocast="float16"),
        verdict=Health.HEALTHY,
        summary="Nothing is wrong in what was captured (12 steps, of which 3 captured).",
        findings=(),
        replies=replies(),
        timeline=rows,
        modules=modules(4),
        counts={"steps": 12, "captured_steps": 3, "records": 1214, "findings": 0},
        tables=(headroom(), skips(rows, "layers.3.mlp.fc1 output.0")),
        captured=(0, 1, 2),
    )


def nan() -> InspectResult:
    """The softmax of one layer makes NaN in step 1; what follows from it is folded, and the capture was killed."""
    summary = (
        "Step 1, backward: layers.1.attn grad_input.0 is the first tensor with NaN: 512 of 24,576 elements. What it is "
        "made from is finite."
    )
    rows = tuple(
        dataclasses.replace(row, loss=math.nan, nonfinite=True, gradient_norm=math.nan) if row.step > 1 else row
        for row in timeline(6)
    )
    cause = Finding(
        code="AL601",
        label="nan-origin",
        severity=Severity.ERROR,
        summary=summary,
        advice="Look at rows of the mask that are all masked, then `align show npu.h5 layers.1.attn`.",
        where=Place(1, "backward", "layers.1.attn", "grad_input.0"),
        evidence={"nans": 512, "elements": 24576, "share": 512 / 24576, "largest_input": 3.1e3},
        arguments={"name": "layers.1.attn"},
    )
    consequences = _consequences(cause)
    note = Finding(
        "AL611",
        "little-headroom",
        Severity.NOTE,
        "The largest magnitude in layers.3.mlp.fc1 is 9,888, 6.6x below the limit of fp16, and doubles every step.",
        "Train in bf16, or clip what enters layers.3.mlp.fc1.",
        Place(1, "forward", "layers.3.mlp.fc1", "output.0"),
    )
    return InspectResult(
        paths=("runs/npu.h5",),
        run=dataclasses.replace(NPU, outcome="unfinished", steps_seen=6, autocast="float16"),
        verdict=Health.UNHEALTHY,
        summary=summary,
        findings=(cause, *consequences, note),
        replies=replies(
            non__finite_values=(State.BAD, summary),
            headroom=(State.BAD, note.summary),
            loss_scale=(State.ABSENT, "No loss scaling in this run."),
            optimizer=(State.UNKNOWN, NOT_TOLD),
            update=(State.BAD, consequences[0].summary),
            loss=(State.BAD, consequences[1].summary),
        ),
        timeline=rows,
        modules=modules(4),
        counts={"steps": 6, "captured_steps": 2, "records": 802, "findings": 4},
        first=cause.where,
        tables=(headroom(60.0),),
        captured=(0, 1),
    )


def _consequences(cause: Finding) -> tuple[Finding, Finding]:
    """What follows from a NaN: the parameters, and then the loss."""
    explained = dataclasses.replace(
        cause,
        severity=Severity.WARNING,
        advice="Find where the NaN comes from first.",
        explained_by=cause.code,
        evidence={},
    )
    parameters = dataclasses.replace(
        explained,
        code="AL706",
        label="parameters-not-updated",
        severity=Severity.ERROR,
        summary="24 of 26 parameters are NaN after step 1.",
        where=Place(2, "param", "layers.0.attn", "weight"),
        evidence={"differing": 24, "parameters": 26},
    )
    loss = dataclasses.replace(
        explained,
        code="AL802",
        label="loss-spike",
        summary="The loss is NaN from step 2 on.",
        where=Place(2, "loss", "loss"),
    )
    return parameters, loss


def collapse(steps: int = 200) -> InspectResult:
    """A loss scale that is halved until nothing is left; every fifth step was captured."""
    rows = []
    scale = 65536.0
    for row in timeline(steps):
        skipped = row.step % 9 == 4 and row.step > 30
        after = scale / 2 if skipped else scale
        norm = 1.5 + 40.0 * (row.step % 50 == 0)
        seconds = 2.4 if row.step in {0, 120} else 0.3 + 0.002 * (row.step % 7)
        rows.append(
            dataclasses.replace(
                row,
                loss=row.loss + 0.02 * math.sin(row.step),
                loss_scale=scale,
                loss_scale_after=after,
                skipped=skipped,
                clip_norm=norm,
                clip_limit=1.0,
                gradient_norm=norm,
                seconds=seconds,
            )
        )
        scale = after
    timeline_rows = tuple(rows)
    last = rows[-1].loss_scale_after
    summary = (
        f"The loss scale fell from 65,536 (2^16) to 2^{round(math.log2(last))} in {steps} steps: layers.3.mlp.fc1 "
        "overflows in the forward pass, which no loss scale can help."
    )
    cause = Finding(
        "AL606",
        "loss-scale-collapse",
        Severity.ERROR,
        summary,
        "Train in bf16: `torch.autocast('npu', torch.bfloat16)`, without a GradScaler.",
        Place(31, "scaler", "scaler", "scale"),
        {"skipped": sum(row.skipped for row in rows), "first_scale": 65536.0, "last_scale": last},
    )
    return InspectResult(
        paths=("runs/npu.h5",),
        run=dataclasses.replace(NPU, simulated=False, steps_seen=steps),
        verdict=Health.UNHEALTHY,
        summary=summary,
        findings=(cause,),
        replies=replies(loss_scale=(State.BAD, summary)),
        timeline=timeline_rows,
        modules=modules(4),
        counts={"steps": steps, "captured_steps": steps // 5, "records": 9000, "findings": 1},
        first=cause.where,
        tables=(headroom(400.0, layers=60), skips(timeline_rows, "layers.3.mlp.fc1 output.0")),
        captured=tuple(range(0, steps, 5)),
    )


def job() -> InspectResult:
    """Two of eight ranks were read, and both say the same."""
    whole = nan()
    findings = tuple(
        dataclasses.replace(finding, where=dataclasses.replace(finding.where, rank=rank))
        for rank in (0, 1)
        for finding in whole.findings
    )
    return dataclasses.replace(
        whole,
        paths=("npu.rank0000.h5", "npu.rank0001.h5"),
        run=dataclasses.replace(whole.run, world_size=8, outcome="finished"),
        findings=findings,
        first=findings[0].where,
    )


def unknown() -> InspectResult:
    """A capture in which no question finds what it needs."""
    sentence = "Whether {} cannot be told: the capture holds no step; capture with --steps 0:3."
    return InspectResult(
        paths=("bare.h5",),
        run=dataclasses.replace(GPU, phases=("input", "loss"), detail="stats", outcome="exception: KeyError: 'x'."),
        verdict=Health.UNKNOWN,
        summary=(
            "The run did not end by itself: an exception ended it, KeyError: 'x' (no step was captured, the last step "
            "of the timeline is 0). Nothing can be told of this run (1 step, of which 0 captured): no question has "
            "what it needs."
        ),
        findings=(),
        replies=tuple(Reply(name, State.UNKNOWN, sentence.format(f"{name} are well")) for name in QUESTIONS[:4]),
        timeline=timeline(1),
        counts={"steps": 1, "captured_steps": 0, "records": 0, "findings": 0},
    )


def without_timeline() -> InspectResult:
    """A capture whose timeline is empty."""
    return dataclasses.replace(healthy(), timeline=(), tables=(skips(scaled(timeline(3), 32768.0), None),))


SAMPLES: dict[str, Callable[[], InspectResult]] = {
    "healthy": healthy,
    "nan": nan,
    "collapse": collapse,
    "job": job,
    "unknown": unknown,
    "without_timeline": without_timeline,
}

HOSTILE = "</script><img src=x onerror=alert(1)>\u202e\x1b[31m$x$`"


def hostile() -> InspectResult:
    """Names that try to be more than names, wherever a report shows one."""
    whole = nan()
    bad = HOSTILE + "n" * 300

    def renamed(finding: Finding) -> Finding:
        where = dataclasses.replace(finding.where, name=bad, slot=bad)
        return dataclasses.replace(
            finding, where=where, summary=f"{bad} is bad.", label=bad, advice=bad, evidence={bad: bad}
        )

    table = headroom()
    return dataclasses.replace(
        whole,
        paths=(f"runs/{HOSTILE.replace('/', '')}.h5",),
        summary=f"{bad} is bad.",
        findings=tuple(map(renamed, whole.findings)),
        replies=tuple(Reply(HOSTILE, reply.state, bad) for reply in whole.replies),
        tables=(
            dataclasses.replace(
                table,
                name=HOSTILE,
                title=HOSTILE,
                lead=bad,
                columns=tuple(dataclasses.replace(column, title=HOSTILE) for column in table.columns),
                rows=((bad, bad, math.nan, math.inf, None),),
            ),
        ),
        timeline=tuple(dataclasses.replace(row, optimizer=bad) for row in whole.timeline),
        run=dataclasses.replace(whole.run, device_name=bad, outcome=f"exception: {bad}", notes=(bad,)),
        first=Place(1, bad, bad, bad),
    )
