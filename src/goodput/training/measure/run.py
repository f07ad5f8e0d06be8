"""`Run`: what a training script calls. Each call is one line in the file once it has returned.

The file itself is event_writer.py's business, summaries of steps windows.py's; recorder.py makes
the Run of a process. Nothing here raises into the caller: what cannot be written is counted.
"""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from time import monotonic_ns as _monotonic_ns
from time import time_ns as _time_ns
from types import TracebackType
from typing import Final, Literal, Self

from goodput.core import events
from goodput.training.measure.event_writer import EventWriter
from goodput.training.measure.identity import Identity
from goodput.training.measure.lines import (
    BEGIN,
    POINT,
    SPAN,
    STEP,
    STEP_END,
    extras,
    finite,
    line_of,
    number_of,
    process_line,
    quoted,
    step_field,
)
from goodput.training.measure.spans import Span, StepScope
from goodput.training.measure.windows import StepWindows

Detail = Literal["steps", "windows"]

_WINDOWED: Final = frozenset({"data", "communication"})
"""Spans that come with every step: where steps are summarised, so are these."""


class Run:
    """The record of one process; made by `goodput.start`.

    All methods may be called from any thread and from signal handlers, never raise, and do nothing
    after `close` or in a forked child. Times are taken inside.

    Args:
        identity: who records.
        path: the file to write.
        detail: `steps` writes every step, `windows` summaries and outliers.
        role: `worker` or `launcher`.
        chip: name in the hardware table.
        writer: program and version, for the file's first line.
        held: make no file before a record shows that this process trains.
        wall_ns: wall clock (tests inject one).
        mono_ns: monotonic clock (tests inject one).
    """

    __slots__ = (
        "_file",
        "_ids",
        "_mono",
        "_once",
        "_wall",
        "_windows",
        "detail",
        "identity",
        "on_finish",
        "role",
    )

    def __init__(
        self,
        identity: Identity,
        *,
        path: Path,
        detail: Detail,
        role: str = "worker",
        chip: str = "",
        writer: str = "",
        held: bool = False,
        wall_ns: Callable[[], int] = _time_ns,
        mono_ns: Callable[[], int] = _monotonic_ns,
    ) -> None:
        self.identity = identity
        self.detail = detail
        self.role = role
        self.on_finish: Callable[[], None] | None = None
        """Called once the record is complete: takes exit hooks back."""
        self._wall = wall_ns
        self._mono = mono_ns
        self._ids = count(1)
        self._once = threading.Lock()
        self._windows = StepWindows() if detail == "windows" else None

        def header() -> bytes:
            return process_line(
                identity, wall_ns(), mono_ns(), role=role, detail=detail, chip=chip, writer=writer
            )

        def dropped(lost: int, reason: str) -> bytes:
            return line_of(events.Dropped(t=wall_ns(), m=mono_ns(), count=lost, reason=reason))

        self._file = EventWriter(path, header=header, dropped=dropped, held=held, clock=mono_ns)

    @property
    def path(self) -> Path:
        """The file that this process writes."""
        return self._file.path

    @property
    def dropped(self) -> int:
        """Records lost so far (disk full, folder gone, values of a wrong type)."""
        return self._file.dropped

    @property
    def enabled(self) -> bool:
        """False after `close` and in a forked child: calls do nothing."""
        return not self._file.disabled

    def step(self, n: int, *, shape: str = "") -> StepScope:
        """Mark that step `n` begins now; in a `with`, also that it is complete at the end.

        Args:
            n: number of the step, global over all attempts.
            shape: steps of one shape should take equal time.

        Returns:
            A scope for `with`. Its end is recorded unless the body raised.
        """
        at_ns = self._mono()
        try:
            if self._windows is not None or shape:
                self._step(n, shape, at_ns)
            else:
                self._file.append(STEP % (n, self._wall(), at_ns), at_ns)
        except Exception as error:  # noqa: BLE001 - the recorder's wall; counted
            self._file.refuse(error)
        return StepScope(self, n)

    def step_end(self, n: int, *, comm_ns: int = -1) -> None:
        """Mark that step `n` is complete: its result is in the model.

        Args:
            n: number of the step.
            comm_ns: exposed communication inside it, ns; -1 = not measured.
        """
        at_ns = self._mono()
        try:
            wall_ns = self._wall()
            if self._windows is not None:
                self._windows.end(n, wall_ns, at_ns, comm_ns)
                return
            if comm_ns >= 0:
                line = line_of(events.StepEnd(t=wall_ns, m=at_ns, n=int(n), comm=int(comm_ns)))
            else:
                line = STEP_END % (n, wall_ns, at_ns)
        except Exception as error:  # noqa: BLE001 - the recorder's wall; counted
            self._file.refuse(error)
        else:
            self._file.append(line, at_ns)

    def step_failed(self, n: int) -> None:
        """Mark that the body of step `n` raised (a `with` does it)."""
        if self._windows is not None:
            self._put(self._windows.abandon(n), self._mono())

    def span(
        self, name: str, *, step: int | None = None, counts_as: str = "", background: bool = False
    ) -> Span:
        """A span to use in a `with` or as a decorator.

        Args:
            name: `init`, `compile`, `restore`, `data`, `evaluation`, `checkpoint`, `communication`,
                or any name of your own (core/events.py, SPAN_CLASSES).
            step: the step it belongs to, if any.
            counts_as: loss class for a name of your own; empty = by name.
            background: it runs beside training and blocks nothing.
        """
        return Span(self, name, step, counts_as, background)

    def record_span(
        self,
        name: str,
        start_wall_ns: int,
        start_mono_ns: int,
        duration_ns: int,
        *,
        step: int | None = None,
        counts_as: str = "",
        background: bool = False,
        failed: bool = False,
    ) -> None:
        """Record a span that was measured elsewhere; it gets no `begin` record.

        Args:
            name: as for `span`.
            start_wall_ns: wall clock at its start, Unix ns.
            start_mono_ns: monotonic clock at its start, ns.
            duration_ns: how long it took.
            step: the step it belongs to, if any.
            counts_as: loss class for a name of your own.
            background: it ran beside training.
            failed: its body raised.
        """
        span = Span(self, name, step, counts_as, background, 0, start_wall_ns, start_mono_ns)
        self._put_span(span, duration_ns, failed=failed)

    @contextmanager
    def checkpoint(
        self, last_step: int, path: str = "", *, background: bool = False
    ) -> Generator[None]:
        """Record a checkpoint around its writing: a span, then `committed` if the body succeeded.

        Args:
            last_step: the last step whose result is in it.
            path: where it is written.
            background: the part of an asynchronous save that blocks nothing.
        """
        with self.span("checkpoint", step=last_step, background=background):
            yield
        self.committed(last_step, path)

    def committed(self, last_step: int, path: str = "") -> None:
        """A checkpoint that holds every step up to and including `last_step` is durable."""
        self._record(
            lambda t, m: events.Committed(t=t, m=m, last_step=int(last_step), path=str(path))
        )

    def resumed(self, next_step: int, path: str = "") -> None:
        """State is restored or initialised: `next_step` is the first step that will run."""
        self._record(
            lambda t, m: events.Resumed(t=t, m=m, next_step=int(next_step), path=str(path))
        )

    def point(self, name: str, value: float, *, step: int | None = None) -> None:
        """Record a named number; one that is not finite cannot be, and is counted as lost."""
        at_ns = self._mono()
        try:
            line = POINT % (quoted(name), number_of(value), step_field(step), self._wall(), at_ns)
        except Exception as error:  # noqa: BLE001 - the recorder's wall; counted
            self._file.refuse(error)
        else:
            self._file.append(line, at_ns)

    def work(
        self,
        *,
        flops_per_step: float = 0.0,
        ideal_step_s: float = 0.0,
        peak_flops_per_chip: float = 0.0,
        chip: str = "",
        dtype: str = "",
        shape: str = "",
        source: str = "given",
    ) -> None:
        """Say what one step costs: for the ideal step time, and for MFU. It holds until said again.

        Args:
            flops_per_step: model FLOPs of one optimizer step of the whole job; 0 = not known.
            ideal_step_s: ideal step time, seconds; 0 = not given.
            peak_flops_per_chip: peak dense FLOP/s of one chip; 0 = by `chip` and `dtype`.
            chip: name in the hardware table.
            dtype: number format of the matrix products, e.g. `bf16`.
            shape: the shape these FLOPs are for; empty = all.
            source: `given` or `counted`.
        """
        self._record(
            lambda t, m: events.Work(
                t=t,
                m=m,
                flops_per_step=finite(flops_per_step),
                ideal_step_s=finite(ideal_step_s),
                peak_flops_per_chip=finite(peak_flops_per_chip),
                chip=str(chip),
                dtype=str(dtype),
                shape=str(shape),
                source=str(source),
            )
        )

    def submitted(self, chips: int, *, at_ns: int | None = None) -> None:
        """The job entered a queue, asking for `chips`; `at_ns` (Unix) if that was earlier."""
        self._record(lambda t, m: events.Submitted(t=t, m=m, chips=int(chips)), at_ns)

    def allocated(
        self, chips: int, requested: int = 0, available: int = 0, *, at_ns: int | None = None
    ) -> None:
        """From now on the job holds this many chips.

        Args:
            chips: chips held.
            requested: chips it would like to hold; 0 = the same.
            available: chips that were healthy and reachable; 0 = the same.
            at_ns: Unix time, if not now.
        """
        self._record(
            lambda t, m: events.Allocated(
                t=t, m=m, chips=int(chips), requested=int(requested), available=int(available)
            ),
            at_ns,
        )

    def ended(self, outcome: str = "completed") -> None:
        """The job is over and will not be requeued: `completed`, `failed` or `cancelled`."""
        self._record(lambda t, m: events.Ended(t=t, m=m, outcome=str(outcome)))

    def attempt_start(
        self, attempt: str, *, world: int = 0, next_step: int = -1, at_ns: int | None = None
    ) -> None:
        """A launch of the whole job begins; arguments as in `AttemptStart` (core/events.py)."""
        self._record(
            lambda t, m: events.AttemptStart(
                t=t, m=m, attempt=str(attempt), world=int(world), next_step=int(next_step)
            ),
            at_ns,
        )

    def attempt_end(
        self,
        attempt: str = "",
        *,
        outcome: str = "completed",
        cause: str = "",
        evidence: str = "",
        exit_code: int = -1,
        signal: int = 0,
        rank: int = -1,
        fault_at_ns: int = 0,
        noticed_at_ns: int = 0,
        at_ns: int | None = None,
    ) -> None:
        """A launch is over; arguments as in `AttemptEnd` (core/events.py), times in Unix ns."""
        self._record(
            lambda t, m: events.AttemptEnd(
                t=t,
                m=m,
                attempt=str(attempt),
                outcome=str(outcome),
                cause=str(cause),
                evidence=str(evidence),
                exit_code=int(exit_code),
                signal=int(signal),
                rank=int(rank),
                fault_t=int(fault_at_ns),
                noticed_t=int(noticed_at_ns),
            ),
            at_ns,
        )

    def noticed(
        self, *, cause: str = "", evidence: str = "", rank: int = -1, fault_at_ns: int = 0
    ) -> None:
        """Somebody noticed a fault just now; arguments as in `Noticed` (core/events.py)."""
        self._record(
            lambda t, m: events.Noticed(
                t=t,
                m=m,
                cause=str(cause),
                evidence=str(evidence),
                rank=int(rank),
                fault_t=int(fault_at_ns),
            )
        )

    def close(self, outcome: str | None = None) -> None:
        """End the record; later calls do nothing. Called at exit if you do not.

        Args:
            outcome: `completed` (default), `failed`, `preempted` or `stopped`.
        """
        self.finish(outcome or "completed")

    def finish(self, outcome: str, *, error: str = "", signal: int = 0) -> None:
        """As `close`, with what ended the process: an exception's first line, or a signal."""
        # Never released: the first of atexit, exception hook, signal handler and user wins.
        if not self._once.acquire(blocking=False) or self._file.disabled:
            return
        at_ns = self._mono()
        if self._windows is not None:
            self._put(self._windows.flush(), at_ns)
        end = events.ProcessEnd(
            t=self._wall(), m=at_ns, outcome=outcome, error=error, signal=signal
        )
        self._file.close(line_of(end))
        if self.on_finish is not None:
            self.on_finish()

    def when_released(self, tell: Callable[[], None]) -> None:
        """Call `tell` when a run that holds its records back makes its file."""
        self._file.on_release = tell

    def release(self) -> None:
        """Make the file of a run that holds its records back."""
        self._file.release()

    def progress(self) -> tuple[int, int]:
        """A value that changes when anything was recorded since."""
        return self._file.size_bytes(), 0 if self._windows is None else self._windows.seen

    def disable(self) -> None:
        """Ignore all later calls without a word in the file: what a forked child does."""
        self._file.disable()

    def open_span(self, span: Span) -> None:
        """Start a span (its `with` does it)."""
        span.t, span.m = self._wall(), self._mono()
        try:
            name = span.name
            if name == "communication" or (self._windows is not None and name in _WINDOWED):
                return
            span.id = next(self._ids)
            line = BEGIN % (quoted(name), span.id, extras(span), span.t, span.m)
        except Exception as error:  # noqa: BLE001 - the recorder's wall; counted
            self._file.refuse(error)
        else:
            self._file.append(line, span.m)

    def close_span(self, span: Span, *, failed: bool) -> None:
        """Finish a span (its `with` does it)."""
        self._put_span(span, self._mono() - span.m, failed=failed)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.finish("completed")
        else:
            outcome, text = describe(error)
            self.finish(outcome, error=text)

    def _put_span(self, span: Span, duration_ns: int, *, failed: bool) -> None:
        try:
            if self._windows is not None and not failed:
                record = events.Span(
                    t=span.t, m=span.m, name=span.name, d=duration_ns, background=span.background
                )
                if self._windows.part(record):
                    return
            line = SPAN % (
                quoted(span.name),
                duration_ns,
                span.id,
                extras(span, failed=failed, background=span.background),
                span.t,
                span.m,
            )
        except Exception as error:  # noqa: BLE001 - the recorder's wall; counted
            self._file.refuse(error)
        else:
            self._file.append(line, span.m + duration_ns)

    def _step(self, n: int, shape: str, at_ns: int) -> None:
        """The step marks that are more than three numbers."""
        wall_ns = self._wall()
        if self._windows is not None:
            records = self._windows.begin(int(n), wall_ns, at_ns, str(shape) if shape else "")
            if records:
                self._put(records, at_ns)
        else:
            step = events.Step(t=wall_ns, m=at_ns, n=int(n), shape=str(shape))
            self._file.append(line_of(step), at_ns)

    def _put(self, records: list[events.Event], at_ns: int) -> None:
        for record in records:
            self._file.append(line_of(record), at_ns)

    def _record(
        self, build: Callable[[int, int], events.Event], wall_ns: int | None = None
    ) -> None:
        """Write what `build` makes of both clocks; an earlier time has the wall clock only."""
        at_ns = self._mono()
        try:
            record = build(self._wall(), at_ns) if wall_ns is None else build(int(wall_ns), 0)
            line = line_of(record)
        except Exception as error:  # noqa: BLE001 - the recorder's wall; counted
            self._file.refuse(error)
        else:
            self._file.append(line, at_ns)


def describe(error: BaseException) -> tuple[str, str]:
    """Outcome and first line for an exception that ends a process."""
    text = f"{type(error).__name__}: {error}".strip().splitlines()[0].rstrip(": ")
    if isinstance(error, SystemExit):
        return ("completed", "") if error.code in {None, 0} else ("failed", text)
    return ("stopped" if isinstance(error, KeyboardInterrupt) else "failed"), text
