"""Slurm accounting as launcher evidence: queue, chips, attempts, ends and causes of each job.

`sacct_text.py` and `sacct_json.py` turn a dump into `Run` records; this makes events of them.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from goodput.core.events import (
    Allocated,
    AttemptEnd,
    AttemptStart,
    Ended,
    Event,
    Process,
    Submitted,
)
from goodput.training.measure.eventlog import NO_ENDS, NO_SPANS, NO_STEPS, ProcessLog
from goodput.training.measure.readers.logs.story import UNKNOWN

CPU_ONLY: Final = "jobs without GPUs in AllocTRES or ReqTRES: each node is counted as one chip"
EARLIER: Final = "jobs were restarted, but their earlier runs are not in the dump: use sacct -D"
HELD: Final = "jobs that waited for another job or a start time first: not counted as queue"
DROPPED: Final = "records without a job id or a time; skipped"


class Run(NamedTuple):
    """One run of a job: a line of `sacct -D`. Instants are Unix ns, UNKNOWN = not given."""

    job_id: str
    name: str
    state: str
    """First word, upper case."""
    submitted_at_ns: int
    eligible_at_ns: int
    started_at_ns: int
    ended_at_ns: int
    exit_code: int = -1
    signal: int = 0
    chips: int = 0
    """GPUs or other accelerators; 0 = none."""
    nodes: int = 0
    node_list: str = ""
    reason: str = ""
    restarts: int = 0
    """Earlier runs, as the scheduler counts; 0 = none, or not told."""


class _End(NamedTuple):
    outcome: str
    cause: str
    requeued: bool = False


_ENDS: Final = {
    "COMPLETED": _End("completed", ""),
    "FAILED": _End("failed", ""),
    "NODE_FAIL": _End("failed", "node_lost"),
    "BOOT_FAIL": _End("failed", "node_lost"),
    "TIMEOUT": _End("failed", "time_limit"),
    "DEADLINE": _End("failed", "time_limit"),
    "PREEMPTED": _End("preempted", "preempted"),
    "CANCELLED": _End("stopped", "cancelled"),
    "REVOKED": _End("stopped", "cancelled"),
    "OUT_OF_MEMORY": _End("failed", "out_of_memory_host"),
    "REQUEUED": _End("failed", "", requeued=True),
    "REQUEUE": _End("failed", "", requeued=True),
    "SPECIAL_EXIT": _End("failed", "", requeued=True),
}
"""States of a run that is over. Source: sacct(1), section "JOB STATE CODES"."""
_JOB_END: Final = {"completed": "completed", "stopped": "cancelled"}
_GPUS: Final = re.compile(r"gres/gpu(?::[^=,]+)?=(\d+)")
_PLAIN_GPUS: Final = re.compile(r"gres/gpu=(\d+)")
_NODES: Final = re.compile(r"(?:^|,)node=(\d+)")


def chips_in(tres: str) -> int:
    """Return the GPUs in a list of trackable resources such as `cpu=8,gres/gpu=4,node=1`."""
    plain = _PLAIN_GPUS.search(tres)
    if plain is not None:
        return int(plain[1][:9])
    return sum(int(count[:9]) for count in _GPUS.findall(tres))


def nodes_in(tres: str) -> int:
    """Return the nodes in a list of trackable resources."""
    found = _NODES.search(tres)
    return int(found[1][:9]) if found is not None else 0


def process_logs_of(
    runs: Iterable[Run], *, name: str, notes: dict[str, int], writer: str
) -> tuple[ProcessLog, ...]:
    """Return one launcher's log per job.

    Args:
        runs: in any order; several of one job are its requeues.
        name: how to call the file.
        notes: where to count what the reader of a report should know.
        writer: the reader, as the provenance of what was read.
    """
    jobs: dict[str, list[Run]] = {}
    for run in runs:
        if not run.job_id or run.submitted_at_ns == UNKNOWN == run.started_at_ns:
            notes[DROPPED] = notes.get(DROPPED, 0) + 1
            continue
        jobs.setdefault(run.job_id, []).append(run)
    return tuple(_job_log(job, _in_order(runs), name, notes, writer) for job, runs in jobs.items())


def _in_order(runs: Sequence[Run]) -> list[Run]:
    """Runs of one job by time, copies left out."""
    key = {(r.submitted_at_ns, r.started_at_ns, r.ended_at_ns, r.state): r for r in runs}
    return sorted(key.values(), key=lambda r: (_begin(r), r.started_at_ns, r.ended_at_ns))


def _begin(run: Run) -> int:
    return run.submitted_at_ns if run.submitted_at_ns != UNKNOWN else run.started_at_ns


def _job_log(
    job: str, runs: list[Run], path: str, notes: dict[str, int], writer: str
) -> ProcessLog:
    if runs[0].restarts:
        notes[EARLIER] = notes.get(EARLIER, 0) + 1
    events: list[Event] = []
    for index, run in enumerate(runs):
        last = index == len(runs) - 1
        queued = run.submitted_at_ns if index else _queued_at(run, notes)
        events.extend(_events_of(run, f"{job}.{index}", queued, last=last, notes=notes))
    events = _monotone(events)
    title = runs[-1].name
    return ProcessLog(
        header=Process(
            t=events[0].t,
            schema="goodput.events/1.0",
            job=f"{title}-{job}" if title else job,
            role="launcher",
            host=f"{path}#{job}",
            writer=writer,
            origin="log",
        ),
        path=path,
        offset_ns=0,
        steps=NO_STEPS,
        ends=NO_ENDS,
        spans=NO_SPANS,
        labels=(),
        shapes=("",),
        windows=(),
        events=tuple(events),
        last_at_ns=events[-1].t,
        aliases=(f"slurm:{job}",),
    )


def _events_of(
    run: Run, key: str, queued: int, *, last: bool, notes: dict[str, int]
) -> list[Event]:
    """Queue, allocation, start and end of one run."""
    chips = run.chips
    if not chips:
        chips = max(run.nodes, 1)
        notes[CPU_ONLY] = notes.get(CPU_ONLY, 0) + 1
    events: list[Event] = []
    if queued != UNKNOWN:
        events.append(Submitted(t=queued, chips=chips))
    end = _ENDS.get(run.state)
    if run.started_at_ns == UNKNOWN:
        if end is not None and last and run.ended_at_ns != UNKNOWN:
            events.append(Ended(t=run.ended_at_ns, outcome=_job_end(end)))
        return events
    events.append(Allocated(t=run.started_at_ns, chips=chips))
    events.append(AttemptStart(t=run.started_at_ns, attempt=key))
    if end is None or run.ended_at_ns == UNKNOWN:
        return events
    events.append(_attempt_end(run, key, end))
    if last and not end.requeued:
        events.append(Ended(t=run.ended_at_ns, outcome=_job_end(end)))
    return events


def _queued_at(run: Run, notes: dict[str, int]) -> int:
    """When the job could have started: a wait for another job is not the queue's.

    After a requeue it waits from the instant of the requeue, whatever start time Slurm sets then.
    """
    submitted, eligible = run.submitted_at_ns, run.eligible_at_ns
    started = run.started_at_ns
    if submitted == UNKNOWN:
        return UNKNOWN
    if eligible > submitted and (started == UNKNOWN or eligible <= started):
        if eligible - submitted > 1_000_000_000 * 120:
            notes[HELD] = notes.get(HELD, 0) + 1
        return eligible
    return submitted


def _attempt_end(run: Run, key: str, end: _End) -> AttemptEnd:
    told = f"Slurm: {run.state}"
    if run.exit_code > 0 or run.signal:
        told += f", exit code {max(run.exit_code, 0)}:{run.signal}"
    if run.node_list:
        told += f", on {run.node_list}"
    return AttemptEnd(
        t=run.ended_at_ns,
        attempt=key,
        outcome=end.outcome,
        cause=end.cause,
        evidence=told,
        exit_code=run.exit_code if end.outcome != "completed" else 0,
        signal=run.signal,
        fault_t=run.ended_at_ns if end.cause in {"time_limit", "cancelled"} else 0,
        noticed_t=run.ended_at_ns,
    )


def _job_end(end: _End) -> str:
    return _JOB_END.get(end.outcome, "failed")


def _monotone(events: list[Event]) -> list[Event]:
    """Events by time; those of one instant keep their order."""
    if all(a.t <= b.t for a, b in pairwise(events)):
        return events
    return sorted(events, key=lambda event: event.t)
