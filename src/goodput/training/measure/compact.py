"""Compaction: the event files of a run become one Parquet file that stands for them.

The file is proven before it counts: what is read back from it must be what was read from the event
files, process by process. Reading it: readers/compacted.py; format: docs/formats/compacted.md.
"""

import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import numpy as np

from goodput.core.errors import AccountingError, DataError, InputError
from goodput.training.measure.compact_inputs import Entry, Found, entries, find, still_written
from goodput.training.measure.compacted_writer import CompactedWriter
from goodput.training.measure.eventlog import ProcessLog
from goodput.training.measure.ledger import Ledger, account
from goodput.training.measure.readers import read
from goodput.training.measure.readers.compacted import CompactedFile, build_log
from goodput.training.measure.readers.packed import Contents, CoveredFile, load

DEFAULT_NAME: Final = "compacted.parquet"
QUIET_NS: Final = 300_000_000_000
"""A file without a goodbye is taken for a running process's until it has been silent for this long
(assumed: longer than any step)."""

Progress = Callable[[int, int], None]
"""Called with the number of event files that are done, and of all."""


class Left(NamedTuple):
    """An event file that is still needed, and why."""

    path: Path
    reason: str


class Compaction(msgspec.Struct, frozen=True):
    """What a compaction did."""

    path: Path
    """The compacted run."""
    size: int
    """Its bytes."""
    events_size: int
    """Bytes of the event files that it stands for."""
    files: int
    processes: int
    rows: int
    """Events in it; a span and its begin are one."""
    removed: tuple[Path, ...]
    left: tuple[Left, ...]
    """Event files that it does not stand for, and those that hold more than it could take in."""


def compact(
    folder: Path | str,
    *,
    out: Path | str | None = None,
    keep: bool = True,
    running: bool = False,
    now_ns: int | None = None,
    progress: Progress | None = None,
) -> Compaction:
    """Write the event files below a folder as one Parquet file; return what was done.

    A run that was compacted earlier is taken in as well. The result appears whole or not at all,
    and event files go only after the ledgers of both were found equal.

    Args:
        folder: searched for event files at any depth.
        out: the file to write (`.parquet`); by default `compacted.parquet` in the folder.
        keep: leave the event files where they are; they are read only if they grow.
        running: take in what is finished of a job that may still be running.
        now_ns: wall time, Unix ns; by default the clock's.
        progress: called after each event file.

    Raises:
        DataError: no event file can be taken in, or a compacted run is damaged.
        InputError: the job seems to be running, or `out` is no place for the result.
        AccountingError: the result would not say what the event files say; nothing was changed.
    """
    root = Path(folder).resolve()
    target = (root / DEFAULT_NAME if out is None else Path(out)).resolve()
    found = find(root)
    _check(root, target, found.packs, keep=keep)
    left: list[Left] = []
    now = time.time_ns() if now_ns is None else now_ns
    found = _quiet(found, now - QUIET_NS, left, keep=keep, running=running)
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.with_name(f".{os.getpid()}.{target.name}")
    try:
        contents = _write(fresh, entries(found, target.parent), root, left, progress)
        if not keep:
            _check_ledgers(found, fresh, {one.path for one in left})
        _sync(fresh)
        size = fresh.stat().st_size
        fresh.replace(target)
    finally:
        fresh.unlink(missing_ok=True)
    _sync(target.parent)
    removed = [] if keep else _remove(contents.files, found.packs, target, left)
    return Compaction(
        path=target,
        size=size,
        events_size=sum(file.size for file in contents.files),
        files=len(contents.files),
        processes=len(contents.processes),
        rows=sum(sum(process.rows.values()) for process in contents.processes),
        removed=tuple(removed),
        left=tuple(left),
    )


def _check(root: Path, target: Path, packs: Sequence[CompactedFile], *, keep: bool) -> None:
    """Refuse a target or earlier compactions that would end in a wrong account."""
    if target.suffix != ".parquet":
        raise InputError(f"{target} cannot be read later: the name must end in .parquet")
    for pack in packs:
        if pack.problem is not None:
            raise DataError(
                pack.problem.text, path=pack.path, remedy="Move it away to compact without it"
            )
        if keep and pack.path != target and target.is_relative_to(root):
            raise InputError(
                f"{pack.path} holds these events already: write to it, write outside {root}, or do "
                "not keep what becomes superfluous"
            )


