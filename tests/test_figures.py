"""The figures as a page gets them: whole SVG, sentences, legends and twins, in both languages, from real records."""

# ruff: noqa: RUF001 - Chinese is written with full-width signs

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Sequence
from functools import cache
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from align.curve_records import Quantity
from align.records import DiffResult, InspectResult, Phase, Status, TensorKey, TimelineRow
from align.reports import figures
from align.reports.figures import Picture
from align.reports.figures.exponent_bars import edges_of, limits_of, shares_of, window_of
from align.reports.figures.heat_cells import make_heat
from align.reports.language import ENGLISH, LANGUAGES, Language
from tests import figure_samples, inspect_samples, report_samples

CHINESE = LANGUAGES["zh"]
LARGEST = 120_000
HOSTILE = '</script><img src=x onerror=alert(1)>\u202e$x$_`"'


def of_pair(result: DiffResult, language: Language = ENGLISH) -> list[Picture]:
    return [
        *figures.difference_pictures(result, language),
        *figures.training_pictures(result, language),
        figures.scale_picture(result, language),
        figures.exponent_picture(result, language),
        figures.heat_picture(result, language),
    ]


def of_run(result: InspectResult, language: Language = ENGLISH) -> list[Picture]:
    return [
        *figures.run_pictures(result, language),
        figures.scale_picture(result, language),
        figures.exponent_picture(result, language),
    ]


def of_acceptance(language: Language = ENGLISH) -> list[Picture]:
    return [figures.accept_picture(figure_samples.accepted(), language)]


@cache
def every(name: str, code: str) -> list[Picture]:
    return EVERY[name](LANGUAGES[code])


EVERY: dict[str, Callable[[Language], list[Picture]]] = {
    "scaled pair": lambda language: of_pair(figure_samples.scaled_pair(), language),
    "diverged": lambda language: of_pair(report_samples.diverged(), language),
    "many steps": lambda language: of_pair(report_samples.huge(), language),
    "run": lambda language: of_run(figure_samples.scaled_run(), language),
    "acceptance": of_acceptance,
}


def parsed(text: str) -> ET.Element:
    return ET.fromstring(f"<div>{text}</div>")  # noqa: S314 - our own text


def named(pictures: Sequence[Picture], name: str) -> Picture:
    return next(picture for picture in pictures if picture.name == name)


@pytest.mark.parametrize(
    ("name", "language"),
    [*((name, ENGLISH) for name in EVERY), ("scaled pair", CHINESE), ("run", CHINESE), ("acceptance", CHINESE)],
    ids=lambda value: value if isinstance(value, str) else value.code,
)
def test_every_figure_is_whole_small_and_in_the_colours_of_the_page(name: str, language: Language) -> None:
    pictures = every(name, language.code)

    assert any(picture.drawn for picture in pictures)
    for picture in pictures:
        assert picture.title
        assert picture.sentence
        assert "{" not in picture.title + picture.sentence
        parsed(figures.block(picture, language))
        if picture.drawn:
            assert len(picture.svg.encode()) < LARGEST
            assert picture.svg.startswith('<svg viewBox="0 0 ')
            assert not re.search(r">@\w*@?<|#0101|DejaVu|http|\bstyle=\"[^\"]*url\((?!#)", picture.svg)
            assert not set(re.findall(r"#[0-9a-f]{6}\b", picture.svg))
        assert all(len(row) == len(picture.titles) for row in picture.rows)


@pytest.mark.parametrize("name", EVERY)
def test_ids_are_unique_among_the_pictures_of_a_page_and_refer_to_one_another(name: str) -> None:
    text = "".join(figures.block(picture, ENGLISH) for picture in every(name, "en"))

    ids = re.findall(r'\bid="([^"]*)"', text)
    wanted = {*re.findall(r'href="#([^"]*)"', text), *re.findall(r"url\(#([^)]*)\)", text)}
    assert len(ids) == len(set(ids))
    assert wanted <= set(ids)


def test_the_same_result_gives_the_same_bytes() -> None:
    result = figure_samples.scaled_pair()

    again = of_pair(result)

    assert [picture.svg for picture in again] == [picture.svg for picture in every("scaled pair", "en")]


