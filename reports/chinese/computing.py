"""What is said of forward, backward and loss scales of two runs, and of floors and replays, in Chinese."""

from __future__ import annotations

from collections.abc import Mapping

SENTENCES: Mapping[str, str] = {
    # align/diagnosis/pair/forward/added_tensor.py
    "its own {}": "自身的 {}",
    "the gradient of a residual": "残差的梯度",
    ": {} is counted twice": "：{}被重复计入",
    " It is the reference's with {} added once more{}.": "其值等于标杆再多加一次 {}{}。",
    " It is the reference's without {}, which is not added: {} is missing.": "其值等于标杆减去 {}：缺少{}。",
    " The difference is {} times {}.": "差异为 {1} 的 {0} 倍。",
    " The difference is {} times {} itself, as a weight decay that is added to the gradient makes it.": (
        "差异为 {1} 自身的 {0} 倍，与把权重衰减加到梯度上的结果相符。"
    ),
    "micro-step {}": "micro {}",
    "{} times ": "{} 倍的",
    "after backward": "反向之后",
    "as the optimizer took it": "优化器取用时",
    " It was not cleared before the next backward.": "该梯度在下一次反向之前未清零。",
    " The difference is {}the gradient of {} ({}).{}": "差异为{0}{1}的梯度（{2}）。{3}",
    (
        "See which operators of {} add {} themselves (kernels that are fused with a residual do), and let one "
        "place alone add it. {}"
    ): "检查 {} 的哪些算子自身会加上 {}（与残差融合的 kernel 即如此），并只在一处相加。{}",
    "See whether the backward of {} adds the gradient of a residual that the code around it adds too. {}": (
        "检查 {} 的反向是否加上了其外围代码也会加上的残差梯度。{}"
    ),
    "Call optimizer.zero_grad before each backward that begins a step, in both runs.": (
        "在两次运行中，每步开始的反向之前均调用 optimizer.zero_grad。"
    ),
    # align/diagnosis/pair/forward/enlarged_rounding.py
    " {} reaches {}, where neighbouring numbers are {} apart.": "{} 达到 {}，该处相邻数值的间隔为 {}。",
    (
        "{}: {} makes a relative L2 difference of {} of one of at most {} in its input. It enlarges rounding: "
        "what it is given is ill-conditioned, and no operator is wrong.{} What is made of it, NaN too, may "
        "differ between any two devices."
    ): (
        "{0}：{1} 的输入相对 L2 差异至多为 {3}，输出则为 {2}。该处放大了舍入误差：其输入是病态的，"
        "算子本身没有错误。{4}由此得到的结果（包括 NaN）在任意两种设备之间都可能不同。"
    ),
    (
        "Make what enters {} smaller: reduce an angle to one turn before it is scaled, take the product in fp64, "
        "or subtract what is common before it is rounded."
    ): "减小 {} 的输入：在缩放之前把角度归约到一周以内，以 fp64 计算该乘积，或在舍入之前减去公共部分。",
    # align/diagnosis/pair/forward/independent_origin.py
    "Mend the first difference, capture again and compare: what is told of {} is less sure.": (
        "先修复首个差异，再重新采集比对：关于 {}的结论可靠性较低。"
    ),
    " It is made by {}.": "由{}产生。",
    "Another difference starts in {}, at {}: {}, beyond what it inherits from the first.{}": (
        "{}：{} 处另有差异产生：{}，超出其从首个差异继承的部分。{}"
    ),
    # align/diagnosis/pair/forward/invariants.py
    " It keeps the length of {} in the reference; in the candidate it makes it {} times as long.": (
        "在标杆侧它保持 {} 的长度；在待比对侧其长度变为 {} 倍。"
    ),
    " Its rows sum to 1 in the reference, and to {} on average in the candidate.": (
        "其各行之和在标杆侧为 1，在待比对侧平均为 {}。"
    ),
    " {} of its {} elements are zero in the reference and {} in the candidate: other elements are masked.": (
        "其 {1} 个元素中，标杆侧有 {0} 个为 0，待比对侧有 {2} 个：被掩码的元素不同。"
    ),
    # align/diagnosis/pair/forward/isolated_corruption.py
    "`ASCEND_LAUNCH_BLOCKING=1` and `PYTORCH_NO_NPU_MEMORY_CACHING=1`": (
        "`ASCEND_LAUNCH_BLOCKING=1` 与 `PYTORCH_NO_NPU_MEMORY_CACHING=1`"
    ),
    "`CUDA_LAUNCH_BLOCKING=1` and `PYTORCH_NO_CUDA_MEMORY_CACHING=1`": (
        "`CUDA_LAUNCH_BLOCKING=1` 与 `PYTORCH_NO_CUDA_MEMORY_CACHING=1`"
    ),
    "blocking launches and without caching memory": "同步下发并关闭显存缓存",
    "{}: {} is the first tensor that differs ({}).{} {}": "{}：{} 是首个出现差异的张量（{}）。{}{}",
    "That is what memory looks like that was written or used again by something else": (
        "被其他代码写入或复用的内存即呈现此特征"
    ),
    "That is what a bit that flipped looks like, or memory that something else wrote": (
        "比特翻转或被其他代码写入的内存即呈现此特征"
    ),
    "In the reference it is the very tensor that {} gave. {}.": "在标杆侧，它正是 {} 给出的张量。{}。",
    "an earlier module": "前面的某个模块",
    " (a gradient buffer before its stream was done, for example)": "（例如在其流完成之前使用的梯度缓冲区）",
    "What it is made from agrees. {}{}.": "生成它的内容一致。{}{}。",
    "with {}": "设置 {}",
    (
        "Repeat the candidate {}: if {} then agree{}, look for a buffer that is used again before its stream is "
        "done (communication, prefetching, custom operators). Watching slows a run and can hide such a race: "
        "repeat the capture several times. Else look for code that treats a part of {} of {} otherwise (a shard, "
        "a mask)."
    ): (
        "{0}后重新运行待比对侧：若此时 {1}一致{2}，则查找在其流完成之前被再次使用的缓冲区（通信、预取、"
        "自定义算子）。监视会使运行变慢，能够掩盖此类竞争：应多次重复采集。否则查找对 {4} 的 {3} "
        "的一部分作不同处理的代码（切分、掩码）。"
    ),
    # align/diagnosis/pair/forward/nondeterministic.py
    (
        "Both files are of one run, repeated on one device: all is equal to the last bit up to {}, where {} "
        "differs by rounding (relative L2 {}). {}{}."
    ): (
        "两份文件来自同一次运行在同一设备上的重复执行：在{}之前全部逐位相同，此处 {} 出现舍入差异（相对 L2 误差 "
        "{}）。{}{}。"
    ),
    ", although deterministic algorithms are on": "，尽管已开启确定性算法",
    "An operator of the code before {} sums in another order each time": "{} 之前的代码中有算子每次以不同的顺序求和",
    "An operator in {} sums in another order each time": "{} 中有算子每次以不同的顺序求和",
    "An operator in the backward of {} sums in another order each time": "{} 的反向中有算子每次以不同的顺序求和",
    (
        "That is no fault; such a repeat tells what rounding does to this model: give it to `align diff REF.h5 "
        "CAND.h5 --floor REPEAT.h5`."
    ): (
        "这不是问题；此类重复运行可说明舍入对该模型的影响：将其作为本底使用 `align diff REF.h5 CAND.h5 --floor "
        "REPEAT.h5`。"
    ),
    "What differs beyond that is told apart from it by `align diff REF.h5 CAND.h5 --floor REPEAT.h5`.": (
        "超出该范围的差异可用 `align diff REF.h5 CAND.h5 --floor REPEAT.h5` 与其区分。"
    ),
    (
        "The operator has no deterministic kernel, or a library around torch runs it: replace it in {}, or run "
        "it on the CPU, to get equal bits. {}"
    ): "该算子没有确定性的 kernel，或由 torch 之外的库执行：如需逐位相同，请替换 {} 中的该算子，或在 CPU 上执行。{}",
    "the script": "脚本",
    "Capture both with `align capture --deterministic` to get equal bits, where there are such kernels. {}": (
        "如需逐位相同，在具备确定性 kernel 的情况下，两侧均使用 `align capture --deterministic` 采集。{}"
    ),
    # align/diagnosis/pair/forward/operator_differs.py
    "{}: {} is the first tensor that differs: {}{}.": "{}：{} 是首个出现差异的张量：{}{}。",
    (
        "{} The class ({}), settings, parameters and inputs of {} agree but for the shape of {} ({}): its "
        "operator reads that otherwise."
    ): "{0}{2} 的类（{1}）、设置、参数与输入均一致，仅 {3} 的形状不同（{4}）：其算子对该形状的解读不同。",
    "{} The class ({}), settings, parameters and inputs of {} agree": "{0}{2} 的类（{1}）、设置、参数与输入均一致",
    "{}, so the operator behind it gives another result{}.": "{}，因此其背后的算子结果不同{}。",
    (
        "{}, so what its code runs gives another result{}: an operator, or a branch or state of the code that no "
        "capture sees."
    ): "{}，因此其代码所执行的内容结果不同{}：某个算子，或采集无法看到的代码分支或状态。",
    "{} and {}": "{} 和 {}",
    " on {} than on {}": "（{} 与 {} 相比）",
    "Give {} {} of the shape that its operator documents, in both runs. {}": (
        "在两次运行中，均向 {} 传入形状符合其算子文档的 {}。{}"
    ),
    "Run {} with another implementation in one run (the plain operators instead of a fused one": (
        "在一侧用另一种实现运行 {}（用小算子代替融合算子"
    ),
    ", or on the CPU, with its inputs moved there and its output back": "，或在 CPU 上运行，将其输入移至 CPU、输出移回",
    ") and compare again; if the runs then agree, update or report the operator, with its shapes and dtypes. ": (
        "）并重新比对；若两次运行随后一致，则更新该算子或提交问题，并附上其形状与数据类型。"
    ),
    "Check the versions of torch_npu and CANN, and try `TORCH_NPU_USE_COMPATIBLE_IMPL=1`. ": (
        "检查 torch_npu 与 CANN 的版本，并尝试 `TORCH_NPU_USE_COMPATIBLE_IMPL=1`。"
    ),
    "The difference is as large as TF32 or HF32 make it (about {}): check `allow_tf32` and `allow_hf32`. ": (
        "该差异的大小与 TF32 或 HF32 造成的相当（约 {}）：检查 `allow_tf32` 与 `allow_hf32`。"
    ),
    # align/diagnosis/pair/forward/origin_functional.py
    " The code of {} may draw random numbers, and two kinds of device never draw the same.": (
        "{} 的代码可能消耗随机数，而两种设备永远不会得到相同的随机数。"
    ),
    "another shape": "形状不同",
    "{}: {} is the first tensor that differs: {}.": "{}：{} 是首个出现差异的张量：{}。",
    (
        "{} All that modules were given and made before it agrees: the training script made it, of that or of "
        "something else (a batch, random numbers)."
    ): "{}在此之前各模块的输入与输出均一致：它由训练脚本产生，来自这些内容或其他内容（批次、随机数）。",
    "{} It is {}, whose forward is recorded in {}, with its backward.": "{0}它是 {1}，其前向与反向一同记录在{2}中。",
    "Compare what {} was given in both runs (noise, batches) with `align show RUN.h5 '{}'`, and its settings.": (
        "用 `align show RUN.h5 '{1}'` 对照两次运行中 {0} 的输入（噪声、批次），并对照其设置。"
    ),
    (
        "Compare what the training script hands to {} there in both runs: batches, noise, random numbers, "
        "outputs of other models, and the operators in between. {}"
    ): "对照两次运行中训练脚本在该处传给 {} 的内容：批次、噪声、随机数、其他模型的输出，以及其间的算子。{}",
    "Forward agrees; {}: {} of {} is the first gradient that differs: {}. It is made by {}.": (
        "前向一致；{0}：{2} 的 {1} 是首个出现差异的梯度：{3}。它由{4}产生。"
    ),
    " Of its {} elements {} are true in the reference and {} in the candidate.": (
        "其 {} 个元素中，标杆侧有 {} 个为 True，待比对侧有 {} 个。"
    ),
    "{} to {}": "{} 到 {}",
    " It holds {} in the reference and {} in the candidate.": "其取值在标杆侧为 {}，在待比对侧为 {}。",
    "the loss is the first value that differs: {}. The outputs it is made from agree.": (
        "loss 是首个出现差异的值：{}。生成它的输出一致。"
    ),
    "{} of {} is the first gradient that differs as the optimizer takes it: {}. The gradient after backward agrees.": (
        "{1} 的 {0} 是优化器取用时首个出现差异的梯度：{2}。反向之后的梯度一致。"
    ),
    "{} of {} already differs ({}): code that was not captured made it.": (
        "{1} 的 {0} 已出现差异（{2}）：由未采集的代码产生。"
    ),
    "{} is the first tensor that differs: {}.": "{} 是首个出现差异的张量：{}。",
    "{} Its argument {} differs already: {} made it.": "{}其实参 {} 已出现差异：由{}产生。",
    "{} Its inputs and children agree: {} is the cause.": "{}其输入与子模块均一致：原因在{}。",
    " while {} agrees": "，而 {} 一致",
    "{} of {} already differs ({}){}: {} is the cause.": "{1} 的 {0} 已出现差异（{2}）{3}：原因在{4}。",
    (
        "Compare how both scripts make the loss from the outputs: reduction, ignored targets, label shift, "
        "division by accumulation steps or world size."
    ): "对照两侧脚本由输出计算 loss 的方式：归约方式、忽略的标签、标签移位、除以梯度累积步数或卡数。",
    "Compare what happens between backward and optimizer.step in both scripts: unscaling, clipping, reduction.": (
        "对照两侧脚本在反向与 optimizer.step 之间的处理：还原缩放、裁剪、归约。"
    ),
    "Capture all modules on both sides (without --modules) and compare again.": (
        "两侧均采集全部模块（不使用 --modules）并重新比对。"
    ),
    "Compare the indices or masks that {} hands to {}: positions, offsets, padding.": (
        "对照 {} 传给 {} 的索引或掩码：位置、偏移、填充。"
    ),
    "Compare the operators of {} that follow {}, and their backward, in both runs.": (
        "对照两次运行中 {} 在 {} 之后的算子及其反向。"
    ),
    "Compare the operators of {} there in both runs: residual additions, attention, masks, rotary embedding. {}": (
        "对照两次运行中 {} 在该处的算子：残差相加、注意力、掩码、旋转位置编码。{}"
    ),
    # align/diagnosis/pair/forward/origin_module.py
    "{}: {} is the first tensor of another shape. Its inputs agree, so it starts here.": (
        "{}：{} 是首个形状不同的张量。其输入一致，差异源于此处。"
    ),
    "Forward agrees; {} of {}: {} is the first gradient that differs: {}{}.": (
        "前向一致；{0}：{1} 的 {2} 是首个出现差异的梯度：{3}{4}。"
    ),
    "{}: {} of {} is the first that differs: {}{}. What its gradient is made from agrees.": (
        "{0}：{2} 的 {1} 首个出现差异：{3}{4}。生成该梯度的内容一致。"
    ),
    "{}: {} is the first tensor that differs: {}{}. {}": "{}：{} 是首个出现差异的张量：{}{}。{}",
    "Its inputs agree but for {}, which only the {} gives it: the code that calls it differs.": (
        "其输入除 {} 外一致，仅{}传入了该输入：调用它的代码不同。"
    ),
    "Its inputs agree; {} is a tensor of its own in the {} only, and is not compared.": (
        "其输入一致；{} 仅在{}为独立张量，未作比较。"
    ),
    "Its inputs agree": "其输入一致",
    "Its inputs agree but for the shape of {}": "其输入除 {} 的形状外一致",
    "{}, so it starts here.": "{}，差异源于此处。",
    "{} ({} in the reference, {} in the candidate)": "{}（标杆侧为 {}，待比对侧为 {}）",
    "Compare what both scripts hand to {}, first {}: masks, positions, settings.": (
        "对照两侧脚本传给 {} 的内容，首先是 {}：掩码、位置、设置。"
    ),
    "Compare the settings and the operators of {} in both runs: arguments, constants, kernels.": (
        "对照两次运行中 {} 的设置与算子：实参、常量、kernel。"
    ),
    (
        " Its weights may have been changed between the steps, too (clamped, averaged, copied, broadcast): they "
        "are captured after optimizer.step, not at the begin of a step."
    ): "其权重也可能在两步之间被修改（截断、平均、拷贝、广播）：权重在 optimizer.step 之后采集，而非在一步开始时。",
    "Compare how the backward of {} is computed in both runs: custom autograd functions, kernels, hooks.": (
        "对照两次运行中 {} 反向的计算方式：自定义 autograd 函数、kernel、hook。"
    ),
    # align/diagnosis/pair/forward/within_noise.py
    " in a common factor": "公共系数，",
    " in a constant": "常数偏移，",
    " in a few elements": "少量元素，",
    " in one channel": "单个通道，",
    " because the parameters they start from differ. Compare weight decay and optimizer settings": (
        "，因为其起始参数不同。请对照权重衰减与优化器设置"
    ),
    ", where rounding alone may cause as much": "，因为仅舍入就可能造成同样大的差异",
    "In {} {} of the forward pass {} by up to {} and {} not judged{}.": (
        "{0}前向中 {1}{2}，最大达 {3}，{4}排除在判定之外{5}。"
    ),
    "No tensor of {} could be judged.": "{}没有张量可作判定。",
    "it agrees": "一致",
    "they agree": "均一致",
    "Only what the runs were given could be judged ({} of {}); {}.": (
        "只有两次运行的给定内容可作判定（{1}的 {0}）；{2}。"
    ),
    "Only {} of {} could be judged; {}.": "{1}中仅 {0}可作判定；{2}。",
    "{} over {}": "{1}的 {0}",
    (
        "Aligned as far as statistics can show: the sizes of {} agree within the floor; signs and order were not "
        "compared."
    ): "在统计量可分辨的范围内对齐：{}的大小差异均在本底以内；未比较符号与顺序。",
    "Aligned as far as {} can show: an effect below {} of a module's output would not have been seen{}.": (
        "在 {} 可分辨的范围内对齐：小于模块输出 {} 的影响无法观察到{}。"
    ),
    "Aligned: {} are equal.": "对齐：{}全部相同。",
    "Aligned: {} agree as closely as sketches can tell.": "对齐：{}在摘要（sketch）可分辨的范围内一致。",
    "{} at {}": "（{}位于 {}）",
    "the limit of {}x the floor": "本底 {} 倍的限值",
    "Aligned: {} stay below {}; the largest is {}{}.": "对齐：{}的差异均低于{}；最大为本底的 {}{}。",
    "Aligned: {} stay below their limits; the nearest to its own is {} of {}{}.": (
        "对齐：{}的差异均低于各自的限值；最接近其限值的为本底的 {}，限值为 {}{}。"
    ),
    "; a common factor that is {} off would have been": "；偏离 {} 的公共系数则可观察到",
    " {} could not be judged.": "{}无法判定。",
    " Gradients were not compared.": "未比较梯度。",
    " The forward pass was not compared.": "未比较前向。",
    "all modules": "全部模块",
    (
        "Capture both runs with the same --modules: no module is in both captures (the reference was captured "
        "with {}, the candidate with {})."
    ): "两侧使用相同的 --modules 采集：没有模块同时出现在两份采集文件中（标杆侧采集时为 {}，待比对侧为 {}）。",
    "Nothing to do for these steps.": "这些步无需处理。",
    "; of a parameter's gradient, only an effect as large as itself would have been seen": (
        "；对于参数梯度，只有与其自身同样大的影响才能观察到"
    ),
    "; of a parameter's gradient, one below {} would not have been seen": "；对于参数梯度，小于其 {} 的影响无法观察到",
    "Repeat both runs in fp32 to see smaller effects{}.": "如需观察更小的影响，请用 fp32 重新运行两侧{}。",
    # align/diagnosis/pair/forward/wrong_elements.py
    " The relative difference grows along dimension {}, from {} to {}.": "相对差异沿第 {} 维递增，从 {} 到 {}。",
    " along dimension {}": "第 {} 维的",
    ", the last,": "（末尾）",
    "Only {}{} {} of {}{}{} differ{} beyond rounding; the others agree.": (
        "{4}{3} 个{0}{1}中，仅第 {2} 个{5}的差异{6}超出舍入；其余一致。"
    ),
    "Only element {} of {} (in row-major order) differs beyond rounding; the others agree.": (
        "{1} 个元素中仅第 {0} 个（按行优先顺序）的差异超出舍入；其余一致。"
    ),
    "Only elements {} to {} of {} (in row-major order) differ beyond rounding; the others agree.": (
        "{2} 个元素中仅第 {0} 到 {1} 个（按行优先顺序）的差异超出舍入；其余一致。"
    ),
    # align/diagnosis/pair/backward/backward_cause.py
    "world size": "卡数",
    "accumulation steps": "梯度累积步数",
    "loss scale": "损失缩放系数",
    # align/diagnosis/pair/backward/backward_operator.py
    (
        "{}: {} of {} is the first gradient that differs: {}. Forward agrees, and so {}: the part of the "
        "backward of {} ({}) that makes the gradient of {} gives another result{}."
    ): (
        "{0}：{2} 的 {1} 是首个出现差异的梯度：{3}。前向一致，{4}也一致：{5}（{6}）的反向中生成 {7} "
        "梯度的部分结果不同{8}。"
    ),
    (
        "Forward agrees; {} of {}: {} is the first gradient that differs: {}. The gradient of its output agrees, "
        "and so do its class ({}) and settings: its backward gives another result{}."
    ): (
        "前向一致；{0}：{1} 的 {2} 是首个出现差异的梯度：{3}。其输出的梯度一致，其类（{4}）与设置也一致："
        "其反向结果不同{5}。"
    ),
    "do the gradients of activations": "激活值的梯度",
    "does the gradient of its input": "其输入的梯度",
    (
        " The factor grows by {} with each of {} layers towards the input: the gradient of {} has {} times the "
        "norm of the reference's, that of {} {} times."
    ): "该倍数朝输入方向逐层增长，{1} 层中每层增长 {0} 倍：{2} 的梯度范数为标杆的 {3} 倍，{4} 的为 {5} 倍。",
    ", or on the CPU": "，或在 CPU 上运行",
    (
        ") and compare again; if the gradients then agree, correct the backward where it is your own code (an "
        "autograd function, a hook), else update or report the operator, with its shapes and dtypes. "
    ): (
        "）并重新比对；若梯度随后一致，则当反向为自有代码时（autograd 函数、hook）予以修正，"
        "否则更新该算子或提交问题，并附上其形状与数据类型。"
    ),
    "Check the versions of torch_npu and CANN. ": "检查 torch_npu 与 CANN 的版本。",
    # align/diagnosis/pair/backward/gradient_doubled.py
    "Forward agrees; {} of {}: {} is the first gradient that differs: {}.": (
        "前向一致；{0}：{1} 的 {2} 是首个出现差异的梯度：{3}。"
    ),
    "Forward agrees; {}: {} of {} is the first gradient that differs: it is twice the reference's ({}).": (
        "前向一致；{0}：{2} 的 {1} 是首个出现差异的梯度：它是标杆的两倍（{3}）。"
    ),
    "as the optimizer takes it": "优化器取用时如此",
    "though the gradients of activations agree": "而激活值的梯度一致",
    "{}: the gradient of {} of {} is twice the reference's, {}.": "{0}：{2} 的 {1} 的梯度为标杆的两倍，{3}。",
    "{}: the gradients are twice those of the reference, {} ({} of {}; first {} of {}).": (
        "{0}：梯度为标杆的两倍，{1}（{3}中的 {2} 个；首个为 {5} 的 {4}）。"
    ),
    (
        " It grows from layer to layer: the gradient of {} has {} times the norm of the reference's, that of {} "
        "{} times."
    ): "其逐层增长：{} 的梯度范数为标杆的 {} 倍，{} 的为 {} 倍。",
    (
        "See what adds to the gradient of {} of {} twice: a weight that is used or registered twice, a hook on "
        "it, a reduction that runs twice."
    ): "查找重复累加到 {1} 的 {0} 的梯度上的内容：权重被使用或注册两次、其上的 hook、归约执行两次。",
    (
        "See what adds up gradients twice: two backward calls for one loss, gradients that are not cleared "
        "between micro-batches, a sum where a mean over ranks is meant, a reduction that runs twice."
    ): (
        "查找梯度被重复累加的原因：对同一 loss 调用两次 backward、微批次之间未清零梯度、应在各卡间求平均却求和、"
        "归约执行两次。"
    ),
    "See whether the backward of {} hands its gradient back twice: a hook, a custom autograd function. ": (
        "检查{}的反向是否将其梯度重复回传：hook、自定义 autograd 函数。"
    ),
    "as the optimizer takes them": "优化器取用时如此",
    # align/diagnosis/pair/backward/gradient_missing.py
    "{} of {}": "{}/{}",
    (
        "the optimizer of the {} gets no gradient of {} ({} parameters), though the backward of both runs made "
        "{}: it was dropped before the update."
    ): "{0}的优化器未得到 {1} 的梯度（{2} 个参数），而两次运行的反向均生成了{3}：梯度在更新之前被丢弃。",
    "one of each": "各自的梯度",
    "from {} back to the inputs no parameter gets a gradient in the {} ({})": (
        "从 {0} 到输入，{1}没有参数得到梯度（{2}）"
    ),
    "{} {} no gradient in the {} ({} parameters)": "{0} 在{2}没有{1}梯度（{3} 个参数）",
    " The optimizer of the {} does not hold it.": "{}的优化器不包含该参数。",
    (
        "The gradient of the output of {} comes there in both runs: what the {} lacks is frozen "
        "(requires_grad=False) or used detached (detach, .data, no_grad).{}"
    ): (
        "{} 输出的梯度在两次运行中均到达该处：{}缺少梯度的参数被冻结（requires_grad=False），或以 detach "
        "方式使用（detach、.data、no_grad）。{}"
    ),
    "It is": "该参数",
    "They are": "这些参数",
    "{} frozen there (requires_grad=False), used detached (detach, .data, no_grad), or not used at all.": (
        "{}在该侧被冻结（requires_grad=False）、以 detach 方式使用（detach、.data、no_grad），或根本未被使用。"
    ),
    (
        "The backward of the {} does not reach the output of {}: it is detached or made without gradient "
        "(detach, no_grad), or {} is frozen with all before it."
    ): (
        "{}的反向未到达 {} 的输出：该输出被 detach 或在不求梯度的情况下生成（detach、no_grad），或 {} "
        "连同其之前的全部内容被冻结。"
    ),
    (
        "Look in the {} for what happens between backward and the optimizer's step: zero_grad, `grad = None`, "
        "groups, hooks."
    ): "在{}查找反向与优化器 step 之间的处理：zero_grad、`grad = None`、参数组、hook。",
    "{} and the code that uses its output": "{} 以及使用其输出的代码",
    (
        "Look in the {} at {}: detach(), .data, torch.no_grad(), requires_grad_(False), non-differentiable "
        "operators, checkpointing of inputs without gradient."
    ): "在{}检查 {}：detach()、.data、torch.no_grad()、requires_grad_(False)、不可导的算子、对无梯度输入的重计算。",
    # align/diagnosis/pair/backward/gradient_norm.py
    (
        "{}: the gradients before clipping agree, but the norm that they are clipped by is {} in the reference "
        "and {} in the candidate (limit {}). {}All gradients that the optimizer takes are {} times the "
        "reference's."
    ): (
        "{}：裁剪之前的梯度一致，但裁剪所用的范数在标杆侧为 {}，在待比对侧为 {}（限值 {}）。"
        "{}优化器取用的所有梯度均为标杆的 {} 倍。"
    ),
    (
        "Compare how the norm is made: over which parameters, and with several ranks which of them count once "
        "(parameters that every rank holds) or once a rank (parts of a split weight). `align inspect RUN.h5` "
        "checks the norm of a run with the files of all its ranks."
    ): (
        "对照范数的计算方式：涉及哪些参数；多卡时哪些参数只计一次（每张卡都持有的参数），哪些每卡各计一次（"
        "被切分的权重分片）。`align inspect RUN.h5` 可用一次运行的全部 rank 文件检查其范数。"
    ),
    "That of the gradients that were seen is {}, as the {} says. ": "所采集到的梯度的范数为 {}，与{}所用的一致。",
    # align/diagnosis/pair/backward/gradient_scaled.py
    "{}: {} {} times those of the reference ({} of {}; first {}). {}{}": (
        "{0}：{1}标杆的 {2} 倍（{4}中的 {3} 个；首个为 {5}）。{6}{7}"
    ),
    " that the optimizer takes": "优化器取用的",
    "the gradients{} are": "{}梯度为",
    "Those after backward agree.": "反向之后的梯度一致。",
    "The gradients of activations agree.": "激活值的梯度一致。",
    "The loss agrees.": "loss 一致。",
    " That is {}the loss scale: one run does not undo it.": "该倍数为 {}损失缩放系数：一侧未还原缩放。",
    (
        "Divide the gradients by the scale that their loss was multiplied by, once, before they are clipped and "
        "the optimizer takes them."
    ): "用 loss 所乘的系数除梯度，只除一次，并在裁剪和优化器取用之前完成。",
    " That may be {}.": "该倍数可能是{}。",
    (
        "Compare how both scripts average gradients: division by accumulation steps and by the world size, a sum "
        "against a mean over ranks, clipping, hooks on parameters."
    ): "对照两侧脚本对梯度求平均的方式：除以梯度累积步数与卡数、在各卡间求和还是求平均、裁剪、参数上的 hook。",
    " In {}, where the scale stays, {}.": "在系数未变的{}，{}。",
    " The loss scale is {} in step {} and {} in the next: the {} divides by that of the next.{}": (
        "损失缩放系数在第 {1} 步为 {0}，在下一步为 {2}：{3}除以了下一步的系数。{4}"
    ),
    "Divide the gradients by the scale that their loss was multiplied by, and move the scale afterwards.": (
        "用 loss 所乘的系数除梯度，之后再更新该系数。"
    ),
    "from {} to {}": "从 {} 裁剪到 {}",
    "not at all": "未被裁剪",
    " Clipping makes it: the norm is clipped {} in the reference, {} in the candidate.": (
        "由裁剪造成：范数在标杆侧{}，在待比对侧{}。"
    ),
    "Clip the gradients alike in both runs: the same limit, at the same place, of the same parameters.": (
        "两次运行以相同方式裁剪梯度：限值相同、位置相同、参数相同。"
    ),
    # align/diagnosis/pair/backward/gradients_not_reduced.py
    (
        "{}: the gradients after backward agree in both runs, but the {}, one of {} ranks, gives them to its "
        "optimizer as they are, to the last bit ({}; first {}). The {} changes them before (relative L2 up to "
        "{}), as a sum over ranks does."
    ): (
        "{0}：反向之后的梯度在两次运行中一致，但{1}（共 {2} 个 rank）将其逐位不变地交给优化器（{3}；首个为 {4}）。"
        "{5}则在此之前改变了梯度（相对 L2 误差最大 {6}），与各 rank 间求和的结果相符。"
    ),
    (
        "Look for the reduction in the {} between backward and optimizer.step: which process group its "
        "all_reduce is given (one of a single rank reduces nothing), whether it is called at all, whether "
        "no_sync() ends before the last backward of a step. `align inspect RUN.h5` compares the ranks of that "
        "run."
    ): (
        "在{}中查找反向与 optimizer.step 之间的归约：其 all_reduce 使用的进程组（仅含一个 rank "
        "的进程组不作归约）、是否确实被调用、no_sync() 是否在一步的最后一次反向之前结束。`align inspect RUN.h5` "
        "可比较该次运行的各 rank。"
    ),
    # align/diagnosis/pair/backward/loss_cause.py
    "targets that count": "计入的标签数",
    "targets / targets that count": "标签数 / 计入的标签数",
    "samples of the batch": "批次的样本数",
    # align/diagnosis/pair/backward/loss_normalization.py
    (
        "{}: losses and gradients of this rank agree in both runs, but what the optimizer takes in the reference "
        "is {} of this rank's gradients and {} of what the candidate takes, in all {}: the gradients of the "
        "ranks are averaged with other weights."
    ): (
        "{}：本 rank 的 loss 与梯度在两次运行中一致，但标杆侧优化器取用的梯度等于本 rank 梯度的 {} "
        "倍与待比对侧取用梯度的 {} 倍之和，{}均如此：各 rank 的梯度以不同的权重求平均。"
    ),
    " If the candidate takes their plain mean, the reference weighs this rank {} and the other {}.": (
        "若待比对侧取用的是简单平均，则标杆侧对本 rank 的权重为 {}，对另一 rank 为 {}。"
    ),
    (
        "Where ranks have other numbers of targets, the mean of their means is not the mean over all targets: "
        "divide the sum of the losses of each rank by the targets of all ranks (`torch.distributed.all_reduce` "
        "of their number), times the world size where gradients are averaged (DistributedDataParallel, FSDP)."
    ): (
        "各 rank 的标签数不同时，各自均值的均值并不等于全部标签的均值：将每个 rank 的 loss 之和除以全部 rank "
        "的标签总数（用 `torch.distributed.all_reduce` 得到），若对梯度求平均（DistributedDataParallel、FSDP），"
        "再乘以卡数。"
    ),
    "{} in the reference and {} in the candidate": "标杆侧为 {}，待比对侧为 {}",
    "{}: the loss is the first value that differs: {}": "{}：loss 是首个出现差异的值：{}",
    (
        "{}. It is {} times the reference's{}, and so are the gradients of the outputs, which agree: the same "
        "loss, averaged otherwise."
    ): "{}。它是标杆的 {} 倍{}，输出的梯度也是如此，而输出本身一致：loss 相同，只是求平均的方式不同。",
    " The reference {} at the end, the candidate {}.": "标杆侧最后{}，待比对侧{}。",
    (
        "Divide the loss by the same number in both runs: compare the reduction (sum or mean), the division by "
        "the accumulated micro-batches and by the world size, and what a trainer divides by itself."
    ): (
        "在两次运行中用同一个数除 loss：对照归约方式（求和或求平均）、除以累积的微批次数与卡数，"
        "以及训练框架自身所除的数。"
    ),
    "does not multiply it": "不再相乘",
    "multiplies it by {}": "乘以 {}",
    " and in {} more": "，以及其余 {} 个",
    (
        "{}. The micro-batches have other weights: their losses are {} times the reference's (micro {}{}), and "
        "so are the gradients of the outputs, which agree."
    ): "{}。各微批次的权重不同：其 loss 分别为标杆的 {} 倍（micro {}{}），输出的梯度也是如此，而输出本身一致。",
    " {} of their targets count: the {} weights each micro-batch by the targets that count in it, the {} does not.": (
        "其中计入的标签数分别为 {}：{}按计入的标签数对各微批次加权，{}则没有。"
    ),
    (
        "Weight micro-batches alike in both runs. For a mean over tokens divide the sum of the losses of all "
        "tokens by the number of tokens that count in all micro-batches (and ranks), not each by its own."
    ): (
        "两次运行以相同方式对微批次加权。若按 token 求平均，应将全部 token 的 loss 之和除以所有微批次（及所有 "
        "rank）中计入的 token 总数，而不是各自除以自身的数量。"
    ),
    "{}. Outputs and targets agree, but {} targets count in the reference and {} in the candidate": (
        "{}。输出与标签一致，但标杆侧计入 {} 个标签，待比对侧计入 {} 个"
    ),
    ", whose losses leave out the targets that are {} and {}": "，两侧 loss 忽略的标签值分别为 {} 与 {}",
    "Give the loss of both runs one ignore_index, the one that padding has in the targets, and the same mask.": (
        "两次运行的 loss 使用同一 ignore_index（即标签中填充部分的取值）与相同的掩码。"
    ),
    # align/diagnosis/pair/backward/recompute_differs.py
    " The forward agrees; {} of {} is the first gradient that differs: {}.": (
        "前向一致；首个出现差异的梯度为 {}（{}）：{}。"
    ),
    "{}: an activation checkpoint of the {} computes {} {} again in the backward, and {}. {}{}": (
        "{}：{}的重计算在反向中再次计算 {} {}，{}。{}{}"
    ),
    # align/diagnosis/pair/scale/clip_before_unscale.py
    "In the {} alone, {}": "仅{}：{}",
    # align/diagnosis/pair/scale/denormal_flush.py
    (
        "The {} makes 0 of the smallest numbers: in {} it has {} zeros more, where the {} has {} numbers below "
        "the normal ones of {}. Most is lost in {} ({} of it)."
    ): (
        "{0}将最小的数值清零：在 {1}中多出 {2} 个 0，而{3}在该处有 {4} 个 {5} 次正规数（subnormal）。"
        "损失最多的是 {6}（占其 {7}）。"
    ),
    (
        "Raise the loss scale, so that gradients stay above 6.1e-5, or train in bf16; see `align inspect` of the "
        "run for the scales that would fit."
    ): (
        "增大损失缩放系数，使梯度保持在 6.1e-5 以上，或使用 bf16 训练；合适的系数可用 `align inspect` "
        "查看该次运行得到。"
    ),
    # align/diagnosis/pair/scale/gradient_underflow.py
    "no loss scale": "无损失缩放",
    "a loss scale of {}": "损失缩放系数为 {} ",
    (
        "Step {}, backward: with {} (the {}: {}) the gradients of the {} are too small for fp16, first {} {}: {} "
        "of it are 0, in the {} {}."
    ): "第 {0} 步反向：{1}时（{2}：{3}），{4}的梯度过小，超出 fp16 的范围，首个为 {5} {6}：其中 {7} 为 0，{8}为 {9}。",
    "{} The gradients of {} of {} are all 0 there only ({}).": "{0}{2}中有 {1} 个的梯度仅在该侧全为 0（{3}）。",
    "{} {} of the parameters get gradients that are made of such numbers.": "{}{} 的参数的梯度由此类数值构成。",
    # align/diagnosis/pair/scale/loss_scale_unstable.py
    "The candidate alone skips {} at a loss scale that both runs have, step {} first; the reference alone skips {}.": (
        "在两次运行相同的损失缩放系数下，仅待比对侧跳过的有 {}，首个为第 {} 步；仅标杆侧跳过的有 {} 步。"
    ),
    (
        "Capture step {} in both runs, `align capture --steps {} ...`, and compare: what overflows in the "
        "candidate is smaller in the reference."
    ): "在两次运行中采集第 {} 步（`align capture --steps {} ...`）并比对：待比对侧溢出的值在标杆侧更小。",
    # align/diagnosis/pair/scale/nan_origin.py
    "NaN and Inf": "NaN 和 Inf",
    " {} only {} it on.": "{}仅{}。",
    "Every module output of {} is finite; the loss is {} in the {}.{}": (
        "{0}的所有模块输出均有限；{2}的 loss 为 {1}。{3}"
    ),
    ": {} made it": "：由{}产生",
    "{}: {} is the first tensor with {}, in the {}; what it is made from is finite{}.{}": (
        "{}：{} 是首个出现 {} 的张量（{}）；生成它的内容均有限{}。{}"
    ),
    (
        "Look at the loss of this step for a division by zero or a logarithm of zero: a batch without a valid "
        "target, a mask whose sum is 0."
    ): "检查该步 loss 中的除零或对零取对数：没有有效标签的批次、总和为 0 的掩码。",
    (
        "Compare what both scripts do to gradients between backward and optimizer.step: unscaling, clipping by "
        "their norm."
    ): "对照两侧脚本在反向与 optimizer.step 之间对梯度的处理：还原缩放、按范数裁剪。",
    (
        "Look at the operators of {} whose derivative is not finite at some value: sqrt or norm at 0, a branch "
        "that torch.where does not select, a division. Make the argument safe before the operator."
    ): (
        "检查 {} 中在某些取值处导数不是有限值的算子：0 处的 sqrt 或 norm、torch.where 未选中的分支、除法。"
        "在进入算子之前使其自变量处于安全范围。"
    ),
    (
        "Look in {} for 0/0, the logarithm or root of a negative number, Inf - Inf, or a row that is masked "
        "completely. {}"
    ): "在 {} 中查找 0/0、对负数取对数或开方、Inf - Inf，或整行被掩码的情况。{}",
    # align/diagnosis/pair/scale/overflow.py
    "{}: {} is the first tensor with Inf, in the {}: {}; the other run reaches {}.{}{}": (
        "{}：{} 是首个出现 Inf 的张量（{}）：{}；另一侧最大达到 {}。{}{}"
    ),
    "{} beyond {}, the greatest {} number": "{0}超出 {2} 的最大值 {1}",
    (
        "Compare the settings of both optimizers. In fp16 an eps below 6e-8 is 0, and a division by it gives Inf: "
        "keep parameters and optimizer states in fp32."
    ): "比对两侧优化器的设置。在 fp16 中，小于 6e-8 的 eps 为 0，除以它得到 Inf：参数与优化器状态请使用 fp32。",
    (
        "Start both runs from one loss scale, and let both change it or neither: one that is found by trying "
        "overflows in its first steps and skips them, one that stays does not."
    ): (
        "两次运行以相同的损失缩放系数开始，并且均调整或均不调整：通过试探得到的系数会在前几步溢出并跳过更新，"
        "固定的系数则不会。"
    ),
    "Compare the scale of what enters {} in both runs; run it in bf16 or fp32, whose range is wider.": (
        "对照两次运行中输入到{}的数值范围；用范围更大的 bf16 或 fp32 运行该处。"
    ),
    " {} made it.": "由{}产生。",
    (
        "In {} scaled gradients overflow on one side only, first in {}: the loss scaler is finding its scale, or "
        "the other run is within 5 % of the greatest number."
    ): "{}缩放后的梯度仅在一侧溢出，首个为 {}：损失缩放正在寻找合适的系数，或另一侧距最大值不足 5%。",
    "Nothing to do while the loss scale settles within the first steps.": "若损失缩放系数在前几步内稳定，则无需处理。",
    # align/diagnosis/pair/scale/overflow_saturated.py
    "{}, the greatest {} number": "{1} 的最大值 {0}",
    "{}: {} reaches exactly {}, in the {}; the {} {}. What overflows is set to the limit there.{}": (
        "{0}：{1} 在{3}恰好达到 {2}；{4}{5}。该侧将溢出值置为上限。{6}"
    ),
    (
        "Run {} in bf16 or fp32 in both runs, whose range is wider. On an NPU that supports it set "
        "INF_NAN_MODE_ENABLE=1: then an overflow is Inf, and a loss scaler skips the step."
    ): (
        "两次运行均用范围更大的 bf16 或 fp32 运行 {}。在支持的 NPU 上设置 INF_NAN_MODE_ENABLE=1：溢出即为 Inf，"
        "损失缩放会跳过该步。"
    ),
    "has Inf in {} of {}": "{1}中有 {0} 个为 Inf",
    "reaches {} in {}": "达到 {}（{}）",
    " The loss scaler of the {} skipped the step; that of the {} saw no Inf and let it through.": (
        "{}的损失缩放器跳过了该步；{}的未发现 Inf，未跳过。"
    ),
    # align/diagnosis/pair/scale/skipped_step_applied.py
    "In the {} alone, {} The {} skipped it.": "仅{}：{}{}跳过了该步。",
    # align/diagnosis/recompute_telling.py
    (
        "Let the checkpoint put the random generator back: {}, which is torch's default. In code of its own, "
        "keep the state of the device's generator before the first forward and set it before the second. `align "
        "capture --no-dropout` shows whether anything else differs."
    ): (
        "使重计算恢复随机数状态：{}，这是 torch 的默认行为。若为自有代码，"
        "则在第一次前向之前保存设备随机数生成器的状态，在第二次前向之前恢复。`align capture --no-dropout` "
        "可显示是否还有其他差异。"
    ),
    (
        "Leave the model in one mode between forward and backward: a call of .eval() or .train() before the "
        "backward switches dropout for the second forward."
    ): "在前向与反向之间保持模型的模式不变：在反向之前调用 .eval() 或 .train() 会在第二次前向中切换 dropout。",
    (
        "Run the second forward under the same autocast as the first: torch's checkpoint does that for the "
        "device types that it knows; code of its own has to enter torch.autocast itself."
    ): (
        "使第二次前向处于与第一次相同的 autocast 之下：torch 的 checkpoint 对其支持的设备类型会这样做；"
        "自有代码须自行进入 torch.autocast。"
    ),
    (
        "Look for what changed between the two forwards: an input or a buffer that is written in place, a mode "
        "or a counter, random numbers that no generator of torch gives, an operator that is not deterministic."
    ): (
        "查找两次前向之间发生的变化：被原地修改的输入或缓冲区、模式或计数器、并非来自 torch 生成器的随机数、"
        "不确定性算子。"
    ),
    "drops elements that it kept": "丢弃了先前保留的元素",
    "drops none": "未丢弃任何元素",
    "it differs from the first time by relative L2 {}": "与第一次的相对 L2 误差为 {}",
    "drops other elements than the first time ({} of it are zero first, {} then)": (
        "丢弃的元素与第一次不同（零值占比第一次为 {}，第二次为 {}）"
    ),
    "{} the second time ({} of it are zero first, {} then)": "第二次{}（零值占比第一次为 {}，第二次为 {}）",
    "it is {} the second time, {} the first": "第二次为 {}，第一次为 {}",
    "it has the shape {}, {} the first time": "形状为 {}，第一次为 {}",
    "{} of its elements are NaN or Inf, {} the first time": "其中 {} 个元素为 NaN 或 Inf，第一次为 {} 个",
    "its statistics are others than the first time": "统计量与第一次不同",
    # align/diagnosis/scale_telling.py
    " The first that is not finite in step {} is {} {} ({}).": "第 {} 步中首个非有限值为 {} {}（{}）。",
    "In the {} alone {}": "仅{}：{}",
    (
        "Step {}: gradients are cut at {} while they carry the loss scale of {} (the largest is {} then). For "
        "the true gradients that is a limit of {}."
    ): (
        "第 {} 步：梯度在 {} 处被截断，而此时梯度仍带有损失缩放系数 {}（此时最大值为 {}）。对真实梯度而言，"
        "限值相当于 {}。"
    ),
    (
        "Step {}: gradients are clipped to a norm of {} while they carry the loss scale of {}: their norm is {} "
        "then, without the scale {}. Gradients of norm {} reach the optimizer."
    ): (
        "第 {} 步：梯度被裁剪到范数 {}，而此时梯度仍带有损失缩放系数 {}：此时范数为 {}，除去该系数为 {}。"
        "到达优化器的梯度范数为 {}。"
    ),
    "Divide the gradients by {} first, clip them then.": "先将梯度除以 {}，再进行裁剪。",
    (
        "Call scaler.unscale_(optimizer) before {}; with accelerate or Lightning clip by their own functions "
        "(accelerator.clip_grad_norm_, Trainer(gradient_clip_val=...))."
    ): (
        "在 {} 之前调用 scaler.unscale_(optimizer)；使用 accelerate 或 Lightning 时，用其自带的函数裁剪（"
        "accelerator.clip_grad_norm_、Trainer(gradient_clip_val=...)）。"
    ),
    # align/diagnosis/skipped_step_telling.py
    "and its own state moved with them": "且其自身状态随之变化",
    "along their gradients": "沿梯度方向",
    "and some are not finite since": "此后部分参数为非有限值",
    ", by up to {}": "，最大变化 {}",
    (
        "Step {}: the gradient scaler found an overflow, so that the step had to be skipped, but the optimizer "
        "moved {} of {} ({} first){}, {}."
    ): "第 {0} 步：梯度缩放器检测到溢出，该步本应跳过，但优化器更新了 {2}中的 {1} 个（首个为 {3}）{4}，{5}。",
    "the optimizer": "优化器",
    (
        "Build {} without fused=True (or with foreach=True), so that the scaler itself leaves the step out; a "
        "fused optimizer has to read found_inf and grad_scale. Call scaler.step(optimizer), never "
        "optimizer.step()."
    ): (
        "构建 {} 时不使用 fused=True（或使用 foreach=True），由缩放器自身跳过该步；fused 优化器须读取 found_inf "
        "与 grad_scale。调用 scaler.step(optimizer)，不要调用 optimizer.step()。"
    ),
    # align/diagnosis/telling.py
    (
        "Capture both runs with `align capture --detail sketch` (the default) and compare again: sketches see "
        "signs and order, and tell where a difference enters."
    ): (
        "两侧均使用 `align capture --detail sketch`（默认）采集并重新比对：摘要（sketch）反映符号与顺序，"
        "可判断差异从何处产生。"
    ),
    "{} {}, call {}": "{} {}（调用 {}）",
    "the training script": "训练脚本",
    "{} or of {}, which {} can use it": "{}或 {}（{}可使用该输出）",
    "the code of {}": "{} 的代码",
    "{} after {}": "{}中 {} 之后的部分",
    "{} between {} and {}": "{}中 {} 与 {} 之间的部分",
    "the training script (loss)": "训练脚本（loss）",
    "code that was not captured": "未采集的代码",
    "the update of the optimizer": "优化器的更新",
    "the code between backward and the optimizer": "反向与优化器之间的代码",
    "the backward of {}": "{}的反向",
    (
        "{}: {} is the first tensor whose statistics differ: relative L2 at least {}{}. Statistics do not see "
        "signs or order, so the difference may have entered earlier: no module is blamed."
    ): (
        "{}：{} 是首个统计量出现差异的张量：相对 L2 误差至少为 {}{}。统计量不反映符号与顺序，"
        "因此差异可能在更早处产生：不归因于任何模块。"
    ),
    "relative L2 {}": "相对 L2 误差 {}",
    "a common factor of {}": "公共系数 {}",
    "a constant that is added everywhere ({} of its root mean square)": "处处相加的常数（为其均方根的 {}）",
    "{} in one channel": "{} 位于单个通道",
    "{} in a few elements": "{} 位于少量元素",
    " The loss scale is {} in the reference and {} in the candidate.": "损失缩放系数在标杆侧为 {}，在待比对侧为 {}。",
    "the reference with `align capture --keep {}`": "标杆侧使用 `align capture --keep {}`",
    "the candidate with `align capture {}`": "待比对侧使用 `align capture {}`",
    "both with `--no-dropout`": "两侧均使用 `--no-dropout`",
    "both with `align capture --no-dropout`": "两侧均使用 `align capture --no-dropout`",
    "{}, and {}": "{}，{}",
    "To compare the scripts as they are, capture {}.": "如需直接比对两侧脚本，请重新采集：{}。",
    (
        "To see its values, run `align capture --detail tensors --modules '{}'` on both sides, then `align show "
        "RUN.h5 '{}'`."
    ): "如需查看其数值，在两侧执行 `align capture --detail tensors --modules '{}'`，再执行 `align show RUN.h5 '{}'`。",
    "all zeros in the candidate": "待比对侧全为 0",
    "all zeros in the reference": "标杆侧全为 0",
    "the values of the reference in another order": "标杆的数值，顺序不同",
    "{} times the reference": "取值为标杆的 {} 倍",
    # align/diagnosis/underflow_telling.py
    (
        "No loss scale will do: the largest gradients allow at most {} and the smallest need {}. Train in bf16 "
        "(torch.autocast(..., dtype=torch.bfloat16)), whose range is that of fp32."
    ): (
        "没有合适的损失缩放系数：最大的梯度至多允许 {}，而最小的梯度需要 {}。改用 bf16 训练（torch.autocast(..., "
        "dtype=torch.bfloat16)），其范围与 fp32 相同。"
    ),
    (
        "The scale is as large as the largest gradients allow: train in bf16 (torch.autocast(..., "
        "dtype=torch.bfloat16)), whose range is that of fp32."
    ): (
        "系数已达到最大梯度所允许的上限：改用 bf16 训练（torch.autocast(..., dtype=torch.bfloat16)），其范围与 "
        "fp32 相同。"
    ),
    # align/measured_floor.py
    "known-good repeat": "已知正常的重复运行",
    "two files": "两份文件",
    "{} floor files ({})": "{} 个本底文件（{}）",
    (
        "Of {} only {} {} a measured floor; the others were held against an estimated one. Capture the floor "
        "with the same --modules and --phases."
    ): "{}中只有 {} 个{}实测本底；其余按估计的本底判定。请用相同的 --modules 与 --phases 采集本底。",
    "'{}' was given as a floor before: it counts once.": "'{}' 已作为本底给出过：只计一次。",
    " by +-2^{}": "（±2^{}）",
    "reference perturbed{} (seed {})": "标杆加扰动{}（种子 {}）",
    (
        "The candidate works in a coarser precision than the reference ({}): '{}' does not show what that does "
        "and was left out. Give both runs one precision, or use a known-good repeat in the candidate's."
    ): (
        "待比对侧的精度低于标杆（{}）：'{}' 不能说明其影响，已略去。请统一两侧的精度，"
        "或使用待比对侧精度下已知正常的重复运行。"
    ),
    "The floor of {} was not measured by '{}': it or the reference skipped step {}, and the other did not.": (
        "'{1}' 未能测得{0}的本底：它与标杆之中只有一个跳过了第 {2} 步。"
    ),
    "The floor of {} was not measured: '{}' holds only {}. Capture it with the same --steps.": (
        "未测得{}的本底：'{}' 仅包含{}。请用相同的 --steps 采集。"
    ),
    # align/replay_summary.py
    "replay ({})": "回放（{}）",
    (
        "{} {} other elements in a replay: what random numbers made was not judged there. Capture both runs with "
        "--no-dropout."
    ): "{} 在回放中{}的元素不同：由随机数产生的部分未作判定。请两侧均使用 --no-dropout 采集。",
    "In the replay of {} {} {} left as computed ({}).": "在 {} 的回放中，{}{}保留为计算结果（{}）。",
    "In the replay of {} {} computed in float32: {} not take {}.": "在 {} 的回放中，{} 以 float32 计算：{}不支持 {}。",
    "it does": "其",
    "they do": "它们",
    "{} of {} could not be replayed.": "{1} 的{0}无法回放。",
    # align/optimizer_explanation.py
    "No other setting that was tried explains it.": "所尝试的其他设置均不能解释。",
    "All of it is explained by a learning rate {} times the one that is set ({}).": (
        "学习率为设定值（{1}）的 {0} 倍即可解释全部差异。"
    ),
    "All of it is explained by eps ({}) inside the square root instead of behind it.": (
        "eps（{}）位于平方根之内而非之外，即可解释全部差异。"
    ),
    "through the gradient": "通过梯度",
    "to the parameter itself": "直接对参数",
    "All of it is explained by a weight decay applied {}, as {} does.": (
        "{0}施加权重衰减（与 {1} 相同），即可解释全部差异。"
    ),
    "All of it is explained by {} {}; the setting is {}.": "{0} 为 {1} 即可解释全部差异；其设定值为 {2}。",
    # align/pairing.py
    (
        "If modules were renamed, pair them with --rename OLD=NEW or --map FILE; `align show RUN.h5` lists what "
        "each holds."
    ): "若模块改了名，用 --rename OLD=NEW 或 --map FILE 建立映射；`align show RUN.h5` 可列出各文件的内容。",
    (
        "More than 2,000 modules of each run have no namesake in the other; they were not paired by what they "
        "are. Pair them with --rename OLD=NEW or --map FILE."
    ): (
        "两次运行各有超过 2,000 个模块在另一侧没有同名模块；未按其内容匹配。请用 --rename OLD=NEW 或 --map FILE "
        "建立映射。"
    ),
    "Cannot compare '{}' with '{}'": "无法比对 '{}' 与 '{}'",
    "rename '{}'": "改名规则 '{}'",
    "rename '{}={}'": "改名规则 '{}={}'",
    "rule in {}, '{}',": "{} 中的规则 '{}' ",
    "The {} matches no name of the reference that is left to it.": "{}不匹配标杆侧尚未匹配的任何名称。",
    "The {} matches {} of the reference, but the candidate has no free module of a name that it makes.": (
        "{}匹配标杆侧的 {}，但待比对侧没有与其生成的名称对应且尚未匹配的模块。"
    ),
    "'{}' is only in the reference": "'{}' 仅在标杆侧",
    "'{}' only in the candidate": "'{}' 仅在待比对侧",
    "; for example {}": "；例如 {}",
    # align/comparison.py
    "two files, statistics only": "两份文件，仅统计量",
    # words that are put into these templates
    "a residual": "残差",
    "one": "该梯度",
    "get": "得到",
    "gets": "得到",
    "carries": "为传播",
    "carry": "为传播",
    "drops": "丢弃",
    "drop": "丢弃",
    "has": "有",
    "have": "有",
    "both": "两者均",
    "all": "均",
    "1 (none)": "1（无）",
    "targets": "标签数",
    "it": "该处",
    "column": "列",
    "columns": "列",
    "place": "位置",
    # numbers with what is counted
    "{} later place": "{} 处后续差异",
    "{} later places": "{} 处后续差异",
    "{} later tensor": "{} 个后续张量",
    "{} later tensors": "{} 个后续张量",
    "{} repeated tensor": "{} 个重复计算的张量",
    "{} repeated tensors": "{} 个重复计算的张量",
    "{} element": "{} 个元素",
    "{} elements": "{} 个元素",
}
