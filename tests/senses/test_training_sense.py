"""Relative times become absolute ones before the ledger sees them."""

import pytest

from goodput.core.errors import ConfigError
from goodput.senses.training import Moment, Query, Stretch, resolve
from goodput.training.measure.ledger import Options


def test_relative_moments_count_from_the_start() -> None:
    query = Query(
        exclude=(Stretch(Moment(5, from_start=True), Moment(130)),),
        window=Stretch(None, Moment(50, from_start=True)),
        as_of=Moment(60, from_start=True),
        options=Options(chips=3),
    )
    options = resolve(query, begin_ns=100, end_ns=200)
    assert options == Options(exclude=((105, 130),), window=(100, 150), as_of_ns=160, chips=3)


def test_open_windows_reach_the_end() -> None:
    options = resolve(Query(window=Stretch(Moment(150), None)), begin_ns=100, end_ns=200)
    assert options.window == (150, 200)


def test_a_window_that_ends_before_it_begins() -> None:
    with pytest.raises(ConfigError):
        resolve(Query(window=Stretch(Moment(150), Moment(140))), begin_ns=100, end_ns=200)


def test_zero_is_a_moment() -> None:
    assert resolve(Query(as_of=Moment(0)), begin_ns=100, end_ns=200).as_of_ns == 0
