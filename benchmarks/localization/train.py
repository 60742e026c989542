"""Trains one of the benchmark's models for two steps; with --fault, one thing in it is wrong."""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import ExitStack
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.localization import catalogue, faults, models

AUTOCAST = {"bf16": torch.bfloat16, "fp16": torch.float16}
STEPS, RATE, DECAY, CLIP = 2, 1e-3, 0.1, 1.0
LOSS_SCALE = 1024.0


def parse_args() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=catalogue.MODELS, required=True)
    parser.add_argument("--precision", choices=catalogue.CLASSES, default="fp32")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=0, help="of the batches, and of the place of the fault")
    parser.add_argument("--checkpoint", metavar="FILE", help="initial weights")
    parser.add_argument("--fault", choices=sorted(catalogue.KIND_OF))
    parser.add_argument("--size", choices=catalogue.SIZES, default="large")
    parser.add_argument("--answers", metavar="FILE", help="write where the fault is, as JSON")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--fit", type=int, metavar="STEPS", help="train so many steps and write the checkpoint")
    return parser.parse_args()


def build(args: argparse.Namespace) -> torch.nn.Module:
    """The model with its initial weights."""
    torch.manual_seed(args.seed)
    model = models.BUILDERS[args.model]()
    if args.fit:
        models.stir(model)
    elif args.checkpoint:
        model.load_state_dict(torch.load(args.checkpoint, weights_only=True))
    return model.to(args.device).train()


def build_optimizer(model: torch.nn.Module) -> torch.optim.Optimizer:
    """AdamW that lets norms and biases be."""
    groups = [
        {"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": DECAY},
        {"params": [p for p in model.parameters() if p.dim() <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=RATE)


def train(model: torch.nn.Module, args: argparse.Namespace, fault: faults.Fault | None) -> None:
    """The steps."""
    device = torch.device(args.device)
    optimizer = build_optimizer(model)
    autocast = AUTOCAST.get(args.precision)
    scaler = torch.amp.GradScaler(device.type, enabled=args.precision == "fp16", init_scale=LOSS_SCALE)
    generator = torch.Generator().manual_seed(args.seed + 1)
    for _ in range(args.fit or args.steps):
        inputs, targets = (part.to(device) for part in models.batch(args.model, generator))
        with torch.autocast(device.type, dtype=autocast, enabled=autocast is not None):
            output = model(inputs)
            loss = models.loss_of(args.model, getattr(output, "logits", output), targets)
        if fault is not None:
            loss = fault.of_loss(loss)
        scaler.scale(loss).backward()
        if fault is None or not fault.clips_first:
            scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        if fault is not None:
            fault.before_update()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        print(f"loss {loss.item():.6f}", flush=True)


def main() -> None:
    """Train, wrongly where that is asked."""
    args = parse_args()
    model = build(args)
    with ExitStack() as stack:
        fault = None
        if args.fault:
            fault = faults.inject(model, args.fault, args.size, args.model, args.precision, args.seed)
            stack.enter_context(fault.undo)
            if args.answers:
                Path(args.answers).write_text(json.dumps(fault.answers), encoding="utf-8")
        train(model, args, fault)
    if args.fit and args.checkpoint:
        torch.save(model.state_dict(), args.checkpoint)


if __name__ == "__main__":
    main()
