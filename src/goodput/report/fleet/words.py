"""What terminal and page both say of a fleet."""

from collections.abc import Iterator
from typing import Final

from goodput.cluster.measure.fleet.types import Dimension, Factor, FleetLedger, Group
from goodput.report.units import count, percent, scale_for, share

TITLES: Final = {
    "state": "By last state",
    "user": "By user",
    "queue": "By queue",
    "kind": "By kind of work",
    "size": "By GPUs",
    "week": "By week of submission",
}
USEFUL: Final = (
    "Useful is the run time of jobs that completed, which is all that the table can show. What of "
    "the rest was saved and used later is not in it."
)
USEFUL_TOLD: Final = "Useful is the useful time that the table tells of each job."
FAILED: Final = "in jobs that ended FAILED, NODE_FAIL, BOOT_FAIL or OUT_OF_MEMORY"


def job_facts(ledger: FleetLedger) -> Iterator[str]:
    """Yield how many jobs there are, and how many of them the amounts hold."""
    jobs = ledger.jobs
    yield count(jobs.read, "row")
    yield f"{count(jobs.accounted, 'GPU job')} accounted for"
    for number, what in (
        (jobs.without_chips, "without GPUs"),
        (jobs.open, "without run time"),
        (jobs.copies, "repeated"),
        (jobs.bad, "bad"),
    ):
        if number:
            yield f"{number:,} {what}"


def figures(ledger: FleetLedger) -> Iterator[tuple[str, str, str]]:
    """Yield label, value and explanation of each headline number."""
    scale = scale_for("chip_ns", ledger.waterfall.capacity)
    for label, factor in (("Scheduling", ledger.scheduling), ("Runtime", ledger.runtime)):
        yield f"{label} goodput", value_of(factor), factor.because
    if not ledger.run:
        yield "Failed", "not derivable", "no job with GPUs ran"
    elif all(group.key == "UNKNOWN" for group in _states(ledger)):
        yield "Failed", "not derivable", "no job tells its last state"
    else:
        yield "Failed", share(ledger.failed, ledger.run), f"of run time, {FAILED}"
    if ledger.jobs.restarts:
        earlier = f", {scale.text(ledger.retried)} in earlier attempts" if ledger.retried else ""
        yield "Restarts", f"{ledger.jobs.restarts:,}", f"attempts after the first{earlier}"


def _states(ledger: FleetLedger) -> tuple[Group, ...]:
    return next((one.groups for one in ledger.dimensions if one.name == "state"), ())


def value_of(factor: Factor) -> str:
    """Return a factor as a percentage, or that it is not derivable."""
    return "not derivable" if factor.value is None else percent(factor.value)


def useful_text(ledger: FleetLedger) -> str:
    """Return what `useful` stands for in this ledger."""
    return USEFUL if ledger.runtime.value is None else USEFUL_TOLD


def unkept_title(ledger: FleetLedger) -> str:
    """Return the title of the column of run time that is not called useful."""
    return "uncompleted" if ledger.runtime.value is None else "not kept"


def bad_text(ledger: FleetLedger) -> Iterator[tuple[str, int]]:
    """Yield each reason for which rows were left out, and how many."""
    for bad in ledger.bad_rows:
        value = f" {bad.value!r}" if bad.value else ""
        yield f"{bad.path} row {bad.row}: {bad.column}{value}: {bad.reason}", bad.count


def weighty(dimension: Dimension) -> bool:
    """Return whether a table by this column tells more than the waterfall."""
    return len(dimension.groups) > 1
