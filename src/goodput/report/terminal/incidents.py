"""Incidents and attempts of a job as terminal tables."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from rich.text import Text

from goodput.report.terminal.screen import Screen, heading
from goodput.report.terminal.tables import Column, table
from goodput.report.units import Scale, count, duration, elapsed, percent, scale_for

if TYPE_CHECKING:
    from goodput.training.measure.ledger.types import Incident, Ledger

MAX_ROWS: Final = 10
"""Rows of a table before it is summed up; the HTML report and --json have all."""


def incident_lines(ledger: "Ledger", screen: Screen) -> Iterator[Text]:
    """Yield the incidents table: all of a few, or causes and the costliest of many."""
    incidents = ledger.incidents
    cost = sum(incident.cost_chip_ns for incident in incidents)
    largest = max(incident.cost_chip_ns for incident in incidents)
    scale = scale_for("chip_ns", largest)
    planned = sum(incident.planned for incident in incidents)
    title = f"{count(len(incidents), 'incident')}, {_total(cost)}"
    yield heading(f"{title}, {planned} planned" if planned else title, screen)
    if len(incidents) <= MAX_ROWS:
        yield from _incident_table(ledger, incidents, scale, screen)
        return
    yield from _cause_table(incidents, cost, screen)
    yield Text("")
    yield heading(f"The {MAX_ROWS} costliest", screen)
    worst = sorted(incidents, key=lambda incident: -incident.cost_chip_ns)[:MAX_ROWS]
    yield from _incident_table(ledger, worst, scale, screen)


def _total(amount: int) -> str:
    return scale_for("chip_ns", amount).text(amount)


def _incident_table(
    ledger: "Ledger", incidents: "Sequence[Incident]", scale: Scale, screen: Screen
) -> list[Text]:
    wide = screen.width >= 110
    columns = [
        Column("#", right=True),
        Column("when", right=True),
        Column("cause", grows=not wide, most=32),
        Column("rank", right=True),
        Column("detect", right=True),
        Column("recover", right=True),
        Column("restart", right=True),
        Column("rework", right=True),
        Column(scale.label, right=True),
    ]
    if wide:
        columns.append(Column("evidence", grows=True))
    rows = [
        [
            str(incident.number),
            elapsed(incident.at_ns - ledger.started_at_ns),
            incident.cause + (" (planned)" if incident.planned else ""),
            "-" if incident.rank < 0 else str(incident.rank),
            _short(incident.detection_ns),
            _short(incident.recovery_ns),
            _short(incident.restart_ns) if incident.resumed_at_ns else "never",
            _short(incident.rework_ns),
            scale.number(incident.cost_chip_ns),
            incident.evidence,
        ][: len(columns)]
        for incident in incidents
    ]
    return table(columns, rows, screen, gap=2 if wide else 1)


def _short(duration_ns: int) -> str:
    """Return a duration in at most six cells: the table has four of them on a line."""
    seconds = duration_ns / 1e9
    if seconds < 99.95:
        return duration(duration_ns) if seconds < 1 else f"{seconds:.1f} s"
    if seconds < 5400:
        return f"{seconds / 60:.1f} m" if seconds < 5970 else f"{seconds / 60:.0f} m"
    return f"{seconds / 3600:.1f} h"


def _cause_table(incidents: "Sequence[Incident]", cost: int, screen: Screen) -> list[Text]:
    groups: dict[str, list[Incident]] = defaultdict(list)
    for incident in incidents:
        groups[incident.cause].append(incident)
    ordered = sorted(groups.items(), key=lambda item: -_cost(item[1]))
    scale = scale_for("chip_ns", _cost(ordered[0][1]))
    rows = [_cause_row(cause, group, cost, scale) for cause, group in ordered[:MAX_ROWS]]
    rest = [incident for _, group in ordered[MAX_ROWS:] for incident in group]
    if rest:
        rows.append(_cause_row(f"{len(ordered) - MAX_ROWS} other causes", rest, cost, scale))
    columns = [
        Column("cause", grows=True),
        Column("count", right=True),
        Column("of cost", right=True),
        Column(scale.label, right=True),
        Column("detect", right=True),
        Column("recover", right=True),
        Column("rework", right=True),
    ]
    return table(columns, rows, screen)


def _cost(group: "Sequence[Incident]") -> int:
    return sum(incident.cost_chip_ns for incident in group)


def _cause_row(cause: str, group: "Sequence[Incident]", cost: int, scale: Scale) -> list[str]:
    size = len(group)
    return [
        cause,
        f"{size:,}",
        percent(_cost(group) / max(cost, 1)),
        scale.number(_cost(group)),
        _short(sum(incident.detection_ns for incident in group) // size),
        _short(sum(incident.recovery_ns for incident in group) // size),
        _short(sum(incident.rework_ns for incident in group) // size),
    ]


def attempt_lines(ledger: "Ledger", screen: Screen) -> Iterator[Text]:
    """Yield the attempts table, the last ones when there are many."""
    attempts = ledger.attempts
    shown = attempts[-MAX_ROWS:]
    title = count(len(attempts), "attempt")
    yield heading(title if len(shown) == len(attempts) else f"{title}, the last {MAX_ROWS}", screen)
    resized = len({attempt.chips for attempt in attempts}) > 1
    columns = [
        Column("attempt", most=14),
        Column("start", right=True),
        Column("lasted", right=True),
        *([Column("chips", right=True)] if resized else []),
        Column("from step", right=True),
        Column("kept", right=True),
        Column("lost", right=True),
        Column("goodput", right=True),
        Column("ended", grows=True),
    ]
    rows = [
        [
            attempt.key,
            elapsed(attempt.started_at_ns - ledger.started_at_ns),
            duration(attempt.ended_at_ns - attempt.started_at_ns),
            *([f"{attempt.chips:,}"] if resized else []),
            "-" if attempt.next_step < 0 else f"{attempt.next_step:,}",
            f"{attempt.kept_steps:,}",
            f"{attempt.lost_steps:,}",
            percent(attempt.waterfall.goodput_fraction),
            f"{attempt.outcome}: {attempt.cause}" if attempt.cause else attempt.outcome,
        ]
        for attempt in shown
    ]
    yield from table(columns, rows, screen, gap=2 if screen.width >= 110 else 1)
