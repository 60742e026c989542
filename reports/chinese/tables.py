"""What the tables of an inspection say, in Chinese."""

from __future__ import annotations

from collections.abc import Mapping

SENTENCES: Mapping[str, str] = {
    # align/inspection/fit_table.py
    "Loss scales that fit": "合适的损失缩放系数",
    "Of each captured step that was not skipped: the loss scales between which all of its fp16 gradients fit.": (
        "每个已采集且未跳过的步：其全部 fp16 梯度都能容纳的损失缩放系数范围。"
    ),
    "lowest that fits": "合适的下限",
    "highest that fits": "合适的上限",
    # align/inspection/learning_table.py
    "What keeps a loss where it is": "loss 停滞的原因",
    "In the order in which they are to be asked: the first yes is the cause of those after it.": (
        "按应排查的顺序排列：首个「是」即为其后各项的原因。"
    ),
    "is it so that": "检查内容",
    "answer": "结果",
    "seen": "依据",
    "yes": "是",
    "no": "否",
    "not measured": "未测",
    "all steps are skipped": "所有步均被跳过",
    "the parameters stay as they are, to the last bit": "参数逐位不变",
    "the updates are below the rounding of the parameters": "更新量小于参数的舍入误差",
    "the loss is the same to the last bit": "loss 逐位相同",
    "the loss is that of guessing": "loss 等于随机猜测的水平",
    "{} in all {}": "{1}均为 {0}",
    "from {} to {} in {}": "{2}内由 {0} 至 {1}",
    "the norm is {} at most, in {}": "{1}内范数最大为 {0}",
    "{} of {} with a gradient": "有梯度的{1}中有 {0} 个",
    "those of {} of the elements": "占元素的 {}",
    "ln({}) is {}, the loss is {} last": "ln({}) 为 {}，末尾的 loss 为 {}",
    "in {} of {} captured steps": "已采集的 {1} 步中有 {0} 步",
    "no update is asked for where gradients or learning rates are 0.": "梯度或学习率为 0 时没有应做的更新。",
    "{}; the parameters are {}": "{}；参数为 {}",
    "capture steps in a row from step 0 with --steps 0:3.": "请用 --steps 0:3 从第 0 步起连续采集。",
    "no step has a known learning rate.": "各步的学习率均未知。",
    "no step has a known, finite loss.": "没有任何一步的 loss 已知且有限。",
    "one step alone has a known, finite loss.": "只有一步的 loss 已知且有限。",
    "the number of classes is not known: no captured output has targets of whole numbers.": (
        "类别数未知：已采集的输出没有对应的整数标签。"
    ),
    "What does not follow the optimizer's formula": "不符合优化器公式的内容",
    "Parameters whose update, or whose state, is not what gradients, states and settings give.": (
        "更新量或状态与由梯度、状态和设置算得的结果不一致的参数。"
    ),
    "allowed": "允许值",
    "over allowed": "为允许值的倍数",
    "factor": "倍数",
    "What does not move": "未变化的参数",
    "Parameters that have a gradient and a learning rate, and elements that stay as they are all the same.": (
        "有梯度且学习率不为 0，但其元素仍保持不变的参数。"
    ),
    "unchanged": "未变化",
    "gradient norm": "梯度范数",
    "update asked for": "应有更新量",
    "update made": "实际更新量",
    "lost in rounding": "因舍入丢失",
    "What was computed again": "重新计算的张量",
    "Of each captured step: the tensors that checkpoints computed twice, how many are equal to the bit, and the first "
    "that is not what it was.": (
        "每个已采集的步：激活检查点计算了两次的张量数、其中逐位相同的个数，以及首个不一致的张量。"
    ),
    "not the same": "不一致",
    "the first of them": "其中首个",
    # align/inspection/nonfinite_table.py
    "The steps around it": "前后各步",
    "It starts in step {}, in the phase {}. Each cell says how many tensors are not finite; masks of -Inf are meant "
    "and do not count.": "产生于第 {} 步的{}阶段。各单元格为非有限张量的个数；-Inf 掩码属于有意使用，不计入。",
    "finite": "有限",
    "{} of {} not finite": "{1} 个中 {0} 个非有限",
    "The producer and what entered it": "产生者及其输入",
    "What its producer had and what it made, in execution order: the tensor marked as the start is the first that is "
    "not finite.": "产生者的输入与输出，按执行顺序排列：标为起点的张量是首个非有限张量。",
    "The inputs of this module were not captured, so it may itself be a victim; capture whole steps, with --phases all "
    "and without --modules.": (
        "该模块的输入未采集，因此它本身也可能只是受影响者；请用 --phases all 且不带 --modules 采集完整的步。"
    ),
    "part": "角色",
    "starts here": "起点",
    "enters": "输入",
    "leaves": "输出",
    "largest finite": "最大有限值",
    "Where it goes": "传播去向",
    "The first tensors after it that are not finite: they only carry it on. There are {} in the captured steps.": (
        "其后首批非有限张量：它们只是传播。已采集的各步中共有 {} 个。"
    ),
    # align/inspection/ranks_table.py
    "Ranks beside one another": "各卡对照",
    "What the timeline of each rank says; losses are those of its own batches.": (
        "各卡时间线的内容；loss 为各卡自身批次的 loss。"
    ),
    "rank": "卡",
    "captured": "已采集",
    "first loss": "首步 loss",
    "last loss": "末步 loss",
    "not finite": "非有限",
    "time per step": "单步耗时",
}
