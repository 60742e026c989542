"""What cannot be done with captures and reports, and why, in Chinese."""

from __future__ import annotations

from collections.abc import Mapping

SENTENCES: Mapping[str, str] = {
    # commands
    "interrupted before it was done; no file was left half written.": "未完成即被中断；没有留下写到一半的文件。",
    "wrote": "已写入",
    (
        "Cannot inspect {} files at once: `align inspect {}` looks at one run, with all its ranks. To compare "
        "two runs: `align diff {} {}`."
    ): "无法同时检查 {} 个文件：`align inspect {}` 检查一次运行及其全部 rank。比对两次运行请用 `align diff {} {}`。",
    (
        "Cannot run the script '{}': the options of align replay stand before the first capture, what follows "
        "the script is the script's own."
    ): "无法运行脚本 '{}'：align replay 的选项须写在第一个采集文件之前，脚本之后的内容属于脚本自身。",
    "Cannot write --{} to '{}': that file is read. Name another file.": (
        "无法将 --{} 写入 '{}'：该文件是被读取的文件。请指定其他文件。"
    ),
    "Cannot write --{} and --{} to one file, '{}'. Name a file for each.": (
        "无法将 --{} 与 --{} 写入同一个文件 '{}'。请分别指定文件。"
    ),
    "Cannot print {}: one of them has stdout for itself. Name a file for the other.": (
        "无法同时输出 {}：其中一个独占标准输出。请为另一个指定文件。"
    ),
    (
        "Cannot read the rename '{}': write --rename OLD=NEW, such as --rename model.h=model.layers, or "
        "--rename =net to put 'net.' before every name of the reference."
    ): (
        "无法读取改名规则 '{}'：请写成 --rename OLD=NEW，例如 --rename model.h=model.layers；或写 --rename =net，"
        "在标杆侧每个名称前加上 'net.'。"
    ),
    "Cannot judge with --limit {}: write a number above 1, such as 7.": (
        "无法按 --limit {} 判定：请写大于 1 的数，例如 7。"
    ),
    # capture files
    "Cannot read '{}': {}. {}": "无法读取 '{}'：{}。{}",
    "Cannot read '{}': it is a folder. Name a capture file in it.": (
        "无法读取 '{}'：它是文件夹。请指定其中的采集文件。"
    ),
    "Cannot read '{}': there is no such file. Check the path, or make it with 'align capture -o {}'.": (
        "无法读取 '{}'：文件不存在。请检查路径，或用 'align capture -o {}' 生成它。"
    ),
    "Cannot read '{}': {}. Check who owns it and what its permissions are.": (
        "无法读取 '{}'：{}。请检查其所有者与权限。"
    ),
    "Cannot read '{}': it is empty, its capture ended before it began. Capture again.": (
        "无法读取 '{}'：文件为空，采集尚未开始就已结束。请重新采集。"
    ),
    "Cannot read '{}': it is not an HDF5 file{}. Name a file that 'align capture' wrote.": (
        "无法读取 '{}'：它不是 HDF5 文件{}。请指定由 'align capture' 写出的文件。"
    ),
    "; for files of weights use `align checkpoint`": "；权重文件请用 `align checkpoint`",
    "Cannot read '{}': it is an HDF5 file, but not a capture. Name a file that 'align capture' wrote.": (
        "无法读取 '{}'：它是 HDF5 文件，但不是采集文件。请指定由 'align capture' 写出的文件。"
    ),
    (
        "Cannot read '{}': it has capture format {}, written by align {}, and this align reads formats up to "
        "{}. Update it with 'pip install -U torch-align'."
    ): (
        "无法读取 '{}'：其采集格式为 {}，由 align {} 写出，而当前的 align 最高只能读取格式 {}。请用 'pip "
        "install -U torch-align' 更新。"
    ),
    "this process has it open with other locking (open it there with locking=False)": (
        "本进程已用其他锁定方式打开该文件（请在那里以 locking=False 打开）"
    ),
    "its HDF5 structure is damaged": "其 HDF5 结构已损坏",
    "it is truncated: {} of {} bytes are there": "文件不完整：应有 {1} 字节，现有 {0} 字节",
    "Cannot read '{}': it is damaged ({}). {}": "无法读取 '{}'：文件已损坏（{}）。{}",
    "Copy it again from where it was written, or capture again.": "请从写出它的位置重新复制，或重新采集。",
    "Cannot read step {} from '{}': it was not captured. Captured steps: {}.": (
        "无法从 '{1}' 读取第 {0} 步：该步未采集。已采集的步：{2}。"
    ),
    "Cannot read the values of '{}' from '{}': they were not kept. Capture again with --detail tensors.": (
        "无法从 '{1}' 读取 '{0}' 的数值：采集时未保留。请用 --detail tensors 重新采集。"
    ),
    "{} does not fit its checksum": "{} 与其校验和不符",
    "the table 'names' does not fit its checksums": "表 'names' 与其校验和不符",
    "the table '{}' does not fit its checksums": "表 '{}' 与其校验和不符",
    "the facts of the run do not fit their checksum": "运行信息与其校验和不符",
    "its table '{}' is not what was written": "其中的表 '{}' 与写入时不同",
    "it holds '{}', which no capture has": "其中含有 '{}'，采集文件中不会有它",
    "the values of '{}' have the shape {}, not {}": "'{}' 的数值形状为 {}，而不是 {}",
    "it ends before the values of {} do": "文件在 {} 的数值结束之前就已结束",
    "Cannot write '{}': {}. {}": "无法写入 '{}'：{}。{}",
    "Choose another place with -o.": "请用 -o 选择其他位置。",
    "Cannot write step {} to '{}': it is already there. Commit every step once.": (
        "无法将第 {} 步写入 '{}'：该步已存在。每步只能提交一次。"
    ),
    "Cannot write '{}': {}. The steps that were finished before are in the file.": (
        "无法写入 '{}'：{}。此前完成的步已在文件中。"
    ),
    "Cannot write '{}': it is a folder. Name a file in it, as in '{}'.": (
        "无法写入 '{}'：它是文件夹。请指定其中的文件，例如 '{}'。"
    ),
    "Cannot write '{}': it exists. Name another file, or replace it with --force (in Python, force=True).": (
        "无法写入 '{}'：文件已存在。请指定其他文件，或用 --force 替换它（在 Python 中为 force=True）。"
    ),
    "Cannot write '{}': there is no folder '{}'. Create it first.": "无法写入 '{}'：文件夹 '{}' 不存在。请先创建它。",
    "Cannot write '{}': no file can be made there. {}": "无法写入 '{}'：不能在那里创建文件。{}",
    "Cannot leave a request beside '{}': {}.": "无法在 '{}' 旁留下请求：{}。",
    (
        "Cannot capture the next {} steps of '{}': one request asks for {} at most. Ask for fewer, or capture "
        "the run again with --steps 0: for all of them."
    ): "无法采集 '{1}' 接下来的 {0} 步：一次请求最多 {2} 步。请减少步数，或用 --steps 0: 重新采集全部的步。",
    "Cannot capture a step of '{}' now: its run has ended ({}). Capture it again with --steps.": (
        "现在无法采集 '{}' 的步：其运行已结束（{}）。请用 --steps 重新采集。"
    ),
    "Cannot capture a step of '{}' now: its process {} is gone, the run was killed. Capture it again with --steps.": (
        "现在无法采集 '{}' 的步：其进程 {} 已不存在，运行被终止。请用 --steps 重新采集。"
    ),
    # comparing captures
    "Cannot compare: the {} '{}' holds {}. Capture it again with {}.": (
        "无法比对：{0}的 '{1}' {2}。请用 {3} 重新采集。"
    ),
    "Cannot compare: the {} '{}' holds no finished step. Capture it again and let at least one training step end.": (
        "无法比对：{}的 '{}' 不含已完成的步。请重新采集，至少完成一个训练步。"
    ),
    (
        "Cannot compare '{}' with '{}': they have no step in common. The reference has {}, the candidate {}. "
        "Capture both with the same --steps."
    ): "无法比对 '{}' 与 '{}'：没有共同的步。标杆侧有{}，待比对侧有{}。请在两侧使用相同的 --steps 采集。",
    (
        "Cannot compare '{}' with '{}': no record of one has an answer in the other. The reference has the "
        "phases {}, the candidate {}. Capture both with the same --phases."
    ): (
        "无法比对 '{}' 与 '{}'：一侧的记录在另一侧均无对应。标杆侧含阶段{}，待比对侧含阶段{}。请在两侧使用相同"
        "的 --phases 采集。"
    ),
    "{}: they have no name in common{}. {}": "{}：没有共同的名称{}。{}",
    "{}: they hold different models. Only {} of {} names of the {} have a partner{}. {}": (
        "{0}：两者的模型不同。{3}的 {2} 个名称中只有 {1} 个有对应{4}。{5}"
    ),
    "Cannot rename '{}' to '{}': the reference has no module of that name. List its modules with `align show`.": (
        "无法将 '{}' 改名为 '{}'：标杆侧没有该名称的模块。请用 `align show` 列出其模块。"
    ),
    (
        "Cannot inspect '{}': it holds no finished step and no row of a timeline. Capture it again and let at "
        "least one training step end."
    ): "无法检查 '{}'：不含已完成的步，也没有时间线记录。请重新采集，至少完成一个训练步。",
    (
        "Cannot inspect '{}' and '{}' together: {}, so they are not of one job. Remove the files of the older "
        "job, or name one file."
    ): "无法将 '{}' 与 '{}' 一起检查：{}，因此不属于同一作业。请移走较早作业的文件，或只指定一个文件。",
    "one is of a job of {}, the other of {}": "其中一个属于 {} 的作业，另一个属于 {} 卡的作业",
    "both are rank {}": "两者均为 rank {}",
    "they ran different scripts, or versions of one script": "两者运行的脚本不同，或为同一脚本的不同版本",
    "one had ended ({}) before the other began": "其中一个在另一个开始之前已结束（{}）",
    # rules for names
    "line {} of '{}'": "'{1}' 第 {0} 行",
    "Cannot read the rules of '{}': there is no such file. Check the path given to --map.": (
        "无法读取 '{}' 中的规则：文件不存在。请检查 --map 的路径。"
    ),
    "Cannot read the rules of '{}': it is no text in UTF-8. Write one rule a line, such as {}.": (
        "无法读取 '{}' 中的规则：它不是 UTF-8 文本。请每行写一条规则，例如 {}。"
    ),
    "Cannot read the rules of '{}': {}. Check the path given to --map.": (
        "无法读取 '{}' 中的规则：{}。请检查 --map 的路径。"
    ),
    "Cannot use the rules of '{}': it holds none. Write one a line, such as {}.": (
        "无法使用 '{}' 中的规则：其中没有规则。请每行写一条，例如 {}。"
    ),
    "Cannot read {}, '{}': write PATTERN -> REPLACEMENT, such as {}.": (
        "无法读取 {} '{}'：请写成 PATTERN -> REPLACEMENT，例如 {}。"
    ),
    "Cannot read {}, '{}': '{}' is no regular expression ({}). Mend the pattern.": (
        "无法读取 {} '{}'：'{}' 不是正则表达式（{}）。请修正该模式。"
    ),
    (
        "Cannot read {}, '{}': the replacement '{}' cannot be used ({}). Name groups that the pattern has, as "
        "\\1 or \\g<name>."
    ): "无法读取 {} '{}'：替换内容 '{}' 不可用（{}）。请引用模式中存在的组，写作 \\1 或 \\g<name>。",
    # floors
    "Cannot use '{}' as a floor: {}": "无法将 '{}' 用作本底：{}",
    (
        "Cannot judge '{}' and '{}': they were captured with {}, which moved the weights and float inputs of "
        "each by other numbers on purpose. Capture both scripts without --perturb, and compare with `align "
        "diff REF.h5 CAND.h5 --floor {}`."
    ): (
        "无法判定 '{}' 与 '{}'：采集时使用了 {}，两者的权重与浮点输入被有意施加了不同的扰动。请不带 --perturb "
        "采集两侧脚本，并用 `align diff REF.h5 CAND.h5 --floor {}` 比对。"
    ),
    (
        "Cannot judge '{}': it was captured with --perturb {}, which moved its weights and float inputs{} on "
        "purpose. It shows what rounding does; compare with {}."
    ): (
        "无法判定 '{}'：采集时使用了 --perturb {}，其权重与浮点输入被有意施加扰动{}。它用于说明舍入的影响；请用"
        " {} 比对。"
    ),
    " by {}": "（{}）",
    "it holds no finished step. Capture it again and let at least one training step end.": (
        "其中没有已完成的步。请重新采集，至少完成一个训练步。"
    ),
    "it holds {} and the comparison is over {}. Capture it with the same --steps.": (
        "其中有{}，而比对的是{}。请用相同的 --steps 采集。"
    ),
    "it holds": "其中",
    "the reference '{}' holds": "标杆侧的 '{}' ",
    (
        "{} only statistics, from which the size of a difference cannot be told. Capture it again with --detail sketch."
    ): "{}只有统计量，无法由此得知差异的大小。请用 --detail sketch 重新采集。",
    "it is the {} itself": "它就是{}本身",
    "it is a capture of the same run as the {}": "它与{}采集自同一次运行",
    "shows no rounding": "不能体现舍入",
    "would explain every difference": "会把所有差异都算作舍入",
    "{}, which {}. Capture the reference's script once more with `align capture --perturb 1`.": (
        "{}，{}。请用 `align capture --perturb 1` 再采集一次标杆侧的脚本。"
    ),
    (
        "it is a perturbed run on {}, and the reference ran on {}. Run `align capture --perturb 1` where the "
        "reference ran."
    ): "它是在 {} 上的扰动运行，而标杆运行在 {} 上。请在标杆所在的设备上执行 `align capture --perturb 1`。",
    (
        "its {} are not the reference's (first {}{}), so that its differences are no rounding. Capture it from "
        "the same start: {}."
    ): "其{}与标杆不同（首个为 {}{}），因此其差异并非舍入。请从相同的起点采集：{}。",
    "`--seed`, or `--init-from` a capture of the reference with --keep init": (
        "`--seed`，或用 `--init-from` 指定以 --keep init 采集的标杆文件"
    ),
    "`--seed`, or `--batches-from` a capture of the reference with --keep batches": (
        "`--seed`，或用 `--batches-from` 指定以 --keep batches 采集的标杆文件"
    ),
    (
        "it is of another model than the reference '{}': only {} of {} names of the {} have a partner; for "
        "example {}. Capture the reference's own script with `align capture --perturb 1`."
    ): (
        "其模型与标杆 '{0}' 不同：{3}的 {2} 个名称中只有 {1} 个有对应；例如{4}。请用 "
        "`align capture --perturb 1` 采集标杆侧自己的脚本。"
    ),
    "'{}' is only in the {}": "'{}' 仅在{}",
    "it works in another precision than the reference ({}). Capture it with the settings of the reference.": (
        "其计算精度与标杆不同（{}）。请使用标杆的设置采集。"
    ),
    "{}: {} there, {} here": "{}：标杆为 {}，此处为 {}",
    "no tensor of it answers one of the reference. Capture both with the same --phases and --modules.": (
        "其中没有张量与标杆对应。请在两侧使用相同的 --phases 与 --modules 采集。"
    ),
    (
        "it is equal to the reference to the bit, so it shows no rounding; capture one with `align capture "
        "--perturb 1`."
    ): "它与标杆逐位相同，因此不能体现舍入；请用 `align capture --perturb 1` 采集。",
    # replays
    "align: replaying {} in {}": "align: 正在重放 {}，精度：{}",
    "the precision of the script": "脚本自身的精度",
    (
        "Cannot replay '{}': it is of a run of {} processes. Capture the training in one process, with fewer "
        "layers or a smaller batch if need be, and replay that."
    ): "无法重放 '{}'：它来自 {} 个进程的运行。请以单进程采集该训练（必要时减少层数或批次大小），再重放。",
    "Cannot replay '{}': {}, and a replay begins at step 0 with the initial weights. {}": (
        "无法重放 '{}'：{}，而重放从第 0 步以初始权重开始。{}"
    ),
    "its first step is {}": "其首步为第 {} 步",
    "it holds no finished step": "其中没有已完成的步",
    "Cannot replay '{}': {} were left out of it, and a replay needs every tensor. {}": (
        "无法重放 '{}'：其中未采集{}，而重放需要每个张量。{}"
    ),
    "the phases {}": "阶段{}",
    "all tensors of the phase {}": "阶段{}的所有张量",
    "all modules but {}": "{} 以外的所有模块",
    "Cannot replay '{}': it holds no values of the initial weights. {}": "无法重放 '{}'：其中没有初始权重的数值。{}",
    "Cannot replay '{}': it holds the values of {} of {} tensors of step 0. {}": (
        "无法重放 '{0}'：第 0 步的 {2} 个张量中只有 {1} 个的数值。{3}"
    ),
    "Capture it again with --detail tensors --steps 0:1.": "请用 --detail tensors --steps 0:1 重新采集。",
    "Cannot replay '{}': {} ended with exit code {} before its first step was captured.{}{}": (
        "无法重放 '{}'：{} 在首步采集完成之前以退出码 {} 结束。{}{}"
    ),
    " It said last: {}": "其最后的输出：{}",
    " If it does not take that precision, try --precision same.": "若它不支持该精度，请尝试 --precision same。",
    "Cannot replay '{}': {} trained no step.{}": "无法重放 '{}'：{} 没有训练任何步。{}",
    "{} Give the script and arguments that '{}' is of.": "{} 请给出采集 '{}' 时的脚本与参数。",
    "Cannot keep replays in '{}': {}. Name another folder.": "无法将重放保存在 '{}'：{}。请指定其他文件夹。",
    "Cannot replay '{}': {} ended before its first step was over. Give the arguments with which it was captured.": (
        "无法重放 '{}'：{} 在首步结束之前就已结束。请给出采集时的参数。"
    ),
    (
        "Cannot replay '{}' with {}: {} of its {} tensors of step {} do not come up ({} {} is the first). Give "
        "the script and arguments of that capture."
    ): (
        "无法用 {1} 重放 '{0}'：第 {4} 步的 {3} 个张量中有 {2} 个没有出现（首个为 {5} {6}）。请给出该采集文件的"
        "脚本与参数。"
    ),
    # showing and writing
    "Cannot show '{}': '{}' holds no tensor. Capture it again with --steps 0:1.": (
        "无法显示 '{}'：'{}' 中没有张量。请用 --steps 0:1 重新采集。"
    ),
    "Cannot show '{}': no tensor of '{}' has that name. Names in it: {}; * stands for anything.": (
        "无法显示 '{}'：'{}' 中没有该名称的张量。其中的名称有：{}；* 可匹配任意内容。"
    ),
    "Cannot write a report: the name of the file is empty. Name a file.": "无法写出报告：文件名为空。请指定文件。",
    "Cannot write '{}': it is a folder. Name a file in it.": "无法写入 '{}'：它是文件夹。请指定其中的文件。",
    "Cannot write '{}': it is an HDF5 file, such as a capture. Name another file for the report.": (
        "无法写入 '{}'：它是 HDF5 文件，例如采集文件。请为报告指定其他文件。"
    ),
    "Cannot write '{}': the folder '{}' does not exist. Make it first, or name another file.": (
        "无法写入 '{}'：文件夹 '{}' 不存在。请先创建它，或指定其他文件。"
    ),
    "Cannot write '{}': the folder '{}' is not writable. Name a file elsewhere.": (
        "无法写入 '{}'：文件夹 '{}' 不可写。请指定其他位置的文件。"
    ),
    "Cannot write '{}': {}. Name a file elsewhere, or free the space.": (
        "无法写入 '{}'：{}。请指定其他位置的文件，或释放空间。"
    ),
    "Cannot write '{}': two records are both {}. Give each its own call or slot.": (
        "无法写入 '{}'：有两条记录均为 {}。请使其调用或槽位各不相同。"
    ),
    "Cannot register rule {} of {}: {} has that code. Give one of them another.": (
        "无法注册 {1} 的规则 {0}：{2} 已使用该编号。请为其中一个另选编号。"
    ),
    # the operating system
    "Permission denied": "权限不足",
    "permission denied": "权限不足",
    "Operation not permitted": "不允许此操作",
    "operation not permitted": "不允许此操作",
    "No such file or directory": "文件或文件夹不存在",
    "no such file or directory": "文件或文件夹不存在",
    "Not a directory": "路径中有一级不是文件夹",
    "not a directory": "路径中有一级不是文件夹",
    "Is a directory": "它是文件夹",
    "is a directory": "它是文件夹",
    "No space left on device": "磁盘空间不足",
    "no space left on device": "磁盘空间不足",
    "Read-only file system": "文件系统只读",
    "read-only file system": "文件系统只读",
    "File name too long": "文件名过长",
    "file name too long": "文件名过长",
    "Input/output error": "输入/输出错误",
    "input/output error": "输入/输出错误",
    "Too many levels of symbolic links": "符号链接层数过多",
    "too many levels of symbolic links": "符号链接层数过多",
    # what keeps a capture from starting
    (
        "No such option: '{}'. See align capture --help; the options of align stand before the script, what "
        "follows the script is the script's own."
    ): "没有选项 '{}'。请参阅 align capture --help；align 的选项写在脚本之前，脚本之后的内容属于脚本自身。",
    "Cannot write '{}': it is a folder. Give a file name with -o, such as {}.": (
        "无法写入 '{}'：它是文件夹。请用 -o 给出文件名，例如 {}。"
    ),
    "Cannot run '{}': {}. Give the path of the training script, or -m MODULE.": (
        "无法运行 '{}'：{}。请给出训练脚本的路径，或使用 -m MODULE。"
    ),
    "it does not exist": "它不存在",
    "Cannot run '{}': {}. Check its permissions.": "无法运行 '{}'：{}。请检查其权限。",
    "Cannot run -m {}: {}. Check the name and PYTHONPATH.": "无法运行 -m {}：{}。请检查名称与 PYTHONPATH。",
    (
        "Cannot capture: torch is not installed in this Python. Install it, or run align from the environment "
        "of the training."
    ): "无法采集：此 Python 中未安装 torch。请安装它，或在训练所用的环境中运行 align。",
    "source /usr/local/Ascend/ascend-toolkit/set_env.sh (or your CANN's set_env.sh)": (
        "source /usr/local/Ascend/ascend-toolkit/set_env.sh（或所安装 CANN 的 set_env.sh）"
    ),
    (
        "Cannot import torch: torch_npu is installed but CANN cannot be loaded ({}). For the NPU, {} first; "
        "for another device, give --device cpu or set {}=0."
    ): (
        "无法导入 torch：已安装 torch_npu，但无法加载 CANN（{}）。使用 NPU 时请先执行 {}；使用其他设备时请给出 "
        "--device cpu 或设置 {}=0。"
    ),
    (
        "Cannot capture on cuda: torch {} sees no CUDA device. Check nvidia-smi and that torch was built for "
        "CUDA, or give --device cpu."
    ): (
        "无法在 cuda 上采集：torch {} 未发现 CUDA 设备。请检查 nvidia-smi 以及 torch 是否为 CUDA 版本，或给出 "
        "--device cpu。"
    ),
    (
        "Cannot capture on npu: torch_npu is not installed in this Python. Install the torch_npu that fits "
        "your torch and CANN."
    ): "无法在 npu 上采集：此 Python 中未安装 torch_npu。请安装与 torch 和 CANN 匹配的 torch_npu。",
    "Cannot capture on npu: torch_npu is installed but CANN cannot be loaded ({}). {}, then try again.": (
        "无法在 npu 上采集：已安装 torch_npu，但无法加载 CANN（{}）。请先执行 {}，然后重试。"
    ),
    "Cannot capture on npu: torch_npu is loaded but sees no NPU. Check npu-smi info and ASCEND_RT_VISIBLE_DEVICES.": (
        "无法在 npu 上采集：已加载 torch_npu，但未发现 NPU。请检查 npu-smi info 与 ASCEND_RT_VISIBLE_DEVICES。"
    ),
    "Cannot read the size '{}': write a number and a unit, such as 500MB or 2GB.": (
        "无法读取大小 '{}'：请写数值与单位，例如 500MB 或 2GB。"
    ),
    "Cannot perturb with the seed {}: choose a whole number from 0 to {}.": (
        "无法以种子 {} 施加扰动：请选择 0 到 {} 的整数。"
    ),
    "Cannot perturb at detail 'stats': statistics do not tell how much a tensor differs. Choose sketch or tensors.": (
        "无法在 'stats' 级别下施加扰动：统计量不能说明张量相差多少。请选择 sketch 或 tensors。"
    ),
    "Cannot capture at detail '{}': choose stats, sketch or tensors.": (
        "无法以 '{}' 级别采集：请选择 stats、sketch 或 tensors。"
    ),
    "Cannot capture the phase '{}': choose from {}.": "无法采集阶段 '{}'：可选 {}。",
    "Cannot keep '{}': choose from {}.": "无法保留 '{}'：可选 {}。",
    "Cannot capture every {} steps: --every takes 1 or more.": "无法每 {} 步采集一次：--every 须不小于 1。",
    (
        "Cannot read the steps '{}': give ranges such as 0:3 (steps 0, 1 and 2), single steps such as 100, or "
        "both as 0:3,100."
    ): "无法读取步 '{}'：请给出范围，例如 0:3（第 0、1、2 步）；或单个步，例如 100；也可两者并用，例如 0:3,100。",
    "Cannot take initial weights from '{}': {}": "无法从 '{}' 取初始权重：{}",
    "it holds none (its phases or modules left them out). Capture it again with --keep init.": (
        "其中没有（采集时的阶段或模块未包含）。请用 --keep init 重新采集。"
    ),
    "it holds no values of them. Capture it again with --keep init.": (
        "其中没有保留它们的数值。请用 --keep init 重新采集。"
    ),
    "Cannot take batches from '{}': {}": "无法从 '{}' 取批次：{}",
    "it holds no values of them. Capture it again with --keep batches.": (
        "其中没有保留它们的数值。请用 --keep batches 重新采集。"
    ),
    "it does not say which call of which model they were for. Capture it again with --keep batches.": (
        "其中未说明它们用于哪个模型的哪次调用。请用 --keep batches 重新采集。"
    ),
    "Cannot take {} from '{}': the capture is written there. Name another file with -o.": (
        "无法从 '{1}' 取{0}：采集结果正要写到那里。请用 -o 指定其他文件。"
    ),
    "Cannot record into '{}' again: this recorder was closed. Make a new one.": (
        "无法再次录制到 '{}'：该 Recorder 已关闭。请新建一个。"
    ),
    "Cannot record into '{}': '{}' is being recorded. Close it first.": (
        "无法录制到 '{}'：正在录制 '{}'。请先将其关闭。"
    ),
}
