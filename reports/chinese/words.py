"""What all sentences share: places, counts, lists, and what reports say of checkpoints."""

from __future__ import annotations

from collections.abc import Mapping

SENTENCES: Mapping[str, str] = {
    # Clauses behind one another.
    ", {}": "，{}",
    "{0} {1}": "{0} 个{1}",
    # What joins the parts of a list of any length.
    " and ": "和",
    " or ": "或",
    "; or ": "；或",
    " and of ": "和",
    " or of ": "或",
    ", of ": "、",
    # Endings of English words.
    "s": "",
    # Phases.
    "init": "初始",
    "input": "输入",
    "forward": "前向",
    "backward": "反向",
    "gradient": "梯度",
    "update": "更新",
    "param": "参数",
    "parameter": "参数",
    "optimizer": "优化器",
    "scaler": "缩放器",
    "rng": "随机状态",
    # Places.
    "{0}, {1}": "{0}{1}",
    "{0}, {1}: {2} {3}": "{0}{1}：{2} {3}",
    "micro {}": "micro {}",
    "call {}": "第 {} 次调用",
    "relative L2 {}, {} the floor": "相对 L2 误差 {}，为本底的 {}",
    "relative L2 {}, of it {}, {} the floor": "相对 L2 误差 {}，其中{}，为本底的 {}",
    "{} times those of the reference{}": "标杆的 {} 倍{}",
    "the slice along dimension {}": "沿第 {} 维的切片",
    # Counts of evidence and of checkpoints.
    "Entries: {}.": "条目：{}。",
    "only in the reference": "仅在标杆侧",
    "only in the candidate": "仅在待比对侧",
    "renamed": "改名",
    "relation": "关系",
    # Evidence.
    "{} against {}": "{} 对比 {}",
    "another order in the batch": "批次内顺序不同",
    "another order": "顺序不同",
    "other samples": "样本不同",
    "shifted": "整体移位",
    "gaps": "有缺漏",
    "{} ({} of {} in both runs, told by {})": "{}（{2} 中两侧共有 {1}，依据 {3}）",
    "moved by {} ({} of {} agree then)": "移动 {}（移动后 {2} 中 {1} 一致）",
    "{} place": "{} 个位置",
    "{}: another state since {}{}": "{}：自{}起状态不同{}",
    ", equal in {}": "，{}时相同",
    "{} times {} (relative L2 of the rest {})": "{1} 的 {0} 倍（其余部分的相对 L2 为 {2}）",
    "{} along dimension {}": "沿第 {1} 维的 {0}",
    "a single number": "单个数",
    "{} times that of the reference": "标杆侧的 {} 倍",
    "{} steps of the reference in each step": "每步相当于标杆侧的 {} 步",
    "{} steps for each step of the reference": "{} 步相当于标杆侧的一步",
    "{} ahead": "领先 {}",
    "{} behind": "落后 {}",
    "relative L2": "相对 L2 误差",
    # Floors.
    "{}, statistics only": "{}，仅统计量",
    # What comparisons and inspections say themselves.
    "only {}": "仅 {}",
    "These captures cannot be compared: of the tensors that {} computed {} could be judged.": (
        "两份采集文件无法比对：{}计算的张量中{}可以判定。"
    ),
    "{}, {}: {} {} is the first tensor that differs.": "{}{}：{} 的 {} 是首个出现差异的张量。",
    # What was not captured.
    "Capture the phase init too: the initial weights were not captured on both sides and were taken to be equal.": (
        "请同时采集 init 阶段：初始权重未在两侧都采集，已视为相同。"
    ),
    "Whether the weights of {} are equal is not known: it was first called in {}, after the initial weights had been "
    "captured.": "{} 的权重是否相同未知：它在{}才首次被调用，晚于初始权重的采集。",
    "Capture both runs with the same --steps, from step 0 on: the parameters at the begin of {} were not captured, and "
    "those after the step stood in for them.": (
        "两侧请以相同的 --steps 从第 0 步起采集：{}开始时的参数未采集，以该步之后的参数代替。"
    ),
    "Capture the phase param too, and steps in a row from step 0: the parameters at the begin of {} were not captured, "
    "so the values were not judged there.": (
        "请同时采集 param 阶段，并从第 0 步起连续采集：{}开始时的参数未采集，因此未判定该处的数值。"
    ),
    "Capture the phase forward too: it was not captured on both sides, so gradients were not judged.": (
        "请同时采集 forward 阶段：该阶段未在两侧都采集，因此未判定梯度。"
    ),
    "{} of {} ranks were read: the file of rank {} is not there. What only it does cannot be told; copy it beside the "
    "others.": (
        "共 {1} 卡，读取了 {0} 卡：缺少 rank {2} 的文件。仅由该卡所做的内容无法判断；请将其文件复制到其他文件旁。"
    ),
    "{} of {} ranks were read: the files of ranks {} are not there. What only they do cannot be told; copy them beside "
    "the others.": (
        "共 {1} 卡，读取了 {0} 卡：缺少 rank {2} 的文件。仅由这些卡所做的内容无法判断；请将其文件复制到其他文件旁。"
    ),
    # Checkpoints.
    "capture, the weights before step 0": "采集文件，第 0 步之前的权重",
    "{}, {} files": "{}，{} 个文件",
    "The index leaves out {} tensors of its shards, which are not loaded: {}.": (
        "索引遗漏了其分片中的 {} 个张量，这些张量未加载：{}。"
    ),
    "Of the folder '{}' {} is compared; it also holds {}.": "文件夹 '{}' 中比对的是 {}；其中还有 {}。",
    # Settings of a DataLoader.
    "generator seed": "生成器种子",
    "num workers": "worker 数",
    "batch sampler": "批次采样器",
    # Relations of entries.
    "names": "名称",
    "order": "顺序",
    "the reference after step {}": "标杆侧第 {} 步之后",
    "the candidate after step {}": "待比对侧第 {} 步之后",
    "ones": "全 1",
    "constant": "常数",
    "equal": "相同",
    "stacked": "堆叠",
    "grouped": "分组合并",
    "merged": "合并",
    # Rewritten sentences.
    "{}, of which {} captured": "{}，其中采集 {} 步",
    "; {}": "；{}",
    "Scale the loss: scaler = {}, scaler.scale(loss).backward(), scaler.step(optimizer), scaler.update(); or train in "
    "bf16.": (
        "对 loss 进行缩放：scaler = {}，scaler.scale(loss).backward()，scaler.step(optimizer)，scaler.update()；"
        "或改用 bf16 训练。"
    ),
    "Raise the loss scale: {}, scaler.scale(loss).backward(), scaler.step(optimizer), scaler.update(); or train in "
    "bf16.": (
        "增大损失缩放系数：{}，scaler.scale(loss).backward()，scaler.step(optimizer)，scaler.update()；"
        "或改用 bf16 训练。"
    ),
}