def test_names_are_text_and_never_reach_the_drawing() -> None:
    whole = figure_samples.scaled_pair()

    def key(given: TensorKey) -> TensorKey:
        return dataclasses.replace(given, name=HOSTILE + given.name, slot=given.slot + HOSTILE)

    pairs = tuple(
        dataclasses.replace(
            pair,
            reference=dataclasses.replace(pair.reference, key=key(pair.key)),
            candidate=dataclasses.replace(pair.candidate, key=key(pair.key)),
        )
        for pair in whole.comparisons
    )
    exponents = tuple(dataclasses.replace(each, key=key(each.key)) for each in whole.exponents)
    result = dataclasses.replace(whole, comparisons=pairs, exponents=exponents)
    pictures = of_pair(result)
    run = dataclasses.replace(inspect_samples.hostile(), exponents=exponents)

    for picture in [*pictures, *of_run(run)]:
        text = figures.block(picture, ENGLISH)
        assert {each.tag for each in parsed(text).iter()}.isdisjoint({"img", "script"})
        assert "\u202e" not in text
    # The drawing itself is the same but for the words that were put in afterwards.
    for name in ("fig-loss-scale", "fig-exponents"):
        plain, odd = (named(each, name).svg for each in (every("scaled pair", "en"), pictures))
        assert re.sub(r">[^<]+</text>", ">", plain) == re.sub(r">[^<]+</text>", ">", odd)


def test_what_is_to_be_seen_is_said_of_two_runs() -> None:
    said = {picture.name: picture.sentence for picture in every("scaled pair", "en")}

    assert said["fig-loss"] == (
        "Reference from 3.4000 (step 0) to 1.3260 (step 29), candidate from 3.4000 (step 0) to 1.3260 (step 29). "
        "Equal to the bit in all 30 common steps."
    )
    assert said["fig-learning-rate"] == (
        "Reference 1.0e-3 in every step, candidate 3.0e-4 in every step. Largest relative difference: -70.0 % in "
        "step 0; half of the steps differ by 70.0 % or less."
    )
    assert said["fig-loss-scale"] == (
        "Reference: 65,536 (2^16) in step 0, 262,144 (2^18) in the end; no step skipped, grown 2 times. Candidate: "
        "65,536 (2^16) in step 0, 16,384 (2^14) in the end; 3 of 30 steps skipped, the first is step 0, grown once. "
        "The numbers at the marks are those of the causes in the table."
    )
    assert said["fig-exponents"] == (
        "layers.0.attn weight in step 0, reference and candidate: 2.0 % and 30.0 % of the elements are zero, 3.0 % and "
        "12.0 % subnormal, 0 and 0 Inf or NaN. Shown are 4 tensors, the one with most at the limits of its format "
        "first. A wide bar up to the largest value stands where no exponents were counted."
    )
    assert said["fig-heat"] == (
        "18 modules in execution order from top to bottom, 2 steps from left to right: the darker a field, the further "
        "above the floor; what is inherited counts in units of rounding. No field lies above its limit; the largest is "
        "1.6x the floor at layers.0.ln_2, step 1. 2 fields have NaN or Inf."
    )


def test_what_is_to_be_seen_is_said_in_chinese() -> None:
    pictures = every("scaled pair", "zh")

    assert named(pictures, "fig-loss-scale").sentence == (
        "标杆：第 0 步为 65,536 (2^16)，最终为 262,144 (2^18)；没有跳过的步，系数增长 2 次。"
        "待比对：第 0 步为 65,536 (2^16)，最终为 16,384 (2^14)；30 步中跳过 3 步，首次为第 0 步，系数增长 1 次。"
        "标记旁的数字对应表中的原因。"
    )
    assert named(pictures, "fig-learning-rate").sentence == (
        "标杆侧各步均为 1.0e-3，待比对侧各步均为 3.0e-4。最大相对误差 -70.0%（第 0 步）；半数的步不超过 70.0%。"
    )
    assert "执行顺序" in named(pictures, "fig-along-0").svg
    assert "次正规数" in named(pictures, "fig-exponents").svg


def test_the_first_difference_is_named_and_outlined() -> None:
    pictures = every("diverged", "en")

    forward, backward = named(pictures, "fig-along-0"), named(pictures, "fig-along-1")
    assert forward.sentence == (
        "61 tensors, of which 59 have a difference; the largest is 0.031 at layers.2.mlp.act output.0. The first "
        "difference is tensor 40, layers.2.mlp.act output.0: 0.031, 33,900x the floor."
    )
    assert backward.sentence.endswith("None starts here; 72 inherit a difference.")
    assert "layers.2.mlp.act output.0" in forward.svg
    assert "layers.2.mlp.act output.0" not in backward.svg
    heat = named(pictures, "fig-heat")
    assert "The first difference is at layers.2.mlp.act in step 0 (outlined)." in heat.sentence
    assert heat.svg.count('stroke="var(--error)"') == 1


