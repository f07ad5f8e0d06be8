"""A fleet ledger as one HTML page: figures, the waterfall, a sortable table for each grouping."""

from collections.abc import Iterator
from typing import Final

import msgspec

from goodput.cluster.measure.fleet.types import Dimension, FleetLedger, Group
from goodput.report.fleet.words import (
    TITLES,
    bad_text,
    figures,
    job_facts,
    unkept_title,
    useful_text,
    weighty,
)
from goodput.report.html.markup import Markup, element
from goodput.report.html.parts import Cell, Head, figure, sortable, top_bar
from goodput.report.html.shell import Embedded, page, section
from goodput.report.html.waterfall import waterfall_table
from goodput.report.units import Scale, count, period, scale_for, share

_SCRIPTS: Final = ("common.js",)


def fleet_page(ledger: FleetLedger) -> str:
    """Return the page: self-contained and offline; its tables sort."""
    facts = [period(ledger.begin_ns, ledger.end_ns), *job_facts(ledger)]
    body = [
        top_bar(ledger.name, "", facts, copies="fleet ledger"),
        element("main", *_main(ledger)),
        _footer(ledger),
    ]
    data = [Embedded("goodput-data", msgspec.json.encode(ledger))]
    return page(title=f"{ledger.name}: fleet", body=body, data=data, scripts=_SCRIPTS)


def _main(ledger: FleetLedger) -> Iterator[Markup]:
    boxes = [
        figure(*one, kind="big" if not place else "") for place, one in enumerate(figures(ledger))
    ]
    yield element("div", element("dl", boxes, class_="headline"), class_="hero")
    scale = scale_for("chip_ns", ledger.waterfall.capacity)
    chart = waterfall_table(ledger.waterfall, caption="Capacity, each loss, and what was useful")
    title = f"Where {scale.text(ledger.waterfall.capacity)} went"
    yield section(title, chart, name="waterfall", lead=useful_text(ledger))
    for dimension in filter(weighty, ledger.dimensions):
        yield _groups(ledger, dimension, scale)
    yield _trust(ledger)


def _groups(ledger: FleetLedger, dimension: Dimension, scale: Scale) -> Markup:
    heads = [
        Head(dimension.name),
        Head("jobs", number=True),
        Head(f"run {scale.label}", number=True, hint="time with chips"),
        Head("of run", number=True, hint="share of all run time"),
        Head(
            unkept_title(ledger),
            number=True,
            hint="share of its run that the table cannot show as useful",
        ),
        Head("failed", number=True, hint="share of its run in jobs that failed"),
        Head("queue", number=True, hint="queue / (queue + run), at the GPUs asked for"),
    ]
    title = TITLES[dimension.name]
    rows = [_row(ledger, group, place, scale) for place, group in enumerate(dimension.groups)]
    return section(
        title,
        sortable(heads, rows, caption=title, name=dimension.name),
        name=f"by-{dimension.name}",
    )


def _row(ledger: FleetLedger, group: Group, place: int, scale: Scale) -> list[Cell]:
    by_place = group.key[:1].isdigit()
    waits = group.queue + group.run
    known = ledger.scheduling.value is not None
    return [
        Cell(group.key, place if by_place else None, title=group.key),
        Cell(f"{group.jobs:,}", group.jobs),
        Cell(scale.number(group.run), group.run),
        _share(group.run, ledger.run),
        _share(group.not_kept, group.run),
        _share(group.failed, group.run),
        _share(group.queue, waits) if known else Cell("-", -1),
    ]


def _share(amount: int, whole: int) -> Cell:
    return Cell(share(amount, whole), amount / whole if whole else 0.0)


def _trust(ledger: FleetLedger) -> Markup:
    said = [("left out", text, number) for text, number in bad_text(ledger)]
    said += [
        (note.level, note.text + (f" ({note.where})" if note.where else ""), note.count)
        for note in ledger.notes
    ]
    lines = [
        element("li", f"{level}: {text}" + (f" \u00d7{number:,}" if number > 1 else ""))
        for level, text, number in said
    ]
    return section("How far to trust this", element("ul", lines, class_="notes"), name="notes")


def _footer(ledger: FleetLedger) -> Markup:
    files = [element("li", source) for source in ledger.sources]
    summary = element("summary", f"Read from {count(len(ledger.sources), 'job table')}")
    return element(
        "footer",
        element("details", summary, element("ul", files)),
        element("p", f"{ledger.schema}. Times are UTC. This page makes no request."),
    )
