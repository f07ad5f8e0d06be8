"""Growing columns: where decoded events land while a file is read, and read on when it grows."""

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Generic, TypeVar

import numpy as np

from goodput.core.events import Begin, Event, Span
from goodput.core.timeline import Ints, as_ints
from goodput.training.measure.eventlog import EndColumns, Label, SpanColumns, StepColumns

T = TypeVar("T")


class Column:
    """An int64 array that grows by doubling; `view` costs nothing."""

    __slots__ = ("_data", "_handed_out", "size")

    def __init__(self, capacity: int = 256) -> None:
        self._data: Ints = np.empty(capacity, dtype=np.int64)
        self._handed_out = False
        self.size = 0

    def extend(self, values: Ints) -> None:
        """Append values, shape (N,)."""
        need = self.size + values.size
        if need > self._data.size:
            grown: Ints = np.empty(max(need, self._data.size * 3 // 2), dtype=np.int64)
            grown[: self.size] = self._data[: self.size]
            self._data = grown
        self._data[self.size : need] = values
        self.size = need

    def fill(self, value: int, count: int) -> None:
        """Append `count` times the same value."""
        self.extend(np.full(count, value, dtype=np.int64))

    def set(self, index: int, value: int) -> None:
        """Overwrite one value, but not in the views that were given away."""
        if self._handed_out:
            self._data, self._handed_out = self._data.copy(), False
        self._data[index] = value

    @property
    def view(self) -> Ints:
        """The values so far, shape (size,), sharing memory."""
        self._handed_out = True
        return self._data[: self.size]


class OptionalColumn:
    """A column that stays unallocated while every value is the default."""

    __slots__ = ("_column", "_default", "_size")

    def __init__(self, default: int) -> None:
        self._default = default
        self._column: Column | None = None
        self._size = 0

    def extend(self, values: Ints) -> None:
        """Append values, shape (N,)."""
        if self._column is None and bool((values != self._default).any()):
            self._column = Column(max(256, self._size * 2))
            self._column.fill(self._default, self._size)
        self._size += values.size
        if self._column is not None:
            self._column.extend(values)

    @property
    def view(self) -> Ints | None:
        """The values, or None when all are the default."""
        return None if self._column is None else self._column.view


def gather(events: Sequence[Event], field: str) -> Ints:
    """Return one integer field of many events, shape (N,)."""
    return np.fromiter(map(attrgetter(field), events), dtype=np.int64, count=len(events))


class Interner(Generic[T]):
    """Gives each distinct value a small index, in order of first sight."""

    __slots__ = ("_index",)

    def __init__(self, first: Iterable[T] = ()) -> None:
        self._index: dict[T, int] = {value: i for i, value in enumerate(first)}

    def __call__(self, value: T) -> int:
        """Return the index of a value."""
        return self._index.setdefault(value, len(self._index))

    @property
    def values(self) -> tuple[T, ...]:
        """Every value seen, by index."""
        return tuple(self._index)


class StepStore:
    """Columns of `step` events."""

    def __init__(self) -> None:
        self.n, self.at = Column(), Column()
        self.duration, self.count = OptionalColumn(-1), OptionalColumn(0)
        self.comm, self.shape = OptionalColumn(0), OptionalColumn(0)
        self._shapes: Interner[str] = Interner([""])

    def add(self, events: list[Event], at_ns: Ints) -> None:
        """Append events with their corrected times."""
        self.n.extend(gather(events, "n"))
        self.at.extend(at_ns)
        self.duration.extend(gather(events, "d"))
        self.count.extend(gather(events, "c"))
        self.comm.extend(gather(events, "comm"))
        index = self._shapes
        self.shape.extend(
            np.fromiter(
                (index(s) if (s := getattr(e, "shape", "")) else 0 for e in events),
                dtype=np.int64,
                count=len(events),
            )
        )

    def add_plain(self, n: Ints, at_ns: Ints) -> None:
        """Append marks that carry nothing but number and time."""
        self.n.extend(n)
        self.at.extend(at_ns)
        absent = np.full(n.size, -1, dtype=np.int64)
        zero = np.zeros(n.size, dtype=np.int64)
        self.duration.extend(absent)
        for column in (self.count, self.comm, self.shape):
            column.extend(zero)

    @property
    def shapes(self) -> tuple[str, ...]:
        """Names of the shapes, by index."""
        return self._shapes.values

    def columns(self, shift_ns: int) -> StepColumns:
        """Return the columns, times shifted."""
        return StepColumns(
            self.n.view,
            shifted(self.at.view, shift_ns),
            self.duration.view,
            self.count.view,
            self.comm.view,
            self.shape.view,
        )


class EndStore:
    """Columns of `step_end` events."""

    def __init__(self) -> None:
        self.n, self.at, self.comm = Column(16), Column(16), Column(16)

    def add(self, events: list[Event], at_ns: Ints) -> None:
        """Append events with their corrected times."""
        self.n.extend(gather(events, "n"))
        self.at.extend(at_ns)
        self.comm.extend(gather(events, "comm"))

    def columns(self, shift_ns: int) -> EndColumns:
        """Return the columns, times shifted."""
        return EndColumns(self.n.view, shifted(self.at.view, shift_ns), self.comm.view)


class SpanStore:
    """Columns of `span` events; a `begin` is a row without duration until its span arrives."""

    def __init__(self) -> None:
        self.name, self.at = Column(16), Column(16)
        self.duration, self.background = Column(16), Column(16)
        self._labels: Interner[tuple[str, str]] = Interner()
        self._open: dict[int, int] = {}

    def add(self, events: list[Event], at_ns: Ints) -> None:
        """Append `begin` and `span` events, in file order, with their corrected times."""
        base = self.name.size
        names: list[int] = []
        starts: list[int] = []
        durations: list[int] = []
        background: list[int] = []
        for event, at in zip(events, at_ns.tolist(), strict=True):
            row = -1
            if isinstance(event, Span):
                if event.id:
                    row = self._open.pop(event.id, -1)
                duration, aside = max(event.d, 0), int(event.background)
            elif isinstance(event, Begin):
                self._open[event.id] = base + len(names)
                duration, aside = -1, 0
            else:
                continue
            if row >= base:
                starts[row - base], durations[row - base], background[row - base] = (
                    at,
                    duration,
                    aside,
                )
            elif row >= 0:
                self.at.set(row, at)
                self.duration.set(row, duration)
                self.background.set(row, aside)
            else:
                names.append(self._labels((event.name, event.counts_as)))
                starts.append(at)
                durations.append(duration)
                background.append(aside)
        for column, values in (
            (self.name, names),
            (self.at, starts),
            (self.duration, durations),
            (self.background, background),
        ):
            column.extend(as_ints(values))

    @property
    def labels(self) -> tuple[Label, ...]:
        """Span labels, by index."""
        return tuple(Label(*pair) for pair in self._labels.values)

    def columns(self, shift_ns: int) -> SpanColumns:
        """Return the columns, times shifted."""
        return SpanColumns(
            self.name.view,
            shifted(self.at.view, shift_ns),
            self.duration.view,
            self.background.view,
        )


def shifted(at_ns: Ints, shift_ns: int) -> Ints:
    """Return times moved by a constant, without a copy when it is zero."""
    return at_ns + shift_ns if shift_ns else at_ns
