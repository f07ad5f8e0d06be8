"""A training ledger as one HTML page: what the goodput is, where the rest went, when and why."""

from collections.abc import Iterator, Sequence
from typing import Final

from goodput.report.html.embed import candidates
from goodput.report.html.markup import Markup, element
from goodput.report.html.parts import chart, figure, top_bar
from goodput.report.html.shell import Embedded, page, section
from goodput.report.html.tables import (
    attempts_section,
    causes_table,
    definitions_table,
    incidents_section,
    notes_section,
    ranks_section,
)
from goodput.report.html.waterfall import waterfall_table
from goodput.report.units import count, duration, percent, period, scale_for
from goodput.training.measure.ledger.types import Ledger

PAGE_LIMIT_BYTES: Final = 1_500_000
_SCRIPTS: Final = ("common.js", "clock.js", "bands.js", "curves.js", "training.js")


def training_page(ledger: Ledger) -> str:
    """Return the page: self-contained, offline, under 1.5 MB whatever the size of the ledger.

    Args:
        ledger: any training ledger; what does not fit is left out and a note says so.
    """
    html = ""
    for shown, data in candidates(ledger):
        html = _page(ledger, shown, data)
        if len(html.encode()) < PAGE_LIMIT_BYTES:
            break
    return html


def _page(whole: Ledger, shown: Ledger, data: bytes) -> str:
    body = [
        top_bar(whole.job, whole.state, list(_facts(whole)), copies="ledger"),
        element("main", *_main(shown, whole)),
        _footer(shown),
    ]
    title = f"{whole.job}: goodput {percent(whole.factors.goodput)}"
    embedded = [Embedded("goodput-data", data)]
    return page(title=title, body=body, data=embedded, scripts=_SCRIPTS)


def _facts(ledger: Ledger) -> Iterator[str]:
    yield period(ledger.started_at_ns, ledger.ended_at_ns)
    yield duration(ledger.ended_at_ns - ledger.started_at_ns)
    yield count(ledger.chips, "chip")
    yield count(ledger.world, "rank")
    yield count(len(ledger.attempts), "attempt")
    if ledger.elastic is not None:
        held, available = ledger.elastic
        yield f"elastic: held {percent(held)}, available {percent(available)} of requested"


def _main(ledger: Ledger, whole: Ledger) -> Iterator[Markup]:
    yield _hero(whole)
    capacity = ledger.waterfall.capacity
    scale = scale_for(ledger.waterfall.unit, capacity)
    lead = f"excluded from capacity: {scale.text(ledger.excluded)}" if ledger.excluded else ""
    table = waterfall_table(ledger.waterfall, caption="Capacity, each loss, and what was useful")
    waterfall = section(f"Where {scale.text(capacity)} went", table, name="waterfall", lead=lead)
    yield element(
        "div",
        waterfall,
        element("aside", _steps(ledger), definitions_table(ledger)),
        class_="split",
    )
    if ledger.timeline or ledger.series.starts_ns:
        yield _over_time(ledger)
    if whole.incidents:
        yield incidents_section(ledger, causes_table(whole.incidents), len(whole.incidents))
    if len(whole.attempts) > 1:
        yield attempts_section(ledger, len(whole.attempts))
    if ledger.ranks:
        yield ranks_section(ledger, len(whole.ranks))
    if ledger.notes:
        yield notes_section(ledger.notes)


def _hero(ledger: Ledger) -> Markup:
    factors, saved = ledger.factors, ledger.saved
    some = bool(ledger.waterfall.capacity)
    saved_text = "not known" if saved.goodput_fraction is None else percent(saved.goodput_fraction)
    why = (
        "survives a fault now"
        if saved.goodput_fraction is not None
        else "no committed checkpoint seen"
    )
    big = element(
        "dl",
        figure(
            "goodput",
            percent(factors.goodput) if some else "no chip-time",
            "executed: kept steps at their ideal time",
            kind="big",
        ),
        figure("saved", saved_text, why),
        class_="headline",
    )
    product = element(
        "dl",
        _factor("SG", "scheduling", factors.scheduling, "time with chips / all time"),
        _factor("RG", "runtime", factors.runtime, "time of kept steps / time with chips"),
        _factor("PG", "program", factors.program, "ideal time / time of kept steps"),
        class_="product",
        aria_label="Goodput is SG times RG times PG",
    )
    return element("div", big, product, class_="hero")


def _factor(short: str, name: str, value: float, meaning: str) -> Markup:
    meter = element("i", style=f"width:{min(1.0, max(0.0, value)) * 100:.2f}%", aria_hidden="true")
    return element(
        "div",
        element("dt", element("abbr", short, title=meaning), f" {name}"),
        element(
            "dd",
            element("b", percent(value)),
            element("span", meter, class_="meter"),
            element("span", meaning),
        ),
        class_=f"figure factor-{short.lower()}",
    )


