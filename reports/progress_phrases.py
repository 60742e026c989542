"""What the line of progress says, in each language."""

from __future__ import annotations

ENGLISH = {
    "reading": "reading the captures",
    "initial": "comparing the initial weights",
    "comparing": "comparing step {part} of {parts}",
    "explaining": "looking for the cause",
    "inspecting": "inspecting the run",
    "pairing": "pairing the entries",
    "bytes": "comparing checkpoints",
    "replaying": "replaying run {part} of {parts}",
    "writing": "making the report",
    "far": "{done} of {total}",
    "rate": "{done} of {total}, {rate}/s, {left} left",
}

CHINESE = {
    "reading": "正在读取采集",
    "initial": "正在比对初始权重",
    "comparing": "正在比对第 {part} 步（共 {parts} 步）",
    "explaining": "正在定位原因",
    "inspecting": "正在检查运行",
    "pairing": "正在配对条目",
    "bytes": "正在比对 checkpoint",
    "replaying": "正在回放第 {part} 个运行（共 {parts} 个）",
    "writing": "正在生成报告",
    "far": "{done} / {total}",
    "rate": "{done} / {total}，{rate}/s，剩余 {left}",
}

PHRASES = {"en": ENGLISH, "zh": CHINESE}
