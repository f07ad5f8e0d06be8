"""Numbers as a person reads them: shares, durations, instants and amounts in a sensible unit.

Knows no pillar: amounts come as integers in the unit of a Waterfall. All instants print in UTC.
"""

from datetime import UTC, datetime
from typing import Final

import msgspec

from goodput.core.waterfall import Unit

NS_PER_S: Final = 1_000_000_000
NS_PER_H: Final = 3600 * NS_PER_S
_S_PER_DAY: Final = 86_400


class Scale(msgspec.Struct, frozen=True):
    """One unit and one number of decimals for a whole column of amounts."""

    label: str
    """What is printed as the unit, e.g. `chip-h`."""
    divisor: int
    decimals: int

    def number(self, amount: int) -> str:
        """Return the amount in this unit, without the unit's name."""
        return f"{amount / self.divisor:,.{self.decimals}f}"

    def text(self, amount: int) -> str:
        """Return the amount with the unit's name."""
        return f"{self.number(amount)} {self.label}"


def scale_for(unit: Unit, largest: int) -> Scale:
    """Choose the unit for a column from its largest amount.

    Chip time below two chip-hours is given in chip-seconds; decimals are chosen so that the largest
    amount has at least three digits.

    Args:
        unit: unit of the amounts.
        largest: largest amount of the column, in that unit, >= 0.

    Returns:
        The scale for every amount of the column.
    """
    if unit != "chip_ns":
        return Scale(label=unit, divisor=1, decimals=0)
    label, divisor = ("chip-h", NS_PER_H) if largest >= 2 * NS_PER_H else ("chip-s", NS_PER_S)
    value = largest / divisor
    decimals = 0 if value >= 1000 else 1 if value >= 100 else 2
    return Scale(label=label, divisor=divisor, decimals=decimals)


def percent(fraction: float, *, decimals: int = 1) -> str:
    """Return a fraction as a percentage that never rounds something to nothing or to everything.

    Args:
        fraction: 0-1.
        decimals: digits after the point.

    Returns:
        `62.4 %`; exactly `0 %` and `100 %` for 0 and 1; `<0.1 %` and `>99.9 %` next to them.
    """
    if fraction in {0.0, 1.0}:
        return f"{fraction * 100:.0f} %"
    smallest = 10.0**-decimals
    value = fraction * 100
    if 0 < value < smallest / 2:
        return f"<{smallest:.{decimals}f} %"
    if 100 - smallest / 2 <= value < 100:
        return f">{100 - smallest:.{decimals}f} %"
    return f"{value:.{decimals}f} %"


def share(amount: int, capacity: int) -> str:
    """Return `amount / capacity` as a percentage; `0 %` when there is no capacity."""
    return percent(amount / capacity if capacity else 0.0)


def duration(duration_ns: int) -> str:
    """Return a length of time in at most two units: `412 ms`, `4.13 s`, `3 min 08 s`, `54 d 02 h`.

    Args:
        duration_ns: nanoseconds; negative prints as `-`, the mark for "not known".
    """
    if duration_ns < 0:
        return "-"
    seconds = duration_ns / NS_PER_S
    if seconds < 1:
        return _below_second(duration_ns)
    if seconds < 59.95:
        return f"{seconds:.2f} s" if seconds < 9.995 else f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    minutes = round(seconds / 60)
    if minutes < 24 * 60:
        return f"{minutes // 60} h {minutes % 60:02d} min"
    hours = round(seconds / 3600)
    return f"{hours // 24} d {hours % 24:02d} h"


def _below_second(duration_ns: int) -> str:
    if duration_ns == 0:
        return "0 s"
    if duration_ns < 1000:
        return f"{duration_ns} ns"
    if duration_ns < 999_500:
        return f"{duration_ns / 1e3:.3g} us"
    return f"{duration_ns / 1e6:.3g} ms" if duration_ns < 999_500_000 else "1.00 s"


def instant(at_ns: int) -> str:
    """Return a Unix instant as `2026-01-03 14:02:11`, UTC, whole seconds rounded down."""
    return datetime.fromtimestamp(at_ns // NS_PER_S, UTC).strftime("%Y-%m-%d %H:%M:%S")


def period(start_ns: int, end_ns: int) -> str:
    """Return `start to end UTC`; the date is not repeated when both are on one day."""
    start, end = instant(start_ns), instant(end_ns)
    return f"{start} to {end[11:] if start[:10] == end[:10] else end} UTC"


def elapsed(offset_ns: int) -> str:
    """Return an offset from the start of the account: `+02:13`, `+1:02:13` or `+12d 04:11`."""
    seconds = max(0, offset_ns) // NS_PER_S
    hours, minutes = seconds // 3600, seconds // 60 % 60
    if seconds >= _S_PER_DAY:
        return f"+{seconds // _S_PER_DAY}d {hours % 24:02d}:{minutes:02d}"
    if hours:
        return f"+{hours}:{minutes:02d}:{seconds % 60:02d}"
    return f"+{minutes:02d}:{seconds % 60:02d}"


def count(number: int, noun: str, plural: str = "") -> str:
    """Return `1 chip`, `2 chips`, `16,384 chips`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
