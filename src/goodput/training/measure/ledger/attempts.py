"""From processes to attempts: which launch each process belongs to, when it began and how it ended.

Evidence is taken in this order: what a launcher recorded, what the workers said when they left, and
what the next attempt's start proves. Nothing here looks at which steps were kept (lineage.py).
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final, TypeVar

import msgspec
import numpy as np
from msgspec.structs import replace

from goodput.core.events import (
    AttemptEnd,
    AttemptStart,
    Event,
    Noticed,
    Process,
    ProcessEnd,
    Resumed,
)
from goodput.training.measure.eventlog import ProcessLog
from goodput.training.measure.ledger.streams import Stream, build_stream
from goodput.training.measure.ledger.types import Outcome

CLEAN: Final = frozenset({"completed", "stopped", "preempted"})
"""Outcomes in which the attempt left by itself: what it was doing had ended."""
Dated = TypeVar("Dated", AttemptEnd, Noticed)

NEAR_NS: Final = 120_000_000_000
"""Processes without a key that start within this of each other may be one launch."""


class Launch(msgspec.Struct):
    """One attempt while it is being put together."""

    key: str
    workers: list[ProcessLog]
    began: AttemptStart | None = None
    began_at_ns: int = 0
    over: AttemptEnd | None = None
    over_at_ns: int = 0


class End(msgspec.Struct, frozen=True):
    """How an attempt ended. Instants are Unix ns."""

    outcome: Outcome
    fault_at_ns: int
    """Last instant of work: the fault, or the clean end."""
    noticed_at_ns: int
    over_at_ns: int
    """Last process gone, or the last thing known."""
    cause: str = ""
    evidence: str = ""
    rank: int = -1
    noticed: bool = False
    """Somebody recorded that something was wrong; else only the next attempt shows it."""
    recorded: bool = False
    """The fault and its notice were both recorded, not inferred."""
    exit_code: int = -1
    signal: int = 0


class Trial(msgspec.Struct):
    """An attempt with its streams: the unit in which the ledger works."""

    index: int
    key: str
    started_at_ns: int
    until_ns: int
    """Start of the next attempt, or the end of the account."""
    world: int
    next_step: int
    """As declared; -1 = nobody said."""
    resumes: tuple[tuple[int, int], ...]
    """(when, next step) of every state that its processes restored."""
    workers: tuple[ProcessLog, ...]
    streams: dict[int, Stream]
    """Ranks with a step record of their own."""
    lead: int
    """Rank whose record stands for those without one; -1 = no rank took a step."""
    end: End
    restart: bool
    """Not the first attempt."""
    last: bool
    """No attempt follows."""

    @property
    def lead_stream(self) -> Stream | None:
        """The lead rank's record."""
        return self.streams.get(self.lead)


def gather_launches(processes: Sequence[ProcessLog]) -> list[Launch]:
    """Return the attempts in order of time, each with its processes and its launcher's evidence."""
    workers = [p for p in processes if p.header.role != "launcher"]
    workers = [part for p in workers for part in split_generations(p)]
    launches: dict[str, Launch] = {}
    loose: list[ProcessLog] = []
    for worker in workers:
        key = worker.header.attempt
        if key:
            launches.setdefault(key, Launch(key=key, workers=[])).workers.append(worker)
        else:
            loose.append(worker)
    for event, at in _launcher_events(processes):
        if event.attempt:
            _place_keyed(launches, event, at)
    _place_loose(launches, loose)
    _place_keyless(list(launches.values()), _launcher_events(processes))
    return sorted(launches.values(), key=lambda launch: (start_of(launch), launch.key))


def start_of(launch: Launch) -> int:
    """Return when the first process of an attempt was started, Unix ns."""
    known = [worker.started_at_ns for worker in launch.workers]
    if launch.began is not None:
        known.append(launch.began_at_ns)
    if not known:
        known.append(launch.over_at_ns)
    return min(known)


def split_generations(process: ProcessLog) -> list[ProcessLog]:
    """Return the process once per attempt that it lived through.

    An elastic launcher keeps healthy processes over a fault: they record `attempt_start` with a new
    key and go on in the same file.
    """
    turns = [
        (process.at_ns(event), event)
        for event in process.events
        if isinstance(event, AttemptStart) and event.attempt != process.header.attempt
    ]
    if not turns or process.header.role == "launcher":
        return [process]
    turns.sort(key=lambda turn: turn[0])
    edges = [-(2**62), *(at for at, _ in turns), 2**62]
    headers = [
        process.header,
        *(
            replace(
                process.header,
                attempt=event.attempt,
                t=at,
                m=0,
                started=at,
                world=event.world or process.header.world,
            )
            for at, event in turns
        ),
    ]
    return [
        cut(process, low, high, header=header)
        for (low, high), header in zip(pairwise(edges), headers, strict=True)
    ]


