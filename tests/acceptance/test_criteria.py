"""Each criterion of the default policy: a pair that is far from its limit, one just within, one just beyond."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from align.acceptance import OperatorResult
from align.acceptance_records import Acceptance, Outcome
from align.errors import ComparisonError
from tests.acceptance.runs import DEFAULT, judge, of, outcomes, pair, perturbed, run, with_limit

REFERENCE, HEALTHY = pair()
COUNT = len(REFERENCE)
CAPTURE = "Capture steps {} and {} of both runs with `align capture --steps {}:{}` and compare them with `align diff`."


def capture(first: int) -> str:
    return CAPTURE.format(first, first + 1, first, first + 2)


def test_a_healthy_pair_passes() -> None:
    result = judge(REFERENCE, HEALTHY)
    assert result.verdict is Acceptance.PASS
    assert result.summary == (
        "Met: 10 of 10 required criteria; 6 not measured. The candidate follows the reference over 1,000 steps, with a "
        "mean relative difference of the loss of 0.082 %."
    )
    assert outcomes(result) == {
        "equal-start": "not measured", "non-finite": "pass", "shift": "pass", "data-order": "pass",
        "first-loss": "pass", "early-window": "pass", "spikes": "pass", "divergence": "pass", "mean-error": "pass",
        "worst-window": "pass", "bias": "pass", "gradient-norm": "not measured", "tensors": "not measured",
        "operators": "not measured", "step-time": "not measured", "tokens-per-second": "not measured",
    }  # fmt: skip
    assert not result.preliminary
    assert result.deviations == ()
    assert result.not_covered == (
        "Evaluation on downstream tasks.",
        "Weights, batches, activations and gradients: only curves were compared.",
        "What happens after step 999.",
    )


@pytest.mark.parametrize(
    ("away", "outcome", "remark"),
    [
        (0.0, Outcome.PASS, False),
        (0.0019, Outcome.PASS, False),
        (0.0049, Outcome.PASS, True),
        (0.0051, Outcome.FAIL, False),
    ],
)
def test_first_loss(away: float, outcome: Outcome, remark: bool) -> None:
    candidate = REFERENCE.copy()
    candidate[0] *= 1 + away
    criterion = of(judge(REFERENCE, candidate), "first-loss")
    assert (criterion.outcome, criterion.remark) == (outcome, remark)
    assert criterion.measured == pytest.approx(away, abs=1e-12)


def test_first_loss_names_the_step_and_what_to_do() -> None:
    candidate = REFERENCE.copy()
    candidate[0] = REFERENCE[0] * 1.05
    result = judge(REFERENCE, candidate)
    criterion = of(result, "first-loss")
    assert criterion.sentence == (
        "Step 0: the loss is 10.5396 in the reference and 11.0666 in the candidate, 5.00 % apart."
    )
    assert criterion.advice == (
        f"Nothing was learned yet: the weights, the batch or the forward pass differ. {capture(0)}"
    )
    assert result.summary == f"Missed: 1 of 10 required criteria. First: {criterion.sentence} {criterion.advice}"
    assert result.verdict is Acceptance.FAIL


def test_an_absolute_limit_is_an_alternative() -> None:
    reference, candidate = REFERENCE / 100, REFERENCE / 100
    candidate = np.concatenate(([candidate[0] + 0.004], candidate[1:]))
    assert of(judge(reference, candidate), "first-loss").outcome is Outcome.FAIL
    assert (
        of(judge(reference, candidate, with_limit("first-loss", absolute=0.005)), "first-loss").outcome is Outcome.PASS
    )
    policy = with_limit("mean-error", absolute=0.01)
    assert of(judge(reference, reference * 1.05, policy), "mean-error").outcome is Outcome.PASS
    assert of(judge(REFERENCE, REFERENCE * 1.05, policy), "mean-error").outcome is Outcome.FAIL


@pytest.mark.parametrize(("away", "outcome"), [(0.001, Outcome.PASS), (0.0099, Outcome.PASS), (0.0101, Outcome.FAIL)])
def test_early_window(away: float, outcome: Outcome) -> None:
    candidate = REFERENCE.copy()
    candidate[:20] *= 1 + away
    criterion = of(judge(REFERENCE, candidate), "early-window")
    assert criterion.outcome is outcome
    assert criterion.measured == pytest.approx(away)
    assert criterion.sentence.startswith("Over the first 20 steps (up to step 19) the mean relative difference is ")


def test_early_window_against_the_floor() -> None:
    floors = [perturbed(REFERENCE, 1e-4, seed) for seed in range(2)]
    within = of(judge(REFERENCE, perturbed(REFERENCE, 3e-4, 7), floors=floors), "early-window")
    beyond = of(judge(REFERENCE, perturbed(REFERENCE, 1e-3, 7), floors=floors), "early-window")
    assert within.limit is not None
    assert (within.outcome, beyond.outcome, within.limit.value) == (Outcome.PASS, Outcome.FAIL, 5.0)
    assert within.measured == pytest.approx(2.2, abs=0.8)
    assert beyond.advice.startswith("Capture steps ")


def test_a_tiny_floor_accuses_nobody() -> None:
    floors = [perturbed(REFERENCE, 1e-9, seed) for seed in range(2)]
    assert of(judge(REFERENCE, perturbed(REFERENCE, 3e-5, 7), floors=floors), "early-window").outcome is Outcome.PASS


@pytest.mark.parametrize(("size", "outcome"), [(0.005, Outcome.PASS), (0.0095, Outcome.PASS), (0.0105, Outcome.FAIL)])
def test_mean_error(size: float, outcome: Outcome) -> None:
    signs = np.where(np.arange(COUNT) % 2, 1.0, -1.0)
    criterion = of(judge(REFERENCE, REFERENCE * (1 + size * signs)), "mean-error")
    assert criterion.outcome is outcome
    assert criterion.measured == pytest.approx(size)
    assert criterion.evidence["meets_2_percent"] is True


@pytest.mark.parametrize(("size", "outcome"), [(0.019, Outcome.PASS), (0.0205, Outcome.FAIL)])
def test_worst_window(size: float, outcome: Outcome) -> None:
    candidate = REFERENCE.copy()
    candidate[400:450] *= 1 + size
    criterion = of(judge(REFERENCE, candidate), "worst-window")
    assert criterion.outcome is outcome
    assert criterion.measured == pytest.approx(size, rel=1e-6)
    assert criterion.evidence == {"first_step": 400, "last_step": 449, "window": 50}
    if outcome is Outcome.FAIL:
        assert (
            criterion.sentence
            == "The worst 50 steps are 400-449: there the candidate's loss is 2.05 % higher on average."
        )
        assert criterion.advice == capture(399)


@pytest.mark.parametrize(("size", "outcome"), [(0.009, Outcome.PASS), (0.011, Outcome.FAIL), (-0.011, Outcome.FAIL)])
def test_divergence_names_the_step(size: float, outcome: Outcome) -> None:
    candidate = HEALTHY.copy()
    candidate[700:] *= 1 + size
    criterion = of(judge(REFERENCE, candidate), "divergence")
    assert criterion.outcome is outcome
    if outcome is Outcome.FAIL:
        side = "higher" if size > 0 else "lower"
        assert criterion.evidence == {"step": 700}
        assert criterion.sentence.startswith(
            "From step 700 on the losses are apart to the end: over the last 50 steps "
        )
        assert f" {side} on average." in criterion.sentence
        assert criterion.advice == capture(699)


def test_a_difference_that_ends_is_no_divergence() -> None:
    candidate = HEALTHY.copy()
    candidate[300:900] *= 1.05
    assert of(judge(REFERENCE, candidate), "divergence").outcome is Outcome.PASS


@pytest.mark.parametrize("place", [955, 980, 994])
def test_one_spike_at_the_end_is_no_divergence(place: int) -> None:
    candidate = HEALTHY.copy()
    candidate[place : place + 3] *= 2
    result = judge(REFERENCE, candidate)
    assert of(result, "divergence").outcome is Outcome.PASS
    assert of(result, "spikes").measured == 1


@pytest.mark.parametrize(
    ("size", "outcome", "remark"),
    [
        (0.0, Outcome.PASS, False),
        (0.003, Outcome.PASS, True),
        (0.006, Outcome.FAIL, False),
        (-0.006, Outcome.FAIL, False),
    ],
)
def test_bias(size: float, outcome: Outcome, remark: bool) -> None:
    candidate = HEALTHY.copy()
    candidate[600:] *= 1 + size
    result = judge(REFERENCE, candidate)
    criterion = of(result, "bias")
    assert (criterion.outcome, criterion.remark) == (outcome, remark)
    assert criterion.evidence["mean"] == pytest.approx(size, abs=2e-4)
    if outcome is Outcome.FAIL:
        assert criterion.advice == capture(599)
    if remark:
        assert result.verdict is Acceptance.PASS
        assert result.deviations == (f"{criterion.sentence} {criterion.advice}",)
        assert criterion.advice == (
            "The difference is steady, if small: evaluate both models on the downstream tasks before you rely on it."
        )


def test_an_uncertain_bias_passes_with_a_remark() -> None:
    walk = np.zeros(COUNT)
    walk[750:] = 0.08 * np.sin(np.arange(250) / 40) - 0.0145
    result = judge(REFERENCE, REFERENCE * (1 + walk))
    criterion = of(result, "bias")
    assert criterion.measured is not None
    assert criterion.limit is not None
    assert criterion.measured > criterion.limit.value
    assert (criterion.outcome, criterion.remark) == (Outcome.PASS, True)
    assert criterion.advice == "That is beyond the limit, but may be chance: train both runs longer to tell."


@pytest.mark.parametrize(("number", "outcome"), [(0, Outcome.PASS), (1, Outcome.PASS), (2, Outcome.FAIL)])
def test_spikes(number: int, outcome: Outcome) -> None:
    candidate = HEALTHY.copy()
    places = [200, 500][:number]
    for place in places:
        candidate[place : place + 4] *= 1.8
    criterion = of(judge(REFERENCE, candidate), "spikes")
    assert (criterion.outcome, criterion.measured) == (outcome, number)
    assert criterion.evidence["steps"] == places
    if outcome is Outcome.FAIL:
        assert criterion.sentence == (
            "The candidate's loss has 2 spikes, the reference's 0. Only the candidate's spikes at 200 and 500."
        )
        assert criterion.advice == capture(199)


def test_spikes_of_both_runs_are_those_of_the_data() -> None:
    reference, candidate = REFERENCE.copy(), HEALTHY.copy()
    for place in range(150, 950, 100):
        reference[place] *= 2
        candidate[place] *= 2
    criterion = of(judge(reference, candidate), "spikes")
    assert criterion.limit is not None
    assert (criterion.outcome, criterion.measured, criterion.limit.value) == (Outcome.PASS, 8, 8 + 1 + 5)


def test_spikes_do_not_hide_the_order_of_data() -> None:
    candidate = HEALTHY.copy()
    candidate[100::37] *= 3
    result = judge(REFERENCE, candidate)
    assert of(result, "data-order").outcome is Outcome.PASS
    assert of(result, "spikes").outcome is Outcome.FAIL


def test_data_order() -> None:
    random = np.random.default_rng(9)
    batches = REFERENCE / np.convolve(np.pad(REFERENCE, 25, mode="edge"), np.full(51, 1 / 51), mode="valid")
    shuffled = REFERENCE / batches * random.permutation(batches)
    result = judge(REFERENCE, shuffled)
    criterion = of(result, "data-order")
    assert criterion.outcome is Outcome.FAIL
    assert criterion.measured == pytest.approx(0, abs=0.1)
    assert of(result, "shift").outcome is Outcome.PASS
    half = np.concatenate((HEALTHY[:500], shuffled[500:]))
    assert of(judge(REFERENCE, half), "data-order").outcome is Outcome.PASS


@pytest.mark.parametrize("lag", [-3, -1, 1, 2])
def test_shift_names_the_lag(lag: int) -> None:
    reference = REFERENCE[10:-10]
    candidate = HEALTHY[10 - lag : -10 - lag]
    criterion = of(judge(reference, candidate), "shift")
    assert criterion.outcome is Outcome.FAIL
    assert criterion.evidence["lag"] == lag
    count = f"{abs(lag)} logged step{'' if abs(lag) == 1 else 's'}"
    assert criterion.sentence.startswith(
        f"The candidate's loss is that of the reference {count} {'before' if lag > 0 else 'later'} "
    )


def test_smooth_losses_are_not_shifted() -> None:
    smooth = np.convolve(REFERENCE, np.full(20, 1 / 20), mode="valid")
    other = np.convolve(HEALTHY, np.full(20, 1 / 20), mode="valid")
    result = judge(smooth, other)
    assert (of(result, "shift").outcome, of(result, "data-order").outcome) == (Outcome.PASS, Outcome.PASS)


def test_losses_that_do_not_change_tell_nothing_of_the_order() -> None:
    result = judge(np.full(1000, 2.0), np.full(1000, 2.0))
    for code in ("shift", "data-order"):
        assert of(result, code).outcome is Outcome.NOT_MEASURED
        assert of(result, code).sentence == (
            "One of the losses does not change from step to step: nothing can be told of the order of the data."
        )
    assert result.verdict is Acceptance.UNKNOWN


@pytest.mark.parametrize(("size", "outcome"), [(0.02, Outcome.PASS), (0.099, Outcome.PASS), (0.101, Outcome.FAIL)])
def test_gradient_norm(size: float, outcome: Outcome) -> None:
    norms = 1 + np.abs(np.sin(np.arange(COUNT)))
    ours = run(REFERENCE, "gpu.csv", gradient_norm=norms)
    criterion = of(judge(ours, run(HEALTHY, "npu.csv", gradient_norm=norms * (1 + size))), "gradient-norm")
    assert criterion.outcome is outcome
    assert criterion.measured == pytest.approx(size)
    assert criterion.required


def test_gradient_norms_of_skipped_steps_do_not_count() -> None:
    norms = np.ones(COUNT)
    broken = norms.copy()
    broken[::100] = np.inf
    ours, theirs = run(REFERENCE, gradient_norm=norms), run(HEALTHY, gradient_norm=broken)
    criterion = of(judge(ours, theirs), "gradient-norm")
    assert (criterion.outcome, criterion.measured) == (Outcome.PASS, 0.0)
    assert criterion.sentence == "The mean relative difference of the gradient norm is 0.0 % over 990 steps."


def test_a_loss_that_is_lost_in_the_candidate_only() -> None:
    candidate = HEALTHY.copy()
    candidate[640:] = np.nan
    result = judge(REFERENCE, candidate)
    criterion = of(result, "non-finite")
    assert (criterion.outcome, criterion.measured) == (Outcome.FAIL, 360)
    assert criterion.sentence == (
        "The candidate's loss is NaN or Inf at 360 steps, the reference's is not; the first is step 640."
    )
    assert criterion.advice == f"{capture(639)} `align inspect` of the candidate names the tensor."
    assert result.summary.startswith(f"Missed: 1 of 10 required criteria. First: {criterion.sentence}")


def test_a_loss_that_is_lost_in_both_or_in_a_skipped_step_is_no_fault() -> None:
    reference, candidate = REFERENCE.copy(), HEALTHY.copy()
    reference[[5, 7]] = np.inf
    candidate[[5, 9]] = np.inf
    skipped = np.zeros(COUNT, dtype=np.bool_)
    skipped[9] = True
    result = judge(reference, replace(run(candidate), skipped=skipped))
    criterion = of(result, "non-finite")
    assert (criterion.outcome, criterion.measured) == (Outcome.PASS, 0)
    assert criterion.sentence == (
        "The candidate's loss is not finite at 1 step that it skipped, as loss scaling does, and nowhere else."
    )
    assert "The reference skipped 0 steps, the candidate 1." in result.deviations


def test_a_first_step_that_is_lost_leaves_the_first_loss_open() -> None:
    candidate = HEALTHY.copy()
    candidate[0] = np.nan
    result = judge(REFERENCE, candidate)
    assert of(result, "first-loss").outcome is Outcome.NOT_MEASURED
    assert of(result, "first-loss").sentence == "The loss of step 0 is not finite in both runs."
    assert result.verdict is Acceptance.FAIL


def test_a_candidate_that_is_lost_from_the_start_fails() -> None:
    result = judge(REFERENCE, np.full(COUNT, np.nan))
    assert result.verdict is Acceptance.FAIL
    assert of(result, "non-finite").measured == COUNT


@pytest.mark.parametrize(("factor", "outcome"), [(1.0, Outcome.PASS), (1.19, Outcome.PASS), (1.21, Outcome.FAIL)])
def test_step_time_is_judged_where_the_policy_says_so(factor: float, outcome: Outcome) -> None:
    ours, theirs = run(REFERENCE, seconds=np.full(COUNT, 0.3)), run(HEALTHY, seconds=np.full(COUNT, 0.3 * factor))
    reported = of(judge(ours, theirs), "step-time")
    assert (reported.outcome, reported.limit, reported.required) == (Outcome.PASS, None, False)
    assert reported.measured == pytest.approx(factor)
    criterion = of(judge(ours, theirs, with_limit("step-time", limit=1.2)), "step-time")
    assert criterion.outcome is outcome
    assert criterion.sentence == (
        f"Half of the steps take 300 ms or less in the reference, {300 * factor:.0f} ms in the candidate."
    )


def test_tokens_per_second_may_fall_to_the_limit() -> None:
    ours = run(REFERENCE, tokens_per_second=np.full(COUNT, 1000.0))
    for tokens, outcome in ((950.0, Outcome.PASS), (850.0, Outcome.FAIL)):
        theirs = run(HEALTHY, tokens_per_second=np.full(COUNT, tokens))
        criterion = of(judge(ours, theirs, with_limit("tokens-per-second", limit=0.9)), "tokens-per-second")
        assert criterion.outcome is outcome
        assert criterion.measured == pytest.approx(tokens / 1000)


OPERATORS = (
    OperatorResult("matmul", "bf16", 1.1, 1.2, "CANN operator standard, L2"),
    OperatorResult("softmax", "fp16", 0.4, 2.0),
)


def test_operators_within_their_limits() -> None:
    criterion = of(judge(REFERENCE, HEALTHY, operators=OPERATORS), "operators")
    assert criterion.limit is not None
    assert (criterion.outcome, criterion.measured, criterion.limit.value) == (Outcome.PASS, 1.1, 1.2)
    assert criterion.limit.source == "CANN operator standard, L2"
    assert criterion.sentence == "2 of 2 operators are within their limits; matmul bf16 has 1.100 of 1.200 allowed."


def test_operators_beyond_their_limits() -> None:
    bad = (*OPERATORS, OperatorResult("gelu", "bf16", 3.0, 1.2), OperatorResult("erf", "", float("nan"), 2.0))
    result = judge(REFERENCE, HEALTHY, operators=bad)
    criterion = of(result, "operators")
    assert (criterion.outcome, result.verdict) == (Outcome.FAIL, Acceptance.FAIL)
    assert criterion.evidence == {"missed": ["gelu bf16", "erf"], "operators": 4}
    assert criterion.sentence == (
        "2 of 4 operators are within their limits; erf has NaN of 2.000 allowed. Beyond them: erf and gelu bf16."
    )


def test_learning_rates_that_differ_are_told() -> None:
    rates = np.full(COUNT, 1e-3)
    other = rates.copy()
    other[500:] = 1.1e-3
    result = judge(run(REFERENCE, learning_rate=rates), run(HEALTHY, learning_rate=other))
    assert result.deviations == (
        (
            "The learning rates differ at 500 steps: first at step 500, 0.001000 in the reference and 0.001100 in the "
            "candidate."
        ),
    )


@pytest.mark.parametrize(
    ("count", "measured"),
    [
        (10, {"non-finite", "first-loss", "mean-error"}),
        (30, {"non-finite", "first-loss", "early-window", "divergence", "mean-error", "worst-window"}),
        (
            99,
            {
                "non-finite", "shift", "data-order", "first-loss", "early-window", "divergence", "mean-error",
                "worst-window", "bias",
            },
        ),
    ],
)  # fmt: skip
def test_few_steps_are_not_enough_for_all(count: int, measured: set[str]) -> None:
    result = judge(REFERENCE[:count], HEALTHY[:count])
    assert {code for code, outcome in outcomes(result).items() if outcome == "pass"} == measured
    assert result.verdict is Acceptance.UNKNOWN
    assert result.preliminary
    assert result.summary.startswith("Cannot tell: ")
    assert "are too few to tell: " in result.summary


def test_a_short_pair_that_fails_fails() -> None:
    result = judge(REFERENCE[:10], REFERENCE[:10] * 1.1)
    assert (result.verdict, result.preliminary) == (Acceptance.FAIL, True)


def test_a_short_pair_that_passes_is_preliminary() -> None:
    result = judge(REFERENCE[:200], HEALTHY[:200])
    assert (result.verdict, result.preliminary, result.steps, result.window) == (Acceptance.PASS, True, 200, 20)


def test_a_repeat_that_is_equal_says_nothing() -> None:
    result = judge(REFERENCE, HEALTHY, floors=[run(REFERENCE, "again.csv")])
    assert result.notes == (
        (
            "again.csv is equal to the reference in every digit: it says nothing of what rounding does and was left "
            "out. Repeat the reference with `align capture --perturb 1`."
        ),
    )
    limit = of(result, "early-window").limit
    assert limit is not None
    assert limit.value == 0.01
    assert result.floors == ("again.csv",)


def test_the_candidate_is_no_repeat_of_the_reference() -> None:
    candidate = replace(run(HEALTHY, "npu.csv"), sha256="ab" * 32)
    sentence = (
        "Cannot take 'copy.csv' as a repeat of the reference: it is the candidate 'npu.csv', byte by byte. Give "
        "further runs of the reference as --floor."
    )
    with pytest.raises(ComparisonError, match=f"^{re.escape(sentence)}$"):
        judge(REFERENCE, candidate, floors=[replace(candidate, path="copy.csv")])


def test_a_repeat_of_another_training_is_told() -> None:
    other = pair(seed=5)[0]
    result = judge(REFERENCE, HEALTHY, floors=[run(other, "other.csv")])
    assert result.notes[0].startswith("other.csv differs from the reference by more than rounding from the first steps")
    assert of(result, "mean-error").limit == of(judge(REFERENCE, HEALTHY), "mean-error").limit
    begun_alike = np.concatenate([REFERENCE[:5], other[5:]])
    result = judge(REFERENCE, HEALTHY, floors=[run(begun_alike, "other.csv")])
    (told,) = [each for each in result.deviations if "repeat's loss" in each]
    assert told.endswith(" with those of the reference: was it trained on the same batches?")


def test_repeats_raise_limits() -> None:
    floors = [perturbed(REFERENCE, 0.02, seed) for seed in range(2)]
    result = judge(REFERENCE, perturbed(REFERENCE, 0.03, 9), floors=floors)
    criterion = of(result, "mean-error")
    assert criterion.limit is not None
    assert criterion.outcome is Outcome.PASS
    assert criterion.measured is not None
    assert criterion.measured > 0.01
    assert criterion.limit.value == pytest.approx(2.5 * 0.0226, rel=0.1)
    assert criterion.limit.source == (
        "2.5 times what repeats of the reference differ by, which is more than the policy's 1.00 % (measured: healthy "
        "pairs differ by at most 1.8 times what two runs of the reference differ by)"
    )


def test_what_passes_by_repeats_alone_is_a_remark() -> None:
    floors = [perturbed(REFERENCE, 0.02, seed) for seed in range(2)]
    criterion = of(judge(REFERENCE, perturbed(REFERENCE, 0.03, 9), floors=floors), "mean-error")
    assert criterion.remark
    assert criterion.advice.startswith("Capture steps ")
    assert not of(judge(REFERENCE, HEALTHY, floors=floors), "mean-error").remark


def test_chaos_among_repeats_lowers_the_correlation_that_is_asked_for() -> None:
    random = np.random.default_rng(5)
    plain = np.full(COUNT, 2.0)
    common = 0.1 * random.standard_normal(COUNT)
    # Chaos begins alike.
    apart = np.where(np.arange(COUNT) < 5, 0.0, 0.1)
    runs = [plain + 0.4 * common + apart * random.standard_normal(COUNT) for _ in range(4)]
    policy = with_limit("data-order", limit=0.5)
    assert of(judge(runs[0], runs[1], policy), "data-order").outcome is Outcome.FAIL
    floors = [run(side, f"{number}.csv") for number, side in enumerate(runs[2:])]
    criterion = of(judge(runs[0], runs[1], policy, floors=floors), "data-order")
    assert criterion.limit is not None
    assert criterion.outcome is Outcome.PASS
    assert criterion.limit.value < 0.1
    assert criterion.limit.source.startswith("half of what repeats of the reference have (measured: ")


def test_the_first_loss_is_that_of_the_first_step() -> None:
    result = judge(REFERENCE, HEALTHY, steps=(100, None))
    criterion = of(result, "first-loss")
    assert criterion.outcome is Outcome.NOT_MEASURED
    assert criterion.sentence == "Step 100 is the first that was compared, but not the first of both runs."
    assert result.verdict is Acceptance.UNKNOWN
    resumed = judge(run(REFERENCE, first=5000), run(HEALTHY, first=5000))
    assert resumed.verdict is Acceptance.PASS
    every = judge(run(REFERENCE), run(HEALTHY[9::10], first=10, every=10))
    assert of(every, "first-loss").outcome is Outcome.PASS


def test_printed_digits_bound_what_can_be_seen() -> None:
    result = judge(np.round(REFERENCE, 2), np.round(HEALTHY, 2))
    assert result.not_covered[-1] == "Differences of single losses below 0.36 %: the files print no more digits."


def test_a_policy_without_required_criteria_says_nothing() -> None:
    policy = replace(DEFAULT, settings=tuple(each for each in DEFAULT.settings if each.code == "operators"))
    result = judge(REFERENCE, HEALTHY, policy)
    assert result.verdict is Acceptance.UNKNOWN
    assert result.summary == "Cannot tell: nothing that this policy requires could be measured."
