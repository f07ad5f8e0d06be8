"""Text logs: bytes to lines of interest to the formats that want them.

Most lines of a log say nothing about time. Each format names the byte strings that its lines hold;
the scan looks for those only, so a log of which few lines matter is read at the speed of a search.
"""

import gzip
import lzma
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Final, Protocol

from goodput.core.notes import Note
from goodput.training.measure.eventlog import ProcessLog
from goodput.training.measure.readers.logs.clock import YearlessClock
from goodput.training.measure.readers.logs.story import UNKNOWN, Launch, place, process_log

CHUNK_BYTES: Final = 4 << 20
SAMPLE_BYTES: Final = 1 << 20
LONGEST_LINE_BYTES: Final = 8 << 20
_COLOURS: Final = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")


class Story:
    """What one file tells: its launches in order, and what the reader should know about them.

    Args:
        latest_ns: the file's own time, Unix ns: no line is younger.
    """

    def __init__(self, latest_ns: int) -> None:
        self.launches: list[Launch] = [Launch()]
        self.clock = YearlessClock(latest_ns)
        self.latest_ns = latest_ns
        self.job = ""
        self.notes: dict[str, int] = {}

    @property
    def now(self) -> Launch:
        """The launch that is being read."""
        return self.launches[-1]

    def launch(self) -> Launch:
        """Begin another launch (none is begun while the present one is still empty)."""
        if not self.now.empty:
            self.launches.append(Launch())
        return self.now

    def note(self, text: str) -> None:
        """Count something that the reader of the report should know."""
        self.notes[text] = self.notes.get(text, 0) + 1


class LogFormat(Protocol):
    """One kind of log: one instance reads one file, in file order."""

    name: str
    needles: tuple[bytes, ...]
    """A line matters to the format if it holds one of these."""

    def line(self, line: bytes, story: Story) -> None:
        """Take one line of interest, without its end of line and colours."""
        ...

    def flush(self, story: Story) -> None:
        """Hand over what is still held back (steps are collected in columns)."""
        ...


class TextLog:
    """A text log being read; a `Source` of readers/__init__.py.

    Args:
        path: the file.
        name: how to call it in notes.
        formats: the formats found in it.
    """

    def __init__(self, path: Path, name: str, formats: list[LogFormat]) -> None:
        self.path = path
        self.name = name
        self.formats = formats
        self.story = Story(int(path.stat().st_mtime * 1e9))
        self._offset = 0
        self._rest = b""
        self._lines = 0

    def poll(self) -> bool:
        """Read what is new; a compressed file is read once."""
        before = self._offset
        with opened(self.path) as file:
            if self._offset and file.seekable():
                file.seek(self._offset)
            while chunk := file.read(CHUNK_BYTES):
                self._offset += len(chunk)
                self._take(chunk)
        return self._offset > before

    def finish(self) -> tuple[Note, ...]:
        """Return what was noted about the file."""
        return tuple(
            Note(level="info", text=text, where=self.name, count=count)
            for text, count in self.story.notes.items()
        )

    def logs(self) -> list[Callable[[int], ProcessLog]]:
        """Return one builder per launch."""
        if self._rest:
            self._scan(self._rest + b"\n")
            self._rest = b""
        for one in self.formats:
            one.flush(self.story)
        return [lambda _, log=log: log for log in self._process_logs()]  # type: ignore[misc]

    def clocks(self) -> list[tuple[str, int, int]]:
        """Return no clocks: a log has wall time only."""
        return [("", 0, 0) for launch in self.story.launches if not launch.empty]

    def covers(self) -> frozenset[tuple[str, int]]:
        """Return nothing: a log stands for itself only."""
        return frozenset()

    def _process_logs(self) -> Iterator[ProcessLog]:
        origin = self.story.latest_ns
        job = self.story.job or self.path.name.split(".")[0]
        launches = [launch for launch in self.story.launches if not launch.empty]
        placed = []
        for launch in launches:
            placed.append(place(launch, origin_ns=origin))
            origin = placed[-1].last_at_ns
        several = len(launches) > 1
        for number, (launch, where) in enumerate(zip(launches, placed, strict=True), start=1):
            if where.inferred:
                self.story.note("times of some lines were inferred from durations between stamps")
            key = f"{self.path.name}#{number}" if several else self.path.name
            yield process_log(
                launch, where, job=job, path=self.name, number=number, attempt=key
            )

    def _take(self, chunk: bytes) -> None:
        data = self._rest + chunk
        if b"\x1b" in data:
            data = _COLOURS.sub(b"", data)
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        cut = data.rfind(b"\n") + 1
        self._rest = data[cut:]
        if len(self._rest) > LONGEST_LINE_BYTES:
            self.story.note("line longer than 8 MiB skipped")
            self._rest = b""
        if cut:
            self._scan(data[:cut])

    def _scan(self, data: bytes) -> None:
        """Give every line of interest to the formats that want it, in file order."""
        hits: dict[int, set[int]] = {}
        for index, one in enumerate(self.formats):
            for needle in one.needles:
                at = data.find(needle)
                while at >= 0:
                    start = data.rfind(b"\n", 0, at) + 1
                    hits.setdefault(start, set()).add(index)
                    at = data.find(needle, max(data.find(b"\n", at), at + 1))
        for start in sorted(hits):
            line = data[start : data.find(b"\n", start)]
            for index in sorted(hits[start]):
                self.formats[index].line(line, self.story)


def opened(path: Path) -> IO[bytes]:
    """Open a log for reading, unpacking .gz and .xz as it goes."""
    if path.suffix == ".gz":
        return gzip.open(path, "rb")
    if path.suffix == ".xz":
        return lzma.open(path, "rb")
    return path.open("rb")


__all__ = ["UNKNOWN", "LogFormat", "Story", "TextLog", "opened"]
