"""Interval algebra against brute force: every set of intervals as a set of unit cells."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goodput.core.timeline import (
    EMPTY,
    Cover,
    Intervals,
    Layer,
    as_ints,
    clip,
    partition,
    subtract,
    union,
)

REACH = 24
"""Instants are -REACH .. REACH: small enough that borders meet all the time."""

Pairs = list[tuple[int, int]]
instants = st.integers(-REACH, REACH)
raw = st.lists(st.tuples(instants, instants), max_size=12)
many = st.lists(st.tuples(instants, instants), max_size=3)


def cells(pairs: Pairs) -> set[int]:
    """Unit cells [i, i + 1) covered by half-open intervals."""
    return {i for low, high in pairs for i in range(low, high)}


def columns(pairs: Pairs) -> tuple[np.ndarray, np.ndarray]:
    return as_ints([p[0] for p in pairs]), as_ints([p[1] for p in pairs])


def as_set(intervals: Intervals) -> set[int]:
    """Cells of a result, which must be sorted, disjoint, apart and without empty intervals."""
    start, end = intervals.start.tolist(), intervals.end.tolist()
    assert len(start) == len(end)
    assert all(low < high for low, high in zip(start, end, strict=True))
    assert all(high <= low for high, low in zip(end[:-1], start[1:], strict=True))
    return cells(list(zip(start, end, strict=True)))


@given(raw)
def test_union_covers_the_same_cells_and_touching_intervals_are_one(pairs: Pairs) -> None:
    found = union(*columns(pairs))
    assert as_set(found) == cells(pairs)
    assert bool((found.start[1:] > found.end[:-1]).all())
    assert found.total == len(cells(pairs))


@given(raw, st.randoms())
def test_union_does_not_depend_on_order(pairs: Pairs, random: object) -> None:
    again = list(pairs)
    random.shuffle(again)  # type: ignore[attr-defined]
    one, two = union(*columns(pairs)), union(*columns(again))
    assert one.start.tolist() == two.start.tolist()
    assert one.end.tolist() == two.end.tolist()


@given(raw)
def test_union_of_a_union_is_itself(pairs: Pairs) -> None:
    once = union(*columns(pairs))
    twice = union(*once)
    assert twice.start.tolist() == once.start.tolist()
    assert twice.end.tolist() == once.end.tolist()


@given(raw, raw)
def test_subtract_is_set_difference(these: Pairs, others: Pairs) -> None:
    found = subtract(union(*columns(these)), union(*columns(others)))
    assert as_set(found) == cells(these) - cells(others)


@given(raw, instants, instants)
def test_clip_keeps_order_and_what_is_inside(pairs: Pairs, a: int, b: int) -> None:
    low, high = min(a, b), max(a, b)
    start, end = clip(*columns(pairs), low, high)
    assert start.size == len(pairs)
    for pair, cut in zip(pairs, zip(start.tolist(), end.tolist(), strict=True), strict=True):
        assert cells([cut]) == {i for i in cells([pair]) if low <= i < high}


@given(raw, st.lists(instants, max_size=20))
def test_cover_until_counts_the_cells_before(pairs: Pairs, at: list[int]) -> None:
    cover = Cover(union(*columns(pairs)))
    held = cells(pairs)
    assert cover.total == len(held)
    assert cover.until(as_ints(at)).tolist() == [sum(1 for i in held if i < a) for a in at]


@given(many, st.lists(instants, max_size=40, unique=True))
def test_cover_within_sorted_disjoint_intervals(pairs: Pairs, edges: list[int]) -> None:
    """Many sorted windows and a small set: the sparse path must agree with the plain one."""
    cover = Cover(union(*columns(pairs)))
    marks = sorted(edges)
    start, end = as_ints(marks[:-1]), as_ints(marks[1:])
    held = cells(pairs)
    expected = [sum(1 for i in held if a <= i < b) for a, b in itertools.pairwise(marks)]
    assert cover.within(start, end).tolist() == expected


@given(many, st.lists(st.integers(0, 3), min_size=30, max_size=60))
def test_the_sparse_path_stands_empty_and_distant_windows(pairs: Pairs, lengths: list[int]) -> None:
    cover = Cover(union(*columns(pairs)))
    at, windows = -REACH, []
    for index, length in enumerate(lengths):
        windows.append((at, at + length))
        at += length + index % 2
    held = cells(pairs)
    expected = [sum(1 for i in held if a <= i < b) for a, b in windows]
    assert cover.within(*columns(windows)).tolist() == expected


@given(raw, raw)
def test_cover_within_any_intervals(pairs: Pairs, windows: Pairs) -> None:
    cover = Cover(union(*columns(pairs)))
    forward = [(min(w), max(w)) for w in windows]
    held = cells(pairs)
    expected = [sum(1 for i in held if a <= i < b) for a, b in forward]
    assert cover.within(*columns(forward)).tolist() == expected


@given(st.lists(st.tuples(st.sampled_from("abc"), raw), max_size=6), instants, instants)
def test_partition_gives_every_cell_to_the_first_layer_that_claims_it(
    layers: list[tuple[str, Pairs]], a: int, b: int
) -> None:
    low, high = min(a, b), max(a, b)
    owned, together = partition([Layer(name, *columns(p)) for name, p in layers], low, high)
    owner: dict[int, str] = {}
    for name, pairs in layers:
        for cell in cells(pairs):
            if low <= cell < high:
                owner.setdefault(cell, name)
    found = {name: as_set(own) for name, own in owned.items()}
    for name in "abc":
        assert found.get(name, set()) == {c for c, n in owner.items() if n == name}
    assert all(found.values()), "a label that owns nothing is not listed"
    assert as_set(together) == set(owner)
    assert together.total == sum(own.total for own in owned.values())


@given(raw, st.integers(-(2**61), 2**61))
def test_far_from_zero_nothing_changes(pairs: Pairs, shift: int) -> None:
    start, end = columns(pairs)
    here, there = union(start, end), union(start + shift, end + shift)
    assert (there.start - shift).tolist() == here.start.tolist()
    assert (there.end - shift).tolist() == here.end.tolist()


def test_empty_sets_are_empty() -> None:
    none = as_ints([])
    assert union(none, none).total == 0
    assert subtract(EMPTY, union(as_ints([1]), as_ints([2]))).total == 0
    assert subtract(union(as_ints([1]), as_ints([2])), EMPTY).total == 1
    assert Cover(EMPTY).until(as_ints([5])).tolist() == [0]
    assert partition([], 0, 10) == ({}, EMPTY)


@pytest.mark.parametrize("values", [[], 3, [1, 2], (1,), np.array([4], dtype=np.int64)])
def test_as_ints_is_one_dimensional_int64(values: object) -> None:
    found = as_ints(values)
    assert found.dtype == np.int64
    assert found.ndim == 1
