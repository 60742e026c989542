"""Values over steps as figures draw them, and paths of SVG made short: properties that hold for any numbers."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from align.reports.figures.lines import (
    Line,
    changes,
    even_places,
    make_line,
    moving_mean,
    relative_differences,
    spans,
    thinned,
)
from align.reports.figures.svg_text import shortened

VALUES = st.lists(st.one_of(st.floats(-1e6, 1e6), st.just(math.nan)), min_size=1, max_size=300)


def line(values: list[float]) -> Line:
    return make_line(range(len(values)), values, [math.isnan(value) for value in values])


@given(VALUES, st.integers(4, 40))
@settings(max_examples=100, deadline=None)
def test_thinning_keeps_extremes_order_and_what_was_lost(values: list[float], most: int) -> None:
    whole = line(values)

    thin = thinned(whole, most)

    assert len(thin.steps) <= max(most, 2)
    assert (np.diff(thin.steps) > 0).all()
    assert thin.lost.tolist() == whole.lost.tolist()
    if len(whole.known):
        assert thin.known.min() == whole.known.min()
        assert thin.known.max() == whole.known.max()
    kept = dict(zip(whole.steps.tolist(), whole.values.tolist(), strict=True))
    assert all(
        kept[step] == value or math.isnan(value)
        for step, value in zip(thin.steps.tolist(), thin.values.tolist(), strict=True)
    )


@given(VALUES)
@settings(max_examples=50, deadline=None)
def test_a_line_against_itself_has_no_difference(values: list[float]) -> None:
    whole = line(values)

    assert not relative_differences(whole, whole).values.any()


@given(st.lists(st.integers(0, 3), min_size=1, max_size=60))
@settings(max_examples=50, deadline=None)
def test_a_stepped_line_is_the_same_without_what_stays(values: list[int]) -> None:
    whole = make_line(range(len(values)), [float(value) for value in values])
    short = changes(whole)

    places = np.searchsorted(short.steps, whole.steps, side="right") - 1
    assert short.values[places].tolist() == whole.values.tolist()


@given(st.sets(st.integers(0, 200), min_size=1, max_size=60))
@settings(max_examples=50, deadline=None)
def test_spans_hold_every_step_and_no_other(steps: set[int]) -> None:
    assert {step for first, last in spans(steps) for step in range(first, last + 1)} == steps


def test_a_difference_near_zero_is_held_against_a_share_of_the_first_value() -> None:
    reference, candidate = line([10.0, 1e-6]), line([10.0, 0.1])

    assert relative_differences(reference, candidate).values.tolist() == pytest.approx([0.0, 0.2], rel=1e-4)


def test_a_moving_mean_begins_where_it_has_enough_points() -> None:
    mean = moving_mean(line([1.0, 2.0, 3.0, 4.0]), 3)

    assert mean.steps.tolist() == [2, 3]
    assert mean.values.tolist() == pytest.approx([2.0, 3.0])
    assert not len(moving_mean(line([1.0, 2.0]), 3).steps)


def test_places_are_spread_and_hold_what_has_to_be_there() -> None:
    places = even_places(1000, 10, [17])

    assert 17 in places
    assert (places[0], places[-1], len(places)) == (0, 999, 10)
    assert even_places(3, 10) == [0, 1, 2]


@given(st.lists(st.tuples(st.floats(-500, 500), st.floats(-500, 500)), min_size=4, max_size=40))
@settings(max_examples=50, deadline=None)
def test_a_short_path_ends_at_most_a_tenth_from_where_it_should(points: list[tuple[float, float]]) -> None:
    vertices = [(round(x, 4), round(y, 4)) for x, y in points]
    long = "".join(f"{'ML'[number > 0]} {x} {y} \n" for number, (x, y) in enumerate(vertices))

    (short,) = re.findall(r'd="([^"]*)"', shortened(f'<path d="{long}"/>'))

    place = [0.0, 0.0]
    for command, numbers in re.findall(r"([Mlhv])([^Mlhv]*)", short):
        values = [float(number) for number in numbers.split()]
        if command == "M":
            place = values
        elif command == "h":
            place[0] += values[0]
        elif command == "v":
            place[1] += values[0]
        else:
            place = [place[0] + values[0], place[1] + values[1]]
    assert place == pytest.approx(vertices[-1], abs=0.06)
    assert len(short) <= len(long)
