"""Text logs: bytes to lines of interest to the formats that want them.

Most lines of a log say nothing about time. Each format names the byte strings that its lines hold;
the scan looks for those only, so a log of which few lines matter is read at the speed of a search.
"""

import gzip
import lzma
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, cast

from goodput.core.notes import Note
from goodput.training.measure.eventlog import ProcessLog
from goodput.training.measure.readers.logs.clock import YearlessClock
from goodput.training.measure.readers.logs.story import UNKNOWN, Finish, Launch, Placed
from goodput.training.measure.readers.logs.tell import (
    notes_about,
    place_all,
    process_logs,
)

if TYPE_CHECKING:
    from io import BufferedReader

CHUNK_BYTES: Final = 4 << 20
SAMPLE_BYTES: Final = 1 << 20
LONGEST_LINE_BYTES: Final = 8 << 20
DAMAGED_LINES: Final = "lines with numbers that cannot be: damaged, and not used"
PACKED: Final = frozenset({".gz", ".xz"})
DAMAGED: Final = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)
COLOURS: Final = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")


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
        self.aliases: set[str] = set()
        """Names that schedulers give to the job, such as `slurm:123`."""
        self.zoneless = True
        """Stamps without a time zone may occur."""
        self.formats: Sequence[LogFormat] = ()
        """Formats that read the same file."""
        self.notes: dict[str, int] = {}

    @property
    def now(self) -> Launch:
        """The launch that is being read."""
        return self.launches[-1]

    def starting(self, *, once: str = "") -> Launch:
        """A format saw the job start: begin another launch if this one has worked or is over.

        Args:
            once: name of a sign that a launch gives once only: a second one begins another too.
        """
        self.settle()
        now = self.now
        if now.worked or now.finish is not None or once in now.signs:
            self.launches.append(Launch())
        if once:
            self.now.signs.add(once)
        return self.now

    def settle(self) -> None:
        """Have every format hand over what it holds back, so that what follows comes after it."""
        for one in self.formats:
            one.flush(self)

    def over(self, finish: Finish) -> None:
        """A line says how the launch ended; the first word on what happened stands.

        While the next launch has shown no sign of life yet, late words are about the one before.
        """
        late = self.now.empty and len(self.launches) > 1
        launch = self.launches[-2] if late else self.now
        known = launch.finish
        launch.finish = finish if known is None else known.joined(finish)

    def note(self, text: str, count: int = 1) -> None:
        """Count something that the reader of the report should know."""
        self.notes[text] = self.notes.get(text, 0) + count


