"""The ways of training that `test_ways_of_training.py` captures, and the process that runs them all."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.rank_runs import free_ports, run_ranks
from tests.running import STEPS, WORKLOADS, python

WAYS = WORKLOADS / "ways"
DETAILS = ("sketch", "tensors")
"""That a capture of statistics changes nothing either is held by `test_bit_identity`."""

DRIVER = """
import contextlib, gc, io, json, os, runpy, sys, traceback

def run_plain(arguments):
    sys.argv = arguments
    try:
        runpy.run_path(arguments[0], run_name="__main__")
    except ValueError:
        return 1
    return 0

def run_captured(arguments):
    from align.cli import main
    return main(["capture", *arguments], prog_name="align", standalone_mode=False) or 0

def outcome(kind, arguments):
    # Nothing of one run may be left in the next, as in a process of its own; accelerate keeps its settings.
    # What stays is imported: neither the collector nor a recorder need look through it again.
    gc.collect()
    gc.freeze()
    if "accelerate" in sys.modules:
        from accelerate.state import AcceleratorState
        AcceleratorState._reset_state(reset_partial_state=True)
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        try:
            code = (run_plain if kind == "plain" else run_captured)(arguments)
        except Exception:
            code = traceback.format_exc()
    return [code, said.getvalue()]

outcomes = []
for kind, arguments, port in json.loads(sys.stdin.read()):
    os.environ["MASTER_PORT"] = str(port)
    outcomes.append(outcome(kind, arguments))
print(json.dumps(outcomes))
"""
"""Runs plain scripts and captures of them one after the other; its last line has the exit code of each and its stderr.

