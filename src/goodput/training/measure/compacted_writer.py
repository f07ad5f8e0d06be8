"""Writes a compacted run (docs/formats/compacted.md), one event file after the other.

Rows wait in DuckDB, on disk when they are many: memory is bounded by the largest event file.
readers/packed.py reads what is written here.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import duckdb
import msgspec
import numpy as np

from goodput import __version__
from goodput.core.events import Event
from goodput.training.measure.eventlog import ProcessLog
from goodput.training.measure.readers.packed import (
    CONTENTS_KEY,
    NO_PROGRESS_BAR,
    PACKED_SCHEMA,
    STEP_DEFAULTS,
    Contents,
    CoveredFile,
    PackedProcess,
)

MEMORY_LIMIT: Final = "256MB"
"""Of DuckDB, beside the columns of one event file (assumed)."""
ROW_GROUP: Final = 122_880
"""Rows of a row group: DuckDB's own, 60 vectors of 2,048."""
DICTIONARY_VALUES: Final = 64
"""Columns with more distinct values are stored as differences: for rising step numbers and times
that is 0 to 4 bytes a value where a dictionary takes 8 (measured, docs/formats/compacted.md)."""

_TABLE: Final = """
CREATE TABLE rows (
    kind VARCHAR, process INTEGER, rank INTEGER, at_ns BIGINT, n BIGINT, duration_ns BIGINT,
    covers BIGINT, comm_ns BIGINT, shape INTEGER, label INTEGER, background BOOLEAN, text VARCHAR
)"""


class CompactedWriter:
    """Collects event files and writes them as one Parquet file.

    Args:
        scratch: an empty folder, on a disk with room for what does not fit in memory.
    """

    def __init__(self, scratch: Path) -> None:
        # One thread: the same events give the same bytes.
        settings = {
            "memory_limit": MEMORY_LIMIT,
            "threads": "1",
            "temp_directory": str(scratch),
        }
        self._connection: Any = duckdb.connect(":memory:", config=settings)
        self._connection.execute(NO_PROGRESS_BAR)
        self._connection.execute(_TABLE)
        self._files: list[CoveredFile] = []
        self._processes: list[PackedProcess] = []

    def add(self, file: CoveredFile, logs: Sequence[ProcessLog]) -> None:
        """Take in one event file.

        Args:
            file: its name, size and notes.
            logs: its writer processes, with times not shifted.
        """
        for log in logs:
            self._add_rows(log)
            rows = {
                "step": log.steps.n.size,
                "step_end": log.ends.n.size,
                "span": log.spans.name.size,
                "window": len(log.windows),
                "event": len(log.events),
            }
            self._processes.append(
                PackedProcess(
                    file=len(self._files),
                    header=log.header,
                    offset_ns=log.offset_ns,
                    last_at_ns=log.last_at_ns,
                    labels=log.labels,
                    shapes=log.shapes,
                    columns=tuple(n for n in STEP_DEFAULTS if getattr(log.steps, n) is not None),
                    rows={kind: int(count) for kind, count in rows.items() if count},
                )
            )
        self._files.append(file)

    def write(self, path: Path) -> Contents:
        """Write everything to a new file and return its table of contents."""
        contents = Contents(
            schema=PACKED_SCHEMA,
            writer=f"goodput-ml {__version__}",
            files=tuple(self._files),
            processes=tuple(self._processes),
        )
        text = _quoted(msgspec.json.encode(contents).decode())
        self._connection.execute(
            f"COPY rows TO {_quoted(str(path))} (FORMAT parquet, COMPRESSION zstd, "
            f"PARQUET_VERSION V2, ROW_GROUP_SIZE {ROW_GROUP}, "
            f"DICTIONARY_SIZE_LIMIT {DICTIONARY_VALUES}, KV_METADATA {{{CONTENTS_KEY}: {text}}})"
        )
        return contents

    def close(self) -> None:
        """Let go of everything; the caller removes the scratch folder."""
        self._connection.close()

    def _add_rows(self, log: ProcessLog) -> None:
        steps, ends, spans = log.steps, log.ends, log.spans
        optional = {name: getattr(steps, name) for name in STEP_DEFAULTS}
        present = {name: column for name, column in optional.items() if column is not None}
        self._insert(log, "step", {"n": steps.n, "at_ns": steps.at_ns, **present})
        self._insert(log, "step_end", {"n": ends.n, "at_ns": ends.at_ns, "comm_ns": ends.comm_ns})
        self._insert(
            log,
            "span",
            {
                "label": spans.name,
                "at_ns": spans.at_ns,
                "duration_ns": spans.duration_ns,
                "background": spans.background,
            },
        )
        self._insert(log, "window", _texts(log, log.windows))
        self._insert(log, "event", _texts(log, log.events))

    def _insert(self, log: ProcessLog, kind: str, columns: dict[str, Any]) -> None:
        """Append rows of one kind; NULL stands for the default (readers/packed.py)."""
        if not columns["at_ns"].size:
            return
        missing = {**STEP_DEFAULTS, **({"comm_ns": -1} if kind == "step_end" else {})}
        values = ", ".join(
            f"nullif({name}, {missing[name]})" if name in missing else name for name in columns
        )
        self._connection.register("part", columns)
        self._connection.execute(
            f"INSERT INTO rows (kind, process, rank, {', '.join(columns)}) "  # noqa: S608 (ours)
            f"SELECT ?, ?, ?, {values} FROM part",
            [kind, len(self._processes), log.header.rank],
        )
        self._connection.unregister("part")


def _texts(log: ProcessLog, events: Sequence[Event]) -> dict[str, Any]:
    """Events as their JSON, with the corrected time of each."""
    texts = np.empty(len(events), dtype=object)
    texts[:] = [msgspec.json.encode(event).decode() for event in events]
    at_ns = np.fromiter((log.at_ns(event) for event in events), np.int64, count=len(events))
    return {"at_ns": at_ns, "text": texts}


def _quoted(text: str) -> str:
    """A text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"
