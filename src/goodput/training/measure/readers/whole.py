"""Files that are read whole, again whenever they changed: JSON, tables, binary records.

A format gives a detector and a function from the file to what it tells; `WholeFile` is the rest.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from msgspec.structs import replace

from goodput.core.notes import Note
from goodput.training.measure.eventlog import ProcessLog
from goodput.training.measure.readers.logs.story import Launch
from goodput.training.measure.readers.logs.tell import (
    job_named_after,
    notes_about,
    place_all,
    process_logs,
)


class Told(NamedTuple):
    """What a file tells."""

    logs: tuple[ProcessLog, ...]
    notes: tuple[Note, ...]


class Reader(Protocol):
    """Reads one file whole; never raises for what it holds."""

    def __call__(self, path: Path, name: str) -> Told:
        """Return what the file tells; `name` is how notes call it."""
        ...


class WholeFile:
    """One file of a format that is read whole; a `Source` of readers/__init__.py.

    Args:
        path: the file.
        name: how to call it in notes.
        reader: reads it.
    """

    def __init__(self, path: Path, name: str, reader: Reader) -> None:
        self.path = path
        self.name = name
        self._reader = reader
        self._seen: tuple[int, int] | None = None
        self._told = Told((), ())

    def poll(self) -> bool:
        """Read the file if it changed since."""
        stat = self.path.stat()
        state = (stat.st_size, stat.st_mtime_ns)
        if state == self._seen:
            return False
        self._seen = state
        self._told = self._reader(self.path, self.name)
        return True

    def finish(self) -> tuple[Note, ...]:
        """Return what was noted about the file."""
        return self._told.notes

    def logs(self) -> list[Callable[[int], ProcessLog]]:
        """Return one builder per process log."""
        return [lambda _, log=log: log for log in self._told.logs]  # type: ignore[misc]

    def clocks(self) -> list[tuple[str, int, int]]:
        """Return no clocks: these files have wall time only."""
        return [("", 0, 0) for _ in self._told.logs]

    def covers(self) -> frozenset[str]:
        """Return nothing: the file stands for itself only."""
        return frozenset()


def whole(reader: Reader) -> Callable[[Path, str], WholeFile]:
    """Return an opener for a format that is read whole."""
    return lambda path, name: WholeFile(path, name, reader)


def told_of(
    launches: list[Launch],
    notes: Mapping[str, int],
    *,
    path: Path,
    name: str,
    writer: str,
    job: str = "",
    aliases: tuple[str, ...] = (),
    zoneless: bool = False,
    warnings: frozenset[str] = frozenset(),
) -> Told:
    """Return launches as process logs, with the notes about them.

    Args:
        launches: as read.
        notes: what was noted, with how often.
        path: the file.
        name: how to call it.
        writer: the reader, as the provenance of what was read.
        job: name of the job; empty = after the file.
        aliases: names that schedulers give to the job.
        zoneless: its stamps carry no time zone.
        warnings: those of the notes without which the report misleads.
    """
    placed = place_all(launches, latest_ns=path.stat().st_mtime_ns)
    logs = process_logs(
        placed,
        path=path,
        name=name,
        job=job or job_named_after(path),
        aliases=aliases,
        writer=writer,
    )
    said = notes_about(placed, notes, name=name, zoneless=zoneless)
    loud = tuple(replace(note, level="warning") if note.text in warnings else note for note in said)
    return Told(tuple(logs), loud)


def unreadable(name: str, why: str) -> Told:
    """Return nothing, with a note that says why a file could not be used."""
    return Told((), (Note(level="warning", text=why, where=name),))
