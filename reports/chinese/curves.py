"""Notes on the logs that loss curves are read from."""

from __future__ import annotations

from collections.abc import Mapping

SENTENCES: Mapping[str, str] = {
    # building
    "The file has no column of steps: its rows are numbered from 0.": "文件没有步数列：各行从 0 起编号。",
    "Most rows have no step: the rows are numbered from 0.": "多数行没有步数：各行从 0 起编号。",
    "The steps begin anew in each epoch: the rows are numbered from 0.": "步数在每个 epoch 重新开始：各行从 0 起编号。",
    "Rows without a whole number as their step: {}. They were left out.": "步数不是整数的行：{} 行，已略去。",
    "The steps of the file count samples.": "文件中的步数按样本计。",
    "Rows with nan or 0 in the column '{}' where no loss was logged: {}. They were left out.": (
        "列 '{}' 中以 nan 或 0 表示未记录 loss 的行：{} 行，已略去。"
    ),
    "Steps that are in the file more than once, as of a resumed run or of several processes: {}, from step {} to step "
    "{}. The later value was taken.": (
        "文件中重复出现的步（如断点续训或多个进程）：{} 步，第 {} 步至第 {} 步。已取后出现的值。"
    ),
    "Steps whose loss is written as 0 beside a gradient norm of nan: {}. Their losses were NaN, which the Trainer of "
    "transformers leaves out of its sum.": (
        "loss 记为 0 而梯度范数为 nan 的步：{} 步。其 loss 实为 NaN，transformers 的 Trainer 求和时将其略去。"
    ),
    "Skipped steps that are counted in rows of several steps, and not marked: {}.": (
        "在多步合并的行中计数、未逐一标出的跳过步：{} 步。"
    ),
    # captures
    "The run had not finished when its capture was read.": "读取采集文件时，运行尚未结束。",
    "Of the ranks of the run, the file '{}' was read.": "该运行的各卡中，读取了文件 '{}'。",
    # event files
    "The event file '{}' is damaged: it was read up to there.": "事件文件 '{}' 已损坏：读取到损坏处为止。",
    "Records of the event file '{}' that are damaged: {}. They were left out.": (
        "事件文件 '{}' 中已损坏的记录：{} 条，已略去。"
    ),
    # logs, objects and other text
    "The log has lines of {} ranks: those of rank {} were taken.": "日志含 {} 卡的行：取 rank {} 的行。",
    "The file holds an object of more than 64 MB: it was read up to there.": (
        "文件含有超过 64 MB 的对象：读取到该处为止。"
    ),
    "Lines that could not be read: {}, the first is line {}. They were left out.": (
        "无法读取的行：{} 行，首个为第 {} 行，已略去。"
    ),
    "The file '{}' ends in the middle: it was read up to there.": "文件 '{}' 在中途结束：读取到该处为止。",
    # align/commands.py
    "{} It holds a loss curve; `{}` compares loss curves.": "{}该文件含有损失曲线；比对损失曲线请用 `{}`。",
}
