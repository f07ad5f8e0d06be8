"""What is inside a compacted run: table of contents and columns (docs/formats/compacted.md).

The table of contents is JSON in the Parquet footer; the rows are sorted by process, so that each
process is a slice. ../compacted_writer.py writes what this reads.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import duckdb
import msgspec
import numpy as np

from goodput.core.events import AnyEvent, Event, Process, Window
from goodput.core.notes import Note
from goodput.core.timeline import Ints, as_ints
from goodput.training.measure.eventlog import EndColumns, Label, SpanColumns, StepColumns

PACKED_MAJOR: Final = 1
PACKED_SCHEMA: Final = f"goodput.compacted/{PACKED_MAJOR}.0"
CONTENTS_KEY: Final = "goodput"
"""Key of the table of contents in the Parquet footer."""

KINDS: Final = ("step", "step_end", "span", "window", "event")
"""Values of the column `kind`, in the order in which a process's rows follow each other."""
STEP_DEFAULTS: Final = {"duration_ns": -1, "covers": 0, "comm_ns": 0, "shape": 0}
"""What NULL stands for in the columns that a process's steps may all lack."""

NO_PROGRESS_BAR: Final = "SET enable_progress_bar = false"
"""DuckDB draws a bar of its own when a query takes long."""
_decoder: Final = msgspec.json.Decoder(AnyEvent)


class CoveredFile(msgspec.Struct, frozen=True):
    """One event file that a compacted run stands for."""

    name: str
    """Path relative to the folder of the compacted run, with forward slashes."""
    size: int
    """Bytes that it had when it was read."""
    notes: tuple[Note, ...] = ()
    """What was wrong with it; `where` lacks the file's path."""


class PackedProcess(msgspec.Struct, frozen=True):
    """One writer process of a covered file, without its rows."""

    file: int
    """Index into Contents.files."""
    header: Process
    offset_ns: int
    last_at_ns: int
    labels: tuple[Label, ...]
    """Span names by the column `label`."""
    shapes: tuple[str, ...]
    """Step shapes by the column `shape`."""
    columns: tuple[str, ...]
    """Which of STEP_DEFAULTS any of its steps has a value for."""
    rows: dict[str, int]
    """Number of rows of each kind."""


class Contents(msgspec.Struct, frozen=True):
    """The table of contents of a compacted run."""

    schema: str
    writer: str
    files: tuple[CoveredFile, ...]
    processes: tuple[PackedProcess, ...]

    def total(self, kind: str) -> int:
        """Return the number of rows of a kind."""
        return sum(process.rows.get(kind, 0) for process in self.processes)


class PackedRows(NamedTuple):
    """The rows of one process; times are not shifted yet."""

    steps: StepColumns
    ends: EndColumns
    spans: SpanColumns
    windows: tuple[Window, ...]
    events: tuple[Event, ...]
    unknown: int
    """Events that this version cannot read."""


class BadPackError(Exception):
    """A file that claims to be a compacted run is none that can be read; says why."""


