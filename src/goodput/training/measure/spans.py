"""What `run.span` and `run.step` hand back: context managers that write their records on the way.

They know no file; they call the Run that made them.
"""

import functools
from collections.abc import Callable
from types import TracebackType
from typing import ParamSpec, Protocol, Self, TypeVar

import msgspec

P = ParamSpec("P")
R = TypeVar("R")


class SpanSink(Protocol):
    """What a span needs of the run that it belongs to."""

    def open_span(self, span: "Span") -> None:
        """Give the span its id and start, and write its `begin` record if it has one."""

    def close_span(self, span: "Span", *, failed: bool) -> None:
        """Write the `span` record."""


class StepSink(Protocol):
    """What a step scope needs of the run that it belongs to."""

    def step_end(self, n: int) -> None:
        """Step `n` is complete."""

    def step_failed(self, n: int) -> None:
        """Step `n` raised."""


class Span(msgspec.Struct, gc=False):
    """A span of one run: use it in a `with`, or as a decorator (a new span for each call)."""

    sink: SpanSink
    name: str
    step: int | None = None
    counts_as: str = ""
    background: bool = False
    id: int = 0
    """0 = no `begin` record was written."""
    t: int = 0
    m: int = 0

    def __enter__(self) -> Self:
        self.sink.open_span(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.sink.close_span(self, failed=kind is not None)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Return `function` with each call recorded as a span like this one."""

        @functools.wraps(function)
        def spanned(*args: P.args, **kwargs: P.kwargs) -> R:
            with Span(self.sink, self.name, self.step, self.counts_as, self.background):
                return function(*args, **kwargs)

        return spanned


class StepScope(msgspec.Struct, gc=False):
    """A step that has begun; leaving the `with` normally says that it is complete."""

    sink: StepSink
    n: int

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.sink.step_end(self.n)
        else:
            self.sink.step_failed(self.n)