def _quiet(found: Found, since_ns: int, left: list[Left], *, keep: bool, running: bool) -> Found:
    """Return what nobody writes to any more; the rest is left."""
    alive = still_written(found, since_ns=since_ns)
    again = [path for path in alive if path not in found.events]
    if alive and not running:
        raise InputError(
            f"{alive[0]} was written less than {QUIET_NS // 60_000_000_000} minutes ago and its "
            "process has not said goodbye: the job may be running. Wait, or take in what is "
            "finished (running=True, --running)"
        )
    if again and not keep:
        raise InputError(
            f"{again[0]} was compacted while its process was silent, and is written to again: keep "
            "the event files until it has ended"
        )
    left.extend(Left(path, "its process may still be writing") for path in alive)
    return found._replace(events=[path for path in found.events if path not in alive])


def _write(
    path: Path,
    todo: Sequence[Entry],
    root: Path,
    left: list[Left],
    progress: Progress | None,
) -> Contents:
    """Write and prove the file; return its table of contents."""
    seen: list[bytes] = []
    with tempfile.TemporaryDirectory(prefix=".compact-", dir=path.parent) as scratch:
        writer = CompactedWriter(Path(scratch))
        try:
            for done, entry in enumerate(todo, 1):
                taken = entry.take()
                if isinstance(taken, str):
                    left.append(Left(entry.path, taken))
                else:
                    writer.add(taken.file, taken.logs)
                    seen.extend(fingerprint(log) for log in taken.logs)
                del taken  # one file at a time in memory
                if progress is not None:
                    progress(done, len(todo))
            if not seen:
                why = f"{left[0].path}: {left[0].reason}. " if left else ""
                where = "Give the folder that holds the run, by default goodput-runs/<job>"
                raise DataError(
                    "no goodput events that can be compacted", path=root, remedy=why + where
                )
            contents = writer.write(path)
        finally:
            writer.close()
    _, rows = load(path)
    back = [
        fingerprint(build_log(process, its, "", 0))
        for process, its in zip(contents.processes, rows, strict=True)
    ]
    if back != seen:
        raise AccountingError(f"{path} does not read back as what was written; nothing was changed")
    return contents


def fingerprint(log: ProcessLog) -> bytes:
    """Return a digest of everything that a process recorded, its path excepted."""
    digest = hashlib.blake2b(digest_size=16)
    for column in (*log.steps, *log.ends, *log.spans):
        digest.update(b"-" if column is None else b"%d:" % column.size)
        if column is not None:
            digest.update(np.ascontiguousarray(column).data)
    rest = (log.header, log.offset_ns, log.labels, log.shapes, log.windows, log.events)
    digest.update(msgspec.json.encode((*rest, log.last_at_ns)))
    return digest.digest()


def _check_ledgers(found: Found, fresh: Path, left: set[Path]) -> None:
    """Raise AccountingError unless every job has the same ledger from either source."""
    before = [pack.path for pack in found.packs]
    before.extend(path for path in found.events if path not in left)
    for old, new in zip(_ledgers(before), _ledgers([fresh]), strict=True):
        if old != new:
            raise AccountingError(
                f"the ledger of {old.job!r} from the compacted run is not the one from its event "
                "files; nothing was changed"
            )


def _ledgers(paths: Sequence[Path]) -> list[Ledger]:
    """One ledger for each job, without the names of the files that it came from."""
    log = read(paths)
    return [msgspec.structs.replace(account(log.job(name)), sources=()) for name in log.jobs]


def _remove(
    files: Sequence[CoveredFile],
    packs: Sequence[CompactedFile],
    target: Path,
    left: list[Left],
) -> list[Path]:
    """Remove what the compacted run stands for, except files of which it lacks something."""
    removed = []
    for file in files:
        path = Path(os.path.normpath(target.parent / file.name))
        lost = next((note for note in file.notes if note.level != "info"), None)
        if lost is not None:
            left.append(Left(path, f"it holds what this version cannot read ({lost.text})"))
        elif path.exists() and path.stat().st_size == file.size:
            removed.append(path)
    removed.extend(pack.path for pack in packs if pack.path != target)
    for path in removed:
        path.unlink()
    return removed


def _sync(path: Path) -> None:
    """Put a file, or a folder's list of names, on the disk for good."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
