"""Readers: files in, `EventLog` out. One file per format, one line in `FORMATS`.

A reader never fails for what a file holds; it fails only when nothing at all can be read.
"""

from collections.abc import Callable, Sequence
from os.path import normpath
from pathlib import Path
from typing import Final, Protocol

import numpy as np

from goodput.core.errors import DataError
from goodput.core.notes import Note
from goodput.training.measure.eventlog import EventLog, ProcessLog
from goodput.training.measure.readers.compacted import CompactedFile, looks_compacted
from goodput.training.measure.readers.event_file import EventFile
from goodput.training.measure.readers.goodput_entries import (
    looks_like_goodput_entries,
    read_goodput_entries,
)
from goodput.training.measure.readers.join import join
from goodput.training.measure.readers.kubernetes import looks_like_kubernetes, read_kubernetes
from goodput.training.measure.readers.lightning_csv import (
    looks_like_lightning_csv,
    read_lightning_csv,
)
from goodput.training.measure.readers.logs.patience import bounded
from goodput.training.measure.readers.logs.profile import Profile
from goodput.training.measure.readers.logs.registry import looks_like_log, open_log, open_profiled
from goodput.training.measure.readers.sacct_json import looks_like_sacct_json, read_sacct_json
from goodput.training.measure.readers.sacct_text import looks_like_sacct, read_sacct
from goodput.training.measure.readers.sniff import looks_like_events, skip_reason
from goodput.training.measure.readers.straggler_trace import (
    looks_like_straggler_trace,
    read_straggler_trace,
)
from goodput.training.measure.readers.tensorboard import looks_like_tensorboard, read_tensorboard
from goodput.training.measure.readers.trainer_state import (
    looks_like_trainer_state,
    read_trainer_state,
)
from goodput.training.measure.readers.wandb import looks_like_wandb, read_wandb
from goodput.training.measure.readers.wandb_summary import (
    looks_like_wandb_summary,
    read_wandb_summary,
)
from goodput.training.measure.readers.whole import whole

CLOCK_AGREEMENT_NS: Final = 1_000_000
"""Processes of one boot whose clock offsets agree to this are left alone."""


class Source(Protocol):
    """One file being read."""

    path: Path

    def poll(self) -> bool:
        """Read what is new; return whether there was anything."""
        ...

    def finish(self) -> tuple[Note, ...]:
        """Return what was wrong so far."""
        ...

    def logs(self) -> "list[Callable[[int], ProcessLog]]":
        """Return one builder per writer process; it takes a shift of all times, ns."""
        ...

    def clocks(self) -> list[tuple[str, int, int]]:
        """Return (boot id, first monotonic ns, offset ns) per writer, in the order of `logs`."""
        ...

    def covers(self) -> frozenset[str]:
        """Return absolute paths of files that this one stands for: they need not be read."""
        ...


FORMATS: Final[tuple[tuple[Callable[[Path, bytes], bool], Callable[[Path, str], Source]], ...]] = (
    (looks_compacted, CompactedFile),
    (looks_like_events, EventFile),
    (looks_like_tensorboard, whole(read_tensorboard)),
    (looks_like_wandb, whole(read_wandb)),
    (looks_like_wandb_summary, whole(read_wandb_summary)),
    (looks_like_lightning_csv, whole(read_lightning_csv)),
    (looks_like_trainer_state, whole(read_trainer_state)),
    (looks_like_sacct, whole(read_sacct)),
    (looks_like_sacct_json, whole(read_sacct_json)),
    (looks_like_kubernetes, whole(read_kubernetes)),
    (looks_like_goodput_entries, whole(read_goodput_entries)),
    (looks_like_straggler_trace, whole(read_straggler_trace)),
    (looks_like_log, open_log),
)
"""(detector on path and first bytes, opener), tried in order."""


