"""Stamps in the layouts of a user's own log."""

import pytest
from samples import NS, at

from goodput.training.measure.readers.logs.clock import YearlessClock
from goodput.training.measure.readers.logs.layouts import Stamps, layout_problem, zone_of
from goodput.training.measure.readers.logs.story import UNKNOWN

LATEST_NS = round(at("2026-06-30 12:00:00")) * NS


def seconds(layout: str, stamp: str, zone: str = "UTC") -> float:
    found = Stamps((layout,), zone_of(zone)).ns(stamp.encode(), YearlessClock(LATEST_NS))
    assert found != UNKNOWN
    return found / NS


@pytest.mark.parametrize(
    ("layout", "stamp", "zone", "utc"),
    [
        ("iso", "2026-03-01T10:00:00.5", "UTC", "2026-03-01 10:00:00.5"),
        ("iso", "2026-03-01 10:00:00", "+01:00", "2026-03-01 09:00:00"),
        ("iso", "2026-03-01 10:00:00-08:00", "+01:00", "2026-03-01 18:00:00"),
        ("iso", "2026-07-01 10:00:00", "Europe/Paris", "2026-07-01 08:00:00"),
        ("iso", "2026-03-01 10:00:00Z", "Europe/Paris", "2026-03-01 10:00:00"),
        ("unix_s", "1772359200.25", "UTC", "2026-03-01 10:00:00.25"),
        ("unix_ms", "1772359200250", "UTC", "2026-03-01 10:00:00.25"),
        ("%d/%b/%Y:%H:%M:%S", "01/Mar/2026:10:00:00", "-05:30", "2026-03-01 15:30:00"),
        ("%d/%b/%Y:%H:%M:%S %z", "01/Mar/2026:10:00:00 +0100", "UTC", "2026-03-01 09:00:00"),
        ("%b %d %H:%M:%S", "Mar 01 10:00:00", "+02:00", "2026-03-01 08:00:00"),
        ("%m-%d %H:%M:%S.%f", "02-29 10:00:00.125", "UTC", "2024-02-29 10:00:00.125"),
    ],
)
def test_stamps(layout: str, stamp: str, zone: str, utc: str) -> None:
    if "02-29" in stamp:  # a year that has the day
        clock = YearlessClock(round(at("2024-06-30 12:00:00")) * NS)
        found = Stamps((layout,), zone_of(zone)).ns(stamp.encode(), clock)
        assert found / NS == pytest.approx(at(utc))
    else:
        assert seconds(layout, stamp, zone) == pytest.approx(at(utc))


@pytest.mark.parametrize("stamp", ["", "x", "2026-13-01 00:00:00", "10:00"])
@pytest.mark.parametrize("layout", ["iso", "unix_s", "%Y-%m-%d %H:%M:%S"])
def test_what_is_no_stamp(layout: str, stamp: str) -> None:
    stamps = Stamps((layout,), zone_of("UTC"))
    assert stamps.ns(stamp.encode(), YearlessClock(LATEST_NS)) == UNKNOWN


def test_the_first_layout_that_fits() -> None:
    stamps = Stamps(("unix_s", "iso"), zone_of("UTC"))
    assert stamps.ns(b"2026-03-01 10:00:00", YearlessClock(LATEST_NS)) / NS == at(
        "2026-03-01 10:00:00"
    )


@pytest.mark.parametrize(
    "layout", ["", "isoo", "%H:%M:%S", "%Y-%m-%d", "%Y-%m-%d %H:%M:%Q", "%d %d %H"]
)
def test_layouts_that_cannot_be_used(layout: str) -> None:
    assert layout_problem(layout)


@pytest.mark.parametrize("layout", ["iso", "unix_s", "unix_ms", "%b %d %H:%M:%S", "%c", "%d %I %p"])
def test_layouts_that_can(layout: str) -> None:
    assert not layout_problem(layout)


@pytest.mark.parametrize("zone", ["Mars/Olympus", "+1", "", "../etc"])
def test_zones_that_are_none(zone: str) -> None:
    with pytest.raises(ValueError, match="no time zone"):
        zone_of(zone)
