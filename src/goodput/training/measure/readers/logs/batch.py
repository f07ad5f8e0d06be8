"""Step lines collected in columns until something else happens."""

from goodput.core.timeline import as_ints
from goodput.training.measure.readers.logs.clock import iso_column
from goodput.training.measure.readers.logs.story import NS, UNKNOWN, Launch, Steps


class StepBatch:
    """Steps in file order; `flush` hands them to the launch."""

    __slots__ = ("_at", "_covers", "_first", "_seconds", "_stamps")

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._first: list[int] = []
        self._covers: list[int] = []
        self._seconds: list[float] = []
        self._stamps: list[bytes] = []
        self._at: list[int] = []

    def add(
        self,
        first: int,
        *,
        covers: int = 1,
        seconds: float = -1.0,
        stamp: bytes = b"",
        at_ns: int = UNKNOWN,
    ) -> None:
        """Append a record.

        Args:
            first: first step that it covers.
            covers: steps that it covers.
            seconds: wall time of all of them together; -1 = not given.
            stamp: ISO date and time at which they were done, if the line has one.
            at_ns: the same as Unix ns.
        """
        self._first.append(first)
        self._covers.append(covers)
        self._seconds.append(seconds)
        self._stamps.append(stamp)
        self._at.append(at_ns)

    @property
    def last(self) -> int:
        """Last step that was added since the last flush; -1 = none."""
        return self._first[-1] + self._covers[-1] - 1 if self._first else -1

    def flush(self, launch: Launch) -> None:
        """Give the launch what was collected."""
        if not self._first:
            return
        at = as_ints(self._at)
        if any(self._stamps):
            stamped = iso_column([stamp or b"NaT" for stamp in self._stamps])
            at[at == UNKNOWN] = stamped[at == UNKNOWN]
            at[at == -(2**63)] = UNKNOWN
        durations = as_ints([round(s * NS) if s >= 0 else -1 for s in self._seconds])
        launch.add(Steps(as_ints(self._first), as_ints(self._covers), at, durations))
        self._clear()
