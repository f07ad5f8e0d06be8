"""Logged metrics as steps: (step, instant) pairs of one process, in the order they were written.

Trackers write every k-th step at the moment it is done. What lies between two records is one
record of the ledger; a step number that goes back is training that was rolled back.
Legend: S records.
"""

from typing import Final, NamedTuple

import numpy as np

from goodput.core.timeline import Ints, as_ints
from goodput.training.measure.readers.logs.batch import LARGEST_JUMP, LONGEST_FIRST
from goodput.training.measure.readers.logs.story import LARGEST_STEP, Launch, Steps

ONE_TAKEN: Final = "the first record does not say how many steps it covers: one is taken"
BACK: Final = "step numbers that go back inside one file: training was rolled back there"
INSANE: Final = "records left out: a step beyond 10^12, or a jump of more than 10^6 steps"


class Series(NamedTuple):
    """Records of one process, in file order. Shapes (S,)."""

    step: Ints
    """The last step that was done."""
    at_ns: Ints
    """When it was logged; UNKNOWN where the source has no time."""
    data_ns: Ints | None = None
    """Waiting for data in the steps of the record; None = not known."""


def add_series(launch: Launch, series: Series, notes: dict[str, int]) -> None:
    """Give a launch the steps of a series; its `started_at_ns` dates the start of the first.

    Args:
        launch: of the process that wrote the series.
        series: its records; several of one step count once (the last of them).
        notes: where to count what the reader of a report should know.
    """
    step, at, data = _once_per_step(_sane(series, notes))
    if not step.size:
        return
    stride = stride_of(step)
    base = first_number(step, stride)
    before = np.concatenate((as_ints([_before_first(step, stride, base, notes)]), step[:-1]))
    back = np.flatnonzero(step[1:] < step[:-1]) + 1
    if back.size:
        notes[BACK] = notes.get(BACK, 0) + int(back.size)
        before[back] = np.maximum(step[back] - stride, base - 1)
    covers = step - before
    unknown = np.full(step.size, -1, np.int64)
    launch.add(Steps(before + 1, covers, at, unknown, data))


def stride_of(step: Ints) -> int:
    """Return how many steps lie between most records."""
    rises = step[1:] - step[:-1]
    rises = rises[rises > 0]
    if not rises.size:
        return 1
    values, counts = np.unique(rises, return_counts=True)
    return int(values[counts.argmax()])


def first_number(step: Ints, stride: int) -> int:
    """Return the number of a job's first step, 0 or 1: loggers that count from 0 write 49, 99."""
    if stride == 1:
        return 0 if int(step.min()) == 0 else 1
    return 0 if bool(((step + 1) % stride == 0).mean() > 0.5) else 1


def _sane(series: Series, notes: dict[str, int]) -> Series:
    """Leave out steps that no job has; they come from damage, or the axis is no step."""
    step = series.step
    keep = (step >= 0) & (step <= LARGEST_STEP)
    reached = -1
    for i, n in enumerate(step.tolist()) if int(step.max(initial=0)) > LARGEST_JUMP else ():
        if keep[i] and 0 <= reached < n - LARGEST_JUMP:
            keep[i] = False
        elif keep[i]:
            reached = n
    left_out = int(step.size - keep.sum())
    if not left_out:
        return series
    notes[INSANE] = notes.get(INSANE, 0) + left_out
    data = series.data_ns
    return Series(step[keep], series.at_ns[keep], None if data is None else data[keep])


def _once_per_step(series: Series) -> tuple[Ints, Ints, Ints | None]:
    """Records of one step that follow each other are one, done when the first was written."""
    step = series.step
    keep = np.ones(step.size, bool)
    keep[1:] = step[1:] != step[:-1]
    data = series.data_ns
    return step[keep], series.at_ns[keep], None if data is None else data[keep]


def _before_first(step: Ints, stride: int, base: int, notes: dict[str, int]) -> int:
    """Last step before those of the first record."""
    first = int(step[0])
    if first - base + 1 <= max(stride, LONGEST_FIRST if step.size == 1 else stride):
        return base - 1
    if step.size == 1:
        notes[ONE_TAKEN] = notes.get(ONE_TAKEN, 0) + 1
    return first - stride
