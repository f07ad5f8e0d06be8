"""Paths in, the relation `jobs` out: the loaders that the report and the simulator share."""

import glob
import gzip
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from goodput.cluster.measure.fleet.layouts import layout_of, load_text
from goodput.cluster.measure.fleet.parquet import load_parquet
from goodput.cluster.measure.fleet.philly import load_philly, looks_like_philly
from goodput.cluster.measure.fleet.relation import prepare, settle
from goodput.core.errors import DataError
from goodput.core.notes import Note

if TYPE_CHECKING:
    import duckdb

HEAD_BYTES: Final = 64 << 10
_SHOWN: Final = 5
"""Ignored files of a folder that a note names."""


class JobTables(NamedTuple):
    """Job tables as one relation."""

    connection: "duckdb.DuckDBPyConnection"
    """Holds `jobs` (relation.COLUMNS) and `rejected` (path, row, problem)."""
    sources: tuple[str, ...]
    notes: tuple[Note, ...]


@contextmanager
def open_tables(paths: Sequence[str]) -> Iterator[JobTables]:
    """Read job tables and hold them as one relation until the context ends.

    Args:
        paths: files, folders, patterns, or URLs of Parquet files that DuckDB can open.

    Raises:
        DataError: a path is no job table, cannot be read, or lacks a column; none was found.
    """
    import duckdb

    with duckdb.connect(":memory:") as connection:
        prepare(connection)
        sources: list[str] = []
        notes: list[Note] = []
        for path in paths:
            for file, named in _files(path):
                found = _load(connection, file)
                if found is not None:
                    sources.append(file)
                    notes.extend(found)
                elif named:
                    raise DataError(
                        "not a job table",
                        path=file,
                        remedy="Known are Acme CSV, Philly JSON, sacct -P and Parquet "
                        "(docs/formats/job_table.md)",
                    )
                else:
                    notes.append(Note(level="info", text="not a job table; ignored", where=file))
        if not sources:
            raise DataError("no job table found", path=", ".join(paths)[:300])
        settle(connection)
        yield JobTables(connection, tuple(sources), _few(notes))


def looks_like_jobs(path: Path) -> bool:
    """Return whether a file is a job table, by its first bytes."""
    head = _head(str(path))
    if head.startswith(b"PAR1"):
        # Other Parquet files are others' business: the footer names the schema of ours.
        return b"goodput.jobs/" in _tail(path)
    text = head.decode(errors="replace")
    layout = layout_of(text.split("\n", 1)[0])
    if layout is not None:
        return layout[0].signs <= set(layout[1])
    return looks_like_philly(text)


def _files(path: str) -> Iterator[tuple[str, bool]]:
    """Yield the files of a path, and whether the user named each."""
    if "://" in path:
        yield path, True
        return
    if Path(path).is_dir():
        for file in sorted(Path(path).rglob("*")):
            if file.is_file():
                yield str(file), False
        return
    if not Path(path).exists() and glob.has_magic(path):
        matches = sorted(glob.glob(path, recursive=True))  # noqa: PTH207 - as a shell's
        if not matches:
            raise DataError("no file matches", path=path)
        for match in matches:
            if Path(match).is_file():
                yield match, True
        return
    yield path, True


def _load(connection: "duckdb.DuckDBPyConnection", path: str) -> tuple[Note, ...] | None:
    """Stage one file; None if it is no job table."""
    import duckdb

    try:
        if "://" in path or _head(path).startswith(b"PAR1"):
            load_parquet(connection, path)
            return ()
        head = _head(path).decode(errors="replace")
        layout = layout_of(head.split("\n", 1)[0])
        if layout is not None:
            return load_text(connection, path, *layout)
        if looks_like_philly(head):
            load_philly(connection, path)
            return ()
    except (duckdb.Error, OSError, EOFError) as error:
        problem = str(error).split("\n", 1)[0][:300]
        raise DataError(f"cannot be read as a job table: {problem}", path=path) from error
    return None


def _head(path: str) -> bytes:
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rb") as file:
        found: bytes = file.read(HEAD_BYTES)
    return found


def _tail(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - HEAD_BYTES))
        return file.read()


def _few(notes: Sequence[Note]) -> tuple[Note, ...]:
    ignored = [note for note in notes if note.text.endswith("ignored")]
    if len(ignored) <= _SHOWN:
        return tuple(notes)
    names = ", ".join(Path(note.where).name for note in ignored[:_SHOWN])
    rest = Note(
        level="info",
        text="not job tables; ignored",
        where=f"{names} and {len(ignored) - _SHOWN} more",
        count=len(ignored),
    )
    return (*(note for note in notes if note not in ignored), rest)
