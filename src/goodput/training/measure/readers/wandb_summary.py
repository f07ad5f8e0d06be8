"""`wandb-summary.json`: when a session began and ended, and how many steps it took. Totals only.

What is left of a run whose files were fetched from W&B without its `.wandb` file.
"""

from pathlib import Path
from typing import Final

import msgspec

from goodput.core.timeline import as_ints
from goodput.training.measure.readers.logs.batch import LARGEST_JUMP, LONGEST_S
from goodput.training.measure.readers.logs.clock import unix_ns
from goodput.training.measure.readers.logs.story import NS, UNKNOWN, Launch, Steps
from goodput.training.measure.readers.wandb import STEP_KEYS
from goodput.training.measure.readers.whole import Told, told_of, unreadable

WRITER: Final = "wandb summary reader"
_TOTALS: Final = (
    "wandb-summary.json holds totals only: startup, stalls and evaluations are inside the one "
    "record of steps (give run-<id>.wandb or output.log as well)"
)
_FILE: Final = "wandb-summary.json"


def looks_like_wandb_summary(path: Path, head: bytes) -> bool:
    """Return whether a file is a W&B summary, by its name."""
    return path.name == _FILE and head.lstrip()[:1] == b"{"


def read_wandb_summary(path: Path, name: str) -> Told:
    """Return one session as one record of steps."""
    try:
        summary = msgspec.json.decode(path.read_bytes(), type=dict[str, object])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return unreadable(name, f"not a whole {_FILE} ({error}); ignored")
    ended = unix_ns(_number(summary, "_timestamp"))
    runtime = _number(summary, "_runtime")
    if ended == UNKNOWN or not 0 <= runtime <= LONGEST_S:
        return unreadable(name, f"{_FILE} without _timestamp and _runtime; ignored")
    launch = Launch()
    launch.started_at_ns = ended - round(runtime * NS)
    steps = _steps(summary)
    if 0 < steps <= LARGEST_JUMP:
        launch.add(Steps(as_ints([1]), as_ints([steps]), as_ints([ended]), as_ints([-1])))
    launch.mark(ended)
    return told_of(
        [launch],
        {_TOTALS: 1},
        path=path,
        name=name,
        writer=WRITER,
        job=_job(path),
        warnings=frozenset({_TOTALS}),
    )


def _steps(summary: dict[str, object]) -> int:
    """Steps of the session: the training step, else W&B's count of rows."""
    for key in STEP_KEYS:
        number = _number(summary, key)
        if 0 < number <= LARGEST_JUMP:
            return int(number)
    number = _number(summary, "_step")
    return int(number) + 1 if 0 <= number < LARGEST_JUMP else 0


def _job(path: Path) -> str:
    """The run's folder: run-<date>-<id>/files/wandb-summary.json."""
    folder = path.absolute().parent
    return (folder.parent if folder.name == "files" else folder).name


def _number(summary: dict[str, object], key: str) -> float:
    """A number of the summary; -1 = it is none."""
    value = summary.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return -1.0
    return float(value) if abs(value) < 2**53 else -1.0
