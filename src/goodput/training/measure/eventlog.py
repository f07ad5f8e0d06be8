"""Events in memory: one `ProcessLog` per file, bulk records as columns, the rest as typed events.

Times are corrected by the readers, once: processes that share a kernel boot share one offset
between monotonic and wall clock, so a wall clock that steps back cannot reorder anything.
"""

from typing import NamedTuple

import msgspec
import numpy as np

from goodput.core.errors import InputError
from goodput.core.events import Event, Process, Window
from goodput.core.notes import Note
from goodput.core.timeline import Ints, as_ints


class StepColumns(NamedTuple):
    """`step` events, one row each, in file order. Shapes (S,)."""

    n: Ints
    at_ns: Ints
    duration_ns: Ints | None
    """-1 where the record had none; None when no record had one."""
    covers: Ints | None
    """Steps covered, 0 = up to the next record; None = all 0."""
    comm_ns: Ints | None
    """Exposed communication; None = all 0."""
    shape: Ints | None
    """Index into ProcessLog.shapes; None = all the empty shape."""


class EndColumns(NamedTuple):
    """`step_end` events. Shapes (S,)."""

    n: Ints
    at_ns: Ints
    comm_ns: Ints
    """-1 = not measured."""


class SpanColumns(NamedTuple):
    """`span` events and unclosed `begin` events. Shapes (N,)."""

    name: Ints
    """Index into ProcessLog.labels."""
    at_ns: Ints
    duration_ns: Ints
    """-1 = never closed: the process died inside, or is still there."""
    background: Ints
    """1 = ran beside training."""


class Label(NamedTuple):
    """A span's name and the class the user wants it booked under ("" = by name)."""

    name: str
    counts_as: str


class ProcessLog(msgspec.Struct, frozen=True):
    """Everything that one process recorded."""

    header: Process
    path: str
    offset_ns: int
    """Wall time = monotonic + offset; events without a monotonic clock keep their wall time."""
    steps: StepColumns
    ends: EndColumns
    spans: SpanColumns
    labels: tuple[Label, ...]
    shapes: tuple[str, ...]
    windows: tuple[Window, ...]
    events: tuple[Event, ...]
    """All other events, in file order."""
    last_at_ns: int
    """Last sign of life."""
    aliases: tuple[str, ...] = ()
    """Names that schedulers give to the job, such as `slurm:123`."""
    inferred: int = 0
    """Records whose time is inferred."""

    def at_ns(self, event: Event) -> int:
        """Return the corrected wall time of one of this process's events, Unix ns."""
        return event.m + self.offset_ns if event.m else event.t

    @property
    def started_at_ns(self) -> int:
        """When the operating system started the process, else its first record."""
        first = self.at_ns(self.header)
        started = self.header.started
        return started if 0 < started <= first else first


class EventLog(msgspec.Struct, frozen=True):
    """What the readers return: processes of one or more jobs, and what was wrong with the files."""

    processes: tuple[ProcessLog, ...]
    notes: tuple[Note, ...]
    sources: tuple[str, ...]

    @property
    def jobs(self) -> tuple[str, ...]:
        """Names of the jobs found, sorted."""
        return tuple(sorted({process.header.job for process in self.processes}))

    def job(self, name: str) -> "EventLog":
        """Return the part of the log that belongs to one job, without notes on others' files.

        Raises:
            InputError: there is no such job; the message lists those found.
        """
        mine = tuple(p for p in self.processes if p.header.job == name)
        if not mine:
            raise InputError(f"no job {name!r} in the log; found: {', '.join(self.jobs) or 'none'}")
        ours = {p.path for p in mine}
        theirs = {p.path for p in self.processes} - ours
        notes = tuple(n for n in self.notes if _file_of(n) not in theirs)
        return EventLog(processes=mine, notes=notes, sources=tuple(sorted(ours)))


NO_STEPS = StepColumns(as_ints([]), as_ints([]), None, None, None, None)
NO_ENDS = EndColumns(as_ints([]), as_ints([]), as_ints([]))
NO_SPANS = SpanColumns(as_ints([]), as_ints([]), as_ints([]), as_ints([]))


def stack(parts: list[Ints]) -> Ints:
    """Return the concatenation of column chunks, without a copy when there is only one."""
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else as_ints([])


def _file_of(note: Note) -> str:
    """The file that a note is about: its place without the line number."""
    path, _, line = note.where.rpartition(":")
    return path if line.isdigit() else note.where
