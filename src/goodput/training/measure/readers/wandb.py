"""W&B run files (`run-<id>.wandb`): rows of the history as steps, start, exit."""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from goodput.core.timeline import as_ints
from goodput.training.measure.readers.leveldb_log import HEADER, Damage, records_of
from goodput.training.measure.readers.logs.batch import LONGEST_S
from goodput.training.measure.readers.logs.clock import unix_ns
from goodput.training.measure.readers.logs.story import NS, UNKNOWN, Finish, Happening, Launch
from goodput.training.measure.readers.series import Series, add_series
from goodput.training.measure.readers.tfrecord import fields, signed
from goodput.training.measure.readers.whole import Told, told_of, unreadable

WRITER: Final = "wandb reader"
STEP_KEYS: Final = (
    "train/global_step", "trainer/global_step", "global_step", "train/step", "iteration", "step",
)  # fmt: skip
"""What trainers call the step, before W&B's own count of rows."""
_COUNTER: Final = "_step"
_HISTORY, _RUN, _EXIT = 2, 17, 18
_DROPS: Final = "W&B drops rows whose step goes back: rework inside a run is not in this file"
_COUNTED: Final = "no row names the training step: W&B's count of rows is taken for it"


class _Run:
    """What a file says, record by record."""

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.started_at_ns = UNKNOWN
        self.exit_code: int | None = None
        self.runtime_s = -1
        self.rows: list[dict[str, float]] = []
        self.odd = 0


def looks_like_wandb(path: Path, head: bytes) -> bool:
    """Return whether a file is a W&B run file."""
    del path
    return head[: len(HEADER)] == HEADER


def read_wandb(path: Path, name: str) -> Told:
    """Return one session of a W&B run."""
    damage = Damage()
    run = _Run()
    for record in records_of(path.read_bytes(), damage):
        try:
            _take(record, run)
        except (ValueError, IndexError, struct.error):
            run.odd += 1
    notes = _notes(run, damage)
    key = _step_key(run.rows)
    if not key:
        return unreadable(name, "W&B run without a row of history; ignored")
    notes[_COUNTED if key == _COUNTER else f"steps are taken from {key!r}"] = 1
    launch = _launch(run, key, notes)
    aliases = (f"wandb:{run.id}",) if run.id else ()
    job = run.name or run.id
    return told_of([launch], notes, path=path, name=name, writer=WRITER, job=job, aliases=aliases)


def _launch(run: _Run, key: str, notes: dict[str, int]) -> Launch:
    launch = Launch()
    rows = [row for row in run.rows if key in row and abs(row[key]) < 2**53]
    at = as_ints([unix_ns(row.get("_timestamp", -1.0)) for row in rows])
    if at.size and run.started_at_ns <= int(at[0]):
        launch.started_at_ns = run.started_at_ns
    add_series(launch, Series(as_ints([int(row[key]) for row in rows]), at), notes)
    for row in run.rows:
        seconds = row.get("eval/runtime", -1.0)
        if 0 < seconds <= LONGEST_S:
            ended = unix_ns(row.get("_timestamp", -1.0))
            launch.add(Happening("span", "evaluation", ended, round(seconds * NS)))
    if run.exit_code is not None:
        launch.finish = _finish(run)
    return launch


def _finish(run: _Run) -> Finish:
    at = UNKNOWN
    if run.started_at_ns != UNKNOWN and run.runtime_s >= 0:
        at = run.started_at_ns + run.runtime_s * NS
    code = run.exit_code or 0
    outcome = "failed" if code else "completed"
    return Finish(outcome, evidence=f"W&B: exit code {code}", at_ns=at, exit_code=code)


def _step_key(rows: list[dict[str, float]]) -> str:
    """The name under which most rows give the training step."""
    for key in STEP_KEYS:
        if sum(key in row for row in rows) * 2 > len(rows) > 0:
            return key
    return _COUNTER if any(_COUNTER in row for row in rows) else ""


def _take(record: bytes, run: _Run) -> None:
    for field, wire, at, end in fields(record, 0, len(record)):
        if wire != 2:
            continue
        if field == _HISTORY:
            run.rows.append(dict(_row(record, at, end)))
        elif field == _RUN:
            _take_run(record, at, end, run)
        elif field == _EXIT:
            numbers = {f: signed(record, low) for f, w, low, _ in fields(record, at, end) if w == 0}
            run.exit_code, run.runtime_s = numbers.get(1, 0), numbers.get(2, -1)


def _row(record: bytes, at: int, end: int) -> Iterator[tuple[str, float]]:
    """The numbers of one row of history."""
    for field, wire, low, high in fields(record, at, end):
        if field != 1 or wire != 2:
            continue
        names: list[str] = []
        text = b""
        for kind, _, begin, stop in fields(record, low, high):
            if kind in {1, 2}:
                names.append(record[begin:stop].decode("utf-8", "replace"))
            elif kind == 16:
                text = record[begin:stop]
        number = _number(text)
        if number is not None:
            yield ".".join(names), number


def _number(text: bytes) -> float | None:
    try:
        value = msgspec.json.decode(text, type=float)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return value


def _take_run(record: bytes, at: int, end: int, run: _Run) -> None:
    for field, wire, low, high in fields(record, at, end):
        if wire != 2:
            continue
        if field == 1:
            run.id = record[low:high].decode("utf-8", "replace")
        elif field == 8:
            run.name = record[low:high].decode("utf-8", "replace")
        elif field == 17:
            parts = {f: signed(record, b) for f, w, b, _ in fields(record, low, high) if w == 0}
            if 0 < parts.get(1, 0) < 4 * 10**9:
                run.started_at_ns = parts[1] * NS + parts.get(2, 0)


def _notes(run: _Run, damage: Damage) -> dict[str, int]:
    notes = {_DROPS: 1}
    if run.odd:
        notes["records that cannot be decoded; skipped"] = run.odd
    if damage.blocks:
        notes["blocks with a wrong checksum; skipped"] = damage.blocks
    if damage.torn:
        notes["the file ends inside a record: its writer died or is still writing"] = 1
    return notes
