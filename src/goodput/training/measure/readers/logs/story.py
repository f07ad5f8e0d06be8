"""What a foreign log tells of a job, launch by launch, and how it becomes events.

Formats report what they read in file order: steps, spans, checkpoints, ends. Many lines carry no
time; `place` puts those between the ones that do, from the durations that are known. What was
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
LARGEST_STEP: Final = 10**12
LONGEST_NS: Final = 10**7 * NS
"""No record of a log lasts longer (115 days); sums of many stay within an int64."""
LATEST_NS: Final = 7_258_118_400 * NS
"""The year 2200."""
LARGEST_WORLD: Final = 2**20
LARGEST_FLOPS: Final = 1e30


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
    parts: tuple[tuple[str, Ints], ...] = ()
    """Named parts of it, one after the other from its start; 0 = not given."""


class Happening(NamedTuple):
    """Anything but a step: it ends at `at_ns`, or where it stands in the file.

    A span is told by `begin` and `end`, by `span` (its end and duration), by `since` (it began when
    the step before it was done) or by `gap` (from there to the start of the next step).
    """

    kind: Literal["mark", "begin", "end", "span", "since", "gap", "saved", "resumed"]
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
    """The launch was over by then."""
    fault_at_ns: int = UNKNOWN
    noticed_at_ns: int = UNKNOWN
    exit_code: int = -1
    signal: int = 0
    rank: int = -1

    def joined(self, later: "Finish") -> "Finish":
        """Return this end with what a later line adds: the first word on what happened stands."""
        return Finish(
            outcome=self.outcome,
            cause=self.cause or later.cause,
            evidence=self.evidence if self.cause or not later.cause else later.evidence,
            at_ns=max(self.at_ns, later.at_ns),
            fault_at_ns=_known(self.fault_at_ns, later.fault_at_ns),
            noticed_at_ns=_known(self.noticed_at_ns, later.noticed_at_ns),
            exit_code=self.exit_code if self.exit_code >= 0 else later.exit_code,
            signal=self.signal or later.signal,
            rank=self.rank if self.rank >= 0 else later.rank,
        )


def _known(first: int, second: int) -> int:
    return first if first != UNKNOWN else second


def check(*, step: int = 0, at_ns: int = UNKNOWN, duration_ns: int = 0) -> None:
    """Refuse numbers that no log means: they come from damaged lines.

    Raises:
        ValueError: a step beyond 10^12, a time beyond 2200, a duration beyond 115 days.
    """
    if not (-1 <= step <= LARGEST_STEP and duration_ns <= LONGEST_NS):
        raise ValueError(f"step {step} or duration {duration_ns} ns is out of range")
    if at_ns != UNKNOWN and not 0 <= at_ns <= LATEST_NS:
        raise ValueError(f"time {at_ns} ns is out of range")


class Launch:
    """One start of the job inside a file; formats fill it in file order."""

    def __init__(self) -> None:
        self.items: list[Steps | Happening] = []
        self.finish: Finish | None = None
        self.world = 0
        self.chips = 0
        self.flops_per_step = 0.0
        self.started_at_ns = UNKNOWN
        self.worked = False
        """A step was reported."""
        self.signs: set[str] = set()
        """Signs of a start that a launch gives once only."""

    @property
    def empty(self) -> bool:
        """Whether nothing was reported yet."""
        return not self.items and self.finish is None and self.started_at_ns == UNKNOWN

    def add(self, *items: Steps | Happening) -> None:
        """Append what was read.

        Raises:
            ValueError: a number is out of any reason.
        """
        for item in items:
            if isinstance(item, Happening):
                check(step=item.step, at_ns=item.at_ns, duration_ns=item.duration_ns)
        self.items.extend(items)
        self.worked = self.worked or any(isinstance(item, Steps) for item in items)

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


def length_ns(launch: Launch) -> int:
    """Return the summed durations of a launch, ns: all there is when no line carries a time."""
    return int(_timeline(launch.items)[1].sum())


def anchored(launch: Launch) -> bool:
    """Return whether any line of a launch carries a time."""
    finish = launch.finish.at_ns if launch.finish is not None else UNKNOWN
    known = bool((_timeline(launch.items)[0] != UNKNOWN).any())
    return known or finish != UNKNOWN or launch.started_at_ns != UNKNOWN


def place(launch: Launch, *, origin_ns: int) -> Placed:
    """Give every item an instant.

    Args:
        launch: as read.
        origin_ns: when the launch began, if no line says.
    """
    items = launch.items
    if launch.finish is not None and launch.finish.at_ns != UNKNOWN:
        items = [*items, Happening("mark", "end", launch.finish.at_ns)]
    ends, durations = _timeline(items)
    known = ends != UNKNOWN
    inferred = int((~known).sum())
    at = _fill(ends, durations, launch.started_at_ns, origin_ns)
    return _build(launch, items, at, inferred)


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

    Where that would reach beyond the next known instant, they are counted back from it: a line that
    gave the instant before was then written in the middle of a step. Before the first known instant
    of a launch whose start is not known, all are counted back.
    """
    known = np.flatnonzero(ends != UNKNOWN)
    total = durations.cumsum()
    if known.size == 0:
        start = started_ns if started_ns != UNKNOWN else origin_ns
        return start + total
    rows = np.arange(ends.size)
    before = np.searchsorted(known, rows, side="right") - 1
    after = np.minimum(before + 1, known.size - 1)
    low, high = known[np.maximum(before, 0)], known[after]
    forward = ends[low] + total - total[low]
    back = ends[high] - (total[high] - total)
    first = int(known[0])
    if started_ns != UNKNOWN and started_ns <= int(ends[first]):
        forward[:first] = started_ns + total[:first]
    else:
        forward[:first] = back[:first]
    last = before == known.size - 1
    floor = np.where(before >= 0, ends[low], np.int64(UNKNOWN))
    at = np.where(last, forward, np.maximum(np.minimum(forward, back), floor))
    at[known] = ends[known]
    return np.maximum.accumulate(at) if _rises_nearly(at) else at