def test_many_tensors_are_a_band_with_the_first_one_marked() -> None:
    result = dataclasses.replace(
        report_samples.diverged(), comparisons=report_samples.comparisons(1, 90, (0, "layers.2.mlp.act", "output.0"))
    )

    forward, backward = figures.difference_pictures(result, ENGLISH)

    assert forward.sentence.startswith("1,265 tensors, of which 1,263 have a difference; ")
    assert "The first difference is tensor 40, layers.2.mlp.act output.0: 0.031, " in forward.sentence
    cut = " Above 1,000 tensors a band spans the smallest and the largest difference of each stretch."
    assert forward.sentence.endswith(cut)
    assert backward.sentence.endswith(f"None starts here; 1,620 inherit a difference.{cut}")
    assert forward.svg.count("<use") < 700
    assert max(len(forward.svg), len(backward.svg)) < LARGEST


def test_skips_stand_in_the_table_with_their_causes() -> None:
    picture = named(every("scaled pair", "en"), "fig-loss-scale")

    assert [title.text for title in picture.titles] == [
        "#", "run", "step", "scale before", "scale after", "first tensor that is not finite",
    ]  # fmt: skip
    cause = "backward: layers.1.mlp.fc2 grad_output.0"
    assert picture.rows == (
        ("1", "candidate", "0", "65,536 (2^16)", "32,768 (2^15)", cause),
        ("1", "candidate", "1", "32,768 (2^15)", "16,384 (2^14)", cause),
        ("", "candidate", "7", "16,384 (2^14)", "8,192 (2^13)", "this step's tensors were not captured"),
    )
    assert picture.svg.count(">1<") == 2


def test_cells_carry_the_numbers_that_they_stand_for() -> None:
    text = figures.block(named(every("scaled pair", "en"), "fig-loss-scale"), ENGLISH)

    assert '<td class="number" data-value="65536.0">65,536 (2^16)</td>' in text
    assert '<td><bdi class="name">backward: layers.1.mlp.fc2 grad_output.0</bdi></td>' in text
    assert '<table class="plain sortable" data-csv="fig-loss-scale">' in text


def test_what_is_never_finite_is_no_cause_of_a_skip() -> None:
    whole = figure_samples.scaled_pair()
    mask = dataclasses.replace(figure_samples.overflow(0))
    later = dataclasses.replace(
        mask,
        reference=dataclasses.replace(mask.reference, key=dataclasses.replace(mask.key, step=2)),
        candidate=dataclasses.replace(mask.candidate, key=dataclasses.replace(mask.key, step=2)),
    )

    picture = figures.scale_picture(dataclasses.replace(whole, comparisons=(*whole.comparisons, later)), ENGLISH)

    assert [row[-1] for row in picture.rows][:2] == ["no tensor that is not finite was seen"] * 2


def test_the_causes_of_one_run_are_those_of_its_inspection() -> None:
    picture = figures.scale_picture(inspect_samples.healthy(), ENGLISH)

    assert picture.rows == (("1", "this run", "0", "65,536 (2^16)", "32,768 (2^15)", "layers.3.mlp.fc1 output.0"),)


def test_the_shares_of_each_zone_stand_in_the_table() -> None:
    picture = named(every("scaled pair", "en"), "fig-exponents")

    assert picture.rows == (
        ("layers.0.attn weight", "0", "fp16", "2.0 % / 30.0 %", "3.0 % / 12.0 %", "95.0 % / 58.0 %", "0", "0.5000"),
        ("layers.1.mlp.fc1 weight", "0", "fp16", "0", "0", "100.0 % / 98.0 %", "0 / 2.0 %", "0.5000"),
        ("layers.1.mlp.fc2 weight", "1", "fp32", "0", "0", "100.0 %", "0", "0.03125"),
        ("layers.1.attn weight", "0", "bf16", "10.0 %", "0", "90.0 %", "0", "3.000"),
    )


