"""What a reader should know about how far the numbers can be trusted."""

from collections.abc import Iterator
from itertools import pairwise

from goodput.core.events import Dropped
from goodput.core.notes import Note
from goodput.training.measure.eventlog import EventLog
from goodput.training.measure.ledger.books import Books
from goodput.training.measure.ledger.types import ModelFlops

OVERLAP_NS = 1_000_000_000


def notes_of(books: Books, log: EventLog, flops: ModelFlops | None) -> tuple[Note, ...]:
    """Return notes on the data, worst first."""
    found = [
        *log.notes,
        *_flops(flops),
        *_ends(books),
        *_gaps(books),
        *_overlaps(books),
        *_dropped(books),
        *_chips(books),
        *_records(books),
    ]
    order = {"error": 0, "warning": 1, "info": 2}
    return tuple(sorted(found, key=lambda note: order[note.level]))


def _flops(flops: ModelFlops | None) -> Iterator[Note]:
    if flops is not None and flops.refused:
        yield Note(level="error", text=f"no MFU: {flops.refused}")


def _ends(books: Books) -> Iterator[Note]:
    plan = books.plan
    if plan.state == "unknown":
        yield Note(
            level="warning",
            text="the job's end was not recorded: the account stops at its last sign of life",
        )
    inferred = [t for t in plan.trials if t.end.outcome == "failed" and not t.end.recorded]
    silent = [t for t in inferred if not t.end.noticed]
    if silent:
        yield Note(
            level="info",
            text="nobody recorded the fault or its notice; it is dated by the last record, and "
            "detection is part of recovery",
            where=f"attempt {silent[0].key}",
            count=len(silent),
        )
    dated = len(inferred) - len(silent)
    if dated:
        yield Note(
            level="info",
            text="the fault is dated by the last record and the usual length of what was open: "
            "right to about one step",
            count=dated,
        )
    if not plan.lineage.persistence_known and plan.segments:
        yield Note(
            level="warning",
            text="no checkpoint was recorded: whether progress is saved is unknown",
        )
    if not plan.segments:
        yield Note(level="warning", text="no step was recorded: nothing can be useful")


def _gaps(books: Books) -> Iterator[Note]:
    for first, until in books.plan.lineage.gaps:
        yield Note(
            level="warning",
            text=f"steps {first}..{until - 1} are in the final state but no record shows them: "
            "files are missing, or step numbers skip",
        )
    for trial in books.plan.trials:
        segments = books.plan.segments_of(trial.index)
        if segments and trial.next_step >= 0 and trial.next_step != segments[0].first:
            yield Note(
                level="warning",
                text=f"resumed at step {trial.next_step} was declared, but step "
                f"{segments[0].first} ran first: the step that ran is believed",
                where=f"attempt {trial.key}",
            )


def _overlaps(books: Books) -> Iterator[Note]:
    trials = books.plan.trials
    for trial, following in pairwise(trials):
        alive = max((w.last_at_ns for w in trial.workers), default=0)
        same = {w.header.rank for w in trial.workers} & {w.header.rank for w in following.workers}
        if same and alive - following.started_at_ns > OVERLAP_NS:
            yield Note(
                level="warning",
                text=f"rank {min(same)} was still recording {(alive - trial.until_ns) / 1e9:.0f} s "
                "after its successor started: are these two jobs in one folder?",
                where=following.workers[0].path,
            )


def _dropped(books: Books) -> Iterator[Note]:
    for process in books.plan.processes:
        lost = sum(e.count for e in process.events if isinstance(e, Dropped))
        if lost:
            reasons = {e.reason for e in process.events if isinstance(e, Dropped) and e.reason}
            yield Note(
                level="warning",
                text=f"the recorder dropped {lost} records ({', '.join(sorted(reasons)) or '?'})",
                where=process.path,
                count=lost,
            )


def _chips(books: Books) -> Iterator[Note]:
    if not books.plan.chips.recorded:
        yield Note(level="info", text="chips were not recorded: one chip a rank is assumed")


def _records(books: Books) -> Iterator[Note]:
    silent = 0
    for trial in books.plan.trials:
        known = [r for r in trial.streams if r >= 0]
        if trial.lead >= 0:
            silent = max(silent, trial.world - len(known))
    if silent > 0:
        yield Note(
            level="info",
            text=f"{silent} of the ranks recorded no steps of {'its' if silent == 1 else 'their'} "
            "own: booked as the lead rank's time",
        )
