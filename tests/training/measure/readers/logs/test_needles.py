"""Needles: whatever a pattern matches holds its needle."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goodput.training.measure.readers.logs.needles import needle_of


@pytest.mark.parametrize(
    ("pattern", "needle"),
    [
        (r"step (?P<step>\d+) loss", "step "),
        (r"^\[(?P<at>[^\]]+)\] iteration: (?P<step>\d+)", "] iteration: "),
        (r'"step": (?P<step>\d+)', '"step": '),
        (r"\{step=(?P<step>\d+)\}", "{step="),
        (r"(?:took|time) (?P<ms>\d+)", ""),
        (r"(?:saved)?now saved", "now saved"),
        (r"(saved)+ x", "saved"),
        (r"took (?P<ms>\d+) ms|step (?P<step>\d+)", ""),
        (r"colou?r", "colo"),
        (r"col(?=ours)x", "col"),
        (r"(?i)step (\d+)", ""),
        (r"\x41\x42 \101 done", " done"),
        (r"a{0,3}bcd", "bcd"),
        (r"(?P<step>\d+)", ""),
        (r"(a)?(?(1)bcd)", ""),
        (r".* \d+ ", ""),
    ],
)
def test_needle(pattern: str, needle: str) -> None:
    assert needle_of(pattern) == needle


LETTERS = ["ab", "step", r"\d", r"\.", ".", "[a-c]", "[^]x]", r"\x41", r"\101", "{", "^", "$"]
SIGNS = ["(?:", "(", ")", "|", "?", "*", "+", "{2}", "{0,1}", "{1,}", "??", "(?=", "(?!", "(?P<n>"]
PIECES = st.sampled_from([*LETTERS, *SIGNS])


@given(st.data())
def test_every_match_holds_the_needle(data: st.DataObject) -> None:
    pattern = "".join(data.draw(st.lists(PIECES, min_size=1, max_size=10)))
    needle = needle_of(pattern)
    try:
        regex = re.compile(pattern)
    except re.error:
        return
    text = data.draw(st.from_regex(regex))
    assert needle in text