def test_formats_that_differ_share_a_panel_of_the_wider_one() -> None:
    entry = figure_samples.magnitudes("head", figure_samples.fp16(10, 0, centre=4), figure_samples.fp32())
    window = window_of(entry)

    assert (window.normal, window.end) == (-19, 1)
    assert limits_of(entry, window) == (-14,)
    bars = shares_of(entry.candidate, window)
    assert sum(share for share in bars if not math.isnan(share)) == pytest.approx(1.0)
    assert len(bars) == len(edges_of(window)) - 1
    picture = figures.exponent_picture(dataclasses.replace(report_samples.aligned(), exponents=(entry,)), ENGLISH)
    assert picture.rows[0][2] == "fp32 / fp16"
    assert ">head weight (fp32/fp16)<" in picture.svg


def test_limits_of_an_acceptance_are_lines_with_the_numbers_of_their_criteria() -> None:
    (picture,) = every("acceptance", "en")

    assert picture.sentence.endswith("The dotted lines are the limits: 1.0 % of criterion 2, 4, 2.0 % of criterion 3.")
    assert "Not finite: candidate, step 1,000." in picture.sentence
    assert "no. 2, 4: 1.0 %" in picture.svg
    assert "no. 3: 2.0 %" in picture.svg
    assert [mark.text for mark in picture.legend] == [
        "reference",
        "candidate",
        "each step",
        "mean over 100 steps",
        "limits, with the numbers of their criteria",
        "NaN or Inf",
    ]


def test_a_perplexity_is_compared_by_its_logarithm() -> None:
    result = figure_samples.accepted(200)
    sides = [
        dataclasses.replace(side, columns={Quantity.LOSS: np.exp(side.columns[Quantity.LOSS])})
        for side in (result.reference, result.candidate)
    ]

    picture = figures.accept_picture(dataclasses.replace(result, reference=sides[0], candidate=sides[1]), ENGLISH)

    assert picture.sentence.endswith("Differences are those of the logarithm: the loss is a perplexity.")


def test_a_hundred_thousand_steps_are_thinned_and_keep_their_extremes() -> None:
    steps = 100_000
    row = dataclasses.replace(report_samples.timeline(1)[0], loss=2.0)
    reference = [dataclasses.replace(row, step=step, gradient_norm=1.0 + step % 7) for step in range(steps)]
    candidate = list(reference)
    candidate[77_777] = dataclasses.replace(reference[77_777], loss=2.5)
    candidate[5] = dataclasses.replace(reference[5], loss=math.nan, nonfinite=True)
    result = dataclasses.replace(
        report_samples.aligned(),
        reference_timeline=tuple(reference),
        candidate_timeline=tuple(candidate),
        comparisons=(),
    )

    loss, norm = figures.training_pictures(result, ENGLISH)

    assert loss.sentence == (
        "Reference 2.0000 in every step, candidate from 2.0000 (step 0) to 2.0000 (step 99,999). Largest relative "
        "difference: +25.0 % in step 77,777; half of the steps do not differ. Not finite: candidate, step 5."
    )
    assert {"77777", "5"} <= {row[0] for row in loss.rows}
    assert loss.more == steps - len(loss.rows)
    assert norm.drawn
    assert max(len(loss.svg), len(norm.svg)) < LARGEST


def test_without_anything_to_draw_a_sentence_says_why() -> None:
    bare = dataclasses.replace(
        report_samples.aligned(), comparisons=(), reference_timeline=(), candidate_timeline=(), exponents=()
    )
    pictures = [*of_pair(bare), figures.accept_picture(figure_samples.accepted(0), ENGLISH)]

    assert {picture.name: picture.sentence for picture in pictures} == {
        "fig-loss": "No loss curve: neither run recorded the loss of two steps.",
        "fig-gradient-norm": "No curve: neither run recorded the gradient norm of two steps.",
        "fig-loss-scale": "No loss scaling: no step has a loss scale (usual with bf16 and fp32).",
        "fig-exponents": ("No 16-bit gradient and no count of exponents was captured: the range of fp32 is no risk."),
        "fig-heat": "No tensor could be measured, so there is nothing to draw.",
        "fig-accept": "No per-step data: only single values were compared.",
    }
    assert not any(picture.drawn or picture.rows for picture in pictures)
    assert figures.block(pictures[0], ENGLISH) == (
        '<p class="muted"><strong>Loss</strong> No loss curve: neither run recorded the loss of two steps.</p>'
    )


