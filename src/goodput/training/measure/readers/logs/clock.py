"""Stamps on log lines as Unix nanoseconds, many at once where the date is whole.

A stamp without a time zone is taken as UTC; the report says so.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

import numpy as np

from goodput.core.timeline import Ints, as_ints
from goodput.training.measure.readers.logs.story import LATEST_NS, NS, UNKNOWN

DAY_NS: Final = 86_400 * NS
_HALF_YEAR_NS: Final = 182 * DAY_NS
_EARLIEST_NS: Final = 30 * 365 * DAY_NS
"""Dates before 2000 in a log are no stamps."""
_ISO: Final = re.compile(
    rb"(\d{4}-\d\d-\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d:?\d\d)?"
)
_FIRST_YEAR: Final = 1971
_LAST_YEAR: Final = 2199
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def iso_ns(stamp: bytes) -> int:
    """Return the Unix ns of `2025-03-07 22:36:39[.,]123[+01:00]`; UNKNOWN if it is no date."""
    found = _ISO.match(stamp)
    return UNKNOWN if found is None else _found_ns(found)


def _found_ns(found: "re.Match[bytes]") -> int:
    date, hours, minutes, seconds, fraction, zone = found.groups()
    day = _day_ns(date)
    clock = int(hours) * 3600 + int(minutes) * 60 + int(seconds)
    if day == UNKNOWN or clock >= 86_400:
        return UNKNOWN
    ns = int(fraction.ljust(9, b"0")) if fraction else 0
    return day + clock * NS + ns - (_zone_ns(zone) if zone else 0)


@lru_cache(maxsize=256)
def _day_ns(date: bytes) -> int:
    """Midnight of `2025-03-07`, Unix ns; a log has few dates and many stamps."""
    return _midnight_ns(int(date[:4]), int(date[5:7]), int(date[8:10]))


@lru_cache(maxsize=256)
def _midnight_ns(year: int, month: int, day: int) -> int:
    if not _FIRST_YEAR <= year <= _LAST_YEAR:
        return UNKNOWN
    try:
        return _since_epoch(datetime(year, month, day, tzinfo=UTC))
    except ValueError:
        return UNKNOWN


_GLOG: Final = re.compile(rb"\b[IWEF](\d\d)(\d\d) (\d\d:\d\d:\d\d\.\d+) ")


def stamp_ns(line: bytes, clock: "YearlessClock") -> int:
    """Return the first stamp of a line: a whole date, or `I0307 22:33:45.9` of glog and absl."""
    found = _ISO.search(line)
    if found is not None:
        at = _found_ns(found)
        clock.knows(at)
        return at
    found = _GLOG.search(line)
    if found is not None:
        return clock.ns(int(found[1]), int(found[2]), seconds_of_day(found[3]))
    return UNKNOWN


def iso_column(stamps: Sequence[bytes]) -> Ints:
    """Return the Unix ns of many stamps of one shape, UNKNOWN where one is no date; shape (N,)."""
    text = np.array([s.replace(b",", b".").replace(b" ", b"T", 1) for s in stamps], dtype="S29")
    try:
        seconds = text.astype("datetime64[s]").astype(np.int64)
        at = text.astype("datetime64[ns]").astype(np.int64)
        return np.where((seconds > 0) & (seconds < LATEST_NS // NS), at, np.int64(UNKNOWN))
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
        self._near_ns = UNKNOWN
        self.guessed = False
        """The year was taken from the file's own time: no line gave a whole date."""

    def hint(self, text: bytes) -> None:
        """Take the year from the first whole date in a piece of the file, wherever it stands."""
        for found in _ISO.finditer(text):
            at = _found_ns(found)
            if at != UNKNOWN and _EARLIEST_NS < at <= self._latest_ns + DAY_NS:
                self._near_ns = at
                return

    def knows(self, at_ns: int) -> None:
        """A line of the same file gave the whole date: the year follows from it."""
        if at_ns == UNKNOWN or not (self._year is None or self.guessed):
            return
        year = (_EPOCH + timedelta(microseconds=at_ns // 1000)).year
        if self._year is None:
            self._year, self._last = year, at_ns
        elif self._year == year:
            self.guessed = False  # rightly

    def ns(self, month: int, day: int, seconds_of_day: float) -> int:
        """Return the Unix ns of a stamp; UNKNOWN if there is no such day."""
        year = self._year
        if year is None:
            year = self._year = self._first_year(month, day, seconds_of_day)
        at = self._at(month, day, seconds_of_day)
        if UNKNOWN not in {at, self._last} and at < self._last - _HALF_YEAR_NS:
            self._year = year + 1
            at = self._at(month, day, seconds_of_day)
        elif UNKNOWN not in {at, self._last} and at > self._last + _HALF_YEAR_NS:
            return self._at(
                month, day, seconds_of_day, years_back=1
            )  # another rank, still in December
        if at != UNKNOWN:
            self._last = at
        return at

    def _first_year(self, month: int, day: int, seconds_of_day: float) -> int:
        """Return the year nearest to a whole date, else the last one that is not in the future."""
        self.guessed = self._near_ns == UNKNOWN
        near = self._latest_ns if self.guessed else self._near_ns
        year = (_EPOCH + timedelta(microseconds=near // 1000)).year
        self._year = year
        at = self._at(month, day, seconds_of_day)
        if self.guessed:
            return year - (at > near + DAY_NS)
        if at == UNKNOWN:
            return year
        return year + (at < near - _HALF_YEAR_NS) - (at > near + _HALF_YEAR_NS)

    def _at(self, month: int, day: int, seconds_of_day: float, *, years_back: int = 0) -> int:
        midnight = _midnight_ns((self._year or 1970) - years_back, month, day)
        return UNKNOWN if midnight == UNKNOWN else midnight + round(seconds_of_day * NS)


def seconds_of_day(clock: bytes) -> float:
    """Return the seconds of `22:33:45.902000`, or of `59:30` without hours."""
    seconds = 0.0
    for part in clock.split(b":"):
        seconds = seconds * 60 + float(part)
    return seconds


def _since_epoch(moment: datetime) -> int:
    return int((moment - _EPOCH) / timedelta(microseconds=1)) * 1000


def _zone_ns(zone: bytes) -> int:
    if zone == b"Z":
        return 0
    hours, minutes = int(zone[1:3]), int(zone[-2:])
    return (1 if zone[:1] == b"+" else -1) * (hours * 3600 + minutes * 60) * NS
