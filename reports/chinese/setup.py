"""What is said of setup, data, weights, curves and updates of two runs, and how numbers are written, in Chinese."""

from __future__ import annotations

from collections.abc import Mapping

SENTENCES: Mapping[str, str] = {
    # align/diagnosis/pair/setup/cpu_fallback.py
    " The first difference is made by such an operator: {} runs {}.": "首个差异由此类算子产生：{} 执行 {}。",
    "Operators that the device has no kernel for ran on the CPU: {}.{}": (
        "设备没有对应 kernel 的算子在 CPU 上执行：{}。{}"
    ),
    " ({} in the first captured step)": "（首个采集步中{}）",
    "{} in the {}{}": "{1}的 {0}{2}",
    (
        "They compute as the CPU does, and cost copies to and from it in every call. "
        "`TORCH_NPU_FALLBACK_CPU_DISABLE=1` stops at the first, to find its caller; replace it by operators that "
        "the device has."
    ): (
        "这些算子按 CPU 的方式计算，且每次调用都需与 CPU 之间拷贝数据。设置 `TORCH_NPU_FALLBACK_CPU_DISABLE=1` "
        "会在首个回退处报错停止，据此找到调用位置；将其替换为设备支持的算子。"
    ),
    (
        "They compute as the CPU does, and cost copies to and from it in every call; replace them where that "
        "takes time."
    ): "这些算子按 CPU 的方式计算，且每次调用都需与 CPU 之间拷贝数据；在耗时明显处替换它们。",
    "Look at what is copied for it (dtype, layout, views) before its kernel. {}": (
        "先检查为该算子拷贝的数据（数据类型、内存布局、视图），再检查其 kernel。{}"
    ),
    # align/diagnosis/pair/setup/dtype_differs.py
    "; {} changed dtype too": "；{}的数据类型也不同",
    "{}: {} is {} in the reference and {} in the candidate{}.": "{}：{} 在标杆侧为 {}，在待比对侧为 {}{}。",
    "Give both runs one dtype there: autocast and its dtype, casts in the model, the dtype of the checkpoint.": (
        "将两侧该处的数据类型设为一致：检查 autocast 及其类型、模型中的类型转换、checkpoint 的数据类型。"
    ),
    # align/diagnosis/pair/setup/explaining.py
    "another shape": "形状不同",
    " (relative L2 {})": "（相对 L2 误差 {}）",
    "; {} made it": "；由{}产生",
    "{}: {} is the first tensor that differs{}{}.": "{}：{} 是首个出现差异的张量{}{}。",
    # align/diagnosis/pair/setup/hyperparameters.py
    "Give both runs one optimizer with the same settings.": "两侧使用同一优化器和相同的设置。",
    " All gradients of the step agree: the runs part in the optimizer.": (
        "该步所有梯度一致：两次运行从优化器处开始分离。"
    ),
    " {} differ.": "{}也不同。",
    "The optimizers are set differently in {}: {}.{}{}": "{}中两侧优化器的设置不同：{}。{}{}",
    "{} of {} parameters": "{1} 个参数中的 {0} 个",
    "first {}": "首个为 {}",
    "{} is {} in the reference and {} in the candidate for {} ({})": (
        "对于 {3}（{4}），{0} 在标杆侧为 {1}，在待比对侧为 {2}"
    ),
    " All gradients agree; the parameters part here.": "所有梯度一致；参数在此处分离。",
    " Both may compute one formula; the updates were compared where they were captured.": (
        "两者的计算公式可能相同；凡采集到更新的地方均已比较更新本身。"
    ),
    "The optimizer of {} is {} in the reference and {} in the candidate.{}": (
        "{}的优化器在标杆侧为 {}，在待比对侧为 {}。{}"
    ),
    "The settings of the optimizers differ: {} in the reference, {} in the candidate.": (
        "优化器设置不同：标杆侧为 {}，待比对侧为 {}。"
    ),
    # align/diagnosis/pair/setup/layout_differs.py
    (
        "{} of {} has equal values in both runs and lies in memory {} in the reference and {} in the candidate. "
        "{} It holds the values of the reference in another order, as an operator makes them that reads memory "
        "and not the logical order."
    ): (
        "{1} 的 {0} 在两次运行中数值相同，但内存布局在标杆侧为 {2}，在待比对侧为 {3}。"
        "{4}其结果为标杆的数值按另一顺序排列：若算子按内存顺序而非逻辑顺序读取，就会得到这样的结果。"
    ),
    (
        "Hand {} tensors of one layout, for example with `.contiguous()`, and compare again; an operator that "
        "needs it should ask for it itself."
    ): "向 {} 传入布局相同的张量（例如调用 `.contiguous()`），再重新比对；有此要求的算子应自行处理布局。",
    # align/diagnosis/pair/setup/module_config.py
    "{} has {} in the reference and {} in the candidate": "{0} 在标杆侧设置为 {1}，在待比对侧为 {2}",
    "{} has {} in the reference, {} in the candidate": "{0} 在标杆侧设置为 {1}，在待比对侧设置为 {2}",
    "{} {} likewise": "{}同样{}",
    "{} {} too": "{}也{}",
    "Build both models from one configuration, with the same {}.": "用同一配置构建两侧的模型，{} 取相同的值。",
    "Build {} with the same {} in both runs.": "在两次运行中构建 {} 时，{} 取相同的值。",
    " Or capture both with `align capture --no-dropout`.": "也可以在两侧均使用 `align capture --no-dropout` 采集。",
    "Nothing that was compared differs because of it. {}": "所比较的内容均未因此出现差异。{}",
    # align/diagnosis/pair/setup/operands_cut_off.py
    (
        "Matrix products of the {} are too small by {} throughout (in {} of {} modules): its device cuts "
        "operands off where the other rounds them. No module is at fault."
    ): (
        "{0}的矩阵乘结果整体偏小 {1}（{3} 个模块中的 {2} 个）：该侧设备对操作数直接截断，另一侧则作舍入。"
        "模块本身没有问题。"
    ),
    "Nothing to do. Where it matters, compute in full float32: TF32 and HF32 off.": (
        "无需处理。如该差异有影响，请用完整的 float32 计算：关闭 TF32 与 HF32。"
    ),
    # align/diagnosis/pair/setup/other_class.py
    " The candidate's is {}.": "两侧关系：{}。",
    "{} is a {} in the reference and a {} in the candidate. {}{}": "{} 在标杆侧为 {}，在待比对侧为 {}。{}{}",
    (
        "Build {} of one class in both runs, or compare the code of both: factors, offsets, the order of "
        "operations, what is computed in float32. {}"
    ): "在两次运行中用同一个类构建 {}，或对照两侧代码：系数、偏移量、运算顺序、哪些部分以 float32 计算。{}",
    # align/diagnosis/pair/setup/precision_mode.py
    "{} {} against {}": "{} 分别为 {} 与 {}",
    "The runs compute in different precision: {} (reference against candidate).{}": (
        "两次运行的计算精度不同：{}（先标杆侧，后待比对侧）。{}"
    ),
    (
        "Give both runs one precision before judging small differences: the same autocast dtype, TF32 and HF32 "
        "both off or both on."
    ): "在判断微小差异之前，先统一两侧的精度：autocast 类型相同，TF32 与 HF32 同时关闭或同时开启。",
    "matrix products": "矩阵乘",
    " It is first seen in {}, at {}: relative L2 {}, as such operands leave it.": (
        "首次出现处为 {1}（{0}）：相对 L2 误差 {2}，与此类操作数造成的差异相符。"
    ),
    # align/diagnosis/pair/setup/same_start.py
    "deterministic algorithms were on": "开启了确定性算法",
    "dropout was off": "关闭了 dropout",
    "Load one checkpoint into what was not taken, or seed both runs alike (`align capture --seed 1`).": (
        "对未取自采集文件的部分加载同一 checkpoint，或在两侧设置相同的随机种子（`align capture --seed 1`）。"
    ),
    (
        "What the script makes itself (noise, batches without a DataLoader) is not taken: seed both runs alike "
        "(`align capture --seed 1`), or draw it on the CPU."
    ): (
        "脚本自行生成的内容（噪声、不经过 DataLoader 的批次）不会取自采集文件：在两侧设置相同的随机种子（`align "
        "capture --seed 1`），或在 CPU 上生成。"
    ),
    "The runs were not made comparable alike: {}.": "两次运行的可比条件不一致：{}。",
    "{} in the {} only": "仅{1}{0}",
    "initial weights": "初始权重",
    "the {} took its {} from {}, and they are not those of the {}": "{}的{}取自 {}，与{}的不同",
    "Take them from the capture that is compared with: `align capture {} {}`.": (
        "应取自所比对的采集文件：`align capture {} {}`。"
    ),
    "the {} was to take its {} from {} and found none of its own there": "{}的{}应取自 {}，但该文件中没有对应的内容",
    "the {} took its {} from {}, and some that differ are its own": "{}的{}取自 {}，而存在差异的部分为其自身所有",
    "Run both in the same parallel way before judging losses and metrics: wrapper, processes, batch of each.": (
        "在判断 loss 与评测指标之前，两侧先采用相同的并行方式：包装器、进程数、每个进程的批大小。"
    ),
    "the reference ran in {} and the candidate in {}": "标杆侧以 {} 运行，待比对侧以 {} 运行",
    "no parallel wrapper": "无并行包装",
    "the model runs in {} in the reference and in {} in the candidate": "模型的并行包装在标杆侧为 {}，在待比对侧为 {}",
    "Capture the {} with `align capture --no-dropout` too.": "{}也使用 `align capture --no-dropout` 采集。",
    "Capture the {} with `align capture --deterministic` too.": "{}也使用 `align capture --deterministic` 采集。",
    # align/diagnosis/pair/setup/shape_differs.py
    "{}: {} has shape {} in the reference and {} in the candidate{}.": (
        "{}：{} 的形状在标杆侧为 {}，在待比对侧为 {}{}。"
    ),
    "; {} {} in shape too": "；{}的形状也{}",
    "Build both models from one configuration, or pair renamed modules with `align diff --rename OLD=NEW`.": (
        "用同一配置构建两侧的模型；若模块改了名，用 `align diff --rename OLD=NEW` 建立映射。"
    ),
    "Feed both runs batches of one shape: batch size, padding, sequence length, the last batch.": (
        "两侧输入相同形状的批次：检查批大小、填充、序列长度与最后一个批次。"
    ),
    "Compare how both runs make {} of {}, and what its code expects of the shape.": (
        "对照两次运行如何生成 {1} 的 {0}，以及其代码对形状的要求。"
    ),
    # align/diagnosis/pair/setup/structure_differs.py
    (
        "Build both models from one configuration; pair renamed modules with `align diff --rename OLD=NEW` or "
        "`--map FILE`."
    ): "用同一配置构建两侧的模型；若模块改了名，用 `align diff --rename OLD=NEW` 或 `--map FILE` 建立映射。",
    "Compare how often both scripts call the model and its modules: warm-up passes, repeated calls, micro-batches.": (
        "对照两侧脚本调用模型及其模块的次数：预热、重复调用、微批次。"
    ),
    (
        "Compare how many micro-batches both scripts accumulate for one optimizer.step, and whether one of them "
        "leaves an update out: a condition, a last incomplete group, a step that raises or is skipped."
    ): (
        "对照两侧脚本每次 optimizer.step 累积的微批次数，以及其中一侧是否少做了一次更新：条件分支、"
        "末尾不完整的累积组、抛出异常或被跳过的步。"
    ),
    "The structure of the runs differs: {}.": "两次运行的结构不同：{}。",
    "Nothing that could be compared differs because of it. {}": "所比较的内容均未因此出现差异。{}",
    (
        "{} has {} in the reference and {} in the candidate before the optimizer steps, and gradients add up "
        "over all of them: {} is the first that differs ({})."
    ): "{0}在优化器更新之前，标杆侧有{1}，待比对侧有{2}，而梯度在所有微批次上累加：{3} 是首个出现差异的张量（{4}）。",
    "{} only in the {} (such as {})": "{}仅存在于{}（例如 {}）",
    (
        "Parameters that only one run has draw random numbers too, so all that are drawn after them differ, with "
        "the same seed. No module was judged."
    ): "仅一侧具有的参数同样会消耗随机数，因此即使种子相同，在其之后初始化的参数也全部不同。未对任何模块作出判断。",
    "is where {} can run": "是 {} 可运行之处",
    "runs {} in the {} only": "仅在{1}运行了 {0}",
    "{}: {} is the first tensor that differs ({}), and {}, which makes it, {}.": (
        "{0}：{1} 是首个出现差异的张量（{2}），产生它的{3}{4}。"
    ),
    "{} only of the {} (such as {})": "{}仅存在于{}（例如 {}）",
    "the {} {} only of the {}": "{0} {1} 仅存在于{2}",
    (
        "The captures kept different things, with other options: {}. This part was not compared; it is no "
        "difference between the runs."
    ): "两份采集文件的选项不同，保留的内容也不同：{}。这部分未作比较，不属于两次运行之间的差异。",
    "Capture both runs with the same --modules and --phases to compare all of it.": (
        "两侧使用相同的 --modules 与 --phases 采集，即可全部比较。"
    ),
    "micro-step {} of {}": "{1}的 micro {0}",
    "call {} of {} in {}": "{2}中 {1} 的调用 {0}",
    # align/diagnosis/pair/setup/train_eval_mode.py
    "{} in the reference and {} in the candidate": "标杆侧为 {}，待比对侧为 {}",
    (
        "In {} {} drops nothing in the {}, as in evaluation mode: its {} is {}, and was changed since the "
        "capture began. {}"
    ): "{0}中 {1} 在{2}未丢弃任何元素，如同评估模式：其 {3}（{4}）在采集开始后被修改过。{5}",
    (
        "Look for code that sets {} of {} for an evaluation and does not set it back; let it follow the training "
        "mode of the module (`self.training`) in both runs."
    ): "查找为评估而设置 {1} 的 {0} 之后未还原的代码；两次运行均应使其跟随模块的训练模式（`self.training`）。",
    "; so {} {}": "；{1}{0}如此",
    "In {} {} runs in {} mode in the reference and in {} mode in the candidate{}.": (
        "{}：{} 在标杆侧处于{}模式，在待比对侧处于{}模式{}。"
    ),
    (
        "Call train() on the model of the {} before its steps, or freeze the same modules with eval() in both: "
        "dropout and batch norm compute something else in evaluation mode."
    ): (
        "在{}的各步之前对模型调用 train()，或在两侧用 eval() 固定相同的模块：dropout 与 batch norm "
        "在评估模式下的计算不同。"
    ),
    # align/diagnosis/pair/data/batch_relation.py
    (
        "Compare how both scripts normalise this input: mean and standard deviation, values of 0 to 255 or of 0 "
        "to 1, a normalisation that is done twice or in one script only."
    ): "对照两侧脚本对该输入的归一化方式：均值与标准差，取值范围是 0–255 还是 0–1，是否重复归一化或仅一侧归一化。",
    (
        "Compare how both scripts read and lay out this input: order of the colour channels (RGB, BGR), channels "
        "first or last, transposed or mirrored samples."
    ): "对照两侧脚本对该输入的读取与排布方式：颜色通道顺序（RGB、BGR）、通道在前还是在后、样本是否被转置或镜像。",
    "the same numbers in another order": "顺序不同的相同数值",
    "{} times the reference's": "标杆的 {} 倍",
    "{} times ": "{} 倍的",
    "{}the reference's {} {}": "{}标杆输入 {} {}",
    # align/diagnosis/pair/data/data_differs.py
    "{}: the logits agree, the targets handed to the loss differ. No module is to blame.": (
        "{}：logits 一致，而传入 loss 的标签不同。差异不归因于任何模块。"
    ),
    "Compare how both scripts make the targets: label shift, padding, ignored index, collation.": (
        "对照两侧脚本生成标签的方式：标签移位、填充、忽略索引、collate。"
    ),
    ": the candidate's {} is {}": "：待比对侧的 {} 为{}",
    "The batches of {} differ ({}){}{}; {}.": "{}的批次不同（{}）{}{}；{}。",
    ", while {} agree": "，而 {} 一致",
    ", while the DataLoaders hand out equal ones": "，而 DataLoader 给出的批次相同",
    " in {} of {}, the others stand in order": "，其中{1}里有 {0} 个不同，其余顺序一致",
    (
        "The samples are the same, {} was made otherwise from them: compare how both scripts collate, pad, pack "
        "and mask (attention mask, position ids, segment ids)."
    ): (
        "样本相同，但由样本生成的 {} 不同：对照两侧脚本的 collate、填充、拼接（packing）与掩码方式（attention "
        "mask、position ids、segment ids）。"
    ),
    (
        "Compare what the scripts do to a batch between the DataLoader and the model: normalisation, "
        "augmentation on the device, noise, masks."
    ): "对照两侧脚本在 DataLoader 与模型之间对批次的处理：归一化、设备上的数据增强、噪声、掩码。",
    (
        "Feed both runs the same batches: {}set the same sampler seed, number of workers, shuffling and "
        "preprocessing. Look at the first differing batch with `align show`."
    ): "两侧输入相同的批次：{}设置相同的采样器种子、worker 数、打乱方式与预处理。用 `align show` 查看首个不同的批次。",
    # align/diagnosis/pair/data/data_order.py
    "set the same shuffling, sampler seed, number of workers and number of ranks in both scripts, and seed ": (
        "在两侧脚本中设置相同的打乱方式、采样器种子、worker 数与卡数，并在"
    ),
    " Where all of that agrees, sort what the dataset lists: os.listdir and glob promise no order.": (
        "若以上均一致，则对数据集列出的文件排序：os.listdir 与 glob 不保证顺序。"
    ),
    (
        "Feed both runs the same batches: {}{}before the DataLoader is read (torch.manual_seed, `generator=` of "
        "the DataLoader, or `align capture --seed 1` where the script sets no seed).{}"
    ): (
        "两侧输入相同的批次：{}{}读取 DataLoader 之前设置随机种子（torch.manual_seed、DataLoader 的 `generator=`，"
        "或在脚本未设置种子时使用 `align capture --seed 1`）。{}"
    ),
    "from {} on": "从{}起",
    "The batches hold the same samples in another order: {} of {} stand elsewhere in their batch in {}": (
        "各批次包含相同的样本，但顺序不同：{2}的 {1} 个样本中，有 {0} 个在批次内的位置不同"
    ),
    "The runs read the same {} in {}, in another order {}": "两次运行在{1}读取了相同的 {0}，{2}顺序不同",
    (
        "The runs read the data in another order {}: {} of the candidate's {} in {} are among the reference's, "
        "at other places"
    ): "两次运行{0}读取数据的顺序不同：{3}中待比对侧的 {2} 里有 {1} 个也出现在标杆侧，但位置不同",
    "The runs read other samples of one dataset {}: none of the candidate's {} in {} is among the reference's": (
        "两次运行{0}从同一数据集读取了不同的样本：{2}中待比对侧的 {1} 个样本均未出现在标杆侧"
    ),
    # align/diagnosis/pair/data/data_shifted.py
    "The {} is {} ahead of the {} in the same data: {} of {} agree when moved by that; {}.": (
        "{0}在同一数据中比{2}超前 {1}：{4}中有 {3} 在错位后一致；{5}。"
    ),
    (
        "Look for a batch that the {} draws before it trains (a sanity check, the shape of an example, a "
        "warm-up), or for a resumed {} that skips other batches than the {}. To compare the models as they are, "
        "{}."
    ): (
        "查找{0}在训练之前取用的批次（试运行检查、获取样例形状、预热），或断点续训时{1}跳过的批次是否与{2}不同。"
        "如需直接比对两侧模型，{3}。"
    ),
    "let both begin at one sample": "让两侧从同一样本开始",
    # align/diagnosis/pair/data/dropout_mask.py
    (
        "{}: {} drops other elements in each run ({} and {} are zero), so all that follows differs. No module is "
        "to blame."
    ): "{}：{} 在两次运行中丢弃的元素不同（零值占比分别为 {} 与 {}），因此其后全部不同。差异不归因于任何模块。",
    (
        "Capture both runs with `align capture --no-dropout`, or set the dropout rate to 0: two kinds of device "
        "never draw the same mask."
    ): "两侧均使用 `align capture --no-dropout` 采集，或将 dropout 概率设为 0：两种设备永远不会得到相同的掩码。",
    (
        "{}: {} is the first tensor that differs ({}). {} drops elements inside at a rate of {}, and two kinds "
        "of device never draw the same mask: whether anything else in it differs cannot be told before dropout "
        "is off."
    ): (
        "{0}：{1} 是首个出现差异的张量（{2}）。{3} 内部以概率 {4} 丢弃元素，而两种设备永远不会得到相同的掩码："
        "关闭 dropout 之前，无法判断其中是否还有其他差异。"
    ),
    "Capture both runs with `align capture --no-dropout`, or set the dropout rate to 0.": (
        "两侧均使用 `align capture --no-dropout` 采集，或将 dropout 概率设为 0。"
    ),
    # align/diagnosis/pair/data/duplicate_samples.py
    "The {} trains on {} again that the {} reads once, of {} in {}; {}.{}": (
        "{4}的 {3} 个样本中，{0}重复训练了 {1}，而{2}只读取一次；{5}。{6}"
    ),
    "{} To compare the models as they are, {}.": "{}如需直接比对两侧模型，{}。",
    "read each sample once in both runs": "两次运行均只读取每个样本一次",
    (
        "Each of the {} workers reads the whole IterableDataset unless the dataset gives it a part "
        "(torch.utils.data.get_worker_info())."
    ): (
        "除非数据集为各 worker 划分数据（torch.utils.data.get_worker_info()），{} 个 worker "
        "中的每一个都会读取整个 IterableDataset。"
    ),
    (
        "Look at the sampler: with replacement, padded to a multiple of the ranks, or a dataset whose index "
        "gives one sample twice."
    ): "检查采样器：有放回采样、按卡数补齐，或数据集的索引重复给出同一样本。",
    # align/diagnosis/pair/data/given.py
    "length of the dataset": "数据集长度",
    " from there on": "从该处起",
    "the model was not judged{}": "{}未对模型作出判断",
    "{} {} and {}": "{} 分别为 {} 与 {}",
    " The DataLoaders are set differently: {}.": "两侧 DataLoader 的设置不同：{}。",
    (
        "capture the reference with `align capture --keep batches`, the candidate with `align capture "
        "--batches-from REF.h5`"
    ): "标杆侧用 `align capture --keep batches` 采集，待比对侧用 `align capture --batches-from REF.h5` 采集",
    # align/diagnosis/pair/data/labels_differ.py
    "the targets handed to the loss": "传入 loss 的标签",
    "the labels ({})": "标签（{}）",
    "the logits agree": "logits 一致",
    "the other inputs agree": "其他输入一致",
    "{}: {}, {} differ{}. No module is to blame.": "{}：{}，而{}不同{}。差异不归因于任何模块。",
    "{} of {}": "{}/{}",
    "one place": "1 个位置",
    "{} places": "{} 个位置",
    (
        ": they are shifted by {} along the sequence (the candidate's are those that stand {} {} in the "
        "reference, {} agree)"
    ): "：标签沿序列错位 {0}（待比对侧的标签等于标杆侧{2} {1}的标签，{3} 一致）",
    (
        "Shift the labels once: either the data collator does it, or the model or its loss (models of "
        "transformers shift inside when they are given labels). Take the other shift out of the script."
    ): (
        "标签只应移位一次：由 data collator 移位，或由模型或其 loss 移位（transformers "
        "的模型在传入标签时于内部移位）。去掉脚本中多余的移位。"
    ),
    # align/diagnosis/pair/data/missing_samples.py
    "The {} leaves out {} that the {} trains on in {}, the {} others stand in the same order; {}.{}": (
        "{3}中，{0}缺失了{2}用于训练的 {1}，其余 {4} 个样本顺序一致；{5}。{6}"
    ),
    (
        "Look for what passes samples over in the {} alone: a filter (length, empty text, images that cannot be "
        "read), drop_last, a part of the data that a worker or rank gets. To compare the models as they are, {}."
    ): (
        "查找仅{}会略过样本的原因：过滤条件（长度、空文本、无法读取的图片）、drop_last、worker 或 rank "
        "分到的数据。如需直接比对两侧模型，{}。"
    ),
    "give both runs the same files": "让两次运行读取相同的文件",
    # align/diagnosis/pair/data/rng_mismatch.py
    "Python's random": "Python 的 random",
    "the device": "设备",
    "torch (CPU)": "torch（CPU）",
    "after {} has begun": "在{}开始之后",
    "before {}": "在{}之前",
    (
        "The seeds agree, but the generator{} of {} differ{} as {} begins: {} one run draws numbers that the "
        "other does not. {}. No module is to blame."
    ): (
        "种子一致，但{3}开始时 {1} 的随机数生成器{0}状态不同{2}：{4}，一侧消耗了另一侧未消耗的随机数。{5}。"
        "差异不归因于任何模块。"
    ),
    (
        "Look for what only one script draws: `iter(loader)` takes a number from torch's generator unless the "
        "DataLoader has a `generator=` of its own; so do an initialisation, a sanity check, an augmentation. "
        "`align capture --phases rng,input --steps 0:` shows in which step the states part. {}"
    ): (
        "查找仅一侧脚本消耗的随机数：除非 DataLoader 自带 `generator=`，`iter(loader)` 会从 torch "
        "的生成器取一个数；初始化、试运行检查、数据增强同样会消耗随机数。`align capture --phases rng,input "
        "--steps 0:` 可显示状态从哪一步开始分离。{}"
    ),
    "{}: {} then drops other elements": "{}：{} 随后丢弃的元素不同",
    "{}: {} then drops other elements inside": "{}：{} 随后在内部丢弃的元素不同",
    "The data come in another order from {} on": "从{}起数据顺序不同",
    # align/diagnosis/pair/data/seed_mismatch.py
    "state of ": "随机数状态 ",
    "the {} is {} and {}": "{} 分别为 {} 与 {}",
    "the initial weights look like two draws of one distribution{}": "初始权重像是同一分布的两次随机初始化{}",
    "; no module can be blamed before the seeds agree": "；随机种子一致之前，不能将差异归因于任何模块",
    "The runs draw different random numbers ({}){}.": "两次运行的随机数不一致（{}）{}。",
    (
        "Seed both runs the same, before the model is built and the data are shuffled: torch.manual_seed, "
        "random.seed and numpy.random.seed in the script, or `align capture --seed 1` where the script sets no "
        "seed. Devices draw different numbers from one seed. {}"
    ): (
        "两侧在构建模型与打乱数据之前设置相同的随机种子：脚本中的 torch.manual_seed、random.seed 与 "
        "numpy.random.seed，或在脚本未设置种子时使用 `align capture --seed 1`。"
        "同一种子在不同设备上得到的随机数不同。{}"
    ),
    "{} seed": "{} 种子",
    ", though the last seed of torch is {} in both": "，尽管两侧 torch 的最后一个种子均为 {}",
    # align/diagnosis/pair/weights/buffer_differs.py
    (
        "Tensors that no optimizer trains (buffers, frozen parameters) differ: {}. In the candidate {}. No "
        "module was judged."
    ): "不由任何优化器训练的张量（缓冲区、冻结参数）不同：{}。待比对侧{}。未对任何模块作出判断。",
    (
        "Make and keep tables in float32 in both runs: `model.to(torch.bfloat16)` casts buffers too, and an "
        "angle of position times frequency multiplies the rounding by the position."
    ): (
        "两次运行均以 float32 生成并保存这些表：`model.to(torch.bfloat16)` 也会转换缓冲区，"
        "而位置乘以频率得到的角度会使舍入误差按位置放大。"
    ),
    "Compare how both scripts make these tables (base, length, dtype), and whether running statistics were loaded.": (
        "对照两侧脚本生成这些表的方式（基数、长度、数据类型），以及是否加载了滑动统计量。"
    ),
    "{}.{}, which no optimizer trains, is {} (relative L2 {}). {}": (
        "{0}.{1} 不由任何优化器训练，其数据类型在{2}（相对 L2 误差 {3}）。{4}"
    ),
    # align/diagnosis/pair/weights/checkpoint_keys.py
    "Rename the keys as the model names them": "按模型的命名修改键名",
    "{} before loading": "加载前{}",
    (
        "In the {} the keys of the checkpoint are not those of the model: {}. {} keep what they were drawn as. "
        "No module was judged."
    ): "{}中 checkpoint 的键名与模型不符：{}。{}保持初始化数值。未对任何模块作出判断。",
    "{}, and load with `strict=True`, which refuses keys that do not fit. {}": (
        "{}，并使用 `strict=True` 加载，使不匹配的键报错。{}"
    ),
    "{} is {} there": "{} 在该侧为 {}",
    "The candidate holds weights of the reference under other names: {}. No module was judged.": (
        "待比对侧的权重与标杆相同，但名称不同：{}。未对任何模块作出判断。"
    ),
    (
        "Compare how both scripts map the keys of the checkpoint to the modules (numbers of layers, exchanged "
        "names, sorted lists); of weights that are drawn, the order in which the modules are made. {}"
    ): (
        "对照两侧脚本如何将 checkpoint 的键映射到模块（层编号、名称互换、列表排序）；若权重为随机初始化，"
        "则对照模块的创建顺序。{}"
    ),
    # align/diagnosis/pair/weights/checkpoint_not_loaded.py
    (
        "The {} has not loaded the weights that the {} starts from: {} differ, and {} of them stand there as a "
        "new model is drawn (gains 1, biases 0, fresh matrices). No module was judged."
    ): (
        "{0}未加载{1}的初始权重：{2}不同，其中 {3} 个在该侧为新建模型的初始化数值（增益为 1、偏置为 0、"
        "矩阵为随机值）。未对任何模块作出判断。"
    ),
    (
        "See whether the {} calls load_state_dict at all, on this model, and what it answers: missing and "
        "unexpected keys, `strict=False`. {}"
    ): "检查{}是否确实对该模型调用了 load_state_dict，以及其返回值：missing 与 unexpected 键、`strict=False`。{}",
    # align/diagnosis/pair/weights/checkpoint_partial.py
    "The {} has loaded a part of the weights only: {} equal, {} {} drawn anew there. No module was judged.": (
        "{0}只加载了部分权重：{1}相同的数值，{2}在该侧{3}重新初始化。未对任何模块作出判断。"
    ),
    (
        "Compare the names of these tensors with the keys of the checkpoint: `strict=False`, renamed or new "
        "modules and other shapes leave them out. Print what load_state_dict returns in the {}. {}"
    ): (
        "将这些张量的名称与 checkpoint 的键对照：`strict=False`、改名或新增的模块以及不同的形状都会使其未被加载。"
        "打印{}中 load_state_dict 的返回值。{}"
    ),
    # align/diagnosis/pair/weights/initial_weights.py
    (
        "{}: {} is the first tensor that differs: {}{}. Its inputs agree; whether its weights do is not known, "
        "as {} was first called in {}, after the initial weights had been captured."
    ): (
        "{0}：{1} 是首个出现差异的张量：{2}{3}。其输入一致；其权重是否一致未知，因为 {4} 在{5}才首次被调用，"
        "此时初始权重已采集完毕。"
    ),
    (
        "Compare the weights of {} in both runs: build it from one seed (`align capture --seed 1`), or load one "
        "checkpoint into it in both. `--init-from` does not reach it. Where they are equal, compare the settings "
        "and the operators of {}."
    ): (
        "对照两次运行中 {0} 的权重：用同一种子构建（`align capture --seed 1`），或在两侧加载同一 checkpoint。"
        "`--init-from` 对其不起作用。若权重相同，则对照 {1} 的设置与算子。"
    ),
    "The initial weights differ in {} of {}{}. No module was judged.": (
        "{1}中有 {0} 个初始权重不同{2}。未对任何模块作出判断。"
    ),
    "Start both runs from one set of weights: {}load the same checkpoint in both. Then compare again.": (
        "两侧从同一组权重开始：{}在两侧加载同一 checkpoint。然后重新比对。"
    ),
    "they look like another draw of the same distribution": "像是同一分布的另一次随机初始化",
    "the vectors of the {} are at their defaults, as if no checkpoint had been loaded there": (
        "{}的向量均为默认值，如同未加载 checkpoint"
    ),
    "first {}{}": "首个为 {}{}",
    "{} {} of another format ({}), their values equal": "{}{}另一种格式（{}），数值相同",
    " but for its rounding; the largest difference is {} in {}.": "，仅相差舍入；最大差异为 {}，位于 {}。",
    "{} {} of another format ({}) with equal values.": "{}{}另一种格式（{}），数值相同。",
    "Nothing to do where that is meant; build both models in one format to compare them more closely.": (
        "若为有意设置，则无需处理；如需更精细的比对，请以同一格式构建两侧的模型。"
    ),
    "{} {} equal but for rounding; the largest difference is {} in {}. It is part of the floor.": (
        "{0}{1}除舍入外相同的数值；最大差异为 {2}，位于 {3}。该差异已计入本底。"
    ),
    "Nothing to do; load one file on both sides to make them equal bit for bit.": (
        "无需处理；两侧加载同一文件即可逐位相同。"
    ),
    # align/diagnosis/pair/weights/tied_weight_broken.py
    ", and {} likewise": "，{}同样如此",
    "In the {} {} is a copy of {}, in the {} it is a tensor of its own{}. No module was judged.": (
        "{0}中 {1} 是 {2} 的副本，在{3}则为独立张量{4}。未对任何模块作出判断。"
    ),
    (
        "See whether the checkpoint holds {} and whether both scripts load it: with `tie_word_embeddings` it is "
        "left out when it is saved, and made from the other one when it is loaded. {}"
    ): (
        "检查 checkpoint 是否包含 {}，以及两侧脚本是否均加载它：启用 `tie_word_embeddings` 时，"
        "保存时会略去该权重，加载时由另一权重得到。{}"
    ),
    (
        "{} is a tensor of its own in the {}; in the {} {} has none under its name: it uses that of another "
        "module (tied weights) or makes it. {}"
    ): "{0} 在{1}为独立张量；在{2}，{3} 自身没有该张量：它使用另一模块的张量（权重共享）或自行生成。{4}",
    (
        "Tie {} to the same module in both runs, or in neither (`tie_word_embeddings`, `head.weight = "
        "embedding.weight`), after the weights have been loaded."
    ): (
        "加载权重之后，两次运行均将 {} 与同一模块共享权重，或均不共享（`tie_word_embeddings`、`head.weight = "
        "embedding.weight`）。"
    ),
    # align/diagnosis/pair/weights/unlike.py
    (
        "capture the reference with `align capture --keep init`, the candidate with `align capture --init-from "
        "REF.h5`; or "
    ): "标杆侧用 `align capture --keep init` 采集，待比对侧用 `align capture --init-from REF.h5` 采集；或",
    "{} of {} ({})": "{1}中的 {0} 个（{2}）",
    "one run": "其中一侧",
    "To compare the models as they are, {}load the same checkpoint in both.": (
        "如需直接比对两侧模型，{}在两侧加载同一 checkpoint。"
    ),
    # align/diagnosis/pair/weights/weight_cast.py
    (
        "Load the checkpoint in the dtype that it was saved in, and cast in both runs at the same point "
        "(`torch_dtype=`, `model.to(dtype)`)."
    ): "按 checkpoint 保存时的数据类型加载，并在两次运行的同一位置转换类型（`torch_dtype=`、`model.to(dtype)`）。",
    "Initial weights went through a shorter format in one run: {}. In the candidate {}. No module was judged.": (
        "一侧的初始权重经过了低精度格式：{}。待比对侧{}。未对任何模块作出判断。"
    ),
    # align/diagnosis/pair/weights/weight_corrupted.py
    (
        "Compare the files that were loaded by their checksum (`align checkpoint A B`), and look for rows that "
        "only one script sets: added words, a padding row, an interrupted download."
    ): "用校验值比较所加载的文件（`align checkpoint A B`），并查找仅一侧脚本设置的行：新增词、填充行、中断的下载。",
    "A few elements of initial weights differ, all others are equal: {}. In the candidate {}. No module was judged.": (
        "初始权重有少量元素不同，其余全部相同：{}。待比对侧{}。未对任何模块作出判断。"
    ),
    # align/diagnosis/pair/weights/weight_permuted.py
    (
        "Compare how both scripts convert the checkpoint: the order of fused q, k and v rows, of gate and up "
        "halves, of rotary pairs, and how the parts of tensor-parallel ranks are put together."
    ): (
        "对照两侧脚本转换 checkpoint 的方式：融合的 q、k、v 行的顺序，gate 与 up 两半的顺序，RoPE 成对元素的顺序，"
        "以及张量并行各 rank 分片的拼接方式。"
    ),
    (
        "Initial weights hold the values of the reference in another order: {}. In the candidate {}. No module "
        "was judged."
    ): "初始权重与标杆数值相同但顺序不同：{}。待比对侧{}。未对任何模块作出判断。",
    " Capture both runs with `align capture --keep init` to be told which rows went where.": (
        "两侧均使用 `align capture --keep init` 采集，即可得知各行的去向。"
    ),
    # align/diagnosis/pair/weights/weight_scaled.py
    (
        "Look for a scale that only one script puts into the weights: an initialisation by width or depth, a "
        "merged adapter, a quantisation scale, a norm that stores its gain as an offset from 1."
    ): (
        "查找仅一侧脚本乘入权重的系数：按宽度或深度缩放的初始化、已合并的适配器、量化系数、以相对 1 "
        "的偏移保存增益的归一化层。"
    ),
    "Initial weights are a multiple of those of the reference: {}. In the candidate {}. No module was judged.": (
        "初始权重是标杆的倍数：{}。待比对侧{}。未对任何模块作出判断。"
    ),
    # align/diagnosis/pair/weights/weight_stale.py
    "Compare which checkpoint each script resumes from, and whether it is read before or after the first update.": (
        "对照两侧脚本从哪个 checkpoint 续训，以及在首次更新之前还是之后读取。"
    ),
    "One run starts from weights of another step: {}. In the candidate {}. No module was judged.": (
        "一侧以另一步的权重开始：{}。待比对侧{}。未对任何模块作出判断。"
    ),
    # align/diagnosis/pair/weights/weight_transposed.py
    (
        "Transpose them where the checkpoint is converted: nn.Linear holds [out, in], Conv1D of transformers and "
        "most other frameworks [in, out]."
    ): (
        "在转换 checkpoint 时将其转置：nn.Linear 的形状为 [out, in]，transformers 的 Conv1D 与多数其他框架为 "
        "[in, out]。"
    ),
    "Initial weights are those of the reference transposed: {}. In the candidate {}. No module was judged.": (
        "初始权重为标杆权重的转置：{}。待比对侧{}。未对任何模块作出判断。"
    ),
    # align/diagnosis/pair/curves/loss_bias.py
    (
        "What was captured agrees ({}), but over the last quarter of {} the loss of the candidate is {} {} than "
        "that of the reference on average."
    ): "所采集的内容一致（{0}），但在 {1}的最后四分之一中，待比对侧的 loss 平均比标杆侧{3} {2}。",
    (
        "Compare the runs once more over later captured steps, and the reference with a second run of itself: a "
        "bias smaller than what the reference does to itself is none."
    ): "在更靠后的步再采集比对一次，并将标杆与其自身的第二次运行比对：小于标杆误差的偏差不算偏差。",
    # align/diagnosis/pair/curves/loss_curves.py
    (
        "What was captured agrees ({}), but from {} on the loss of the candidate stays {} that of the reference, "
        "at the end by {}."
    ): "所采集的内容一致（{0}），但从{1}起，待比对侧的 loss 持续{2}标杆侧，末尾相差 {3}。",
    (
        "Capture both runs there with `align capture --steps {}:{} --every {}` and compare again. Where the data "
        "order, dropout or the number of devices differ, losses differ without a fault; a second run of the "
        "reference shows by how much."
    ): (
        "在该处用 `align capture --steps {}:{} --every {}` 采集两次运行并重新比对。若数据顺序、dropout "
        "或设备数量不同，loss 出现差异并不代表有问题；标杆的第二次运行可说明差异应有多大。"
    ),
    # align/diagnosis/pair/curves/step_time.py
    (
        "From {} on a step of the {} takes {} seconds, {} before: {} times as long. Those of the other run do "
        "not change."
    ): "从{0}起，{1}的单步耗时为 {2} 秒，此前为 {3} 秒：为原来的 {4} 倍。另一侧没有变化。",
    (
        "Look at what begins there in that run only: an operator that runs on the CPU, memory that swaps or is "
        "compacted, a slower data source, heat, another program on the machine."
    ): (
        "检查仅该侧从此时开始的变化：在 CPU 上执行的算子、内存交换或碎片整理、变慢的数据源、过热、"
        "同一机器上的其他程序。"
    ),
    # align/diagnosis/pair/update/learning_rate.py
    "Give both runs one learning rate and one schedule: warm-up, scaling by world size, steps per epoch.": (
        "两侧使用相同的学习率与调度：检查预热、按卡数放大、每个 epoch 的步数。"
    ),
    " In all {} steps that both timelines have it is {} times the reference's.": (
        "在两侧时间线共有的全部 {} 步中，它均为标杆的 {} 倍。"
    ),
    "ahead of": "超前",
    " The schedule of the candidate is {} {} the other.": "待比对侧的学习率调度比另一侧{1} {0}。",
    (
        " The rate of step n of the {} is that of step {} n of the {} (in {} steps): its scheduler is advanced "
        "{} times for each step of the other's."
    ): "{0}第 n 步的学习率等于{2}第 {1} n 步的学习率（共 {3} 步）：另一侧每走一步，其调度器推进 {4} 次。",
    "The learning rate of {} is {} in the reference and {} in the candidate.{}": (
        "{}的学习率在标杆侧为 {}，在待比对侧为 {}。{}"
    ),
    # align/diagnosis/pair/update/optimizer_formula.py
    (
        "{}: the optimizer of the {} does not do what its own settings say, in {} of {} parameters that could be "
        "replayed; first {} of {}: relative L2 {}, {} times what the settings give.{} No module is to blame."
    ): (
        "{0}：{1}的优化器未按自身设置更新，在可回放的 {3} 个参数中有 {2} 个如此；首个为 {5} 的{4}：相对 L2 误差 "
        "{6}，为按设置计算值的 {7} 倍。{8}差异不归因于任何模块。"
    ),
    (
        "Compare the optimizer's kernel and code in the {} with its settings: the learning rate, betas, epsilon "
        "and weight decay that it really uses, a fused or patched implementation, changes of parameters around "
        "the step."
    ): (
        "将{}优化器的 kernel 与代码同其设置对照：实际使用的学习率、betas、epsilon 与权重衰减，"
        "融合或打过补丁的实现，以及 step 前后对参数的修改。"
    ),
    "the update": "更新量",
    "the state {}": "状态 {}",
    (
        "{}: the gradients agree, the learning rates are equal, but the parameters move differently: {}. No "
        "module is to blame."
    ): "{}：梯度一致，学习率相同，但参数的更新不同：{}。差异不归因于任何模块。",
    (
        "Compare the optimizer and its settings in both runs: betas, epsilon, momentum, weight decay, rates of "
        "other parameter groups, fused or foreach kernels."
    ): "对照两次运行的优化器及其设置：betas、epsilon、动量、权重衰减、其他参数组的学习率、fused 或 foreach 实现。",
    (
        "over the whole model the update of the candidate is {} times as large as that of the reference "
        "(relative L2 {})"
    ): "就整个模型而言，待比对侧的更新量为标杆侧的 {} 倍（相对 L2 误差 {}）",
    "the update of {} {} is {} times as large in the candidate as in the reference": (
        "{0} {1} 的更新量在待比对侧为标杆侧的 {2} 倍"
    ),
    "the candidate draws them to 0 {}, as a weight decay does that is {} by about {}": (
        "待比对侧将参数向 0 收缩得{0}，相当于权重衰减{1}约 {2}"
    ),
    # align/diagnosis/pair/update/optimizer_state.py
    (
        "The optimizer of the {} begins {} with the state of earlier steps, that of the {} without: {} ({}) {} "
        "in the {} only."
    ): "{0}的优化器在{1}开始时带有先前各步的状态，{2}则没有：{3}（{4}）{5}{6}独有。",
    (
        "The optimizer begins {} after {} updates in the reference and after {} in the candidate ({}): bias "
        "corrections and schedules of the state differ."
    ): "优化器在{}开始时，标杆侧已更新 {} 次，待比对侧已更新 {} 次（{}）：偏差修正与状态的调度因此不同。",
    "The optimizer of the candidate begins {} with states of other parameters: {} {} what {} is in the reference.": (
        "待比对侧的优化器在{0}开始时带有其他参数的状态：{1} {2}标杆侧中 {3} 的状态。"
    ),
    "The optimizers begin {} with other states: {} of {} {} ({}; relative L2 {}).": (
        "两侧优化器在{0}开始时的状态不同：{2}中 {1} 个{3}（{4}；相对 L2 误差 {5}）。"
    ),
    (
        "States are loaded in the order of the parameters: make the groups of both runs in one order before "
        "optimizer.load_state_dict. `align checkpoint A B` compares both checkpoints."
    ): (
        "状态按参数顺序加载：在 optimizer.load_state_dict 之前，使两侧参数组的顺序一致。`align checkpoint A B` "
        "可比较两个 checkpoint。"
    ),
    (
        "Load the same optimizer state in both runs (optimizer.load_state_dict, after the model is on its "
        "device), or begin both without. `align checkpoint A B` compares both checkpoints."
    ): (
        "在两次运行中加载相同的优化器状态（模型移到设备之后调用 optimizer.load_state_dict），或均不加载。`align "
        "checkpoint A B` 可比较两个 checkpoint。"
    ),
    # align/diagnosis/pair/update/weight_decay_groups.py
    "{}: {} {} in the reference and {} in the candidate; that of the other {} agrees.{}": (
        "{0}：{1}在标杆侧为 {2}，在待比对侧为 {3}；其余 {4}的权重衰减一致。{5}"
    ),
    (
        "Make the parameter groups of both runs by one filter. One that goes by a name or a class misses what "
        "has neither, as RMSNorm is no LayerNorm: see how {} is called and of which class it is in both runs."
    ): (
        "两侧用同一规则划分参数组。按名称或类划分会漏掉两者都不符合的参数，例如 RMSNorm 不是 LayerNorm：检查 {} "
        "在两次运行中的名称与所属类。"
    ),
    "the weight decay of {} is": "{} 的权重衰减",
    "the weight decay of {} parameters ({}) is": "{} 个参数（{}）的权重衰减",
    # align/wording.py
    "not compared": "未比较",
    "What was captured agrees ({}), but the loss of the {} is not finite in {}, where that of the {} is {}.": (
        "已采集部分一致（{}），但{}的 loss 在{}为非有限值，而{}为 {}。"
    ),
    "`align inspect {}` tells what it knows of the NaN or Inf. Capture both runs with `align capture --steps {}:{}` "
    "and compare again.": (
        "`align inspect {}` 说明已知的 NaN 或 Inf 信息。以 `align capture --steps {}:{}` 采集两侧后重新比对。"
    ),
    "What was captured agrees ({}), but the learning rate of {} is {} in the reference and {} in the candidate.": (
        "已采集部分一致（{}），但{}的学习率在标杆侧为 {}，在待比对侧为 {}。"
    ),
    "{}x": "{} 倍",
    "{} {} {}i": "{} {} {}i",
    "{} ms": "{} ms",
    "{} s": "{} s",
    "step {}": "第 {} 步",
    "steps {}": "第 {} 步",
    "before step 0": "第 0 步之前",
    "step {}, micro {}": "第 {} 步（micro {}）",
    "{} and {} more": "{} 及其他 {} 个",
    "{} and {}": "{} 和 {}",
    # align/asked_steps.py
    "none of the steps that were asked for ({}): the run had {}": "不包含所请求的任何一步（{}）：该次运行只有 {}",
    "{} and later": "{} 及以后",
    # align/loading.py
    "knows none of them": "全部无法识别",
    "does not know {} of them": "其中 {} 个无法识别",
    "load_state_dict of {} was given {}, {}{} and misses {} of its own{}": (
        "{0} 的 load_state_dict 收到 {1}，{2}{3}，自身的参数缺少 {4} 个{5}"
    ),
    "{}; with {} all of them would fit, in name and shape": "{}；{}后，名称与形状全部匹配",
    "with '{}' in front": "加上前缀 '{}'",
    "without '{}'": "去掉前缀 '{}'",
    "{}; {} {} of them would fit": "{}；{}后，其中 {} 个可匹配",
    "Put {} in the keys": "在键名中{}",
    "Take '{}' from the keys": "从键名中去掉 '{}'",
    "Put '{}' before the keys": "在键名前加上 '{}'",
    "'{}' in the place of '{}'": "将 '{1}' 替换为 '{0}'",
    " (such as '{}')": "（例如 '{}'）",
    # words that are put into these templates
    "reference": "标杆侧",
    "candidate": "待比对侧",
    "the reference": "标杆侧",
    "the candidate": "待比对侧",
    "training": "训练",
    "evaluation": "评估",
    "off": "关闭",
    "none": "无",
    "convolutions": "卷积",
    "batches": "批次",
    "above": "高于",
    "below": "低于",
    "higher": "高",
    "lower": "低",
    "behind": "滞后",
    "later": "靠后",
    "earlier": "靠前",
    "larger": "偏大",
    "smaller": "偏小",
    "more": "更多",
    "less": "更少",
    "phase": "阶段",
    "phases": "阶段",
    "does": "也",
    "do": "也",
    "is": "为",
    "are": "均为",
    "was": "被",
    "were": "均被",
    "differs": "不同",
    "differ": "不同",
    "row-major": "行优先",
    # nouns behind a number, with their measure words
    "{} tensor": "{} 个张量",
    "{} tensors": "{} 个张量",
    "{} other tensor": "{} 个其他张量",
    "{} other tensors": "{} 个其他张量",
    "{} initial tensor": "{} 个初始张量",
    "{} initial tensors": "{} 个初始张量",
    "{} other module": "{} 个其他模块",
    "{} other modules": "{} 个其他模块",
    "{} module": "{} 个模块",
    "{} modules": "{} 个模块",
    "{} other setting": "{} 项其他设置",
    "{} other settings": "{} 项其他设置",
    "{} more setting": "{} 项其他设置",
    "{} more settings": "{} 项其他设置",
    "{} parameter": "{} 个参数",
    "{} parameters": "{} 个参数",
    "{} state": "{} 个状态",
    "{} states": "{} 个状态",
    "{} sample": "{} 个样本",
    "{} samples": "{} 个样本",
    "{} step": "{} 步",
    "{} steps": "{} 步",
    "{} micro-step": "{} 个微批次",
    "{} micro-steps": "{} 个微批次",
    "{} call": "{} 次调用",
    "{} calls": "{} 次调用",
    "{} name": "{} 个名称",
    "{} names": "{} 个名称",
    "{} output": "{} 个输出",
    "{} outputs": "{} 个输出",
    "{} key": "{} 个键",
    "{} keys": "{} 个键",
    "{} process": "{} 个进程",
    "{} processes": "{} 个进程",
    "{} batch": "{} 个批次",
    "{} batches": "{} 个批次",
    # forms
    "{} %": "{}%",
    "{}; {}.{}": "{}；{}。{}",
}
