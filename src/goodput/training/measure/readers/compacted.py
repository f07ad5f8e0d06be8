"""Compacted runs as a source: one Parquet file that stands for many event files.

An event file that is still there with another size than it had (its writer went on) is read itself,
in place of what the compacted run holds of it. How a run is compacted: ../compact.py.
"""

from collections.abc import Callable, Iterator
from functools import partial
from os.path import normpath
from pathlib import Path
from typing import NamedTuple

import msgspec

from goodput.core.events import Process
from goodput.core.notes import Note
from goodput.training.measure.eventlog import ProcessLog
from goodput.training.measure.readers.columns import shifted
from goodput.training.measure.readers.event_file import EventFile
from goodput.training.measure.readers.packed import (
    BadPackError,
    Contents,
    CoveredFile,
    PackedProcess,
    PackedRows,
    load,
)

MAGIC = b"PAR1"
_MARK = b"goodput.compacted/"
_HEADER_BYTES = 1 << 16
_NOTHING = Contents(schema="", writer="", files=(), processes=())


def looks_compacted(path: Path, head: bytes) -> bool:
    """Return whether a file is a compacted run, or a Parquet file too damaged to tell."""
    if path.suffix != ".parquet" or head[:4] != MAGIC:
        return False
    footer = _footer(path)
    return footer is None or _MARK in footer


