"""What a foreign log tells of a job, launch by launch, and how it becomes events.

Formats report what they read in file order: steps, spans, checkpoints, ends. Many lines carry no time;
`Launch.log` places those between the ones that do, from the durations that are known. What was
placed that way is inferred, and counted.
"""

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

import numpy as np

from goodput.core.events import Allocated, AttemptEnd, Committed, Event, Process, Resumed, Work
from goodput.core.timeline import Ints, as_ints
from goodput.training.measure.eventlog import (
    NO_ENDS,
    Label,
    ProcessLog,
    SpanColumns,
    StepColumns,
    stack,
)

UNKNOWN: Final = -(2**62)
"""An instant that no line gives."""
NS: Final = 1_000_000_000


class Steps(NamedTuple):
    """A run of step records in file order. Shapes (S,)."""

    first: Ints
    """First step that each record covers."""
    covers: Ints
    """Steps that it covers."""
    ended_at_ns: Ints
    """UNKNOWN where the line has no time."""
    duration_ns: Ints
    """Wall time of all its steps together; -1 = not given."""
    data_ns: Ints | None = None
    """Of it, waiting for data; None = not given."""


class Happening(NamedTuple):
    """Anything but a step: it ends at `at_ns`, or where it stands in the file."""

    kind: Literal["mark", "begin", "end", "span", "saved", "resumed"]
    name: str
    at_ns: int = UNKNOWN
    duration_ns: int = -1
    step: int = -1
    background: bool = False
    path: str = ""


class Finish(NamedTuple):
    """How a launch ended, by the log's own word."""

    outcome: str
    cause: str = ""
    evidence: str = ""
    at_ns: int = UNKNOWN
    fault_at_ns: int = UNKNOWN
    exit_code: int = -1
    rank: int = -1


class Launch:
    """One start of the job inside a file; formats fill it in file order."""

    def __init__(self) -> None:
        self.items: list[Steps | Happening] = []
        self.finish: Finish | None = None
        self.world = 0
        self.chips = 0
        self.flops_per_step = 0.0
        self.tflops_per_chip: list[float] = []
        self.started_at_ns = UNKNOWN

    @property
    def empty(self) -> bool:
        """Whether nothing was reported yet."""
        return not self.items and self.finish is None and self.started_at_ns == UNKNOWN

    def add(self, *items: Steps | Happening) -> None:
        """Append what was read."""
        self.items.extend(items)

    def mark(self, at_ns: int, name: str = "") -> None:
        """Note an instant at which the launch was alive."""
        if at_ns != UNKNOWN:
            if self.started_at_ns == UNKNOWN and not self.items:
                self.started_at_ns = at_ns
            self.items.append(Happening("mark", name, at_ns))


class Placed(NamedTuple):
    """A launch with every item at an instant."""

    steps: StepColumns
    spans: SpanColumns
    labels: tuple[Label, ...]
    events: tuple[Event, ...]
    started_at_ns: int
    last_at_ns: int
    inferred: int
    """Records whose time was inferred."""


def place(launch: Launch, *, origin_ns: int) -> Placed:
    """Give every item an instant.

    Args:
        launch: as read.
        origin_ns: when the launch began, if no line says: a file's time, the end of the one before.
    """
    ends, durations = _timeline(launch.items)
    known = ends != UNKNOWN
    inferred = int((~known).sum())
    at = _fill(ends, durations, launch.started_at_ns, origin_ns)
    return _build(launch, at, inferred)


def _timeline(items: Sequence[Steps | Happening]) -> tuple[Ints, Ints]:
    """End and duration of every record in file order; spans open and close at their own line."""
    ends: list[Ints] = []
    durations: list[Ints] = []
    for item in items:
        if isinstance(item, Steps):
            ends.append(item.ended_at_ns)
            durations.append(np.maximum(item.duration_ns, 0))
        else:
            ends.append(as_ints([item.at_ns]))
            durations.append(as_ints([max(item.duration_ns, 0) if item.kind == "span" else 0]))
    return stack(ends), stack(durations)


def _fill(ends: Ints, durations: Ints, started_ns: int, origin_ns: int) -> Ints:
    """Instants of all records: known ones stand; others follow the one before by their duration.

    Before the first known instant they are counted back from it. A record is never placed after
    the next known instant.
    """
    known = np.flatnonzero(ends != UNKNOWN)
    total = durations.cumsum()
    if known.size == 0:
        start = started_ns if started_ns != UNKNOWN else origin_ns
        return start + total
    at = ends.copy()
    before = np.searchsorted(known, np.arange(ends.size), side="right") - 1
    anchor = known[np.maximum(before, 0)]
    free = ends == UNKNOWN
    at[free] = (ends[anchor] + total - total[anchor])[free]
    first = int(known[0])
    if started_ns != UNKNOWN and started_ns <= int(ends[first]):
        # The start is known: count forward from it, as far as the first known instant.
        at[:first] = started_ns + total[:first]
    following = np.concatenate((known, [ends.size - 1]))[np.searchsorted(known, np.arange(ends.size))]
    limit = np.where(ends[following] != UNKNOWN, ends[following], np.int64(2**62))
    at[free] = np.minimum(at, limit)[free]
    return np.maximum.accumulate(at) if _rises_nearly(at) else at


