"""Modules over the steps behind a large first difference: colours up to the largest value, and a legend of them."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest

from align.records import DiffResult
from align.reports.figures.heat_cells import make_heat
from align.reports.figures.heat_map import heat_picture
from align.reports.html import diff_page
from align.reports.language import LANGUAGES
from tests import report_samples
from tests.browsing import Pages
from tests.builders import Array, diff_files
from tests.numpy_run import make

STEPS = 4


def half_more(array: Array) -> Array:
    return np.asarray(array * 1.5)


@pytest.fixture(scope="module")
def parted(tmp_path_factory: pytest.TempPathFactory) -> DiffResult:
    """One module gives half more than it should, in every step: all that follows differs by tens of percent."""
    folder = tmp_path_factory.mktemp("heat")
    faults = {(step, "forward blocks.0.mlp.fc"): half_more for step in range(STEPS)}
    reference = make(folder / "a.h5", steps=STEPS)
    return diff_files(reference, make(folder / "b.h5", steps=STEPS, faults=faults))


def test_what_follows_a_large_difference_has_several_classes_up_to_the_largest(parted: DiffResult) -> None:
    heat = make_heat(parted)

    above = [field for field in heat.fields.values() if (heat.class_of(field) or 0) > 2]
    largest = max(field.times or 0.0 for field in above)
    assert heat.top == largest > 1e6
    assert {heat.class_of(field) for field in above} >= {3, 4, 5, 6}
    assert max(above, key=lambda field: field.times or 0.0) in [field for field in above if heat.class_of(field) == 6]
    assert heat.ends[:3] == (1.0, 2.0, heat.limit)
    assert list(heat.ends) == sorted(heat.ends)
    assert [float(f"{end:.0e}") for end in heat.ends[3:]] == list(heat.ends[3:])


def test_differences_of_the_usual_size_keep_the_usual_classes() -> None:
    result = report_samples.diverged()
    smaller = tuple(
        dataclasses.replace(pair, times_floor=pair.times_floor / 10, relative_l2=pair.relative_l2 / 10)
        if pair.times_floor is not None and pair.relative_l2 is not None
        else pair
        for pair in result.comparisons
    )

    heat = make_heat(dataclasses.replace(result, comparisons=smaller))

    assert 1e4 < max(field.times or 0.0 for field in heat.fields.values()) < 1e5
    assert (heat.ends, heat.top) == ((1.0, 2.0, heat.limit, 30.0, 300.0, 1e4), None)


@pytest.mark.parametrize(
    ("code", "pattern"),
    [
        ("en", r"limit to ([\d,e]+)\n\1 to ([\d,e]+)\n\2 to ([\d,e]+)\n\3 to ([\d.e]+), the largest\n"),
        ("zh", r"限值至 ([\d,e]+)\n\1 至 ([\d,e]+)\n\2 至 ([\d,e]+)\n\3 至 ([\d.e]+)\uff08最大值\uff09\n"),
    ],
)
def test_the_legend_says_where_the_classes_end(parted: DiffResult, code: str, pattern: str) -> None:
    picture = heat_picture(parted, LANGUAGES[code])

    assert re.search(pattern, "\n".join(mark.text for mark in picture.legend) + "\n")


def test_the_page_draws_and_names_the_same_classes(parted: DiffResult, pages: Pages, tmp_path: Path) -> None:
    path = tmp_path / "parted.html"
    path.write_text(diff_page(parted), encoding="utf-8")
    colours = """(canvas) => {
      const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data, seen = new Map();
      for (let at = 0; at < pixels.length; at += 4) {
        const name = `#${[0, 1, 2].map((part) => pixels[at + part].toString(16).padStart(2, "0")).join("")}`;
        seen.set(name, (seen.get(name) || 0) + 1);
      }
      return classColors().slice(3).map((name) => seen.get(name) || 0);
    }"""

    with pages.open(path) as opened:
        opened.page.evaluate(
            "window.classColors = () => [0, 1, 2, 3, 4, 5, 6].map((each) => "
            "getComputedStyle(document.documentElement).getPropertyValue(`--heat-${each}`).trim())"
        )
        drawn = opened.page.locator("#heat").evaluate(colours)
        legend = opened.page.locator("#heat-classes li").all_inner_texts()
        opened.page.locator("#language").click()
        chinese = opened.page.locator("#heat-classes li").all_inner_texts()

        assert opened.violations() == []
    assert opened.said == []
    assert min(drawn) > 20
    assert [text.strip() for text in legend[:3]] == ["below 1x", "1x to 2x", "2x to 7x"]
    assert re.fullmatch(r"7x to ([\d,e]+)x \u2013 here a difference begins", legend[3].strip())
    assert re.fullmatch(r"[\d,e]+x to [\d,.e]+x, the largest here", legend[6].strip())
    assert chinese[6].strip().endswith("\uff08此处的最大值\uff09")
