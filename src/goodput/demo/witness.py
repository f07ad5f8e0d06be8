"""The demo's own clock: one text line per phase boundary, past the recorder, to check the ledger.

A line is `MONOTONIC_NS WHAT NUMBER`; truth.py reads them back. Uses os.write and nothing of ours.
"""

import os
from pathlib import Path
from time import monotonic_ns
from typing import Final, NamedTuple

from goodput.core.errors import DataError

NO_NUMBER: Final = -1


class Mark(NamedTuple):
    """A phase boundary."""

    at_ns: int
    """Monotonic clock."""
    what: str
    number: int
    """Step, rank, pid or clock reading, as `what` has it; -1 = none."""


class Witness:
    """Appends marks to one file.

    Args:
        path: the file; its folder is made.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def mark(self, what: str, number: int = NO_NUMBER) -> None:
        """Write that `what` happens now."""
        os.write(self._descriptor, f"{monotonic_ns()} {what} {number}\n".encode())

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def read_marks(path: Path) -> tuple[Mark, ...]:
    """Return the marks of a file, in order; a torn last line is left out.

    Raises:
        DataError: a whole line is no mark.
    """
    marks = []
    for number, line in enumerate(path.read_text().split("\n")[:-1], start=1):
        try:
            at, what, value = line.split(" ")
            marks.append(Mark(int(at), what, int(value)))
        except ValueError:
            raise DataError(f"no mark: {line!r}", path=path, line=number) from None
    return tuple(marks)
