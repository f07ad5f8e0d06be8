"""Comparing ranks step by step: who the others waited for.

A step takes as long as its slowest rank works. What that rank works beyond the median is the
straggler's cost, for itself as work and for the others as waiting inside communication.
Source: ByteDance straggler study, arXiv 2505.05713, sec. 3 (slowdown against all ranks alike).
Legend: R ranks, S steps of the lead rank.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from goodput.core.timeline import Ints
from goodput.training.measure.eventlog import ProcessLog
from goodput.training.measure.ledger.paint import Painted
from goodput.training.measure.ledger.split import Wait, work_of

BLOCK: Final = 65_536
"""Steps compared at once: bounds memory at R x BLOCK values."""


def waits(painted: Mapping[int, Painted], workers: Sequence[ProcessLog]) -> dict[int, Wait]:
    """Return what stragglers cost each rank; empty when work cannot be told from waiting.

    Args:
        painted: windows of the ranks that recorded their steps.
        workers: all processes of the attempt: summaries of the other ranks count as well.
    """
    exact = {r: p for r, p in painted.items() if p.steps.comm is not None and p.steps.start.size}
    windows = {
        worker.header.rank: worker
        for worker in workers
        if worker.header.rank not in exact and any(w.work >= 0 for w in worker.windows)
    }
    if not exact or len(exact) + len(windows) < 2:
        return {}
    lead = min(exact, key=lambda r: (-exact[r].steps.start.size, r))
    numbers = _numbers(exact[lead])
    median, slowest = _extremes(exact, windows, numbers)
    return {rank: _wait(p, numbers, median, slowest) for rank, p in exact.items()}


def _numbers(painted: Painted) -> Ints:
    """Step number of each painted record, shape (S,), made unique over rollbacks."""
    stream, steps = painted.stream, painted.steps
    if stream is None:
        return np.zeros(0, dtype=np.int64)
    turn = np.zeros(stream.n.size, dtype=np.int64)
    turn[stream.segment] = 1
    unique: Ints = stream.n + (turn.cumsum() - 1) * (1 << 40)
    return unique[steps.row]


def _extremes(
    exact: Mapping[int, Painted], windows: Mapping[int, ProcessLog], numbers: Ints
) -> tuple[Ints, Ints]:
    """Lower median and maximum over ranks of the work of each step of the lead, shapes (S,)."""
    median = np.zeros(numbers.size, dtype=np.int64)
    slowest = np.zeros(numbers.size, dtype=np.int64)
    columns = [(_numbers(p), work_of(p.steps)) for p in exact.values()]
    columns.sort(key=lambda c: not np.array_equal(c[0], numbers))  # the lead comes first
    for low in range(0, numbers.size, BLOCK):
        wanted = numbers[low : low + BLOCK]
        work_RS = np.stack(  # noqa: N806 (shape suffix)
            [_aligned(wanted, n, work) for n, work in columns]
            + [_summarised(wanted, w) for w in windows.values()]
        )
        missing = work_RS < 0
        if bool(missing.any()):  # a step that a rank kept no record of was nothing special there
            work_RS = np.where(missing, work_RS[0], work_RS)  # noqa: N806
        middle = (work_RS.shape[0] - 1) // 2
        median[low : low + BLOCK] = np.partition(work_RS, middle, axis=0)[middle]
        slowest[low : low + BLOCK] = work_RS.max(axis=0)
    return median, slowest


def _aligned(wanted: Ints, numbers: Ints, work: Ints) -> Ints:
    """Work of the wanted steps, -1 where this rank has no record of one, shape (S,)."""
    if numbers.size >= wanted.size and np.array_equal(numbers[: wanted.size], wanted):
        return work[: wanted.size]
    at = np.clip(np.searchsorted(numbers, wanted), 0, numbers.size - 1)
    return np.where(numbers[at] == wanted, work[at], np.int64(-1))


def _summarised(wanted: Ints, worker: ProcessLog) -> Ints:
    """Work of the wanted steps of a rank that wrote summaries, -1 where there is none, shape (S,).

    The mean of its window for ordinary steps, its own record for those that stood out.
    """
    out = np.full(wanted.size, -1, dtype=np.int64)
    for window in worker.windows:
        if window.work >= 0 and window.steps > 0:
            low, high = np.searchsorted(wanted, [window.first, window.last + 1])
            out[low:high] = window.work // window.steps
    steps = worker.steps
    if steps.duration_ns is None or not wanted.size:
        return out
    comm = np.int64(0) if steps.comm_ns is None else steps.comm_ns
    at = np.clip(np.searchsorted(wanted, steps.n), 0, wanted.size - 1)
    known = (wanted[at] == steps.n) & (steps.duration_ns >= 0)
    out[at[known]] = np.maximum(steps.duration_ns - comm, 0)[known]
    return out


def _wait(painted: Painted, numbers: Ints, median: Ints, slowest: Ints) -> Wait:
    """The cost to one rank, from the extremes over all."""
    steps = painted.steps
    mine = _numbers(painted)
    at = np.clip(np.searchsorted(numbers, mine), 0, numbers.size - 1)
    known = numbers[at] == mine
    work = work_of(steps)
    middle = np.where(known, median[at], work)
    last = np.where(known, slowest[at], work)
    in_work = np.maximum(work - middle, 0)
    in_comm = np.maximum(last - np.maximum(work, middle), 0)
    return Wait(in_work, in_comm)