def _steps(ledger: Ledger) -> Markup:
    steps = ledger.steps
    rows: list[tuple[str, str, str]] = [
        ("kept", f"{steps.kept:,}", f"last step {steps.last_step:,}" if steps.kept else ""),
        ("lost", f"{steps.lost:,}", "rolled back, run again"),
        ("at risk", *_risk(ledger)),
    ]
    if steps.executed:
        rows += [
            ("ideal", duration(steps.ideal_step_ns), steps.ideal_source),
            ("median", duration(steps.median_ns), f"p90 {duration(steps.p90_ns)}"),
            ("p99", duration(steps.p99_ns), f"longest {duration(steps.longest_ns)}"),
        ]
    rows += _mfu(ledger)
    return _facts_table("Steps", rows)


def _risk(ledger: Ledger) -> tuple[str, str]:
    if ledger.saved.persistence == "unknown":
        return "not known", "no checkpoint evidence"
    return f"{ledger.steps.at_risk:,}", "in no committed checkpoint"


def _mfu(ledger: Ledger) -> list[tuple[str, str, str]]:
    flops = ledger.flops
    if flops is None:
        return []
    if flops.mfu is None:
        return [("MFU", "not printed", flops.refused or "peak or FLOPs per step not known")]
    chip = " ".join(part for part in (flops.chip, flops.dtype) if part)
    peak = f"{chip} {flops.peak_flops_per_chip:.3g} FLOP/s".strip()
    detail = f"{flops.flops_per_step:.3g} FLOPs/step {flops.source}, {peak}"
    return [("MFU", percent(flops.mfu), detail)]


def _facts_table(title: str, rows: Sequence[tuple[str, str, str]]) -> Markup:
    body = [
        element(
            "tr",
            element("th", name, scope="row"),
            element("td", value, class_="num"),
            element("td", detail, class_="how"),
        )
        for name, value, detail in rows
    ]
    table = element("table", element("caption", title), element("tbody", body), class_="facts")
    return section(title, table, name="steps")


def _over_time(ledger: Ledger) -> Markup:
    charts = []
    if ledger.timeline:
        charts.append(element("h3", "Timeline"))
        charts.append(chart("timeline", _timeline_label(ledger)))
    if ledger.series.starts_ns:
        charts.append(element("h3", "Goodput over time"))
        charts.append(
            chart(
                "goodput",
                f"Share of each class in {count(len(ledger.series.starts_ns), 'window')} of "
                f"{duration(ledger.series.width_ns)}, and goodput over a rolling window",
            )
        )
    if ledger.step_times.at_ns:
        charts.append(element("h3", "Step time"))
        charts.append(
            chart(
                "steptime", "p10, median, p90 and longest step time of the lead rank over the run"
            )
        )
    without = element("noscript", element("p", "The charts need scripts; the tables do not."))
    return section("Over time", without, _zoom_bar(), *charts, name="time")


def _timeline_label(ledger: Ledger) -> str:
    bands = sum(len(track.bands) for track in ledger.timeline)
    return (
        f"Timeline with {count(len(ledger.timeline), 'track')} and {count(bands, 'band')}; "
        f"{count(len(ledger.incidents), 'incident')} marked"
    )


def _zoom_bar() -> Markup:
    keys = [
        ("zoom-in", "+", "Zoom in (+)"),
        ("zoom-out", "\u2212", "Zoom out (-)"),
        ("pan-left", "←", "Earlier (left arrow)"),
        ("pan-right", "→", "Later (right arrow)"),
        ("zoom-reset", "Whole run", "Show the whole run (0)"),
    ]
    buttons = [
        element("button", text, type="button", id=f"b-{name}", title=label, aria_label=label)
        for name, text, label in keys
    ]
    hint = "drag to zoom, Ctrl + wheel, or click a chart and use the wheel and + - ← → 0"
    return element(
        "div",
        *buttons,
        element("output", id="span", aria_live="polite"),
        element("span", hint, class_="hint"),
        class_="zoom",
        role="toolbar",
        aria_label="Zoom of the charts over time",
    )


def _footer(ledger: Ledger) -> Markup:
    sources = [element("li", source) for source in ledger.sources]
    return element(
        "footer",
        element(
            "details",
            element("summary", f"Read from {count(len(ledger.sources), 'file')}"),
            element("ul", sources),
        ),
        element("p", f"{ledger.schema}. Times are UTC. This page makes no request."),
    )
