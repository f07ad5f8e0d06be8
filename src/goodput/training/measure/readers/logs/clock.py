"""Stamps on log lines as Unix nanoseconds, many at once where the date is whole.

A stamp without a time zone is taken as UTC; the report says so.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import numpy as np

from goodput.core.timeline import Ints, as_ints
from goodput.training.measure.readers.logs.story import NS, UNKNOWN

DAY_NS: Final = 86_400 * NS
_HALF_YEAR_NS: Final = 182 * DAY_NS
_ISO: Final = re.compile(
    rb"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d:?\d\d)?"
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def iso_ns(stamp: bytes) -> int:
    """Return the Unix ns of `2025-03-07 22:36:39[.,]123[+01:00]`; UNKNOWN if it is no date."""
    found = _ISO.match(stamp)
    if found is None:
        return UNKNOWN
    try:
        whole = datetime(*(int(part) for part in found.groups()[:6]), tzinfo=UTC)  # type: ignore[misc,arg-type]
    except ValueError:
        return UNKNOWN
    fraction = found[7]
    ns = int(fraction.ljust(9, b"0")) if fraction else 0
    return _since_epoch(whole) + ns - _zone_ns(found[8])


def iso_column(stamps: Sequence[bytes]) -> Ints:
    """Return the Unix ns of many stamps of one shape, UNKNOWN where one is no date; shape (N,)."""
    text = np.array([s.replace(b",", b".").replace(b" ", b"T", 1) for s in stamps], dtype="S29")
    try:
        return text.astype("datetime64[ns]").astype(np.int64)
    except ValueError:
        return as_ints([iso_ns(stamp) for stamp in stamps])


def unix_ns(seconds: float) -> int:
    """Return the ns of Unix seconds, UNKNOWN for nonsense."""
    return round(seconds * NS) if 0 < seconds < 4e9 else UNKNOWN


class YearlessClock:
    """Stamps without a year, read in order: the year turns when December is followed by January.

    Args:
        latest_ns: no line is younger than this (the file's own time).
    """

    def __init__(self, latest_ns: int) -> None:
        self._latest_ns = latest_ns
        self._year: int | None = None
        self._last = UNKNOWN
        self.guessed = False
        """The year was taken from the file's own time: no line gave a whole date."""

    def knows(self, at_ns: int) -> None:
        """A line of the same file gave the whole date: the year follows from it."""
        if self._year is None and at_ns != UNKNOWN:
            self._year = (_EPOCH + timedelta(microseconds=at_ns // 1000)).year
            self._last = at_ns

    def ns(self, month: int, day: int, seconds_of_day: float) -> int:
        """Return the Unix ns of a stamp; UNKNOWN if there is no such day."""
        if self._year is None:
            self._year = (_EPOCH + timedelta(microseconds=self._latest_ns // 1000)).year
            self.guessed = True
            if self._at(month, day, seconds_of_day) > self._latest_ns + DAY_NS:
                self._year -= 1
        at = self._at(month, day, seconds_of_day)
        if UNKNOWN not in {at, self._last} and at < self._last - _HALF_YEAR_NS:
            self._year += 1
            at = self._at(month, day, seconds_of_day)
        elif UNKNOWN not in {at, self._last} and at > self._last + _HALF_YEAR_NS:
            return self._at(
                month, day, seconds_of_day, years_back=1
            )  # another rank, still in December
        if at != UNKNOWN:
            self._last = at
        return at

    def _at(self, month: int, day: int, seconds_of_day: float, *, years_back: int = 0) -> int:
        try:
            midnight = datetime((self._year or 1970) - years_back, month, day, tzinfo=UTC)
        except ValueError:
            return UNKNOWN
        return _since_epoch(midnight) + round(seconds_of_day * NS)


def seconds_of_day(clock: bytes) -> float:
    """Return the seconds of `22:33:45.902000`."""
    hours, minutes, seconds = clock.split(b":")
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds)


def _since_epoch(moment: datetime) -> int:
    return int((moment - _EPOCH) / timedelta(microseconds=1)) * 1000


def _zone_ns(zone: bytes | None) -> int:
    if zone is None or zone == b"Z":
        return 0
    hours, minutes = int(zone[1:3]), int(zone[-2:])
    return (1 if zone[:1] == b"+" else -1) * (hours * 3600 + minutes * 60) * NS
