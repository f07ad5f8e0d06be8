"""Terminal reports: golden text at 80 columns, any width, no colour, ASCII, hostile names."""

import io
import re

import ledgers
import msgspec
import pytest
from rich.cells import cell_len
from syrupy.assertion import SnapshotAssertion

from goodput.core.notes import Note
from goodput.core.waterfall import Loss, Waterfall
from goodput.report import compare_terminal, render_terminal
from goodput.report.compare import compare
from goodput.report.terminal import (
    ASCII,
    UNICODE,
    Screen,
    detect_screen,
    render_training,
    waterfall_lines,
)
from goodput.report.terminal.compare import render_comparison
from goodput.report.terminal.screen import Glyphs, clean, cut
from goodput.report.terminal.waterfall import bar

NAMES = sorted(ledgers.ALL)
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize("name", NAMES)
def test_report_at_80_columns(name: str, snapshot: SnapshotAssertion) -> None:
    assert render_terminal(ledgers.ALL[name](), width=80, color=False) == snapshot


def test_report_at_120_columns(snapshot: SnapshotAssertion) -> None:
    assert render_terminal(ledgers.llama(), width=120, color=False) == snapshot


def test_report_in_ascii(snapshot: SnapshotAssertion) -> None:
    text = render_training(ledgers.demo(), screen=Screen(80, glyphs=ASCII))
    assert text.isascii()
    assert text == snapshot


def test_comparison_at_80_columns(snapshot: SnapshotAssertion) -> None:
    runs = [ledgers.demo(), ledgers.healthy()]
    assert compare_terminal(runs, width=80, color=False) == snapshot


def test_comparison_of_five_runs_fits(snapshot: SnapshotAssertion) -> None:
    runs = [ledgers.healthy(), ledgers.demo(), ledgers.unmeasured(), ledgers.llama()]
    text = compare_terminal([*runs, ledgers.demo()], width=80, color=False)
    assert max(map(cell_len, text.splitlines())) <= 80
    assert text == snapshot


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["utf8", "ascii"])
@pytest.mark.parametrize("name", NAMES)
def test_no_line_is_wider_than_the_screen(name: str, glyphs: Glyphs) -> None:
    ledger = ledgers.ALL[name]()
    others = [ledger] if ledger.waterfall.capacity else [ledgers.demo()]
    comparison = compare(ledgers.healthy(), *others)
    for width in (60, 61, 79, 80, 81, 109, 110, 120, 160):
        screen = msgspec.structs.replace(Screen(width), glyphs=glyphs)
        for text in (
            render_training(ledger, screen=screen),
            render_comparison(comparison, screen=screen),
        ):
            assert max(map(cell_len, text.splitlines())) <= width


def test_colour_changes_nothing_but_colour() -> None:
    plain = render_training(ledgers.demo(), screen=Screen(80, color=False))
    colored = render_training(ledgers.demo(), screen=Screen(80, color=True))
    assert "\x1b" not in plain
    assert "\x1b" in colored
    stripped = "\n".join(line.rstrip() for line in ESCAPE.sub("", colored).splitlines())
    assert stripped + "\n" == plain


def test_a_class_that_was_not_measured_has_no_number() -> None:
    text = render_training(ledgers.unmeasured())
    lines = {line.split()[0]: line for line in text.splitlines() if line.startswith("   ")}
    assert "not measured" in lines["evaluation"]
    assert "%" not in lines["evaluation"]
    assert "0 %" in lines["rework"]


def test_refused_mfu_prints_its_reason_and_no_number() -> None:
    text = render_training(ledgers.unmeasured())
    assert "MFU not printed: MFU would be 133 %: check the FLOPs" in text


def test_an_incident_that_never_resumed_says_so() -> None:
    ledger = ledgers.demo()
    last = msgspec.structs.replace(ledger.incidents[-1], resumed_at_ns=0, rank=-1)
    text = render_training(msgspec.structs.replace(ledger, incidents=(last,)))
    assert " never " in text


