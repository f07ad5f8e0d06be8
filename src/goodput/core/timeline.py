"""Interval algebra on integer nanoseconds: sets of half-open intervals as pairs of arrays.

What the ledgers say about time is a difference of cumulative measures, so sums are exact by
construction. Nothing here knows what an interval means. Legend: N, M intervals, E edges.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


class Intervals(NamedTuple):
    """Disjoint, sorted, non-empty half-open intervals [start, end)."""

    start: Ints
    """shape (N,), ns."""
    end: Ints
    """shape (N,), ns."""

    @property
    def total(self) -> int:
        """Summed length, ns."""
        return int((self.end - self.start).sum())


def as_ints(values: object) -> Ints:
    """Return values as a one-dimensional int64 array (no copy when it is one)."""
    return np.asarray(values, dtype=np.int64).reshape(-1)


EMPTY = Intervals(as_ints([]), as_ints([]))


def union(start: Ints, end: Ints) -> Intervals:
    """Return the union of arbitrary intervals; empty and reversed ones count for nothing.

    Args:
        start: shape (N,), any order.
        end: shape (N,).
    """
    keep = end > start
    if not keep.all():
        start, end = start[keep], end[keep]
    if start.size == 0:
        return EMPTY
    if start.size > 1 and (start[1:] < start[:-1]).any():
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
    if start.size > 1 and (start[1:] <= end[:-1]).any():
        reach = np.maximum.accumulate(end)
        first = np.concatenate(([True], start[1:] > reach[:-1]))
        last = np.concatenate((first[1:], [True]))
        start, end = start[first], reach[last]
    return Intervals(start, end)


def clip(start: Ints, end: Ints, low: int, high: int) -> tuple[Ints, Ints]:
    """Return the intervals cut to [low, high); those outside become empty, in place and order."""
    return np.clip(start, low, high), np.clip(end, low, high)


def subtract(these: Intervals, others: Intervals) -> Intervals:
    """Return the part of `these` that no interval of `others` covers."""
    if these.start.size == 0 or others.start.size == 0:
        return these
    first = int(np.searchsorted(others.end, these.start[0], side="right"))
    last = int(np.searchsorted(others.start, these.end[-1], side="left"))
    cut = Intervals(others.start[first:last], others.end[first:last])
    if cut.start.size == 0:
        return these
    at = np.concatenate((these.start, these.end, cut.start, cut.end))
    order = np.argsort(at, kind="stable")
    at = at[order]
    inside = np.repeat(
        as_ints([1, -1, 0, 0]),
        (these.start.size, these.start.size, cut.start.size, cut.start.size),
    )[order].cumsum()
    covered = np.repeat(
        as_ints([0, 0, 1, -1]),
        (these.start.size, these.start.size, cut.start.size, cut.start.size),
    )[order].cumsum()
    keep = (inside[:-1] > 0) & (covered[:-1] == 0) & (at[1:] > at[:-1])
    return Intervals(at[:-1][keep], at[1:][keep])


class Cover:
    """Cumulative measure of a set of disjoint intervals.

    Args:
        intervals: the set.
    """

    __slots__ = ("_before", "intervals")

    def __init__(self, intervals: Intervals) -> None:
        self.intervals = intervals
        lengths = intervals.end - intervals.start
        self._before = np.concatenate((as_ints([0]), lengths.cumsum()))

    @property
    def total(self) -> int:
        """Measure of the whole set, ns."""
        return int(self._before[-1])

    def until(self, at: Ints) -> Ints:
        """Return the measure of the set before each instant.

        Args:
            at: instants, shape (E,), any order.

        Returns:
            shape (E,), ns.
        """
        start, end = self.intervals
        if start.size == 0:
            return np.zeros(at.shape, dtype=np.int64)
        index = np.searchsorted(start, at, side="right")
        previous = np.maximum(index - 1, 0)
        return self._before[index] - np.where(
            index > 0, np.maximum(end[previous] - at, 0), np.int64(0)
        )

    def within(self, start: Ints, end: Ints) -> Ints:
        """Return the measure of the set inside each interval [start, end), shape (M,), ns.

        Cheap in either direction: a small set against many sorted disjoint intervals is located
        in them rather than the other way round.
        """
        mine = self.intervals
        if mine.start.size == 0 or start.size == 0:
            return np.zeros(start.shape, dtype=np.int64)
        if mine.start.size * 8 < start.size and bool((start[1:] >= end[:-1]).all()):
            return self._within_sparse(start, end)
        return self.until(end) - self.until(start)

    def _within_sparse(self, start: Ints, end: Ints) -> Ints:
        """As `within`, visiting only the intervals that the set touches."""
        mine = self.intervals
        low = np.searchsorted(end, mine.start, side="right")
        high = np.searchsorted(start, mine.end, side="left")
        touched = np.unique(
            np.concatenate([np.arange(a, b) for a, b in zip(low, high, strict=True)])
        ).astype(np.int64)
        out = np.zeros(start.shape, dtype=np.int64)
        out[touched] = self.until(end[touched]) - self.until(start[touched])
        return out


class Layer(NamedTuple):
    """Intervals of one label, as given; layers earlier in a list win where they overlap."""

    label: str
    start: Ints
    end: Ints


def partition(layers: list[Layer], low: int, high: int) -> tuple[dict[str, Intervals], Intervals]:
    """Return what each label owns of [low, high), and all of it together.

    Args:
        layers: in order of precedence, highest first; several layers may share a label.
        low: start of the window, ns.
        high: end of the window, ns.

    Returns:
        (label -> disjoint intervals, their union). What no layer covers belongs to nobody.
    """
    owned: dict[str, Intervals] = {}
    covered = EMPTY
    for layer in layers:
        if layer.start.size == 0:
            continue
        own = subtract(union(*clip(layer.start, layer.end, low, high)), covered)
        if own.start.size == 0:
            continue
        covered = _join(covered, own)
        before = owned.get(layer.label)
        owned[layer.label] = own if before is None else _join(before, own)
    return owned, covered


def _join(a: Intervals, b: Intervals) -> Intervals:
    """Union of two disjoint sets that do not overlap each other."""
    if a.start.size == 0:
        return b
    return union(np.concatenate((a.start, b.start)), np.concatenate((a.end, b.end)))
