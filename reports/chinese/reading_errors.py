"""What cannot be read of checkpoints, loss curves, policies and saved results, and why, in Chinese."""

from __future__ import annotations

from collections.abc import Mapping

SENTENCES: Mapping[str, str] = {
    # checkpoints
    "Copy or download it again.": "请重新复制或下载。",
    "Save or download it again.": "请重新保存或下载。",
    "Check the path and who may read it.": "请检查路径与读取权限。",
    "Check who may read it.": "请检查读取权限。",
    "it ends at byte {}, before its tensors do": "文件在第 {} 字节处结束，而其中的张量尚未结束",
    "it holds {} checkpoints: {}": "其中有 {} 个 checkpoint：{}",
    "Name one of them.": "请指定其中一个。",
    "it is a distributed checkpoint (.metadata and .distcp files)": (
        "它是分布式 checkpoint（.metadata 与 .distcp 文件）"
    ),
    "Make one file of it: `python -m torch.distributed.checkpoint.format_utils dcp_to_torch {} all.pt`.": (
        "请将其合并为一个文件：`python -m torch.distributed.checkpoint.format_utils dcp_to_torch {} all.pt`。"
    ),
    "the checkpoints are in folders below it: {}": "checkpoint 位于其下级文件夹中：{}",
    "there is no checkpoint among its {} files": "其 {} 个文件中没有 checkpoint",
    "Name a folder with .safetensors, .bin, .pt or an .index.json in it.": (
        "请指定含有 .safetensors、.bin、.pt 或 .index.json 的文件夹。"
    ),
    "there is no such file or folder": "文件或文件夹不存在",
    "Check the path.": "请检查路径。",
    "it is neither a file nor a folder": "它既不是文件也不是文件夹",
    "Name a checkpoint.": "请指定 checkpoint。",
    "there is no tensor in it": "其中没有张量",
    "there is no tensor in it (a {})": "其中没有张量（类型为 {}）",
    "Name a file with weights.": "请指定含有权重的文件。",
    "it is empty": "文件为空",
    "it is a Git LFS pointer to a file of {} bytes, not the file": (
        "它是 Git LFS 指针（指向 {} 字节的文件），而不是文件本身"
    ),
    "it is a Git LFS pointer to a file, not the file": "它是 Git LFS 指针，而不是文件本身",
    "Run `git lfs pull` in its repository, or download the file itself.": (
        "请在其仓库中执行 `git lfs pull`，或下载文件本身。"
    ),
    "it is a web page, such as an error of the server it was downloaded from": "它是网页，例如下载服务器返回的错误页",
    "Download it again and look at the page in a browser: it may ask to log in.": (
        "请重新下载，并在浏览器中查看该页面：可能需要登录。"
    ),
    "it begins with zeros only: it was not written to its end": "文件开头全为 0：没有写完",
    "{} of its {} shards are not there: {}": "其 {1} 个分片中缺少 {0} 个：{2}",
    "Download them into the folder of the index.": "请将其下载到索引所在的文件夹。",
    "{} of its {} tensors are not in the shards that it names: {}": (
        "其 {1} 个张量中有 {0} 个不在索引所指的分片中：{2}"
    ),
    "Index and shards are of different savings: take all of them from one.": (
        "索引与分片并非同一次保存：请全部取自同一次保存。"
    ),
    "an index of {} bytes is none": "{} 字节的文件不可能是索引",
    "Name the index of a checkpoint.": "请指定 checkpoint 的索引。",
    "it is no text, so no index": "它不是文本，因此不是索引",
    "it holds the marks of an unfinished merge (<<<<<<<, >>>>>>>)": "其中有未完成合并的标记（<<<<<<<、>>>>>>>）",
    "Finish the merge, or take the index of one side whole.": "请完成合并，或完整采用其中一侧的索引。",
    "it is no whole JSON ({})": "它不是完整的 JSON（{}）",
    "a name stands in it twice": "其中有重复的名称",
    "it has no table 'weight_map', so it is no index of a checkpoint": (
        "其中没有表 'weight_map'，因此不是 checkpoint 的索引"
    ),
    "Name a .index.json file, a file with weights, or the folder.": (
        "请指定 .index.json 文件、含有权重的文件或文件夹。"
    ),
    "it says that '{}' is in {}, which is no file beside it": "其中写明 '{}' 位于 {}，但该文件不在索引旁边",
    "it names the shard '{}', which is no file of weights": "其中列出的分片 '{}' 不是权重文件",
    "this capture has no initial weights (phase init)": "该采集文件没有初始权重（阶段 init）",
    "Capture with `init` in --phases, or without --phases; --keep init keeps the values, too.": (
        "请在 --phases 中包含 `init`，或不使用 --phases 采集；--keep init 会同时保留数值。"
    ),
    "it is no safetensors file: its first 8 bytes say that its header has {} bytes": (
        "它不是 safetensors 文件：其前 8 个字节表示头部有 {} 字节"
    ),
    "it is truncated: its header has {} bytes and {} are there": "文件不完整：其头部应有 {} 字节，现有 {} 字节",
    "the header of {} bytes is no JSON ({})": "{} 字节的头部不是 JSON（{}）",
    "its header is no table of tensors": "其头部不是张量表",
    "its header says nothing of use about '{}'": "其头部没有关于 '{}' 的可用信息",
    "'{}' has the dtype {}, which is not known here": "'{}' 的数据类型 {} 未知",
    "Update align, or convert the tensor.": "请更新 align，或转换该张量。",
    "shape {} or place {} of '{}' make no sense": "'{2}' 的形状 {0} 或位置 {1} 不合理",
    "'{}' has {} dimensions, which no tensor has": "'{}' 有 {} 个维度，任何张量都不会有",
    "'{}' of shape {} needs {} bytes and has {}": "形状为 {1} 的 '{0}' 需要 {2} 字节，实有 {3} 字节",
    "the data of '{}' overlaps the tensor before it": "'{}' 的数据与前一个张量重叠",
    "the data of '{}' leaves a gap before it": "'{}' 的数据之前有空隙",
    "it is truncated: its tensors have {} bytes and {} are there": "文件不完整：其张量应有 {} 字节，现有 {} 字节",
    "{} bytes follow the last tensor, which belong to none": "最后一个张量之后还有 {} 字节，不属于任何张量",
    "it nests more than {} values": "其中嵌套了超过 {} 个值",
    "Save the weights alone.": "请只保存权重。",
    (
        "Load it where it was made, and save the weights alone: `torch.save(model.state_dict(), "
        "'weights.pt')`, or a safetensors file."
    ): (
        "请在生成它的环境中加载，并只保存权重：`torch.save(model.state_dict(), 'weights.pt')`，或保存为 "
        "safetensors 文件。"
    ),
    "the values of '{}' are missing": "缺少 '{}' 的数值",
    "'{}' needs more than the {} bytes that its storage has": "'{}' 需要的字节数超过其存储的 {} 字节",
    "its pickle asks for '{}', which may be code": "其 pickle 要求加载 '{}'，它可能是代码",
    "{} and not weights. Nothing of it was run": "{}而非权重。其中的内容均未执行",
    "its pickle is damaged ({})": "其 pickle 已损坏（{}）",
    "it is truncated or damaged: the table of contents of its zip cannot be read": (
        "文件不完整或已损坏：无法读取其 zip 的目录"
    ),
    "it is a zip archive without weights in it": "它是不含权重的 zip 压缩包",
    "Name a file of `torch.save`.": "请指定由 `torch.save` 保存的文件。",
    "it is a TorchScript archive, which is code": "它是 TorchScript 归档，属于代码",
    "its zip is compressed, as torch never does": "其 zip 经过压缩，而 torch 从不压缩",
    "Unpack what wraps it, or save it again.": "请解开外层压缩包，或重新保存。",
    "its numbers are big-endian": "其数值为大端字节序",
    "Save it again on a little-endian machine.": "请在小端字节序的机器上重新保存。",
    "a member lies outside of the file": "有成员位于文件之外",
    "its list of storages is damaged": "其存储列表已损坏",
    "it is truncated: a storage of {} bytes ends behind the file's {}": "文件不完整：{} 字节的存储超出文件的 {} 字节",
    "it is neither a file of `torch.save` nor safetensors": "它既不是由 `torch.save` 保存的文件，也不是 safetensors",
    "Name a .pt, .bin or .safetensors file, a folder that holds one, or a capture.": (
        "请指定 .pt、.bin 或 .safetensors 文件、含有此类文件的文件夹，或采集文件。"
    ),
    "it is nested or larger than any checkpoint": "其嵌套或大小超出任何 checkpoint",
    "it has no end": "没有结尾",
    "it has the opcode {}, which no checkpoint has": "含有操作码 {}，checkpoint 中不会有它",
    "a mark is missing": "缺少标记",
    "a value is missing": "缺少值",
    "values are appended to what is no list": "向非列表的对象追加值",
    "values are set in what is no table": "在非表的对象中设置值",
    "it calls what is no function": "调用了非函数的对象",
    "a table has a key without a value": "表中有键而没有值",
    "it has an id that names no storage": "含有不指向任何存储的编号",
    "it describes a storage that makes no sense": "对存储的描述不合理",
    "it has storages that are views of others": "含有作为其他存储视图的存储",
    "it describes a tensor without a storage": "所描述的张量没有存储",
    "it describes a tensor whose shape makes no sense": "所描述张量的形状不合理",
    "it describes a tensor with more lengths than strides": "所描述张量的长度多于步幅",
    "it describes a tensor of an unknown dtype": "所描述张量的数据类型未知",
    "it describes a tensor of an unknown class": "所描述张量的类未知",
    "it describes a tensor that makes no sense": "对张量的描述不合理",
    # curves
    "Cannot read a run: the name of the file is empty. Name a file.": "无法读取运行：文件名为空。请指定文件。",
    "Cannot read '{}': it is empty. Name a file that a training has written to.": (
        "无法读取 '{}'：文件为空。请指定训练写出的文件。"
    ),
    "Cannot read '{}': there is no such file. Check the path.": "无法读取 '{}'：文件不存在。请检查路径。",
    "Cannot read {}: no file can have this name. Check the path.": "无法读取 {}：文件不可能有此名称。请检查路径。",
    "Cannot read '{}': it is a pipe or a device, not a file. Save what it gives into a file.": (
        "无法读取 '{}'：它是管道或设备，而不是文件。请将其输出保存到文件。"
    ),
    "Cannot read '{}': it is an empty or damaged gzip file. Copy it again.": (
        "无法读取 '{}'：它是空的或已损坏的 gzip 文件。请重新复制。"
    ),
    "Cannot read '{}': it begins with zeros or blanks only. Copy it again.": (
        "无法读取 '{}'：文件开头只有 0 或空白。请重新复制。"
    ),
    (
        "Cannot read '{}': it is neither text, nor a capture, nor an event file of TensorBoard. Name a file "
        "that holds a loss for each step, such as a log, a CSV file or trainer_state.json."
    ): (
        "无法读取 '{}'：它既不是文本，也不是采集文件或 TensorBoard 事件文件。请指定含有每步 loss 的文件，例如日"
        "志、CSV 文件或 trainer_state.json。"
    ),
    "Cannot read the folder '{}': {}. Check who owns it.": "无法读取文件夹 '{}'：{}。请检查其所有者。",
    "Cannot tell which run in the folder '{}' is meant: there are curves in {}. Name one of these folders.": (
        "无法确定文件夹 '{}' 中指的是哪次运行：{} 中均有曲线。请指定其中一个文件夹。"
    ),
    "Cannot find curves in the folder '{}': there is no event file of TensorBoard, and none of {}. Name a file.": (
        "在文件夹 '{}' 中找不到曲线：没有 TensorBoard 事件文件，也没有 {}。请指定文件。"
    ),
    "Cannot find a loss in '{}': {}": "在 '{}' 中找不到 loss：{}",
    "Cannot find a loss in '{}'. {}": "在 '{}' 中找不到 loss。{}",
    "no line holds a number behind the word loss. Name another file, or a column with --column loss=NAME.": (
        "没有一行在 loss 一词之后有数值。请指定其他文件，或用 --column loss=NAME 指定列。"
    ),
    "it has no rows. Name another file.": "其中没有数据行。请指定其他文件。",
    (
        "Cannot find a loss in '{}': the column '{}' holds no value that was recorded. Choose another column "
        "with --column loss=NAME."
    ): "在 '{}' 中找不到 loss：列 '{}' 中没有记录任何值。请用 --column loss=NAME 选择其他列。",
    (
        "Cannot find a loss in '{}': its timeline has {} steps, and no loss was seen in any. Train with a "
        "backward that starts at a loss, and capture again."
    ): "在 '{}' 中找不到 loss：其时间线有 {} 步，均未见 loss。请让反向从 loss 开始，并重新采集。",
    "Cannot find the column '{}' in '{}'. The columns of a capture are {}.": (
        "在 '{1}' 中找不到列 '{0}'。采集文件的列有 {2}。"
    ),
    "Cannot find the column '{}' in '{}'. {}": "在 '{1}' 中找不到列 '{0}'。{2}",
    "The nearest are {}: choose with {}.": "最接近的有 {}：请用 {} 选择。",
    "The nearest is {}: choose with {}.": "最接近的是 {}：请用 {} 选择。",
    "Its columns are {}: choose one with --column {}=NAME.": "其中的列有 {}：请用 --column {}=NAME 选择。",
    "It has no columns with numbers.": "其中没有数值列。",
    "Cannot tell which column of '{}' is meant by '{}': it may be {}. Choose with {}.": (
        "无法确定 '{1}' 指 '{0}' 中的哪一列：可能是 {2}。请用 {3} 选择。"
    ),
    "Cannot take the column '{}' of '{}': it holds no numbers. {}": "无法采用 '{1}' 中的列 '{0}'：其中没有数值。{2}",
    "Cannot tell which column of '{}' is the loss: it may be {}. Choose with {}.": (
        "无法确定 '{}' 中的哪一列是 loss：可能是 {}。请用 {} 选择。"
    ),
    # accept
    (
        "Cannot read the column '{}': write --column QUANTITY=NAME, such as --column loss=train/loss, or "
        "--column candidate:loss=NAME for one file. Quantities are {}."
    ): (
        "无法读取列 '{}'：请写成 --column QUANTITY=NAME，例如 --column loss=train/loss；只针对一个文件时写 "
        "--column candidate:loss=NAME。可用的量有 {}。"
    ),
    (
        "Cannot read the steps '{}': write --steps A:B, such as --steps 0:1000 or --steps 100: for all from "
        "step 100 on."
    ): "无法读取步 '{}'：请写成 --steps A:B，例如 --steps 0:1000；或用 --steps 100: 表示从第 100 步起的所有步。",
    (
        "Cannot compare '{}' and '{}': no step is in both; the first records {}, the second {}. Name logs of "
        "the same steps."
    ): "无法比对 '{}' 与 '{}'：没有共同的步；前者记录了{}，后者记录了{}。请指定相同步的日志。",
    "Cannot compare '{}' and '{}' at {}: they have {} in common. Ask for steps within.": (
        "无法在 {2} 处比对 '{0}' 与 '{1}'：两者共有{3}。请指定其中的步。"
    ),
    (
        "Cannot judge '{}': it records no loss. Name the column that is the loss by `--column loss=NAME`, or "
        "another file of this run."
    ): "无法判定 '{}'：其中没有记录 loss。请用 `--column loss=NAME` 指定 loss 所在的列，或指定该运行的其他文件。",
    (
        "Cannot compare '{}' and '{}': '{}' of the first is a perplexity, and '{}' of the second is its "
        "logarithm. Choose the same quantity of both with --column loss=NAME."
    ): (
        "无法比对 '{}' 与 '{}'：前者的 '{}' 是困惑度，后者的 '{}' 是其对数。请用 --column loss=NAME 在两侧选择"
        "相同的量。"
    ),
    (
        "Cannot take '{}' as a repeat of the reference: it is the candidate '{}', byte by byte. Give further "
        "runs of the reference as --floor."
    ): "无法将 '{}' 作为标杆的重复运行：它与待比对侧的 '{}' 逐字节相同。请将标杆的其他运行作为 --floor 给出。",
    "Cannot read the operators in '{}': {}. Name a CSV file with the columns op, ratio and limit.": (
        "无法读取 '{}' 中的算子：{}。请指定含有 op、ratio 与 limit 列的 CSV 文件。"
    ),
    "Cannot read the operators in '{}': {}. Write a CSV file with the columns op, ratio and limit.": (
        "无法读取 '{}' 中的算子：{}。请写成含有 op、ratio 与 limit 列的 CSV 文件。"
    ),
    "it is not UTF-8 text": "它不是 UTF-8 文本",
    "Cannot read the operators in '{}': there is no row below its names of columns.": (
        "无法读取 '{}' 中的算子：列名之下没有数据行。"
    ),
    (
        "Cannot read the operators in '{}': there is no column {} in its first line ({}). Write the columns "
        "op, dtype, ratio, limit and source."
    ): "无法读取 '{}' 中的算子：首行（{2}）中没有列 {1}。请写出 op、dtype、ratio、limit 与 source 列。",
    "'{}' in line {}, column '{}',": "第 {1} 行 '{2}' 列的 '{0}' ",
    "Cannot read the operators in '{}': {} is no number. Write numbers such as 1.25.": (
        "无法读取 '{}' 中的算子：{}不是数。请写数值，例如 1.25。"
    ),
    "Cannot read the operators in '{}': {} is no size. Write numbers from 0 on, such as 1.25.": (
        "无法读取 '{}' 中的算子：{}不能表示大小。请写不小于 0 的数，例如 1.25。"
    ),
    # policies
    "{} `align accept --show-policy {}` prints one to start from.": (
        "{}`align accept --show-policy {}` 可打印一个策略作为起点。"
    ),
    "Cannot find the policy '{}': there is no such file, and the built-in policies are {}": (
        "找不到策略 '{}'：没有此文件，内置策略有 {}"
    ),
    "{}; did you mean '{}'?": "{}；是否指 '{}'？",
    "{} Known are {}.": "{}已知的有 {}。",
    "Cannot read the policy '{}': {}. Name a TOML file, or one of {}.": (
        "无法读取策略 '{}'：{}。请指定 TOML 文件，或 {} 之一。"
    ),
    "Cannot read the policy '{}': byte {} is not UTF-8. Save the file as UTF-8 text.": (
        "无法读取策略 '{}'：第 {} 字节不是 UTF-8。请将文件保存为 UTF-8 文本。"
    ),
    (
        "Cannot read the policy '{}': it is not valid TOML: {}. `align accept --show-policy {}` prints one to "
        "start from."
    ): "无法读取策略 '{}'：它不是有效的 TOML：{}。`align accept --show-policy {}` 可打印一个策略作为起点。",
    (
        "Cannot read the policy '{}': more than {} policies extend one another, or one extends itself through "
        "'{}'. Let it extend a built-in policy."
    ): "无法读取策略 '{}'：相互继承的策略超过 {} 个，或某个策略经由 '{}' 继承了自身。请让它继承内置策略。",
    "Cannot read the policy '{}': {}{}": "无法读取策略 '{}'：{}{}",
    "in [{}], ": "[{}] 中 ",
    "'{}' has no '{}'. Say where it is from, such as {} = \"project limit, agreed 2026-01\".": (
        "'{}' 没有 '{}'。请说明其来源，例如 {} = \"project limit, agreed 2026-01\"。"
    ),
    "'{}' is not known": "'{}' 未知",
    "'{}' is {}, not a table. Write [{}] above its keys.": "'{}' 为{}，而不是表。请在其键之上写 [{}]。",
    "'{}' is {}, not a text. Write it in quotes.": "'{}' 为{}，而不是文本。请将其写在引号中。",
    "'{}' is {}, not a number. Write it without quotes.": "'{}' 为{}，而不是数。请不加引号书写。",
    "'{}' is {}, not a whole number.": "'{}' 为 {}，不是整数。",
    "'{}' is {}, which is outside of what is allowed: {}.": "'{}' 为 {}，超出允许范围：{}。",
    "any greater number": "任意更大的数",
    "it has no criteria. Write 'extends = \"default\"', or tables such as [criteria.bias].": (
        "其中没有指标。请写 'extends = \"default\"'，或写 [criteria.bias] 之类的表。"
    ),
    "'minimum_steps' is missing. Write how many steps an acceptance needs, such as 1000.": (
        "缺少 'minimum_steps'。请写明验收需要多少步，例如 1000。"
    ),
    "'{}' is not a criterion": "'{}' 不是指标",
    "'use' is {}. Write true or false.": "'use' 为{}。请写 true 或 false。",
    "'limit' is not taken: the limits are those of the file of operators.": "不接受 'limit'：限值取自算子文件。",
    "'limit' is missing. Write a number, allowed: {}.": "缺少 'limit'。请写一个数，允许范围：{}。",
    "'required' is {}. Write true, false or \"when measured\".": (
        "'required' 为{}。请写 true、false 或 \"when measured\"。"
    ),
    "'required' is true, but there is no 'limit' to be met. Write one, with its source.": (
        "'required' 为 true，但没有需要满足的 'limit'。请写出限值及其来源。"
    ),
    'the text "{}"': '文本 "{}"',
    "the number {}": "数值 {}",
    "a table": "表",
    "a datetime": "日期时间",
    "a date": "日期",
    "a time": "时间",
    # saved results
    "Write it again with --json.": "请用 --json 重新写出。",
    "its lists are nested too deeply": "其列表嵌套过深",
    "there is no such file": "文件不存在",
    "it is a folder": "它是文件夹",
    (
        "Cannot read '{}': it is an HDF5 file, such as a capture, and no saved result. `align inspect {}` "
        "looks at a capture; `align report` reads what --json wrote."
    ): (
        "无法读取 '{}'：它是 HDF5 文件（例如采集文件），而不是已保存的结果。`align inspect {}` 可检查采集文件；"
        "`align report` 读取由 --json 写出的文件。"
    ),
    "Cannot read '{}': {}. Name the file that --json wrote, or - for standard input.": (
        "无法读取 '{}'：{}。请指定由 --json 写出的文件，或用 - 表示标准输入。"
    ),
    "Cannot read '{}': it is empty. {}": "无法读取 '{}'：文件为空。{}",
    "Cannot read '{}': byte {} is not UTF-8, as JSON is. {}": "无法读取 '{}'：第 {} 字节不是 JSON 所用的 UTF-8。{}",
    "Cannot read '{}': it holds a number that cannot be read ({}). {}": "无法读取 '{}'：其中有无法读取的数（{}）。{}",
    (
        'Cannot read \'{}\': it is JSON, but no result of align (its "format" is not "{}"). Name the file '
        "that --json wrote."
    ): '无法读取 \'{}\'：它是 JSON，但不是 align 的结果（其 "format" 不是 "{}"）。请指定由 --json 写出的文件。',
    "Cannot read '{}': its format is {}, and align {} reads {}. Use the align that wrote it.": (
        "无法读取 '{}'：其格式为 {}，而 align {} 读取 {}。请使用写出它的 align。"
    ),
    "it is cut off in line {}": "内容在第 {} 行中断",
    "it is not JSON ({} in line {}, column {})": "它不是 JSON（第 {1} 行第 {2} 列：{0}）",
    "Cannot read '{}': {} {}. It was changed by hand or by another program: write it again with --json.": (
        "无法读取 '{}'：{} {}。它被手工或其他程序修改过：请用 --json 重新写出。"
    ),
    "standard input": "标准输入",
    "is missing": "缺失",
    "is empty": "为空",
    "is {}": "为 {}",
    "no sentence: {}": "不是句子：{}",
    "no template: {}": "不是模板：{}",
    "no template of {} arguments: {}": "不是 {} 个参数的模板：{}",
    "is {}, not {}": "为 {}，而不是{}",
    "a whole number": "整数",
    "a text": "文本",
    "true or false": "true 或 false",
    "an object": "对象",
    "a list": "列表",
    "is {}, not an object": "为 {}，而不是对象",
    "is {}, not a list": "为 {}，而不是列表",
    "is {}, not a text": "为 {}，而不是文本",
    "is {}, not a number": "为 {}，而不是数",
    "is {}, not a plain value": "为 {}，而不是单个值",
    "is {}, which is too large": "为 {}，数值过大",
    "is {}, not one of {}": "为 {}，而不是 {} 之一",
    "is {}, not a whole number of 64 bits": "为 {}，而不是 64 位整数",
    "is {}, not a number of elements": "为 {}，而不是元素个数",
    "is {}, not a number of rows": "为 {}，而不是行数",
    "is {}, not the place of one of {} words": "为 {}，而不是 {} 个词之一的位置",
    "is {}, not the number of a step": "为 {}，而不是步的编号",
    "is {}, not a hash of {} hexadecimal digits": "为 {}，而不是 {} 位十六进制的校验值",
    "is {}, not a shape such as '4x64x96'": "为 {}，而不是 '4x64x96' 之类的形状",
    "is {}, which no tensor has": "为 {}，任何张量都不会有",
    "is '{}', but the criteria come to '{}'": "为 '{}'，但各指标得出 '{}'",
    "is {}, with {} steps of {}": "为 {}，但 {2} 步中有 {1} 步",
    "is not a row, a column and a sentence": "不是由行、列与句子组成",
    "are not of {} rising steps": "不是 {} 个递增的步",
    "has {} rows, not {}": "有 {} 行，而不是 {} 行",
    "has {} cells, not {}": "有 {} 个单元格，而不是 {} 个",
    "has {} entries, not {}": "有 {} 项，而不是 {} 项",
    "has {} and {} steps, not as many of both": "分别有 {} 步与 {} 步，两者应相同",
    "holds a number that is too large": "含有过大的数",
}
