"""`sacct --json` dumps, of Slurm's data parsers from v0.0.38 (numbers) to v0.0.4x (set/number)."""

from pathlib import Path
from typing import Final

import msgspec

from goodput.core.notes import Note
from goodput.training.measure.readers.logs.story import NS, UNKNOWN
from goodput.training.measure.readers.slurm_jobs import Run, process_logs_of
from goodput.training.measure.readers.whole import Told, unreadable

WRITER: Final = "sacct --json reader"
_ODD: Final = "entries that are no jobs; skipped"

_ZERO: Final = (
    "contradiction: jobs that FAILED with exit code 0 (Slurm 22.05 writes 0 for every job); it "
    "is taken as not known"
)


class _Dump(msgspec.Struct):
    jobs: list[object]


def looks_like_sacct_json(path: Path, head: bytes) -> bool:
    """Return whether a file begins like Slurm's JSON with jobs."""
    del path
    if head.lstrip()[:1] != b"{" or b'"jobs"' not in head:
        return False
    return any(word in head for word in (b'"Slurm"', b'"slurm"', b'"allocation_nodes"'))


def read_sacct_json(path: Path, name: str) -> Told:
    """Return the jobs of a dump."""
    try:
        dump = msgspec.json.decode(path.read_bytes(), type=_Dump)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return unreadable(name, f"not a whole `sacct --json` dump ({error}); ignored")
    notes: dict[str, int] = {}
    runs = []
    for job in dump.jobs:
        if isinstance(job, dict) and "job_id" in job and isinstance(job.get("time"), dict):
            run = _run(job)
            if run.state == "FAILED" and run.exit_code == 0 and not run.signal:
                notes[_ZERO] = notes.get(_ZERO, 0) + 1
                run = run._replace(exit_code=-1)
            runs.append(run)
        else:
            notes[_ODD] = notes.get(_ODD, 0) + 1
    logs = process_logs_of(runs, name=name, notes=notes, writer=WRITER)
    said = tuple(Note(level="info", text=t, where=name, count=n) for t, n in notes.items())
    return Told(logs, said)


def _run(job: dict[object, object]) -> Run:
    tres = _at(job, "tres", "allocated") or _at(job, "tres", "requested")
    task = _number(_at(job, "array", "task_id"))
    array = _number(_at(job, "array", "job_id"))
    number = _number(job["job_id"])
    job_id = f"{array}_{task}" if array > 0 and task >= 0 else str(number)
    return Run(
        job_id=job_id if number > 0 else "",
        name=str(job.get("name") or ""),
        state=_word(_at(job, "state", "current")),
        submitted_at_ns=_instant(_at(job, "time", "submission")),
        eligible_at_ns=_instant(_at(job, "time", "eligible")),
        started_at_ns=_instant(_at(job, "time", "start")),
        ended_at_ns=_instant(_at(job, "time", "end")),
        exit_code=_number(_at(job, "exit_code", "return_code")),
        signal=_signal(job),
        chips=_count(tres, "gres") or _count(_at(job, "tres", "requested"), "gres"),
        nodes=_count(tres, "node"),
        node_list=str(job.get("nodes") or "").replace("None assigned", ""),
        reason=_word(_at(job, "state", "reason")),
        restarts=max(_number(job.get("restart_cnt")), 0),
    )


def _at(value: object, *keys: str) -> object:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _number(value: object) -> int:
    """A number, plain or as {set, infinite, number}; -1 = not given."""
    if isinstance(value, dict):
        value = value.get("number") if value.get("set", True) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return -1
    return int(value) if abs(value) < 2**53 else -1


def _instant(value: object) -> int:
    seconds = _number(value)
    return seconds * NS if 0 < seconds < 2**32 - 2 else UNKNOWN


def _word(value: object) -> str:
    """A state or reason: a word, or a list whose first word is the state."""
    if isinstance(value, list):
        value = value[0] if value else ""
    return str(value or "").split(" ")[0].upper()


def _signal(job: dict[object, object]) -> int:
    signal = _at(job, "exit_code", "signal")
    number = _number(_at(signal, "id"))
    if number < 0:
        number = _number(_at(signal, "signal_id"))
    return number if 0 < number < 128 else 0


def _count(tres: object, kind: str) -> int:
    """Resources of a kind: `gpu` of generic ones, without types that only split it up."""
    if not isinstance(tres, list):
        return 0
    typed = plain = 0
    for entry in tres:
        if not isinstance(entry, dict) or entry.get("type") != kind:
            continue
        name = str(entry.get("name") or "")
        count = max(_number(entry.get("count")), 0)
        if kind == "gres" and name.startswith("gpu:"):
            typed += count
        elif kind != "gres" or name == "gpu":
            plain += count
    return plain or typed
