"""What callbacks of trainers share: spans with an owner, behind a wall that protects training.

The callback marks steps, evaluations and checkpoints, which it knows exactly. The hooks of
`instrument` go on recording what no callback sees: waits for data, collectives, loads, set-up.
"""

import functools
from collections.abc import Callable
from time import monotonic_ns, time_ns
from typing import TYPE_CHECKING, Final, Protocol, TypeVar, cast

from goodput.training.measure.instrument.options import Options
from goodput.training.measure.instrument.session import Session, install
from goodput.training.measure.run import Run

if TYPE_CHECKING:
    from goodput.training.measure.spans import Span

FEATURE: Final = "trainer"


class TrainerRecord:
    """The record of one trainer.

    Args:
        run: where to record; default: the open run of this process, else a new one.
        options: as for `goodput.instrument`.
    """

    def __init__(self, run: Run | None, options: Options) -> None:
        self._session = install(run, options)
        self._session.hand_over("steps", "checkpoint")
        self.run = self._session.run
        self._span: Span | None = None
        self._step = -1
        self._since = (time_ns(), monotonic_ns())

    @property
    def session(self) -> Session:
        """The hooks of this process."""
        return self._session

    def resumed(self, next_step: int, path: str = "") -> None:
        """Training begins, or begins again, with step `next_step`."""
        self._close()
        self.run.resumed(next_step, path)

    def step(self, n: int) -> None:
        """Step `n` is under way; said again (for its next micro-batch), it is no news."""
        self._close()
        if n != self._step:
            self._step = n
            self.run.step(n)

    def step_end(self) -> None:
        """The step that is under way is complete."""
        self.run.step_end(self._step, comm_ns=self._session.take_communication())
        self._step = -1
        self.mark()

    def mark(self) -> None:
        """Something ended now: `checkpointed` reaches back to here if nothing was opened since."""
        self._since = (time_ns(), monotonic_ns())

    def open(self, name: str) -> None:
        """An evaluation or a checkpoint begins; one that is open stays, and another one ends."""
        if self._span is None or self._span.name != name:
            self._close()
            self._session.fetches.pause(paused=name == "evaluation")
            self._span = self.run.span(name).__enter__()

    def evaluated(self) -> None:
        """The evaluation is over."""
        if self._span is not None and self._span.name == "evaluation":
            self._close()
        self.mark()

    def failed(self) -> None:
        """What was open raised."""
        self._close(failed=True)

    def checkpointed(self, last_step: int, path: str, *, resumable: bool) -> None:
        """A checkpoint is written; its span began when it was opened, else at the last mark.

        Args:
            last_step: last step whose result is in it.
            path: where it is.
            resumable: this process may say that it is durable, and training could go on from it.
        """
        if self._span is not None and self._span.name == "checkpoint":
            self._close()
        else:
            wall_ns, mono_ns = self._since
            self.run.record_span("checkpoint", wall_ns, mono_ns, monotonic_ns() - mono_ns)
        if resumable and last_step >= 0:
            self.run.committed(last_step, path)
        self.mark()

    def _close(self, *, failed: bool = False) -> None:
        span, self._span = self._span, None
        self._session.fetches.pause(paused=False)
        if span is not None:
            self.run.close_span(span, failed=failed)


class HasRecord(Protocol):
    """A callback that has a record."""

    record: TrainerRecord


F = TypeVar("F", bound=Callable[..., None])


def behind_the_wall(method: F) -> F:
    """A callback's method that cannot raise into the trainer."""

    @functools.wraps(method)
    def guarded(self: HasRecord, *args: object, **kwargs: object) -> None:
        self.record.session.wall.guard(FEATURE, method)(self, *args, **kwargs)

    return cast(F, guarded)
