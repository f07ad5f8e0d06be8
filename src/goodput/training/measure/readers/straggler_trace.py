"""Traces of ByteDance's StragglerAnalysis (Parquet): operations of sampled steps on every rank.

Work is compute; what the collectives and pipeline transfers of a step take contains waiting. Times
count from the start of each step, so steps are put one after the other.
"""

import re
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from goodput.core.events import Process
from goodput.core.notes import Note
from goodput.core.timeline import Ints, as_ints
from goodput.training.measure.eventlog import NO_ENDS, NO_SPANS, ProcessLog, StepColumns
from goodput.training.measure.readers.logs.batch import LONGEST_S
from goodput.training.measure.readers.logs.story import NS
from goodput.training.measure.readers.whole import Told, unreadable

WRITER: Final = "straggler trace reader"
_COLUMNS: Final = frozenset({"rank", "step", "optype", "start_ts", "duration"})
_QUERY: Final = """
select step, rank, max(start_ts + duration), sum(duration) filter (
  where optype like '%compute%' or optype like 'optimizer%' or optype = 'gc'
)
from read_parquet(?) group by step, rank order by rank, step
"""
_SAMPLED: Final = (
    "times count from the start of each step and steps are sampled: they are put one after the "
    "other, ending at the file's own time; what lies between them is not in the file"
)
_BUBBLES: Final = (
    "what a rank does not compute is booked as communication: pipeline bubbles are in it, and "
    "uneven stages look like stragglers"
)
_WORLD: Final = re.compile(rb"^world_size: (\d{1,7})\s*$", re.MULTILINE)


def looks_like_straggler_trace(path: Path, head: bytes) -> bool:
    """Return whether a file is a Parquet table with the columns of such a trace."""
    return head[:4] == b"PAR1" and _names(path) >= _COLUMNS


def read_straggler_trace(path: Path, name: str) -> Told:
    """Return one process per rank, with the work of each step."""
    import duckdb  # 70 MB: only for files that need it

    try:
        with duckdb.connect() as connection:
            rows = connection.execute(
                _QUERY,
                [str(path)],
            ).fetchnumpy()
    except duckdb.Error as error:
        return unreadable(name, f"trace cannot be read ({str(error).splitlines()[0]}); ignored")
    step, rank, end_s, work_s = (np.ma.filled(column, 0) for column in rows.values())
    if not step.size:
        return unreadable(name, "trace without rows; ignored")
    steps, row = np.unique(step, return_inverse=True)
    length_s = np.zeros(steps.size)
    np.maximum.at(length_s, row, end_s)
    length = _ns(length_s)
    start = (
        path.stat().st_mtime_ns - int(length.sum()) + np.concatenate(([0], length.cumsum()[:-1]))
    )
    work = _ns(work_s)
    world = max(_world(path), int(rank.max()) + 1)
    job = path.name.removesuffix(".parquet").removeprefix("trace-")
    logs = tuple(
        _rank_log(int(r), job, world, name, (steps[at], start[at], length[at], work[rank == r]))
        for r in np.unique(rank)
        for at in [row[rank == r]]
    )
    return Told(
        logs,
        (
            Note(level="warning", text=_SAMPLED, where=name, count=int(steps.size)),
            Note(level="info", text=_BUBBLES, where=name),
        ),
    )


def _ns(seconds: npt.NDArray[np.float64]) -> Ints:
    """Durations as ns; what is no sensible number counts as 0."""
    sensible = (seconds >= 0) & (seconds <= LONGEST_S)
    return (np.where(sensible, seconds, 0.0).astype(np.float64) * NS).round().astype(np.int64)


def _rank_log(
    rank: int, job: str, world: int, path: str, columns: tuple[Ints, Ints, Ints, Ints]
) -> ProcessLog:
    n, start, length, work = (as_ints(column) for column in columns)
    begun = int(start[0])
    return ProcessLog(
        header=Process(
            t=begun,
            schema="goodput.events/1.0",
            job=job,
            rank=rank,
            world=world,
            attempt=job,
            host=f"{path}#{rank}",
            started=begun,
            writer=WRITER,
            origin="log",
        ),
        path=path,
        offset_ns=0,
        steps=StepColumns(n, start, length, np.ones_like(n), np.maximum(length - work, 0), None),
        ends=NO_ENDS,
        spans=NO_SPANS,
        labels=(),
        shapes=("",),
        windows=(),
        events=(),
        last_at_ns=int(start[-1] + length[-1]),
    )


def _world(path: Path) -> int:
    """Ranks as the trace's own meta file says; 0 = it is not there."""
    meta = path.with_name(path.name.replace("trace-", "meta-")).with_suffix(".yaml")
    try:
        found = _WORLD.search(meta.read_bytes()[:65536])
    except OSError:
        return 0
    return int(found[1]) if found is not None else 0


def _names(path: Path) -> frozenset[str]:
    import duckdb

    try:
        with duckdb.connect() as connection:
            rows = connection.execute("select name from parquet_schema(?)", [str(path)]).fetchall()
    except duckdb.Error:
        return frozenset()
    return frozenset(str(row[0]) for row in rows)
