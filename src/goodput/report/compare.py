"""Two or more training runs side by side, as a value: what changed and which class explains it.

The first run is the baseline. Shares are of each run's own chip-time; see changes.py for the sums.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from goodput.core.errors import InputError
from goodput.report.changes import ClassChange, class_changes, goodput_change_micropoints
from goodput.training.measure.ledger.types import Factors, Ledger, Outcome, StepStats

COMPARISON_SCHEMA: Final = "goodput.training-comparison/1.0"


class RunSummary(msgspec.Struct, frozen=True):
    """One run of the comparison."""

    name: str
    """Unique in the comparison."""
    job: str
    state: Outcome
    chips: int
    duration_ns: int
    capacity_chip_ns: int
    useful_chip_ns: int
    factors: Factors
    saved_fraction: float | None
    """Saved goodput, 0-1; None = not known."""
    steps: StepStats
    mfu: float | None
    incidents: int
    incident_cost_chip_ns: int


class Comparison(msgspec.Struct, frozen=True):
    """Runs side by side; tuples are in the order of `runs`, the first is the baseline."""

    schema: str
    runs: tuple[RunSummary, ...]
    goodput_change_micropoints: tuple[int, ...]
    """Goodput against the baseline, millionths of a percentage point."""
    classes: tuple[ClassChange, ...]
    """Their changes sum to `goodput_change_micropoints`, run by run."""
    notes: tuple[str, ...]
    """What limits the comparison."""


def compare(*ledgers: Ledger, names: Sequence[str] = ()) -> Comparison:
    """Return what changed between runs and which loss class explains how much of it.

    Args:
        ledgers: two or more; the first is the baseline.
        names: one per ledger; empty = the job names. Equal names get a number.

    Returns:
        The comparison; class changes sum exactly to the goodput change.

    Raises:
        InputError: fewer than two runs, a run without capacity, or a wrong number of names.
    """
    if names and len(names) != len(ledgers):
        raise InputError(f"{len(names)} names for {len(ledgers)} runs: {', '.join(names)}")
    classes = class_changes([ledger.waterfall for ledger in ledgers])
    unique = _unique(names or [ledger.job for ledger in ledgers])
    runs = tuple(_summary(ledger, name) for ledger, name in zip(ledgers, unique, strict=True))
    baseline = ledgers[0].waterfall
    return Comparison(
        schema=COMPARISON_SCHEMA,
        runs=runs,
        goodput_change_micropoints=tuple(
            goodput_change_micropoints(baseline, ledger.waterfall) for ledger in ledgers
        ),
        classes=classes,
        notes=tuple(_notes(ledgers, unique, classes)),
    )


def comparison_to_json(comparison: Comparison) -> bytes:
    """Return the comparison as UTF-8 JSON with a stable key order."""
    return msgspec.json.encode(comparison)


def _unique(names: Sequence[str]) -> list[str]:
    found: list[str] = []
    for name in names:
        candidate, number = name, 2
        while candidate in found:
            candidate, number = f"{name} ({number})", number + 1
        found.append(candidate)
    return found


def _summary(ledger: Ledger, name: str) -> RunSummary:
    return RunSummary(
        name=name,
        job=ledger.job,
        state=ledger.state,
        chips=ledger.chips,
        duration_ns=ledger.ended_at_ns - ledger.started_at_ns,
        capacity_chip_ns=ledger.waterfall.capacity,
        useful_chip_ns=ledger.waterfall.useful,
        factors=ledger.factors,
        saved_fraction=ledger.saved.goodput_fraction,
        steps=ledger.steps,
        mfu=None if ledger.flops is None else ledger.flops.mfu,
        incidents=len(ledger.incidents),
        incident_cost_chip_ns=sum(incident.cost_chip_ns for incident in ledger.incidents),
    )


def _notes(
    ledgers: Sequence[Ledger], names: Sequence[str], classes: Sequence[ClassChange]
) -> Iterator[str]:
    for change in classes:
        missing = [name for name, known in zip(names, change.measured, strict=True) if not known]
        if missing and any(change.measured):
            yield (
                f"{change.name} is not measured in {', '.join(missing)}: "
                "there its time is in another class"
            )
    sources = {ledger.steps.ideal_source for ledger in ledgers if ledger.steps.kept}
    if len(sources) > 1:
        yield (
            "the ideal step time has different sources "
            f"({', '.join(sorted(sources))}): PG and useful do not compare"
        )