class Folder:
    """Files and folders being read, again and again while they grow.

    Args:
        paths: event files, or folders that are searched for them at any depth.
        profiles: users' own logs, tried before every other format.
    """

    def __init__(self, paths: Sequence[Path | str], profiles: Sequence[Profile] = ()) -> None:
        self._paths = [Path(path) for path in paths]
        self._profiles = dict.fromkeys(profiles, 0)
        """How many files are read with each."""
        self._sources: dict[Path, Source] = {}
        self._ignored: dict[Path, Note] = {}
        self._gone: dict[Path, Note] = {}
        self._held: set[Path] = set()
        """Files that another one stands for, as of the last poll: not read at all."""

    def poll(self) -> bool:
        """Read everything that is new, in new files as well; return whether there was anything.

        Raises:
            DataError: a path does not exist or cannot be opened.
            ConfigError: a pattern of a profile takes too long on a line.
        """
        with bounded(*(profile.tries for profile in self._profiles)):
            return self._poll_all()

    def _poll_all(self) -> bool:
        grew = False
        for path in self._paths:
            for file in _files(path):
                if file in self._sources or (file in self._ignored and _size(file) == 0):
                    continue
                self._open(file, asked_for=file == path)
        # A compacted run may stand for event files, which then need not be read.
        first = [path for path, s in self._sources.items() if isinstance(s, CompactedFile)]
        for path in first:
            grew = self._poll(path) or grew
        covered = frozenset[str]().union(*(self._sources[path].covers() for path in first))
        self._held = {p for p in self._sources if covered and normpath(p.absolute()) in covered}
        for path in [p for p in self._sources if p not in self._held and p not in first]:
            grew = self._poll(path) or grew
        return grew

    def _poll(self, path: Path) -> bool:
        try:
            return self._sources[path].poll()
        except OSError as error:
            self._gone[path] = Note(
                level="warning",
                text=f"cannot be read any more ({error.strerror}); what was read is used",
                where=printable(path),
            )
            return False

    def log(self) -> EventLog:
        """Return everything read so far.

        Raises:
            DataError: nothing at all can be read; the message says what was looked for.
        """
        sources = [s for p, s in sorted(self._sources.items()) if p not in self._held]
        notes = [note for source in sources for note in source.finish()]
        notes.extend([*self._ignored.values(), *self._gone.values()])
        processes, twins = without_twins(_aligned(sources))
        processes, joined = join(processes)
        notes.extend([*twins, *joined])
        notes[:0] = self._unused_profiles()
        if not processes:
            raise DataError(
                "no goodput events found",
                path=", ".join(str(path) for path in self._paths),
                remedy=_reasons(notes)
                + "Event files are named events-*.jsonl and begin with a `process` record; "
                "`goodput train record -- python train.py` writes them",
            )
        return EventLog(
            processes=tuple(processes),
            notes=tuple(notes),
            sources=tuple(sorted({process.path for process in processes})),
        )

    def _unused_profiles(self) -> list[Note]:
        return [
            Note(level="warning", text="no file is of this profile", where=printable(profile.path))
            for profile, files in self._profiles.items()
            if not files
        ]

    def _open_profiled(self, file: Path) -> bool:
        """Open a file with the first profile that it is of; return whether there is one."""
        for profile in self._profiles:
            log = open_profiled(file, printable(file), profile)
            if log is not None:
                self._profiles[profile] += 1
                self._sources[file] = log
                self._ignored.pop(file, None)
                return True
        return False

    def _open(self, file: Path, *, asked_for: bool) -> None:
        if self._open_profiled(file):
            return
        try:
            with file.open("rb") as opened:
                head = opened.read(4096)
        except OSError as error:
            if asked_for:
                raise DataError(f"cannot be read ({error.strerror})", path=file) from error
            self._ignored[file] = Note(
                level="warning",
                text=f"cannot be read ({error.strerror}); ignored",
                where=printable(file),
            )
            return
        for detects, opener in FORMATS:
            if detects(file, head):
                self._sources[file] = opener(file, printable(file))
                self._ignored.pop(file, None)
                return
        level = "warning" if asked_for else "info"
        self._ignored[file] = Note(
            level="warning" if level == "warning" else "info",
            text=skip_reason(file, head),
            where=printable(file),
        )


