"""Train one case; `align capture` runs this script."""

from __future__ import annotations

import argparse

import torch

from benchmarks.nan_origins.case import Case
from benchmarks.nan_origins.cases import CASES
from benchmarks.nan_origins.models import MODELS, draw_batch
from benchmarks.nan_origins.points import POINTS

AUTOCAST = {"bf16": torch.bfloat16, "fp16": torch.float16}


def train(case: Case) -> None:
    """Run all steps."""
    torch.manual_seed(5)
    POINTS.operations = case.points
    model = MODELS[case.model]()
    if case.prepare is not None:
        with torch.no_grad():
            case.prepare(model)
    optimizer = case.optimizer(model)
    scaler = torch.amp.GradScaler("cpu", init_scale=case.init_scale, enabled=case.precision == "fp16")
    for step in range(case.steps):
        POINTS.step = step
        optimizer.zero_grad()
        for micro in range(case.micros):
            x, target = draw_batch(case.model, step * case.micros + micro)
            if case.batch is not None:
                x, target = case.batch(step, (x, target))
            with torch.autocast("cpu", AUTOCAST.get(case.precision), enabled=case.precision in AUTOCAST):
                prediction = model(x)
            loss = case.loss(prediction, target) / case.micros
            scaler.scale(loss).backward()
        if case.before_update is not None:
            scaler.unscale_(optimizer)
            if case.before_update(model, optimizer, step):
                continue
        scaler.step(optimizer)
        scaler.update()


def main() -> None:
    """Train the case that was named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case", choices=[case.name for case in CASES])
    args = parser.parse_args()
    train(next(case for case in CASES if case.name == args.case))


if __name__ == "__main__":
    main()
