"""Step lines collected in columns until something else happens, and which steps they cover."""

from typing import Final

from goodput.core.timeline import as_ints
from goodput.training.measure.readers.logs.clock import iso_column
from goodput.training.measure.readers.logs.story import (
    LONGEST_NS,
    NS,
    UNKNOWN,
    Launch,
    Steps,
    check,
)
from goodput.training.measure.readers.logs.text import Story

LONGEST_FIRST: Final = 100
"""The only step line of a file covers all steps so far if there are not more than these (trainers
log every 1, 10, 20, 50 or 100 steps unless told otherwise)."""
LONGEST_S: Final = LONGEST_NS / NS
LARGEST_JUMP: Final = 10**6
"""No trainer writes one line for more steps than this."""
BLOCK: Final = 1 << 15
"""Records that are held as Python objects before they become columns."""
LATE_COPIES: Final = 2
"""A line about a step this many lines back is another rank's copy that came late."""


class StepBatch:
    """Steps in file order; `flush` hands them to the launch."""

    __slots__ = ("_at", "_covers", "_data", "_first", "_packed", "_parts", "_seconds", "_stamps")

    def __init__(self) -> None:
        self._packed: list[Steps] = []
        self._clear()

    def _clear(self) -> None:
        self._first: list[int] = []
        self._covers: list[int] = []
        self._seconds: list[float] = []
        self._stamps: list[bytes] = []
        self._at: list[int] = []
        self._data: list[float] = []
        self._parts: list[tuple[tuple[str, float], ...]] = []

    def add(
        self,
        first: int,
        *,
        covers: int = 1,
        seconds: float = -1.0,
        stamp: bytes = b"",
        at_ns: int = UNKNOWN,
        data_s: float = 0.0,
        parts: tuple[tuple[str, float], ...] = (),
    ) -> None:
        """Append a record.

        Args:
            first: first step that it covers.
            covers: steps that it covers.
            seconds: wall time of all of them together; -1 = not given.
            stamp: ISO date and time at which they were done, if the line has one.
            at_ns: the same as Unix ns.
            data_s: of the seconds, waiting for data.
            parts: of the seconds, (name, seconds) from the start on; every record of a format names
                the same parts.

        Raises:
            ValueError: a number is out of any reason.
        """
        check(step=first + covers, at_ns=at_ns)
        # Parts may be wrong where the whole is not: one damaged digit of a line is enough.
        longest = max((seconds, data_s, *(part for _, part in parts)))
        if not (longest <= LONGEST_S and covers <= LARGEST_JUMP):
            raise ValueError(f"{covers} steps in {longest} s are out of range")
        if data_s or self._data:
            self._data.extend([0.0] * (len(self._first) - len(self._data)))
            self._data.append(data_s)
        if parts:
            self._parts.append(parts)
        self._first.append(first)
        self._covers.append(covers)
        self._seconds.append(seconds)
        self._stamps.append(stamp)
        self._at.append(at_ns)
        if len(self._first) >= BLOCK:
            self._pack()

    def flush(self, launch: Launch) -> None:
        """Give the launch what was collected."""
        if self._first:
            self._pack()
        if self._packed:
            launch.add(*self._packed)
            self._packed.clear()

    def resize_last(self, covers: int, launch: Launch) -> None:
        """Let the last record cover another number of steps, its time in proportion."""
        self.flush(launch)
        item = next((item for item in reversed(launch.items) if isinstance(item, Steps)), None)
        if item is None or covers == item.covers[-1]:
            return
        before = int(item.covers[-1])
        item.first[-1] += before - covers
        item.covers[-1] = covers
        for column in (item.duration_ns, item.data_ns, *(lasted for _, lasted in item.parts)):
            if column is not None and column[-1] > 0:
                column[-1] = int(column[-1]) * covers // before

    def _pack(self) -> None:
        """Turn what was collected into columns: a tenth of the memory."""
        at = as_ints(self._at)
        if any(self._stamps):
            stamped = iso_column([stamp or b"NaT" for stamp in self._stamps])
            at[at == UNKNOWN] = stamped[at == UNKNOWN]
        durations = as_ints([round(s * NS) if s >= 0 else -1 for s in self._seconds])
        data = as_ints([round(s * NS) for s in self._data]) if self._data else None
        named = zip(*self._parts, strict=True) if len(self._parts) == len(self._first) else ()
        parts = tuple(
            (column[0][0], as_ints([round(seconds * NS) for _, seconds in column]))
            for column in named
        )
        first, covers = as_ints(self._first), as_ints(self._covers)
        self._packed.append(Steps(first, covers, at, durations, data, parts))
        self._clear()


class Progress:
    """Which steps a line covers, when lines name the last step that is done.

    Args:
        first_number: number of a job's first step, 0 or 1.
    """

    def __init__(self, first_number: int = 1) -> None:
        self._before = first_number - 1
        self.done = self._before
        """Last step done."""
        self._stride = 1
        self._next: int | None = None
        self._launch: Launch | None = None
        self._guess = 0
        """Steps that the first line may cover at most; the second line shows. 0 = known."""
        self.resized = 0
        """What the first line covers, as the last call showed; 0 = it showed nothing."""

    def resumed(self, next_step: int) -> None:
        """A line said which step the launch begins with."""
        self._next = next_step

    def reach(self, last: int, story: Story, steps: StepBatch) -> int:
        """Return how many steps end with step `last` on this line; 0 = another rank's copy.

        Raises:
            ValueError: no job has so many steps, or no line so many.
        """
        check(step=last)
        self.resized = 0
        entering = story.now is not self._launch
        if entering:
            self._enter(last, story)
        if last <= self.done:
            if self.done - last <= LATE_COPIES * self._stride:
                return 0
            story.note("steps went back without a start between them")
            steps.flush(story.now)
            self.done = max(last - self._stride, self._before)
        covers = last - self.done
        if covers > LARGEST_JUMP:
            raise ValueError(f"{covers} steps on one line")
        if self._guess and not entering:
            self.resized = min(covers, self._guess)
            steps.resize_last(self.resized, story.now)
            self._guess = 0
        self._stride, self.done = covers, last
        return covers

    def _enter(self, last: int, story: Story) -> None:
        """First step line of a launch."""
        self._guess = 0
        if self._next is not None:
            self.done = min(self._next, last) - 1
        elif self._launch is not None:
            self.done = max(last - self._stride, self._before)
        else:
            self._guess = last - self._before
            self.done = self._before if self._guess <= LONGEST_FIRST else last - 1
        self._next = None
        self._launch = story.now
