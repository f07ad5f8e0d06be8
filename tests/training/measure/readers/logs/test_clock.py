"""Stamps: whole dates one by one and in columns, and stamps without a year in order."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import NS, at

from goodput.training.measure.readers.logs.clock import (
    DAY_NS,
    YearlessClock,
    iso_column,
    iso_ns,
    seconds_of_day,
    stamp_ns,
    unix_ns,
)
from goodput.training.measure.readers.logs.story import UNKNOWN


def ns(stamp: str) -> int:
    return round(at(stamp)) * NS


@pytest.mark.parametrize(
    ("stamp", "expected"),
    [
        (b"2025-03-07 22:36:39", "2025-03-07 22:36:39"),
        (b"2025-03-07T22:36:39Z", "2025-03-07 22:36:39"),
        (b"2025-03-07 22:36:39+01:00", "2025-03-07 21:36:39"),
        (b"2025-03-07 22:36:39-0530", "2025-03-08 04:06:39"),
    ],
)
def test_a_whole_date_is_utc_unless_it_names_a_zone(stamp: bytes, expected: str) -> None:
    assert iso_ns(stamp) == ns(expected)


def test_fractions_are_kept() -> None:
    assert iso_ns(b"2025-03-07 22:36:39,25") - ns("2025-03-07 22:36:39") == NS // 4
    assert iso_ns(b"2025-03-07 22:36:39.000001") - ns("2025-03-07 22:36:39") == 1000


@pytest.mark.parametrize("stamp", [b"2025-02-30 00:00:00", b"2025-13-01 00:00:00", b"soon", b""])
def test_what_is_no_date_is_unknown(stamp: bytes) -> None:
    assert iso_ns(stamp) == UNKNOWN


@given(st.lists(st.datetimes(datetime(1972, 1, 1), datetime(2300, 1, 1))))  # noqa: DTZ001 - naive
def test_a_column_says_what_single_stamps_say(moments: list[datetime]) -> None:
    stamps = [str(moment)[:26].replace(".", ",").encode() for moment in moments]
    assert iso_column(stamps).tolist() == [iso_ns(stamp) for stamp in stamps]


def test_a_column_with_nonsense_keeps_the_rest() -> None:
    column = iso_column([b"2025-03-07 22:36:39", b"2025-99-07 22:36:39"])
    assert column.tolist() == [ns("2025-03-07 22:36:39"), UNKNOWN]


def test_the_year_turns_at_new_year() -> None:
    clock = YearlessClock(ns("2026-01-02 00:00:00"))
    assert clock.ns(12, 31, 86_399.0) == ns("2025-12-31 23:59:59")
    assert clock.ns(1, 1, 1.0) == ns("2026-01-01 00:00:01")


def test_a_late_line_of_december_stays_in_the_old_year() -> None:
    clock = YearlessClock(ns("2026-01-02 00:00:00"))
    clock.ns(12, 31, 86_399.0)
    clock.ns(1, 1, 0.0)
    assert clock.ns(12, 31, 86_399.5) == ns("2025-12-31 23:59:59") + NS // 2
    assert clock.ns(1, 1, 2.0) == ns("2026-01-01 00:00:02")


def test_no_line_is_younger_than_the_file() -> None:
    clock = YearlessClock(ns("2026-03-01 00:00:00"))
    assert clock.ns(12, 22, 0.0) == ns("2025-12-22 00:00:00")
    assert clock.guessed


def test_a_whole_date_elsewhere_in_the_file_gives_the_year() -> None:
    clock = YearlessClock(ns("2026-06-01 00:00:00"))
    clock.hint(b"I0307 22:33:45.9 x\n[NeMo I 2025-03-07 22:33:56 y]\n")
    assert clock.ns(3, 7, 0.0) == ns("2025-03-07 00:00:00")
    assert not clock.guessed


def test_a_date_in_january_puts_december_before_it() -> None:
    clock = YearlessClock(ns("2026-06-01 00:00:00"))
    clock.hint(b"2025-01-01 00:10:00")
    assert clock.ns(12, 31, 0.0) == ns("2024-12-31 00:00:00")


def test_a_day_that_does_not_exist_is_unknown() -> None:
    clock = YearlessClock(ns("2026-06-01 00:00:00"))
    assert clock.ns(2, 30, 0.0) == UNKNOWN
    assert clock.ns(3, 1, 0.0) == ns("2026-03-01 00:00:00")


@given(st.integers(0, 400 * 86_400), st.lists(st.integers(0, 20 * 86_400), max_size=30))
def test_a_rising_sequence_is_recovered_over_any_new_year(start_s: int, gaps: list[int]) -> None:
    first = ns("2024-06-01 00:00:00") + start_s * NS
    moments = [first]
    for gap in gaps:
        moments.append(moments[-1] + gap * NS)
    clock = YearlessClock(moments[-1])
    clock.knows(first)
    for moment in moments:
        day = datetime.fromtimestamp(moment // NS, tz=UTC)
        assert clock.ns(day.month, day.day, float(moment // NS % 86_400)) == moment


def test_stamps_of_glog_and_of_loggers_are_found_in_lines() -> None:
    clock = YearlessClock(ns("2025-12-31 00:00:00"))
    glog = b"[rank3]:[E1218 20:27:21.500 ProcessGroupNCCL.cpp:629] [Rank 3] text"
    assert stamp_ns(glog, clock) == ns("2025-12-18 20:27:21") + NS // 2
    assert stamp_ns(b"[INFO] 2025-12-19 01:00:00,000 api: x", clock) == ns("2025-12-19 01:00:00")
    assert stamp_ns(b"no time here", clock) == UNKNOWN


def test_small_helpers() -> None:
    assert seconds_of_day(b"22:33:45.5") == 81_225.5
    assert seconds_of_day(b"59:30") == 3570
    assert unix_ns(1.5) == NS + NS // 2
    assert unix_ns(-1.0) == UNKNOWN
    assert DAY_NS == 86_400 * NS