def _footer(path: Path) -> bytes | None:
    """The metadata at the end of a Parquet file; None when the file is not whole."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(size - 8, 0))
            tail = file.read(8)
            length = int.from_bytes(tail[:4], "little")
            if tail[4:] != MAGIC or length + 12 > size:
                return None
            file.seek(size - 8 - length)
            return file.read(length)
    except OSError:
        return None


class Part(NamedTuple):
    """What one event file contributes."""

    file: CoveredFile
    notes: tuple[Note, ...]
    """As `file.notes`, with the whole path in `where`."""
    clocks: list[tuple[str, int, int]]
    builders: list[Callable[[int], ProcessLog]]


class CompactedFile:
    """A compacted run, with event files that grew since read in its place.

    Args:
        path: the Parquet file.
        name: how to call it in notes (path as the user gave it).
    """

    def __init__(self, path: Path, name: str = "") -> None:
        self.path = path
        self._name = name or str(path)
        self._signature: tuple[int, int, int] | None = None
        self.contents = _NOTHING
        self.problem: Note | None = None
        """Why the file cannot be read, or not in full."""
        self._packed: list[list[tuple[PackedProcess, PackedRows]]] = []
        self._grown: dict[int, EventFile] = {}
        self._sizes: list[int] = []
        self._replaced: set[int] = set()
        """Files in whose place there is another one of the same name."""

    def poll(self) -> bool:
        """Read the file if it is new or was replaced, and event files that grew since."""
        stat = self.path.stat()
        signature = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
        grew = signature != self._signature
        if grew:
            self._signature = signature
            self._load()
        for index in range(len(self.contents.files)):
            grew = self._follow(index) or grew
        return grew

    def _follow(self, index: int) -> bool:
        """Look at a covered event file that may still be there; return whether it had more."""
        file = self.contents.files[index]
        size = _size_of(self.original(file))
        self._sizes[index] = file.size
        self._replaced.discard(index)
        if size in {-1, file.size}:
            self._grown.pop(index, None)
            return False
        if size < file.size or not self._goes_on(index):
            self._grown.pop(index, None)
            self._replaced.add(index)
            return False
        if index not in self._grown:
            self._grown[index] = EventFile(self.original(file))
        self._sizes[index] = size
        return self._grown[index].poll()

    def _load(self) -> None:
        self._grown, self.problem = {}, None
        self._replaced = set()
        self.contents = _NOTHING
        rows: list[PackedRows] = []
        try:
            self.contents, rows = load(self.path)
        except BadPackError as error:
            self.problem = Note(level="error", text=str(error), where=self._name)
        unknown = sum(its.unknown for its in rows)
        if unknown:
            self.problem = Note(
                level="warning",
                text="event of a kind or form that is not known to this version; ignored",
                where=self._name,
                count=unknown,
            )
        self._packed = [[] for _ in self.contents.files]
        self._sizes = [file.size for file in self.contents.files]
        for process, its in zip(self.contents.processes, rows, strict=True):
            self._packed[process.file].append((process, its))

    def _goes_on(self, index: int) -> bool:
        """Return whether an event file is the one that is held, gone on with, and no new one."""
        if index in self._grown:
            return True
        try:
            with self.original(self.contents.files[index]).open("rb") as opened:
                header = msgspec.json.decode(opened.readline(_HEADER_BYTES), type=Process)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return False
        held = [process.header for process, _ in self._packed[index]]
        return bool(held) and (header.t, header.m, header.pid) == (
            held[0].t,
            held[0].m,
            held[0].pid,
        )

    def original(self, file: CoveredFile) -> Path:
        """Return where a covered event file is, or was."""
        return Path(normpath(self.path.parent / file.name))

    def parts(self) -> Iterator[Part]:
        """Return what each covered event file contributes, in the order of their names."""
        for index, file in enumerate(self.contents.files):
            where = str(self.original(file))
            grown = self._grown.get(index)
            if grown is not None:
                notes = without_path(grown.finish(), where)
                size = self._sizes[index]
                yield Part(
                    msgspec.structs.replace(file, size=size, notes=notes),
                    grown.finish(),
                    grown.clocks(),
                    grown.logs(),
                )
                continue
            mine = self._packed[index]
            yield Part(
                file,
                tuple(msgspec.structs.replace(n, where=where + n.where) for n in file.notes),
                [(p.header.boot, p.header.m, p.offset_ns) for p, _ in mine],
                [partial(build_log, process, rows, where) for process, rows in mine],
            )

    def finish(self) -> tuple[Note, ...]:
        """Return what was wrong with the covered files and with this one."""
        notes = [note for part in self.parts() for note in part.notes]
        return (*notes, self.problem) if self.problem is not None else tuple(notes)

    def logs(self) -> list[Callable[[int], ProcessLog]]:
        """Return one builder per writer process; it takes a shift of all times, ns."""
        return [build for part in self.parts() for build in part.builders]

    def clocks(self) -> list[tuple[str, int, int]]:
        """Return (boot id, first monotonic ns, offset ns) per writer."""
        return [clock for part in self.parts() for clock in part.clocks]

    def stands_for(self) -> list[tuple[Path, int]]:
        """Return (path, size) of the event files that this one stands for, as they are now."""
        files = enumerate(zip(self.contents.files, self._sizes, strict=True))
        return [
            (self.original(file), size)
            for index, (file, size) in files
            if index not in self._replaced
        ]

    def covers(self) -> frozenset[str]:
        """Return absolute paths of the event files that this one stands for."""
        return frozenset(normpath(path.absolute()) for path, _ in self.stands_for())


def without_path(notes: tuple[Note, ...], path: str) -> tuple[Note, ...]:
    """Return notes on a file without the file's path in `where`."""
    return tuple(
        msgspec.structs.replace(note, where=note.where.removeprefix(path)) for note in notes
    )


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1


def build_log(process: PackedProcess, rows: PackedRows, path: str, shift_ns: int) -> ProcessLog:
    """Return the log of one process.

    Args:
        process: what is known of it.
        rows: its rows.
        path: the event file that it wrote.
        shift_ns: added to all times.
    """
    steps, ends, spans = rows.steps, rows.ends, rows.spans
    return ProcessLog(
        header=process.header,
        path=path,
        offset_ns=process.offset_ns + shift_ns if process.offset_ns else 0,
        steps=steps._replace(at_ns=shifted(steps.at_ns, shift_ns)),
        ends=ends._replace(at_ns=shifted(ends.at_ns, shift_ns)),
        spans=spans._replace(at_ns=shifted(spans.at_ns, shift_ns)),
        labels=process.labels,
        shapes=process.shapes,
        windows=rows.windows,
        events=rows.events,
        last_at_ns=process.last_at_ns + shift_ns,
    )
