"""The injector's own account of what it did, one JSON object per line: schema goodput.faults/1.0.

It is written apart from any recorder, so that a measurement can be checked against it.
"""

import os
import time
from pathlib import Path
from typing import Final

import msgspec

from goodput.core.errors import DataError
from goodput.training.faults.schedule import FaultSchedule

SCHEMA: Final = "goodput.faults/1.0"


class Entry(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="k", tag=str.lower
):
    """One thing that happened, when it had happened."""

    t: int
    """Wall time, Unix ns."""
    m: int
    """Monotonic clock, ns."""


class Opened(Entry, frozen=True):
    """The injector is watching."""

    schema: str
    pid: int
    folder: str
    schedule: FaultSchedule


class Sent(Entry, frozen=True):
    """A signal was sent."""

    fault: int
    """Its place in the schedule, from 0."""
    kind: str
    signal: str
    rank: int
    pids: tuple[int, ...]
    attempt: str
    step: int
    """Highest step begun by then, -1 = none."""
    late_s: float
    """How long after it was due."""


class Refused(Entry, frozen=True):
    """A signal was not sent, and why."""

    fault: int
    reason: str


class Gone(Entry, frozen=True):
    """A worker that was watched has exited; seen within one poll."""

    rank: int
    pid: int
    attempt: str


class Closed(Entry, frozen=True):
    """The injector stopped watching."""

    missed: tuple[int, ...]
    """Faults that never fell due, or whose target never came."""


AnyEntry = Opened | Sent | Refused | Gone | Closed


class TruthLog:
    """Appends entries, each on disk's side of the process when the call returns.

    Args:
        path: the file; its folder is made.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._encode = msgspec.json.Encoder().encode

    def write(self, entry: AnyEntry) -> None:
        """Append one entry."""
        os.write(self._descriptor, self._encode(entry) + b"\n")

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def now() -> tuple[int, int]:
    """Return wall and monotonic time, ns."""
    return time.time_ns(), time.monotonic_ns()


def read_truth(path: Path) -> tuple[AnyEntry, ...]:
    """Return the entries of a truth log.

    Raises:
        DataError: a whole line is not an entry.
    """
    decoder = msgspec.json.Decoder(AnyEntry)
    entries: list[AnyEntry] = []
    for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], start=1):
        try:
            entries.append(decoder.decode(line))
        except msgspec.DecodeError as error:
            raise DataError(f"not a fault record: {error}", path=path, line=number) from error
    return tuple(entries)
