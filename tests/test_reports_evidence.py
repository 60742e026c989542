"""Evidence on pages: numbers in words, in both languages, whatever form the rules keep them in."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from align.records import Finding, Severity
from align.reports.evidence import FORMS, PAIRS, evidence_pairs
from align.reports.html import diff_page
from align.reports.language import LANGUAGES
from align.reports.markdown import diff_markdown
from tests.builders import diff_files
from tests.numpy_run import make


def told(code: str, name: str, value: Any, language: str) -> tuple[str, ...]:
    """The name and the text of one evidence; empty for what says nothing."""
    finding = Finding(code, "label", Severity.NOTE, "", "", evidence={name: value})
    return next(iter(evidence_pairs(finding, LANGUAGES[language])), ())


RATES = {"0": [0.001, 0.002], "1": [0.001, 0.0020004]}
SAMPLES = {"kind": "gaps", "samples": 1200, "common": 8, "told_by": "tokens"}
MULTIPLE = {"factor": 0.5000001, "of": "step 0, forward: act output.0", "residual": 8.2e-7}


@pytest.mark.parametrize(
    ("name", "value", "english", "chinese"),
    [
        (
            "learning_rates", RATES, ("learning rates", "step 0: 0.001 against 0.002; step 1: 0.001 against 0.0020004"),
            ("学习率", "第 0 步：0.001 对比 0.002；第 1 步：0.001 对比 0.0020004"),
        ),
        (
            "schedule", {"kind": "times", "number": 8.0}, ("schedule", "8 times that of the reference"),
            ("调度", "标杆侧的 8 倍"),
        ),
        (
            "schedule", {"kind": "faster", "number": 4.0}, ("schedule", "4 steps of the reference in each step"),
            ("调度", "每步相当于标杆侧的 4 步"),
        ),
        (
            "schedule", {"kind": "slower", "number": 4.0}, ("schedule", "4 steps for each step of the reference"),
            ("调度", "4 步相当于标杆侧的一步"),
        ),
        ("schedule", {"kind": "shifted", "number": -2.0}, ("schedule", "2 steps behind"), ("调度", "落后 2 步")),
        ("schedule", {"kind": "shifted", "number": 1.0}, ("schedule", "1 step ahead"), ("调度", "领先 1 步")),
        (
            "samples", SAMPLES, ("samples", "gaps (8 of 1,200 in both runs, told by tokens)"),
            ("样本", "有缺漏（1,200 中两侧共有 8，依据 tokens）"),
        ),
        ("samples", {**SAMPLES, "samples": 0}, (), ()),
        ("samples", 12, ("samples", "12"), ("样本数", "12")),
        (
            "labels", {"moved_by": -1, "agreeing": 63, "compared": 64},
            ("labels", "moved by 1 place (63 of 64 agree then)"),
            ("标签", "移动 1 个位置（移动后 64 中 63 一致）"),
        ),
        (
            "generators", {"torch": {"differs_at": 1, "agreed_at": 0}, "cuda": {"differs_at": 0, "agreed_at": None}},
            ("generators", "torch: another state since step 1, equal in step 0; cuda: another state since step 0"),
            ("随机数生成器", "torch：自第 1 步起状态不同，第 0 步时相同；cuda：自第 0 步起状态不同"),
        ),
        (
            "difference_is", MULTIPLE,
            ("difference is", "0.5 times step 0, forward: act output.0 (relative L2 of the rest 8.2e-7)"),
            ("差异为", "step 0, forward: act output.0 的 0.5 倍（其余部分的相对 L2 为 8.2e-7）"),
        ),
        ("wrong_run", [20, 32], ("wrong run", "20-31"), ("错误的连续元素", "20-31")),
        (
            "wrong_slice", {"dimension": 1, "start": 7, "stop": 8}, ("wrong slice", "7 along dimension 1"),
            ("错误的切片", "沿第 1 维的 7"),
        ),
        ("reference_shape", [4, 16], ("reference shape", "[4, 16]"), ("标杆侧形状", "[4, 16]")),
        ("reference_shape", [], ("reference shape", "a single number"), ("标杆侧形状", "单个数")),
        ("layouts", ["", "strided"], ("layouts", "row-major against strided"), ("内存布局", "行优先对比 strided")),
        (
            "seeds", {"torch seed": [1234, 5]}, ("seeds", "torch seed: 1234 against 5"),
            ("随机种子", "torch seed：1234 对比 5"),
        ),
        (
            "loader_settings", {"shuffle": [True, False], "seed": [7, None]},
            ("loader settings", "shuffle: yes against no; seed: 7 against not recorded"),
            ("DataLoader 设置", "shuffle：是对比否；seed：7 对比未记录"),
        ),
        (
            "factors", {"0": 1.37, "1": 0.7}, ("factors", "micro 0: 1.370, micro 1: 0.7000"),
            ("倍数", "micro 0: 1.370、micro 1: 0.7000"),
        ),
        ("steps", [0, 1, 2, 7], ("steps", "0-2, 7"), ("步", "0-2、7")),
        ("steps", 40, ("steps", "40"), ("步数", "40")),
        ("relative_l2", {"ids": None}, (), ()),
        ("relative_l2", {"fc": 0.031}, ("relative L2", "fc: 0.031"), ("相对 L2 误差", "fc: 0.031")),
        ("told_by_device", True, ("told by device", "yes"), ("设备已提示", "是")),
        (
            "names", [f"n{place}" for place in range(10)], ("names", "n0, n1, n2, n3, n4, n5, n6, n7, and 2 more"),
            ("名称", "n0、n1、n2、n3、n4、n5、n6、n7、另有 2 项"),
        ),
        ("pairs", [["a", "b"], ["c", "d"]], ("pairs", "a, b; c, d"), ("成对的条目", "a、b；c、d")),
        (
            "reaches", ["0:gradient", "0:param", "1:loss"], ("reaches", "step 0: gradient, param; step 1: loss"),
            ("传播到", "第 0 步：gradient、param；第 1 步：loss"),
        ),
        (
            "loss_scales", [65536.0, 1.0], ("loss scales", "65,536 (2^16) against 1 (2^0)"),
            ("损失缩放系数", "65,536 (2^16) 对比 1 (2^0)"),
        ),
        ("relations", {"fc": "cast"}, ("relations", "fc: cast"), ("关系", "fc：精度转换")),
        ("limit", 7.0, ("limit", "7.000"), ("限值", "7.000")),
    ],
)  # fmt: skip
def test_evidence_is_told_in_words(name: str, value: Any, english: tuple[str, ...], chinese: tuple[str, ...]) -> None:
    assert told("AL999", name, value, "en") == english
    assert told("AL999", name, value, "zh") == chinese


def test_settings_of_both_runs_are_held_against_each_other() -> None:
    assert told("AL604", "zeros", [0.0, 0.25], "en") == ("zeros", "0.0 % against 25.0 %")
    assert told("AL102", "matrix products", ["TF32", "fp32"], "en") == ("matrix products", "TF32 against fp32")


def test_the_page_of_rates_that_differ_shows_no_dictionary(tmp_path: Path) -> None:
    files = (make(tmp_path / "a.h5", steps=5), make(tmp_path / "b.h5", steps=5, learning_rate=0.008))

    result = diff_files(*files)

    for code in LANGUAGES:
        against, ahead = {"en": ("against", "8 times that of the reference"), "zh": ("对比", "标杆侧的 8 倍")}[code]
        steps = [f"step {step}: " if code == "en" else f"第 {step} 步：" for step in range(5)]
        rates = ("; " if code == "en" else "；").join(f"{step}0.001 {against} 0.008" for step in steps)
        page = diff_page(result, LANGUAGES[code]).partition("<template")[0]
        shown = re.findall(r"<dt>([^<]*)</dt><dd>([^<]*)</dd>", page.partition('class="evidence"')[2])

        assert [text for _, text in shown[:2]] == [rates, ahead]
        assert f'<dl class="evidence" aria-label="{LANGUAGES[code]["evidence"]}">' in page
        assert f"{rates}" in diff_markdown(result, LANGUAGES[code])


PLAIN = st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.floats(), st.sampled_from(["", "word", "a.b"]))
PARTS = sorted({
    "kind", "number", "samples", "common", "told_by", "moved_by", "agreeing", "compared", "differs_at", "agreed_at",
    "factor", "of", "residual", "dimension", "start", "stop",
})  # fmt: skip
SHAPED = st.fixed_dictionaries({}, optional=dict.fromkeys(PARTS, PLAIN))
NESTED = (
    SHAPED
    | st.dictionaries(st.sampled_from("01ab"), SHAPED, max_size=2)
    | st.recursive(
        PLAIN,
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("01ab"), inner)),
        max_leaves=9,
    )
)


@settings(max_examples=300, deadline=None)
@given(name=st.sampled_from(sorted({*FORMS, *PAIRS, "load", "steps", "factors", "other"})), value=NESTED)
def test_evidence_of_any_form_is_text_without_code(name: str, value: Any) -> None:
    for language in LANGUAGES:
        text = " ".join(told("AL102", name, value, language))
        assert not re.search(r"[{}]|None|True|False", text)
