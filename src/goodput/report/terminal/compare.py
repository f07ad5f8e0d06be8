"""Runs side by side as terminal text: the facts of each, and which class explains the change."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len
from rich.text import Text

from goodput.report.changes import MICROPOINTS_PER_POINT, ClassChange, hundredths, points
from goodput.report.facts import run_facts
from goodput.report.terminal.screen import Screen, clean, cut, heading, to_text
from goodput.report.terminal.tables import Column, table
from goodput.report.units import percent

if TYPE_CHECKING:
    from rich.console import RenderableType

    from goodput.report.compare import Comparison, RunSummary

_NAME: Final = 15
_SHARE: Final = 12
_POINTS: Final = 8


def render_comparison(comparison: "Comparison", *, screen: Screen | None = None) -> str:
    """Return the comparison as text; the first run is the baseline.

    Args:
        comparison: two or more runs.
        screen: width, colour and glyphs; None = 80 columns, plain, UTF-8.
    """
    shown = screen or Screen()
    return to_text(_parts(comparison, shown), shown)


def _parts(comparison: "Comparison", screen: Screen) -> "Iterator[RenderableType]":
    yield from _runs(comparison, screen)
    for place in range(1, len(comparison.runs)):
        yield ""
        yield from _change(comparison, place, screen)
    if comparison.notes:
        yield ""
        yield heading("What limits the comparison", screen)
        for note in comparison.notes:
            yield Text(clean(note))


def _runs(comparison: "Comparison", screen: Screen) -> Iterator[Text]:
    """Yield the facts of each run; as many runs per block as fit beside the labels."""
    per_block = max(2, (screen.width - 18) // 14)
    runs = comparison.runs
    for first in range(0, len(runs), per_block):
        block = runs[first : first + per_block]
        numbers = range(first, first + len(block))
        yield from _run_block(comparison, block, list(numbers), screen)


def _run_block(
    comparison: "Comparison", block: "Sequence[RunSummary]", numbers: list[int], screen: Screen
) -> Iterator[Text]:
    width = max(12, (screen.width - 18 - 2 * len(block)) // len(block))
    columns = [Column("", most=17)]
    columns += [Column(cut(run.name, min(width, 28), screen), right=True) for run in block]
    changes = [comparison.goodput_change_micropoints[number] for number in numbers]
    per = MICROPOINTS_PER_POINT // 100
    facts = zip(*(run_facts(run) for run in block), strict=True)
    rows = [[same[0].label, *(fact.value for fact in same)] for same in facts]
    against = [
        "baseline" if number == 0 else f"{_points(round(Fraction(change, per)), screen)} points"
        for number, change in zip(numbers, changes, strict=True)
    ]
    rows.insert(1, ["against first", *against])
    yield from table(columns, rows, screen)


def _points(value: int, screen: Screen) -> str:
    return points(value, minus=screen.glyphs.minus)


def _change(comparison: "Comparison", place: int, screen: Screen) -> Iterator[Text]:
    baseline, run = comparison.runs[0], comparison.runs[place]
    total = comparison.goodput_change_micropoints[place]
    changes = [change.change_micropoints[place] for change in comparison.classes]
    rounded = hundredths(changes, total)
    net = sum(rounded)
    amount = f"{_points(net, screen)} points" if net else "goodput unchanged"
    # The names give way, the figures do not.
    room = (screen.width - cell_len(amount) - 14) // 2
    title = f"{cut(baseline.name, room, screen)} to {cut(run.name, room, screen)}: {amount}"
    yield heading(title, screen)
    yield _change_header(screen)
    largest = max([1, *(abs(value) for value in rounded)])
    for change, value in zip(comparison.classes, rounded, strict=True):
        yield _change_line(change, place, value, largest, screen)
    line = Text(no_wrap=True, style="bold")
    useful = (baseline.factors.goodput, run.factors.goodput)
    line.append(f"   {'goodput':<{_NAME}}")
    line.append("".join(percent(share).rjust(_SHARE + 1) for share in useful))
    line.append(_points(net, screen).rjust(_POINTS + 1), style=_sign_style(net))
    yield line


def _change_header(screen: Screen) -> Text:
    cells = "".join(title.rjust(_SHARE + 1) for title in ("before", "after"))
    text = f"   {'class':<{_NAME}}{cells}{'points'.rjust(_POINTS + 1)}"
    half = _half_width(screen)
    sides = f"{'lost'.rjust(half)} {'gained'}" if half >= 6 else ""
    return Text(f"{text}  {sides}", style="dim", no_wrap=True)


def _half_width(screen: Screen) -> int:
    return (screen.width - 3 - _NAME - 2 * (_SHARE + 1) - _POINTS - 1 - 2 - 1) // 2


def _change_line(change: ClassChange, place: int, value: int, largest: int, screen: Screen) -> Text:
    text = Text(no_wrap=True, overflow="crop", style="" if value else "dim")
    text.append(f"{change.factor[:2]:<3}")
    name = cut(change.name, _NAME, screen)
    text.append(name + " " * (_NAME - cell_len(name)))
    for run in (0, place):
        shown = percent(change.shares[run]) if change.measured[run] else "not measured"
        text.append(shown.rjust(_SHARE + 1))
    text.append(_points(value, screen).rjust(_POINTS + 1), style=_sign_style(value))
    text.append("  " + _diverging(value, largest, screen), style=_sign_style(value))
    return text


def _sign_style(value: int) -> str:
    return "green" if value > 0 else "red" if value < 0 else "dim"


def _diverging(value: int, largest: int, screen: Screen) -> str:
    """Return a bar to the right for a gain, to the left for a loss."""
    half = _half_width(screen)
    cells = max(1, round(abs(value) / largest * half)) if value else 0
    fill = screen.glyphs.full * cells
    left = fill.rjust(half) if value < 0 else " " * half
    return f"{left}|{fill if value > 0 else ''}".rstrip()