def _rises_nearly(at: Ints) -> bool:
    """Small steps back come from rounding of the stamps; large ones are news and stay."""
    return at.size < 2 or int((at[1:] - at[:-1]).min()) > -2 * NS


class _Builder:
    """What `place` collects while it goes through a launch once more, now with instants."""

    def __init__(self, started_ns: int) -> None:
        self.steps: list[tuple[Ints, Ints, Ints, Ints]] = []
        self.spans: list[tuple[str, int, int, bool]] = []
        self.events: list[Event] = []
        self._opened: dict[str, int] = {}
        self._gap = ""
        self._done = started_ns
        """End of the step before; before the first step, the last instant that is known."""
        self._worked = False

    def take_steps(self, item: Steps, ended: Ints) -> None:
        """Add step records."""
        before = self._done if self._done != UNKNOWN else int(ended[0])
        rows = _step_rows(item, ended, before, self.spans)
        self._close_gap(int(rows[1][0]))
        self.steps.append(rows)
        self._done = int(ended[-1])
        self._worked = True

    def take(self, item: Happening, instant: int) -> None:
        """Add anything else."""
        kind, name = item.kind, item.name
        if kind == "begin":
            self._opened.setdefault(name, instant)
        elif kind == "end":
            start = self._opened.pop(name, instant - max(item.duration_ns, 0))
            if item.duration_ns >= 0:
                start = max(start, instant - item.duration_ns)
            self._span(name, start, instant, item)
        elif kind == "span":
            self._span(name, instant - max(item.duration_ns, 0), instant, item)
        elif kind == "since":
            self._span(name, self._done if self._done != UNKNOWN else instant, instant, item)
        elif kind == "gap":
            self._gap = name
        elif kind == "saved":
            self.events.append(Committed(t=instant, last_step=item.step, path=item.path))
        elif kind == "resumed":
            self.events.append(Resumed(t=instant, next_step=item.step, path=item.path))
        if not self._worked:
            self._done = instant

    def close(self) -> None:
        """Leave spans open that never ended; a gap that no step follows has no known end."""
        self.spans.extend((name, start, -1, False) for name, start in self._opened.items())

    def _span(self, name: str, start: int, end: int, item: Happening) -> None:
        if end >= start:
            self.spans.append((name, start, end - start, item.background))

    def _close_gap(self, until_ns: int) -> None:
        if self._gap and self._done != UNKNOWN and until_ns > self._done:
            self.spans.append((self._gap, self._done, until_ns - self._done, False))
        self._gap = ""


