"""The training whose steps the benchmarks of capturing time: a GPT-2 with random weights, and its clock."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import torch


@dataclass(frozen=True)
class Size:
    """How large the model and its batch are; as given here, a step takes a second or more on one CPU thread."""

    vocabulary: int = 50257
    width: int = 512
    layers: int = 6
    heads: int = 8
    batch: int = 4
    length: int = 256


class Seconds(NamedTuple):
    """How long a step took, on the wall clock and in processor time of the process."""

    wall: float
    cpu: float


def median(values: Iterable[Seconds]) -> Seconds:
    """The medians of both clocks."""
    walls, cpus = zip(*values, strict=True)
    return Seconds(statistics.median(walls), statistics.median(cpus))


class Training:
    """A float32 GPT-2, its AdamW and its steps; a step is timed from one root forward to the next, writing included."""

    def __init__(self, size: Size, device: torch.device) -> None:
        from transformers import GPT2Config, GPT2LMHeadModel

        torch.manual_seed(0)
        config = GPT2Config(
            vocab_size=size.vocabulary, n_positions=size.length, n_embd=size.width, n_layer=size.layers,
            n_head=size.heads, bos_token_id=0, eos_token_id=0, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
            attn_implementation="eager",
        )  # fmt: skip
        model = GPT2LMHeadModel(config)
        model.loss_type = "ForCausalLM"  # otherwise transformers prints a notice that it guessed this
        self.model: torch.nn.Module = model.to(device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)
        self.batch = torch.randint(size.vocabulary, (size.batch, size.length)).to(device)
        self._device = device
        self._marks: list[Seconds] = []
        self.model.register_forward_pre_hook(self._mark)

    def _mark(self, *_: object) -> None:
        # What a device still has to do belongs to the step that asked for it.
        if self._device.type != "cpu":
            getattr(torch, self._device.type).synchronize()
        self._marks.append(Seconds(time.perf_counter(), time.process_time()))

    def run(self, steps: int) -> list[Seconds]:
        """Seconds of each of these steps; one more begins, so that the last one's writing is counted."""
        self._marks.clear()
        for _ in range(steps):
            self.step()
        with torch.enable_grad():
            self.model(self.batch[:, :2])
        return [
            Seconds(end.wall - begin.wall, end.cpu - begin.cpu)
            for begin, end in zip(self._marks, self._marks[1:], strict=False)
        ]

    def step(self) -> None:
        """One ordinary training step."""
        self.optimizer.zero_grad()
        self.forward_and_backward()
        self.optimizer.step()

    def forward_and_backward(self) -> None:
        """What a step does before the update."""
        self.model(self.batch, labels=self.batch).loss.backward()
