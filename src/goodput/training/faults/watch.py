"""Follows a running job by tailing its event files: which attempt, which workers, which step.

Reads only; tolerant of torn and foreign lines, which the ledger's reader counts and names.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from goodput.core.errors import InputError
from goodput.core.events import (
    AnyEvent,
    AttemptStart,
    Ended,
    Point,
    Process,
    Resumed,
    Step,
    StepEnd,
)

EVENT_FILES: Final = "events-*.jsonl"
_POLLS_PER_LOOK: Final = 10
_decoder = msgspec.json.Decoder(AnyEvent)


class _Tail:
    """One event file, read as far as it goes and again when it has grown."""

    def __init__(self, path: Path) -> None:
        self.header: Process | None = None
        self._file: BinaryIO = path.open("rb")
        self._rest = b""

    def events(self) -> Iterable[AnyEvent]:
        """Yield the events of the whole lines that were appended since the last call."""
        data = self._rest + self._file.read()
        cut = data.rfind(b"\n") + 1
        self._rest = data[cut:]
        for line in data[:cut].splitlines():
            try:
                yield _decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue

    def close(self) -> None:
        self._file.close()


class JobWatch:
    """What the event files of one job say so far.

    Args:
        folder: where the job's event files are, at any depth; need not exist yet.
        job: its name; empty = the folder holds one job only.
    """

    def __init__(self, folder: Path, *, job: str = "") -> None:
        self.job = job
        self.outcome: str | None = None
        """`completed`, `failed`, `cancelled`; None = not over."""
        self.launched_at_ns: int | None = None
        """First sign of life, on the monotonic clock."""
        self.first_step_at_ns: int | None = None
        self.launches: list[AttemptStart] = []
        """As a launcher recorded them."""
        self.losses: list[Point] = []
        """Rank 0's points of that name."""
        self.resumed: dict[str, Resumed] = {}
        """Where rank 0 began, by attempt."""
        self.completed: dict[str, StepEnd] = {}
        """Rank 0's last completed step, by attempt."""
        self._named = bool(job)
        self._folder = folder
        self._tails: dict[Path, _Tail] = {}
        self._polls = 0
        self._began: dict[str, int] = {}
        self._workers: dict[str, dict[int, Process]] = {}
        self._steps: dict[str, int] = {}

    @property
    def attempts(self) -> tuple[str, ...]:
        """Keys in the order in which they began."""
        return tuple(sorted(self._began, key=self._began.__getitem__))

    @property
    def attempt(self) -> str:
        """Key of the running (or last) attempt; empty before the first and without a launcher."""
        return max(self._began, key=self._began.__getitem__, default="")

    @property
    def workers(self) -> tuple[Process, ...]:
        """Records of the running attempt's workers, by rank; whether they live is not known."""
        running = self._workers.get(self.attempt, {})
        return tuple(running[rank] for rank in sorted(running))

    @property
    def step(self) -> int:
        """Highest step that a worker of the running attempt has begun; -1 = none."""
        return self._steps.get(self.attempt, -1)

    def poll(self) -> None:
        """Read what was appended since the last call; new files are looked for now and then.

        Raises:
            InputError: the folder holds two jobs and no name was given.
        """
        if self._polls % _POLLS_PER_LOOK == 0 and self._folder.is_dir():
            for path in sorted(self._folder.rglob(EVENT_FILES)):
                if path not in self._tails:
                    self._tails[path] = _Tail(path)
        self._polls += 1
        for tail in self._tails.values():
            for event in tail.events():
                if isinstance(event, Process):
                    tail.header = event if self._is_mine(event) else None
                if tail.header is not None:
                    self._take(tail.header, event)

    def close(self) -> None:
        """Close the files."""
        for tail in self._tails.values():
            tail.close()
        self._tails.clear()

    def _is_mine(self, header: Process) -> bool:
        if not self.job:
            self.job = header.job
        if header.job != self.job and not self._named:
            raise InputError(
                f"{self._folder} holds the jobs {self.job!r} and {header.job!r}: name one"
            )
        return header.job == self.job

    def _take(self, header: Process, event: AnyEvent) -> None:
        # An event of an earlier time, such as a submission, has no monotonic clock.
        if event.m and (self.launched_at_ns is None or event.m < self.launched_at_ns):
            self.launched_at_ns = event.m
        match event:
            case Process(role="worker"):
                self._start(event.attempt, event.t)
                known = self._workers[event.attempt].get(event.rank)
                if known is None or known.t < event.t:
                    self._workers[event.attempt][event.rank] = event
            case AttemptStart():
                self.launches.append(event)
                self._start(event.attempt, event.t)
            case Step():
                self._step(header.attempt, event)
            case StepEnd() if header.rank == 0:
                self.completed[header.attempt] = event
            case Resumed() if header.rank == 0:
                self.resumed[header.attempt] = event
            case Point(name="loss") if header.rank == 0:
                self.losses.append(event)
            case Ended():
                self.outcome = event.outcome
            case _:
                pass

    def _start(self, attempt: str, at_ns: int) -> None:
        self._began[attempt] = min(at_ns, self._began.get(attempt, at_ns))
        self._workers.setdefault(attempt, {})

    def _step(self, attempt: str, step: Step) -> None:
        self._steps[attempt] = max(self._steps.get(attempt, -1), step.n)
        if self.first_step_at_ns is None or step.m < self.first_step_at_ns:
            self.first_step_at_ns = step.m
