"""A histogram of durations that many processes can fill and that merges without any loss.

Buckets have integer edges computed with exact arithmetic, so that every machine puts a value into
the same bucket and merging in any order or grouping gives the same bytes.
"""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cache
from itertools import accumulate
from typing import Final, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from goodput.core.errors import DataError, InputError

HISTOGRAM_SCHEMA: Final = "goodput.histogram/1.0"
_LARGEST: Final = 2**63 - 1
_NS_PER_S: Final = 1_000_000_000


class HistogramData(msgspec.Struct, frozen=True, omit_defaults=True):
    """A histogram as it is written to a file: only buckets that hold something."""

    relative_error: float
    gaps: tuple[int, ...] = ()
    """Bucket numbers as distances: the first from 0, each other from the one before."""
    counts: tuple[int, ...] = ()
    """Values in each of those buckets."""
    total_s: int = 0
    """Whole seconds of the sum of all values."""
    total_ns: int = 0
    """The rest of the sum, nanoseconds."""
    minimum: int = 0
    maximum: int = 0
    schema: str = HISTOGRAM_SCHEMA


class LogHistogram:
    """Counts of integer values (nanoseconds) in buckets of equal relative width.

    Args:
        relative_error: bound of the error of every quantile, 0.0001 to 0.1.

    Sum, count, minimum and maximum are exact. Memory: about 16 kB at 1 %.

    Source: the idea of DDSketch (Masson et al., VLDB 2019), with integer edges instead of
    logarithms and without collapsing buckets.
    """

    __slots__ = ("_counts", "_edges", "count", "maximum", "minimum", "relative_error", "total")

    def __init__(self, relative_error: float = 0.01) -> None:
        if not 0.0001 <= relative_error <= 0.1:
            raise InputError(f"relative_error = {relative_error!r} must be from 0.0001 to 0.1")
        self.relative_error = relative_error
        self._edges = _edges(relative_error)
        self._counts: NDArray[np.int64] = np.zeros(len(self._edges), dtype=np.int64)
        self.count: int = 0
        """How many values went in."""
        self.total: int = 0
        """Sum of all values, exact."""
        self.minimum: int = 0
        """Smallest value; 0 when empty."""
        self.maximum: int = 0
        """Largest value; 0 when empty."""

    @property
    def mean(self) -> float:
        """Mean of all values, exact up to the division; 0 when empty."""
        return self.total / self.count if self.count else 0.0

    def add(self, values: int | Sequence[int] | NDArray[np.integer]) -> None:
        """Count one value or many.

        Args:
            values: integers from 0 to 2**63 - 1.

        Raises:
            InputError: a value is negative, too large or not an integer. Nothing was counted.
        """
        array = _checked_values(values)
        if array.size == 0:
            return
        low, high = int(array.min()), int(array.max())
        if low < 0:
            raise InputError(f"value {low} is negative: a duration cannot be")
        buckets = np.searchsorted(self._edges, array, side="right") - 1
        if array.size == 1:
            self._counts[buckets[0]] += 1
        else:
            self._counts += np.bincount(buckets, minlength=len(self._edges))
        self.total += _exact_sum(array)
        self.minimum = min(self.minimum, low) if self.count else low
        self.maximum = max(self.maximum, high)
        self.count += array.size

    def merged(self, other: Self) -> Self:
        """Return a new histogram of the values of both: exact, in any order and grouping.

        Raises:
            InputError: the two have different relative errors.
        """
        if other.relative_error != self.relative_error:
            raise InputError(
                f"histograms with relative errors {self.relative_error} and "
                f"{other.relative_error} cannot be merged exactly"
            )
        result = type(self)(self.relative_error)
        filled = [each for each in (self, other) if each.count]
        result._counts = self._counts + other._counts  # noqa: SLF001 - the same class
        result.count = self.count + other.count
        result.total = self.total + other.total
        result.minimum = min((each.minimum for each in filled), default=0)
        result.maximum = max(self.maximum, other.maximum)
        return result

    def quantile(self, q: float) -> float:
        """Return the value of rank floor(q x (count - 1)), within `relative_error` of the true one.

        Exact for q = 0 and q = 1 and for values below about 1 / (2 x relative_error).

        Args:
            q: 0-1.

        Raises:
            InputError: q outside 0-1, or the histogram is empty.
        """
        return self.quantiles((q,))[0]

    def quantiles(self, qs: Iterable[float]) -> list[float]:
        """Return several quantiles in one pass, each as `quantile` does."""
        wanted = tuple(qs)
        if outside := [q for q in wanted if not 0 <= q <= 1]:
            raise InputError(f"q = {outside[0]!r} must be from 0 to 1")
        if self.count == 0:
            raise InputError("an empty histogram has no quantiles")
        # Ranks as exact fractions: 0.29 x 100 must not become 28.
        ranks = [int(Fraction(str(q)) * (self.count - 1)) for q in wanted]
        buckets = np.searchsorted(np.cumsum(self._counts), ranks, side="right")
        return [self._value(int(b), rank) for b, rank in zip(buckets, ranks, strict=True)]

    def to_data(self) -> HistogramData:
        """Return the histogram as a value to write."""
        filled = np.flatnonzero(self._counts)
        whole, rest = divmod(self.total, _NS_PER_S)
        return HistogramData(
            relative_error=self.relative_error,
            gaps=tuple(np.diff(filled, prepend=0).tolist()),
            counts=tuple(self._counts[filled].tolist()),
            total_s=whole,
            total_ns=rest,
            minimum=self.minimum,
            maximum=self.maximum,
        )

    @classmethod
    def from_data(cls, data: HistogramData) -> Self:
        """Return the histogram that was written.

        Raises:
            DataError: another major version of the format, or fields that contradict each other.
        """
        if not data.schema.startswith(HISTOGRAM_SCHEMA.partition(".0")[0] + "."):
            raise DataError(f"histogram schema {data.schema!r} is not {HISTOGRAM_SCHEMA}")
        result = cls(data.relative_error)
        buckets = list(accumulate(data.gaps))
        if (
            len(buckets) != len(data.counts)
            or min(data.gaps[1:], default=1) < 1
            or min(data.counts, default=1) < 1
            or not all(0 <= bucket < len(result._edges) for bucket in buckets)
        ):
            raise DataError(
                "histogram buckets and counts do not belong together: "
                f"{len(data.gaps)} gaps, {len(data.counts)} counts"
            )
        result._counts[buckets] = data.counts
        result.count = sum(data.counts)
        result.total = data.total_s * _NS_PER_S + data.total_ns
        result.minimum, result.maximum = data.minimum, data.maximum
        return result

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LogHistogram) and self.to_data() == other.to_data()

    __hash__ = None  # type: ignore[assignment] # it changes

    def __repr__(self) -> str:
        return (
            f"LogHistogram(relative_error={self.relative_error}, count={self.count}, "
            f"minimum={self.minimum}, maximum={self.maximum})"
        )

    def _value(self, bucket: int, rank: int) -> float:
        """Return the value that is at most `relative_error` away from all of its bucket."""
        if rank == 0:
            return float(self.minimum)
        if rank == self.count - 1:
            return float(self.maximum)
        low = int(self._edges[bucket])
        high = int(self._edges[bucket + 1]) - 1 if bucket + 1 < len(self._edges) else _LARGEST
        # The harmonic mean errs by (high - low) / (high + low) at both ends.
        best = 2 * low * high / (low + high) if high else 0.0
        return min(max(best, float(self.minimum)), float(self.maximum))


@cache
def _edges(relative_error: float) -> NDArray[np.int64]:
    """Return the first value of every bucket: 0, 1, then growing by (1 + e) / (1 - e)."""
    error = Fraction(relative_error).limit_denominator(10**6)
    growth = (1 + error) / (1 - error)
    edges = [0, 1]
    while (following := max(edges[-1] + 1, int(edges[-1] * growth))) <= _LARGEST:
        edges.append(following)
    array = np.array(edges, dtype=np.int64)
    array.flags.writeable = False  # shared by all histograms of this error
    return array


def _checked_values(values: int | Sequence[int] | NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the values as int64.

    Raises:
        InputError: not integers, or too large.
    """
    array = np.asarray(values).ravel()
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise InputError(f"values of type {array.dtype} are not integers of up to 63 bits")
    if array.dtype == np.uint64 and array.size and int(array.max()) > _LARGEST:
        raise InputError(f"value {int(array.max())} does not fit into 63 bits")
    return array.astype(np.int64, copy=False)


def _exact_sum(array: NDArray[np.int64]) -> int:
    """Return the sum as a Python integer: halves cannot overflow below 2**31 values."""
    high = int((array >> 32).sum())
    low = int((array & 0xFFFF_FFFF).sum())
    return (high << 32) + low
