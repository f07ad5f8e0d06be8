"""Lightning's `metrics.csv`: which steps were logged; times only if a monitor adds them."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

from goodput.core.timeline import as_ints
from goodput.training.measure.readers.logs.batch import LONGEST_S
from goodput.training.measure.readers.logs.story import NS, UNKNOWN, Launch
from goodput.training.measure.readers.series import Series, add_series
from goodput.training.measure.readers.tensorboard import job_of
from goodput.training.measure.readers.whole import Told, told_of, unreadable

WRITER: Final = "lightning csv reader"
_SECONDS: Final = ("train|time", "train/time", "time")
"""Seconds since the start of training, as ThroughputMonitor logs them."""
_TIMELESS: Final = (
    "the file holds steps and no times: shares of time mean nothing (give the job's output or its "
    "TensorBoard folder beside it)"
)
_DATELESS: Final = "times count from the start of training: the file's own time is taken as the end"
_NO_STEPS: Final = "rows without a step; skipped"


def looks_like_lightning_csv(path: Path, head: bytes) -> bool:
    """Return whether a file is a metrics.csv with a step column."""
    columns = head.split(b"\n", 1)[0].strip().split(b",")
    return path.name == "metrics.csv" and b"step" in columns


def read_lightning_csv(path: Path, name: str) -> Told:
    """Return one session: a folder version_k of the logger."""
    notes: dict[str, int] = {}
    steps: list[int] = []
    seconds: list[float] = []
    text = path.read_text(encoding="utf-8", errors="replace").replace("\0", "")
    for row in _rows(text):
        step = _number(row.get("step"))
        if step is None or not _trains(row):
            notes[_NO_STEPS] = notes.get(_NO_STEPS, 0) + (step is None)
            continue
        steps.append(int(step))
        seconds.append(next((s for s in (_number(row.get(k)) for k in _SECONDS) if s), -1.0))
    if not steps:
        return unreadable(name, "metrics.csv without a row of training; ignored")
    launch = Launch()
    timed = all(0 < s <= LONGEST_S for s in seconds)
    at = np.full(len(steps), UNKNOWN, np.int64)
    if timed:
        end = path.stat().st_mtime_ns
        at = end - as_ints([round((seconds[-1] - s) * NS) for s in seconds])
        launch.started_at_ns = end - round(seconds[-1] * NS)
    notes[_DATELESS if timed else _TIMELESS] = 1
    add_series(launch, Series(as_ints(steps), at), notes)
    notes = {text: count for text, count in notes.items() if count}
    return told_of(
        [launch], notes, path=path, name=name, writer=WRITER, job=job_of(path),
        warnings=frozenset({_TIMELESS}),
    )  # fmt: skip


def _rows(text: str) -> Iterator[dict[str | None, object]]:
    """The rows up to the first that csv cannot take (a field beyond 128 KiB)."""
    try:
        yield from csv.DictReader(io.StringIO(text))
    except csv.Error:
        return


def _trains(row: dict[str | None, object]) -> bool:
    """Whether a row holds anything but validation."""
    filled = [str(key) for key, value in row.items() if value and key is not None]
    others = [key for key in filled if key not in {"step", "epoch"}]
    return not others or not all(key.startswith(("val", "test")) for key in others)


def _number(value: object) -> float | None:
    try:
        number = float(str(value))
    except ValueError:
        return None
    return number if abs(number) < 2**53 else None
