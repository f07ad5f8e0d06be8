"""What there is to compact below a folder: event files, runs compacted earlier, who still writes.

Nothing is decided here beyond whether a file can be taken in; compact.py decides the rest.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial
from os.path import relpath
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from goodput.core.errors import DataError
from goodput.training.measure.eventlog import ProcessLog
from goodput.training.measure.readers.compacted import (
    CompactedFile,
    Part,
    looks_compacted,
    without_path,
)
from goodput.training.measure.readers.event_file import EventFile
from goodput.training.measure.readers.packed import CoveredFile
from goodput.training.measure.readers.sniff import looks_like_events

_HEAD_BYTES: Final = 4096
_TAIL_BYTES: Final = 1 << 16
_PROCESS: Final = re.compile(rb'"k"\s*:\s*"(process|process_end)"')


class Taken(NamedTuple):
    """One event file, read."""

    file: CoveredFile
    logs: Sequence[ProcessLog]
    """Its writer processes, times not shifted."""


class Entry(NamedTuple):
    """One event file that can be read, or was read into a compacted run."""

    path: Path
    take: Callable[[], Taken | str]
    """Reads it, or says why it cannot be taken in."""


class Found(NamedTuple):
    """What lies below a folder."""

    packs: list[CompactedFile]
    """Runs that were compacted earlier."""
    events: list[Path]
    """Event files that none of them stands for."""
    held: list[Path]
    """Event files that are still there though one of them stands for them."""


def find(folder: Path) -> Found:
    """Return the event files below a folder, hidden ones excepted, and the compacted runs, read.

    Raises:
        DataError: the folder does not exist, or a file in it cannot be opened.
    """
    packs: list[CompactedFile] = []
    events: list[Path] = []
    if not folder.is_dir():
        raise DataError("no such folder", path=folder, remedy="Give the folder that holds the run")
    for path in sorted(folder.rglob("*")):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if hidden or not path.is_file():
            continue
        head = _head(path)
        if looks_compacted(path, head):
            packs.append(CompactedFile(path))
            packs[-1].poll()
        elif looks_like_events(path, head):
            events.append(path)
    held = {path for pack in packs for path, _ in pack.stands_for()}
    return Found(
        packs,
        events=[path for path in events if path not in held],
        held=[path for path in events if path in held],
    )


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_HEAD_BYTES)
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror})", path=path) from error


def still_written(found: Found, *, since_ns: int) -> list[Path]:
    """Return the event files whose process may be running: no goodbye, and written lately.

    Args:
        found: event files.
        since_ns: a file that was last written before this instant is silent, Unix ns.
    """
    return [
        path
        for path in sorted((*found.events, *found.held))
        if path.stat().st_mtime_ns >= since_ns and not _said_goodbye(path)
    ]


def _said_goodbye(path: Path) -> bool:
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(size - _TAIL_BYTES, 0))
        kinds = _PROCESS.findall(file.read())
    return bool(kinds) and kinds[-1] == b"process_end"


def entries(found: Found, base: Path) -> list[Entry]:
    """Return everything that can be taken in, each event file once, in the order of their paths.

    Args:
        found: what there is.
        base: folder that names are made relative to.
    """
    seen: set[tuple[Path, int]] = set()
    out = [Entry(path, partial(_take_events, path, _name(path, base))) for path in found.events]
    for pack in found.packs:
        for part in pack.parts():
            path = pack.original(part.file)
            if (path, part.file.size) not in seen:
                seen.add((path, part.file.size))
                out.append(Entry(path, partial(_take_part, part, _name(path, base))))
    return sorted(out, key=lambda entry: entry.path)


def _name(path: Path, base: Path) -> str:
    return Path(relpath(path, base)).as_posix()


def _take_part(part: Part, name: str) -> Taken:
    file = msgspec.structs.replace(part.file, name=name)
    return Taken(file, [build(0) for build in part.builders])


def _take_events(path: Path, name: str) -> Taken | str:
    try:
        name.encode()
    except UnicodeEncodeError:
        return "its name is not valid UTF-8"
    size = path.stat().st_size
    source = EventFile(path, name)
    source.poll()
    if source.refused or not source.writers:
        return next((note.text for note in source.finish()), "it holds no record")
    notes = without_path(source.finish(), name)
    logs = [build(0) for build in source.logs()]
    return Taken(CoveredFile(name=name, size=size, notes=notes), logs)