def _build(launch: Launch, items: Sequence[Steps | Happening], at: Ints, inferred: int) -> Placed:
    built = _Builder(launch.started_at_ns)
    row = 0
    for item in items:
        if isinstance(item, Steps):
            built.take_steps(item, at[row : row + item.first.size])
            row += item.first.size
        else:
            built.take(item, int(at[row]))
            row += 1
    built.close()
    steps, spans = built.steps, built.spans
    labels = tuple(Label(name, "") for name in dict.fromkeys(s[0] for s in spans))
    index = {label.name: i for i, label in enumerate(labels)}
    columns = SpanColumns(
        as_ints([index[s[0]] for s in spans]),
        as_ints([s[1] for s in spans]),
        as_ints([s[2] for s in spans]),
        as_ints([int(s[3]) for s in spans]),
    )
    first = _first(steps, spans, at)
    if launch.started_at_ns != UNKNOWN:
        first = min(first, launch.started_at_ns) if steps or spans else launch.started_at_ns
    last = max(
        [first, *(int(at.max()) for _ in [0] if at.size), *(s[1] + max(s[2], 0) for s in spans)]
    )
    return Placed(_columns(steps), columns, labels, tuple(built.events), first, last, inferred)


def _step_rows(
    item: Steps, ended: Ints, before_ns: int, spans: list[tuple[str, int, int, bool]]
) -> tuple[Ints, Ints, Ints, Ints]:
    """(first, start, duration, covers); a record without duration lasts from the one before."""
    given = item.duration_ns >= 0
    previous = np.concatenate((as_ints([before_ns]), ended[:-1]))
    duration = np.where(given, item.duration_ns, np.maximum(ended - previous, 0))
    start = ended - duration
    parts = item.parts if item.data_ns is None else (("data", item.data_ns), *item.parts)
    begin = start
    for name, lasted in parts:
        lasted = np.minimum(lasted, ended - begin)  # noqa: PLW2901 - a part is never longer than the rest
        spans.extend(
            (name, at, part, False)
            for at, part in zip(begin.tolist(), lasted.tolist(), strict=True)
            if part > 0
        )
        begin = begin + np.maximum(lasted, 0)
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


def lasted(steps: StepColumns) -> Ints:
    """Return the duration of each record, ns; placed records always have one."""
    assert steps.duration_ns is not None
    return steps.duration_ns


def process_log(
    launch: Launch,
    placed: Placed,
    *,
    job: str,
    path: str,
    number: int,
    attempt: str,
    aliases: tuple[str, ...] = (),
    writer: str = "log reader",
) -> ProcessLog:
    """Return a launch as the record of one process, rank 0 of its attempt."""
    header = Process(
        t=placed.started_at_ns,
        schema="goodput.events/1.0",
        job=job,
        rank=0,
        world=launch.world if 0 < launch.world <= LARGEST_WORLD else 1,
        attempt=attempt,
        pid=0,
        host=f"{path}#{number}",
        started=placed.started_at_ns,
        writer=writer,
        origin="log",
    )
    events = list(placed.events)
    if 0 < launch.chips <= LARGEST_WORLD:
        events.append(Allocated(t=placed.started_at_ns, chips=launch.chips))
    if 0 < launch.flops_per_step < LARGEST_FLOPS:
        events.append(
            Work(t=placed.started_at_ns, flops_per_step=launch.flops_per_step, source="log")
        )
    last = placed.last_at_ns
    if launch.finish is not None:
        end = launch.finish
        fault = end.fault_at_ns
        if fault != UNKNOWN and placed.steps.n.size:
            # A collective that never ended was enqueued before the last steps were logged.
            done = placed.steps.at_ns + lasted(placed.steps)
            fault = max(fault, int(done[done <= max(end.noticed_at_ns, fault)].max(initial=fault)))
        last = max(last, end.at_ns if end.at_ns != UNKNOWN else last)
        events.append(
            AttemptEnd(
                t=last,
                attempt=attempt,
                outcome=end.outcome,
                cause=end.cause,
                evidence=end.evidence,
                exit_code=end.exit_code,
                signal=end.signal,
                rank=end.rank if end.rank < LARGEST_WORLD else -1,
                fault_t=max(fault, 0),
                noticed_t=max(end.noticed_at_ns, 0),
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
        aliases=aliases,
        inferred=placed.inferred,
    )
