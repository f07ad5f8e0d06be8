import itertools
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goodput.core.errors import InputError
from goodput.core.stats import (
    MAD_TO_SIGMA,
    mad,
    median,
    percentile_bootstrap,
    quantile,
    wilson_interval,
)

numbers = st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=60)


@given(numbers)
def test_median_and_mad_agree_with_the_standard_library(values: list[float]) -> None:
    middle = statistics.median(values)
    assert median(values) == pytest.approx(middle, abs=1e-6)
    spread = statistics.median(abs(value - middle) for value in values)
    assert mad(values) == pytest.approx(spread, abs=1e-6)


@given(numbers, st.floats(-1e6, 1e6), st.floats(0.01, 100))
def test_they_move_and_scale_with_the_values(
    values: list[float], shift: float, factor: float
) -> None:
    moved = [value * factor + shift for value in values]
    assert median(moved) == pytest.approx(median(values) * factor + shift, rel=1e-6, abs=1e-3)
    assert mad(moved) == pytest.approx(mad(values) * factor, rel=1e-6, abs=1e-3)


def test_a_few_wild_values_do_not_move_them() -> None:
    steady = [100.0 + step % 7 for step in range(1000)]
    wild = [*steady[:-10], *[1e12] * 10]
    assert abs(median(wild) - median(steady)) <= 1
    assert abs(mad(wild) - mad(steady)) <= 1


def test_scaled_mad_estimates_a_standard_deviation() -> None:
    values = np.random.default_rng(7).normal(50, 3, 200_000)
    assert mad(values, scale=MAD_TO_SIGMA) == pytest.approx(3, rel=0.01)
    assert pytest.approx(1 / statistics.NormalDist().inv_cdf(0.75)) == MAD_TO_SIGMA


def test_quantile_is_linear_between_neighbours() -> None:
    assert quantile([1, 2, 3, 4], 0.5) == 2.5
    assert quantile([10], 0.9) == 10
    assert quantile([[4, 1], [3, 2]], 1.0) == 4
    # Hyndman and Fan type 7 on 0..9: position 9 q.
    assert quantile(range(10), 0.33) == pytest.approx(2.97)


def test_values_that_mean_nothing_are_refused_with_their_number() -> None:
    with pytest.raises(InputError, match="no values"):
        median([])
    with pytest.raises(InputError, match="1 of 3 values are NaN"):
        mad([1.0, float("nan"), 2.0])
    with pytest.raises(InputError, match=r"q = 1\.5"):
        quantile([1.0], 1.5)


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [  # Newcombe 1998, table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_gives_the_published_intervals(
    successes: int, trials: int, low: float, high: float
) -> None:
    interval = wilson_interval(successes, trials)
    assert interval.low == pytest.approx(low, abs=5e-5)
    assert interval.high == pytest.approx(high, abs=5e-5)


@given(st.integers(0, 500), st.integers(0, 500), st.floats(0.5, 0.999))
def test_wilson_holds_the_estimate_is_symmetric_and_widens(
    successes: int, failures: int, confidence: float
) -> None:
    trials = successes + failures
    interval = wilson_interval(successes, trials, confidence=confidence)
    assert 0 <= interval.low <= interval.high <= 1
    if trials:
        assert interval.low <= successes / trials <= interval.high
    mirrored = wilson_interval(failures, trials, confidence=confidence)
    assert mirrored.low == pytest.approx(1 - interval.high, abs=1e-12)
    wider = wilson_interval(successes, trials, confidence=1 - (1 - confidence) / 2)
    assert wider.high - wider.low >= interval.high - interval.low - 1e-12


def test_wilson_holds_the_truth_as_often_as_it_says() -> None:
    # Exact coverage: sum of the binomial probabilities of the outcomes whose interval holds p.
    for trials, p in itertools.product((20, 50, 200), (0.1, 0.5, 0.9)):
        covered = 0.0
        for k in range(trials + 1):
            interval = wilson_interval(k, trials)
            if interval.low <= p <= interval.high:
                covered += _binomial(trials, k, p)
        assert 0.92 < covered < 0.99


def _binomial(n: int, k: int, p: float) -> float:
    return float(np.exp(_log_choose(n, k) + k * np.log(p) + (n - k) * np.log1p(-p)))


def _log_choose(n: int, k: int) -> float:
    ways = range(1, k + 1)
    return float(sum(np.log(n - k + i) - np.log(i) for i in ways))


def test_wilson_refuses_impossible_counts() -> None:
    assert wilson_interval(0, 0) == (0.0, 1.0)
    with pytest.raises(InputError, match="5 successes of 4 trials"):
        wilson_interval(5, 4)
    with pytest.raises(InputError, match="confidence = 95"):
        wilson_interval(1, 4, confidence=95)


def _means(rows: np.ndarray) -> np.ndarray:
    means: np.ndarray = rows.mean(axis=1)
    return means


def test_bootstrap_of_a_mean_agrees_with_the_normal_interval() -> None:
    values = np.random.default_rng(1).normal(10, 2, 2_000)
    interval = percentile_bootstrap(values, _means, rng=np.random.default_rng(2))
    reach = 1.96 * values.std() / np.sqrt(values.size)
    assert interval.low == pytest.approx(values.mean() - reach, abs=0.1 * reach)
    assert interval.high == pytest.approx(values.mean() + reach, abs=0.1 * reach)


def test_bootstrap_is_a_function_of_the_generator_state() -> None:
    values = [1.0, 5.0, 2.0, 8.0]
    one, two, other = (
        percentile_bootstrap(values, _means, rng=np.random.default_rng(seed), resamples=500)
        for seed in (3, 3, 4)
    )
    assert one == two
    assert one != other


def test_bootstrap_holds_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(11)
    held = 0
    for _ in range(300):
        sample = rng.exponential(1.0, 80)
        interval = percentile_bootstrap(sample, _means, rng=rng, resamples=400, confidence=0.9)
        held += interval.low <= 1.0 <= interval.high
    assert 0.83 < held / 300 < 0.95


def test_bootstrap_of_a_large_sample_works_in_blocks() -> None:
    values = np.arange(3_000_000, dtype=np.float64)
    interval = percentile_bootstrap(values, _means, rng=np.random.default_rng(0), resamples=3)
    assert interval.low == pytest.approx(values.mean(), rel=0.01)


def test_bootstrap_refuses_what_it_cannot_use() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="no values"):
        percentile_bootstrap([], _means, rng=rng)
    with pytest.raises(InputError, match="resamples = 0"):
        percentile_bootstrap([1.0], _means, rng=rng, resamples=0)