NOTHING = "No loss curve: neither run recorded the loss of two steps."
CURVES: dict[str, tuple[list[float], list[float], str]] = {
    "one point each": ([2.0], [2.1], NOTHING),
    "all NaN": ([math.nan] * 4, [math.nan] * 4, NOTHING),
    "all infinite": ([math.inf] * 4, [-math.inf] * 4, NOTHING),
    "one side only": (
        [2.0, 1.5],
        [],
        "Reference from 2.0000 (step 0) to 1.5000 (step 1), candidate not recorded.",
    ),
    "constant": (
        [2.0] * 5,
        [2.0] * 5,
        "Reference 2.0000 in every step, candidate 2.0000 in every step. Equal to the bit in all 5 common steps.",
    ),
    "zeros": (
        [0.0] * 5,
        [1.0] * 5,
        (
            "Reference 0.0000 in every step, candidate 1.0000 in every step. There is no relative difference: the "
            "reference is 0."
        ),
    ),
    "one finite point and a lost one": (
        [2.0, math.inf],
        [2.0, 1.0],
        (
            "Reference 2.0000 in step 0 only, candidate from 2.0000 (step 0) to 1.0000 (step 1). Equal to the bit in "
            "the one common step. Not finite: reference, step 1."
        ),
    ),
    "both signs": (
        [-1.0, 1.0, -1.0, 1.0],
        [-1.0, 1.0, -1.0, 2.0],
        (
            "Reference from -1.0000 (step 0) to 1.0000 (step 3), candidate from -1.0000 (step 0) to 2.0000 (step 3). "
            "Largest relative difference: +50.0 % in step 3; half of the steps do not differ."
        ),
    ),
}


@pytest.mark.parametrize("name", CURVES)
def test_odd_curves_are_drawn_or_said(name: str) -> None:
    reference, candidate, sentence = CURVES[name]

    def line(losses: list[float]) -> tuple[TimelineRow, ...]:
        rows = report_samples.timeline(len(losses))
        return tuple(dataclasses.replace(row, loss=loss) for row, loss in zip(rows, losses, strict=True))

    result = dataclasses.replace(
        report_samples.aligned(),
        reference_timeline=line(reference),
        candidate_timeline=line(candidate),
        comparisons=(),
    )

    loss = figures.training_pictures(result, ENGLISH)[0]

    assert loss.sentence == sentence
    assert loss.drawn is not sentence.startswith("No ")


def test_one_step_has_no_course() -> None:
    result = dataclasses.replace(report_samples.diverged(), comparisons=report_samples.comparisons(1, 2))

    assert figures.heat_picture(result, ENGLISH).sentence == "One step was compared: there is nothing to see over time."
    one = dataclasses.replace(inspect_samples.healthy(), timeline=figure_samples.rows((), (), steps=1))
    assert figures.scale_picture(one, ENGLISH).sentence == (
        "Only one step was recorded: its loss scale is 65,536 (2^16)."
    )


def test_layers_and_steps_without_room_share_fields_and_show_the_worst() -> None:
    pairs = report_samples.comparisons(210, 2, jump_at=(120, "layers.1.mlp.act", "output.0"))
    result = dataclasses.replace(report_samples.aligned(), comparisons=pairs)

    heat = make_heat(result)

    assert (heat.modules, heat.steps, heat.merged) == (18, 210, (1, 4))
    assert len(heat.columns) == 53
    row = heat.labels.index("layers.1.mlp.act")
    assert heat.class_of(heat.fields[row, 30]) == 5
    assert heat.class_of(heat.fields[row, 29]) == 1
    assert (row, 30) in heat.origins
    picture = figures.heat_picture(result, ENGLISH)
    assert picture.sentence.endswith("Each field is the worst of up to 4 steps.")
    assert len(picture.svg) < LARGEST


def test_two_thousand_modules_stay_within_eighty_rows() -> None:
    whole = report_samples.diverged()
    origin = next(pair for pair in whole.comparisons if pair.status is Status.ORIGIN)
    pairs = []
    for step in range(2):
        for number in range(2000):
            key = dataclasses.replace(origin.key, step=step, phase=Phase.FORWARD, name=f"module{number}")
            sides = (dataclasses.replace(side, key=key) for side in (origin.reference, origin.candidate))
            reference, candidate = sides
            status = Status.WITHIN if (number * 7 + step) % 11 else Status.PROPAGATED
            pairs.append(
                dataclasses.replace(
                    origin, reference=reference, candidate=candidate, status=status, times_floor=0.5 + number % 13
                )
            )
    heat = make_heat(dataclasses.replace(whole, comparisons=tuple(pairs)))

    assert len(heat.labels) == 80
    assert heat.merged == (25, 1)
