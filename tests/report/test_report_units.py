"""Numbers as a person reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goodput.report.units import (
    count,
    duration,
    elapsed,
    instant,
    percent,
    period,
    scale_for,
    share,
)

S = 1_000_000_000
H = 3600 * S


@pytest.mark.parametrize(
    ("fraction", "text"),
    [
        (0.0, "0 %"),
        (1.0, "100 %"),
        (0.6237, "62.4 %"),
        (0.0004, "<0.1 %"),
        (0.0005, "0.1 %"),
        (0.9996, ">99.9 %"),
        (0.9994, "99.9 %"),
        (0.05, "5.0 %"),
    ],
)
def test_a_percentage_never_rounds_something_to_nothing_or_to_all(
    fraction: float, text: str
) -> None:
    assert percent(fraction) == text


@given(st.floats(min_value=0, max_value=1, exclude_min=True, exclude_max=True))
def test_only_exact_bounds_print_as_bounds(fraction: float) -> None:
    assert percent(fraction) not in {"0 %", "100 %", "0.0 %", "100.0 %"}


def test_a_share_of_no_capacity_is_zero() -> None:
    assert share(0, 0) == "0 %"
    assert share(1, 4) == "25.0 %"


@pytest.mark.parametrize(
    ("duration_ns", "text"),
    [
        (-1, "-"),
        (0, "0 s"),
        (999, "999 ns"),
        (1_500, "1.5 us"),
        (412_000_000, "412 ms"),
        (999_600_000, "1.00 s"),
        (4_130_000_000, "4.13 s"),
        (9_999_000_000, "10.0 s"),
        (59_940_000_000, "59.9 s"),
        (59_999_000_000, "1 min 00 s"),
        (188 * S, "3 min 08 s"),
        (3_599_600_000_000, "1 h 00 min"),
        (2 * H + 14 * 60 * S, "2 h 14 min"),
        (24 * H - 1, "1 d 00 h"),
        (54 * 24 * H + 2 * H, "54 d 02 h"),
    ],
)
def test_durations(duration_ns: int, text: str) -> None:
    assert duration(duration_ns) == text


@given(st.integers(min_value=0, max_value=10**19))
def test_a_duration_never_prints_sixty_of_a_unit(duration_ns: int) -> None:
    numbers = [float(word) for word in duration(duration_ns).split() if word[0].isdigit()]
    units = [word for word in duration(duration_ns).split() if word[0].isalpha()]
    limits = {"ns": 1000, "us": 1000, "ms": 1000, "s": 60, "min": 60, "h": 24}
    for number, unit in zip(numbers, units, strict=True):
        assert number < limits.get(unit, float("inf"))


@pytest.mark.parametrize(
    ("largest", "text"),
    [
        (366 * S, "366.0 chip-s"),
        (5_000 * S, "5,000 chip-s"),
        (2 * H, "2.00 chip-h"),
        (21_238_704 * H, "21,238,704 chip-h"),
    ],
)
def test_chip_time_has_a_sensible_unit(largest: int, text: str) -> None:
    assert scale_for("chip_ns", largest).text(largest) == text


def test_other_units_are_counted() -> None:
    assert scale_for("requests", 12_345).text(12_345) == "12,345 requests"


def test_instants_are_utc() -> None:
    start = 1_767_448_931 * S
    assert instant(start) == "2026-01-03 14:02:11"
    assert period(start, start + 188 * S) == "2026-01-03 14:02:11 to 14:05:19 UTC"
    assert period(start, start + 24 * H).endswith("to 2026-01-04 14:02:11 UTC")


def test_offsets_from_the_start() -> None:
    assert elapsed(133 * S) == "+02:13"
    assert elapsed(3_733 * S) == "+1:02:13"
    assert elapsed((12 * 24 + 4) * H + 11 * 60 * S) == "+12d 04:11"
    assert elapsed(-5) == "+00:00"


def test_counts() -> None:
    assert count(1, "chip") == "1 chip"
    assert count(16_384, "chip") == "16,384 chips"
    assert count(2, "cause of loss", "causes of loss") == "2 causes of loss"
