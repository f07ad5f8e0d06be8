"""Tables of a terminal report: columns of known width, one line per row, cut and never wrapped."""

from collections.abc import Iterable, Sequence

import msgspec
from rich.cells import cell_len
from rich.text import Text

from goodput.report.terminal.screen import Screen, clean, cut


class Column(msgspec.Struct, frozen=True):
    """One column.

    Args:
        title: printed above it.
        right: numbers are set flush right.
        most: widest it may become; 0 = no limit of its own.
        grows: it takes what the others leave, and is cut first.
    """

    title: str
    right: bool = False
    most: int = 0
    grows: bool = False


def table(
    columns: Sequence[Column],
    rows: Iterable[Sequence[str]],
    screen: Screen,
    *,
    gap: int = 2,
) -> list[Text]:
    """Return the header and one line per row, within the screen's width.

    Args:
        columns: exactly one of them grows when the text may be longer than the screen.
        rows: one text per column.
        screen: where it will be shown.
        gap: blanks between columns.
    """
    body = [[clean(cell) for cell in row] for row in rows]
    widths = _widths(columns, body, screen.width - gap * (len(columns) - 1))
    titles = [column.title for column in columns]
    header = _line(columns, titles, widths, screen, gap)
    header.stylize("dim")
    return [header, *(_line(columns, row, widths, screen, gap) for row in body)]


def _widths(columns: Sequence[Column], body: list[list[str]], width: int) -> list[int]:
    found = []
    for place, column in enumerate(columns):
        widest = max([cell_len(column.title), *(cell_len(row[place]) for row in body)])
        found.append(min(widest, column.most) if column.most else widest)
    over = sum(found) - width
    for place, column in enumerate(columns):
        if column.grows and over > 0:
            found[place] = max(6, found[place] - over)
    return found


def _line(
    columns: Sequence[Column], row: Sequence[str], widths: list[int], screen: Screen, gap: int
) -> Text:
    cells = []
    for column, cell, width in zip(columns, row, widths, strict=True):
        shown = cut(cell, width, screen)
        space = " " * max(0, width - cell_len(shown))
        cells.append(space + shown if column.right else shown + space)
    return Text((" " * gap).join(cells), no_wrap=True, overflow="crop")
