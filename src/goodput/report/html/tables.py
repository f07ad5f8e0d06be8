"""The tables of a training page: incidents, attempts, ranks, definitions, notes."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from goodput.core.notes import Note
from goodput.report.html.markup import Markup, element
from goodput.report.html.parts import Cell, Head, sortable
from goodput.report.html.shell import section
from goodput.report.units import Scale, count, duration, elapsed, instant, percent, scale_for
from goodput.training.measure.ledger.types import Attempt, Incident, Ledger, Rank

FEW_INCIDENTS: Final = 8
"""Up to here a table by cause says nothing that the incidents do not."""
MAX_CAUSES: Final = 40


def incidents_section(ledger: Ledger, causes: Markup, total: int) -> Markup:
    """Return the incidents, sortable, each a link to its place on the timeline.

    Args:
        ledger: whose incidents are listed.
        causes: the table by cause, empty when there are few.
        total: incidents of the whole job, of which the page may list fewer.
    """
    incidents = ledger.incidents
    scale = scale_for("chip_ns", max(incident.cost_chip_ns for incident in incidents))
    heads = [
        Head("#", number=True),
        Head("when", number=True, hint="since the start of the account"),
        Head("cause"),
        Head("rank", number=True),
        Head("detection", number=True, hint="fault to noticed"),
        Head("recovery", number=True, hint="noticed to new process"),
        Head("restart", number=True, hint="new process to its first step"),
        Head("rework", number=True, hint="wall time of the steps it rolled back"),
        Head("steps", number=True, hint="steps rolled back"),
        Head(scale.label, number=True, hint="cost of all four on the chips held"),
        Head("evidence"),
    ]
    start = ledger.started_at_ns
    table = sortable(
        heads,
        [_incident(incident, scale, start) for incident in incidents],
        caption="Incidents",
        name="incidents",
        actions=[_shows(incident) for incident in incidents],
    )
    cost = sum(incident.cost_chip_ns for incident in incidents)
    planned = sum(incident.planned for incident in incidents)
    lead = f"{scale_for('chip_ns', cost).text(cost)} in all"
    lead += f", {planned:,} planned" if planned else ""
    lead += "; a click on a row shows it on the timeline" if ledger.timeline else ""
    return section(count(total, "incident"), causes, table, name="incidents", lead=lead)


def _incident(incident: Incident, scale: Scale, start_ns: int) -> list[Cell]:
    offset = incident.at_ns - start_ns
    never = not incident.resumed_at_ns
    rank = Cell("-", -1) if incident.rank < 0 else Cell(str(incident.rank), incident.rank)
    return [
        Cell(str(incident.number), incident.number),
        Cell(elapsed(offset), offset, f"{instant(incident.at_ns)} UTC"),
        Cell(incident.cause + (" (planned)" if incident.planned else ""), title=incident.cause),
        rank,
        Cell(duration(incident.detection_ns), incident.detection_ns),
        Cell(duration(incident.recovery_ns), incident.recovery_ns),
        Cell("never" if never else duration(incident.restart_ns), incident.restart_ns),
        Cell(duration(incident.rework_ns), incident.rework_ns),
        Cell(f"{incident.rework_steps:,}", incident.rework_steps),
        Cell(scale.number(incident.cost_chip_ns), incident.cost_chip_ns),
        Cell(incident.evidence or f"({incident.provenance})", title=incident.evidence),
    ]


def _shows(incident: Incident) -> dict[str, str]:
    """Return the span that the timeline shows for an incident, Unix seconds."""
    first = incident.at_ns - incident.rework_ns
    last = max(incident.resumed_at_ns, incident.noticed_at_ns, incident.at_ns)
    last += incident.restart_ns
    margin = max(1_000_000, (last - first) // 2)
    return {"data_from": f"{(first - margin) / 1e9:.6f}", "data_to": f"{(last + margin) / 1e9:.6f}"}


def causes_table(incidents: Sequence[Incident]) -> Markup:
    """Return incidents summed by cause, costliest first; nothing when there are few."""
    if len(incidents) <= FEW_INCIDENTS:
        return Markup("")
    groups: dict[str, list[Incident]] = defaultdict(list)
    for incident in incidents:
        groups[incident.cause].append(incident)
    total = max(1, sum(incident.cost_chip_ns for incident in incidents))
    ordered = sorted(groups.items(), key=lambda item: (-_cost(item[1]), item[0]))
    scale = scale_for("chip_ns", _cost(ordered[0][1]))
    heads = [
        Head("cause"),
        Head("count", number=True),
        Head("share of cost", number=True),
        Head(scale.label, number=True),
        Head("mean detection", number=True),
        Head("mean recovery", number=True),
        Head("mean rework", number=True),
    ]
    rows = [_cause(cause, group, total, scale) for cause, group in ordered[:MAX_CAUSES]]
    rest = [incident for _, group in ordered[MAX_CAUSES:] for incident in group]
    if rest:
        name = count(len(ordered) - MAX_CAUSES, "other cause")
        rows.append(_cause(name, rest, total, scale))
    return sortable(heads, rows, caption="Incidents by cause", name="causes")


def _cost(group: Sequence[Incident]) -> int:
    return sum(incident.cost_chip_ns for incident in group)


def _cause(cause: str, group: Sequence[Incident], total: int, scale: Scale) -> list[Cell]:
    size, cost = len(group), _cost(group)
    means = [
        sum(incident.detection_ns for incident in group) // size,
        sum(incident.recovery_ns for incident in group) // size,
        sum(incident.rework_ns for incident in group) // size,
    ]
    return [
        Cell(cause, title=cause),
        Cell(f"{size:,}", size),
        Cell(percent(cost / total), cost),
        Cell(scale.number(cost), cost),
        *(Cell(duration(mean), mean) for mean in means),
    ]


def attempts_section(ledger: Ledger, total: int) -> Markup:
    """Return the attempts, sortable.

    Args:
        ledger: whose attempts are listed.
        total: attempts of the whole job, of which the page may list fewer.
    """
    heads = [
        Head("attempt"),
        Head("start", number=True, hint="since the start of the account"),
        Head("lasted", number=True),
        Head("chips", number=True),
        Head("to first step", number=True),
        Head("from step", number=True),
        Head("last step", number=True),
        Head("kept", number=True),
        Head("lost", number=True),
        Head("goodput", number=True),
        Head("ended"),
    ]
    rows = [_attempt(attempt, ledger.started_at_ns) for attempt in ledger.attempts]
    actions = [
        {
            "data_from": f"{attempt.started_at_ns / 1e9:.6f}",
            "data_to": f"{attempt.ended_at_ns / 1e9:.6f}",
        }
        for attempt in ledger.attempts
    ]
    table = sortable(heads, rows, caption="Attempts", name="attempts", actions=actions)
    return section(count(total, "attempt"), table, name="attempts")


def _attempt(attempt: Attempt, start_ns: int) -> list[Cell]:
    lasted = attempt.ended_at_ns - attempt.started_at_ns
    reached = attempt.first_step_at_ns - attempt.started_at_ns if attempt.first_step_at_ns else -1
    goodput = attempt.waterfall.goodput_fraction
    ended = f"{attempt.outcome}: {attempt.cause}" if attempt.cause else attempt.outcome
    return [
        Cell(attempt.key),
        Cell(elapsed(attempt.started_at_ns - start_ns), attempt.started_at_ns - start_ns),
        Cell(duration(lasted), lasted),
        Cell(f"{attempt.chips:,}", attempt.chips),
        Cell("no step" if reached < 0 else duration(reached), reached),
        Cell("-" if attempt.next_step < 0 else f"{attempt.next_step:,}", attempt.next_step),
        Cell("none" if attempt.last_step < 0 else f"{attempt.last_step:,}", attempt.last_step),
        Cell(f"{attempt.kept_steps:,}", attempt.kept_steps),
        Cell(f"{attempt.lost_steps:,}", attempt.lost_steps),
        Cell(percent(goodput), goodput),
        Cell(ended, title=ended),
    ]


def ranks_section(ledger: Ledger, total: int) -> Markup:
    """Return the ranks, sortable; slowdown only where work was measured.

    Args:
        ledger: whose ranks are listed.
        total: ranks of the whole job, of which the page may list fewer.
    """
    heads = [
        Head("rank", number=True),
        Head("host"),
        Head("record", hint="own steps, summaries, or booked as the lead rank"),
        Head("steps", number=True),
        Head("median step", number=True),
        Head("work per step", number=True, hint="mean time outside collectives"),
        Head("slowdown", number=True, hint="work / median over ranks; 1.00 = typical"),
        Head("goodput", number=True),
    ]
    rows = [_rank(rank) for rank in ledger.ranks]
    table = sortable(heads, rows, caption="Ranks", name="ranks")
    known = [rank for rank in ledger.ranks if rank.slowdown > 0]
    slow = max(known, key=lambda rank: rank.slowdown, default=None)
    lead = "slowdown not measured"
    if slow is not None:
        lead = f"slowest: rank {slow.rank}, {slow.slowdown:.2f} times the typical work per step"
    return section(count(total, "rank"), table, name="ranks", lead=lead)


def _rank(rank: Rank) -> list[Cell]:
    work = "not measured" if rank.mean_work_ns < 0 else duration(rank.mean_work_ns)
    slowdown = "not measured" if rank.slowdown <= 0 else f"{rank.slowdown:.2f}"
    goodput = rank.waterfall.goodput_fraction
    return [
        Cell(str(rank.rank), rank.rank),
        Cell(rank.host),
        Cell(rank.detail),
        Cell(f"{rank.steps:,}", rank.steps),
        Cell(duration(rank.median_step_ns) if rank.steps else "-", rank.median_step_ns),
        Cell(work, rank.mean_work_ns),
        Cell(slowdown, rank.slowdown),
        Cell(percent(goodput), goodput),
    ]


def definitions_table(ledger: Ledger) -> Markup:
    """Return the numbers that others call goodput, side by side with their source."""
    if not ledger.definitions:
        return Markup("")
    body = [
        element(
            "tr",
            element("th", definition.name, scope="row"),
            element(
                "td",
                "not known" if definition.value is None else percent(definition.value),
                class_="num",
            ),
            element("td", definition.meaning, element("cite", definition.source), class_="how"),
        )
        for definition in ledger.definitions
    ]
    table = element(
        "table", element("caption", "Named definitions"), element("tbody", body), class_="facts"
    )
    return section("As others define it", table, name="definitions")


def notes_section(notes: Sequence[Note]) -> Markup:
    """Return what limits the numbers, worst first."""
    order = ("error", "warning", "info")
    ordered = sorted(notes, key=lambda note: order.index(note.level))
    items = [
        element(
            "li",
            element("b", note.level, class_=f"level level-{note.level}"),
            element("span", note.text),
            element("code", note.where) if note.where else "",
            element("span", f"\u00d7{note.count:,}", class_="times") if note.count > 1 else "",
        )
        for note in ordered
    ]
    return section("How far to trust this", element("ul", items, class_="notes"), name="notes")
