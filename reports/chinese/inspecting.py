"""What is said of one run and of the ranks of one job, in Chinese."""

from __future__ import annotations

from collections.abc import Mapping

SENTENCES: Mapping[str, str] = {
    # align/diagnosis/run/checkpoint_keys.py
    "Nothing of the checkpoint was loaded, since no key fits": "checkpoint 中没有任何内容被加载，因为没有键名匹配",
    "The checkpoint did not fill {}": "checkpoint 未能填充 {}",
    (
        "Nothing to do where a new part is put on an old model. Else rename the keys, and load with `strict=True`, "
        "which refuses keys that do not fit."
    ): "若是在旧模型上加了新的部分，则无需处理。否则请修改键名，并以 `strict=True` 加载，使不匹配的键报错。",
    (
        "{} before loading, and load with `strict=True`, which refuses keys that do not fit."
    ): "加载前{}，并以 `strict=True` 加载，使不匹配的键报错。",
    # align/diagnosis/run/clip_before_unscale.py
    " So it is in all {} captured steps that clip.": "已采集且做了裁剪的 {} 步均如此。",
    # align/diagnosis/run/data_order_repeated.py
    (
        "From {} on the batches of the epoch before come again in the same order: {} of {}, each {} after it came "
        "first{}."
    ): "从{0}起，上一个 epoch 的批次以相同的顺序再次出现：{2}中有 {1} 个，各在首次出现的 {3}之后重现{4}。",
    ", although the loader shuffles": "，尽管 DataLoader 启用了打乱",
    (
        "Call `sampler.set_epoch(epoch)` at the begin of each epoch: it shuffles by seed plus epoch."
    ): "在每个 epoch 开始时调用 `sampler.set_epoch(epoch)`：采样器按种子加 epoch 打乱。",
    (
        "Look for what seeds the order anew in each epoch: a generator made or seeded inside the loop, "
        "torch.manual_seed at its begin. Nothing is wrong where one order is meant."
    ): (
        "查找每个 epoch 都重新设定顺序种子的代码：在循环内创建或设置种子的 generator、循环开头的 "
        "torch.manual_seed。若本意就是使用同一顺序，则没有问题。"
    ),
    # align/diagnosis/run/denormal_flush.py
    (
        "This device has no subnormal fp16 numbers: {} elements of gradients lie between 6.1e-5 and 1.2e-4, and none "
        "below but 0. Underflow begins at 6.1e-5 instead of 3.0e-8, 2^11 earlier."
    ): (
        "该设备没有 fp16 次正规数（subnormal）：有 {} 个梯度元素介于 6.1e-5 与 1.2e-4 之间，更小的只有 0。"
        "下溢从 6.1e-5 而非 3.0e-8 开始，早 2^11 倍。"
    ),
    (
        "Nothing to do while the loss scale is high enough (see the line fp16 range); one that is small for another "
        "device may be too small here."
    ): "损失缩放系数足够大时无需处理（见“fp16 范围”一行）；在其他设备上偏小的系数，在此处可能过小。",
    # align/diagnosis/run/duplicate_samples.py
    (
        "Each of the {} workers of the DataLoader gives the same batches: {} of {} {} of the one before."
    ): "DataLoader 的 {0} 个 worker 各自给出相同的批次：{2}中有 {1} 个{3}前一个批次的内容。",
    "are copies": "重复了",
    "is a copy": "重复了",
    (
        "Let the IterableDataset give each worker its part: torch.utils.data.get_worker_info() tells its number, "
        "`itertools.islice(samples, worker.id, None, worker.num_workers)` takes every so many."
    ): (
        "让 IterableDataset 为每个 worker 划分数据：torch.utils.data.get_worker_info() 给出其编号，"
        "`itertools.islice(samples, worker.id, None, worker.num_workers)` 按间隔取样。"
    ),
    # align/diagnosis/run/gradient_norm.py
    "all {} parameters": "全部 {} 个参数",
    (
        "Step {}, optimizer: the gradients are clipped by a norm of {}, but theirs is {}: as if {} counted twice."
    ): "第 {} 步，优化器：梯度按范数 {} 裁剪，而其实际范数为 {}：如同 {} 被计算了两次。",
    (
        "Give clip_grad_norm_ each parameter once: {} two times, as where the parameters of two modules are joined "
        "(`{{*a.parameters(), *b.parameters()}}` has each once)."
    ): (
        "传给 clip_grad_norm_ 的每个参数只应出现一次：{}两次，例如将两个模块的参数拼在一起时"
        "（`{{*a.parameters(), *b.parameters()}}` 中每个只出现一次）。"
    ),
    "a tied weight may be in it": "共享权重可能出现了",
    "the list may hold them": "列表中可能包含它们",
    # align/diagnosis/run/gradient_scaled.py
    " So it is in {}.": "{}均如此。",
    (
        "Step {}: the loss was multiplied by {}, and its gradients are divided by {}, the loss scale of the step "
        "after: the optimizer takes {} times the true gradients. In the other captured steps both are equal.{}"
    ): (
        "第 {} 步：loss 乘以 {}，而其梯度除以 {}，即下一步的损失缩放系数：优化器得到的是真实梯度的 {} 倍。"
        "其他已采集的步中两者相等。{}"
    ),
    (
        "Divide the gradients by the scale that their loss was multiplied by, and move the scale afterwards."
    ): "用 loss 所乘的系数除梯度，之后再更新该系数。",
    # align/diagnosis/run/gradient_underflow.py
    "6.1e-5, the device has no subnormals": "6.1e-5，该设备没有次正规数",
    "without a loss scale": "不使用损失缩放",
    "at a loss scale of {}": "损失缩放系数为 {}",
    ": from {} {} on they are all 0": "：从 {} {} 起全部为 0",
    (
        ": from {} {} on, which is rounded by {} with {} zeros in it, they are about the smallest fp16 number ({})"
    ): "：从 {} {} 起（舍入误差 {}，其中 {} 为 0），其大小约为最小的 fp16 数（{}）",
    "Step {}: {} gradients are too small for fp16{}.": "第 {} 步：{}时，梯度对 fp16 过小{}。",
    "{} The gradients of {} of {} are all 0 ({}).": "{0}{2}中有 {1} 个的梯度全部为 0（{3}）。",
    ("{} {} of the parameters get gradients that are made of such numbers."): "{}{} 的参数的梯度由此类数值构成。",
    # align/diagnosis/run/little_headroom.py
    (
        "{} {} reaches {} in {}, {} of {}, the greatest {} number.{}{}"
    ): "{0} {1} 在{3}达到 {2}，为 {6} 最大值 {5} 的 {4}。{7}{8}",
    (
        " It grew by {} per step in {}; at this rate it overflows in about {}."
    ): "它在{1}每步增长到 {0} 倍；按此速度，约 {2}后溢出。",
    " {} {} near it too.": "{}{}接近上限的值。",
    (
        "Run {} in bf16 or fp32, whose range is wider, or put a normalization before it."
    ): "以范围更宽的 bf16 或 fp32 运行 {}，或在其之前加入归一化。",
    (
        "Look at why {} grows: the learning rate, the scale of the weights, a missing normalization."
    ): "查找 {} 增长的原因：学习率、权重的量级、缺少归一化。",
    (
        "{} Capture later steps as well (`align capture --every 100`) to see whether it grows on."
    ): "{}同时采集后续的步（`align capture --every 100`），查看它是否继续增长。",
    # align/diagnosis/run/loss_spike.py
    (
        "The loss rises in {} from {} to at most {} and is not back at the end of the run, {} later."
    ): "loss 在{}从 {} 上升，最高到 {}，至 {}后运行结束时仍未回落。",
    ", and {} later": "，之后又有 {}",
    "; from {} on it stays high": "；从{}起保持在高位",
    "The loss jumps in {} from {} to {}{}{}.": "loss 在{}从 {} 跳到 {}{}{}。",
    (
        "The gradient of {} grew before: its norm is {} in {}, {} times the median of the captured steps before."
    ): "{0} 的梯度此前已增大：其范数在{2}为 {1}，是此前已采集各步中位数的 {3} 倍。",
    (
        "Which gradient grew first is not known: the steps around it were not captured."
    ): "哪个梯度最先增大未知：其前后的步未采集。",
    (
        "The norm of the gradients rose before, in {}: look at the backward, or the optimizer."
    ): "梯度范数在此之前的{}已上升：检查反向或优化器。",
    (
        "The norm of the gradients rose with it, in {}: look at the batch of that step."
    ): "梯度范数与其同在{}上升：检查该步的批次。",
    (
        "Look at how the gradient of {} is summed: in 16 bits a sum of many terms loses the small ones. Sum it in "
        "fp32, clip it, or lower its learning rate, and see whether the loss stays."
    ): (
        "检查 {} 的梯度如何求和：在 16 位格式下，许多项求和会丢失其中较小的项。以 fp32 求和、做裁剪或降低其学习率，"
        "再看 loss 是否平稳。"
    ),
    (
        "Capture these steps with `align capture --steps {}:{}` and inspect again: it tells which layer's gradient "
        "grew first. A jump that comes at the same step in a good run comes from the data."
    ): (
        "用 `align capture --steps {}:{}` 采集这些步，再重新检查：可得知哪一层的梯度最先增大。"
        "若正常的运行在同一步也有跳变，则跳变来自数据。"
    ),
    # align/diagnosis/run/loss_stall.py
    (
        "The loss is {} in all {}, equal to the last bit: it does not depend on what is trained."
    ): "loss 在全部 {1}中均为 {0}，逐位相同：它与所训练的内容无关。",
    (
        "Follow the loss back to the parameters: a .detach(), .item() or argmax on the way, a model in "
        "torch.no_grad(), an optimizer with other parameters, one batch of a model that is never updated."
    ): (
        "从 loss 追溯到参数：途中的 .detach()、.item() 或 argmax，处于 torch.no_grad() 中的模型，"
        "持有其他参数的优化器，从不更新的模型始终使用同一批次。"
    ),
    (
        "The loss does not fall: {} in the first and {} in the last of {}, and ln({}) = {} is what guessing among {} "
        "classes gives."
    ): "loss 不下降：{2}中首步为 {0}，末步为 {1}，而 ln({3}) = {4} 正是在 {5} 个类别中随机猜测的结果。",
    (
        "Train on one batch: if its loss falls, the targets do not belong to their inputs (shuffled, shifted, from "
        "another file) or the rate is wrong; if not, inputs or gradients do not reach the model."
    ): (
        "用一个批次训练：若其 loss 下降，则标签与输入不对应（被打乱、错位、来自其他文件）或学习率不当；"
        "若不下降，则输入或梯度未到达模型。"
    ),
    (
        "The loss does not fall by more than its noise: {} in the first and {} in the last of {}."
    ): "loss 的下降未超过其抖动：{2}中首步为 {0}，末步为 {1}。",
    "See what keeps the parameters from being updated.": "查找参数未被更新的原因。",
    # align/diagnosis/run/nan_origin.py
    (
        " A loss that grows like this comes of a learning rate that is too high, or of gradients that are not clipped."
    ): "loss 如此增长，源于学习率过高或梯度未裁剪。",
    "; the captured {} {} finite": "；已采集的{}{}有限值",
    "It stays so to the end of the run.": "此后直到运行结束均如此。",
    "Later losses are finite again.": "之后的 loss 恢复为有限值。",
    (
        "The loss is not finite in {}, for the first time{}. {}{} Where it starts cannot be told: that step was not "
        "captured."
    ): "loss 在{}首次出现非有限值{}。{}{}无法判断它从何处产生：该步未采集。",
    (
        "Capture it and the step before: `align capture --steps {}:{} --stop SCRIPT`, then inspect that.{}"
    ): "采集该步及前一步：`align capture --steps {}:{} --stop SCRIPT`，然后检查该采集文件。{}",
    "Before, it grew from {} in {} to {} in {}. ": "此前它由{1}的 {0} 增长到{3}的 {2}。",
    # align/diagnosis/run/nan_sentences.py
    "{}: {} is the first captured tensor with {}.": "{}：{} 是已采集张量中首个含 {} 的张量。",
    (
        "Capture it again without --modules: `align capture --steps {}:{} SCRIPT`, then inspect that."
    ): "去掉 --modules 重新采集：`align capture --steps {}:{} SCRIPT`，然后检查该采集文件。",
    (
        "Capture it again without --phases: `align capture --steps {}:{} SCRIPT`, then inspect that."
    ): "去掉 --phases 重新采集：`align capture --steps {}:{} SCRIPT`，然后检查该采集文件。",
    (
        "Capture the step before as well: `align capture --steps {}:{} SCRIPT`, then inspect that."
    ): "同时采集前一步：`align capture --steps {}:{} SCRIPT`，然后检查该采集文件。",
    (
        "Keep the parameters, or a copy of them that the optimizer updates, in fp32 and compute in fp16 by "
        "torch.autocast: in fp16 this eps is 0, and a gradient whose square is 0 in fp16 is divided by 0. An eps of "
        "1e-4 is more than 0 in fp16, but it slows small gradients down."
    ): (
        "参数（或供优化器更新的参数副本）保持为 fp32，用 torch.autocast 以 fp16 计算：该 eps 在 fp16 下为 0，"
        "平方在 fp16 下为 0 的梯度会被 0 除。eps 取 1e-4 在 fp16 下大于 0，但会减慢小梯度的更新。"
    ),
    (
        "Before step 0 {} {} holds {}: it was initialized or loaded like that."
    ): "第 0 步之前，{} {} 含 {}：初始化或加载时即如此。",
    ("In {} the batch holds {}, in {}, before any module runs."): "{0}的批次含 {1}，位于 {2}，此时尚未运行任何模块。",
    ("In {} the targets hold {}; every module output is finite."): "{}的标签含 {}；各模块的输出均为有限值。",
    " None of its targets counts: all are ignored.": "其标签全部被忽略，没有一个计入。",
    "that was captured ": "已采集的",
    ("Every module output {}of {} is finite; the loss is {}.{}"): "{1}{0}各模块输出均为有限值；loss 为 {2}。{3}",
    (
        "In {} the gradients of all activations are finite; that of the parameter {} {} has {}."
    ): "{}所有激活值的梯度均为有限值；参数 {} {} 的梯度含 {}。",
    (
        "In {} every gradient is finite after backward; as the optimizer takes it that of {} {} has {}: the code "
        "between backward and the optimizer made it."
    ): "{}反向之后所有梯度均为有限值；而优化器得到的 {} {} 的梯度含 {}：由反向与优化器之间的代码产生。",
    (
        "In {} every gradient that the optimizer takes is finite; after the update {} {} has {}{}."
    ): "{}优化器得到的所有梯度均为有限值；更新之后 {} {} 含 {}{}。",
    ", with {}": "，此时 {}",
    ", at most {}": "，最大为 {}",
    ": {} made it": "：由{}产生",
    (
        "{}: {} is the first tensor with {}; what it is made from is finite{}{}.{}"
    ): "{}：{} 是首个含 {} 的张量；产生它的输入均为有限值{}{}。{}",
    (
        " {} of it {} NaN throughout, as the softmax of a row is that is masked completely: {} of {} of {} are -Inf."
    ): "其中 {0}整行{1} NaN，如同整行被掩码的 softmax：{4} 的 {3}中有 {2} 个为 -Inf。",
    (
        "Look at how {} is initialized, and at the checkpoint that it is loaded from: `align checkpoint CHECKPOINT "
        "RUN.h5` compares it with what the run started with."
    ): (
        "检查 {} 的初始化方式，以及加载它的 checkpoint："
        "`align checkpoint CHECKPOINT RUN.h5` 可将其与该运行的初始权重比对。"
    ),
    (
        "Look at the sample and at the code that makes the batch: a division by a deviation of 0, a logarithm, a "
        "damaged file. Check batches with torch.isfinite before the model gets them."
    ): (
        "检查该样本与生成批次的代码：除以为 0 的标准差、取对数、损坏的文件。在批次送入模型之前用 torch.isfinite 检查。"
    ),
    (
        "Leave the targets that are not finite out of the loss before it is computed: `known = "
        "torch.isfinite(target)`, then the loss of `prediction[known]` and `target[known]`."
    ): (
        "在计算 loss 之前去掉非有限的标签：`known = torch.isfinite(target)`，"
        "再对 `prediction[known]` 与 `target[known]` 计算 loss。"
    ),
    (
        "Look at the loss of this step for a division by zero or a logarithm of zero: a batch without a valid target, "
        "a mask whose sum is 0. Divide by at least 1, and leave such a batch out."
    ): (
        "检查该步的 loss 是否有除以 0 或对 0 取对数：没有有效标签的批次、总和为 0 的掩码。"
        "除数至少取 1，并略去这样的批次。"
    ),
    (
        "Look at what {name} does with its parameter: an operator whose derivative is not finite at some value (sqrt "
        "or norm at 0, a division), a hook on the parameter."
    ): ("检查 {name} 对其参数做了什么：导数在某些取值处非有限的算子（0 处的 sqrt 或 norm、除法）、参数上的 hook。"),
    (
        "Look at what the script does to gradients before optimizer.step: a division by their norm needs a small "
        "number added, as torch.nn.utils.clip_grad_norm_ does."
    ): (
        "检查脚本在 optimizer.step 之前对梯度做了什么：除以梯度范数时需加上一个小数，"
        "如 torch.nn.utils.clip_grad_norm_ 的做法。"
    ),
    (
        "Look at the learning rate of this step, at eps (with 0, zero is divided by zero where a gradient is 0) and "
        "at the weight decay; and at code that writes into parameters."
    ): ("检查该步的学习率、eps（为 0 时，梯度为 0 处会出现 0 除以 0）与权重衰减；以及写入参数的代码。"),
    (
        "Look at the operators of {} whose derivative is not finite at some value: sqrt or norm at 0, a branch that "
        "torch.where does not select, a division. Make the argument safe before the operator."
    ): (
        "检查 {} 中在某些取值处导数不是有限值的算子：0 处的 sqrt 或 norm、torch.where 未选中的分支、除法。"
        "在进入算子之前使其自变量处于安全范围。"
    ),
    (
        "See whether {} masks a row completely: leave one entry of each row unmasked, or set such rows of the result "
        "to 0. If it does not, look in {} for 0/0."
    ): ("检查 {} 是否将整行掩码：每行至少保留一个未掩码的位置，或将结果中的这些行置 0。若没有，则在 {} 中查找 0/0。"),
    ("Look in {} for a division by zero or the logarithm of zero. {}"): "在 {} 中查找除以 0 或对 0 取对数的运算。{}",
    (
        "Look in {} for 0/0, the logarithm or root of a negative number, Inf - Inf, or a row that is masked "
        "completely. {}"
    ): "在 {} 中查找 0/0、对负数取对数或开方、Inf - Inf，或整行被掩码的情况。{}",
    # align/diagnosis/run/nonfinite_telling.py
    (
        " The loss scaler skips every step from here on; no loss scale helps, since it does not come of a scaled "
        "gradient."
    ): "从此处起损失缩放器跳过每一步；任何损失缩放系数都无济于事，因为它并非来自缩放后的梯度。",
    "NaN and Inf": "NaN 和 Inf",
    "code that was not captured": "未采集的代码",
    "the code of {}": "{} 的代码",
    ", which can all use it": "（它们均可使用它）",
    "the backward of {}": "{}的反向",
    "the training script": "训练脚本",
    "{} after {}": "{}中 {} 之后的部分",
    "{} between {} and {}": "{}中 {} 与 {} 之间的部分",
    " It may start earlier: the capture has no phase {}.": "它可能在更早处产生：采集文件中没有阶段 {}。",
    (
        " Which code made it cannot be told: the module around was not captured."
    ): "无法判断由哪段代码产生：其所在的模块未采集。",
    (
        " Its weights may have been like that already: {}, whose update made them, was not captured."
    ): "其权重可能此前已如此：产生这些权重的{}未采集。",
    (
        " Only modules that match {} were captured: it may start in others."
    ): "仅采集了匹配 {} 的模块：它可能产生于其他模块。",
    (" The loss scaler skipped the step, so the parameters are unharmed."): "损失缩放器跳过了该步，因此参数未受影响。",
    (
        " The optimizer got other gradients, which are finite: the parameters are unharmed."
    ): "优化器得到的是其他梯度，均为有限值：参数未受影响。",
    "the loss of {}": "{}的 loss",
    "the parameters after {}": "{}之后的参数",
    " It reaches {}.": "它传播到了{}。",
    (
        "To see its values, run `align capture --steps {}:{} --detail tensors --modules '{}'`, then `align show "
        "RUN.h5 '{}'`."
    ): (
        "如需查看其数值，请执行 `align capture --steps {}:{} --detail tensors --modules '{}'`，"
        "再执行 `align show RUN.h5 '{}'`。"
    ),
    # align/diagnosis/run/not_updated.py
    (
        "Make the optimizer after the model has its last parameters: moving, wrapping, loading or replacing modules "
        "behind it leaves it with the old ones."
    ): "在模型的参数最终确定之后再创建优化器：此后再移动、包装、加载或替换模块，优化器持有的仍是旧参数。",
    (
        "Give the optimizer a learning rate above 0: look at its arguments and at the first value of the scheduler. "
        "Where a rate of 0 is meant, as in a test of equal steps, nothing is wrong."
    ): (
        "为优化器设置大于 0 的学习率：检查其参数与调度器的首个取值。"
        "若学习率为 0 是有意设置（如测试各步相同），则没有问题。"
    ),
    (
        "Give the scheduler the number of steps that the run really takes: it counts calls of scheduler.step(), which "
        "some frameworks make once per process or per micro-batch."
    ): (
        "将调度器的总步数设为实际的步数：它按 scheduler.step() 的调用次数计数，"
        "而有些框架在每个进程或每个微批次中都调用一次。"
    ),
    (
        "Find what is not finite: capture the first steps with `align capture --steps 0:3` and inspect again."
    ): "查找何处出现非有限值：用 `align capture --steps 0:3` 采集最初几步，再重新检查。",
    (
        "Look at what it is made of; where only scaled gradients overflow, begin with a lower loss scale "
        "(GradScaler(init_scale=...)) and let it fall, else compute there in bf16 or fp32."
    ): (
        "检查它由什么得到；若仅是缩放后的梯度溢出，则以较小的损失缩放系数开始（GradScaler(init_scale=...)）"
        "并让其下降，否则在该处以 bf16 或 fp32 计算。"
    ),
    (
        "Look at what lies between the loss and the parameters: a factor of 0, a mask that leaves nothing, .detach(), "
        "numbers below the smallest of float16 (a loss scale helps)."
    ): ("检查 loss 与参数之间的内容：系数 0、全部屏蔽的掩码、.detach()、小于 float16 最小值的数（可用损失缩放解决）。"),
    (
        "Call optimizer.zero_grad() before loss.backward() or after optimizer.step(), never between the two."
    ): "在 loss.backward() 之前或 optimizer.step() 之后调用 optimizer.zero_grad()，切勿在两者之间调用。",
    (
        "Look for what cuts the loss off from them: .detach(), .item(), torch.no_grad(), requires_grad=False, a loss "
        "of something else. `loss.backward()` raises no error while any tensor needs a gradient."
    ): (
        "查找使 loss 与它们断开的原因：.detach()、.item()、torch.no_grad()、requires_grad=False、"
        "由其他内容计算的 loss。只要有任一张量需要梯度，`loss.backward()` 就不会报错。"
    ),
    (
        "Add them to a parameter group of the optimizer, or set requires_grad=False where they are to stay as they are."
    ): "将它们加入优化器的参数组；若应保持不变，则设置 requires_grad=False。",
    (
        "Look at what the optimizer writes to: copies of the parameters, a step that was patched or fused by hand, "
        "values that are put back after the step."
    ): "检查优化器写入的对象：参数的副本、手工修改或融合的 step、在 step 之后被还原的数值。",
    (" The first that is not finite in {} is {} {} ({})."): "{}首个出现非有限值的是 {} {}（{}）。",
    (
        "The learning rate is 0 in all {} that were seen: no parameter can move."
    ): "在所见的全部 {}中学习率均为 0：没有参数能够更新。",
    (
        "The learning rate is 0 from {} to the end of the run, {}: from there on no parameter moves."
    ): "从{}到运行结束（{}）学习率为 0：此后没有参数更新。",
    (
        "All {} were skipped because a gradient was not finite: no parameter has moved."
    ): "全部 {}均因梯度出现非有限值而被跳过：没有任何参数更新。",
    (
        "All gradients are exactly 0 in {}, the loss is not: nothing can be learned from it."
    ): "在 {}中所有梯度恰好为 0，而 loss 不为 0：无法从中学到任何内容。",
    (
        "None of the {} that get a gradient belongs to the optimizer ({}): it updates others, or none."
    ): "得到梯度的 {}均不属于优化器（{}）：优化器更新的是其他参数，或不更新任何参数。",
    (
        "Backward makes gradients, and in none of the {} does the optimizer take one: they are cleared before it is "
        "called, and no parameter moves."
    ): "反向产生了梯度，但在 {}中优化器均未得到：梯度在调用优化器之前已被清零，没有参数更新。",
    (
        "In none of {} does one of the {} of the optimizer get a gradient: backward does not reach them, and no "
        "parameter moves."
    ): "在 {0}中，优化器的 {1}均未得到梯度：反向未到达它们，没有参数更新。",
    (
        "{} with a gradient {} in no optimizer, so that nothing moves {}: {}."
    ): "{0}有梯度，但{1}不在任何优化器中的参数，因此没有任何代码更新{2}：{3}。",
    (
        "{} with a gradient {} in no optimizer, so that nothing moves {}: {}. In their place the optimizer has as many "
        "that belong to no module and get no gradient."
    ): (
        "{0}有梯度，但{1}不在任何优化器中的参数，因此没有任何代码更新{2}：{3}。"
        "优化器持有的则是同样数量的、不属于任何模块且得不到梯度的参数。"
    ),
    (
        "{} with a gradient and a learning rate {} the same to the last bit after {}, though the update is large "
        "enough to be seen: {}."
    ): "{0}有梯度与学习率，但在 {2}之后{1}逐位相同的数值，尽管更新量足够大、应能看出变化：{3}。",
    # align/diagnosis/run/optimizer_formula.py
    "its formula": "其公式",
    "relative L2 {}": "相对 L2 误差 {}",
    (
        "{}: the optimizer does not do what {} with its settings does, in {}; first {} of {}: {}."
    ): "{0}：优化器的结果与 {1} 按其设置应得的结果不符，涉及{2}；首个为 {4} 的{3}：{5}。",
    (
        "{}: {} {} not end where {} with its settings puts {}; first {}: its update differs by {}. Either the "
        "optimizer computes it otherwise, or the script changes parameters itself, as clamping and averaging do."
    ): (
        "{0}：{1}{2}未到达 {3} 按其设置应将{4}更新到的位置；首个为 {5}：其更新量的{6}。"
        "要么优化器的计算方式不同，要么脚本自行修改了参数，例如截断与求平均。"
    ),
    "{} of {} that could be replayed": "可回放的 {1}中的 {0} 个",
    "the update": "更新量",
    "the state {}": "状态 {}",
    (
        "Compare the optimizer's code and kernel with its settings: a fused or patched implementation, a wrapper that "
        "changes the rate or the decay."
    ): "将优化器的代码与 kernel 同其设置对照：融合或打过补丁的实现、改变学习率或权重衰减的包装。",
    (
        "Nothing is wrong where the script changes parameters between the steps on purpose. Else: {}"
    ): "若脚本有意在各步之间修改参数，则没有问题。否则：{}",
    # align/diagnosis/run/overflow.py
    "{}, the greatest {} number": "{1} 的最大值 {0}",
    "{}: {} is the first tensor with {}": "{}：{} 是首个含 {} 的张量",
    ", beyond {}": "，超出 {}",
    ": {}, beyond {}": "：{}，超出 {}",
    ". {} made it": "。由{}产生",
    "{}{}: its weights reach {}, beyond {}{}.": "{}{}：其权重达到 {}，超出 {}{}。",
    " The largest numbers before it: {}.": "在它之前的最大值：{}。",
    " What entered reaches {}.": "其输入达到 {}。",
    (
        "Look at how it is made: make it in fp32 and scale it (subtract the mean, divide by the deviation) before it "
        "is cast to {}, or leave it in fp32."
    ): "检查它的生成方式：以 fp32 生成，并在转换为 {} 之前缩放（减去均值、除以标准差），或保持为 fp32。",
    (
        "Lower the loss scale, or run the backward of {} in bf16 or fp32, whose range is wider."
    ): "降低损失缩放系数，或以范围更宽的 bf16 或 fp32 运行 {} 的反向。",
    (
        "Run {} in bf16 or fp32, whose range is wider (what was trained in bf16 may need it), or make what enters it "
        "smaller, with a normalization before it."
    ): "以范围更宽的 bf16 或 fp32 运行 {}（以 bf16 训练的模型可能需要如此），或在其之前加入归一化以减小其输入。",
    (
        "Look at why the numbers grow before {}: the learning rate, the scale of the initial weights, a missing "
        "normalization. Capture the steps before, and inspect shows how they grow."
    ): ("查找数值在 {} 之前增长的原因：学习率、初始权重的量级、缺少归一化。采集此前的步，inspect 会给出其增长过程。"),
    "{}{}{}.{}": "{}{}{}。{}",
    # align/diagnosis/run/overflow_saturated.py
    "the device has no Inf and sets what overflows to it": "该设备没有 Inf，溢出的数被置为该值",
    (
        "what overflows has been set to it, by a device without Inf or by the code (clamp, nan_to_num)"
    ): "溢出的数被置为该值，原因是设备没有 Inf，或代码（clamp、nan_to_num）所为",
    (
        "{}: {} reaches exactly {}: {}. The step was not skipped, so the update is made of wrong numbers{}."
    ): "{}：{} 恰好达到 {}：{}。该步未被跳过，因此更新由错误的数值得到{}。",
    (
        "The overflow flag of the device is set in {}: it has no Inf, and has set a number to the greatest of its "
        "format instead. No captured tensor holds that number; it was inside a module, or in a step before. Nothing "
        "skipped the step."
    ): (
        "设备的溢出标志在{}被置位：该设备没有 Inf，而是将某个数置为其格式的最大值。"
        "已采集的张量均不含该数；它位于模块内部，或出现在此前的步。该步未被跳过。"
    ),
    (
        "Capture {} without --modules and --phases, and look for large numbers in fp16. A mask of -Inf sets the flag "
        "too."
    ): "去掉 --modules 与 --phases 采集{}，查找 fp16 中的大数。-Inf 的掩码也会置位该标志。",
    "; it is so in {}": "；{}均如此",
    "Run {} in bf16 or fp32, whose range is wider": "以范围更宽的 bf16 或 fp32 运行 {}",
    (
        "{}. Set INF_NAN_MODE_ENABLE=1 where the device supports it: then an overflow is seen as Inf, and a loss "
        "scaler skips the step."
    ): "{}。设备支持时设置 INF_NAN_MODE_ENABLE=1：溢出将表现为 Inf，损失缩放器会跳过该步。",
    (
        "{}, and take out the clamp that hides the overflow; then inspect again."
    ): "{}，并去掉掩盖溢出的 clamp；然后重新检查。",
    # align/diagnosis/run/recompute_differs.py
    (
        "{}: an activation checkpoint computes {} {} again in the backward, and {}. {} The gradients belong to another "
        "forward than the one that made the loss."
    ): "{}：重计算在反向中再次计算 {} {}，结果{}。{}梯度所对应的前向并非产生 loss 的那一次。",
    # align/diagnosis/run/skipped_step_applied.py
    " So it is in {} captured steps.": "已采集的步中有 {} 步如此。",
    # align/diagnosis/run/step_time_cliff.py
    (
        "From {} on a step takes {} seconds, {} before: {} times as long."
    ): "从{}起单步耗时 {} 秒，此前为 {} 秒：为原来的 {} 倍。",
    (
        "Look at what begins there: another length of the batches, memory that swaps or is compacted, a slower data "
        "source, an operator that has begun to run on the CPU, heat, another program on the machine."
    ): (
        "检查从此处开始的变化：批次长度改变、内存交换或整理、变慢的数据源、开始在 CPU 上执行的算子、过热、"
        "同一机器上的其他程序。"
    ),
    # align/diagnosis/run/update_lost.py
    (
        "The updates of {} of the elements are lost in rounding, in all {} that could be judged: {} is {}, where half "
        "the distance between two numbers is about {}, and its update about {}. {} of {} are concerned."
    ): (
        "在可判定的全部 {1}中，{0} 的元素的更新被舍入吞没：{2} 为 {3}，相邻两数间距的一半约为 {4}，"
        "而其更新量约为 {5}。{7}中有 {6} 个如此。"
    ),
    (
        "Keep the parameters, or a copy of them that the optimizer updates, in fp32 and compute in {} by "
        "torch.autocast; or round stochastically. A larger learning rate than {} only hides it."
    ): (
        "参数（或供优化器更新的参数副本）保持为 fp32，用 torch.autocast 以 {} 计算；或使用随机舍入。"
        "将学习率调到大于 {} 只会掩盖该问题。"
    ),
    # align/diagnosis/run/weight_decay_groups.py
    (
        "{} of {} of one dimension {} decayed ({}) while {} {} not: {}."
    ): "{1}（均为一维）中，{0} 个{2}施加权重衰减（{3}）的参数，而 {4} 个{5}不施加的：{6}。",
    (
        "See whether the filter that makes the parameter groups misses them: it may go by a name or a class that they "
        "do not have, as RMSNorm is no LayerNorm."
    ): "检查划分参数组的规则是否漏掉了它们：规则可能按它们不具备的名称或类划分，例如 RMSNorm 不是 LayerNorm。",
    # align/diagnosis/job/duplicate_samples.py
    (
        "{} train on the same samples in {}: all {} of {} are equal, in the same order, on replicas of one model.{} A "
        "step then learns of the samples of one rank."
    ): (
        "{0}在{1}使用相同的样本训练：在同一模型的各副本上，{3} 的全部 {2}相同，且顺序一致。"
        "{4}因此每一步只从一卡的样本中学习。"
    ),
    (
        "Give each rank its part: `DataLoader(..., sampler=DistributedSampler(dataset))`, with "
        "`sampler.set_epoch(epoch)` in every epoch; of an IterableDataset take every world_size-th sample from the "
        "rank's number on. Data that are drawn need a seed of their own on each rank."
    ): (
        "为各卡划分数据：`DataLoader(..., sampler=DistributedSampler(dataset))`，"
        "并在每个 epoch 调用 `sampler.set_epoch(epoch)`；对 IterableDataset，"
        "从 rank 编号起每隔 world_size 个取一个样本。"
        "随机生成的数据，各卡需使用各自的种子。"
    ),
    " Their samplers read the same part: number {} of ": "它们的采样器读取同一部分：编号 {}，总数为 ",
    " Their DataLoaders have {}, which divides nothing.": "它们的 DataLoader {}，未划分数据。",
    "no sampler": "没有采样器",
    "a {}": "使用 {}",
    # align/diagnosis/job/environment_differs.py
    "the parameters are on": "参数位于",
    "the device is": "设备为",
    "torch is": "torch 为",
    "CANN is": "CANN 为",
    "CUDA is": "CUDA 为",
    "autocast is": "autocast 为",
    "deterministic algorithms are": "确定性算法为",
    "TF32 in matrix products is": "矩阵乘的 TF32 为",
    "The ranks do not run alike: {}.": "各卡的运行方式不同：{}。",
    (
        "Start every rank on the device of its own number (`torch.npu.set_device(local_rank)`, "
        "`torch.cuda.set_device(local_rank)`) and fail where it has none, instead of going on on the CPU; `align "
        "capture --device npu` does."
    ): (
        "使每个 rank 运行在与其编号对应的设备上（`torch.npu.set_device(local_rank)`、"
        "`torch.cuda.set_device(local_rank)`），没有设备时应报错退出，而不是转到 CPU 上继续；"
        "`align capture --device npu` 即如此处理。"
    ),
    (
        "Install the same versions on all hosts, and set precision on every rank alike."
    ): "在所有主机上安装相同的版本，并在各卡上设置相同的精度。",
    "{} on {}": "{}（{}）",
    "rank {}": "rank {}",
    "ranks {}": "rank {}",
    # align/diagnosis/job/gradient_norm.py
    (
        "Step {}, optimizer: the gradients are clipped by a norm of {}, but theirs is {}. The difference is what all "
        "ranks hold: {} ({}) count {} times, once for each rank. {}"
    ): (
        "第 {} 步，优化器：梯度按范数 {} 裁剪，而其实际范数为 {}。差异来自各卡都持有的参数："
        "{}（{}）被计算了 {} 次，每卡一次。{}"
    ),
    (
        "Where the squares of all ranks are added up, count parameters that every rank holds (biases, norms) on one "
        "rank only, and parts of a split weight on each."
    ): "在各卡平方和求和处，各卡都持有的参数（偏置、归一化层）只在一卡上计入，切分的权重则在各卡上分别计入。",
    (
        "Step {}, optimizer: each rank clips by the norm of what it holds ({}), but the norm of all gradients is {}: "
        "of {} ({}) each rank has a part only. Ranks that clip by other norms part in the parameters that all of them "
        "hold."
    ): (
        "第 {} 步，优化器：各卡按自身所持有部分的范数裁剪（{}），而全部梯度的范数为 {}："
        "{}（{}）在每卡上只有一部分。各卡按不同的范数裁剪，会使各卡都持有的参数产生分歧。"
    ),
    (
        "Add the squares of the parts over all ranks (`torch.distributed.all_reduce`) before the root is taken, and "
        "count parameters that every rank holds once."
    ): "在开方之前对各卡的平方和求和（`torch.distributed.all_reduce`），各卡都持有的参数只计一次。",
    "The limit of {} is not reached all the same.": "即便如此也未达到限值 {}。",
    "The gradients are multiplied by {} instead of {}.": "梯度乘以 {}，而应为 {}。",
    # align/diagnosis/job/gradients_not_reduced.py
    "relative L2 {} to {}": "相对 L2 误差 {} 至 {}",
    (
        "Step {}, update: {} begin with the same weights, but the optimizer of each takes gradients of its own: not "
        "one of {} has the same gradient on them ({}; first {}). Nothing reduces the gradients, so each rank trains a "
        "model of its own."
    ): (
        "第 {} 步，更新：{}的初始权重相同，但各卡的优化器得到各自的梯度："
        "{}中没有一个在各卡上梯度相同（{}；首个为 {}）。"
        "梯度没有在卡间同步，因此每卡各自训练一个模型。"
    ),
    (
        "Step {}, update: {} of {} that begin alike on {} get other gradients on each ({}; {}), the others the same: "
        "these are not reduced, unless each rank is meant to have its own of them (experts)."
    ): (
        "第 {0} 步，更新：在{3}上初始值相同的 {2}中，有 {1} 个在各卡上得到不同的梯度（{4}；{5}），其余相同："
        "除非各卡本应各自持有（如专家），否则这些梯度未在卡间同步。"
    ),
    (
        " Ranks that are meant to train apart are inspected one by one: `align inspect {}`."
    ): "若各卡本应独立训练，请逐一检查：`align inspect {}`。",
    (
        "Look for the reduction between backward and optimizer.step: call the DistributedDataParallel wrapper and not "
        "`model.module`, end no_sync() before the last backward of a step, and check which process group an all_reduce "
        "is given: one of a single rank reduces nothing.{}"
    ): (
        "检查 backward 与 optimizer.step 之间的梯度同步：应调用 DistributedDataParallel 包装而不是 `model.module`，"
        "在每步最后一次 backward 之前结束 no_sync()，并核对传给 all_reduce 的进程组：只含一卡的进程组不做任何同步。{}"
    ),
    (
        "Look for parameters that are not in the wrapped model, were made after it was wrapped, or are left out of the "
        "reduction (a group of one rank, a list of parameters)."
    ): "查找不在被包装模型中、在包装之后创建，或未参与同步（只含一卡的进程组、参数列表）的参数。",
    # align/diagnosis/job/missing_samples.py
    " of {} samples": "（{} 个样本）",
    (
        "The DistributedSamplers divide the data{} into {} parts, but the {} of this job read only part{} {}: part{} "
        "{} ({} of the data) {} read by none."
    ): (
        "DistributedSampler 将数据{0}划分为 {1} 份，但该作业的 {2}只读取了第{3} {4} 份：第{5} {6} 份"
        "（占数据的 {7}）{8}未被任何卡读取的。"
    ),
    (
        "Make the sampler with the numbers of this job: `DistributedSampler(dataset)` takes them from the process "
        "group; give num_replicas and rank only as the data-parallel size and the rank within it."
    ): (
        "按该作业的卡数与编号创建采样器：`DistributedSampler(dataset)` 会从进程组获取；"
        "若指定 num_replicas 与 rank，只能是数据并行的大小及其中的编号。"
    ),
    # align/diagnosis/job/ranks_differ.py
    "buffers and frozen weights": "缓冲区与冻结权重",
    (
        "Before step 0 {} hold{} other weights than rank {}: {} of {} {} differ ({}; largest relative L2 {})"
    ): "第 0 步之前，{0}的权重{1}与 rank {2} 不同：{4} 个{5}中有 {3} 个不同（{6}；最大相对 L2 误差 {7}）",
    (
        "{}, while the ranks take the very same gradients of them: the mean over different models."
    ): "{}，而各卡对它们使用完全相同的梯度：即不同模型上的平均。",
    (
        "Give all ranks the weights of rank 0 before the first step: wrap the model in DistributedDataParallel, which "
        "sends them, call `torch.distributed.broadcast(parameter.data, 0)` for each parameter, or seed all ranks alike "
        "while the model is made. Load a checkpoint on every rank."
    ): (
        "在第一步之前使各卡的权重与 rank 0 相同：用 DistributedDataParallel 包装模型（会广播权重），"
        "对每个参数调用 `torch.distributed.broadcast(parameter.data, 0)`，或在创建模型时各卡使用相同的种子。"
        "checkpoint 应在每卡上加载。"
    ),
    "{}. All that they train is equal.": "{}。所训练的参数全部相同。",
    (
        "Broadcast buffers and frozen weights from rank 0 too, unless each rank is meant to have its own."
    ): "缓冲区与冻结权重也应从 rank 0 广播，除非各卡本应各自持有。",
    (
        "After step {} {} hold{} other parameters than rank {}, although parameters and gradients were equal before: "
        "{} of {} differ ({}; largest relative L2 {})."
    ): (
        "第 {0} 步之后，{1}的参数{2}与 rank {3} 不同，尽管此前参数与梯度相同："
        "{5} 个中有 {4} 个不同（{6}；最大相对 L2 误差 {7}）。"
    ),
    (
        "Compare the states of the optimizers: load them on every rank, and change parameters on all ranks or on none. "
        "`align show RUN.rank0000.h5` tells the settings and the states of each."
    ): (
        "比较各卡的优化器状态：状态应在每卡上加载，参数要么在所有卡上修改，要么都不修改。"
        "`align show RUN.rank0000.h5` 可显示各卡的设置与状态。"
    ),
    "{} is {}": "{} 为 {}",
    (
        "{} The optimizers are set differently: {} on the ranks in their order."
    ): "{}各卡优化器的设置不同：{}（按 rank 顺序）。",
    (
        "Give the optimizer of every rank the same settings: learning rate, weight decay and schedule must not depend "
        "on the rank or on what it reads."
    ): "各卡的优化器使用相同的设置：学习率、权重衰减与调度不得取决于 rank 或其读取的数据。",
    # align/diagnosis/job/ranks_telling.py
    "both ranks": "两卡",
    "all {} ranks": "全部 {} 卡",
    # align/diagnosis/job/rng_duplicated.py
    "the device": "设备",
    ("the generator of {} has the same state on both as {} begins"): "{1}开始时，{0} 的随机数生成器在两卡上状态相同",
    "so many equal counts are no accident": "如此多的计数相同并非偶然",
    (
        "{}: {} drops the same elements on {}, although they train on different samples: {} of {} on each, and as many "
        "on both in all {} of {}; {}. The mean over the ranks then has the noise of one of them."
    ): (
        "{0}：{1} 在{2}上丢弃相同的元素，尽管各卡的训练样本不同：每卡均为 {4} 个中的 {3} 个，"
        "且在{6}的全部 {5}中两卡数目都相同；{7}。因此各卡的平均值只有一卡的噪声水平。"
    ),
    (
        "Seed each data-parallel rank with a number of its own after the weights are made: "
        "`torch.manual_seed(seed + rank)`. Only ranks that share one sample (tensor parallel) are seeded alike."
    ): (
        "在权重创建之后，为每个数据并行的 rank 设置各自的种子：`torch.manual_seed(seed + rank)`。"
        "仅共用同一样本的各卡（张量并行）使用相同的种子。"
    ),
    # align/diagnosis/job/rng_mismatch.py
    (
        "{}: {} is given the same tensor on {}, which share one batch and hold parts of the weights, but drops other "
        "elements on each{}. What all of them should hold differs from there."
    ): (
        "{}：{} 在{}上得到相同的张量（各卡共用一个批次、各持有权重的一部分），但在各卡上丢弃的元素不同{}。"
        "各卡本应相同的内容从此处开始不同。"
    ),
    (
        "Draw nothing on one rank alone between the seed and the first step: give the DataLoader that only one rank "
        "reads a `generator=` of its own (`iter(loader)` draws from torch's). Seed tensor parallel ranks alike for "
        "what all of them hold. `align show RUN.rank0000.h5` tells the states of the generators."
    ): (
        "在设置种子与第一步之间，不要只在一卡上消耗随机数：为仅由一卡读取的 DataLoader 设置单独的 `generator=`"
        "（`iter(loader)` 会从 torch 的生成器取数）。对于各卡都持有的内容，张量并行的各卡使用相同的种子。"
        "`align show RUN.rank0000.h5` 可显示各生成器的状态。"
    ),
    "they were seeded alike, but ": "种子相同，但",
    (
        ": {}the generator of {} has another state on each as {} begins"
    ): "：{0}{2}开始时，{1} 的随机数生成器在各卡上状态不同",
    # align/diagnosis/inspecting.py
    "No step was captured, since the capture holds {}": "未采集任何步，因为采集文件{}",
    "No step was captured ({})": "未采集任何步（{}）",
    "nothing wrong": "没有问题",
    (
        "{}. The timeline alone tells {}, and not whether the run is healthy; capture it again with {}."
    ): "{}。仅凭时间线只能得知：{}，无法得知该运行是否正常；请以 {} 重新采集。",
    (
        "Whether this run is healthy cannot be told ({}): no question found all well{}."
    ): "无法判断该运行是否正常（{}）：没有任何一个检查项的结果为正常{}。",
    (
        "Nothing can be told of this run ({}): no question has what it needs."
    ): "无法对该运行作出任何判断（{}）：各检查项均缺少所需的数据。",
    "Nothing is wrong in what was captured ({}){}.": "所采集的内容没有问题（{}）{}。",
    # align/inspection/ending.py
    "{} ({}).": "{}（{}）。",
    "Rank {}: {}": "rank {}：{}",
    "The run did not end by itself: an exception ended it, {}": "该运行并非正常结束：因异常退出，{}",
    "The script ended with exit code {}": "脚本以退出码 {} 结束",
    "The script ended with '{}'": "脚本以 '{}' 结束",
    "The run did not end by itself: it was killed or is still running": "该运行并非正常结束：被终止，或仍在运行",
    "The run did not end by itself: it was killed": "该运行并非正常结束：被终止",
    "The run is still running": "该运行仍在进行",
    "the last captured step is {}": "最后采集的是第 {} 步",
    "no step was captured": "未采集任何步",
    "the last step of the timeline is {}": "时间线止于第 {} 步",
    "1 more rank did not end by itself.": "另有 1 卡并非正常结束。",
    "{} more ranks did not end by themselves.": "另有 {} 卡并非正常结束。",
    # align/inspection/headroom_table.py
    "Headroom": "数值余量",
    (
        "How near the outputs of modules come to the greatest number of their format, over the captured steps; the "
        "factor per step and the steps that are left are told where an output grew in every step."
    ): ("在已采集的步中，各模块的输出与其格式最大值的接近程度；对于每一步都增长的输出，给出每步的倍数与剩余步数。"),
    "per step": "每步倍数",
    "steps left": "剩余步数",
    # align/inspection/lacking.py
    (
        "no step was captured; capture steps 0 to 2 with --steps 0:3."
    ): "未采集任何步；请用 --steps 0:3 采集第 0 至 2 步。",
    "; capture others, such as --steps {}:{}": "；请采集其他步，例如 --steps {}:{}",
    "all captured steps were skipped ({})": "已采集的步全部被跳过（{}）",
    "every step was skipped": "每一步都被跳过",
    "no captured step is finite ({}){}.": "已采集的步均含非有限值（{}）{}。",
    "the capture has no phase {}; capture with --phases all.": "采集文件中没有阶段 {}；请用 --phases all 采集。",
    "in {} nothing was seen of the phase {}.": "在{}未见到阶段 {} 的任何内容。",
    # align/inspection/learning_questions.py
    "step time": "单步耗时",
    "Whether checkpoints repeat their forward cannot be told: {}": "无法判断重计算是否重现其前向：{}",
    (
        "Nothing was computed again: no activation checkpointing."
    ): "没有任何内容被再次计算：未使用重计算（activation checkpointing）。",
    ("{} {} is not repeated as it was computed first, in {}."): "{0} {1} 在{2}的重计算结果与首次计算不同。",
    "equal to the bit": "逐位相同",
    "{} to the bit, the others within rounding": "{} 个逐位相同，其余在舍入之内",
    ("All {} that checkpoints computed again are as they were first: {}."): "重计算的全部 {}均与首次计算相同：{}。",
    (
        "What {} makes of the parameters and states does not follow from the settings."
    ): "{}对参数与状态的更新结果不符合其设置。",
    (
        "{} follows its formula and its settings in {}, in {} that could be replayed."
    ): "{} 在{}符合其公式与设置，涉及可回放的 {}。",
    "Whether the optimizer follows its formula cannot be told: {}": "无法判断优化器是否符合其公式：{}",
    ("statistics do not hold it; capture with --detail sketch."): "统计量中没有所需的信息；请用 --detail sketch 采集。",
    "the formula of {} is not known, only those of {}.": "{} 的公式未知，已知的只有 {}。",
    "in {} all gradients are 0.": "{}所有梯度均为 0。",
    (
        "too little is known of the parameters before the steps and of the states; capture steps in a row from step 0 "
        "with --steps 0:3."
    ): "对各步之前的参数与状态所知太少；请用 --steps 0:3 从第 0 步起连续采集。",
    "the learning rate is 0": "学习率为 0",
    "the learning rate is 0 from {} on": "学习率从{}起为 0",
    "all steps were skipped": "所有步均被跳过",
    "all gradients are 0": "所有梯度均为 0",
    "the optimizer has none of those that get a gradient": "优化器不持有任何得到梯度的参数",
    "the optimizer takes none of the gradients that backward makes": "反向产生的梯度，优化器一个也未得到",
    "backward reaches none of those that the optimizer has": "反向未到达优化器所持有的任何参数",
    "{} with a gradient are in no optimizer": "有梯度的 {}不在任何优化器中",
    "the optimizer has others in the place of {}": "优化器持有的是其他参数，而不是这 {}",
    "{} do not move though they should": "{}应更新而未更新",
    "{} updated: {}.": "{}被更新：{}。",
    ("The updates of {} of the elements are lost in rounding to {}."): "{} 的元素的更新在舍入到 {} 时丢失。",
    "Whether the parameters move cannot be told: {}": "无法判断参数是否更新：{}",
    "a gradient": "梯度",
    "a gradient other than 0": "非 0 梯度",
    "{} of {} with {} moved.{}": "有{2}的 {1}中，{0} 个已更新。{3}",
    (
        "{} Whether the optimizer was to move them in these steps cannot be told."
    ): "{}无法判断优化器在这些步中是否应更新它们。",
    "{} Whether that is meant cannot be told.": "{}无法判断这是否有意为之。",
    " {} of the optimizer got gradients that are all 0.": "优化器的 {}得到的梯度全部为 0。",
    "{} {} of the optimizer got no gradient.": "{}优化器的 {}没有得到梯度。",
    "No parameter is": "没有参数",
    "Not all parameters are": "并非所有参数都",
    (
        "no parameter is known before and after a step that updated it; capture steps in a row from step 0 with "
        "--steps 0:3."
    ): "没有任何参数同时已知更新前后的数值；请用 --steps 0:3 从第 0 步起连续采集。",
    (
        "Whether the loss falls cannot be told: no step has a known, finite loss."
    ): "无法判断 loss 是否下降：没有任何一步的 loss 已知且有限。",
    "{} first, {} last, {}": "首步 {}，末步 {}，共 {}",
    "The loss {} ({}).": "loss {}（{}）。",
    "The loss falls ({}).": "loss 下降（{}）。",
    "Whether the loss falls cannot be told of so few steps ({}).": "步数太少，无法判断 loss 是否下降（{}）。",
    (
        "The loss does not fall by more than its noise ({}). Whether that is wrong cannot be told: training that goes "
        "on from a finished model looks the same, and so do targets that belong to other inputs."
    ): (
        "loss 的下降未超过其抖动（{}）。无法判断这是否有问题：从已训练好的模型继续训练会是如此，"
        "标签与输入不对应也会是如此。"
    ),
    "is the same in every step, to the last bit": "在每一步都逐位相同",
    "stays where guessing has it": "停留在随机猜测的水平",
    "rises and stays high": "上升后保持在高位",
    "jumps": "跳变",
    "{} in {}": "{1}的 {0}",
    "A step takes {} seconds from {} on, {} before.": "从{1}起单步耗时 {0} 秒，此前为 {2} 秒。",
    (
        "Whether steps grow slower cannot be told of a run this short: it takes {} steps beside those that are "
        "captured, this one has {}."
    ): "运行太短，无法判断各步是否变慢：除已采集的步外需要 {} 步，该运行只有 {} 步。",
    "A step takes {} seconds, from the first to the last.": "从首步到末步，单步耗时均为 {} 秒。",
    # align/inspection/nonfinite_question.py
    "finite numbers": "数值有限性",
    "The loss is not finite in {}, which was not captured.": "{}的 loss 为非有限值，而该步未采集。",
    "{} starts in {}.": "{} 产生于{}。",
    "Every {} of {} is finite": "{1}的每个{0}均为有限值",
    "What the optimizer took is finite in {}": "{}优化器得到的梯度均为有限值",
    "The loss is finite in all {} in which it was seen.": "在所见的全部 {}中，loss 均为有限值。",
    (
        "Whether all numbers are finite cannot be told: neither losses nor gradients nor parameters were captured; "
        "capture without --phases."
    ): "无法判断所有数值是否有限：loss、梯度与参数均未采集；请去掉 --phases 采集。",
    "every output in a short format is not finite in some step.": "所有短格式的输出都在某一步出现非有限值。",
    "How near numbers come to their limit cannot be told: {}": "无法判断数值与上限的接近程度：{}",
    "No module computes in a format of a short range.": "没有模块以范围较窄的格式计算。",
    "{} {} reaches {}, {} of the limit of {}.": "{0} {1} 达到 {2}，为 {4} 上限的 {3}。",
    "far below": "远高于它",
    "{} below": "为其 {}",
    "The largest magnitude is {} in {}, {} the limit of {}.": "最大幅值为 {0}，位于 {1}，{3} 的上限{2}。",
    "the initial weights: {} {}": "初始权重：{} {}",
    "gradient of the optimizer": "优化器得到的梯度",
    "; {} in {} {} ({}) was kept from it": "；{1} {2} 中的 {0}（{3}）未传到优化器",
    (
        "; in {} scaled gradients overflowed, first in {} {}, and the loss scaler skipped the step{}"
    ): "；{}缩放后的梯度溢出，首个为 {} {}，损失缩放器跳过了该步{}",
    ", as it does to find its scale": "，这是它寻找缩放系数的正常过程",
    "; {} with -Inf, Inf or NaN {} no harm, as masks do none": "；{}含 -Inf、Inf 或 NaN，{}无害，与掩码相同",
    "{0}, {1}: {2} {3}": "{0}{1}：{2} {3}",
    # align/inspection/ranks_merging.py
    " It cannot be told of {}.": "对于{}则无法判断。",
    "{}: {} The other ranks alike.": "{}：{}其余各卡相同。",
    # align/inspection/ranks_questions.py
    "masks of ranks": "各卡的掩码",
    "norm of ranks": "各卡的范数",
    "samples of ranks": "各卡的样本",
    "weights of ranks": "各卡的权重",
    "it does": "其",
    "they do": "它们",
    "All {} ranks were read.": "全部 {} 卡均已读取。",
    "before step 0": "第 0 步之前",
    "after step {}": "第 {} 步之后",
    "{} differ {}.": "{1}，{0}不同。",
    (
        "Whether ranks begin alike cannot be told: no initial weights were captured; capture with --phases all."
    ): "无法判断各卡的初始状态是否相同：未采集初始权重；请用 --phases all 采集。",
    "All {}": "全部 {}",
    "Both": "两",
    "{} ranks begin with the same values of {}.": "{0} 卡的 {1}初始值相同。",
    (
        "The ranks are no replicas of one model: each holds weights of its own, as parts of it do."
    ): "各卡并非同一模型的副本：每卡持有各自的权重，如同模型的各部分。",
    "No parameter begins alike on several ranks.": "没有任何参数在多卡上初始值相同。",
    (
        "Whether gradients are reduced cannot be told: no step was captured in which ranks with the same weights take "
        "gradients of other batches{}."
    ): "无法判断梯度是否在卡间同步：未采集到权重相同的各卡对不同批次取得梯度的步{}。",
    (
        "The optimizers of the ranks take other gradients of {} of {} in step {}."
    ): "第 {2} 步，{1}中有 {0} 个在各卡的优化器中梯度不同。",
    (
        "The optimizers of {} ranks take the same gradients of {}, of other batches."
    ): "批次不同，而 {} 卡的优化器得到的 {}的梯度相同。",
    (
        " (the captures have no phase {}; capture with --phases all)"
    ): "（采集文件中没有阶段 {}；请用 --phases all 采集）",
    "{} drops the same elements of different samples.": "{} 对不同的样本丢弃相同的元素。",
    ("{} drops other elements of one tensor that ranks share."): "{} 对各卡共有的同一张量丢弃不同的元素。",
    "No dropout was seen that drops what it should not.": "未见到丢弃不应丢弃内容的 dropout。",
    "Replicas train on the same samples in {}.": "各副本在{}使用相同的样本训练。",
    "No rank reads part {} of {} of the data.": "数据共 {1} 份，没有任何卡读取第 {0} 份。",
    "The ranks read all {} parts of the data.": "各卡读取了数据的全部 {} 份。",
    (
        "No DistributedSampler divides the data, and no replicas share their samples."
    ): "没有 DistributedSampler 划分数据，各副本也没有共用样本。",
    ("No clipping was seen whose norm can be checked over all ranks."): "未见到可在各卡之间核对其范数的梯度裁剪。",
    ("The norm of clipping is {}, that of the gradients {}."): "裁剪所用的范数为 {}，梯度的范数为 {}。",
    (
        "The norm of clipping is {}, that of the gradients that were seen {}; of which of them it is the norm is not "
        "known."
    ): "裁剪所用的范数为 {}，所见梯度的范数为 {}；它是其中哪些梯度的范数未知。",
    ("Gradients are clipped by the norm that they have over all ranks ({})."): "梯度按其在全部卡上的范数裁剪（{}）。",
    # align/inspection/scale_problems.py
    (
        "train in bf16, whose range is that of fp32 (torch.autocast(..., dtype=torch.bfloat16), no GradScaler), or run "
        "the module that overflows in fp32"
    ): (
        "以范围与 fp32 相同的 bf16 训练（torch.autocast(..., dtype=torch.bfloat16)，不用 GradScaler），"
        "或以 fp32 运行溢出的模块"
    ),
    (
        "{} and the loss itself is not finite in each of them, before any scale: no loss scale helps where the forward "
        "overflows. {}"
    ): "{}且其中每一步的 loss 本身（缩放之前）即为非有限值：前向溢出时，任何损失缩放系数都无济于事。{}",
    "Find the first module that overflows; {}.": "找出首个溢出的模块；{}。",
    (
        "The loss scale falls from {} to {} over {}, by {} without a growth: gradients overflow however small the "
        "scale is.{}"
    ): "损失缩放系数在{2}由 {0} 降至 {1}，经 {3}而没有增长：无论系数多小，梯度都会溢出。{4}",
    " It has grown again since.": "此后又有增长。",
    "Find the first module whose gradient overflows; {}.": "找出首个梯度溢出的模块；{}。",
    (
        "See what overflows in the first of them; a single bad batch and a learning rate that is too high both look "
        "like this."
    ): "查看其中首步是什么溢出；单个异常批次与学习率过高都会呈现这种情形。",
    (
        "{} all at the same loss scale of {}: it does not come down, so that nothing is updated."
    ): "{}损失缩放系数始终为 {}：系数不下降，因此没有任何更新。",
    (
        "The growth count of the scaler is 0 as each of {} begins, though the step before raised it: a new scaler is "
        "made in every step, and the loss scale of {} never grows."
    ): (
        "{}的每一步开始时，缩放器的增长计数均为 0，尽管前一步已将其加 1：每一步都新建了缩放器，"
        "损失缩放系数 {} 从不增长。"
    ),
    (
        "Make the GradScaler once, before the loop; after a restart, load its state (scaler.load_state_dict)."
    ): "GradScaler 只应在循环之前创建一次；重启之后加载其状态（scaler.load_state_dict）。",
    (
        "The loss scale stays at {} over {}, though none of them was skipped and it grows every {} steps by its "
        "settings."
    ): "损失缩放系数在{1}保持为 {0}，尽管其中没有步被跳过，且按其设置每 {2} 步增长一次。",
    (
        "See that one scaler is kept for the whole run, that its state is loaded after a restart, and that "
        "scaler.update() is called once a step."
    ): "确认整个运行使用同一个缩放器、重启之后加载其状态，且每步调用一次 scaler.update()。",
    (
        "Something other than an overflow moved the scale: look for scaler.update(...) with a value, for "
        "load_state_dict, and for code that reduces or broadcasts scales between ranks."
    ): ("系数因溢出以外的原因改变：查找带数值的 scaler.update(...)、load_state_dict，以及在卡间归约或广播系数的代码。"),
    (
        "{} of {} steps after step {} are skipped ({}): the loss scale goes up and down between {} and {}. More than "
        "one skip in a growth interval is not the search for a scale."
    ): (
        "第 {2} 步之后的 {1} 步中跳过了 {0} 步（{3}）：损失缩放系数在 {4} 与 {5} 之间反复波动。"
        "一个增长间隔内跳过超过一次，已不是在寻找合适的系数。"
    ),
    (
        "See what overflows in a skipped step; raise growth_interval (2000 is usual) if the scale grows too often."
    ): "查看被跳过的步中是什么溢出；若系数增长过于频繁，则增大 growth_interval（通常为 2000）。",
    "Step {} is skipped,": "第 {} 步被跳过，",
    "{} are all skipped ({} in a row),": "{}全部被跳过（连续 {} 步），",
    " long after a scaler has found its scale": "此时缩放器早应找到合适的系数",
    " more than it takes to find a scale": "超过寻找系数所需的步数",
    "The loss scale falls from {} to {}.": "损失缩放系数由 {} 降至 {}。",
    (
        "A static loss scale cannot come down: take less than {}, or a dynamic scaler."
    ): "静态的损失缩放系数不会下降：请取小于 {} 的值，或使用动态缩放器。",
    (
        "The scale is as low as it may be, and still the gradients overflow: {}."
    ): "系数已降到允许的最小值，梯度仍然溢出：{}。",
    (
        "Make the scaler once, before the loop, call scaler.update() after every step, and leave its backoff_factor "
        "below 1 (0.5)."
    ): "缩放器只应在循环之前创建一次，每步之后调用 scaler.update()，并使 backoff_factor 小于 1（0.5）。",
    "between step {} and the one before": "在第 {} 步与前一步之间",
    "in step {}": "在第 {} 步",
    "which was not skipped": "该步未被跳过",
    "which was skipped": "该步被跳过",
    "without a skip": "其间没有跳过",
    ": that is {} {}, and a scaler makes one": "：相当于 {} {}，而缩放器只做一次",
    " (scaler.update was called {} times)": "（scaler.update 被调用 {} 次）",
    " {} like it.": "另有 {}与此类似。",
    " Nothing of a gradient in fp16 is left at such a scale.": "在这样的系数下，fp16 梯度将全部丢失。",
    " That is no scale.": "这不是有效的系数。",
    "The loss scale goes from {} to {} {}, {}{}{}.{}{}": "损失缩放系数{2}由 {0} 变为 {1}，{3}{4}{5}。{6}{7}",
    # align/inspection/scale_questions.py
    "fp16 range": "fp16 范围",
    "loss scale": "损失缩放系数",
    "skipped steps": "跳过的步",
    "No loss scale is in use.": "未使用损失缩放。",
    (
        "{} The last steps are skipped too: whether a scale was found in the end cannot be told before the run has "
        "made more steps."
    ): "{}最后几步也被跳过：需运行更多的步，才能判断最终是否找到了合适的系数。",
    "Whether gradients are too small for fp16 cannot be told: {}": "无法判断梯度对 fp16 是否过小：{}",
    "No gradient is computed in fp16.": "没有以 fp16 计算的梯度。",
    (
        "no captured gradient is in fp16; capture whole steps, with --phases all and without --modules."
    ): "已采集的梯度均非 fp16；请用 --phases all 且不加 --modules 采集完整的步。",
    (
        "no captured step has fp16 gradients that are all finite; capture a step that is not skipped."
    ): "已采集的步中，没有一步的 fp16 梯度全部为有限值；请采集未被跳过的步。",
    (
        "the fp16 gradients of the captured steps hold too few numbers that are not 0."
    ): "已采集各步的 fp16 梯度中，非 0 的数太少。",
    "There is no loss scale that clipping could meet.": "未使用损失缩放，裁剪不会受其影响。",
    (
        "Whether gradients are clipped before they are unscaled cannot be told: {}"
    ): "无法判断梯度是否在还原缩放之前被裁剪：{}",
    "Gradients are not clipped with torch's functions.": "未使用 torch 的函数裁剪梯度。",
    ("In {} gradients are clipped while they carry the loss scale."): "{}的梯度在仍带有损失缩放系数时被裁剪。",
    "Clipping in {} leaves the loss scale out.": "{}的裁剪不含损失缩放系数。",
    "No loss scale is in use, so no step is skipped for one.": "未使用损失缩放，因此没有步因此被跳过。",
    ("The parameters move in {}, which overflowed and had to be skipped."): "{}发生溢出，本应跳过，但参数被更新。",
    "No step was skipped.": "没有步被跳过。",
    ("{} {} skipped and not captured: what overflowed cannot be told. {}"): "{}{}跳过且未采集：无法判断是什么溢出。{}",
    " The parameters stay as they were in {}.": "{}的参数保持不变。",
    "{} skipped: {}.{}": "跳过 {}：{}。{}",
    (
        "Capture them: `align capture --steps {} ...` in a run of the same seed, or `align capture-now RUN.h5` while "
        "it is happening."
    ): (
        "采集这些步：在相同种子的运行中执行 `align capture --steps {} ...`，"
        "或在其发生时执行 `align capture-now RUN.h5`。"
    ),
    "Step {}, {}: from {} {} on all gradients are 0.": "第 {} 步，{}：从 {} {} 起所有梯度均为 0。",
    (
        "Step {}, {}: what fp16 holds worst is {} {}, rounded by {} ({} zeros, {} of the rest below 6.1e-5)."
    ): "第 {} 步，{}：fp16 表示得最差的是 {} {}，舍入误差 {}（零值 {}，其余中有 {} 小于 6.1e-5）。",
    " Scales up to {} leave room above.": "系数不超过 {} 时上方仍有余量。",
    " A loss scale of {} would hold these gradients.": "损失缩放系数取 {} 可容纳这些梯度。",
    " Loss scales from {} to {} would hold these gradients.": "损失缩放系数在 {} 至 {} 之间可容纳这些梯度。",
    "Gradients in fp16": "fp16 梯度",
    (
        "Step {}: how far rounding to the smallest fp16 numbers changes each gradient, the worst first."
    ): "第 {} 步：舍入到最小的 fp16 数对各梯度的影响，最严重的在前。",
    "below 6.1e-5": "小于 6.1e-5",
    "rounded by": "舍入误差",
    "scale needed": "所需系数",
    "Changes of the loss scale": "损失缩放系数的变化",
    (
        "Every change, with what overflowed first where the step was captured."
    ): "每一次变化；已采集的步给出首个溢出的张量。",
    "overflows first": "首个溢出",
    " (made by the script)": "（由脚本设置）",
    (
        "{} at step {}, {} after step {}{}; {} of {} skipped{}, {}."
    ): "第 {1} 步为 {0}，第 {3} 步之后为 {2}{4}；{6}中跳过 {5} 步{7}，{8}。",
    " {} below.": "见下方 {}。",
    (
        " This device makes 0 of numbers below 6.1e-5 (it has no subnormals)."
    ): "该设备将小于 6.1e-5 的数置 0（没有次正规数）。",
    "what overflowed in {} was not captured": "{}溢出的内容未采集",
    ("in {} {} {} ({}) is the first that is not finite"): "{}首个出现非有限值的是 {} {}（{}）",
    "less than 0.01 %": "小于 0.01%",
    "no loss scale": "无损失缩放",
    "loss scale {}": "损失缩放系数 {}",
    # align/inspection/start_questions.py
    "load_state_dict was not called before the first step.": "第一步之前未调用 load_state_dict。",
    (
        "{} parameters and buffers were not filled: the keys begin with '{}' on one side only."
    ): "{} 个参数与缓冲区未被填充：仅一侧的键名以 '{}' 开头。",
    (
        "{} were not filled: the checkpoint says '{}' where the model says '{}'."
    ): "{}未被填充：checkpoint 中为 '{}'，而模型中为 '{}'。",
    (
        "Whether what was left out is meant cannot be told: the model knows {} of the {} that it was given and misses "
        "{} of its own{}."
    ): "无法判断遗漏是否有意：模型在收到的 {1}中识别出 {0} 个，自身缺少 {2} 个{3}。",
    ("All {} of the checkpoint were taken, and none was missing."): "checkpoint 的全部 {}均被采用，没有缺失。",
    " (such as {})": "（例如 {}）",
    "No DataLoader that shuffles was captured.": "未采集到启用打乱的 DataLoader。",
    (
        "Each of {} workers reads the whole dataset: batches come once more."
    ): "{} 个 worker 各自读取整个数据集：批次重复出现。",
    "After {} the data come again in the same order.": "{}之后，数据以相同的顺序再次出现。",
    " (an epoch has {})": "（一个 epoch 有 {} 个）",
    (
        "Whether the order changes from epoch to epoch cannot be told of {}{}; capture two more than an epoch with "
        "--phases input --steps 0:{}."
    ): ("仅凭 {}{}无法判断各 epoch 的顺序是否变化；请用 --phases input --steps 0:{} 采集比一个 epoch 多两个的批次。"),
    (
        "The order of the data changes: {} of more than an epoch do not repeat."
    ): "数据顺序有变化：超过一个 epoch 的 {}没有重复。",
    # questions, titles of columns, and words that are put into these templates
    "recompute": "重计算",
    "optimizer": "优化器",
    "parameters": "参数",
    "clipping": "梯度裁剪",
    "headroom": "数值余量",
    "checkpoint": "checkpoint",
    "data": "数据",
    "ranks": "各卡",
    "reduction": "梯度同步",
    "module": "模块",
    "tensor": "张量",
    "format": "格式",
    "largest": "最大值",
    "limit": "上限",
    "share": "占比",
    "zeros": "零值",
    "after": "之后",
    "before": "之前",
    "skipped": "已跳过",
    "it": "该处",
    "them": "它们",
    "halvings": "次减半",
    "doublings": "次加倍",
    # counted things, with their measure words
    "{} parameter or buffer": "{} 个参数或缓冲区",
    "{} parameters and buffers": "{} 个参数与缓冲区",
    "{} captured batch": "{} 个已采集的批次",
    "{} captured batches": "{} 个已采集的批次",
    "{} other output": "{} 个其他输出",
    "{} other outputs": "{} 个其他输出",
    "{} more time": "{} 次",
    "{} more times": "{} 次",
    "{} other jump": "{} 处跳变",
    "{} other jumps": "{} 处跳变",
    "{} halving": "{} 次减半",
    "{} halvings": "{} 次减半",
    "{} growth": "{} 次增长",
    "{} growths": "{} 次增长",
    "{} warning": "{} 条警告",
    "{} warnings": "{} 条警告",
    "{} dropout": "{} 个 dropout",
    "{} dropouts": "{} 个 dropout",
    "{} rank": "{} 卡",
    "{} ranks": "{} 卡",
    "{} row": "{} 行",
    "{} rows": "{} 行",
}
