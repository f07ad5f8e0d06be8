"""A fleet ledger as terminal text."""

from collections.abc import Iterator
from textwrap import wrap
from typing import TYPE_CHECKING, Final

from rich.text import Text

from goodput.report.fleet.words import (
    TITLES,
    bad_text,
    figures,
    job_facts,
    unkept_title,
    useful_text,
    weighty,
)
from goodput.report.terminal.screen import Screen, clean, cut, heading, to_text
from goodput.report.terminal.tables import Column, table
from goodput.report.terminal.waterfall import waterfall_lines
from goodput.report.units import period, scale_for, share

if TYPE_CHECKING:
    from rich.console import RenderableType

    from goodput.cluster.measure.fleet.types import Dimension, FleetLedger, Group
    from goodput.report.units import Scale

MAX_GROUPS: Final = 8
MAX_WEEKS: Final = 12
MAX_LINES: Final = 6
_LABEL_WIDTH: Final = 20
_VALUE_WIDTH: Final = 14


def render_fleet(ledger: "FleetLedger", *, screen: Screen | None = None) -> str:
    """Return the whole report as text.

    Args:
        ledger: any fleet ledger.
        screen: width, colour and glyphs; None = 80 columns, plain, UTF-8.

    Returns:
        Lines no wider than the screen, ending in a newline.
    """
    shown = screen or Screen()
    return to_text(_parts(ledger, shown), shown)


def _parts(ledger: "FleetLedger", screen: Screen) -> "Iterator[RenderableType]":
    yield Text(cut(ledger.name, screen.width, screen), style="bold")
    yield Text(period(ledger.begin_ns, ledger.end_ns), style="dim")
    yield Text(f" {screen.glyphs.dot} ".join(job_facts(ledger)), style="dim")
    yield ""
    yield from _figures(ledger, screen)
    capacity = ledger.waterfall.capacity
    scale = scale_for("chip_ns", capacity)
    yield ""
    yield heading(f"Where {scale.text(capacity)} went", screen)
    yield from waterfall_lines(ledger.waterfall, screen)
    yield from (Text(line, style="dim") for line in wrap(useful_text(ledger), screen.width))
    for dimension in filter(weighty, ledger.dimensions):
        yield ""
        yield heading(TITLES[dimension.name], screen)
        yield from _groups(ledger, dimension, scale, screen)
    yield ""
    yield from _trust(ledger, screen)


def _figures(ledger: "FleetLedger", screen: Screen) -> Iterator[Text]:
    for label, value, because in figures(ledger):
        room = screen.width - _LABEL_WIDTH - _VALUE_WIDTH - 1
        lines = wrap(because, room) or [""]
        line = Text(f"{label:<{_LABEL_WIDTH}}", style="bold")
        line.append(f"{value:<{_VALUE_WIDTH}} ", style="bold green" if value[0].isdigit() else "")
        line.append(lines[0], style="dim")
        yield line
        for more in lines[1:]:
            yield Text(" " * (_LABEL_WIDTH + _VALUE_WIDTH + 1) + more, style="dim")


def _groups(
    ledger: "FleetLedger", dimension: "Dimension", scale: "Scale", screen: Screen
) -> list[Text]:
    columns = [
        Column("", grows=True, most=28),
        Column("jobs", right=True),
        Column(f"run {scale.label}", right=True),
        Column("of run", right=True),
        Column(unkept_title(ledger), right=True),
        Column("failed", right=True),
        Column("queue", right=True),
    ]
    return table(columns, _rows(ledger, dimension, scale), screen, gap=2)


def _rows(
    ledger: "FleetLedger", dimension: "Dimension", scale: "Scale"
) -> Iterator[tuple[str, ...]]:
    groups = dimension.groups
    if dimension.name == "week" and len(groups) > MAX_WEEKS:
        groups = groups[-MAX_WEEKS:]
    most = len(groups) if dimension.name in {"week", "size", "state"} else MAX_GROUPS
    for group in groups[:most]:
        yield _row(ledger, group, scale)
    hidden = len(dimension.groups) + max(0, dimension.others - 1) - min(most, len(groups))
    if hidden:
        yield (f"and {hidden:,} more: --json", "", "", "", "", "", "")


def _row(ledger: "FleetLedger", group: "Group", scale: "Scale") -> tuple[str, ...]:
    known = ledger.scheduling.value is not None
    return (
        clean(group.key),
        f"{group.jobs:,}",
        scale.number(group.run),
        share(group.run, ledger.run),
        share(group.not_kept, group.run),
        share(group.failed, group.run),
        share(group.queue, group.queue + group.run) if known else "-",
    )


def _trust(ledger: "FleetLedger", screen: Screen) -> Iterator[Text]:
    yield heading("How far to trust this", screen)
    said = [("left out", text, number) for text, number in bad_text(ledger)]
    said += [
        (note.level, note.text + (f" ({note.where})" if note.where else ""), note.count)
        for note in sorted(ledger.notes, key=lambda note: note.level != "warning")
    ]
    for level, text, number in said[: 2 * MAX_LINES]:
        times = f" {screen.glyphs.times}{number:,}" if number > 1 else ""
        for line in wrap(f"{level}: {clean(text)}{times}", screen.width, subsequent_indent="  "):
            yield Text(line)
    if len(said) > 2 * MAX_LINES:
        yield Text(f"and {len(said) - 2 * MAX_LINES} more: see --json", style="dim")
