"""One rank's record of one attempt as columns: steps with start, end and count, and its spans.

Legend: S steps, N spans. Ends are known or -1 here; endings.py closes what an attempt's end proves.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from goodput.core.timeline import Ints, as_ints
from goodput.training.measure.eventlog import EndColumns, Label, ProcessLog, stack


class Stream(NamedTuple):
    """Steps and spans of one rank in one attempt. Times are Unix ns."""

    rank: int
    host: str
    origin: str
    n: Ints
    """First step number covered by the record, shape (S,)."""
    covers: Ints | None
    """Steps that each record stands for; None = one each."""
    start: Ints
    end: Ints
    """-1 = not known to have finished (at most the last of each process)."""
    comm: Ints | None
    """Exposed communication, ns, -1 = not measured; None = never measured."""
    shape: Ints | None
    shapes: tuple[str, ...]
    segment: Ints
    """Row at which each segment begins: step numbers rise within a segment. Shape (G,)."""
    span_label: Ints
    span_start: Ints
    span_end: Ints
    """-1 = never closed."""
    labels: tuple[Label, ...]
    closes: bool
    """Its steps have recorded ends, as a rule: a mark without one is a step that was not made."""

    def counts(self) -> Ints:
        """Return the steps covered by each record, shape (S,)."""
        if self.covers is not None:
            return self.covers
        ones: Ints = np.broadcast_to(np.int64(1), self.n.shape)  # takes no memory
        return ones

    def segment_bounds(self) -> list[tuple[int, int]]:
        """Return [first row, last row + 1) of each segment."""
        return list(pairwise([*self.segment.tolist(), self.n.size]))

    def last_end_known(self) -> bool:
        """Return whether the last record is known to have finished."""
        return bool(self.n.size) and int(self.end[-1]) >= 0

    def durations(self) -> Ints:
        """Return the wall time of the finished records, ns, shape (<= S,)."""
        done = self.end >= 0
        if bool(done.all()):
            return self.end - self.start
        return (self.end - self.start)[done]


def settled(stream: Stream, until_ns: int) -> Stream:
    """Return the stream with its open last record counted by the time that it had.

    Where every k-th step is logged, the job may end before the last record covers k steps. Where
    steps are closed as a rule, one left open was begun and never made (a hook marks the next step
    when one is complete, and cannot know that it was the last): it is left out.

    Args:
        stream: the record of a rank whose attempt ended cleanly.
        until_ns: when it ended.
    """
    if stream.n.size < 2 or int(stream.end[-1]) >= 0:
        return stream
    if stream.closes:
        return _without_last(stream)
    if stream.covers is None:
        return stream
    done = stream.end >= 0
    if not bool(done.any()):
        return stream
    usual = float(np.median((stream.end - stream.start)[done] / stream.covers[done]))
    fits = round((until_ns - int(stream.start[-1])) / usual) if usual else 1
    count = stream.covers.copy()
    count[-1] = min(max(fits, 1), int(count[-1]))
    return stream._replace(covers=count)


def _without_last(stream: Stream) -> Stream:
    """Return the stream without its last record."""
    rows = slice(0, stream.n.size - 1)
    return stream._replace(
        n=stream.n[rows],
        covers=None if stream.covers is None else stream.covers[rows],
        start=stream.start[rows],
        end=stream.end[rows],
        comm=None if stream.comm is None else stream.comm[rows],
        shape=None if stream.shape is None else stream.shape[rows],
        segment=stream.segment[stream.segment < rows.stop],
    )


def build_stream(rank: int, logs: Sequence[ProcessLog]) -> Stream:
    """Return the stream of a rank from its processes, in order of time.

    Args:
        rank: the rank.
        logs: its processes in this attempt (usually one), at least one of them with a step.
    """
    logs = sorted(logs, key=lambda p: p.started_at_ns)
    stepping = [log for log in logs if log.steps.n.size]
    parts = [_steps(log) for log in stepping]
    n = stack([p.n for p in parts])
    start = stack([p.start for p in parts])
    end = stack([p.end for p in parts])
    count = _stack_optional([p.covers for p in parts], [p.n.size for p in parts], 1)
    comm = _stack_optional([p.comm for p in parts], [p.n.size for p in parts], -1)
    shape, shapes = _stack_shapes(stepping, parts)
    if len(parts) > 1:
        # Two processes of one rank in one attempt cannot both be right about the same instant.
        order = np.argsort(start, kind="stable")
        n, start, end = n[order], start[order], end[order]
        count, comm, shape = _take(count, order), _take(comm, order), _take(shape, order)
        following = np.concatenate((start[1:], end[-1:]))
        end = np.where(end >= 0, np.minimum(end, following), np.int64(-1))
    breaks = np.flatnonzero(n[1:] <= n[:-1]) + 1 if n.size > 1 else as_ints([])
    labels, label, at, until = _spans(logs)
    return Stream(
        rank=rank,
        host=logs[0].header.host,
        origin=logs[0].header.origin,
        n=n,
        covers=count,
        start=start,
        end=end,
        comm=comm,
        shape=shape,
        shapes=shapes,
        segment=np.concatenate((as_ints([0]), breaks)) if n.size else as_ints([]),
        span_label=label,
        span_start=at,
        span_end=until,
        labels=labels,
        closes=bool(parts) and all(part.closes for part in parts),
    )


class _Steps(NamedTuple):
    n: Ints
    covers: Ints | None
    start: Ints
    end: Ints
    comm: Ints | None
    shape: Ints | None
    closes: bool


def _steps(log: ProcessLog) -> _Steps:
    """Steps of one process: marks end where the next begins, unless ends were recorded."""
    steps, ends = log.steps, log.ends
    n, start, count, shape = steps.n, steps.at_ns, steps.covers, steps.shape
    comm = steps.comm_ns
    duration = steps.duration_ns
    if start.size > 1 and bool((start[1:] < start[:-1]).any()):
        order = np.argsort(start, kind="stable")
        n, start = n[order], start[order]
        count, shape = _take(count, order), _take(shape, order)
        comm, duration = _take(comm, order), _take(duration, order)
    following = np.concatenate((start[1:], as_ints([-1])))
    closes = False
    if ends.n.size:
        end, comm, closes = _recorded_ends(n, start, following, ends)
    else:
        end = following
    if duration is not None:
        end = np.where(duration >= 0, start + duration, end)
        # A mark with a duration ends by itself; the next record may come before it does.
        end = np.where((following >= 0) & (end > following), following, end)
    return _Steps(n, _covered(n, count), start, end, comm, shape, closes)


def _recorded_ends(
    n: Ints, start: Ints, following: Ints, ends: EndColumns
) -> tuple[Ints, Ints | None, bool]:
    """Ends from `step_end` records: each closes the latest mark of its number before it."""
    end_n, end_at, end_comm = ends
    end = np.full(n.size, -1, dtype=np.int64)
    row = np.searchsorted(start, end_at, side="right") - 1
    # With a coarse clock the next step may begin at the very instant at which this one ends.
    above = np.maximum(row - 1, 0)
    shared = (start[row] == end_at) & (n[above] == end_n)
    row = np.where((row > 0) & ((n[row] != end_n) | shared), row - 1, row)
    good = row >= 0
    good[good] = n[row[good]] == end_n[good]
    end[row[good]] = end_at[good]
    comm: Ints | None = None
    if bool((end_comm[good] >= 0).any()):
        comm = np.full(n.size, -1, dtype=np.int64)
        comm[row[good]] = end_comm[good]
    # Where steps are closed as a rule, one that is followed by the next but never closed did not
    # finish: its body raised. Where marks are bare as a rule, the next one closes it.
    # One that closes after the next began (asynchronous dispatch) ends where that begins.
    end = np.where((end >= 0) & (following >= 0), np.minimum(end, following), end)
    closes = int((end >= 0).sum()) * 2 >= n.size
    return end if closes else np.where(end >= 0, end, following), comm, closes


def _covered(n: Ints, count: Ints | None) -> Ints | None:
    """Steps each record covers: as recorded, else up to the next number within the segment."""
    if n.size < 2:
        return None if count is None else np.maximum(count, 1)
    gap = n[1:] - n[:-1]
    if count is None and bool((gap == 1).all()):
        return None
    # A log of every k-th step: the last record stands for as many as the one before it, at most.
    last = gap[-1:] if int(gap[-1]) > 0 else as_ints([1])
    inferred = np.concatenate((np.where(gap > 0, gap, 1), last))
    return inferred if count is None else np.where(count > 0, count, inferred)


def _spans(
    logs: Sequence[ProcessLog],
) -> tuple[tuple[Label, ...], Ints, Ints, Ints]:
    """All foreground spans of the processes, with one table of labels."""
    labels: dict[Label, int] = {}
    index: list[Ints] = []
    at: list[Ints] = []
    until: list[Ints] = []
    for log in logs:
        if not log.spans.name.size:
            continue
        table = as_ints([labels.setdefault(label, len(labels)) for label in log.labels])
        front = log.spans.background == 0
        durations = log.spans.duration_ns[front]
        starts = log.spans.at_ns[front]
        index.append(table[log.spans.name[front]])
        at.append(starts)
        until.append(np.where(durations >= 0, starts + durations, np.int64(-1)))
    return tuple(labels), stack(index), stack(at), stack(until)


def spans_only(rank: int, logs: Sequence[ProcessLog]) -> Stream:
    """Return a stream without steps, for an attempt in which the rank took none."""
    labels, label, at, until = _spans(logs)
    none = as_ints([])
    return Stream(
        rank=rank,
        host=logs[0].header.host if logs else "",
        origin=logs[0].header.origin if logs else "recorded",
        n=none,
        covers=None,
        start=none,
        end=none,
        comm=None,
        shape=None,
        shapes=("",),
        segment=none,
        span_label=label,
        span_start=at,
        span_end=until,
        labels=labels,
        closes=False,
    )


def _take(column: Ints | None, order: Ints) -> Ints | None:
    return None if column is None else column[order]


def _stack_optional(parts: list[Ints | None], sizes: list[int], default: int) -> Ints | None:
    if all(part is None for part in parts):
        return None
    return stack(
        [
            np.full(size, default, dtype=np.int64) if part is None else part
            for part, size in zip(parts, sizes, strict=True)
        ]
    )


def _stack_shapes(
    logs: Sequence[ProcessLog], parts: list[_Steps]
) -> tuple[Ints | None, tuple[str, ...]]:
    if all(part.shape is None for part in parts):
        return None, ("",)
    names: dict[str, int] = {"": 0}
    columns = []
    for log, part in zip(logs, parts, strict=True):
        table = as_ints([names.setdefault(name, len(names)) for name in log.shapes])
        columns.append(
            np.zeros(part.n.size, dtype=np.int64) if part.shape is None else table[part.shape]
        )
    return stack(columns), tuple(names)
