"""What the name of a column says: which quantity it is, by the names that training frameworks give.

The names are those of Megatron-LM, MindSpeed, DeepSpeed, Hugging Face, LLaMA-Factory, Lightning, NeMo, torchtitan,
fairseq, nanoGPT and of exports of Weights & Biases and TensorBoard.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from align.curve_records import Quantity

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
_SECOND = re.compile(r"(?<=.) \(column \d+\)$")
_LONGEST = 300
_OFTEN = 4096

VALIDATION: Final = frozenset({"val", "valid", "validation", "eval", "evaluation", "test", "testing", "dev"})
TRAINING: Final = frozenset({"train", "training"})
_NO_LOSS: Final = frozenset({
    "scale", "scaler", "scaling", "weight", "weights", "factor", "coef", "coefficient", "lambda", "ppl", "perplexity",
    "min", "max", "std", "var", "best", "delta", "diff", "window", "type", "fn", "func", "function", "vs", "id",
    "count", "ratio", "mask", "patience", "nan", "threshold", "limit",
})  # fmt: skip

LOSSES: Final = (
    frozenset({
        "loss", "lm_loss", "total_loss", "batch_loss", "step_loss", "loss_step", "iter_loss", "loss_total",
        "samples_loss", "reduced_loss", "language_model_loss", "loss_metrics_global_avg_loss",
        "损失", "损失值", "训练损失", "训练损失值",
    }),
    frozenset({"avg_loss", "average_loss", "mean_loss", "loss_avg", "loss_mean", "loss_average", "平均损失"}),
)  # fmt: skip
"""Names of a loss, those of an average after those of the loss itself; any other name with the word comes last."""

STEPS: Final = (
    "global_step", "trainer_global_step", "global_steps", "step", "steps", "iteration", "iterations", "iter", "iters",
    "current_steps", "current_step", "cur_step", "current_iteration", "num_updates", "num_update", "update", "updates",
    "it", "itr", "batch", "batch_idx", "batches", "全局步数", "步数", "训练步数", "步", "迭代次数", "迭代步数", "迭代",
)  # fmt: skip
"""Names of a column of steps, the better ones first."""

_NAMES: Final[dict[Quantity, tuple[str, ...]]] = {
    Quantity.GRADIENT_NORM: (
        "grad_norm", "gradient_norm", "global_grad_norm", "global_gradient_norm", "total_grad_norm", "grads_norm",
        "gradnorm", "gnorm", "global_norm", "total_norm", "grad_norm_step", "grad_2_0_norm_total", "norm", "梯度范数",
        "全局梯度范数",
    ),
    Quantity.LEARNING_RATE: ("learning_rate", "lr", "current_lr", "cur_lr", "lr_0", "learning_rates", "samples_lr",
                             "学习率"),
    Quantity.LOSS_SCALE: (
        "loss_scale", "lossscale", "grad_scale", "scaler_scale", "amp_scale", "loss_scaler", "samples_loss_scale",
    ),
    Quantity.TOKENS_PER_SECOND: (
        "tokens_per_second", "tokens_per_sec", "tokens_s", "tokens_sec", "tokens_second", "token_s", "tok_s", "tok_sec",
        "toks_s", "tps", "throughput_tps", "throughput_tokens_s", "tokens_per_second_per_gpu", "tokens_per_sec_per_gpu",
        "tokens_per_gpu_per_second", "tgs", "wps", "throughput",
    ),
}  # fmt: skip
_TIMES: Final = (
    "step_time", "time_per_step", "iter_time", "iteration_time", "time_per_iteration", "time_per_iter",
    "elapsed_time_per_iteration", "per_step_time", "batch_time", "step_duration", "iter_duration", "time_step", "dt",
)  # fmt: skip
_TIMES_WITH_UNIT: Final = (*_TIMES, "per_step", "per_iter", "per_iteration", "per_batch", "step", "iter", "iteration",
                           "batch", "it", "time", "")  # fmt: skip
_UNITS: Final = {
    **dict.fromkeys(("ms", "msec", "millis", "millisecond", "milliseconds"), 1e-3),
    **dict.fromkeys(("us", "usec", "microseconds"), 1e-6),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
}
SKIPPED: Final = (
    "number_of_skipped_iterations", "skipped_iterations", "skipped", "skipped_iter", "is_skipped", "overflow",
    "overflow_cond", "found_inf",
)  # fmt: skip
EXPORTED: Final = frozenset({"wall_time", "step", "value"})
"""The columns of an export of TensorBoard."""
NAN_ITERATIONS: Final = ("number_of_nan_iterations", "nan_iterations")


@lru_cache(maxsize=_OFTEN)
def words(name: str) -> tuple[str, ...]:
    """The words of a name in small letters: `Train/lossScale` gives train, loss, scale.

    Of an export of Weights & Biases, `RUN - NAME`, only the name counts. A second column of a name, which is told
    apart by its number, has the same words.
    """
    name = _SECOND.sub("", name[-_LONGEST:]).rpartition(" - ")[2]
    return tuple(word.lower() for word in _WORD.findall(name))


@lru_cache(maxsize=_OFTEN)
def plain(name: str) -> str:
    """The words of a name joined by `_`, without those that only say that it is of training."""
    found = words(name)
    return "_".join([word for word in found if word not in TRAINING] or found)


@lru_cache(maxsize=_OFTEN)
def is_validation(name: str) -> bool:
    """Whether the name is of validation and not of training."""
    return not VALIDATION.isdisjoint(words(name))


@lru_cache(maxsize=_OFTEN)
def loss_rank(name: str) -> int | None:
    """How surely the name is that of the loss, 0 the best; None where it is not."""
    found = set(words(name))
    if not found.isdisjoint(VALIDATION) or "epoch" in found or name.endswith(("__MIN", "__MAX")):
        return None
    for rank, known in enumerate(LOSSES):
        if plain(name) in known:
            return rank
    last = name if " - " in name else _SECOND.sub("", name).rsplit(" ", 1)[-1]
    if "loss" in words(last) and found.isdisjoint(_NO_LOSS):
        return len(LOSSES)
    return None


@lru_cache(maxsize=_OFTEN)
def rank_of(name: str, quantity: Quantity) -> int | None:
    """The place of a name among those of a quantity, 0 the best; None where it is not one. Not for the loss."""
    if is_validation(name) or name.endswith(("__MIN", "__MAX")):
        return None
    if quantity is Quantity.SECONDS:
        return _time_rank(name)
    known, here = _NAMES[quantity], plain(name)
    for rank, text in enumerate(known):
        if here == text:
            return rank
    for rank, text in enumerate(known):
        if "_" in text and here.endswith("_" + text):
            return len(known) + rank
    if quantity is Quantity.LEARNING_RATE and "lr" in words(name):
        return 2 * len(known)
    return None


def _time_rank(name: str) -> int | None:
    """The place of a name among those of the time of a step; a bare `time` counts with a unit only."""
    here = [word for word in plain(name).split("_") if word not in _UNITS]
    known = _TIMES if len(here) == len(plain(name).split("_")) else _TIMES_WITH_UNIT
    core = "_".join(here)
    return known.index(core) if core in known else None


def seconds_in(name: str) -> float:
    """How many seconds the unit in a name is; a name without unit is in seconds."""
    return next((_UNITS[word] for word in words(name) if word in _UNITS), 1.0)


@lru_cache(maxsize=_OFTEN)
def step_rank(name: str) -> int | None:
    """The place of a name among those of a column of steps."""
    return STEPS.index(plain(name)) if plain(name) in STEPS else None


def is_of_use(name: str) -> bool:
    """Whether a column of this name can be taken for anything."""
    return (
        "loss" in words(name)
        or loss_rank(name) is not None
        or step_rank(name) is not None
        or plain(name) in SKIPPED
        or plain(name) in NAN_ITERATIONS
        or "epoch" in words(name)
        or plain(name) in EXPORTED
        or any(rank_of(name, quantity) is not None for quantity in Quantity if quantity is not Quantity.LOSS)
    )


def asked_for(name: str, asked: str) -> bool:
    """Whether a column is the one that the user named, up to capitals and separators."""
    return name == asked or words(name) == words(asked) != ()
