"""Pieces that pages share: the top bar with its buttons, sortable tables, chart frames, figures."""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from goodput.report.html.markup import Markup, element

MAX_TEXT: Final = 160
"""Characters of a cell; the sheet cuts it to the column, the embedded JSON has it whole."""
MAX_TITLE: Final = 600


class Cell(msgspec.Struct, frozen=True):
    """One cell of a sortable table: what is shown and by what it sorts."""

    text: str
    sort: float | int | None = None
    """None = sorts by the text."""
    title: str = ""


class Head(msgspec.Struct, frozen=True):
    """One column of a sortable table."""

    title: str
    number: bool = False
    hint: str = ""


def top_bar(title: str, state: str, facts: Sequence[str], *, copies: str) -> Markup:
    """Return the name of what is shown, its state, facts about it and the page's buttons.

    Args:
        title: the job or the comparison.
        state: one word; empty = none.
        facts: shown in one line.
        copies: what the copy and download buttons hold, e.g. `ledger`.
    """
    name = [element("h1", title, title=title)]
    if state:
        name.append(element("span", state, class_=f"state state-{state}"))
    buttons = element(
        "div",
        _button("copy", "Copy JSON", f"Copy the {copies} as JSON"),
        _button("download", "Download", f"Download the {copies} as a JSON file"),
        _button("theme", "Theme: auto", "Change between automatic, light and dark"),
        class_="buttons",
    )
    return element(
        "header",
        element("div", *name, class_="name"),
        buttons,
        element("p", [element("span", fact) for fact in facts], class_="facts"),
        element("p", class_="said", id="said", role="status", aria_live="polite"),
        class_="top",
    )


def _button(name: str, text: str, label: str) -> Markup:
    return element("button", text, type="button", id=f"b-{name}", title=label)


def figure(label: str, value: str, detail: str = "", *, kind: str = "") -> Markup:
    """Return one number with its name and a line about it."""
    return element(
        "div",
        element("dt", label),
        element("dd", element("b", value), element("span", detail)),
        class_=f"figure {kind}".strip(),
    )


def sortable(
    heads: Sequence[Head],
    rows: Iterable[Sequence[Cell]],
    *,
    caption: str,
    name: str,
    actions: Sequence[dict[str, str]] = (),
) -> Markup:
    """Return a table whose columns sort on a click or the Enter key.

    Args:
        heads: the columns.
        rows: one cell per column.
        caption: says what the table shows; read aloud, not shown.
        name: id of the table.
        actions: data attributes of each row, e.g. the span that a click shows on the timeline.
    """
    titles = [
        element(
            "th",
            element("button", head.title, type="button", title=head.hint or None),
            scope="col",
            class_="num" if head.number else None,
        )
        for head in heads
    ]
    body = []
    for place, row in enumerate(rows):
        extra = actions[place] if place < len(actions) else {}
        cells = [_cell(cell, head) for cell, head in zip(row, heads, strict=True)]
        body.append(element("tr", *cells, **extra))
    table = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *titles)),
        element("tbody", body),
        class_="sortable",
        id=f"t-{name}",
    )
    return element("div", table, class_="scroll", tabindex="0", role="region", aria_label=caption)


def _cell(cell: Cell, head: Head) -> Markup:
    return element(
        "td",
        brief(cell.text, MAX_TEXT),
        class_="num" if head.number else None,
        data_sort=None if cell.sort is None else repr(cell.sort),
        title=brief(cell.title, MAX_TITLE) or None,
    )


def brief(text: str, most: int) -> str:
    """Return text of at most `most` characters, ended by an ellipsis when it was longer."""
    return text if len(text) <= most else text[: most - 1] + "…"


def chart(name: str, label: str) -> Markup:
    """Return the frame of a chart that a script fills: legend, plot, and a table of its numbers.

    Args:
        name: the scripts look for `c-<name>`.
        label: what the chart shows, in words, for a reader who cannot see it.
    """
    return element(
        "figure",
        element("div", class_="legend", aria_hidden="true"),
        element("div", class_="plot", id=f"c-{name}", role="img", aria_label=label, tabindex="0"),
        element("details", element("summary", "Show as a table"), class_="numbers"),
        class_=f"chart {name}",
    )