Processes that train together meet at another port for each run: at the same one they would read where their peers of
the run before were.
"""

Calls = Mapping[str, int]


@dataclass(frozen=True)
class Way:
    """A script and what its capture must hold.

    `optimizers` has the optimizers of each step, `micros` the passes in each, `calls` how often each module is called
    in each of them, by its name. Where steps take turns, as in a GAN, `calls` has one entry for each turn.
    """

    script: Path
    options: tuple[str, ...]
    optimizers: tuple[str, ...]
    micros: int
    calls: tuple[Calls, ...]
    parameters: tuple[int, ...]
    skipped: tuple[int, ...] = ()
    plain_options: tuple[str, ...] | None = None
    prefixes: tuple[tuple[str, str], ...] = ()
    notice: str = ""
    code: int = 0

    def command(self, options: Sequence[str], save: Path) -> list[str]:
        """The script and its arguments."""
        return [str(self.script), *options, "--save", str(save)]


def once(*names: str) -> Calls:
    return dict.fromkeys(names, 1)


def under(prefix: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{prefix}.{name}" for name in names)


BLOCKS = ("blocks.0", "blocks.0.fc", "blocks.0.dropout", "blocks.1", "blocks.1.fc", "blocks.1.dropout")
LAYER = (
    "input_layernorm",
    "self_attn",
    *under("self_attn", "q_proj", "k_proj", "v_proj", "o_proj"),
    "post_attention_layernorm",
    "mlp",
    *under("mlp", "gate_proj", "up_proj", "down_proj", "act_fn"),
)
LAYERS = tuple(name for number in range(2) for name in (f"layers.{number}", *under(f"layers.{number}", *LAYER)))
LLAMA = ("<LlamaForCausalLM>", "lm_head", "model", *under("model", "embed_tokens", "rotary_emb", "norm", *LAYERS))
GENERATOR = ("<Generator>", "fc1", "norm", "fc2")
DISCRIMINATOR = ("<Discriminator>", *under("<Discriminator>", "fc1", "dropout", "fc2"))
CHECKPOINTED = ("<Network>", "fc", *BLOCKS, "blocks.0.norm", "blocks.1.norm", "head")
COMPILED_AWAY = "; torch.compile was switched off so that modules can be seen"


def checkpointed(*options: str) -> Way:
    """Recomputed calls are the same calls, hence one of each; two micro-batches in a step."""
    script = WAYS / "accumulated_checkpointing.py"
    return Way(script, options, ("AdamW",) * 3, 2, (once(*CHECKPOINTED),), (12,))


def compiled(how: str) -> Way:
    """A compiled script is compared with itself uncompiled, and names are those of the uncompiled modules."""
    return Way(
        WAYS / "compiled.py",
        ("--how", how),
        ("AdamW",) * 3,
        1,
        (once("<Network>", "fc1", "dropout", "fc2"),),
        (4,),
        plain_options=("--how", "none"),
        notice=COMPILED_AWAY,
    )


def trainer(*options: str) -> Way:
    """The evaluation after an epoch is no step; every layer is called once in each of the two micro-batches."""
    return Way(WAYS / "hf_trainer.py", options, ("AdamW",) * 4, 2, (once(*LLAMA),), (21,))


TABLE = {
    "accumulation, checkpointing": checkpointed(),
    "accumulation, reentrant checkpointing": checkpointed("--reentrant"),
    # A batch makes two steps. In the discriminator's it judges real and fake points; the forward that made the fake
    # ones is kept where its backward is, in the generator's step, which also goes through the discriminator.
    "GAN": Way(
        WAYS / "gan.py",
        (),
        ("RMSprop", "Adam") * 2,
        1,
        (dict.fromkeys(DISCRIMINATOR, 2), once(*GENERATOR, *DISCRIMINATOR)),
        (4, 6),
        prefixes=(("generator.", ""), ("discriminator.", "<Discriminator>.")),
    ),
    "teacher": Way(
        STEPS / "teacher.py",
        (),
        ("AdamW",) * 4,
        1,
        (once("<Network>", "fc1", "fc2", "<Teacher>", *under("<Teacher>", "fc1", "fc2")),),
        (4,),
    ),
    # The teacher is of the student's class: its prefix has a number.
    "mean teacher": Way(
        WAYS / "mean_teacher.py",
        (),
        ("SGD",) * 3,
        1,
        (once("<Network>", "fc1", "dropout", "fc2", "<Network#2>", *under("<Network#2>", "fc1", "dropout", "fc2")),),
        (4,),
        prefixes=(("student.", ""), ("teacher.", "<Network#2>.")),
    ),
    "Trainer of transformers": trainer(),
    "Trainer of transformers, checkpointing": trainer("--checkpointing"),
    "accelerate": Way(
        WAYS / "accelerate_loop.py", (), ("AdamW",) * 3, 2, (once("<Mlp>", "fc1", "dropout", "fc2"),), (4,)
    ),
    "accelerate, bf16": Way(
        WAYS / "accelerate_loop.py",
        ("--precision", "bf16"),
        ("AdamW",) * 3,
        2,
        (once("<Mlp>", "fc1", "dropout", "fc2"),),
        (4,),
    ),
    # The LightningModule is never called: the root is the network that holds all parameters of the optimizer.
    "Lightning": Way(
        WAYS / "lightning_loop.py",
        (),
        ("AdamW",) * 3,
        2,
        (once("<Sequential>", "0", "1", "2", "3"),),
        (4,),
        prefixes=(("net.", ""),),
    ),
    "validation in every epoch": Way(
        WAYS / "epochs_with_validation.py",
        (),
        ("AdamW",) * 4,
        1,
        (once("<Network>", "fc1", "norm", "dropout", "fc2"),),
        (6,),
    ),
    "in place": Way(
        WAYS / "inplace_residual.py",
        (),
        ("AdamW",) * 3,
        1,
        (
            {
                **once("<Network>", "stem", "head", "head.0", "head.1", "head.2"),
                **once(*(name for number in range(3) for name in under(f"branches.{number}", "fc", "act", "out"))),
                **once("branches.0", "branches.1", "branches.2"),
                "relu": 3,
            },
        ),
        (16,),
    ),
    # The cell runs over five tokens; the head's weight is the embedding's, hence seven parameters and not eight.
    "structured arguments": Way(
        WAYS / "structured_outputs.py",
        (),
        ("AdamW",) * 3,
        1,
        (
            {
                **once("<Tagger>", "embedding", "attention", "attention.query", "head"),
                **dict.fromkeys(("cell", "cell.inner", "cell.gate"), 5),
            },
        ),
        (7,),
    ),
    # The first step overflows in fp16 and is skipped; it is a step all the same.
    "scaler and clipping": Way(
        WAYS / "scaler_clipping.py",
        (),
        ("AdamW",) * 4,
        1,
        (once("<Network>", "fc1", "norm", "fc2"),),
        (6,),
        skipped=(0,),
    ),
    # The forward that raised has no backward: it is neither a step nor a call.
    "exception that is caught": Way(
        WAYS / "caught_exception.py", (), ("AdamW",) * 3, 1, (once("<Sequential>", "0", "1", "2", "3"),), (4,)
    ),
    "exception": Way(
        STEPS / "exception.py",
        (),
        ("AdamW",) * 2,
        1,
        (once("<Sequential>", "0", "1", "2"),),
        (4,),
        notice="; the run ended early (exception: ValueError in module 1, step 2)",
        code=1,
    ),
    **{f"compiled {how}": compiled(how) for how in ("wrapper", "method", "submodule", "function")},
}


def distributed(how: str) -> Way:
    """Each of two processes has its own file, with the names of the model that was wrapped."""
    calls = once("<Network>", "stem", *BLOCKS, "head")
    return Way(WAYS / "distributed.py", ("--how", how), ("AdamW",) * 3, 1, (calls,), (8,))


DISTRIBUTED = {"DDP": distributed("ddp"), "FSDP1": distributed("fsdp1"), "FSDP2": distributed("fsdp2")}


@dataclass(frozen=True)
class Said:
    """How a run ended and its standard error; the code is a traceback where the runner itself failed."""

    code: int | str
    stderr: str

    @property
    def last_line(self) -> str:
        return self.stderr.strip().splitlines()[-1] if self.stderr.strip() else ""


def run_all(table: Mapping[str, Way], folder: Path, processes: int = 1) -> list[dict[tuple[str, str], Said]]:
    """Run every way plainly and at every detail in one process, or in several at once; what each process saw.

    Leaves `NAME.DETAIL.h5` and `NAME.DETAIL`, what the script saved, in the folder; the plain run's is `NAME.plain`.
    """
    runs: dict[tuple[str, str], tuple[str, list[str]]] = {}
    for name, way in table.items():
        options = way.options if way.plain_options is None else way.plain_options
        runs[name, "plain"] = ("plain", way.command(options, folder / f"{name}.plain"))
    for name, way in table.items():
        for detail in DETAILS:
            output = ["--steps", "0:", "--detail", detail, "-o", str(folder / f"{name}.{detail}.h5")]
            runs[name, detail] = ("capture", [*output, *way.command(way.options, folder / f"{name}.{detail}")])
    ports = free_ports(len(runs))
    plan = json.dumps([(kind, command, port) for (kind, command), port in zip(runs.values(), ports, strict=True)])
    if processes > 1:
        done = run_ranks(DRIVER, ranks=processes, given=plan, cwd=folder)
    else:
        done = [python("-c", DRIVER, given=plan, cwd=folder)]
    assert [one.code for one in done] == [0] * processes, [one.stderr for one in done]
    found = [json.loads(one.stdout.splitlines()[-1]) for one in done]
    return [dict(zip(runs, (Said(*outcome) for outcome in outcomes), strict=True)) for outcomes in found]
