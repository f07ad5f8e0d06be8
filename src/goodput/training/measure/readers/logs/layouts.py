"""Stamps of a user's own log: ISO 8601, Unix time, or a layout as in `strptime`."""

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from goodput.training.measure.readers.logs.clock import YearlessClock, iso_ns, unix_ns
from goodput.training.measure.readers.logs.story import NS, UNKNOWN

UNIX: Final = {"unix_s": 1.0, "unix_ms": 1e-3}
"""Layout names of Unix time, and seconds per unit."""
_ISO_LIKE: Final = frozenset(
    f"%Y-%m-%d{between}%H:%M:%S{fraction}{zone}"
    for between in " T"
    for fraction in ("", ".%f", ",%f")
    for zone in ("", "%z")
)
"""Layouts that the reader of ISO 8601 reads too, ten times as fast as `strptime`."""
_OFFSET: Final = re.compile(r"([+-])(\d\d):(\d\d)")
_ZONED: Final = re.compile(rb":\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_HOUR_NS: Final = 3600 * NS


def zone_of(name: str) -> tzinfo:
    """Return a time zone.

    Args:
        name: `UTC`, `+01:00`, or a name of the time zone database such as `Europe/Paris`.

    Raises:
        ValueError: there is no such zone.
    """
    found = _OFFSET.fullmatch(name)
    if name == "UTC":
        return UTC
    if found is not None:
        sign = 1 if found[1] == "+" else -1
        return timezone(sign * timedelta(hours=int(found[2]), minutes=int(found[3])))
    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError) as error:
        raise ValueError(
            f"there is no time zone {name!r}; write UTC, +01:00 or Europe/Paris"
        ) from error


def layout_problem(layout: str) -> str:
    """Return what is wrong with a layout; empty = nothing."""
    if layout == "iso" or layout in UNIX:
        return ""
    if "%" not in layout:
        return "is neither iso, unix_s, unix_ms nor a layout such as %Y-%m-%d %H:%M:%S"
    if not any(code in layout for code in ("%d", "%j", "%x", "%c")) or not any(
        code in layout for code in ("%H", "%I", "%X", "%c")
    ):
        return "has no day or no hour"
    try:
        datetime.strptime("", layout if _dated(layout) else f"%Y {layout}")  # noqa: DTZ007 - nothing is parsed
    except re.error:
        return "has a directive twice"
    except ValueError as error:
        return f"has {error}" if "directive" in str(error) or "stray" in str(error) else ""
    return ""


def _dated(layout: str) -> bool:
    return any(code in layout for code in ("%Y", "%y", "%c", "%x", "%G"))


class Stamps:
    """Reads stamps of some layouts, the first that fits.

    Args:
        layouts: as `layout_problem` accepts them.
        zone: of stamps that do not give one.
    """

    def __init__(self, layouts: tuple[str, ...], zone: tzinfo) -> None:
        self._layouts = tuple("iso" if one in _ISO_LIKE else one for one in layouts)
        self._zone = zone
        self.zoneless = any(layout not in UNIX and "%z" not in layout for layout in layouts)
        """Stamps may come without a time zone."""

    def ns(self, stamp: bytes, clock: YearlessClock) -> int:
        """Return the Unix ns of a stamp; UNKNOWN if no layout fits."""
        for layout in self._layouts:
            at = self._one(layout, stamp, clock)
            if at != UNKNOWN:
                return at
        return UNKNOWN

    def _one(self, layout: str, stamp: bytes, clock: YearlessClock) -> int:
        if layout in UNIX:
            try:
                return unix_ns(float(stamp) * UNIX[layout])
            except ValueError:
                return UNKNOWN
        if layout == "iso":
            at = iso_ns(stamp)
            if at != UNKNOWN and self._zone is not UTC and _ZONED.search(stamp) is None:
                at -= _offset_ns(self._zone, at // _HOUR_NS)
            clock.knows(at)
            return at
        return self._parsed(layout, stamp.decode(errors="replace").strip(), clock)

    def _parsed(self, layout: str, text: str, clock: YearlessClock) -> int:
        dated = _dated(layout)
        try:
            # A leap year stands in for the one that is not given: 29 February must parse.
            when = (
                datetime.strptime(text, layout)  # noqa: DTZ007 - the zone follows
                if dated
                else datetime.strptime(f"2000 {text}", f"%Y {layout}")  # noqa: DTZ007
            )
        except ValueError:
            return UNKNOWN
        if dated:
            at = _since_epoch(when if when.tzinfo else when.replace(tzinfo=self._zone))
            clock.knows(at)
            return at
        seconds = when.hour * 3600 + when.minute * 60 + when.second + when.microsecond / 1e6
        at = clock.ns(when.month, when.day, seconds)
        return at if at == UNKNOWN else at - _offset_ns(self._zone, at // _HOUR_NS)


@lru_cache(maxsize=256)
def _offset_ns(zone: tzinfo, hour: int) -> int:
    """What a zone's wall clock is ahead of UTC when it shows this many hours since 1970."""
    wall = (_EPOCH + timedelta(hours=hour)).replace(tzinfo=zone)
    offset = wall.utcoffset()
    return 0 if offset is None else int(offset / timedelta(microseconds=1)) * 1000


def _since_epoch(moment: datetime) -> int:
    return int((moment - _EPOCH) / timedelta(microseconds=1)) * 1000


__all__ = ["Stamps", "layout_problem", "zone_of"]
