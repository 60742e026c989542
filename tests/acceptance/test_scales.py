"""Losses of all kinds: near 0, of both signs, negative, perplexities, of any size, of few digits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from align.acceptance_records import Acceptance, Outcome
from align.curve_records import Quantity
from tests.acceptance.runs import judge, of, outcomes, pair, perturbed, run

COUNT = 1000
Values = NDArray[np.float64]


def noise(seed: int, size: float = 1.0, count: int = COUNT) -> Values:
    return size * np.random.default_rng(seed).standard_normal(count)


def to_zero(seed: int = 0) -> Values:
    """A loss that falls from 2.4 to 0.02."""
    return np.asarray((0.02 + 2.38 * np.exp(-np.arange(COUNT) / 60)) * np.exp(noise(seed, 0.1)))


def flow() -> Values:
    """A negative log-likelihood of a density: from 2 to -3, with noise of the batches."""
    return np.asarray(-3 + 5 * np.exp(-np.arange(COUNT) / 150) + noise(1, 0.1))


def policy_gradient() -> Values:
    """A loss that is nothing but noise around 0, and begins next to 0 by chance."""
    return np.concatenate(([1e-6], noise(2, 0.3, COUNT - 1)))


def perplexity() -> Values:
    return np.exp(3 + 7.8 * np.exp(-np.arange(COUNT) / 150) + noise(3, 0.03))


def failing(reference: Values, candidate: Values, name: str = "loss") -> set[str]:
    """The criteria that fail."""
    ours, theirs = (replace(run(side), taken={Quantity.LOSS: name}) for side in (reference, candidate))
    return {code for code, outcome in outcomes(judge(ours, theirs)).items() if outcome == "fail"}


def test_losses_near_zero_of_healthy_runs_are_left_open_and_closed_by_repeats() -> None:
    reference = to_zero()
    away = 0.25 * (1 - np.exp(-np.clip(np.arange(COUNT) - 250, 0, None) / 100))
    candidate = reference * (1 + 0.5 * away * (1 + noise(5)))
    result = judge(reference, candidate)
    assert {code for code, outcome in outcomes(result).items() if outcome == "fail"} == set()
    assert result.verdict is Acceptance.UNKNOWN
    open_ones = [each for each in result.criteria if each.required and each.outcome is Outcome.NOT_MEASURED]
    assert {each.code for each in open_ones} == {"divergence", "mean-error", "worst-window", "bias"}
    assert all(
        each.sentence.endswith(
            " That is beyond the limit only where the loss is near 0 or little and scattered, and healthy runs may "
            "differ as much there."
        )
        for each in open_ones
    )
    assert open_ones[0].advice == (
        "Run the reference twice more with `align capture --perturb 1` and `--perturb 2`, and give these runs as "
        "`--floor`."
    )
    floors = [run(reference * (1 + away * noise(seed) + 0.5 * away), f"{seed}.csv") for seed in (7, 8)]
    closed = judge(reference, candidate, floors=floors)
    assert closed.verdict is Acceptance.PASS, closed.summary


def test_a_little_loss_that_scatters_is_left_open_and_one_that_does_not_is_judged() -> None:
    course = 0.3 + 2.0 * np.exp(-np.arange(COUNT) / 80)
    away = np.where(np.arange(COUNT) < 400, 0.0, 0.03)
    for size, outcome in ((0.3, Outcome.NOT_MEASURED), (0.02, Outcome.FAIL)):
        reference = course * np.exp(noise(0, size))
        result = judge(reference, reference * (1 + away))
        assert of(result, "divergence").outcome is outcome
        assert of(result, "bias").outcome is outcome


def test_the_scale_near_zero_is_told() -> None:
    result = judge(to_zero(), to_zero())
    assert result.verdict is Acceptance.PASS
    (note,) = result.notes
    assert note.startswith("At 8")
    assert " steps the reference's loss is below 5.00 % of its first, " in note


def test_gradient_norms_near_zero_are_left_open() -> None:
    reference = to_zero()
    norms = np.ones(COUNT)
    other = norms.copy()
    other[500:] = 1.4
    result = judge(run(reference, gradient_norm=norms), run(reference, gradient_norm=other))
    criterion = of(result, "gradient-norm")
    assert criterion.outcome is Outcome.NOT_MEASURED
    assert criterion.measured == pytest.approx(0.2)
    assert (criterion.required, result.verdict) == (False, Acceptance.PASS)
    other[:] = 1.4
    criterion = of(judge(run(reference, gradient_norm=norms), run(reference, gradient_norm=other)), "gradient-norm")
    assert criterion.outcome is Outcome.FAIL


def test_noise_near_zero_says_nothing_of_the_order() -> None:
    reference = to_zero()
    candidate = reference.copy()
    candidate[300:] = to_zero(9)[300:]
    assert of(judge(reference, candidate), "data-order").outcome is Outcome.PASS


def test_a_stall_is_found_although_the_reference_comes_near_zero() -> None:
    reference = to_zero()
    candidate = np.maximum(reference, 0.6 * np.exp(noise(0, 0.1)))
    assert {"divergence", "mean-error", "worst-window"} <= failing(reference, candidate)
    late = reference.copy()
    late[500:] = 0.5 + noise(4, 0.05, 500)
    assert {"divergence", "mean-error", "worst-window"} <= failing(reference, late)


@pytest.mark.parametrize("make", [flow, policy_gradient, lambda: -flow()], ids=["flow", "policy gradient", "reversed"])
def test_losses_of_both_signs(make: object) -> None:
    reference = make()  # type: ignore[operator]
    spread = float(np.percentile(reference, 95) - np.percentile(reference, 5))
    result = judge(reference, reference + noise(6, 0.001 * spread))
    assert result.verdict is Acceptance.PASS, result.summary
    (note,) = result.notes
    assert note.startswith("The loss takes both signs: differences are relative to the range that it spans, ")
    assert "bias" in failing(reference, reference + 0.008 * spread)
    assert "divergence" in failing(reference, reference + spread * np.linspace(0, 0.05, COUNT))
    changes = float(np.diff(reference).std())
    assert "data-order" in failing(reference, reference + noise(8, 6 * changes))


def test_negative_losses_are_relative_to_their_size() -> None:
    reference = -20 + 19 * np.exp(-np.arange(COUNT) / 150) + noise(1, 0.1) - 0.5
    result = judge(reference, reference * (1 + noise(2, 0.001)))
    assert (result.verdict, result.notes) == (Acceptance.PASS, ())
    higher = reference.copy()
    higher[300:] *= 0.98
    criterion = of(judge(reference, higher), "divergence")
    assert criterion.outcome is Outcome.FAIL
    assert " % higher on average." in criterion.sentence


@pytest.mark.parametrize("name", ["loss", "valid_ppl", "Perplexity"])
def test_perplexities_are_judged_by_their_logarithms(name: str) -> None:
    reference = perplexity()
    healthy = np.exp(np.log(reference) * (1 + noise(4, 0.002)))
    assert failing(reference, healthy, name) == set()
    worse = healthy.copy()
    worse[500:] = np.exp(np.log(healthy[500:]) * 1.012)
    assert "divergence" in failing(reference, worse, name)
    result = judge(reference, healthy)
    assert result.notes[0].startswith("The loss is taken for a perplexity (it falls from ")
    assert result.notes[0].endswith("): its logarithm is judged.")


def test_a_name_makes_a_perplexity_of_any_size() -> None:
    reference, healthy = pair()
    ours, theirs = (replace(run(np.exp(side / 5)), taken={Quantity.LOSS: "train/ppl"}) for side in (reference, healthy))
    assert judge(ours, theirs).notes[0].startswith("The loss is taken for a perplexity")


def test_a_large_loss_is_no_perplexity() -> None:
    reference, healthy = pair()
    assert judge(reference * 1e4, healthy * 1e4).notes == ()
    sums = to_zero() * 1e4
    assert judge(sums, sums).notes[0].startswith("The loss is taken for a perplexity")
    assert judge(sums / 1e3, sums / 1e3).notes[0].startswith("At ")


def test_a_candidate_below_what_a_perplexity_can_be_fails() -> None:
    reference = perplexity()
    candidate = reference.copy()
    candidate[900:] = 0.0
    assert "divergence" in failing(reference, candidate)


@pytest.mark.parametrize("value", [0.0, 1e300, -1e300])
@pytest.mark.parametrize("of_reference", [True, False])
def test_no_number_breaks_anything(value: float, of_reference: bool) -> None:
    sides = [side.copy() for side in pair()]
    sides[0 if of_reference else 1][400:600] = value
    result = judge(sides[0], sides[1])
    assert result.verdict is Acceptance.FAIL


def test_all_zero_losses_are_equal_but_tell_nothing() -> None:
    result = judge(np.zeros(COUNT), np.zeros(COUNT))
    assert result.verdict is Acceptance.UNKNOWN
    assert of(result, "mean-error").measured == 0.0
    assert judge(np.zeros(COUNT), np.full(COUNT, 0.1)).verdict is Acceptance.FAIL


def test_a_single_step() -> None:
    result = judge([2.0], [2.0])
    assert (result.verdict, result.steps, result.preliminary) == (Acceptance.UNKNOWN, 1, True)
    assert of(result, "first-loss").outcome is Outcome.PASS


def test_steps_far_apart() -> None:
    reference, healthy = pair(200)
    result = judge(run(reference, every=100), run(healthy, every=100))
    assert result.verdict is Acceptance.PASS
    diverged = healthy.copy()
    diverged[120:] *= 1.05
    assert of(judge(run(reference, every=100), run(diverged, every=100)), "divergence").evidence["step"] == 12_000


def test_logs_that_count_from_one_name_the_step_that_a_capture_has() -> None:
    reference, healthy = pair(200)
    diverged = healthy.copy()
    diverged[120:] *= 1.05
    criterion = of(judge(run(reference, first=1), run(diverged, first=1)), "divergence")
    assert criterion.evidence["step"] == 121
    assert criterion.advice.startswith("Capture steps 119 and 120 of both runs")


def test_repeats_of_other_lengths_are_used_as_far_as_they_go() -> None:
    reference, healthy = pair()
    floors = [perturbed(reference, 0.002, 1, "short.csv"), perturbed(reference, 0.002, 2, "long.csv")]
    short = replace(
        floors[0], steps=floors[0].steps[:500], columns={Quantity.LOSS: floors[0].columns[Quantity.LOSS][:500]},
        nonfinite=floors[0].nonfinite[:500], skipped=floors[0].skipped[:500],
    )  # fmt: skip
    result = judge(reference, healthy, floors=[short, floors[1]])
    assert result.verdict is Acceptance.PASS
    assert result.notes == ("short.csv has 500 of the 1,000 steps that were compared.",)