def cut(
    process: ProcessLog, low_ns: int, high_ns: int, *, header: Process | None = None
) -> ProcessLog:
    """Return what a process recorded in [low, high); spans still open at `high` lose their end."""
    steps, ends, spans = process.steps, process.ends, process.spans
    keep = (steps.at_ns >= low_ns) & (steps.at_ns < high_ns)
    keep_ends = (ends.at_ns >= low_ns) & (ends.at_ns < high_ns)
    keep_spans = (spans.at_ns >= low_ns) & (spans.at_ns < high_ns)
    over = spans.at_ns + spans.duration_ns >= high_ns
    durations = np.where(over, np.int64(-1), spans.duration_ns)
    events = tuple(e for e in process.events if low_ns <= process.at_ns(e) < high_ns)
    windows = tuple(w for w in process.windows if low_ns <= process.at_ns(w) < high_ns)
    step_durations = steps.duration_ns
    if step_durations is not None:
        late = steps.at_ns + step_durations >= high_ns
        step_durations = np.where(late, np.int64(-1), step_durations)
    signs = [process.last_at_ns] if process.last_at_ns < high_ns else [high_ns - 1]
    return replace(
        process,
        header=process.header if header is None else header,
        steps=steps._replace(
            n=steps.n[keep],
            at_ns=steps.at_ns[keep],
            duration_ns=None if step_durations is None else step_durations[keep],
            covers=None if steps.covers is None else steps.covers[keep],
            comm_ns=None if steps.comm_ns is None else steps.comm_ns[keep],
            shape=None if steps.shape is None else steps.shape[keep],
        ),
        ends=ends._replace(
            n=ends.n[keep_ends], at_ns=ends.at_ns[keep_ends], comm_ns=ends.comm_ns[keep_ends]
        ),
        spans=spans._replace(
            name=spans.name[keep_spans],
            at_ns=spans.at_ns[keep_spans],
            duration_ns=durations[keep_spans],
            background=spans.background[keep_spans],
        ),
        events=events,
        windows=windows,
        last_at_ns=signs[0],
    )


def resumes_of(launch: Launch) -> list[tuple[int, int]]:
    """Return (when, next step) of every restored state, in order of time."""
    return sorted(
        (worker.at_ns(event), event.next_step)
        for worker in launch.workers
        for event in worker.events
        if isinstance(event, Resumed)
    )


def declared_next_step(launch: Launch, first_step_at_ns: int) -> int:
    """Return the first step that the attempt was to run, as somebody declared it; -1 = nobody."""
    said = resumes_of(launch)
    before = [step for at, step in said if at <= first_step_at_ns]
    if before or said:
        return before[-1] if before else said[0][1]
    return launch.began.next_step if launch.began is not None else -1


def streams_of(launch: Launch) -> dict[int, Stream]:
    """Return one stream for each rank that recorded its steps."""
    stepping = [worker for worker in launch.workers if worker.steps.n.size]
    # Where only summaries were kept, outlier steps are better than nothing.
    full = [w for w in stepping if w.header.detail != "windows"] or stepping
    ranks = sorted({worker.header.rank for worker in full})
    return {
        rank: build_stream(rank, [w for w in launch.workers if w.header.rank == rank])
        for rank in ranks
    }


def lead_of(streams: dict[int, Stream]) -> int:
    """Return the rank with most steps; among equals the one that began first, then the lowest."""
    if not streams:
        return -1
    return min(streams, key=lambda r: (-streams[r].n.size, int(streams[r].start[0]), r))


def world_of(launch: Launch) -> int:
    """Return the number of ranks, as declared, else as seen."""
    said = [worker.header.world for worker in launch.workers]
    if launch.began is not None and launch.began.world:
        said.append(launch.began.world)
    seen = max((worker.header.rank + 1 for worker in launch.workers), default=1)
    return max([seen, *said])


def events_of(launch: Launch, kind: type[Event]) -> list[tuple[int, Event]]:
    """Return the workers' events of one kind with their times, in order of time."""
    found = [
        (worker.at_ns(event), event)
        for worker in launch.workers
        for event in worker.events
        if isinstance(event, kind)
    ]
    return sorted(found, key=lambda pair: pair[0])


