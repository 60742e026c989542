"""Which column is taken, and what is said where that is open."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from align.curve_files.names import loss_rank, rank_of, seconds_in, step_rank
from align.curve_records import Quantity
from align.errors import AlignError, CurveError
from tests.curve_files.reading import read, steps, values

LOSS = Quantity.LOSS


@pytest.mark.parametrize(
    "name",
    ["loss", "Loss", "train/loss", "train_loss", "training_loss", "lm loss", "lm_loss", "Train/Loss", "trainLoss",
     "Loss/train", "total_loss", "train_loss_step", "reduced_train_loss", "Train/Samples/train_loss", "TRAIN LOSS",
     "run-7 - train/loss", "loss_metrics/global_avg_loss", "batch loss"],
)  # fmt: skip
def test_names_of_the_loss(name: str) -> None:
    assert loss_rank(name) == 0


@pytest.mark.parametrize("name", ["loss_a", "mse_loss", "actor/policy_loss", "loss_cls", "load_balancing_loss"])
def test_names_that_are_a_loss_where_no_other_is(name: str) -> None:
    assert loss_rank(name) == 2


@pytest.mark.parametrize(
    "name",
    ["val_loss", "eval/loss", "loss/test", "validation loss", "loss_scale", "loss scale", "lossScale",
     "train_loss_epoch", "epoch_loss", "lm loss vs samples", "loss_weight", "max_loss", "glossary",
     "a - loss__MIN", "step", "lr"],
)  # fmt: skip
def test_names_that_are_no_loss(name: str) -> None:
    assert loss_rank(name) is None


@pytest.mark.parametrize(
    ("quantity", "names"),
    [
        (Quantity.GRADIENT_NORM, ["grad_norm", "grad-norm", "grad norm", "train/grad_norm", "global_grad_norm", "gnorm",
                                  "gradient_norm", "actor/grad_norm", "optim/total_grad_norm", "grad_2.0_norm_total"]),
        (Quantity.LEARNING_RATE, ["lr", "learning_rate", "learning rate", "learning-rate", "train/lr", "lr-AdamW",
                                  "optim/learning_rate", "lr-AdamW/pg1"]),
        (Quantity.LOSS_SCALE, ["loss_scale", "loss scale", "loss-scale", "lossScale", "grad_scale",
                               "train/loss_scale"]),
        (Quantity.SECONDS, ["step_time", "iteration-time", "elapsed time per iteration (ms)", "iter time (s)",
                            "seconds", "time per step (ms)", "dt (ms)", "step_time_ms", "ms/batch", "time (s)",
                            "s/it"]),
        (Quantity.TOKENS_PER_SECOND, ["tokens_per_second", "tokens/s", "tok/sec", "tps", "throughput(tps)",
                                      "perf/tokens_per_sec", "tokens_per_second_per_gpu"]),
    ],
)  # fmt: skip
def test_names_of_other_quantities(quantity: Quantity, names: list[str]) -> None:
    assert [name for name in names if rank_of(name, quantity) is None] == []


@pytest.mark.parametrize(
    "name",
    ["eval/grad_norm", "warmup", "time", "elapsed_time", "train_runtime", "samples/sec", "max_steps", "total_steps",
     "train_steps_per_second", "eval_loss", "normal", "color"],
)  # fmt: skip
def test_names_of_nothing(name: str) -> None:
    assert [quantity for quantity in Quantity if quantity is not LOSS and rank_of(name, quantity) is not None] == []
    assert step_rank(name) is None


def test_units_of_times() -> None:
    names = ("step_time", "step_time_ms", "dt (us)", "iter time (s)", "time per step [milliseconds]")
    assert [seconds_in(name) for name in names] == [1.0, 1e-3, 1e-6, 1.0, 1e-3]


@pytest.mark.parametrize(
    ("header", "columns", "message"),
    [
        (
            "step,loss_a,loss_b",
            {},
            (
                "Cannot tell which column of '{}' is the loss: it may be 'loss_a', 'loss_b'. Choose with --column "
                "loss=loss_a or --column loss=loss_b."
            ),
        ),
        (
            "step,loss,lm loss",
            {},
            (
                "Cannot tell which column of '{}' is the loss: it may be 'loss', 'lm loss'. Choose with --column "
                'loss=loss or --column "loss=lm loss".'
            ),
        ),
        (
            "step,loss,loss",
            {},
            (
                "Cannot tell which column of '{}' is the loss: it may be 'loss', 'loss (column 3)'. Choose with "
                '--column loss=loss or --column "loss=loss (column 3)".'
            ),
        ),
        (
            "step,val_loss,lr",
            {},
            "Cannot find a loss in '{}'. Its columns are 'step', 'val_loss', 'lr': choose one with --column loss=NAME.",
        ),
        (
            "step,train_loss,loss_scale",
            {LOSS: "train_los"},
            (
                "Cannot find the column 'train_los' in '{}'. The nearest is 'train_loss': choose with --column "
                "loss=train_loss."
            ),
        ),
        (
            "step,loss_one,loss_two",
            {LOSS: "loss_too"},
            (
                "Cannot find the column 'loss_too' in '{}'. The nearest are 'loss_two', 'loss_one': choose with "
                "--column loss=loss_two or --column loss=loss_one."
            ),
        ),
        (
            "step,loss,lr",
            {Quantity.GRADIENT_NORM: "xyz"},
            (
                "Cannot find the column 'xyz' in '{}'. Its columns are 'step', 'loss', 'lr': choose one with --column "
                "gradient_norm=NAME."
            ),
        ),
        (
            "Loss,LOSS,lr",
            {LOSS: "loss"},
            (
                "Cannot tell which column of '{}' is meant by 'loss': it may be 'Loss', 'LOSS'. Choose with --column "
                "loss=Loss or --column loss=LOSS."
            ),
        ),
    ],
)
def test_what_is_said(header: str, columns: Mapping[Quantity, str], message: str, tmp_path: Path) -> None:
    with pytest.raises(CurveError) as caught:
        read(tmp_path, f"{header}\n0,3,5\n1,2,4\n", columns=columns)
    assert str(caught.value) == message.format(tmp_path / "run.log")


def test_column_without_numbers(tmp_path: Path) -> None:
    with pytest.raises(CurveError) as caught:
        read(tmp_path, "step,loss,lr\n0,,1\n1,,1\n", columns={LOSS: "loss"})
    assert str(caught.value) == (
        f"Cannot take the column 'loss' of '{tmp_path / 'run.log'}': it holds no numbers. Its columns are 'step', "
        "'loss', 'lr': choose one with --column loss=NAME."
    )


def test_columns_that_the_user_names(tmp_path: Path) -> None:
    text = "step,loss_a,loss_b,size\n0,3,5,0.1\n1,2,4,0.2\n"
    curves = read(tmp_path, text, columns={LOSS: "loss_b", Quantity.GRADIENT_NORM: "Size"})
    assert values(curves) == [5, 4]
    assert values(curves, Quantity.GRADIENT_NORM) == [0.1, 0.2]
    assert curves.taken == {LOSS: "loss_b", Quantity.GRADIENT_NORM: "size"}


def test_equal_columns_are_one(tmp_path: Path) -> None:
    assert read(tmp_path, "step,loss,train_loss\n0,3,3\n1,2,2\n").taken == {LOSS: "loss"}


def test_loss_that_always_stands_beside_one_of_validation(tmp_path: Path) -> None:
    text = "step 0: train loss 4.2, val loss 4.3\n" + "".join(f"iter {n}: loss {4 - n / 10:.1f}\n" for n in range(3))
    assert values(read(tmp_path, text)) == [4.0, 3.9, 3.8]
    assert values(read(tmp_path, "step 0: train loss 4.2, val loss 4.3\n")) == [4.2]


def test_the_better_of_two_columns_of_steps(tmp_path: Path) -> None:
    curves = read(tmp_path, "_step,train/global_step,train/loss\n0,10,3\n1,20,2\n")
    assert steps(curves) == [10, 20]


def test_the_column_of_steps_that_the_loss_has(tmp_path: Path) -> None:
    curves = read(tmp_path, '{"step": 0, "val_loss": 3}\n{"iteration": 5, "loss": 3}\n{"iteration": 6, "loss": 2}\n')
    assert steps(curves) == [5, 6]


def test_mean_over_few_rows_is_not_the_loss(tmp_path: Path) -> None:
    text = "".join(f"step {n} train loss {3 - n / 100}\n" for n in range(30)) + "final loss: 2.5\ntotal loss: 2.5\n"
    assert read(tmp_path, text).taken == {LOSS: "train loss"}


def test_errors_are_those_of_bad_input() -> None:
    assert issubclass(CurveError, AlignError)
