"""How a user writes times."""

import click
import pytest

from goodput.cli.train.times import moment, parse_moment, parse_stretch, stretch
from goodput.senses.training import Moment, Stretch


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", Moment(0, from_start=True)),
        ("90", Moment(90_000_000_000, from_start=True)),
        ("1.5", Moment(1_500_000_000, from_start=True)),
        ("1e3", Moment(1_000_000_000_000, from_start=True)),
        ("-5", Moment(-5_000_000_000, from_start=True)),
        ("1970-01-01T00:00:01", Moment(1_000_000_000)),
        ("1970-01-01T00:00:01Z", Moment(1_000_000_000)),
        ("1970-01-01T02:00:01+02:00", Moment(1_000_000_000)),
        ("1970-01-01 00:00:00.000001", Moment(1_000)),
        ("1969-12-31T23:59:59", Moment(-1_000_000_000)),
        ("2026-01-01", Moment(1_767_225_600_000_000_000)),
    ],
)
def test_moment(text: str, expected: Moment) -> None:
    assert parse_moment(text) == expected


@pytest.mark.parametrize("text", ["", "soon", "nan", "inf", "2026-13-01", "12:00"])
def test_not_a_moment(text: str) -> None:
    with pytest.raises(click.BadParameter):
        moment(text)


def test_stretch() -> None:
    assert parse_stretch("1..2.5") == Stretch(
        Moment(1_000_000_000, from_start=True), Moment(2_500_000_000, from_start=True)
    )
    assert parse_stretch("..60") == Stretch(None, Moment(60_000_000_000, from_start=True))
    assert parse_stretch("60..") == Stretch(Moment(60_000_000_000, from_start=True), None)
    assert parse_stretch("1970-01-01..1970-01-01T00:00:01") == Stretch(
        Moment(0), Moment(1_000_000_000)
    )


@pytest.mark.parametrize("text", ["60", "a..b", "1..2..3"])
def test_not_a_stretch(text: str) -> None:
    with pytest.raises(click.BadParameter):
        stretch(text)
