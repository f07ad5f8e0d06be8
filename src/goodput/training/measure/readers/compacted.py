"""Compacted runs: one Parquet file that stands for many event files (see ../compact.py)."""

from collections.abc import Callable
from pathlib import Path

from goodput.core.notes import Note
from goodput.training.measure.eventlog import ProcessLog


def looks_compacted(path: Path, head: bytes) -> bool:
    """Return whether a file is a compacted run."""
    return path.suffix == ".parquet" and head[:4] == b"PAR1"


class CompactedFile:
    """placeholder until compact lands in this session."""

    def __init__(self, path: Path, name: str = "") -> None:
        self.path = path

    def poll(self) -> bool:
        return False

    def finish(self) -> tuple[Note, ...]:
        return ()

    def logs(self) -> list[Callable[[int], ProcessLog]]:
        return []

    def clocks(self) -> list[tuple[str, int, int]]:
        return []

    def covers(self) -> frozenset[tuple[str, int]]:
        return frozenset()