def _launcher_events(
    processes: Sequence[ProcessLog],
) -> list[tuple[AttemptStart | AttemptEnd, int]]:
    """Starts and ends of attempts with their times, in order of time."""
    found: list[tuple[AttemptStart | AttemptEnd, int]] = []
    for process in processes:
        for event in process.events:
            at = process.at_ns(event)
            if isinstance(event, AttemptEnd):
                found.append((_corrected(event, at), at))
            elif isinstance(event, AttemptStart) and process.header.role == "launcher":
                found.append((event, at))
    return sorted(found, key=lambda pair: pair[1])


def _corrected(event: Dated, at_ns: int) -> Dated:
    """Move the wall times that an event carries as its own time was moved."""
    shift = at_ns - event.t
    if not shift:
        return event
    names = [n for n in ("fault_t", "noticed_t") if getattr(event, n, 0)]
    return replace(event, **{name: getattr(event, name) + shift for name in names})


def _place_keyed(launches: dict[str, Launch], event: AttemptStart | AttemptEnd, at: int) -> None:
    """Give the launcher's word to the attempt that it names."""
    starts = isinstance(event, AttemptStart)
    target = _matching(launches.values(), event.attempt, first=starts)
    if target is None:
        target = launches.setdefault(event.attempt, Launch(key=event.attempt, workers=[]))
    if isinstance(event, AttemptStart):
        if target.began is None or at < target.began_at_ns:
            target.began, target.began_at_ns = event, at
    elif target.over is None or at > target.over_at_ns:
        target.over, target.over_at_ns = event, at


def _place_keyless(
    launches: list[Launch], events: list[tuple[AttemptStart | AttemptEnd, int]]
) -> None:
    """An end without a key closes the attempt that was under way."""
    for event, at in events:
        begun = [x for x in launches if start_of(x) <= at]
        if isinstance(event, AttemptEnd) and not event.attempt and begun:
            target = max(begun, key=start_of)
            if target.over is None or at > target.over_at_ns:
                target.over, target.over_at_ns = event, at


def _matching(launches: Iterable[Launch], key: str, *, first: bool) -> Launch | None:
    """The attempt a launcher's key means: itself, or the first or last restart below it."""
    mine = [x for x in launches if x.key == key or x.key.startswith(key + ".")]
    if not mine:
        return None
    return min(mine, key=start_of) if first else max(mine, key=start_of)


def _place_loose(launches: dict[str, Launch], loose: list[ProcessLog]) -> None:
    """Put processes without a key where they belong: a launcher's window, else by overlap.

    A rank that is already there, or a process that starts after the others fell silent and long
    after they started, begins a new attempt.
    """
    known = sorted((x for x in launches.values() if x.began is not None), key=start_of)
    current: Launch | None = None
    for worker in sorted(loose, key=lambda p: (p.started_at_ns, p.header.rank, p.header.pid)):
        at = worker.started_at_ns
        owner = next((x for x in reversed(known) if x.began_at_ns <= at + 1_000_000_000), None)
        if owner is not None and (owner.over is None or at <= owner.over_at_ns):
            owner.workers.append(worker)
            continue
        if current is None or _starts_anew(current, worker):
            current = Launch(key=f"#{len(launches) + 1}", workers=[])
            launches[current.key] = current
        current.workers.append(worker)


def _starts_anew(current: Launch, worker: ProcessLog) -> bool:
    if any(w.header.rank == worker.header.rank for w in current.workers):
        return True
    silent = max(w.last_at_ns for w in current.workers) < worker.started_at_ns
    return silent and worker.started_at_ns - start_of(current) > NEAR_NS


def process_ends(launch: Launch) -> list[tuple[int, ProcessEnd, int]]:
    """Return (when, event, rank) for every worker that said goodbye, in order of time."""
    found = [
        (worker.at_ns(event), event, worker.header.rank)
        for worker in launch.workers
        for event in worker.events
        if isinstance(event, ProcessEnd)
    ]
    return sorted(found, key=lambda row: row[0])


def notices(launch: Launch) -> list[tuple[int, Noticed]]:
    """Return every `noticed` event of the attempt's processes, in order of time."""
    return [
        (at, _corrected(event, at))
        for at, event in events_of(launch, Noticed)
        if isinstance(event, Noticed)
    ]
