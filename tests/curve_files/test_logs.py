"""Logs of Megatron-LM, DeepSpeed, the Trainer of transformers, and of plain scripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from align.curve_files import read_curves
from align.curve_records import CurveKind, Quantity
from align.errors import CurveError
from tests.curve_files.reading import REPEATED, SAMPLES, ZERO_FOR_NAN, read, steps, values, where

ITERATION = (
    " iteration {:8d}/     100 | consumed samples: {:12d} | elapsed time per iteration (ms): 614.2 | learning rate: "
    "1.000E-06 | global batch size:    32 |{} loss scale: 1.0 | grad norm: {} | number of skipped iterations: {:3d} | "
    "number of nan iterations: {:3d} |\n"
)


def iteration(number: int, loss: float | None, norm: str = "1.234", skipped: int = 0, nan: int = 0) -> str:
    """A line as Megatron-LM prints it, without a loss where that is None."""
    text = "" if loss is None else f" lm loss: {loss:.6E} |"
    return ITERATION.format(number, 32 * number, text, norm, skipped, nan)


def test_megatron_log() -> None:
    curves = read_curves(str(SAMPLES / "megatron.log"))
    assert curves.kind is CurveKind.MEGATRON_LOG
    assert steps(curves) == [1, 2, 3, 4, 5, 6]
    assert values(curves) == [None, 10.94213, 10.83377, 10.61002, None, None]
    assert where(curves, curves.skipped) == [1, 6]
    assert where(curves, curves.nonfinite) == [5, 6]
    assert values(curves, Quantity.SECONDS) == [18.3125, 1.9021, 1.9007, 1.9013, 1.8999, 1.8992]
    assert values(curves, Quantity.GRADIENT_NORM) == [None, 12.318, 10.204, 9.771, None, None]
    assert values(curves, Quantity.LOSS_SCALE) == [65536, 32768, 32768, 32768, 32768, 16384]
    assert values(curves, Quantity.LEARNING_RATE) == [0, 1.25e-6, 2.5e-6, 3.75e-6, 5e-6, 5e-6]
    assert curves.taken == {
        Quantity.LOSS: "lm loss",
        Quantity.GRADIENT_NORM: "grad norm",
        Quantity.LEARNING_RATE: "learning rate",
        Quantity.LOSS_SCALE: "loss scale",
        Quantity.SECONDS: "elapsed time per iteration (ms)",
    }
    assert curves.notes == ("Lines that could not be read: 1, the first is line 19. They were left out.",)


def test_megatron_row_of_several_iterations(tmp_path: Path) -> None:
    rows = [
        iteration(10, 3.0),
        iteration(20, 2.5, skipped=3),
        iteration(30, None, skipped=10),
        iteration(40, 2.0, nan=1),
    ]
    curves = read(tmp_path, "".join(rows))
    assert steps(curves) == [10, 20, 30, 40]
    assert values(curves) == [3.0, 2.5, None, 2.0]
    assert where(curves, curves.skipped) == [30]
    assert where(curves, curves.nonfinite) == [40]
    assert curves.notes == ("Skipped steps that are counted in rows of several steps, and not marked: 3.",)


def test_megatron_prints_zero_where_all_iterations_were_skipped(tmp_path: Path) -> None:
    curves = read(tmp_path, iteration(1, 0.0, skipped=1) + iteration(2, 3.0) + iteration(3, 0.0))
    assert values(curves) == [None, 3.0, None]
    assert where(curves, curves.nonfinite) == [3]


def test_megatron_resumed(tmp_path: Path) -> None:
    first = "".join(iteration(step, 10.0 - step) for step in range(1, 8))
    curves = read(tmp_path, first + "".join(iteration(step, 5.0) for step in range(6, 10)))
    assert steps(curves) == list(range(1, 10))
    assert values(curves) == [9, 8, 7, 6, 5, 5, 5, 5, 5]
    assert curves.notes == (REPEATED.format(2, 6, 7),)


def test_nanotron_line(tmp_path: Path) -> None:
    line = (
        "10/17/2025 16:31:56 [INFO|DP=0|PP=0|TP=0]: iteration: {} / 378950 | consumed_tokens: 85.8G | "
        "elapsed_time_per_iteration_ms: 11.5K | tokens_per_sec: 22.8K | lm_loss: 2.38 | lr: 1e-05 | grad_norm: 1.25\n"
    )
    curves = read(tmp_path, line.format(8) + line.format(9))
    assert steps(curves) == [8, 9]
    assert values(curves) == [2.38, 2.38]
    assert values(curves, Quantity.TOKENS_PER_SECOND) == [22800, 22800]
    assert values(curves, Quantity.SECONDS) == [11.5, 11.5]


def test_deepspeed_pipeline_log() -> None:
    curves = read_curves(str(SAMPLES / "deepspeed_pipeline.log"))
    assert curves.kind is CurveKind.DEEPSPEED_LOG
    assert steps(curves) == [1, 2, 3]
    assert values(curves) == [7.125, 7.031, 6.984]
    assert where(curves, curves.skipped) == [1, 2]
    assert values(curves, Quantity.LOSS_SCALE) == [65536, 65536, None]
    assert values(curves, Quantity.LEARNING_RATE) == [1e-4, 1e-4, 2e-4]
    assert values(curves, Quantity.SECONDS) == [1.21, 0.611, 0.612]
    assert curves.notes == ()


STEP = (
    "[2023-01-01 00:00:00,000] [INFO] [logging.py:96:log_dist] [Rank 0] step={}, skipped={}, lr=[0.0001], "
    "mom=[(0.9, 0.999)]\n"
)
OVERFLOW = (
    "[2023-01-01 00:00:00,000] [INFO] [loss_scaler.py:183:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping step. "
    "Attempted loss scale: 65536, reducing to 32768\n"
)


def test_deepspeed_steps_number_losses_that_are_as_many(tmp_path: Path) -> None:
    curves = read(tmp_path, OVERFLOW + STEP.format(1, 1) + "loss: 3.5\n" + STEP.format(2, 1) + "loss: 3.4\n")
    assert steps(curves) == [1, 2]
    assert values(curves) == [3.5, 3.4]
    assert where(curves, curves.skipped) == [1]
    assert values(curves, Quantity.LEARNING_RATE) == [1e-4, 1e-4]


def test_deepspeed_script_with_its_own_numbers(tmp_path: Path) -> None:
    log = "".join(f"{OVERFLOW if step == 1 else ''}step {step} loss {3 - step / 10}\n" for step in range(4))
    curves = read(tmp_path, log + STEP.format(10, 1))
    assert curves.kind is CurveKind.DEEPSPEED_LOG
    assert steps(curves) == [0, 1, 2, 3]
    assert where(curves, curves.skipped) == [1]


def test_deepspeed_rows_of_unknown_length_are_not_marked(tmp_path: Path) -> None:
    curves = read(tmp_path, 3 * OVERFLOW + "{'loss': 3.5, 'epoch': 0.1}\n{'loss': 3.4, 'epoch': 0.2}\n")
    assert where(curves, curves.skipped) == []
    assert curves.notes[1:] == ("Skipped steps that are counted in rows of several steps, and not marked: 3.",)


def test_deepspeed_resumed_counts_only_what_was_skipped_since(tmp_path: Path) -> None:
    lines = [f"{STEP.format(step, skipped)}steps: {step} loss: 2.5 iter time (s): 0.5 samples/sec: 64.0\n"
             for step, skipped in ((101, 7), (102, 8), (103, 8))]  # fmt: skip
    curves = read(tmp_path, "".join(lines))
    assert where(curves, curves.skipped) == [102]
    assert curves.notes == ()


def test_log_of_a_trainer() -> None:
    curves = read_curves(str(SAMPLES / "trainer.log"))
    assert curves.kind is CurveKind.LOG
    assert steps(curves) == [0, 1, 2, 3]
    assert values(curves) == [1.4596, 1.3302, None, None]
    assert where(curves, curves.nonfinite) == [2, 3]
    assert values(curves, Quantity.GRADIENT_NORM) == [2.25, None, None, None]
    assert curves.notes == (
        "The file has no column of steps: its rows are numbered from 0.",
        ZERO_FOR_NAN.format(2),
    )


def test_numbers_of_a_trainer_as_text(tmp_path: Path) -> None:
    curves = read(tmp_path, "{'loss': '2.31', 'grad_norm': '1.5', 'epoch': '0.1'}\n")
    assert values(curves) == [2.31]
    assert values(curves, Quantity.GRADIENT_NORM) == [1.5]


@pytest.mark.parametrize(
    ("line", "step", "loss"),
    [
        ("step 3 loss 2.31", 3, 2.31),
        ("step=3 loss=2.31", 3, 2.31),
        ("Step: 3, Loss: 2.31", 3, 2.31),
        ("step:  3  loss:  2.31  grad_norm:  1.30 memory: 1.0GiB(2.3%) tps: 7,234", 3, 2.31),
        ("iter 3: loss 2.31, time 123.45ms, mfu 15.34%", 3, 2.31),
        ("step    3 | loss: 2.310000 | lr 8.5714e-07 | norm: 27.1 | dt: 300.12ms | tok/sec: 1700.1", 3, 2.31),
        ("Epoch [1/10], Step [3/600], Loss: 2.31", 3, 2.31),
        ("2024-01-01 10:00:00,123 - INFO - training step 3 loss 2.31", 3, 2.31),
        ("INFO:root:global_step=3 train/loss=2.31", 3, 2.31),
        ("loss at step 3: 2.31", 3, 2.31),
        ("loss 2.31 at step 3", 3, 2.31),
        ("step 3: loss = tensor(2.31, device='npu:0', grad_fn=<NllLossBackward0>)", 3, 2.31),
        ("\x1b[36mstep:\x1b[39m 3 \x1b[32mloss:\x1b[39m 2.31", 3, 2.31),
        ("Train Epoch: 1 [640/60000 (1%)]\tLoss: 2.310000", 0, 2.31),
        ("Epoch: [0][ 10/5005]\tTime  0.5 ( 0.6)\tLoss 2.31e+00 (6.95e+00)", 0, 2.31),
        ("{'loss': 2.31, 'grad_norm': 1.2, 'learning_rate': 5e-05, 'epoch': 0.1}", 0, 2.31),
        ("2026 [1] step:[    3/ 6500], loss: 2.31, per_step_time: 3354ms, lr: 1e-6, overflow cond: False", 3, 2.31),
        ("epoch 001:     10 / 100 loss=2.31, ppl=9.1, wps=1200, num_updates=3, lr=0.01, gnorm=1.2", 3, 2.31),
        ("the -loss is 7; step 3 loss: -2.31", 3, -2.31),
        ("step 3 loss 2,310.5", 3, 2310.5),
        ("step 3 loss .5", 3, 0.5),
        ("step 3 loss +1.e2", 3, 100.0),
    ],
)
def test_line_of_a_script(line: str, step: int, loss: float, tmp_path: Path) -> None:
    curves = read(tmp_path, f"hello\n{line}\n")
    assert curves.kind is CurveKind.LOG
    assert steps(curves) == [step]
    assert values(curves) == [loss]


@pytest.mark.parametrize(
    "line",
    [
        "step 9: train loss 4.2, val loss 4.3",
        "Validation: step 9 loss 4.2",
        "[eval] step 9 loss 4.2",
        "Test set: Average loss: 0.0279, Accuracy: 9913/10000 (99%)",
        "{'eval_loss': 2.2, 'eval_runtime': 1.0, 'epoch': 0.1}",
        "{'train_runtime': 33.1, 'train_loss': 0.6974, 'epoch': 1.0}",
        "step 9 val/loss 4.2",
        "loss_scale: 65536.0",
        "using loss function v2",
    ],
)
def test_lines_that_hold_no_loss_of_training(line: str, tmp_path: Path) -> None:
    curves = read(tmp_path, f"step 1 loss 2.5\n{line}\nstep 2 loss 2.4\n")
    assert steps(curves) == [1, 2]
    assert values(curves) == [2.5, 2.4]


def test_loss_that_becomes_nan(tmp_path: Path) -> None:
    curves = read(tmp_path, "".join(f"iter {n}: loss {2.0 if n < 3 else 'nan'}, time 90.0ms\n" for n in range(5)))
    assert values(curves) == [2, 2, 2, None, None]
    assert where(curves, curves.nonfinite) == [3, 4]
    assert values(curves, Quantity.SECONDS) == [0.09] * 5


def test_infinite_loss(tmp_path: Path) -> None:
    curves = read(tmp_path, "step 0 loss 2.0\nstep 1 loss inf\nstep 2 loss = -Infinity\n")
    assert curves.columns[Quantity.LOSS].tolist() == [2.0, float("inf"), float("-inf")]
    assert where(curves, curves.nonfinite) == [1, 2]


@pytest.mark.parametrize("prefix", ["[rank{}]: ", "{}: ", "[{}]: ", "[default{}]:", "[1,{}]<stdout>: "])
def test_lines_of_several_ranks(prefix: str, tmp_path: Path) -> None:
    log = "".join(f"{prefix.format(rank)}step {n} loss {2 + rank}\n" for n in range(3) for rank in (3, 1))
    curves = read(tmp_path, log)
    assert steps(curves) == [0, 1, 2]
    assert values(curves) == [3, 3, 3]
    assert curves.notes == ("The log has lines of 2 ranks: those of rank 1 were taken.",)


def test_number_before_the_line_is_a_step_where_it_counts(tmp_path: Path) -> None:
    curves = read(tmp_path, "7: loss 2.0\n8: loss 1.9\n9: loss 1.8\n")
    assert steps(curves) == [7, 8, 9]


def test_steps_that_begin_anew_in_each_epoch(tmp_path: Path) -> None:
    log = "".join(f"Epoch {epoch} step {n} loss {9 - 3 * epoch - n}\n" for epoch in range(2) for n in range(3))
    curves = read(tmp_path, log)
    assert steps(curves) == [0, 1, 2, 3, 4, 5]
    assert values(curves) == [9, 8, 7, 6, 5, 4]
    assert curves.notes == ("The steps begin anew in each epoch: the rows are numbered from 0.",)


def test_progress_bars_end_lines_with_a_carriage_return(tmp_path: Path) -> None:
    bars = "".join(f"\r {n}%|##  | {10 * n}/100 [00:01<00:10, 1.0it/s, loss={3 - n / 10:.1f}]" for n in range(3))
    curves = read(tmp_path, bars + "\r 20%|##  | 20/100 [00:02<00:10, 1.0it/s, loss=2.8]")
    assert steps(curves) == [0, 10, 20]
    assert values(curves) == [3.0, 2.9, 2.8]
    assert curves.notes == (REPEATED.format(1, 20, 20),)


def test_progress_bars_of_several_epochs(tmp_path: Path) -> None:
    bars = "".join(f"\rEpoch {epoch}: {n}%|#| {n}/2 [00:01<00:10, 1.0it/s, loss={3 - epoch - n / 10:.1f}]"
                   for epoch in (0, 1) for n in (1, 2))  # fmt: skip
    curves = read(tmp_path, bars)
    assert steps(curves) == [0, 1, 2, 3]
    assert values(curves) == [2.9, 2.8, 1.9, 1.8]


def test_column_that_is_not_called_loss(tmp_path: Path) -> None:
    log = "step 1 ppl 30.5\nstep 2 ppl 29.5\n"
    assert values(read(tmp_path, log, columns={Quantity.LOSS: "ppl"})) == [30.5, 29.5]


def test_log_without_a_loss(tmp_path: Path) -> None:
    with pytest.raises(CurveError) as caught:
        read(tmp_path, "Hello,\nthis is the log of a server.\n")
    assert str(caught.value) == (
        f"Cannot find a loss in '{tmp_path / 'run.log'}': no line holds a number behind the word loss. Name another "
        "file, or a column with --column loss=NAME."
    )


def test_megatron_on_deepspeed_prints_each_loss_twice(tmp_path: Path) -> None:
    lines = [f"{OVERFLOW if step == 2 else ''}steps: {step} loss: 10.65 iter time (s): 4.2 samples/sec: 7.5\n"
             f"{STEP.format(step, step > 1)}{iteration(step, 10.6554)}" for step in (1, 2, 3)]  # fmt: skip
    curves = read(tmp_path, "".join(lines))
    assert curves.kind is CurveKind.MEGATRON_LOG
    assert steps(curves) == [1, 2, 3]
    assert values(curves) == [10.6554] * 3
    assert where(curves, curves.skipped) == [2]
    assert where(curves, curves.nonfinite) == []


def test_iterations_with_two_numbers_each(tmp_path: Path) -> None:
    line = "iteration {}/20 | elapsed time per iteration (ms): 103.0/999.0 | lm loss: 1.5 | grad norm: 1.0 |\n"
    curves = read(tmp_path, "".join(f"1:  {line.format(step)}" for step in (4, 5)))
    assert steps(curves) == [4, 5]
    assert values(curves) == [1.5, 1.5]
    assert values(curves, Quantity.SECONDS) == [0.103, 0.103]
