"""What must hold of any two runs: a run is as good as itself, units do not matter, nothing breaks."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from align.acceptance.statistics import SpikeRule, correlation, onset, spikes, window_means
from align.acceptance_records import Acceptance, Outcome
from align.standard_error import standard_error
from tests.acceptance.runs import judge, outcomes, pair

Values = NDArray[np.float64]
LOSSES = arrays(np.float64, st.integers(1, 150), elements=st.floats(allow_nan=True, allow_infinity=True, width=64))
TAME = arrays(np.float64, st.integers(1, 120), elements=st.floats(-1e3, 1e3))


@settings(max_examples=60, deadline=None)
@given(LOSSES)
def test_a_run_is_as_good_as_itself(loss: Values) -> None:
    if np.isnan(loss).all():
        return
    result = judge(loss, loss)
    assert result.verdict is not Acceptance.FAIL
    assert {each.outcome for each in result.criteria} <= {Outcome.PASS, Outcome.NOT_MEASURED}
    assert not any(each.remark for each in result.criteria)


@settings(max_examples=60, deadline=None)
@given(LOSSES, LOSSES)
def test_no_losses_break_anything(ours: Values, theirs: Values) -> None:
    result = judge(ours, theirs)
    assert all(each.sentence for each in result.criteria)
    assert all(each.advice for each in result.criteria if each.outcome is Outcome.NOT_MEASURED)
    assert result.summary
    assert result.not_covered


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 50), st.floats(1e-6, 5.0), st.floats(-0.02, 0.02), st.integers(60, 400))
def test_the_unit_of_the_loss_does_not_matter(seed: int, factor: float, bias: float, count: int) -> None:
    reference, candidate = pair(count, 0.004, seed)
    candidate = candidate * (1 + bias)
    plain, scaled = judge(reference, candidate), judge(reference * factor, candidate * factor)
    assert outcomes(plain) == outcomes(scaled)
    assert [each.remark for each in plain.criteria] == [each.remark for each in scaled.criteria]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 50), st.floats(0.0, 0.003))
def test_who_is_the_reference_hardly_matters(seed: int, size: float) -> None:
    reference, candidate = pair(300, size, seed)
    assert judge(reference, candidate).verdict is judge(candidate, reference).verdict


@given(TAME, st.integers(1, 130))
def test_window_means_are_means(values: Values, window: int) -> None:
    size = min(window, len(values))
    means = [values[start : start + size].mean() for start in range(len(values) - size + 1)]
    assert np.allclose(window_means(values, window), means, atol=1e-9)


@given(TAME)
def test_standard_errors_are_errors(values: Values) -> None:
    assert standard_error(values) >= 0
    assert np.isclose(standard_error(values), standard_error(values + 5.0), atol=1e-6)


@given(TAME)
def test_correlations_are_between_minus_one_and_one(values: Values) -> None:
    other = np.roll(values, 1)
    found = correlation(values, other)
    assert np.isnan(found) or -1 - 1e-9 <= found <= 1 + 1e-9
    assert np.isnan(found) or np.isclose(found, correlation(other, values))


@given(st.integers(0, 99), st.integers(10, 40))
def test_the_onset_of_a_step_is_found(seed: int, place: int) -> None:
    values = np.random.default_rng(seed).normal(0, 0.1, 60)
    values[place:] += 3
    assert onset(values, max(place - 5, 1), 20) == place


@given(st.sets(st.integers(60, 199), max_size=4), st.integers(0, 99))
def test_spikes_are_found_where_they_are(places: set[int], seed: int) -> None:
    values = 2 + np.random.default_rng(seed).normal(0, 0.01, 200)
    values[sorted(places)] += 2
    found = spikes(values, SpikeRule())
    first = [place for place in sorted(places) if not any(0 < place - other <= 10 for other in places)]
    assert found.tolist() == first