def test_a_resized_job_shows_its_chips_and_its_shortage() -> None:
    ledger = ledgers.demo()
    smaller = msgspec.structs.replace(ledger.attempts[1], chips=1)
    attempts = (ledger.attempts[0], smaller, ledger.attempts[2])
    text = render_training(
        msgspec.structs.replace(ledger, attempts=attempts, elastic=(0.5, 0.5556))
    )
    assert "elastic: held 50.0 % and available 55.6 % of requested chips" in text
    assert " chips " in text.split("3 attempts ─")[1].splitlines()[1]


def test_names_from_logs_cannot_steer_the_terminal() -> None:
    evil = "\x1b[2Jboom\x07\r\nnext\u202e"
    ledger = ledgers.demo()
    incidents = (msgspec.structs.replace(ledger.incidents[0], cause=evil, evidence=evil),)
    notes = (Note("warning", evil, evil, 2),)
    text = render_training(
        msgspec.structs.replace(ledger, job=evil, incidents=incidents, notes=notes)
    )
    assert not set(text) & set("\x1b\x07\r\u202e")
    assert "boom" in text


def test_rich_markup_in_names_is_text() -> None:
    text = render_training(msgspec.structs.replace(ledgers.demo(), job="[red]x[/red] :smile:"))
    assert "[red]x[/red] :smile:" in text


def test_wide_characters_count_two_cells() -> None:
    screen = Screen(80)
    assert cut("\u8bad\u7ec3\u8bad\u7ec3", 5, screen) == "\u8bad\u7ec3…"
    text = render_training(msgspec.structs.replace(ledgers.demo(), job="\u8bad\u7ec3" * 60))
    assert max(map(cell_len, text.splitlines())) <= 80


def test_clean_keeps_one_line() -> None:
    assert clean("a\tb\nc") == "a b c"


def test_bars_show_anything_above_zero() -> None:
    screen = Screen(80)
    assert bar(0.999999, 0.000001, 10, screen) == " " * 9 + "▐"
    assert bar(0.0, 0.0, 10, screen) == " " * 10
    assert bar(0.0, 1.0, 10, screen) == "█" * 10
    assert bar(0.25, 0.5, 4, Screen(80, glyphs=ASCII)) == " ## "


def test_any_unit_renders() -> None:
    losses = (
        Loss(name="missed TTFT", amount=120, factor="latency"),
        Loss(name="failed", amount=30),
    )
    waterfall = Waterfall(unit="requests", capacity=1000, useful=850, losses=losses)
    lines = [line.plain for line in waterfall_lines(waterfall, Screen(80))]
    assert [cell_len(line) <= 80 for line in lines] == [True] * 4
    assert "requests" in lines[0]
    assert "850" in lines[-1]


class _Stream(io.StringIO):
    def __init__(self, encoding: str, *, terminal: bool) -> None:
        super().__init__()
        self._encoding = encoding
        self._terminal = terminal

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding

    def isatty(self) -> bool:
        return self._terminal


@pytest.mark.parametrize(
    ("terminal", "environ", "color"),
    [
        (True, {}, True),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"NO_COLOR": ""}, True),
        (True, {"TERM": "dumb"}, False),
        (False, {}, False),
    ],
)
def test_colour_only_where_it_is_wanted(
    terminal: bool, environ: dict[str, str], color: bool
) -> None:
    stream = _Stream("utf-8", terminal=terminal)
    assert detect_screen(stream, environ).color is color
    assert detect_screen(stream, environ, color=True).color is True


@pytest.mark.parametrize(
    ("encoding", "glyphs"),
    [("utf-8", UNICODE), ("UTF-8", UNICODE), ("ascii", ASCII), ("iso-8859-1", ASCII)],
)
def test_glyphs_follow_the_encoding(encoding: str, glyphs: Glyphs) -> None:
    assert detect_screen(_Stream(encoding, terminal=False), {}).glyphs == glyphs


def test_width_is_held_within_what_can_be_read() -> None:
    stream = _Stream("utf-8", terminal=False)
    widths = [detect_screen(stream, {}, width=width).width for width in (1, 80, 1000)]
    assert widths == [60, 80, 160]
    assert detect_screen(stream, {}).width == 80
