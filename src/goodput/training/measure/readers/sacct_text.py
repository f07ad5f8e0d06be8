"""`sacct -P` and `sacct -p` dumps with any set of columns, their header first."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from goodput.core.notes import Note
from goodput.training.measure.readers.logs.clock import iso_ns
from goodput.training.measure.readers.logs.story import UNKNOWN
from goodput.training.measure.readers.logs.tell import ZONELESS
from goodput.training.measure.readers.slurm_jobs import (
    Run,
    chips_in,
    nodes_in,
    process_logs_of,
)
from goodput.training.measure.readers.whole import Told, unreadable

WRITER: Final = "sacct reader"
_NEEDED: Final = ("State", "Start")
_ID: Final = re.compile(r"^(\d+(?:_\d+|\+\d+)?)$")
_STEP: Final = re.compile(r"^\d+(?:_(?:\d+|\[[^\]]*\]))?(?:\+\d+)?\.")
_ODD: Final = "lines with another number of columns; skipped"
_NO_SUBMIT: Final = "no Submit column: time in the queue is not known"
_NO_CHIPS: Final = "no AllocTRES or ReqTRES column: chips are not known, each node counts as one"


def looks_like_sacct(path: Path, head: bytes) -> bool:
    """Return whether a file begins with the header of a parsable sacct dump that tells times."""
    del path
    columns = _columns(head.split(b"\n", 1)[0])
    return bool({"JobID", "JobIDRaw"} & set(columns)) and "State" in columns


def read_sacct(path: Path, name: str) -> Told:
    """Return the jobs of a dump."""
    first, *lines = path.read_bytes().split(b"\n")
    columns = _columns(first)
    missing = [column for column in _NEEDED if column not in columns]
    if missing:
        return unreadable(
            name,
            f"sacct dump without {' and '.join(missing)}; ignored: use sacct -D -P "
            "--format=JobID,JobName,Submit,Eligible,Start,End,State,ExitCode,AllocTRES,NodeList",
        )
    notes: dict[str, int] = {}
    runs = _runs(columns, lines, notes)
    if "Submit" not in columns:
        notes[_NO_SUBMIT] = 1
    if "AllocTRES" not in columns and "ReqTRES" not in columns:
        notes[_NO_CHIPS] = 1
    logs = process_logs_of(runs, name=name, notes=notes, writer=WRITER)
    notes[ZONELESS] = 1
    said = tuple(Note(level="info", text=t, where=name, count=n) for t, n in notes.items())
    return Told(logs, said)


def _columns(header: bytes) -> list[str]:
    text = header.decode(errors="replace").strip()
    return [part.strip() for part in text.removesuffix("|").split("|")] if "|" in text else []


def _runs(columns: Sequence[str], lines: Sequence[bytes], notes: dict[str, int]) -> list[Run]:
    """Job lines; those of steps (`123.batch`) belong to them and are left out."""
    index = {column: i for i, column in enumerate(columns)}
    width = len(columns)
    runs = []
    for line in lines:
        if not line.strip():
            continue
        cells = line.decode(errors="replace").rstrip("\r").split("|")
        if len(cells) == width + 1 and not cells[-1]:
            cells.pop()
        if len(cells) != width:
            notes[_ODD] = notes.get(_ODD, 0) + 1
            continue

        def cell(name: str, cells: list[str] = cells) -> str:
            return cells[index[name]].strip() if name in index else ""

        if not _STEP.match(cell("JobID") or cell("JobIDRaw")):
            runs.append(_run(cell))
    return runs


def _run(cell: Callable[[str], str]) -> Run:
    job_id = cell("JobID") or cell("JobIDRaw")
    tres = cell("AllocTRES") or cell("ReqTRES")
    requested = cell("ReqTRES")
    code, _, signal = cell("ExitCode").partition(":")
    return Run(
        job_id=job_id if _ID.match(job_id) else "",
        name=cell("JobName"),
        state=cell("State").split(" ")[0].rstrip("+").upper(),
        submitted_at_ns=_at(cell("Submit")),
        eligible_at_ns=_at(cell("Eligible")),
        started_at_ns=_at(cell("Start")),
        ended_at_ns=_at(cell("End")),
        exit_code=int(code[:6]) if code.isdigit() else -1,
        signal=int(signal[:4]) if signal.isdigit() else 0,
        chips=chips_in(tres) or chips_in(requested),
        nodes=_count(cell("NNodes")) or _count(cell("AllocNodes")) or nodes_in(tres),
        node_list=cell("NodeList").replace("None assigned", ""),
        reason=cell("Reason"),
        restarts=_count(cell("Restarts")),
    )


def _at(stamp: str) -> int:
    return iso_ns(stamp.encode()) if stamp[:1].isdigit() else UNKNOWN


def _count(text: str) -> int:
    return int(text[:9]) if text.isdigit() else 0
