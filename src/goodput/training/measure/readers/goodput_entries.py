"""Entries of ml-goodput-measurement's GoodputRecorder as JSON lines, bare or in a log export.

Its local cache (`<job>_timeline.jsonl`) is such a file; exports of Cloud Logging wrap each entry in
`jsonPayload`. Orbax's save and restore records may stand among them.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from goodput.core.events import Allocated, Committed, Ended, Event, Process, ProcessEnd
from goodput.core.notes import Note
from goodput.core.timeline import as_ints
from goodput.training.measure.eventlog import (
    NO_ENDS,
    Label,
    ProcessLog,
    SpanColumns,
    StepColumns,
)
from goodput.training.measure.readers.logs.batch import LARGEST_JUMP, LONGEST_S
from goodput.training.measure.readers.logs.clock import unix_ns
from goodput.training.measure.readers.logs.story import LARGEST_STEP, NS, UNKNOWN
from goodput.training.measure.readers.whole import Told, unreadable

WRITER: Final = "ml-goodput-measurement reader"
_SPANS: Final = {
    "tpu_init": Label("tpu_init", "startup"),
    "training_prep": Label("training_prep", "startup"),
    "data_loading": Label("data", ""),
    "elastic_reinit": Label("elastic_reinit", "recovery"),
}
"""Pairs `<name>_start_time`, `<name>_end_time`, and what they are here (docs/concepts.md)."""
_ORBAX: Final = (
    "checkpoint_manager_blocking", "checkpointer_blocking", "checkpoint_manager", "checkpointer",
)  # fmt: skip
"""Stems of `<stem>_start_time` and `<stem>_duration_secs`, the whole before its parts."""
_SLICES: Final = "slices are counted as chips: give --chips for chip-hours"
_ASYNC: Final = "saves are committed when they stop blocking: asynchronous ones a little later"
_BAD: Final = "lines that are no entries; skipped"


class _Attempt:
    """Entries from one job start to the next."""

    def __init__(self, at_ns: int) -> None:
        self.started_at_ns = at_ns
        self.last_at_ns = at_ns
        self.steps: list[tuple[int, int]] = []
        self.spans: list[tuple[Label, int, int]] = []
        self.open: dict[Label, int] = {}
        self.events: list[Event] = []

    def alive(self, at_ns: int) -> None:
        """Note a sign of life."""
        self.last_at_ns = max(self.last_at_ns, at_ns)


def looks_like_goodput_entries(path: Path, head: bytes) -> bool:
    """Return whether a file begins with an entry of the recorder."""
    del path
    first = head.split(b"\n", 1)[0]
    return first.lstrip()[:1] == b"{" and b'"job_name"' in first and b"_time" in first


def read_goodput_entries(path: Path, name: str) -> Told:
    """Return the launches of a job, as the recorder's entries tell them."""
    notes: dict[str, int] = {}
    attempts: list[_Attempt] = []
    job = ""
    for entry in _entries(path.read_bytes(), notes):
        job = job or str(entry.get("job_name") or "")
        _take(entry, attempts, notes)
    if not attempts:
        return unreadable(name, "no entry of ml-goodput-measurement with a time; ignored")
    logs = tuple(
        _process_log(attempt, job or path.stem, name, number)
        for number, attempt in enumerate(attempts, start=1)
    )
    return Told(
        logs, tuple(Note(level="info", text=t, where=name, count=n) for t, n in notes.items())
    )


def _entries(data: bytes, notes: dict[str, int]) -> Iterator[dict[str, object]]:
    for line in data.splitlines():
        if not line.strip():
            continue
        try:
            entry = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            entry = None
        if isinstance(entry, dict):
            for wrapper in ("jsonPayload", "payload"):
                if isinstance(entry.get(wrapper), dict):
                    entry = entry[wrapper]
            yield entry
        else:
            notes[_BAD] = notes.get(_BAD, 0) + 1


def _take(entry: Mapping[str, object], attempts: list[_Attempt], notes: dict[str, int]) -> None:
    started = _at(entry, "job_start_time")
    if started != UNKNOWN:
        attempts.append(_Attempt(started))
        return
    times = [at for at in (_at(entry, key) for key in entry if "time" in key) if at != UNKNOWN]
    if not times:
        return
    if not attempts:
        attempts.append(_Attempt(min(times)))
    now = attempts[-1]
    if entry.get("event_type") in {"save", "restore", "emergency_restore"}:
        _checkpoint(entry, now, notes)
        return
    for at in times:
        now.alive(at)
    if not _step(entry, now) and not _pair(entry, now):
        _rest(entry, now, notes)


