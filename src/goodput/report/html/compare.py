"""Training runs side by side as one HTML page: which class explains the change in goodput."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Final

import msgspec

from goodput.report.changes import MICROPOINTS_PER_POINT, ClassChange, hundredths, points
from goodput.report.compare import Comparison, compare, comparison_to_json
from goodput.report.facts import run_facts
from goodput.report.html.markup import Markup, element
from goodput.report.html.parts import chart, top_bar
from goodput.report.html.shell import Embedded, page, section
from goodput.report.html.waterfall import waterfall_table
from goodput.report.units import NS_PER_S, Scale, count, percent, scale_for
from goodput.training.measure.ledger.types import Ledger

_SCRIPTS: Final = ("common.js", "compare.js")
_COLORS: Final = 6
"""Line colours in style.css; further runs begin again."""


class _Curves(msgspec.Struct, frozen=True):
    """What the charts of one run need, beside the comparison."""

    name: str
    after_s: tuple[float, ...]
    """End of each window, seconds since the start of the run."""
    useful: tuple[int, ...]
    capacity: tuple[int, ...]
    first_step: tuple[int, ...]
    median_s: tuple[float, ...]


def _curves(ledger: Ledger, name: str) -> _Curves:
    series, times = ledger.series, ledger.step_times
    ends = (start + series.width_ns - ledger.started_at_ns for start in series.starts_ns)
    return _Curves(
        name=name,
        after_s=tuple(round(end / NS_PER_S, 6) for end in ends),
        useful=series.classes.get("useful", (0,) * len(series.capacity)),
        capacity=series.capacity,
        first_step=times.first_step,
        median_s=tuple(round(median / NS_PER_S, 9) for median in times.median_ns),
    )


def comparison_page(ledgers: Sequence[Ledger], *, names: Sequence[str] = ()) -> str:
    """Return the page: self-contained and offline; the first run is the baseline.

    Args:
        ledgers: at least two.
        names: one per ledger; empty = the job names.

    Raises:
        InputError: fewer than two runs, or a run without capacity.
    """
    comparison = compare(*ledgers, names=names)
    curves = [
        _curves(ledger, run.name) for run, ledger in zip(comparison.runs, ledgers, strict=True)
    ]
    title = " and ".join(run.name for run in comparison.runs)
    facts = [f"{count(len(ledgers), 'run')}, the first is the baseline"]
    body = [
        top_bar(title, "", facts, copies="comparison"),
        element("main", *_main(comparison, ledgers)),
        element("footer", element("p", f"{comparison.schema}. This page makes no request.")),
    ]
    return page(
        title=f"Comparison: {title}",
        body=body,
        data=[
            Embedded("goodput-data", comparison_to_json(comparison)),
            Embedded("goodput-curves", msgspec.json.encode(curves)),
        ],
        scripts=_SCRIPTS,
    )


def _main(comparison: Comparison, ledgers: Sequence[Ledger]) -> Iterator[Markup]:
    yield section("Side by side", _runs(comparison), name="runs")
    for place in range(1, len(comparison.runs)):
        yield _change(comparison, place)
    yield section(
        "Over time since each start",
        element("h3", "Goodput, rolling"),
        chart("goodput", "Rolling goodput of each run over the time since its start"),
        element("h3", "Median step time"),
        chart("steptime", "Median step time of each run over its steps"),
        name="time",
    )
    tables = [
        section(run.name, _waterfall(ledger), name=f"waterfall-{place}")
        for place, (run, ledger) in enumerate(zip(comparison.runs, ledgers, strict=True))
    ]
    yield section("Waterfalls", element("div", *tables, class_="side"), name="waterfalls")
    if comparison.notes:
        items = [element("li", note) for note in comparison.notes]
        notes = element("ul", items, class_="notes")
        yield section("What limits the comparison", notes, name="notes")


def _waterfall(ledger: Ledger) -> Markup:
    return waterfall_table(ledger.waterfall, caption=f"Waterfall of {ledger.job}")


def _runs(comparison: Comparison) -> Markup:
    heads = [element("td", "")]
    for place, run in enumerate(comparison.runs):
        line = element("i", style=f"background:var(--r-{place % _COLORS})", aria_hidden="true")
        heads.append(element("th", line, run.name, scope="col", class_="num", title=run.name))
    columns = [run_facts(run) for run in comparison.runs]
    rows = [
        element(
            "tr",
            element("th", same[0].label, scope="row"),
            *(element("td", fact.value, class_="num") for fact in same),
            class_="first" if same[0].label == "goodput" else None,
        )
        for same in zip(*columns, strict=True)
    ]
    rows.insert(1, _against(comparison))
    table = element(
        "table",
        element("caption", "Facts about each run"),
        element("thead", element("tr", *heads)),
        element("tbody", rows),
        class_="runs",
    )
    return element("div", table, class_="wide")


def _against(comparison: Comparison) -> Markup:
    cells = []
    for place, change in enumerate(comparison.goodput_change_micropoints):
        value = round(Fraction(change, MICROPOINTS_PER_POINT // 100))
        text = f"{points(value)} points" if place else "baseline"
        cells.append(element("td", text, class_=f"num {_sign(value)}".strip()))
    return element("tr", element("th", "against the first", scope="row"), *cells)


def _sign(value: int) -> str:
    return "gain" if value > 0 else "drop" if value < 0 else ""


def _change(comparison: Comparison, place: int) -> Markup:
    baseline, run = comparison.runs[0], comparison.runs[place]
    total = comparison.goodput_change_micropoints[place]
    values = hundredths([one.change_micropoints[place] for one in comparison.classes], total)
    net = sum(values)
    largest = max([1, *(abs(value) for value in values)])
    scales = [scale_for("chip_ns", one.capacity_chip_ns) for one in (baseline, run)]
    before, after = (scale.label for scale in scales)
    heads = ["class", "before", "after", f"{before} before", f"{after} after", "points"]
    titles = [
        element("th", text, scope="col", class_=None if text == "class" else "num")
        for text in heads
    ]
    titles.append(element("th", "lost | gained", scope="col", class_="both-head"))
    rows = [
        _change_row(one, place, value, largest, scales)
        for one, value in zip(comparison.classes, values, strict=True)
    ]
    useful = (baseline.useful_chip_ns, run.useful_chip_ns)
    rows.append(
        element(
            "tr",
            element("th", "goodput", scope="row"),
            element("td", percent(baseline.factors.goodput), class_="num"),
            element("td", percent(run.factors.goodput), class_="num"),
            *(
                element("td", scale.number(amount), class_="num")
                for scale, amount in zip(scales, useful, strict=True)
            ),
            element("td", points(net), class_=f"num {_sign(net)}".strip()),
            element("td"),
            class_="total",
        )
    )
    table = element(
        "table",
        element("caption", f"Change of each class from {baseline.name} to {run.name}"),
        element("thead", element("tr", *titles)),
        element("tbody", rows),
        class_="changes",
    )
    title = f"{baseline.name} to {run.name}: {points(net)} points"
    lead = "positive = goodput gained by spending a smaller share on that class"
    return section(title, element("div", table, class_="wide"), name=f"change-{place}", lead=lead)


def _change_row(
    one: ClassChange, place: int, value: int, largest: int, scales: Sequence[Scale]
) -> Markup:
    known = [one.measured[run] for run in (0, place)]
    shares = [percent(one.shares[run]) for run in (0, place)]
    amounts = [
        scale.number(one.amounts[run]) for scale, run in zip(scales, (0, place), strict=True)
    ]
    texts = [share if seen else "not measured" for share, seen in zip(shares, known, strict=True)]
    texts += [amount if seen else "-" for amount, seen in zip(amounts, known, strict=True)]
    cells = [element("td", text, class_="num") for text in texts]
    width = abs(value) / largest * 50
    left = 50 - width if value < 0 else 50
    style = f"left:{left:.2f}%;width:{width:.2f}%"
    bar = element("i", style=style, class_=_sign(value), aria_hidden="true") if value else ""
    return element(
        "tr",
        element("th", element("small", one.factor), one.name, scope="row"),
        *cells,
        element("td", points(value), class_=f"num {_sign(value)}".strip()),
        element("td", bar, class_="both"),
        class_=None if value or any(one.amounts) else "none",
    )
