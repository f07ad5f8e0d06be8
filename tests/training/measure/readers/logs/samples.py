"""Real logs outside the repository, and what the readers make of a log, for the tests beside."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from goodput.core.notes import Note
from goodput.training.measure.eventlog import EventLog, ProcessLog
from goodput.training.measure.ledger import Ledger, account
from goodput.training.measure.readers.logs.registry import open_log

NS: Final = 1_000_000_000
ROOT: Final = Path(__file__).parents[5]


def sample(path: str) -> Path:
    """Return a real log below $GOODPUT_DATA/training-logs, or skip the test."""
    data = Path(os.environ.get("GOODPUT_DATA", ROOT.parent / "shared" / "data"))
    file = data / "training-logs" / path
    if not file.exists():
        pytest.skip(f"{file} is not here; GOODPUT_DATA names the folder that holds training-logs/")
    return file


class Told(NamedTuple):
    """What a log told."""

    logs: list[ProcessLog]
    notes: tuple[Note, ...]

    @property
    def ledger(self) -> Ledger:
        """The account that the ledger makes of it."""
        return account(EventLog(processes=tuple(self.logs), notes=self.notes, sources=("log",)))

    def steps(self, launch: int = 0) -> list[tuple[int, int, float, float]]:
        """(first step, steps covered, seconds since the epoch at the start, seconds)."""
        steps = self.logs[launch].steps
        assert steps.duration_ns is not None
        covers = steps.covers.tolist() if steps.covers is not None else [1] * steps.n.size
        return [
            (n, c, round(at / NS, 3), round(lasted / NS, 3))
            for n, c, at, lasted in zip(
                steps.n.tolist(),
                covers,
                steps.at_ns.tolist(),
                steps.duration_ns.tolist(),
                strict=True,
            )
        ]

    def spans(self, name: str, launch: int = 0) -> list[tuple[float, float]]:
        """(start, seconds) of every span of a name; -1 s = never closed."""
        log = self.logs[launch]
        return [
            (round(at / NS, 3), round(lasted / NS, 3) if lasted >= 0 else -1)
            for label, at, lasted in zip(
                log.spans.name.tolist(),
                log.spans.at_ns.tolist(),
                log.spans.duration_ns.tolist(),
                strict=True,
            )
            if log.labels[label].name == name
        ]

    def events(self, kind: type, launch: int = 0) -> list[object]:
        """All events of one kind."""
        return [event for event in self.logs[launch].events if isinstance(event, kind)]

    def noted(self, words: str) -> int:
        """How often a note that holds these words was counted."""
        return sum(note.count for note in self.notes if words in note.text)


def tell(path: Path) -> Told:
    """Read a log through the registry."""
    log = open_log(path, path.name)
    log.poll()
    notes = log.finish()
    return Told([build(0) for build in log.logs()], notes)


def told(tmp_path: Path, lines: str | Sequence[str], *, mtime: str = "2026-06-30 12:00:00") -> Told:
    """Write a log, give the file a time, and read it."""
    path = tmp_path / "job.log"
    text = lines if isinstance(lines, str) else "".join(line + "\n" for line in lines)
    path.write_bytes(text.encode())
    seconds = at(mtime)
    os.utime(path, (seconds, seconds))
    return tell(path)


def at(stamp: str) -> float:
    """Seconds since the epoch of a UTC stamp."""
    return datetime.fromisoformat(stamp).replace(tzinfo=UTC).timestamp()
