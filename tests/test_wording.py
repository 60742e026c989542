"""How numbers are written."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from align import wording


@pytest.mark.parametrize(
    ("write", "number", "text"),
    [
        (wording.relative, 0.031, "0.031"),
        (wording.relative, 1.3e-4, "1.3e-4"),
        (wording.relative, 2.1e-7, "2.1e-7"),
        (wording.relative, 0.996, "1.0"),
        (wording.relative, 0.0, "0"),
        (wording.relative, None, "not compared"),
        (wording.relative, math.inf, "Inf"),
        (wording.times, 6.4, "6.4x"),
        (wording.times, 9.97, "9.97x"),
        (wording.times, 147.2, "147x"),
        (wording.times, 1470.4, "1,470x"),
        (wording.times, 147123.0, "147,000x"),
        (wording.times, 3.2e9, "3.2e9x"),
        (wording.percent, 0.024, "2.4 %"),
        (wording.percent, 0.0003, "0.03 %"),
        (wording.percent, 0.0, "0.0 %"),
        (wording.percent, 4.2e-7, "4.2e-5 %"),
        (wording.value, 3.14159, "3.142"),
        (wording.value, -65504.0, "-65,504"),
        (wording.value, 1.5e-7, "1.500e-7"),
        (wording.factor, 1.3, "1.3"),
        (wording.factor, 1.0001, "1.0001"),
        (wording.factor, 1.0000059, "1.0000059"),
        (wording.factor, -1.0, "-1"),
        (wording.factor, -1.000000045, "-1"),
        (wording.factor, -0.9993, "-0.9993"),
        (wording.factor, 4.0, "4"),
        (wording.loss, 2.31482, "2.3148"),
        (wording.loss, math.nan, "NaN"),
        (wording.loss_scale, 65536.0, "65,536 (2^16)"),
        (wording.loss_scale, 0.5, "2^-1"),
        (wording.count, 39812, "39,812"),
        (wording.dtype, "bfloat16", "bf16"),
        (wording.dtype, "int64", "int64"),
        (wording.shape, (4, 1024, 4096), "[4, 1024, 4096]"),
        (wording.ranges, [2, 0, 1, 5], "0-2, 5"),
        (wording.ranges, [], "none"),
        (wording.steps, [0, 1], "steps 0-1"),
        (wording.steps, [7], "step 7"),
        (wording.short_hash, 0x3F9A12C0BE771234, "3f9a12c0be77"),
        (wording.listing, ["a", "b", "c"], "a, b and c"),
    ],
)
def test_each_kind_of_number_has_one_form(write: Callable[..., str], number: object, text: str) -> None:
    assert write(number) == text


def test_a_listing_counts_what_it_leaves_out() -> None:
    assert wording.listing(["a", "b"], 9) == "a, b and 7 more"


def test_a_step_names_the_micro_step_only_where_there_are_several() -> None:
    assert [wording.step(3), wording.step(3, 2), wording.step(-1)] == ["step 3", "step 3, micro 2", "before step 0"]
