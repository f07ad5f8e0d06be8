"""Any waterfall as lines of a terminal: name, stepping bar, share, amount, provenance.

Knows no pillar: colours follow the order in which factors appear.
"""

from collections.abc import Iterator
from typing import Final

from rich.cells import cell_len
from rich.text import Text

from goodput.core.waterfall import Waterfall
from goodput.report.rows import PartRow, Row, waterfall_rows
from goodput.report.terminal.screen import ASCII, Screen, cut
from goodput.report.units import Scale, percent, scale_for

FACTOR_COLORS: Final = ("cyan", "yellow", "magenta", "blue", "red")
_NAME_WIDTH: Final = 15
_SHARE_WIDTH: Final = 8
_MARK_WIDTH: Final = 9


def waterfall_lines(waterfall: Waterfall, screen: Screen) -> Iterator[Text]:
    """Yield the chart: capacity on top, each loss stepping down, what is useful at the bottom.

    A class that was not measured says so in place of a number.

    Args:
        waterfall: any unit.
        screen: where it will be shown; every line fits its width.
    """
    rows = waterfall_rows(waterfall)
    factors = list(dict.fromkeys(row.factor for row in rows if row.factor))
    scale = scale_for(waterfall.unit, waterfall.capacity)
    columns = _Columns(screen, scale=scale, capacity=waterfall.capacity, has_factors=bool(factors))
    seen = ""
    for row in rows:
        color = _color(row, factors)
        shown_factor = row.factor if row.factor != seen else ""
        seen = row.factor
        yield columns.line(row, shown_factor, color)
        for part in row.parts:
            yield columns.part(part)


def _color(row: Row, factors: list[str]) -> str:
    if row.kind == "useful":
        return "green"
    if row.kind == "capacity":
        return "dim"
    place = factors.index(row.factor) if row.factor in factors else 0
    return FACTOR_COLORS[place % len(FACTOR_COLORS)]


class _Columns:
    """Widths of one chart."""

    def __init__(self, screen: Screen, *, scale: Scale, capacity: int, has_factors: bool) -> None:
        self.screen = screen
        self.scale = scale
        self.factor_width = 3 if has_factors else 0
        self.amount_width = max(7, cell_len(scale.number(capacity)))
        taken = (
            self.factor_width
            + (_NAME_WIDTH + 1)
            + (1 + _SHARE_WIDTH)
            + (1 + self.amount_width)
            + (2 + _MARK_WIDTH)
        )
        self.bar_width = screen.width - taken

    def line(self, row: Row, factor: str, color: str) -> Text:
        strong = row.kind == "useful"
        faint = row.kind == "loss" and not row.amount
        text = Text(no_wrap=True, overflow="crop", style="dim" if faint else "")
        text.append(f"{factor:<{self.factor_width}}"[: self.factor_width], style=color)
        name = cut(row.name, _NAME_WIDTH, self.screen)
        text.append(_fill(name, _NAME_WIDTH + 1), style="bold" if strong else "")
        whole = row.kind == "capacity"
        text.append(bar(row.start, row.share, self.bar_width, self.screen, whole=whole), color)
        if not row.measured:
            text.append("not measured".rjust(1 + _SHARE_WIDTH + 1 + self.amount_width))
            return text
        text.append(" " + percent(row.share).rjust(_SHARE_WIDTH), style="bold" if strong else "")
        text.append(" " + self.scale.number(row.amount).rjust(self.amount_width))
        mark = self.scale.label if whole else str(row.provenance)
        text.append("  " + cut(mark, _MARK_WIDTH, self.screen), style="" if whole else "dim")
        return text

    def part(self, part: PartRow) -> Text:
        text = Text(no_wrap=True, overflow="crop", style="dim")
        # A part has no bar of its own, so its name may use that space.
        room = _NAME_WIDTH - 1 + self.bar_width
        text.append(" " * (self.factor_width + 2))
        text.append(_fill(cut(part.name, room, self.screen), room))
        text.append(" " + percent(part.share).rjust(_SHARE_WIDTH))
        text.append(" " + self.scale.number(part.amount).rjust(self.amount_width))
        return text


def _fill(text: str, width: int) -> str:
    return text + " " * max(0, width - cell_len(text))


def bar(start: float, share: float, width: int, screen: Screen, *, whole: bool = False) -> str:
    """Return `width` cells with the span [start, start + share] filled, to half a cell.

    Anything above zero shows as at least half a cell (a whole one in ASCII).

    Args:
        start: left edge, 0-1.
        share: length, 0-1.
        width: cells for 1.0.
        screen: its glyphs.
        whole: draw the capacity fill.
    """
    halves = 1 if screen.glyphs is ASCII else 2
    size = width * halves
    first, last = round(start * size), round((start + share) * size)
    if share > 0 and last <= first:
        first = min(first, size - 1)
        last = first + 1
    glyphs = screen.glyphs
    full = glyphs.whole if whole else glyphs.full
    cells = []
    for cell in range(width):
        low, high = max(first, cell * halves), min(last, (cell + 1) * halves)
        if high - low >= halves:
            cells.append(full)
        elif high <= low:
            cells.append(" ")
        else:
            cells.append(glyphs.left if low == cell * halves else glyphs.right)
    return "".join(cells)
