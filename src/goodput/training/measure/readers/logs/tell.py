"""From what a file tells to process logs and notes: the same for text logs and for other files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from goodput.core.notes import Note
from goodput.training.measure.eventlog import ProcessLog
from goodput.training.measure.readers.logs.story import (
    Launch,
    Placed,
    anchored,
    length_ns,
    place,
    process_log,
)

INFERRED: Final = "times of lines without a stamp, inferred from durations and the stamps around"
ADRIFT: Final = "no line carries a time: the file's own time is taken as the end"
ZONELESS: Final = "stamps without a time zone are taken as UTC"

_ENDINGS: Final = frozenset(
    {".csv", ".err", ".gz", ".json", ".jsonl", ".log", ".out", ".parquet"}
    | {".txt", ".wandb", ".xz", ".zst"}
)


def place_all(launches: list[Launch], *, latest_ns: int) -> list[tuple[Launch, Placed]]:
    """Give all launches their place in time, one after the other.

    Args:
        launches: as read, in file order; those without content are left out.
        latest_ns: the file's own time, Unix ns: the end, if nothing carries a time.
    """
    told = [launch for launch in launches if not launch.empty]
    adrift = sum(length_ns(launch) for launch in told if not anchored(launch))
    origin = latest_ns - adrift
    placed: list[tuple[Launch, Placed]] = []
    for launch in told:
        placed.append((launch, place(launch, origin_ns=origin)))
        origin = placed[-1][1].last_at_ns
    return placed


def job_named_after(path: Path) -> str:
    """Return a job's name after its file: the name without its endings."""
    while path.suffix in _ENDINGS and path.stem:
        path = path.with_suffix("")
    return path.name


def process_logs(
    placed: list[tuple[Launch, Placed]],
    *,
    path: Path,
    name: str,
    job: str = "",
    aliases: tuple[str, ...] = (),
    writer: str = "log reader",
) -> list[ProcessLog]:
    """Return one process log per launch.

    Args:
        placed: launches with their instants.
        path: the file.
        name: how to call it in notes.
        job: name of the job; empty = the file's name without endings such as .log or .out.gz.
        aliases: names that schedulers give to the job.
        writer: which reader read it.
    """
    job = job or job_named_after(path)
    return [
        process_log(
            launch,
            where,
            job=job,
            path=name,
            number=number,
            attempt=f"{path.name}#{number}" if len(placed) > 1 else path.name,
            aliases=aliases,
            writer=writer,
        )
        for number, (launch, where) in enumerate(placed, start=1)
    ]


def notes_about(
    placed: list[tuple[Launch, Placed]], counted: Mapping[str, int], *, name: str, zoneless: bool
) -> tuple[Note, ...]:
    """Return what the reader of a report should know about one file.

    Args:
        placed: its launches.
        counted: what the reader noted, with how often.
        name: how to call the file.
        zoneless: its stamps carry no time zone.
    """
    notes = dict(counted)
    inferred = sum(where.inferred for _, where in placed)
    if inferred:
        notes[INFERRED] = inferred
    if placed and not any(anchored(launch) for launch, _ in placed):
        notes[ADRIFT] = 1
    elif placed and zoneless:
        notes[ZONELESS] = 1
    return tuple(
        Note(level="info", text=text, where=name, count=count) for text, count in notes.items()
    )
