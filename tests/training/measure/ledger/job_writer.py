"""Writes a simulated job as event files, in any of the ways that a real one may be recorded."""

import json
import random
from pathlib import Path
from typing import Any, NamedTuple

from job_simulator import Attempt, Job, Span

from goodput.core.events import SCHEMA

ORIGIN_NS = 1_790_000_000_000_000_000
MONOTONIC_NS = 1_000_000_000_000
TICK_NS = 1_000_000_000

Line = dict[str, Any]


class Recording(NamedTuple):
    """How the job is recorded."""

    closed: bool = True
    """Steps have `step_end` records; else bare marks."""
    launcher: bool = True
    """A launcher records fault, notice and outcome of every attempt; else processes say so."""
    says_goodbye: bool = True
    """Without a launcher: surviving ranks record the failure when they notice it."""
    commits: bool = True
    resumes: bool = True
    chips: bool = True
    ranks: tuple[int, ...] = (0, 1, 2, 3)
    """Ranks that record anything."""
    keys: bool = True
    """Processes carry the key of their attempt; needed with more than one rank."""
    asides: bool = True
    """Background spans are written."""
    monotonic: bool = True
    wall_steps: tuple[int, ...] = ()
    """Ticks at which the wall clock of every process is set back by an hour."""
    shuffle: int = 0
    """Seed of the order of lines within a file; 0 = as they happened."""
    rename: int = 0
    """Seed of the file names; 0 = by attempt and rank."""
    relabel: tuple[int, ...] = (0, 1, 2, 3)
    """relabel[r] = the number that rank r goes by."""
    tick_ns: int = TICK_NS
    origin_ns: int = ORIGIN_NS
    unsplit: bool = True
    """False: every worker's file is rotated half-way: a second one goes on, with a header too."""


class Written(NamedTuple):
    """A line and when it belongs."""

    tick: int
    line: Line


def instant(tick: int, how: Recording | None = None) -> int:
    """Unix ns of a tick."""
    how = how or Recording()
    return how.origin_ns + tick * how.tick_ns


def stamp(tick: int, how: Recording) -> Line:
    """Both clocks of a tick; ticks before the start of the monotonic clock cannot occur."""
    wall = instant(tick, how) - 3_600_000_000_000 * sum(1 for t in how.wall_steps if t <= tick)
    return {"t": wall, "m": MONOTONIC_NS + tick * how.tick_ns} if how.monotonic else {"t": wall}


def write_job(job: Job, folder: Path, how: Recording) -> None:
    """Write the files of a job into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    files: list[list[Line]] = []
    pid = 0
    for attempt in job.attempts:
        for rank in range(attempt.world):
            if rank in how.ranks:
                pid += 1
                files.extend(_worker(job, attempt, rank, pid, how))
    files.append(_launcher(job, how))
    names = [f"events-{i:03d}.jsonl" for i in range(len(files))]
    if how.rename:
        random.Random(how.rename).shuffle(names)
    for name, lines in zip(names, files, strict=True):
        text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
        (folder / name).write_text(text)


def _header(job: Job, how: Recording, tick: int, **fields: object) -> Line:
    return {"k": "process", "schema": SCHEMA, "job": "sim", "boot": "b"} | fields | stamp(tick, how)


class _Told:
    """The lines of one process while they are put together."""

    def __init__(self, how: Recording) -> None:
        self.how = how
        self.lines: list[Written] = []

    def put(self, tick: int, kind: str, **fields: object) -> None:
        self.lines.append(Written(tick, {"k": kind} | fields | stamp(tick, self.how)))

    def in_order(self) -> list[Line]:
        return [written.line for written in sorted(self.lines, key=lambda w: w.tick)]


def _worker(job: Job, attempt: Attempt, rank: int, pid: int, how: Recording) -> list[list[Line]]:
    """The file of one rank of one attempt, or its two halves."""
    who: dict[str, object] = {"rank": how.relabel[rank], "world": attempt.world, "pid": pid}
    if how.keys:
        who["attempt"] = attempt.key
    header = _header(job, how, attempt.start, **who)
    told = _Told(how)
    _work(told, attempt, rank)
    if how.commits and rank == min(how.ranks):
        for commit in attempt.commits:
            told.put(commit.tick, "committed", last_step=len(commit.state) - 1)
    if attempt.clean:
        told.put(attempt.end, "process_end")
    elif how.says_goodbye and rank > 0:
        told.put(attempt.noticed, "process_end", outcome="failed", error="RuntimeError: gone")
    body = told.in_order()
    if how.shuffle:
        random.Random(how.shuffle + rank).shuffle(body)
    return [[header, *body]] if how.unsplit else _rotated(header, body)


def _work(told: _Told, attempt: Attempt, rank: int) -> None:
    """States restored, steps and spans."""
    how = told.how
    if how.resumes:
        for tick, state in [(attempt.restored_at, attempt.restored), *attempt.backs]:
            told.put(tick, "resumed", next_step=len(state))
    for run in attempt.executions:
        told.put(run.begin, "step", n=run.n)
        if how.closed and run.end is not None:
            told.put(run.end, "step_end", n=run.n)
    for number, span in enumerate(attempt.spans, start=1):
        if span.rank in {None, rank} and (how.asides or not span.background):
            _span(told, span, number)


def _span(told: _Told, span: Span, number: int) -> None:
    options: dict[str, object] = {"name": span.name, "id": number}
    if span.end is None:
        told.put(span.start, "begin", **options)
        return
    if span.background:
        options["background"] = True
    told.put(span.start, "span", d=(span.end - span.start) * told.how.tick_ns, **options)


def _rotated(header: Line, body: list[Line]) -> list[list[Line]]:
    """Two files; a step is told in one, the first has steps, and the second begins later."""
    middle = len(body) // 2
    while middle < len(body) and not _may_begin(header, body, middle):
        middle += 1
    if middle == len(body):
        return [[header, *body]]
    second = header | {name: body[middle][name] for name in ("t", "m") if name in body[middle]}
    return [[header, *body[:middle]], [second, *body[middle:]]]


def _may_begin(header: Line, body: list[Line], row: int) -> bool:
    line = body[row]
    later = line["t"] > header["t"]
    return line["k"] == "step" and later and any(x["k"] == "step" for x in body[:row])


def _launcher(job: Job, how: Recording) -> list[Line]:
    first = min([job.attempts[0].start, *(tick for tick, _, _ in job.holdings)])
    told = _Told(how)
    if how.chips:
        for tick, chips, queued in job.holdings:
            told.put(tick, "submitted" if queued else "allocated", chips=chips)
    if how.launcher:
        for attempt in job.attempts:
            told.put(attempt.start, "attempt_start", attempt=attempt.key)
            known: dict[str, object] = {"attempt": attempt.key, "outcome": attempt.outcome}
            if not attempt.clean:
                known["fault_t"] = stamp(attempt.end, how)["t"]
                known["noticed_t"] = stamp(attempt.noticed, how)["t"]
            told.put(attempt.noticed, "attempt_end", **known)
    if job.ended_at is not None:
        said = {"completed": "completed", "failed": "failed"}
        outcome = said.get(job.attempts[-1].outcome, "cancelled")
        told.put(job.ended_at, "ended", outcome=outcome)
    return [_header(job, how, first, role="launcher"), *told.in_order()]