def load(path: Path) -> tuple[Contents, list[PackedRows]]:
    """Return the table of contents of a compacted run and the rows of each of its processes.

    Args:
        path: the file.

    Raises:
        BadPackError: it is damaged, or its schema is newer than this version reads.
    """
    try:
        with duckdb.connect(":memory:") as connection:
            connection.execute(NO_PROGRESS_BAR)
            contents = _contents(connection, path)
            return contents, list(_rows(connection, path, contents))
    except (duckdb.Error, OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise BadPackError(f"cannot be read as a compacted run ({reason}); ignored") from error


def _contents(connection: Any, path: Path) -> Contents:
    query = "SELECT value FROM parquet_kv_metadata(?) WHERE key = ?"
    found = connection.execute(query, [str(path), CONTENTS_KEY.encode()]).fetchone()
    if found is None:
        raise BadPackError("has no table of contents, so it is no compacted run; ignored")
    head = msgspec.json.decode(found[0], type=dict[str, object]).get("schema")
    name, _, version = str(head).partition("/")
    major = version.partition(".")[0]
    if name != "goodput.compacted" or not major.isdigit() or int(major) > PACKED_MAJOR:
        raise BadPackError(
            f"schema {head!r} is newer than this goodput reads ({PACKED_SCHEMA}); "
            "file ignored, upgrade goodput-ml to read it"
        )
    try:
        return msgspec.json.decode(found[0], type=Contents)
    except msgspec.ValidationError:  # a later minor version may know more of a process
        plain = msgspec.json.decode(found[0], type=dict[str, Any])
        for process in plain.get("processes", []):
            known = {"k", *Process.__struct_fields__}
            process["header"] = {k: v for k, v in process["header"].items() if k in known}
        return msgspec.convert(plain, type=Contents)


def _rows(connection: Any, path: Path, contents: Contents) -> Iterator[PackedRows]:
    """Fetch every column that holds anything, once, and cut it by process."""
    used = {name for process in contents.processes for name in process.columns}
    optional = {name: default for name, default in STEP_DEFAULTS.items() if name in used}
    table = _Table(connection, path, contents)
    steps = table.ints("step", {"n": None, "at_ns": None, **optional})
    ends = table.ints("step_end", {"n": None, "at_ns": None, "comm_ns": -1})
    spans = table.ints("span", {"label": None, "at_ns": None, "duration_ns": -1, "background": 0})
    windows, events = table.texts("window"), table.texts("event")
    at = dict.fromkeys(KINDS, 0)
    for process in contents.processes:
        cut = {kind: slice(at[kind], at[kind] + process.rows.get(kind, 0)) for kind in KINDS}
        at = {kind: piece.stop for kind, piece in cut.items()}
        rows = cut["step"]
        some, unknown = _decoded(windows[cut["window"]])
        others, unknown_too = _decoded(events[cut["event"]])
        yield PackedRows(
            steps=StepColumns(
                steps["n"][rows],
                steps["at_ns"][rows],
                *(steps[k][rows] if k in process.columns else None for k in STEP_DEFAULTS),
            ),
            ends=EndColumns(*(column[cut["step_end"]] for column in ends.values())),
            spans=SpanColumns(*(column[cut["span"]] for column in spans.values())),
            windows=tuple(e for e in some if isinstance(e, Window)),
            events=tuple(others),
            unknown=unknown + unknown_too,
        )


class _Table:
    """Columns of one kind of row, in file order; the number of rows is checked."""

    def __init__(self, connection: Any, path: Path, contents: Contents) -> None:
        self._connection = connection
        self._path = path
        self._contents = contents

    def ints(self, kind: str, columns: dict[str, int | None]) -> dict[str, Ints]:
        """Return integer columns; a default stands in for NULL."""
        if not self._contents.total(kind):
            return {name: as_ints([]) for name in columns}
        # One column at a time: DuckDB holds the result beside the array that it becomes.
        return {
            name: as_ints(
                self._column(
                    kind,
                    f"{name}::BIGINT"
                    if default is None
                    else f"coalesce({name}::BIGINT, {default})",
                )
            )
            for name, default in columns.items()
        }

    def texts(self, kind: str) -> list[str]:
        """Return the JSON of events."""
        if not self._contents.total(kind):
            return []
        texts: list[str] = self._column(kind, "text").tolist()
        return texts

    def _column(self, kind: str, expression: str) -> Any:
        query = f"SELECT {expression} AS v FROM read_parquet(?) WHERE kind = ?"  # noqa: S608 (ours)
        values = self._connection.execute(query, [str(self._path), kind]).fetchnumpy()["v"]
        expected = self._contents.total(kind)
        if values.shape[0] != expected or np.ma.isMaskedArray(values):
            raise BadPackError(
                f"holds {values.shape[0]} rows of kind {kind!r} where its contents say {expected}; "
                "ignored"
            )
        return values


def _decoded(texts: list[str]) -> tuple[list[Event], int]:
    """Return the events of their JSON texts, and how many this version does not know."""
    if not texts:
        return [], 0
    try:
        return list(_decoder.decode_lines("\n".join(texts))), 0
    except msgspec.DecodeError:
        events: list[Event] = []
        for text in texts:
            try:
                events.append(_decoder.decode(text))
            except msgspec.DecodeError:
                continue
        return events, len(texts) - len(events)