def read(paths: Sequence[Path | str], profiles: Sequence[Profile] = ()) -> EventLog:
    """Return the events of files and folders.

    Args:
        paths: event files, or folders that are searched for them at any depth.
        profiles: users' own logs, tried before every other format.

    Raises:
        DataError: a path does not exist, or holds no event at all.
        ConfigError: a pattern of a profile takes too long on a line.
    """
    folder = Folder(paths, profiles)
    folder.poll()
    return folder.log()


def without_twins(processes: Sequence[ProcessLog]) -> tuple[list[ProcessLog], list[Note]]:
    """Return the processes without copies of the same file, the longest of each, and notes."""
    best: dict[object, ProcessLog] = {}
    notes: list[Note] = []
    for process in processes:
        header = process.header
        key: object = (header.host, header.boot, header.pid, header.rank, header.t, header.m)
        if not header.pid:
            key = process.path, header.host, header.t
        known = best.get(key)
        if known is None:
            best[key] = process
            continue
        kept, spare = process, known
        if len_of(known) >= len_of(process):
            kept, spare = known, process
        if not contains(kept, spare):  # parts of one log, each with its header
            best[key, process.path] = process
            continue
        best[key] = kept
        notes.append(
            Note(
                level="warning",
                text=f"a copy of {best[key].path}; counted once",
                where=spare.path,
            )
        )
    return list(best.values()), notes


def len_of(process: ProcessLog) -> int:
    """Return the number of records of a process."""
    bulk = process.steps.n.size + process.ends.n.size + process.spans.name.size
    return bulk + len(process.events) + len(process.windows)


def contains(process: ProcessLog, other: ProcessLog) -> bool:
    """Return whether all that `other` recorded is in `process` as well."""
    columns = (
        (process.steps.at_ns, other.steps.at_ns),
        (process.ends.at_ns, other.ends.at_ns),
        (process.spans.at_ns, other.spans.at_ns),
    )
    return all(bool(np.isin(theirs, mine).all()) for mine, theirs in columns) and all(
        event in process.events for event in other.events
    )


def printable(path: Path) -> str:
    """Return a path as text that can be encoded, whatever bytes its name holds."""
    return str(path).encode("utf-8", "backslashreplace").decode()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1


def _files(path: Path) -> list[Path]:
    """The files below a path, sorted."""
    if path.is_dir():
        return sorted(p for p in path.rglob("*") if p.is_file() and not _hidden(p, path))
    if not path.exists():
        raise DataError(
            "no such file or folder",
            path=path,
            remedy="Give the folder that holds the run, by default goodput-runs/<job>",
        )
    return [path]


def _hidden(path: Path, root: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(root).parts)


def _aligned(sources: Sequence[Source]) -> list[ProcessLog]:
    """Build the process logs, giving all processes of one kernel boot one clock offset."""
    reference: dict[str, tuple[int, int]] = {}
    for source in sources:
        for boot, first_m, offset in source.clocks():
            if boot and offset:
                known = reference.get(boot)
                if known is None or first_m < known[0]:
                    reference[boot] = (first_m, offset)
    built: list[ProcessLog] = []
    for source in sources:
        for build, (boot, _, offset) in zip(source.logs(), source.clocks(), strict=True):
            shift = reference[boot][1] - offset if boot in reference and offset else 0
            built.append(build(shift if abs(shift) > CLOCK_AGREEMENT_NS else 0))
    built.sort(key=lambda p: (p.at_ns(p.header), p.header.rank, p.header.pid, p.path))
    return built


def _reasons(notes: Sequence[Note]) -> str:
    shown = [f"{note.where}: {note.text}" for note in notes[:3]]
    return "; ".join(shown) + ". " if shown else ""


__all__ = ["FORMATS", "Folder", "Source", "read"]