def _rises_nearly(at: Ints) -> bool:
    """Small steps back come from rounding of the stamps; large ones are news and stay."""
    return at.size < 2 or int((at[1:] - at[:-1]).min()) > -2 * NS


def _build(launch: Launch, at: Ints, inferred: int) -> Placed:
    steps: list[tuple[Ints, Ints, Ints, Ints]] = []
    spans: list[tuple[str, int, int, bool]] = []
    events: list[Event] = []
    opened: dict[str, int] = {}
    row = 0
    for item in launch.items:
        if isinstance(item, Steps):
            count = item.first.size
            steps.append(_step_rows(item, at[row : row + count], spans))
            row += count
            continue
        instant = int(at[row])
        row += 1
        if item.kind == "begin":
            opened[item.name] = instant
        elif item.kind == "end":
            start = opened.pop(item.name, instant - max(item.duration_ns, 0))
            if item.duration_ns >= 0:
                start = max(start, instant - item.duration_ns)
            spans.append((item.name, start, instant - start, item.background))
        elif item.kind == "span":
            spans.append((item.name, instant - item.duration_ns, item.duration_ns, item.background))
        elif item.kind == "saved":
            events.append(Committed(t=instant, last_step=item.step, path=item.path))
        elif item.kind == "resumed":
            events.append(Resumed(t=instant, next_step=item.step, path=item.path))
    spans.extend((name, start, -1, False) for name, start in opened.items())
    labels = tuple(Label(name, "") for name in dict.fromkeys(s[0] for s in spans))
    index = {label.name: i for i, label in enumerate(labels)}
    columns = SpanColumns(
        as_ints([index[s[0]] for s in spans]),
        as_ints([s[1] for s in spans]),
        as_ints([s[2] for s in spans]),
        as_ints([int(s[3]) for s in spans]),
    )
    first = launch.started_at_ns if launch.started_at_ns != UNKNOWN else _first(steps, spans, at)
    last = max(
        [first, *(int(at.max()) for _ in [0] if at.size), *(s[1] + max(s[2], 0) for s in spans)]
    )
    return Placed(_columns(steps), columns, labels, tuple(events), first, last, inferred)


def _step_rows(
    item: Steps, ended: Ints, spans: list[tuple[str, int, int, bool]]
) -> tuple[Ints, Ints, Ints, Ints]:
    """(first, start, duration, covers); a record without duration lasts from the one before."""
    given = item.duration_ns >= 0
    previous = np.concatenate((ended[:1], ended[:-1]))
    duration = np.where(given, item.duration_ns, np.maximum(ended - previous, 0))
    start = ended - duration
    if item.data_ns is not None:
        spans.extend(
            ("data", begin, wait, False)
            for begin, wait in zip(start.tolist(), item.data_ns.tolist(), strict=True)
            if wait > 0
        )
    return item.first, start, duration, item.covers


def _columns(steps: list[tuple[Ints, Ints, Ints, Ints]]) -> StepColumns:
    first, start, duration, covers = (stack([s[i] for s in steps]) for i in range(4))
    plain = covers.size == 0 or bool((covers == 1).all())
    return StepColumns(first, start, duration, None if plain else covers, None, None)


def _first(
    steps: list[tuple[Ints, Ints, Ints, Ints]], spans: list[tuple[str, int, int, bool]], at: Ints
) -> int:
    starts = [int(s[1].min()) for s in steps if s[1].size] + [s[1] for s in spans]
    return min([*starts, *([int(at.min())] if at.size else [])], default=0)


def process_log(
    launch: Launch, placed: Placed, *, job: str, path: str, number: int, attempt: str
) -> ProcessLog:
    """Return a launch as the record of one process, rank 0 of its attempt."""
    header = Process(
        t=placed.started_at_ns,
        schema="goodput.events/1.0",
        job=job,
        rank=0,
        world=max(launch.world, 1),
        attempt=attempt,
        pid=0,
        host=f"{path}#{number}",
        started=placed.started_at_ns,
        writer="log reader",
        origin="log",
    )
    events = list(placed.events)
    if launch.chips:
        events.append(Allocated(t=placed.started_at_ns, chips=launch.chips))
    if launch.flops_per_step:
        events.append(
            Work(t=placed.started_at_ns, flops_per_step=launch.flops_per_step, source="log")
        )
    last = placed.last_at_ns
    if launch.finish is not None:
        end = launch.finish
        last = max(last, end.at_ns if end.at_ns != UNKNOWN else last)
        events.append(
            AttemptEnd(
                t=last,
                attempt=attempt,
                outcome=end.outcome,
                cause=end.cause,
                evidence=end.evidence,
                exit_code=end.exit_code,
                rank=end.rank,
                fault_t=end.fault_at_ns if end.fault_at_ns != UNKNOWN else 0,
            )
        )
    return ProcessLog(
        header=header,
        path=path,
        offset_ns=0,
        steps=placed.steps,
        ends=NO_ENDS,
        spans=placed.spans,
        labels=placed.labels,
        shapes=("",),
        windows=(),
        events=tuple(events),
        last_at_ns=last,
    )