def _step(entry: Mapping[str, object], now: _Attempt) -> bool:
    at, step = _at(entry, "step_start_time"), entry.get("step_count")
    if at == UNKNOWN or not isinstance(step, int) or not 0 <= step <= LARGEST_STEP:
        return False
    if now.steps and step - now.steps[-1][0] > LARGEST_JUMP:
        return False
    now.steps.append((step, at))
    return True


def _pair(entry: Mapping[str, object], now: _Attempt) -> bool:
    """Start or end of a phase, of a custom event or of an elastic wait."""
    labels = dict(_SPANS)
    custom = str(entry.get("custom_badput_event_type") or "custom").lower()
    labels["custom_badput_event"] = Label(custom, "evaluation" if "eval" in custom else "")
    wait = str(entry.get("elastic_wait_event_type") or "wait").lower()
    labels["elastic_wait"] = Label(f"elastic_{wait}", "recovery")
    for key, label in labels.items():
        begun, ended = _at(entry, f"{key}_start_time"), _at(entry, f"{key}_end_time")
        if begun != UNKNOWN:
            now.open.setdefault(label, begun)
            return True
        if ended != UNKNOWN:
            start = now.open.pop(label, UNKNOWN)
            if start != UNKNOWN and ended >= start:
                now.spans.append((label, start, ended - start))
            return True
    return False


def _rest(entry: Mapping[str, object], now: _Attempt, notes: dict[str, int]) -> None:
    """End of the job, or the number of slices."""
    ended = _at(entry, "job_end_time")
    if ended != UNKNOWN:
        now.events.append(ProcessEnd(t=ended))
        now.events.append(Ended(t=ended))
    at, active = _at(entry, "elastic_slice_counts_timestamp"), entry.get("active_slices")
    if at != UNKNOWN and isinstance(active, int) and 0 <= active < 2**31:
        wanted, there = entry.get("total_slices"), entry.get("available_slices")
        now.events.append(
            Allocated(
                t=at,
                chips=active,
                requested=wanted if isinstance(wanted, int) and 0 <= wanted < 2**31 else 0,
                available=there if isinstance(there, int) and 0 <= there < 2**31 else 0,
            )
        )
        notes[_SLICES] = 1


def _checkpoint(entry: Mapping[str, object], now: _Attempt, notes: dict[str, int]) -> None:
    """A record of Orbax: when a save or restore blocked, and for how long."""
    saves = entry.get("event_type") == "save"
    for stem in (
        "checkpoint_manager_blocking",
        "checkpointer_blocking",
        "checkpoint_manager",
        "checkpointer",
    ):
        at, seconds = _at(entry, f"{stem}_start_time"), entry.get(f"{stem}_duration_secs")
        if at == UNKNOWN or not isinstance(seconds, int | float) or not 0 <= seconds <= LONGEST_S:
            continue
        lasted = round(seconds * NS)
        now.spans.append((Label("checkpoint" if saves else "restore", ""), at, lasted))
        now.alive(at + lasted)
        step = entry.get("step")
        if saves and isinstance(step, int) and abs(step) < 2**53:
            now.events.append(
                Committed(t=at + lasted, last_step=step, path=str(entry.get("directory") or ""))
            )
            notes[_ASYNC] = 1
        return


def _at(entry: Mapping[str, object], key: str) -> int:
    value = entry.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return UNKNOWN
    return unix_ns(float(value)) if value == value else UNKNOWN  # noqa: PLR0124  # NaN


def _process_log(attempt: _Attempt, job: str, path: str, number: int) -> ProcessLog:
    spans = [*attempt.spans, *((label, at, -1) for label, at in attempt.open.items())]
    labels = tuple(dict.fromkeys(label for label, _, _ in spans))
    begun = min([attempt.started_at_ns, *(at for _, at in attempt.steps[:1])])
    return ProcessLog(
        header=Process(
            t=begun,
            schema="goodput.events/1.0",
            job=job,
            attempt=f"start {number}",
            host=f"{path}#{number}",
            started=begun,
            writer=WRITER,
            origin="log",
        ),
        path=path,
        offset_ns=0,
        steps=StepColumns(
            as_ints([n for n, _ in attempt.steps]),
            as_ints([at for _, at in attempt.steps]),
            None,
            None,
            None,
            None,
        ),
        ends=NO_ENDS,
        spans=SpanColumns(
            as_ints([labels.index(label) for label, _, _ in spans]),
            as_ints([at for _, at, _ in spans]),
            as_ints([lasted for _, _, lasted in spans]),
            as_ints([0 for _ in spans]),
        ),
        labels=labels,
        shapes=("",),
        windows=(),
        events=tuple(sorted(attempt.events, key=lambda event: event.t)),
        last_at_ns=max(attempt.last_at_ns, attempt.started_at_ns),
    )
