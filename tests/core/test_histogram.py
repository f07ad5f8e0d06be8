import functools
import random

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goodput.core.errors import DataError, InputError
from goodput.core.stats import HistogramData, LogHistogram

LARGEST = 2**63 - 1
durations = st.lists(
    st.one_of(st.integers(0, 300), st.integers(0, 10**12), st.integers(0, LARGEST)), max_size=80
)
errors = st.sampled_from([0.0001, 0.005, 0.01, 0.02, 0.1])


def filled(values: list[int], relative_error: float = 0.01) -> LogHistogram:
    histogram = LogHistogram(relative_error)
    histogram.add(values)
    return histogram


@given(durations.filter(bool), errors, st.lists(st.floats(0, 1), max_size=6))
def test_quantiles_keep_the_stated_bound(
    values: list[int], relative_error: float, qs: list[float]
) -> None:
    histogram = filled(values, relative_error)
    ordered = sorted(values)
    for q in (0.0, 0.25, 0.5, 0.9, 0.99, 1.0, *qs):
        rank = int(np.floor(q * (len(values) - 1) + 1e-12))
        near = {ordered[max(rank - 1, 0)], ordered[rank]}  # q itself is rounded to binary
        found = histogram.quantile(q)
        assert any(abs(found - true) <= relative_error * true * (1 + 1e-12) for true in near)


def test_round_quantiles_hit_the_rank_that_a_reader_expects() -> None:
    values = list(range(101))  # exact buckets: rank k holds k (below 1 / (2 x error) = 50)
    histogram = filled(values)
    for percent in range(50):
        assert histogram.quantile(percent / 100) == percent


@given(durations)
def test_sum_count_and_extremes_are_exact(values: list[int]) -> None:
    histogram = filled(values)
    assert histogram.count == len(values)
    assert histogram.total == sum(values)
    assert histogram.minimum == min(values, default=0)
    assert histogram.maximum == max(values, default=0)
    if values:
        assert histogram.mean == sum(values) / len(values)
        assert histogram.quantile(0) == float(min(values))
        assert histogram.quantile(1) == float(max(values))


@given(st.lists(durations, max_size=6), st.randoms(use_true_random=False))
def test_merging_in_any_order_and_grouping_gives_the_same_bytes(
    parts: list[list[int]], rng: random.Random
) -> None:
    whole = filled([value for part in parts for value in part])
    pieces = [filled(part) for part in parts]
    left = functools.reduce(LogHistogram.merged, pieces, LogHistogram())
    while len(pieces) > 1:  # a random binary tree over a random order
        one = pieces.pop(rng.randrange(len(pieces)))
        other = pieces.pop(rng.randrange(len(pieces)))
        pieces.append(one.merged(other))
    tree = pieces[0] if pieces else LogHistogram()
    texts = {msgspec.json.encode(each.to_data()) for each in (whole, left, tree)}
    assert len(texts) == 1
    assert whole == left == tree


def test_merging_leaves_both_sides_alone() -> None:
    one, other = filled([1, 2]), filled([3])
    both = one.merged(other)
    both.add(99)
    assert (one.count, other.count, both.count) == (2, 1, 4)


def test_one_value_at_a_time_or_all_at_once_is_the_same() -> None:
    values = [0, 1, 7, 10**9, 10**9 + 1, LARGEST]
    singly = LogHistogram()
    for value in values:
        singly.add(value)
    assert singly == filled(values)
    assert singly != filled(values[:-1])


@given(durations, errors)
def test_a_histogram_survives_being_written(values: list[int], relative_error: float) -> None:
    histogram = filled(values, relative_error)
    text = msgspec.json.encode(histogram.to_data())
    back = LogHistogram.from_data(msgspec.json.decode(text, type=HistogramData))
    assert back == histogram
    back.add(5)
    histogram.add(5)
    assert back == histogram


def test_what_is_written_is_small_and_says_its_format() -> None:
    steps = np.random.default_rng(0).normal(5e8, 2e7, 100_000).astype(np.int64)
    histogram = LogHistogram()
    histogram.add(steps)
    assert len(msgspec.json.encode(histogram.to_data())) < 500
    assert histogram.to_data().schema == "goodput.histogram/1.0"


@pytest.mark.parametrize(
    "data",
    [
        HistogramData(0.01, gaps=(3,), counts=()),
        HistogramData(0.01, gaps=(3, 0), counts=(1, 1)),
        HistogramData(0.01, gaps=(-1,), counts=(1,)),
        HistogramData(0.01, gaps=(3,), counts=(0,)),
        HistogramData(0.01, gaps=(99_999,), counts=(1,)),
        HistogramData(0.01, schema="goodput.histogram/2.0"),
        HistogramData(0.01, schema="something else"),
    ],
)
def test_a_damaged_histogram_is_refused(data: HistogramData) -> None:
    with pytest.raises(DataError, match="histogram"):
        LogHistogram.from_data(data)


def test_values_that_are_no_durations_are_refused_and_not_counted() -> None:
    histogram = LogHistogram()
    with pytest.raises(InputError, match="-5 is negative"):
        histogram.add([3, -5])
    with pytest.raises(InputError, match="not integers"):
        histogram.add(np.array([1.5]))
    with pytest.raises(InputError, match="63 bits"):
        histogram.add(2**63)
    with pytest.raises(InputError, match="not integers"):
        histogram.add(2**70)
    assert histogram.count == 0
    with pytest.raises(InputError, match="empty"):
        histogram.quantile(0.5)


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(InputError, match="relative_error = 0"):
        LogHistogram(0)
    with pytest.raises(InputError, match="cannot be merged"):
        LogHistogram(0.01).merged(LogHistogram(0.02))
    with pytest.raises(InputError, match="q = -1"):
        filled([1]).quantile(-1)


def test_sums_beyond_64_bits_are_exact() -> None:
    histogram = LogHistogram()
    histogram.add(np.full(1000, LARGEST, dtype=np.int64))
    assert histogram.total == 1000 * LARGEST
    assert LogHistogram.from_data(histogram.to_data()).total == 1000 * LARGEST
