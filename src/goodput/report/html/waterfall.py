"""Any waterfall as an accessible HTML table whose bars step down from capacity to useful.

Knows no pillar: a class is coloured by its name where style.css knows it, else by its factor.
"""

import re
from collections.abc import Iterator

from goodput.core.waterfall import Waterfall
from goodput.report.html.markup import Markup, element
from goodput.report.rows import Row, waterfall_rows
from goodput.report.units import Scale, percent, scale_for


def waterfall_table(waterfall: Waterfall, *, caption: str) -> Markup:
    """Return the chart; it reads as a table for a screen reader and prints without scripts.

    Args:
        waterfall: any unit.
        caption: says what the table shows; read aloud, not shown.
    """
    rows = waterfall_rows(waterfall)
    factors = list(dict.fromkeys(row.factor for row in rows if row.factor))
    scale = scale_for(waterfall.unit, waterfall.capacity)
    titles = [
        element("th", "", scope="col", class_="factor", aria_label="factor"),
        element("th", "class", scope="col"),
        element("th", "", scope="col", class_="bar", aria_label="bar"),
        element("th", "share", scope="col", class_="num"),
        element("th", scale.label, scope="col", class_="num"),
        element("th", "how it is known", scope="col", class_="how"),
    ]
    return element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *titles)),
        element("tbody", _body(rows, factors, scale)),
        class_="waterfall",
    )


def color_of(name: str, *, place: int = 0) -> str:
    """Return the CSS colour of a class: its own, or one by the place of its factor."""
    return f"var(--c-{slug(name)}, var(--f-{place % 5}))"


def slug(name: str) -> str:
    """Return a name that is safe inside a CSS identifier."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "other"


def _body(rows: tuple[Row, ...], factors: list[str], scale: Scale) -> Iterator[Markup]:
    seen = ""
    for row in rows:
        place = factors.index(row.factor) if row.factor else 0
        yield _row(row, scale, color_of(row.name, place=place), first=row.factor != seen)
        seen = row.factor
        for part in row.parts:
            yield element(
                "tr",
                element("td", class_="factor"),
                element("th", part.name, scope="row"),
                element("td", class_="bar"),
                element("td", percent(part.share), class_="num"),
                element("td", scale.number(part.amount), class_="num"),
                element("td", class_="how"),
                class_="part",
            )


def _row(row: Row, scale: Scale, color: str, *, first: bool) -> Markup:
    quiet = row.kind == "loss" and not row.amount
    kind = f"{row.kind} none" if quiet else row.kind
    if row.measured:
        numbers = [
            element("td", percent(row.share), class_="num"),
            element("td", scale.number(row.amount), class_="num"),
        ]
    else:
        numbers = [element("td", "not measured", class_="num missing", colspan=2)]
    return element(
        "tr",
        element("td", row.factor if first else "", class_="factor"),
        element("th", row.name, scope="row"),
        element("td", _bar(row, color), class_="bar"),
        *numbers,
        element("td", row.provenance if row.measured else "", class_="how"),
        class_=f"{kind} starts" if first and row.kind != "capacity" else kind,
        title=row.evidence or None,
    )


def _bar(row: Row, color: str) -> Markup:
    if not row.amount and row.kind != "capacity":
        return Markup("")
    left, width = row.start * 100, row.share * 100
    position = f"left:{left:.3f}%;width:{width:.3f}%;background:{color}"
    return element("i", style=position, aria_hidden="true")
