"""A small transformer in numpy that writes real capture files: two devices, two precisions, any fault on demand.

It computes forward, backward and Adam by itself, in float32 or in rounded bfloat16, with matrix products summed in
one or several pieces (the other device), and records what a capture of such a run holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from align.records import INIT_STEP, Fact, ModuleInfo, Phase, RunInfo, TensorKey, TensorRecord, TimelineRow
from tests.builders import Array, record_of, write_capture

Fault: TypeAlias = Callable[[Array], Array]

BATCH, LENGTH, WIDTH, HIDDEN, WORDS = 4, 16, 32, 64, 50


def times(factor: float) -> Fault:
    """So many times what is right."""
    return lambda array: array * np.float32(factor)


def dropped(array: Array) -> Array:
    """A dropout of a tenth."""
    return np.where(np.random.default_rng(3).random(array.shape) < 0.1, 0, array / 0.9)


def to_bfloat16(array: Array) -> Array:
    """Round to the nearest bfloat16, ties to even, kept as float32."""
    bits = np.ascontiguousarray(array, dtype=np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)
    return np.where(np.isfinite(array), rounded.view(np.float32), array).astype(np.float32)


@dataclass(frozen=True)
class Setup:
    """One run: where it differs from the default says what a test is about.

    `faults` maps a point (`forward blocks.0.mlp.fc`, `between blocks.0`, `backward blocks.1.attn.k`,
    `gradient blocks.0.mlp.fc.weight`, `loss`, `update`) at a step to what is done to the tensor there. `evidence`
    is the seed of what each step records and no one compares: generators, batches of a loader, what a checkpoint
    computed again, optimizer states; 0 for none.
    """

    pieces: int = 1
    bfloat16: bool = False
    steps: int = 2
    seed: int = 0
    data_seed: int = 100
    faults: Mapping[tuple[int, str], Fault] = field(default_factory=dict)
    initial: Mapping[str, Fault] = field(default_factory=dict)
    rename: Callable[[str], str] = str
    run: RunInfo = field(default_factory=lambda: RunInfo(outcome="finished"))
    loss_scale: float = math.nan
    learning_rate: float = 1e-3
    detail: str = "sketch"
    drop: frozenset[Phase] = frozenset()
    targets: Fault | None = None
    batch: Fault | None = None
    facts: Mapping[int, Sequence[Fact]] = field(default_factory=dict)
    configs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    extra_modules: Sequence[ModuleInfo] = ()
    evidence: int = 0


class Model:
    """The run itself; `write` trains and records it."""

    optimizer = "Adam"

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.dtype = "bfloat16" if setup.bfloat16 else "float32"
        self.step = 0
        self.records: list[TensorRecord] = []
        self.cache: dict[str, Any] = {}
        self.gradients: dict[str, Array] = {}
        self.parameters = self._draw()
        self.moments = {name: (np.zeros_like(value), np.zeros_like(value)) for name, value in self.parameters.items()}

    def write(self, path: Path) -> Path:
        """Train and write the capture."""
        steps: dict[int, list[TensorRecord]] = {INIT_STEP: self._initial_records()}
        random = np.random.default_rng(self.setup.data_seed)
        timeline = []
        for step in range(self.setup.steps):
            self.step, self.records = step, []
            tokens = random.integers(0, WORDS, (BATCH, LENGTH))
            tokens = tokens if self.setup.batch is None else self.setup.batch(tokens)
            loss = self._train(tokens)
            steps[step] = [record for record in self.records if record.key.phase not in self.setup.drop]
            timeline.append(
                TimelineRow(
                    step, loss, self.setup.learning_rate, self.setup.loss_scale, math.nan, 0.1, False, False, 1,
                    self.optimizer,
                )
            )  # fmt: skip
        if self.setup.detail == "stats":
            steps = {step: [replace(record, sketch=None) for record in records] for step, records in steps.items()}
        run = replace(self.setup.run, detail=self.setup.detail)
        modules = [
            replace(module, config=self.setup.configs.get(module.name, module.config))
            for module in {each.name: each for each in (*self._modules(), *self.setup.extra_modules)}.values()
        ]
        return write_capture(path, steps, modules=modules, run=run, timeline=timeline, facts=self.setup.facts)

    # Parameters and modules

    def _draw(self) -> dict[str, Array]:
        random = np.random.default_rng(self.setup.seed)
        shapes = {"embed.weight": (WORDS, WIDTH), "head.weight": (WORDS, WIDTH)}
        vectors = {}
        for block in ("blocks.0", "blocks.1"):
            for name in ("q", "k", "v", "o"):
                shapes[f"{block}.attn.{name}.weight"] = (WIDTH, WIDTH)
                vectors[f"{block}.attn.{name}.bias"] = np.zeros(WIDTH)
            shapes[f"{block}.mlp.fc.weight"] = (HIDDEN, WIDTH)
            shapes[f"{block}.mlp.proj.weight"] = (WIDTH, HIDDEN)
            vectors[f"{block}.mlp.fc.bias"] = np.zeros(HIDDEN)
            vectors[f"{block}.mlp.proj.bias"] = np.zeros(WIDTH)
            for name in ("norm1", "norm2"):
                vectors[f"{block}.{name}.weight"] = np.ones(WIDTH)
                vectors[f"{block}.{name}.bias"] = np.zeros(WIDTH)
        drawn = {name: random.normal(0, 0.15, shape) for name, shape in shapes.items()} | vectors
        changed = {name: self._initial_fault(name)(value) for name, value in drawn.items()}
        return {name: value.astype(np.float32) for name, value in changed.items()}

    def _initial_fault(self, name: str) -> Fault:
        return self.setup.initial.get(name) or self.setup.initial.get("*") or np.asarray

    def _initial_records(self) -> list[TensorRecord]:
        records = []
        for name, value in self.parameters.items():
            module, _, slot = name.rpartition(".")
            records.append(record_of(TensorKey(INIT_STEP, Phase.INIT, self._name(module), slot), value))
        return records

    def _modules(self) -> list[ModuleInfo]:
        modules = [ModuleInfo("<Net>", "Net", leaf=False), ModuleInfo("embed", "Embedding"), self._linear_info("head")]
        for block in ("blocks.0", "blocks.1"):
            modules += [ModuleInfo(block, "Block", leaf=False), ModuleInfo(f"{block}.attn", "Attention", leaf=False),
                        ModuleInfo(f"{block}.mlp", "Mlp", leaf=False)]  # fmt: skip
            modules += [self._linear_info(f"{block}.attn.{name}") for name in "qkvo"]
            modules += [ModuleInfo(f"{block}.{name}", "LayerNorm", compute_dtype="float32") for name in
                        ("norm1", "norm2")]  # fmt: skip
            modules += [self._linear_info(f"{block}.mlp.fc"),
                        ModuleInfo(f"{block}.mlp.act", "ReLU", piecewise=True),
                        self._linear_info(f"{block}.mlp.proj")]  # fmt: skip
        return [replace(module, name=self._name(module.name)) for module in modules]

    def _linear_info(self, name: str) -> ModuleInfo:
        return ModuleInfo(name, "Linear", compute_dtype=self.dtype, matmul=True)

    # Recording

    def _see_evidence(self, tokens: Array) -> None:
        """What differs between any two runs."""
        random = np.random.default_rng((self.setup.evidence, self.step))
        self._see(Phase.RNG, "torch", "state", random.integers(0, 255, 64))
        self._see(Phase.INPUT, "<DataLoader>", "value.0", tokens)
        for name, slot in (("head", "weight.exp_avg"), ("no.such.module", "weight.step")):
            self._see(Phase.OPTIMIZER, name, slot, random.normal(size=(WORDS, WIDTH)).astype(np.float32))
        again = TensorKey(self.step, Phase.FORWARD, "blocks.0", "output.0.recomputed")
        array = random.normal(size=(BATCH, LENGTH, WIDTH)).astype(np.float32)
        self.records.append(record_of(again, array, recomputed=True, within="<Net>"))

    def _name(self, name: str) -> str:
        return name if name.startswith("<") or not name else self.setup.rename(name)

    def _see(self, phase: Phase, name: str, slot: str, array: Array, within: str = "") -> None:
        dtype = str(array.dtype)
        if dtype == "float64":
            array, dtype = array.astype(np.float32), "float32"
        key = TensorKey(self.step, phase, self._name(name), slot)
        self.records.append(record_of(key, array, dtype=dtype, within=self._name(within)))

    def _apply(self, point: str, array: Array) -> Array:
        fault = self.setup.faults.get((self.step, point))
        return array if fault is None else fault(array).astype(array.dtype)

    # Arithmetic of the device

    def _round(self, array: Array) -> Array:
        return to_bfloat16(array) if self.setup.bfloat16 else array.astype(np.float32)

    def _product(self, left: Array, right: Array) -> Array:
        """The matrix product, summed in so many pieces, each rounded."""
        left, right = self._round(left), self._round(right)
        total: Array | None = None
        for piece in np.array_split(np.arange(left.shape[-1]), self.setup.pieces):
            part = self._round(left[..., piece] @ right[..., piece, :])
            total = part if total is None else self._round(total + part)
        assert total is not None
        return total

    # Modules, forward and backward

    def _linear(self, name: str, x: Array, within: str) -> Array:
        self._see(Phase.FORWARD, name, "input.0", x, within)
        y = self._product(x, self.parameters[f"{name}.weight"].T)
        if f"{name}.bias" in self.parameters:
            y = self._round(y + self.parameters[f"{name}.bias"])
        y = self._apply(f"forward {name}", y)
        self._see(Phase.FORWARD, name, "output.0", y, within)
        self.cache[name] = x
        return y

    def _linear_back(self, name: str, gradient: Array, within: str) -> Array:
        self._see(Phase.BACKWARD, name, "grad_output.0", gradient, within)
        x = self.cache[name]
        rows, inputs = gradient.reshape(-1, gradient.shape[-1]), x.reshape(-1, x.shape[-1])
        self._add(f"{name}.weight", self._product(rows.T, inputs))
        if f"{name}.bias" in self.parameters:
            self._add(f"{name}.bias", sum(part.sum(0) for part in np.array_split(rows, self.setup.pieces)))
        back = self._apply(f"backward {name}", self._product(gradient, self.parameters[f"{name}.weight"]))
        self._see(Phase.BACKWARD, name, "grad_input.0", back, within)
        return back

    def _norm(self, name: str, x: Array, within: str) -> Array:
        self._see(Phase.FORWARD, name, "input.0", x, within)
        # The other device computes the variance in one pass.
        mean = x.mean(-1, keepdims=True)
        variance = (
            ((x * x).mean(-1, keepdims=True) - mean * mean) if self.setup.pieces > 1 else x.var(-1, keepdims=True)
        )
        scale = (1.0 / np.sqrt(variance + 1e-5)).astype(np.float32)
        normal = ((x - mean) * scale).astype(np.float32)
        self.cache[name] = (normal, scale)
        y = self._apply(f"forward {name}", normal * self.parameters[f"{name}.weight"] + self.parameters[f"{name}.bias"])
        self._see(Phase.FORWARD, name, "output.0", y, within)
        return y

    def _norm_back(self, name: str, gradient: Array, within: str) -> Array:
        self._see(Phase.BACKWARD, name, "grad_output.0", gradient, within)
        normal, scale = self.cache[name]
        self._add(f"{name}.weight", (gradient * normal).reshape(-1, WIDTH).sum(0))
        self._add(f"{name}.bias", gradient.reshape(-1, WIDTH).sum(0))
        inner = gradient * self.parameters[f"{name}.weight"]
        inner = inner - inner.mean(-1, keepdims=True) - normal * (inner * normal).mean(-1, keepdims=True)
        back = self._apply(f"backward {name}", inner * scale)
        self._see(Phase.BACKWARD, name, "grad_input.0", back, within)
        return back

    def _attention(self, name: str, x: Array, within: str) -> Array:
        self._see(Phase.FORWARD, name, "input.0", x, within)
        q, k, v = (self._linear(f"{name}.{part}", x, name) for part in "qkv")
        scores = self._product(q, k.swapaxes(-1, -2)) / np.float32(math.sqrt(WIDTH))
        scores = np.where(np.tri(LENGTH, dtype=bool), scores, np.float32(-1e9))
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights = self._round(weights / weights.sum(-1, keepdims=True))
        mixed = self._apply(f"between {name}", self._product(weights, v))
        self.cache[name] = (q, k, v, weights)
        y = self._linear(f"{name}.o", mixed, name)
        self._see(Phase.FORWARD, name, "output.0", y, within)
        return y

    def _attention_back(self, name: str, gradient: Array, within: str) -> Array:
        self._see(Phase.BACKWARD, name, "grad_output.0", gradient, within)
        back = self._linear_back(f"{name}.o", gradient, name)
        q, k, v, weights = self.cache[name]
        value = self._product(weights.swapaxes(-1, -2), back)
        inner = self._product(back, v.swapaxes(-1, -2))
        inner = weights * (inner - (inner * weights).sum(-1, keepdims=True)) / np.float32(math.sqrt(WIDTH))
        parts = {"q": self._product(inner, k), "k": self._product(inner.swapaxes(-1, -2), q), "v": value}
        parts = {part: self._apply(f"backward between {name}.{part}", back) for part, back in parts.items()}
        backs = [self._linear_back(f"{name}.{part}", parts[part], name) for part in "vkq"]
        return backs[0] + backs[1] + backs[2]

    def _mlp(self, name: str, x: Array, within: str) -> Array:
        self._see(Phase.FORWARD, name, "input.0", x, within)
        hidden = self._linear(f"{name}.fc", x, name)
        self._see(Phase.FORWARD, f"{name}.act", "input.0", hidden, name)
        active = self._apply(f"forward {name}.act", np.maximum(hidden, 0))
        self._see(Phase.FORWARD, f"{name}.act", "output.0", active, name)
        self.cache[f"{name}.act"] = hidden > 0
        y = self._linear(f"{name}.proj", active, name)
        self._see(Phase.FORWARD, name, "output.0", y, within)
        return y

    def _mlp_back(self, name: str, gradient: Array, within: str) -> Array:
        self._see(Phase.BACKWARD, name, "grad_output.0", gradient, within)
        back = self._linear_back(f"{name}.proj", gradient, name)
        self._see(Phase.BACKWARD, f"{name}.act", "grad_output.0", back, name)
        back = self._apply(f"backward {name}.act", back * self.cache[f"{name}.act"])
        self._see(Phase.BACKWARD, f"{name}.act", "grad_input.0", back, name)
        return self._linear_back(f"{name}.fc", back, name)

    def _block(self, name: str, x: Array, within: str) -> Array:
        self._see(Phase.FORWARD, name, "input.0", x, within)
        x = x + self._attention(f"{name}.attn", self._norm(f"{name}.norm1", x, name), name)
        x = self._apply(f"between {name}", x)
        x = x + self._mlp(f"{name}.mlp", self._norm(f"{name}.norm2", x, name), name)
        x = self._apply(f"forward {name}", x)
        self._see(Phase.FORWARD, name, "output.0", x, within)
        return x

    def _block_back(self, name: str, gradient: Array, within: str) -> Array:
        self._see(Phase.BACKWARD, name, "grad_output.0", gradient, within)
        gradient = gradient + self._norm_back(f"{name}.norm2", self._mlp_back(f"{name}.mlp", gradient, name), name)
        return gradient + self._norm_back(f"{name}.norm1", self._attention_back(f"{name}.attn", gradient, name), name)

    # One step

    def _train(self, tokens: Array) -> float:
        self.gradients = {}
        if self.setup.evidence:
            self._see_evidence(tokens)
        self._see(Phase.INPUT, "tokens", "value", tokens)
        logits = self._forward(tokens)
        target = np.roll(tokens, -1, axis=1)
        target = target if self.setup.targets is None else self.setup.targets(target)
        self._see(Phase.LOSS, "loss", "target", target)
        shifted = logits - logits.max(-1, keepdims=True)
        logarithms = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
        picked = np.take_along_axis(logarithms, target[..., None], -1)
        loss = self._apply("loss", np.float32(-picked.mean()).reshape(()))
        self._see(Phase.LOSS, "loss", "value", loss)
        gradient = np.exp(logarithms)
        np.put_along_axis(gradient, target[..., None], np.take_along_axis(gradient, target[..., None], -1) - 1, -1)
        scale = 1.0 if math.isnan(self.setup.loss_scale) else self.setup.loss_scale
        self._backward((gradient / target.size * scale).astype(np.float32), tokens)
        self._update(scale)
        return float(loss)

    def _forward(self, tokens: Array) -> Array:
        self._see(Phase.FORWARD, "<Net>", "input.0", tokens)
        self._see(Phase.FORWARD, "embed", "input.0", tokens, "<Net>")
        x = self._apply("forward embed", self.parameters["embed.weight"][tokens])
        self._see(Phase.FORWARD, "embed", "output.0", x, "<Net>")
        for name in ("blocks.0", "blocks.1"):
            x = self._block(name, x, "<Net>")
        logits = self._linear("head", x, "<Net>")
        self._see(Phase.FORWARD, "<Net>", "output.0", logits)
        return logits

    def _backward(self, gradient: Array, tokens: Array) -> None:
        gradient = self._apply("backward loss", gradient)
        self._see(Phase.BACKWARD, "<Net>", "grad_output.0", gradient)
        gradient = self._linear_back("head", gradient, "<Net>")
        for name in ("blocks.1", "blocks.0"):
            gradient = self._block_back(name, gradient, "<Net>")
        self._see(Phase.BACKWARD, "embed", "grad_output.0", gradient, "<Net>")
        table = np.zeros_like(self.parameters["embed.weight"])
        np.add.at(table, tokens.reshape(-1), gradient.reshape(-1, WIDTH))
        self._add("embed.weight", table)

    def _add(self, name: str, gradient: Array) -> None:
        self.gradients[name] = self._apply(f"gradient {name}", gradient.astype(np.float32))

    def _update(self, scale: float) -> None:
        for phase, factor in ((Phase.GRADIENT, 1.0), (Phase.UPDATE, 1.0 / scale)):
            for name, gradient in self.gradients.items():
                module, _, slot = name.rpartition(".")
                seen = (gradient * np.float32(factor)).astype(np.float32)
                self._see(phase, module, slot, self._apply("update", seen) if phase is Phase.UPDATE else seen)
        for name, gradient in self.gradients.items():
            self._adam(name, gradient / np.float32(scale))
        for name in self.gradients:
            module, _, slot = name.rpartition(".")
            self._see(Phase.PARAM, module, slot, self.parameters[name])

    def _adam(self, name: str, gradient: Array) -> None:
        first, second = self.moments[name]
        first = (0.9 * first + 0.1 * gradient).astype(np.float32)
        second = (0.999 * second + 0.001 * gradient * gradient).astype(np.float32)
        self.moments[name] = (first, second)
        time = self.step + 1
        change = (first / (1 - 0.9**time)) / (np.sqrt(second / (1 - 0.999**time)) + 1e-8)
        self.parameters[name] = (self.parameters[name] - self.setup.learning_rate * change).astype(np.float32)


def make(path: Path, **options: Any) -> Path:
    """Write the capture of a run with these options."""
    return Model(Setup(**options)).write(path)
