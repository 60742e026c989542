"""What is said of two checkpoints, and of what one tensor is to another, in Chinese."""

from __future__ import annotations

from collections.abc import Mapping

SENTENCES: Mapping[str, str] = {
    # align/checkpoints/casts.py
    "{} {} {} in the reference and {} in the {}, with the same numbers.": (
        "{0}在标杆侧{1} {2}，在{4}为 {3}，数值相同。"
    ),
    "Nothing needs to be done.": "无需处理。",
    (
        "Convert in the dtype of the reference to lose nothing; where the rounding is wanted, compare with "
        "`align checkpoint --allow-cast`."
    ): "按标杆的数据类型转换即无损失；若确需舍入，请用 `align checkpoint --allow-cast` 比对。",
    (
        "{} {} finer in the {} ({}) than in the reference ({}): rounded to {} they are the same numbers."
    ): "{0}的精度{1}{2}（{3}）高于标杆侧（{4}）：舍入到 {5} 后数值相同。",
    ", kept as {}": "，以 {} 保存",
    (
        "{} {} the reference's {} rounded to {}{}, and nothing else differs in them."
    ): "{0}{1}标杆的 {2} 数值舍入到 {3} 的结果{4}，此外没有差异。",
    (
        "{} {} {} in the reference and {} in the {}, with other numbers, as quantized weights are: {}. How near they "
        "are cannot be told without applying their scales."
    ): (
        "{0}在标杆侧{1} {2}，在{4}为 {3}，数值不同，与量化权重的情形相同：{5}。不应用其缩放系数，无法判断两者有多接近。"
    ),
    "Dequantize before comparing, or compare with what was quantized.": "请先反量化再比对，或与被量化的原始权重比对。",
    # align/checkpoints/changed_merges.py
    "its parts were merged and changed, and their order is not known": "其各部分已被合并且被改动，顺序未知",
    # align/checkpoints/comparing.py
    (
        "No entry of the one answers an entry of the other ({} and {} entries): they are of different models, or kept "
        "in a way that is not known here."
    ): "两侧没有任何条目相互对应（分别有 {} 个与 {} 个条目）：二者属于不同模型，或以未知的方式保存。",
    "Some entries could not be compared, and nothing else differs.": "部分条目无法比对，此外没有差异。",
    "The same {}, equal to the bit.": "两侧的 {}逐位相同。",
    ", apart from {}": "，仅{}不同",
    "The same weights in {}{}.": "{}的权重相同{}。",
    "Not compared: what the {} holds beside the model: {}.": "未比对：{}中模型以外的内容：{}。",
    "Only the {} holds states of an optimizer.": "仅{}含有优化器状态。",
    "the same numbers as {}": "数值相同，类型为 {}",
    "rounded to {}": "舍入到 {}",
    "not compared: {}": "未比对：{}",
    # align/checkpoints/exchanges.py
    "{} holds {} of {}": "{0} 中为 {2} 的{1}",
    "and {} more": "另有 {} 项",
    " The values of {} are nowhere in it.": "其中任何位置都没有 {} 的数值。",
    "{} of the {} {} the values of another entry: {}.{}": "{1}的{0}{2}另一条目的数值：{3}。{4}",
    (
        "Look at how the conversion counts layers: from which number, and whether it leaves one out or exchanges two."
    ): "检查转换中层号的计法：从几开始，是否漏掉一层或互换两层。",
    (
        "Look at the table of names of the conversion: it puts these values under wrong names."
    ): "检查转换所用的名称表：它把这些数值放到了错误的名称下。",
    # align/checkpoints/glimpse.py
    "read from a part of it": "由其中一部分得出",
    # align/checkpoints/keys.py
    "; and {} more rules": "；另有 {} 条规则",
    " With it {} hold the same values in the same order.": "按此改名后，{}的数值与顺序均相同。",
    (
        " {} of them were paired by shape and order alone, which may be wrong."
    ): "其中 {} 个仅按形状与顺序配对，可能有误。",
    "{} have other names in the {}: {}.{}{}": "{}在{}的名称不同：{}。{}{}",
    (
        "`load_state_dict(strict=False)` leaves out every name that it does not know, and only returns the list."
    ): "`load_state_dict(strict=False)` 会略过所有不认识的名称，只返回其列表。",
    "{} Take the prefix away before loading: `{}`.": "{}请在加载前去掉前缀：`{}`。",
    (
        "{} Rename before loading, or load with strict=True, which fails where a name is not known."
    ): "{}请在加载前改名，或以 strict=True 加载，遇到不认识的名称即报错。",
    (
        "Only the {} has {} of adapters (LoRA), which change the weights when they are applied: {}."
    ): "仅{}有 {}属于适配器（LoRA），应用后会改变权重：{}。",
    (
        "Merge the adapters into the weights first (`merge_and_unload()` of PEFT), or compare two files of adapters."
    ): "请先把适配器合并到权重中（PEFT 的 `merge_and_unload()`），或比对两份适配器文件。",
    "Only the {} has {} that models compute themselves: {}.": "仅{}有 {}，由模型自行计算得出：{}。",
    (
        "Nothing needs to be done, unless the model was built with another length or base than it was trained with."
    ): "无需处理，除非构建模型所用的长度或 base 与训练时不同。",
    (
        "The {} has no statistics of normalisation layers, the {} has {}: {}. Without them a model evaluates with "
        "mean 0 and variance 1."
    ): "{}没有归一化层的统计量，{}有 {} 个：{}。缺少它们时，模型以均值 0、方差 1 进行评估。",
    (
        "Save `model.state_dict()`, which holds buffers, instead of `dict(model.named_parameters())`."
    ): "请保存 `model.state_dict()`（含缓冲区），而不是 `dict(model.named_parameters())`。",
    "{} of the {} {} no answer in the ": "{1}的{0}没{2}对应条目，缺于",
    (
        "{}run: {}. They are not loaded, or belong to modules that the run does not train."
    ): "{}该运行：{}。它们未被加载，或属于该运行不训练的模块。",
    (
        "Print the result of `load_state_dict(..., strict=False)`: it lists unexpected keys."
    ): "打印 `load_state_dict(..., strict=False)` 的返回值：其中列出多余的键名（unexpected keys）。",
    (
        "{}reference: {}. Buffers that are never saved (persistent=False) stand here, too."
    ): "{}标杆侧：{}。从不保存的缓冲区（persistent=False）也列在此处。",
    (
        "Look whether one of them is a parameter: then it began with values of its own."
    ): "检查其中是否有参数：若有，该参数是从自身的初始值开始的。",
    (
        " A model that needs them begins with values of its own there."
    ): "需要它们的模型，在这些位置将从自身的初始值开始。",
    (
        "Look how the checkpoint was saved or converted: each of these needs a rule, or is dropped on purpose."
    ): "检查该 checkpoint 的保存或转换方式：其中每一项都需要一条规则，或属于有意舍弃。",
    "{}{}: {}.{}": "{}{}：{}。{}",
    # align/checkpoints/layouts.py
    (
        "{} of the {} {} transposed, in every layer alike, as Conv1D and Linear keep the same weights: {}."
    ): "{1}的{0}{2}转置存放，各层一致，正如 Conv1D 与 Linear 对同一权重的两种存放方式：{3}。",
    (
        "Transpose them when converting (`tensor.t().contiguous()`); loaded as they are, they fit only if square, and "
        "are wrong then."
    ): "转换时请转置（`tensor.t().contiguous()`）；若原样加载，只有方阵能装入，且结果是错的。",
    "{} of the {} {} of the reference, transposed: {} ({}).": "{1}的{0}{2}标杆对应矩阵的转置：{3}（{4}）。",
    "are those": "为",
    "is that": "为",
    (
        "Take the transposition out of the conversion, or put it in for all of them: `tensor.t().contiguous()`."
    ): "从转换中去掉该转置，或对全部矩阵都做转置：`tensor.t().contiguous()`。",
    (
        "The rows of {} are interleaved on one side and in halves on the other, head by head and in every layer: {}. "
        "Meta's Llama and Hugging Face keep queries and keys so for their ways of rotating."
    ): (
        "{}的行在一侧为交错排列，在另一侧为前后两半排列，逐个注意力头如此，各层一致：{}。"
        "Meta 的 Llama 与 Hugging Face 因旋转位置编码的做法不同，query 与 key 各按其中一种方式存放。"
    ),
    (
        "Nothing needs to be done where each file is used by its own code; a conversion has to reorder them."
    ): "若各文件只由各自的代码使用，则无需处理；做转换时必须重排。",
    "{}: the {}'s tensor is {}.": "{1}的 {0}：{2}。",
    (
        "Look at how the parts were put together (tensor-parallel shards, fused q, k and v, gate and up): split each "
        "shard into its parts first, then join equal parts."
    ): (
        "检查各部分的拼接方式（张量并行的分片、融合的 q、k、v、融合的 gate、up）："
        "先把每个分片拆成各部分，再拼接同类部分。"
    ),
    "blocks of {} {}": "以 {} {}为单位的块",
    "the reference with its {} in the order {}": "标杆的{}按 {} 的顺序排列",
    "{} of the {} {} in one tensor what the {} keeps apart ({}), {}{}.": (
        "{1}的 {0} 在一个张量中{2}{3}分开存放的部分（{4}），{5}{6}。"
    ),
    ", transposed": "，并经转置",
    " Its weight {}.": "其权重{}。",
    " Most layers hold them {}.": "多数层的存放方式：{}。",
    (
        "Put weight and bias together in the same order: split each shard into its parts first, then join equal parts."
    ): "权重与偏置须按相同顺序拼接：先把每个分片拆成各部分，再拼接同类部分。",
    (
        "Split it in this order where the parts are wanted; the model that reads it must expect the same order."
    ): "需要各部分时，按此顺序拆分；读取它的模型必须采用相同的顺序。",
    "one behind the other, in the order of their numbers": "按编号顺序依次排列",
    "one behind the other, in another order than that of their numbers": "依次排列，但不按编号顺序",
    "one behind the other: {}": "依次为：{}",
    "{} {} of {}": "{2} 的 {0} {1}",
    "by turns, {} times: {}": "轮流排列 {} 次：{}",
    "with its {} in another order": "其{}的顺序不同",
    "has them {}": "的各部分{}",
    # align/checkpoints/names.py
    "'{}' stands before the names of the {}": "{1}的名称前有 '{0}'",
    "{} in names of the {}": "{1}的名称中有 {0}",
    "wrappers: {}": "包装层：{}",
    "'{}' stands before the names of the candidate": "待比对侧的名称前有 '{}'",
    "'{}' stands before the names of the reference": "标杆侧的名称前有 '{}'",
    "'{}' of the reference is '{}' in the candidate": "标杆侧的 '{}' 在待比对侧为 '{}'",
    # align/checkpoints/optimizer_states.py
    "number {} ({}) is {}, its state {}": "编号 {}（{}）的形状为 {}，其状态的形状为 {}",
    (
        "In the {} of the {} {} cannot belong to the parameter of that number: {}."
    ): "{1}的 {0} 中，{2}不可能属于该编号的参数：{3}。",
    (
        "Build the optimizer from the parameters in the order in which it was saved: its states have numbers, no names."
    ): "请按保存时的参数顺序构建优化器：其状态只有编号，没有名称。",
    "{} has that of {}": "{} 中为编号 {} 的状态",
    (
        "In the {} {} of the candidate {} to another parameter in the reference: {}."
    ): "{0} 中，待比对侧的{1}在标杆侧{2}另一参数：{3}。",
    (
        "In the {} the states of {} of {} parameters have other values than in the reference."
    ): "{0} 中，{2} 个参数中有 {1} 个的状态数值与标杆侧不同。",
    "Check the steps at which both were saved.": "核对两者保存时的步数。",
    (
        "The {} holds states of {} in the reference and of {} in the candidate."
    ): "{} 在标杆侧含有 {}的状态，在待比对侧含有 {} 个参数的状态。",
    (
        "Compare the parameter groups of both: some parameters are not given to the optimizer, or got no gradient."
    ): "比较两侧的参数组：有些参数未交给优化器，或没有得到梯度。",
    "number {}": "编号 {}",
    "number {} ({})": "编号 {}（{}）",
    # align/checkpoints/relating.py
    "quantized: what its integers stand for is told by scales": "已量化：其整数的含义由缩放系数决定",
    "{} is not compared with {}": "{} 不与 {} 比对",
    "the numbers of {} are not read, only its bytes": "不解读 {} 的数值，只读取其字节",
    # align/checkpoints/telling.py
    "{} (N = {})": "{}（N = {}）",
    "{} like {}": "{} 个形如 {} 的",
    "all {} entries": "全部 {} 个条目",
    "the only entry": "唯一的条目",
    "{} of {}": "{}/{}",
    # align/checkpoints/ties.py
    (
        "Tie both as the reference does (`tie_word_embeddings` of the configuration), and save both tensors where "
        "they are not tied."
    ): "请像标杆一样让两者权重共享（配置项 `tie_word_embeddings`）；不共享时，两个张量都要保存。",
    "{} with the values of {}": "{}（数值同 {}）",
    (
        "Only the {} has {}: tied weights are saved once by some, under each name by others."
    ): "仅{}有 {}：共享的权重，有的工具只保存一次，有的在每个名称下各存一份。",
    (
        "Nothing needs to be done where the model ties them when it is built."
    ): "若模型在构建时会让它们权重共享，则无需处理。",
    (
        "{} and {} are the same values in the reference (tied weights), and differ in the {}: they were trained or "
        "loaded apart."
    ): "{} 与 {} 在标杆侧数值相同（权重共享），在{}则不同：两者被分开训练或分开加载。",
    (
        "{} and {} are the same values in the {}, and differ in the reference: they were tied on the way, and one of "
        "them is lost."
    ): "{} 与 {} 在{}数值相同，在标杆侧则不同：两者在中途变为权重共享，其中一个已丢失。",
    (
        "{} is left out in the {}, as if it were tied to {}, but in the {} its values are others: a model that ties "
        "them gets a wrong head."
    ): "{} 在{}缺失，如同与 {} 权重共享，但它在{}的数值并不相同：让两者共享的模型会得到错误的 head。",
    # align/checkpoints/values.py
    "{} of the {} {} {}: {}.": "{1}的{0}{2}{3}：{4}。",
    (
        "Look for a scale that the conversion folds into weights, or takes out: of attention, of a norm, of LoRA."
    ): "查找转换时并入权重或从权重中取出的缩放系数：注意力、归一化层或 LoRA 的。",
    (
        "the reference up to element {}, and zero in the {} elements from there to the end"
    ): "在第 {} 号元素之前与标杆相同，从该处到末尾的 {} 个元素为 0",
    (
        "Copy or save the file again and compare once more; where the same elements differ again, look at what writes "
        "them."
    ): "重新复制或保存该文件后再比对一次；若不同的仍是同样的元素，检查写出它们的环节。",
    "{} {} all zeros in the reference, and not in the {}: {}.": "{0}在标杆侧{1}全 0，在{2}则不是：{3}。",
    (
        "Look at what the reference is: weights that begin at zero, before training, or a copy that lost its values."
    ): "确认标杆是什么：训练前从 0 开始的权重，或丢失了数值的副本。",
    "all zeros, which the reference is not": "全为 0，而标杆不是",
    "in {}": "在 {}处",
    "finite, and that of the reference NaN or infinite {}": "为有限值，而标杆{}为 NaN 或无穷大",
    "in none": "没有",
    "NaN or infinite {}, that of the reference {}": "{}为 NaN 或无穷大，标杆{}",
    ("another draw of the same distribution, as two seeds give it"): "是同一分布的另一次抽样，如同由两个随机种子得到",
    "not related to those of the reference": "与标杆无关联",
    "far from those of the reference, though they follow them ({})": "与标杆相差很大，但仍随之变化（{}）",
    "as an initialisation makes them ({}), on one side only": "仅在一侧呈初始化所得的样子（{}）",
    "The values of {} of the candidate are {}: {}.": "待比对侧{}的数值{}：{}。",
    (
        "Check that both files belong to the same training, and that the candidate was saved after its weights were "
        "loaded."
    ): "确认两份文件属于同一次训练，且待比对侧是在加载权重之后保存的。",
    "relative L2 {} in the median": "相对 L2 误差的中位数为 {}",
    (
        "Look which file the run loads, and print what `load_state_dict(state, strict=False)` returns: it lists "
        "missing and unexpected keys. To begin with weights that are known, capture with "
        "`align capture --init-from REF.h5`."
    ): (
        "检查该运行加载的是哪个文件，并打印 `load_state_dict(state, strict=False)` 的返回值："
        "其中列出缺失与多余的键名。如需从已知的权重开始，请用 `align capture --init-from REF.h5` 采集。"
    ),
    (
        "The run did not begin with the checkpoint: of {} that can tell none holds its values ({})."
    ): "该运行不是从该 checkpoint 开始的：可用于判断的 {}中，没有一个与其数值相同（{}）。",
    (
        "The run began with a part of the checkpoint: {} that can tell hold its values, {} do not: {}."
    ): "该运行只从该 checkpoint 的一部分开始：可用于判断的{}与其数值相同，{} 个不同：{}。",
    "began with": "起始于",
    (
        "In {} the {} {} values near those of the reference, but not these{}: {}. Two steps of one training look so, "
        "or a conversion that computes."
    ): "{1}的{0}{2}与标杆接近但不相同的数值{3}：{4}。同一训练的两个不同步，或带有运算的转换，会呈现这种情形。",
    (
        "Check the steps at which both were saved; where it should be one step, look for arithmetic in the conversion."
    ): "核对两者保存时的步数；若本应为同一步，检查转换中是否有运算。",
    (
        "{} did not change at all while {} did: {}. They are frozen, or were not saved anew."
    ): "{0}完全没有变化（{2}），而另外 {1} 个有变化。它们被冻结，或未被重新保存。",
    (
        "Look whether these parameters are meant to be frozen (requires_grad=False, not in the optimizer)."
    ): "确认这些参数是否本应冻结（requires_grad=False、不在优化器中）。",
    (
        "`load_state_dict` refuses another shape even with strict=False: reshape it, or build the model with this size."
    ): "即使 strict=False，`load_state_dict` 也拒绝形状不同的张量：请改变其形状，或按此大小构建模型。",
    "shape {} in the reference, {} in the candidate": "形状在标杆侧为 {}，在待比对侧为 {}",
    "{}, with the same values": "{}，数值相同",
    (
        "{}; the first {} rows hold the same values, so one was padded or cut (a vocabulary, mostly)"
    ): "{}；前 {} 行数值相同，可见其中一侧被填充或截断（多为词表）",
    "no values to compare": "没有可比对的数值",
    "Not compared: {} ({}).": "未比对：{}（{}）。",
    (
        "Split them in the order of the model that reads them, and compare the parts."
    ): "请按读取它们的模型所用的顺序拆分，再比对各部分。",
    (
        "Save these tensors in a plain dense form, or capture with `align capture --keep init`."
    ): "请以普通的稠密形式保存这些张量，或用 `align capture --keep init` 采集。",
    # align/relations/changes.py
    "an added constant fits as well": "加上一个常数也同样符合",
    # align/relations/draws.py
    "uniform within 1/sqrt(fan in)": "均匀分布，界为 1/sqrt(fan in)",
    "uniform within sqrt(6/(fan in + fan out))": "均匀分布，界为 sqrt(6/(fan in + fan out))",
    "uniform within sqrt(6/fan in)": "均匀分布，界为 sqrt(6/fan in)",
    "uniform within sqrt(3/fan in)": "均匀分布，界为 sqrt(3/fan in)",
    "uniform within 1/sqrt(state)": "均匀分布，界为 1/sqrt(state)",
    "normal, deviation {}": "正态分布，标准差 {}",
    "normal, deviation sqrt(2/fan in)": "正态分布，标准差 sqrt(2/fan in)",
    "normal, deviation sqrt(2/(fan in + fan out))": "正态分布，标准差 sqrt(2/(fan in + fan out))",
    "normal, deviation 1/sqrt(fan in)": "正态分布，标准差 1/sqrt(fan in)",
    "normal, deviation 0.02/sqrt(2 layers)": "正态分布，标准差 0.02/sqrt(2 × 层数)",
    # align/relations/factors.py
    "{} x {}": "{} x {}",
    # align/relations/from_records.py
    "one of the records has no statistics": "其中一条记录没有统计量",
    # align/relations/from_sources.py, likeness.py, record_likeness.py
    "cut off, not rounded": "截断而非舍入",
    # align/relations/from_sources.py, rearrangements.py
    "rounded to {} too": "同时舍入到 {}",
    # align/relations/loading.py
    "the other tensors agree: only these were drawn anew": "其余张量一致：只有这些被重新抽样",
    # align/relations/phrases.py
    "both runs": "两侧",
    "the candidate": "待比对侧",
    "the reference": "标杆侧",
    " in {} of {} tensors": "（{1} 个张量中的 {0} 个）",
    "a multiple of the reference": "标杆的若干倍",
    "{} times the reference{}": "标杆的 {} 倍{}",
    "a multiple of those of the reference": "标杆的张量的若干倍",
    "slices along dimension {}": "沿第 {} 维的切片",
    "the {} of the reference in reversed order": "标杆的{}逆序排列",
    "the {} of the reference rolled by {}": "标杆的{}循环移动 {} 位",
    "the reference with {} {} exchanged": "标杆的{} {} 互换",
    (
        "the {} of the reference, split into {}, with the {} and the {} exchanged"
    ): "标杆的{}拆为 {}，并将其中的 {} 与 {} 互换",
    " of {}": "，每块 {}",
    (
        "the {} of the reference between stacked parts and {} groups of {} blocks{}"
    ): "标杆的{}在两种排列之间转换：各部分依次堆叠，与 {} 组、每组 {} 块{}",
    ", in blocks of {}": "，每 {} 个为一块",
    "the {} of the reference in another order{} ({} of {} moved)": "标杆的{0}重排{1}（{3} 个中有 {2} 个移动）",
    "{} from {} to {} of the flat tensor": "展平后第 {1} 至 {2} 号的 {0}",
    "{} {} to {}": "{0} {1} 至 {2}",
    "the slice along dimension {}": "沿第 {} 维的切片",
    "one run": "其中一侧",
    "relative L2 {}": "相对 L2 误差 {}",
    "equal in value, in {} in {}": "数值相同，{1}为 {0}",
    "what the reference holds rounded to {}": "标杆为其舍入到 {} 的结果",
    "the reference rounded to {}": "标杆舍入到 {} 的结果",
    "that of {}": "{} 的数值",
    "at its default initialisation in {} ({})": "{}为默认初始化（{}）",
    "equal in value, with other bits (-0.0 or another NaN)": "数值相同、比特不同（-0.0 或另一种 NaN）",
    "not finite in {}": "{}含非有限值",
    "all zeros in {}": "{}全为 0",
    "within noise, {}": "在本底以内，{}",
    "the reference with its sign flipped": "标杆取相反数",
    "the reference plus {} everywhere": "标杆的每个元素加 {}",
    "the values of the reference in another shape": "标杆的数值，形状不同",
    "the reference transposed by {}": "标杆按 {} 转置",
    "the reference in another order": "标杆重排",
    "the values of the reference in another order": "标杆的数值，顺序不同",
    "the reference but for {}": "与标杆相同，仅{}不同",
    "another draw of the same distribution": "同一分布的另一次抽样",
    "near the reference, {}": "与标杆接近，{}",
    "unrelated to the reference": "与标杆无关联",
    "of shape {}, {} in the reference": "形状为 {}，标杆为 {}",
    "of a relation that cannot be told": "与标杆的关系无法判断",
    "within noise": "在本底以内",
    "another draw of the same distributions": "同一组分布的另一次抽样",
    "at the defaults of a new model in {}": "{}为新建模型的默认值",
    "those of the reference under other names ({}, {})": "标杆的张量，名称不同（{}，{}）",
    "those of the reference with their sign flipped": "标杆的张量取相反数",
    "those of {}": "{} 的张量",
    "rounded to {} in {}": "{1}舍入到 {0}",
    "those of the reference in another order": "标杆的张量，顺序不同",
    "near those of the reference": "与标杆接近",
    "unrelated to those of the reference": "与标杆无关联",
    "not comparable": "无法比对",
    "{} is {}": "{} 为 {}",
    # align/relations/record_changes.py
    "by statistics, which see no order": "依据统计量，看不出顺序",
    "by statistics": "依据统计量",
    "the hashes differ": "校验值不同",
    "there is no hash": "没有校验值",
    (
        "{}, and statistics see neither signs nor order; capture with --detail sketch"
    ): "{}，而统计量看不出符号与顺序；请以 --detail sketch 采集",
    "the values, not their order, are known to be the same": "已知数值相同，顺序未知",
    "counted from the buckets that differ; which elements is not seen": "由不同的分桶推算，看不出是哪些元素",
    # align/relations/record_likeness.py
    "by shape and statistics; the order of the values is not seen": "依据形状与统计量，看不出数值的顺序",
    "a difference too small for a sketch, if not in bits only": "差异过小、sketch 无法分辨，或仅比特不同",
    # align/relations/relation.py
    "equal, bits differ": "数值相同、比特不同",
    "all zero": "全 0",
    "sign flipped": "符号相反",
    "few elements": "少量元素不同",
    "few slices": "少量切片不同",
    "not loaded": "未加载",
    "other seed": "随机种子不同",
    "other shape": "形状不同",
    "partially loaded": "部分加载",
    "permuted keys": "键名对应错乱",
    "some tensors": "部分张量不同",
    "nonfinite": "含非有限值",
    "cast": "精度转换",
    "stale": "旧版本",
    "scaled": "相差固定倍数",
    "offset": "相差常数",
    "reshaped": "形状改变",
    "transposed": "转置",
    "permuted": "重排",
    "reordered": "顺序不同",
    "drifted": "接近但不同",
    "unrelated": "无关联",
    # words that are put into these templates
    "run": "该运行",
    "has": "有",
    "have": "有",
    "holds": "持有",
    "hold": "持有",
    "belongs": "属于",
    "belong": "属于",
    "those": "数值",
    "that": "数值",
    "everywhere": "处处",
    "transposition": "转置",
    "dtype": "数据类型",
    "row": "行",
    "rows": "行",
    "column": "列",
    "columns": "列",
    "slices": "切片",
    "element": "元素",
    "elements": "元素",
    # counted things, with their measure words
    "{} entry": "{} 个条目",
    "{} entries": "{} 个条目",
    "{} matrix": "{} 个矩阵",
    "{} matrices": "{} 个矩阵",
    "{} buffer": "{} 个缓冲区",
    "{} buffers": "{} 个缓冲区",
}
