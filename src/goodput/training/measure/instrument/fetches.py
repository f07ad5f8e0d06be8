"""Time blocked in `next()` of a DataLoader: data waits in training, evaluations beside it.

The iterator that a loader returns keeps its type: it becomes an instance of a subclass that times
`__next__`. A fetch under no_grad opens an evaluation; the others are sorted by passes.py.
"""

import sys
import threading
from collections.abc import Callable, Iterator
from itertools import count
from time import monotonic_ns, time_ns
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import torch

from goodput.training.measure.instrument.passes import Fetch, Found, Passes
from goodput.training.measure.instrument.patches import Patches
from goodput.training.measure.instrument.wall import Wall
from goodput.training.measure.run import Run

if TYPE_CHECKING:
    from goodput.training.measure.spans import Span

FEATURE: Final = "data"
_KEY: Final = "_goodput_key"
"""Attribute of a timed iterator: the number that stands for it."""
_EVALUATION: Final = "evaluation"
_NEW: Final = 0
"""Key of an iterator that is being made."""


class _Open(NamedTuple):
    """A fetch that has begun."""

    key: int
    training: bool
    wall_ns: int
    mono_ns: int


class Fetches:
    """Records data waits and evaluations of the thread that made it.

    Args:
        run: where spans go.
        started: whether a step is complete.
    """

    def __init__(self, run: Run, *, started: Callable[[], bool]) -> None:
        self.evaluations = 0
        """Evaluations recorded so far."""
        self._run = run
        self._inside = False
        self._paused = False
        self._wall: Wall | None = None
        self._started = started
        self._thread = threading.get_ident()
        self._passes = Passes()
        self._keys = count(1)
        self._timed: dict[type, type] = {}
        self._evaluation: Span | None = None
        self._evaluated = 0
        self._without_gradients: set[int] = set()
        """Iterators that training reads under no_grad."""

    @property
    def inside(self) -> bool:
        """True while the thread is in `next()`: what a dataset does there is data time."""
        return self._inside and self._on()

    @property
    def busy(self) -> bool:
        """True inside a fetch or an evaluation."""
        return (self._inside or self._paused or self._evaluation is not None) and self._on()

    def install(self, wall: Wall, patches: Patches) -> None:
        """Wrap the iteration of every DataLoader class that is loaded."""
        self._wall = wall
        for loader in _loader_classes():
            patches.replace(loader, "__iter__", self._iter_of(wall, loader.__iter__))

    def trained(self) -> None:
        """A backward pass or an optimizer step begins."""
        if threading.get_ident() != self._thread:
            return
        if self._evaluation is not None:
            # It was not exhausted: either it was left early, or training reads it this way.
            if self._evaluated != _NEW:
                self._without_gradients.add(self._evaluated)
            self._end_evaluation()
        self._record(self._passes.trained(started=self._started()))

    def pause(self, *, paused: bool) -> None:
        """Somebody else records the evaluation that is under way, or it is over."""
        self._paused = paused
        if paused:
            self._end_evaluation()
            self._passes.paused(started=False)

    def interrupted(self) -> None:
        """A checkpoint is saved, or the process ends: evaluations are over."""
        self._end_evaluation()
        self._record(self._passes.paused(started=self._started()))

    def _on(self) -> bool:
        return self._wall is not None and self._wall.is_on(FEATURE)

    def _iter_of(self, wall: Wall, original: Callable[[Any], Iterator[object]]) -> object:
        begin = wall.guard(FEATURE, self._begin)
        end = wall.guard(FEATURE, self._end)
        watch = wall.guard(FEATURE, self._key_of)

        def iterate(loader: object) -> Iterator[object]:
            opened = begin(_NEW)
            key: int | None = None
            try:
                iterator = original(loader)
                key = watch(iterator)
            finally:
                if opened is not None:
                    end(opened if key is None else opened._replace(key=key), exhausted=False)
            return iterator

        return iterate

    def _key_of(self, iterator: Any) -> int:
        """The key of an iterator, which is timed from now on; persistent workers reuse theirs."""
        assert self._wall is not None
        if not hasattr(iterator, _KEY):
            kind = type(iterator)
            if kind not in self._timed:
                self._timed[kind] = self._timed_kind(self._wall, kind)
            iterator.__class__ = self._timed[kind]
            setattr(iterator, _KEY, next(self._keys))
        return int(getattr(iterator, _KEY))

    def _timed_kind(self, wall: Wall, kind: Any) -> type:
        """A subclass of an iterator's class whose `__next__` is recorded."""
        begin = wall.guard(FEATURE, self._begin)
        end = wall.guard(FEATURE, self._end)

        def timed_next(iterator: Any) -> object:
            opened = begin(getattr(iterator, _KEY, 0))
            if opened is None:
                return kind.__next__(iterator)
            try:
                batch = kind.__next__(iterator)
            except BaseException as error:
                end(opened, exhausted=isinstance(error, StopIteration))
                raise
            end(opened, exhausted=False)
            return batch

        members = {"__next__": timed_next, "__module__": kind.__module__, "__doc__": kind.__doc__}
        return type(kind.__name__, (kind,), members)

    def _begin(self, key: int) -> _Open | None:
        if self._inside or self._paused or threading.get_ident() != self._thread:
            return None
        training = torch.is_grad_enabled() or key in self._without_gradients
        if training:
            self._end_evaluation()
        else:
            if self._evaluation is None:
                self._evaluation = self._run.span(_EVALUATION).__enter__()
                self.evaluations += 1
            self._evaluated = key
        self._inside = True
        return _Open(key, training, time_ns(), monotonic_ns())

    def _end(self, opened: _Open, *, exhausted: bool) -> None:
        """A fetch is over, or the making of an iterator, which may start workers."""
        self._inside = False
        if opened.training:
            fetch = Fetch(opened.wall_ns, opened.mono_ns, monotonic_ns() - opened.mono_ns)
            self._record(self._passes.fetched(opened.key, fetch))
        elif exhausted:
            self._end_evaluation()

    def _end_evaluation(self) -> None:
        span, self._evaluation = self._evaluation, None
        if span is not None:
            self._run.close_span(span, failed=False)

    def _record(self, found: list[Found]) -> None:
        for name, fetch in found:
            self.evaluations += name == _EVALUATION
            self._run.record_span(name, fetch.wall_ns, fetch.mono_ns, fetch.duration_ns)


def _loader_classes() -> list[Any]:
    """DataLoader, and torchdata's StatefulDataLoader (which has its own `__iter__`) if in use."""
    stateful = sys.modules.get("torchdata.stateful_dataloader")
    found = [torch.utils.data.DataLoader]
    if stateful is not None:
        found.append(stateful.StatefulDataLoader)
    return found
