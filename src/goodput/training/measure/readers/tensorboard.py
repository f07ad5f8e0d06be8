"""TensorBoard folders: each event file is one session of a job, dated by its records."""

import re
from pathlib import Path
from typing import Final

import numpy as np

from goodput.core.timeline import as_ints
from goodput.training.measure.readers.logs.batch import LARGEST_JUMP, LONGEST_S
from goodput.training.measure.readers.logs.clock import unix_ns
from goodput.training.measure.readers.logs.story import NS, UNKNOWN, Happening, Launch
from goodput.training.measure.readers.series import Series, add_series
from goodput.training.measure.readers.tfrecord import Damage, events_of, looks_like_tfevents
from goodput.training.measure.readers.whole import Told, told_of, unreadable

WRITER: Final = "tensorboard reader"
_NOT_TRAINING: Final = re.compile(r"(?i)(^|[/_ .-])(e?val|eval|valid|validation|test)([/_ .-]|$)")
_OTHER_AXIS: Final = re.compile(r"(?i)vs[ _](samples|tokens|steps)|(^|[/_])epoch$|hp_metric")
_LOSS: Final = re.compile(r"(?i)loss")
_DATA_TAG: Final = "time_metrics/data_loading(s)"
_EVAL_RUNTIME: Final = frozenset({"eval/runtime", "eval_runtime"})
_GENERIC: Final = re.compile(
    r"(?i)^(version_\d+|tb|tb_?logs?|tensorboard|runs?|logs?|lightning_logs|events|train|output)$"
)
_INTERVALS: Final = "steps are dated by the records between them: a mean hides what happened inside"


class _Read:
    """Scalars of one file, by tag."""

    def __init__(self) -> None:
        self.created_at_ns = UNKNOWN
        self.series: dict[str, tuple[list[int], list[int]]] = {}
        self.kept: dict[str, dict[int, float]] = {_DATA_TAG: {}}
        self.evaluations: list[tuple[int, float]] = []
        self.others = 0


def looks_like_tensorboard(path: Path, head: bytes) -> bool:
    """Return whether a file is a TensorBoard event file, by its name and its first record."""
    return "tfevents" in path.name and looks_like_tfevents(head)


def read_tensorboard(path: Path, name: str) -> Told:
    """Return one session of a job, as its event file tells it."""
    damage = Damage()
    read = _scalars(path.read_bytes(), damage)
    notes = _damages(damage)
    lead = lead_tag(read.series)
    if not lead and not read.evaluations:
        return unreadable(name, "TensorBoard events without a scalar that training writes; ignored")
    launch = Launch()
    if lead:
        steps, walls = read.series[lead]
        if read.created_at_ns <= walls[0]:  # else the records were written afterwards
            launch.started_at_ns = read.created_at_ns
        add_series(launch, _series(steps, walls, read.kept[_DATA_TAG]), notes)
        notes[f"steps are taken from the scalar {lead!r}"] = 1
    for at, seconds in read.evaluations:
        if 0 < seconds <= LONGEST_S:
            launch.add(Happening("span", "evaluation", at, round(seconds * NS)))
    return told_of([launch], notes, path=path, name=name, writer=WRITER, job=job_of(path))


def lead_tag(series: dict[str, tuple[list[int], list[int]]]) -> str:
    """Return the scalar that tells most of training steps; empty = none does.

    Evaluation scalars, and those whose axis is not steps, are left out; most records win, then a
    loss, then the name.
    """
    fit = [tag for tag in series if not _NOT_TRAINING.search(tag) and not _OTHER_AXIS.search(tag)]
    fit = [tag for tag in fit if len(set(series[tag][0])) > 1] or fit
    ranked = sorted(fit, key=lambda tag: (-len(series[tag][0]), not _LOSS.search(tag), tag))
    return ranked[0] if ranked else ""


def job_of(path: Path) -> str:
    """Return a job's name after the folder of its event files, passing generic names."""
    for folder in path.absolute().parents:
        if folder.name and not _GENERIC.match(folder.name):
            return folder.name
    return path.name


def _scalars(data: bytes, damage: Damage) -> _Read:
    read = _Read()
    for event in events_of(data, damage):
        at = unix_ns(event.wall_time)
        if read.created_at_ns == UNKNOWN:
            read.created_at_ns = at
        for tag, number in event.values:
            if number is None:
                read.others += 1
                continue
            steps, walls = read.series.setdefault(tag, ([], []))
            steps.append(event.step)
            walls.append(at)
            if tag in read.kept:
                read.kept[tag][event.step] = number
            elif tag in _EVAL_RUNTIME:
                read.evaluations.append((at, number))
    return read


def _series(steps: list[int], walls: list[int], waits: dict[int, float]) -> Series:
    step = as_ints(steps)
    data = None
    if waits:  # torchtitan: the mean over the steps since the record before
        seconds = np.array([_sensible(waits.get(n, 0.0)) for n in steps])
        covers = np.clip(np.diff(step, prepend=0), 1, LARGEST_JUMP)
        data = (np.clip(seconds * covers, 0, LONGEST_S) * NS).astype(np.int64)
    return Series(step, as_ints(walls), data)


def _sensible(seconds: float) -> float:
    return seconds if 0 <= seconds <= LONGEST_S else 0.0


def _damages(damage: Damage) -> dict[str, int]:
    notes: dict[str, int] = {}
    if damage.lost:
        notes["records with a wrong checksum; skipped"] = damage.lost
    if damage.undecodable:
        notes["records that are no events; skipped"] = damage.undecodable
    if damage.stopped:
        notes["a record's length has a wrong checksum: the file is read up to there"] = 1
    if damage.torn:
        notes["the file ends inside a record: its writer died or is still writing"] = 1
    return notes
