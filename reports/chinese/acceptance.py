"""What an acceptance says of two runs, and the sources of the built-in limits, in Chinese."""

from __future__ import annotations

from collections.abc import Mapping

SENTENCES: Mapping[str, str] = {
    # align/acceptance/beginning.py
    "The loss of step {} is not finite in both runs.": "第 {} 步的 loss 并非在两侧均为有限值。",
    "Step {} is the first that was compared, but not the first of both runs.": (
        "第 {} 步是首个被比对的步，但不是两侧的首步。"
    ),
    "Give both runs from their first step on.": "请给出两侧自首步起的记录。",
    "See what is not finite with `align inspect`.": "用 `align inspect` 查看哪些张量不是有限值。",
    "Step {}: the loss is {} in the reference and {} in the candidate, {} apart.": (
        "第 {} 步：loss 在标杆侧为 {}，在待比对侧为 {}，相差 {}。"
    ),
    "Nothing was learned yet: the weights, the batch or the forward pass differ. {}": (
        "此时尚未学习：权重、批次或前向计算不同。{}"
    ),
    "Over the first {} (up to step {}) the mean relative difference is {}.": (
        "前 {}（至第 {} 步）的平均相对误差为 {}。"
    ),
    "{} That is {} the floor of {}.": "{0}为本底 {2} 的 {1}。",
    # align/acceptance/case.py
    "{} times what repeats of the reference differ by, which is more than the policy's {} ({})": (
        "标杆重复运行之间差异的 {} 倍，大于策略的 {}（{}）"
    ),
    (
        "{} is equal to the reference in every digit: it says nothing of what rounding does and was left out. "
        "Repeat the reference with `align capture --perturb 1`."
    ): ("{} 与标杆逐位相同，不能说明舍入的影响，故未采用。请用 `align capture --perturb 1` 重复运行标杆。"),
    "{} has {} of the {} that were compared.": "{0} 仅含已比对的 {2} 中的 {1} 步。",
    # align/acceptance/events.py
    "The candidate's loss is finite wherever the reference's is.": "凡标杆侧 loss 为有限值处，待比对侧也为有限值。",
    "The candidate's loss is not finite at {} that it skipped, as loss scaling does, and nowhere else.": (
        "待比对侧的 loss 仅在被跳过的 {}中不是有限值，这是损失缩放的正常行为。"
    ),
    "The candidate's loss is NaN or Inf at {}, the reference's is not; the first is step {}.": (
        "待比对侧的 loss 在 {}中为 NaN 或 Inf，而标杆侧不是；首次为第 {} 步。"
    ),
    "{} `align inspect` of the candidate names the tensor.": "{}对待比对侧执行 `align inspect` 可指出张量。",
    "The candidate's loss has {}, the reference's {}.": "待比对侧的 loss 有 {}，标杆侧有 {} 个。",
    "{} Only the candidate's spikes at {}.": "{}仅待比对侧出现尖刺的步：{}。",
    # align/acceptance/level.py
    ("The mean relative difference of the loss is {} ({} in absolute numbers), the largest {} at step {}."): (
        "loss 的平均相对误差为 {}（绝对值 {}），最大为 {}，在第 {} 步。"
    ),
    " That is within the limit, but {} what repeats of the reference differ by: rounding does not explain it.": (
        "该值在限值以内，但为标杆重复运行之间差异的 {}，无法用舍入解释。"
    ),
    "{} of {} of the candidate have no finite loss, the first of them step {}: what remains tells nothing.": (
        "待比对侧的 {1} 中有 {0} 步的 loss 非有限值，首个为第 {2} 步：其余部分不足以判断。"
    ),
    "The policy asks for no tensors, but those that were captured differ. {}": (
        "该策略不涉及张量，但已采集的张量存在差异。{}"
    ),
    " Read the {} below before you sign.": "签字前请阅读下方的 {}。",
    "{} remark": "{} 条说明",
    "{} remarks": "{} 条说明",
    "The worst {} are {}-{}: there the candidate's loss is {} on average.": (
        "最差的 {}为第 {}–{} 步：其间待比对侧的 loss 平均{}。"
    ),
    "The losses do not part for good: at the end, over {}, they differ by {} on average.": (
        "loss 未持续分离：末尾 {}内平均相差 {}。"
    ),
    ("From step {} on the losses are apart to the end: over the last {} the candidate's is {} on average."): (
        "自第 {} 步起两侧 loss 分离直至结束：最后 {}内待比对侧平均{}。"
    ),
    "From step {} on the candidate's loss is {} on average, which is {} times its standard error.": (
        "自第 {} 步起待比对侧的 loss 平均{}，为其标准误的 {} 倍。"
    ),
    ("The difference is steady, if small: evaluate both models on the downstream tasks before you rely on it."): (
        "差异虽小但方向固定：采用前请在下游任务上评测两侧模型。"
    ),
    "That is beyond the limit, but may be chance: train both runs longer to tell.": (
        "已超出限值，但可能出于偶然：延长两侧训练以作判断。"
    ),
    "{} higher": "偏高 {}",
    "{} lower": "偏低 {}",
    (
        "{} That is beyond the limit only where the loss is near 0 or little and scattered, and healthy runs "
        "may differ as much there."
    ): ("{}仅在 loss 接近 0、或很小且波动大处超出限值，而正常运行在该处也可能相差这么多。"),
    # align/acceptance/norms.py
    "The gradient norm is not in both files.": "并非两侧文件都含梯度范数。",
    ("Log the gradient norm in both runs, or capture them: `align capture` records it where it is computed."): (
        "在两侧记录梯度范数，或采集两次运行：`align capture` 会在计算梯度范数处记录它。"
    ),
    "The mean relative difference of the gradient norm is {} over {}.": "{1}内梯度范数的平均相对误差为 {0}。",
    # align/acceptance/operators.py
    "Single operators were not held against a standard.": "未按标准检验单算子。",
    (
        "Run the operator standard for the operators of this model, and give its results by `--ops FILE`, a "
        "CSV file with the columns op, dtype, ratio, limit."
    ): ("对本模型的算子执行单算子精度标准，并以 `--ops FILE` 给出结果：含 op、dtype、ratio、limit 列的 CSV 文件。"),
    "{} of {} are within their limits; {} has {} of {} allowed.": "{1}中有 {0} 个在限值内；{2} 为 {3}，限值 {4}。",
    "{} Beyond them: {}.": "{}超出限值：{}。",
    "the file of operators": "算子结果文件",
    "Run these operators alone with the same inputs on both devices, and on the CPU in fp64.": (
        "以相同输入在两侧设备上单独运行这些算子，并在 CPU 上以 fp64 运行。"
    ),
    # align/acceptance/order.py
    (
        "Compare the batches: `align capture --steps 0:3` of both runs, then `align diff`, which names their "
        "relation. Check seed, sampler and resumed position."
    ): (
        "比对批次：两侧执行 `align capture --steps 0:3`，再用 `align diff` 指出其关系。检查随机种子、采样器与"
        "断点续训的位置。"
    ),
    "The losses go together best step by step: neither run is shifted.": "两侧 loss 逐步对应最好：没有错位。",
    "The candidate's loss is that of the reference {} (correlation {}, step by step {}).": (
        "待比对侧的 loss 与标杆侧{}的 loss 一致（相关系数 {}，逐步为 {}）。"
    ),
    "{} before": "前 {}",
    "{} later": "后 {}",
    "One run began elsewhere in its data, or the logs number their steps differently. {}": (
        "一侧从数据的其他位置开始，或两侧日志的步编号不同。{}"
    ),
    "The changes of both losses from step to step have a correlation of {}.": "两侧 loss 逐步变化量的相关系数为 {}。",
    "The runs see other data, or the same in another order. {}": "两侧读取的数据不同，或顺序不同。{}",
    (
        "The changes of a repeat's loss have a correlation of {} with those of the reference: was it trained "
        "on the same batches?"
    ): ("某次重复运行的 loss 变化量与标杆的相关系数为 {}：它是否使用了相同的批次？"),
    "half of what repeats of the reference have ({})": "标杆重复运行之间相关系数的一半（{}）",
    "One of the losses does not change from step to step: nothing can be told of the order of the data.": (
        "一侧的 loss 逐步不变：无法判断数据顺序。"
    ),
    # align/acceptance/pairing.py
    (
        "{} counts its steps from 0 and {} from 1: steps that are the same update were compared, and are named "
        "by the reference's numbers."
    ): ("{} 的步从 0 计，{} 从 1 计：已按同一次更新比对，步号采用标杆侧的编号。"),
    "the candidate": "待比对侧",
    "the reference": "标杆侧",
    "Of {} in the log of {}, {} were compared: {}.": "{1}日志的 {0}中比对了 {2} 步：{3}。",
    "step {}": "第 {} 步",
    "steps {}-{}": "第 {}–{} 步",
    "steps {}-{} ({} of them)": "第 {}–{} 步（共 {} 步）",
    # align/acceptance/scale.py
    ("At {} of {} the reference's loss is below {} of its first, {}: differences there are relative to {}."): (
        "{1}中有 {0} 步标杆侧的 loss 低于首步 {3} 的 {2}：其误差相对于 {4} 计算。"
    ),
    (
        "The loss takes both signs: differences are relative to the range that it spans, {}, where the loss "
        "itself is smaller."
    ): ("loss 有正有负：在其绝对值小于取值范围 {} 处，误差相对于该范围计算。"),
    "The loss is taken for a perplexity (it falls from {} to {}): its logarithm is judged.": (
        "该 loss 视为困惑度（由 {} 降至 {}）：按其对数判定。"
    ),
    # align/acceptance/speed.py
    "Look for operators that fall back to the CPU, recompilation, waiting for data and communication.": (
        "检查回退到 CPU 的算子、重新编译、等待数据与通信。"
    ),
    "The time per step is not in both files.": "并非两侧文件都含单步耗时。",
    "Log it in both runs, or capture them.": "在两侧记录它，或采集两次运行。",
    "Half of the steps take {} or less in the reference, {} in the candidate.": (
        "半数的步在标杆侧耗时不超过 {}，在待比对侧不超过 {}。"
    ),
    "Log them in both runs.": "在两侧记录它。",
    "Tokens per second are not in both files.": "并非两侧文件都含每秒 token 数。",
    "The median is {} tokens per second in the reference, {} in the candidate.": (
        "每秒 token 数的中位数：标杆侧 {}，待比对侧 {}。"
    ),
    # align/acceptance/summary.py
    "Missed: {} of {}. First: {}": "{1}中有 {0} 项未达标。首项：{2}",
    "Cannot tell: nothing that this policy requires could be measured.": "无法判定：该策略要求的指标均无法测量。",
    "Cannot tell: {} could not be measured. {} {}": "无法判定：{}无法测量。{}{}",
    (
        "Met: {} of {}; {} not measured. The candidate follows the reference over {}, with a mean relative "
        "difference of the loss of {}."
    ): ("{1}中 {0} 项达标；{2} 项未测。待比对侧在 {3}内跟随标杆，loss 的平均相对误差为 {4}。"),
    "Evaluation on downstream tasks.": "下游任务评测。",
    "Weights, batches, activations and gradients: only curves were compared.": (
        "权重、批次、激活与梯度：仅比对了曲线。"
    ),
    "Tensors of other steps than the captured ones.": "未采集的步中的张量。",
    "The curves of other ranks than the one that was read.": "所读 rank 以外各 rank 的曲线。",
    "What happens after {}.": "{}之后的训练。",
    "Differences of single losses below {}: the files print no more digits.": (
        "单步 loss 低于 {} 的差异：文件未输出更多位数。"
    ),
    "The learning rates differ at {}: first at step {}, {} in the reference and {} in the candidate.": (
        "学习率在 {}中不同：首次在第 {} 步，标杆侧为 {}，待比对侧为 {}。"
    ),
    "The reference skipped {}, the candidate {}.": "标杆侧跳过 {}，待比对侧跳过 {} 步。",
    # align/acceptance/telling.py
    (
        "Run the reference twice more with `align capture --perturb 1` and `--perturb 2`, and give these runs "
        "as `--floor`."
    ): ("以 `align capture --perturb 1` 与 `--perturb 2` 再运行标杆两次，并以 `--floor` 给出。"),
    ("Capture steps {} and {} of both runs with `align capture --steps {}:{}` and compare them with `align diff`."): (
        "以 `align capture --steps {2}:{3}` 采集两侧的第 {0} 步与第 {1} 步，并用 `align diff` 比对。"
    ),
    "Train both runs longer: for {} logged steps to tell this, for {} to meet the policy.": (
        "延长两侧训练：判断此项需记录 {} 步，满足策略需 {} 步。"
    ),
    "{} are too few to tell: {} are needed.": "{}太少，无法判断：需要 {} 步。",
    # align/acceptance/tensors.py
    "Run both with `align capture --steps 0:3` and give the captures to `align accept`.": (
        "两侧均以 `align capture --steps 0:3` 运行，并将采集文件交给 `align accept`。"
    ),
    "Logs do not hold weights and batches: that both runs began alike was not seen.": (
        "日志不含权重与批次：未能确认两侧起点一致。"
    ),
    "The captures hold no initial weights and no batches.": "采集文件不含初始权重与批次。",
    "The initial weights and batches are equal, {}.": "初始权重与批次一致，{}。",
    "{} of {} differ: {}.": "{1}中有 {0} 个不同：{2}。",
    "Start both runs from the same weights and batches. {}": "两侧应从相同的权重与批次开始。{}",
    "There are no tensors to compare: at least one run is no capture.": "没有可比对的张量：至少一侧不是采集文件。",
    "The tensors were not judged, since the runs did not begin alike.": "两侧起点不一致，因此未判定张量。",
    "{} tensors of the captured steps were compared, and none really differs.": (
        "比对了所采集步中的 {} 个张量，没有真实差异。"
    ),
    "{} in {}": "{1}的 {0}",
    # align/accepting.py
    "The capture of the {} holds no tensors, only curves.": "{}的采集文件只含曲线，不含张量。",
    "reference": "标杆侧",
    "candidate": "待比对侧",
    "The captures cannot be compared by their tensors: {}": "无法按张量比对采集文件：{}",
    # numbers of things
    "{} required criterion": "{} 项必测指标",
    "{} required criteria": "{} 项必测指标",
    "{} step": "{} 步",
    "{} steps": "{} 步",
    "{} logged step": "{} 个记录步",
    "{} logged steps": "{} 个记录步",
    "{} common step": "{} 个公共步",
    "{} common steps": "{} 个公共步",
    "{} spike": "{} 个尖刺",
    "{} spikes": "{} 个尖刺",
    "{} operator": "{} 个算子",
    "{} operators": "{} 个算子",
    "{} tensor": "{} 个张量",
    "{} tensors": "{} 个张量",
    "{} initial weight or batch": "{} 个初始权重或批次",
    "{} initial weights and batches": "{} 个初始权重与批次",
    # align/acceptance/policies/*.toml
    "initial weights and batches are copied, not computed: nothing may differ": (
        "初始权重与批次是拷贝而非计算得到：不应有任何差异"
    ),
    ("msprobe, training guide: a step where only the candidate is NaN or Inf is an overflow of the device"): (
        "msprobe 训练调试指南：仅待比对侧出现 NaN 或 Inf 的步为溢出步"
    ),
    "the same batches at the same steps: the condition of all that follows": "同一步使用同一批次：是后续各项的前提",
    "measured: at least 0.946 on healthy pairs, about 0 with other data or another order": (
        "实测：正常运行对不低于 0.946，数据或顺序不同时约为 0"
    ),
    "MindFormers, precision standard for the migration of large models: first loss within 0.5 %": (
        "MindFormers 大模型迁移精度标准：首个 loss 相对误差在 0.5% 以内"
    ),
    (
        "msprobe, training guide: a mean relative error of the first steps above 1 % is a first-step "
        "difference; with repeats, measured: 2.8 times the floor on healthy pairs, 7.8 with a learning rate "
        "1.1 times as high"
    ): (
        "msprobe 训练调试指南：前若干步平均相对误差大于 1% 为首 Step 差异；有重复运行时，实测正常运行对为本底"
        "的 2.8 倍，学习率为 1.1 倍时为 7.8 倍"
    ),
    ("msprobe, training guide: spikes more often than the reference; twice the square root of a count is its chance"): (
        "msprobe 训练调试指南：尖刺比标杆更频繁；计数平方根的两倍为其偶然波动"
    ),
    "msprobe, training guide: a mean relative error above 1 % in the long run is a long-run difference": (
        "msprobe 训练调试指南：长跑平均相对误差大于 1% 为长稳差异"
    ),
    ("MindFormers, precision standard for the migration of large models: mean relative error of the loss within 1 %"): (
        "MindFormers 大模型迁移精度标准：loss 平均相对误差在 1% 以内"
    ),
    "ModelZoo-PyTorch: mean relative error of the loss below 2 %, held by every window here": (
        "ModelZoo-PyTorch：loss 平均相对误差小于 2%，此处要求每个窗口满足"
    ),
    ("simulated pairs: the smallest steady difference that is told from a healthy device in 95 % of 1,000-step runs"): (
        "模拟运行对：1,000 步运行中有 95% 可与正常设备区分的最小固定偏差"
    ),
    (
        "MindFormers, precision standard for the migration of large models: mean relative error of the global "
        "norm within 10 %"
    ): ("MindFormers 大模型迁移精度标准：全局梯度范数平均相对误差在 10% 以内"),
    "measured: no tensor of 56 healthy pairs starts a difference above 7 times its floor": (
        "实测：56 组正常运行对中，没有张量的新增差异超过其本底的 7 倍"
    ),
    "measured: healthy pairs differ by at most 1.8 times what two runs of the reference differ by": (
        "实测：正常运行对的差异不超过标杆两次运行之间差异的 1.8 倍"
    ),
    "a loss that is NaN or Inf is within no tolerance": "为 NaN 或 Inf 的 loss 不在任何容限之内",
    "MindFormers, precision standard: first loss within 0.005, or within 0.5 %": (
        "MindFormers 精度标准：首个 loss 绝对误差小于 0.005，或相对误差小于 0.5%"
    ),
    "MindFormers, precision standard: mean error of the loss within 0.01, or within 1 %": (
        "MindFormers 精度标准：loss 平均绝对误差小于 0.01，或平均相对误差小于 1%"
    ),
    "MindFormers, precision standard: mean relative error of the global norm within 10 %, to be watched": (
        "MindFormers 精度标准：全局梯度范数平均相对误差在 10% 以内（监控项）"
    ),
    "MindFormers, precision standard: the tolerance is widened to what runs of the reference differ by": (
        "MindFormers 精度标准：容限放宽至标杆多次运行之间的差异"
    ),
    "ModelZoo-PyTorch, readmes of large models: mean relative error of the loss below 2 %": (
        "ModelZoo-PyTorch 大模型 README：loss 平均相对误差小于 2%"
    ),
    "measured: healthy fp32 pairs differ by 1e-7 on the first step": "实测：正常 fp32 运行对首步相差 1e-7",
    ("ten times what healthy fp32 pairs stay below on the first step; rounding has had 20 updates to grow"): (
        "正常 fp32 运行对首步上限的十倍；舍入误差已经过 20 次更新"
    ),
    "measured: healthy fp32 pairs have a mean relative error of 3e-5 over 300 steps": (
        "实测：正常 fp32 运行对 300 步的平均相对误差为 3e-5"
    ),
    "twice the limit of the mean error, as in the policy default": "平均误差限值的两倍，与 default 策略相同",
    "half of the limit of the mean error, as in the policy default": "平均误差限值的一半，与 default 策略相同",
    "ten times the limit of the mean error, as in the policy default": "平均误差限值的十倍，与 default 策略相同",
}
