"""What an acceptance says of odd pairs of runs, and of logs with different intervals, in Chinese."""

from __future__ import annotations

from collections.abc import Mapping

SENTENCES: Mapping[str, str] = {
    # align/acceptance/beginning.py
    "{} The files print no more digits than that, of which the last is {} of the loss.": (
        "{}文件未输出更多位数，其末位为 loss 的 {}。"
    ),
    "Print more digits of the loss in both runs.": "请在两侧日志中输出 loss 的更多位数。",
    # align/acceptance/case.py
    (
        "{} differs from the reference by more than rounding from the first steps on, and does not go together "
        "with it: it was trained from other weights or on other batches, is no repeat and was left out."
    ): ("{} 自最初几步起与标杆的差异就超出舍入，且不随标杆涨落：其初始权重或批次不同，不是标杆的重复运行，故未采用。"),
    # align/acceptance/pairing.py
    "Each loss of {} is a mean over {} rows of {}: it was compared with the mean of these rows.": (
        "{0} 的每个 loss 是 {2} 中 {1} 行的均值：已与这些行的均值比对。"
    ),
    # align/acceptance/scale.py
    "The reference's loss begins at 0: differences are relative to {} where the loss is smaller.": (
        "标杆侧的 loss 自 0 开始：loss 较小处，误差相对于 {} 计算。"
    ),
    # align/acceptance/telling.py
    "At no common step are both losses finite: {} such steps are needed.": (
        "没有两侧 loss 均为有限值的共同步：需要 {} 步。"
    ),
    "1 common step is too few to tell: {} are needed.": "共同步仅 1 步，不足以判断：需要 {} 步。",
    # align/acceptance/unlikely.py
    "Both files are the same, byte by byte: a run was compared with itself.": (
        "两个文件逐字节相同：该次运行是与自身比对。"
    ),
    (
        "The losses of both logs are equal in every digit at all {}, as those of two devices hardly ever are: is "
        "one log a copy of the other?"
    ): ("两份日志的 loss 在全部 {}中逐位相同，而两个设备几乎不会如此：其中一份是否为另一份的副本？"),
    (
        "The reference's loss is NaN or Inf at {}, first at step {}, and the candidate's too at {} of them: no "
        "loss was compared there."
    ): ("标杆侧的 loss 在 {}中为 NaN 或 Inf，首次为第 {} 步，其中待比对侧也如此的有 {} 步：这些步未比对 loss。"),
    (
        "The candidate's loss is NaN or Inf at {} that could not be compared, first at step {}: the reference's "
        "log does not have them."
    ): ("待比对侧的 loss 在无法比对的 {}中为 NaN 或 Inf，首次为第 {} 步：标杆侧日志没有这些步。"),
    "Single losses are far apart at {}, most at step {}: {} in the reference and {} in the candidate.": (
        "有 {}的单步 loss 相差很大，最大在第 {} 步：标杆侧为 {}，待比对侧为 {}。"
    ),
}
