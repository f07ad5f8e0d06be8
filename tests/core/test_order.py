"""Exact order statistics against a sort."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from goodput.core.stats.order import order_statistics


@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.integers(1, 20_000),
    spread=st.sampled_from([1, 2, 1_000, 10**9, 2**62]),
    ranks=st.lists(st.floats(0, 1), min_size=1, max_size=5),
)
@settings(max_examples=60)
def test_agrees_with_sorting(seed: int, size: int, spread: int, ranks: list[float]) -> None:
    values = np.random.default_rng(seed).integers(0, spread, size)
    wanted = [int(q * (size - 1)) for q in ranks]
    ordered = np.sort(values)
    assert order_statistics(values, wanted) == [int(ordered[rank]) for rank in wanted]


def test_values_are_not_changed() -> None:
    values = np.arange(10_000, dtype=np.int64)[::-1].copy()
    before = values.copy()
    assert order_statistics(values, [0, 5_000, 9_999]) == [0, 5_000, 9_999]
    assert (values == before).all()
