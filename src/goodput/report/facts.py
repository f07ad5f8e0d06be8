"""The facts of one run in a comparison as label and text, the same for terminal and HTML."""

from typing import NamedTuple

from goodput.report.compare import RunSummary
from goodput.report.units import duration, percent, scale_for


class Fact(NamedTuple):
    """One line of the side-by-side table."""

    label: str
    value: str


def run_facts(run: RunSummary) -> tuple[Fact, ...]:
    """Return the facts of a run, goodput first, always the same labels in the same order."""
    steps = run.steps
    return (
        Fact("goodput", percent(run.factors.goodput)),
        Fact("saved goodput", _known(run.saved_fraction)),
        Fact("SG", percent(run.factors.scheduling)),
        Fact("RG", percent(run.factors.runtime)),
        Fact("PG", percent(run.factors.program)),
        Fact("MFU", _known(run.mfu)),
        Fact("state", run.state),
        Fact("chips", f"{run.chips:,}"),
        Fact("lasted", duration(run.duration_ns)),
        Fact("chip-time", scale_for("chip_ns", run.capacity_chip_ns).text(run.capacity_chip_ns)),
        Fact("steps kept", f"{steps.kept:,}"),
        Fact("steps lost", f"{steps.lost:,}"),
        Fact("ideal step time", _step(run, steps.ideal_step_ns)),
        Fact("median step time", _step(run, steps.median_ns)),
        Fact("p99 step time", _step(run, steps.p99_ns)),
        Fact("incidents", f"{run.incidents:,}"),
        Fact("cost of incidents", percent(run.incident_cost_chip_ns / run.capacity_chip_ns)),
    )


def _known(fraction: float | None) -> str:
    return "not known" if fraction is None else percent(fraction)


def _step(run: RunSummary, duration_ns: int) -> str:
    return duration(duration_ns) if run.steps.executed else "-"