class LogFormat(Protocol):
    """One kind of log: one instance reads one file, in file order."""

    @property
    def name(self) -> str:
        """Return what users call it."""
        ...

    @property
    def signs(self) -> tuple[bytes, ...]:
        """Return what the beginning or end of a file of this kind holds, any of these."""
        ...

    @property
    def needles(self) -> tuple[bytes, ...]:
        """Return what lines that matter to the format hold, any of these."""
        ...

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
        self.story.formats = formats
        self._offset = 0
        self._rest = b""
        self._hinted = False

    def poll(self) -> bool:
        """Read what is new; a compressed file is read once."""
        before = self._offset
        if before and self.path.suffix in PACKED:
            return False
        if self.path.stat().st_size < before and self.path.suffix not in PACKED:
            self.story.note("the file became shorter: read again from its beginning, as appended")
            before = self._offset = 0
        try:
            for chunk in pieces(self.path, self._offset):
                self._offset += len(chunk)
                self._take(chunk)
        except DAMAGED:
            self._offset = max(self._offset, 1)
            self.story.note("the compressed data are damaged or cut short: read up to there")
        return self._offset > before

    def finish(self) -> tuple[Note, ...]:
        """Return what was noted about the file."""
        placed = self._placed()
        notes = dict(self.story.notes)
        if self.story.clock.guessed:
            notes["stamps without a year: it is taken from the file's own time"] = 1
        if self._rest.strip():
            notes["the last line has no end: it may be torn, and is not used"] = 1
        zoneless = self.story.zoneless or len(self.formats) > 1
        return notes_about(placed, notes, name=self.name, zoneless=zoneless)

    def logs(self) -> list[Callable[[int], ProcessLog]]:
        """Return one builder per launch."""
        return [lambda _, log=log: log for log in self._process_logs()]  # type: ignore[misc]

    def clocks(self) -> list[tuple[str, int, int]]:
        """Return no clocks: a log has wall time only."""
        return [("", 0, 0) for _ in self._placed()]

    def covers(self) -> frozenset[str]:
        """Return nothing: a log stands for itself only."""
        return frozenset()

    def _placed(self) -> list[tuple[Launch, Placed]]:
        self.story.settle()
        return place_all(self.story.launches, latest_ns=self.story.latest_ns)

    def _process_logs(self) -> list[ProcessLog]:
        return process_logs(
            self._placed(),
            path=self.path,
            name=self.name,
            job=self.story.job,
            aliases=tuple(sorted(self.story.aliases)),
            writer=f"{self.formats[0].name} reader" if self.formats else "log reader",
        )

    def _take(self, chunk: bytes) -> None:
        data = self._rest + chunk
        if b"\x1b" in data:
            data = COLOURS.sub(b"", data)
        if b"\r" in data:
            data = data.replace(b"\r", b"\n")  # the empty lines of \r\n harm nobody
        if not self._hinted:
            self._hinted = True
            self.story.clock.hint(data)
        if data.endswith(b"}") and len(chunk) < CHUNK_BYTES:
            data += b"\n"  # a last line of JSON that closes is whole; if not, it does not decode
        cut = data.rfind(b"\n") + 1
        self._rest = data[cut:]
        if len(self._rest) > LONGEST_LINE_BYTES:
            self.story.note("line longer than 8 MiB skipped")
            self._rest = b""
        if cut:
            self._scan(data[:cut])

    def _scan(self, data: bytes) -> None:
        """Give every line of interest to the formats that want it, in file order."""
        hits: list[tuple[int, int, int]] = []
        find, rfind = data.find, data.rfind
        for index, one in enumerate(self.formats):
            for needle in one.needles:
                at = find(needle)
                while at >= 0:
                    end = find(b"\n", at)
                    hits.append((rfind(b"\n", 0, at) + 1, index, end))
                    at = find(needle, end)
        hits.sort()
        before = (-1, -1, -1)
        for hit in hits:
            if hit != before:  # a line may hold several needles of one format
                try:
                    self.formats[hit[1]].line(data[hit[0] : hit[2]], self.story)
                except (ValueError, OverflowError):
                    self.story.note(DAMAGED_LINES)
                before = hit


def pieces(path: Path, offset: int = 0) -> Iterator[bytes]:
    """Yield a log from an offset on in pieces of about CHUNK_BYTES, unpacking .gz and .xz.

    Raises:
        OSError, EOFError, zlib.error, lzma.LZMAError: packed data are damaged; all that could be
            unpacked was yielded before.
    """
    if path.suffix not in PACKED:
        with path.open("rb") as file:
            file.seek(offset)
            while chunk := file.read(CHUNK_BYTES):
                yield chunk
        return
    held: list[bytes] = []
    try:
        with cast(
            "BufferedReader",
            gzip.open(path, "rb") if path.suffix == ".gz" else lzma.open(path, "rb"),
        ) as unpacked:
            while piece := unpacked.read1(CHUNK_BYTES):
                held.append(piece)
                if sum(map(len, held)) >= CHUNK_BYTES:
                    yield b"".join(held)
                    held = []
    except DAMAGED:
        yield b"".join(held)
        raise
    yield b"".join(held)


__all__ = ["UNKNOWN", "LogFormat", "Story", "TextLog", "pieces"]
