"""A pool of worker processes that survives the death of any of them.

concurrent.futures gives up on the whole pool when one worker dies and cannot say which point it
held; here each worker holds one point at a time, so exactly that one is lost.
"""

import os
import pickle
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Final, Generic, TypeVar

from goodput.core.errors import ConfigError
from goodput.core.sweep.interrupts import Interrupts
from goodput.core.sweep.types import Failure, Success
from goodput.core.sweep.worker import failure, serve

P = TypeVar("P")
R = TypeVar("R")

_START_TRIES: Final = 3
_END_WAIT_S: Final = 5.0


def run_in_processes(
    function: Callable[[P, int], R],
    points: Sequence[P],
    seeds: Sequence[int],
    *,
    workers: int,
    interrupts: Interrupts,
) -> Iterator[Success[R] | Failure]:
    """Yield the outcome of each point as soon as it is over.

    Raises:
        ConfigError: the function cannot be sent to a worker, or workers cannot start.
        KeyboardInterrupt: SIGINT came; every worker and what it started is gone by then.
    """
    pool: _Pool[P, R] = _Pool(function, points, seeds)
    try:
        while pool.unfinished:
            interrupts.raise_if_seen()
            pool.grow(workers)
            yield from pool.assign()
            yield from pool.collect(interrupts)
    finally:
        pool.end()


class _Worker:
    """One process and the point it holds."""

    def __init__(self, process: SpawnProcess, connection: Connection) -> None:
        self.process = process
        self.connection = connection
        self.ready = False
        self.index: int | None = None

    def dismiss(self) -> None:
        """Let an idle process end by itself; kill any other, with all that it started."""
        if self.ready and self.index is None:
            self.connection.close()
            self.process.join(_END_WAIT_S)
        if self.process.exitcode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid or 0, signal.SIGKILL)  # no group yet: it is starting
            self.process.kill()
            self.process.join(_END_WAIT_S)
        self.connection.close()
        with suppress(ValueError):  # still there after SIGKILL: stuck in the kernel
            self.process.close()

    def bury(self) -> str:
        """Return how the process ended, after killing what it left behind."""
        pid = self.process.pid or 0
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
        self.process.join(_END_WAIT_S)
        code = self.process.exitcode or 0
        self.dismiss()
        if code >= 0:
            return f"worker process {pid} ended with exit code {code}"
        name = next((each.name for each in signal.Signals if each == -code), "unknown")
        hint = ", as the kernel does when memory runs out" if -code == signal.SIGKILL else ""
        return f"worker process {pid} was killed by signal {-code} ({name}){hint}"


class _Pool(Generic[P, R]):
    """The workers, the points that wait and the points that are held."""

    def __init__(
        self, function: Callable[[P, int], R], points: Sequence[P], seeds: Sequence[int]
    ) -> None:
        self._function_bytes = _function_bytes(function)
        self._points = points
        self._seeds = seeds
        self._waiting = deque(range(len(points)))
        self._workers: list[_Worker] = []
        self._failed_starts = 0

    @property
    def unfinished(self) -> bool:
        """Whether some point waits or is held."""
        return bool(self._waiting) or any(each.index is not None for each in self._workers)

    def grow(self, most: int) -> None:
        """Start as many workers as there is work for, up to `most`."""
        free = sum(each.index is None for each in self._workers)
        while len(self._workers) < most and free < len(self._waiting):
            self._workers.append(_started(self._function_bytes))
            free += 1

    def assign(self) -> Iterator[Failure]:
        """Hand a point to each idle worker; yield the points that cannot be sent."""
        for worker in self._workers:
            while worker.ready and worker.index is None and self._waiting:
                index = self._waiting.popleft()
                try:
                    point_bytes = pickle.dumps(self._points[index])
                except Exception as error:  # noqa: BLE001 - a point of the caller that does not pickle
                    yield failure(index, self._seeds[index], "unsendable", error)
                    continue
                worker.index = index
                with suppress(OSError):  # it died just now: collect() will see it
                    worker.connection.send((index, self._seeds[index], point_bytes))

    def collect(self, interrupts: Interrupts) -> Iterator[Success[R] | Failure]:
        """Wait until something happens, and yield the outcomes that came of it."""
        if not self._workers:
            return
        happened = wait(
            [interrupts.fileno()]
            + [each.connection for each in self._workers]
            + [each.process.sentinel for each in self._workers]
        )
        for worker in list(self._workers):
            if worker.connection in happened or worker.process.sentinel in happened:
                outcome = self._heard(worker)
                if outcome is not None:
                    yield outcome

    def end(self) -> None:
        """End every worker."""
        while self._workers:
            self._workers.pop().dismiss()

    def _heard(self, worker: _Worker) -> Success[R] | Failure | None:
        """Return the outcome that a worker sent or, dead, left open; None if it only reported."""
        try:
            message = worker.connection.recv_bytes()
        except (EOFError, OSError):  # closed, or cut off in the middle of a message
            return self._lost(worker)
        if not worker.ready:
            _check_start(pickle.loads(message))  # noqa: S301 - from our own worker
            worker.ready = True
            self._failed_starts = 0
            return None
        index = worker.index if worker.index is not None else 0
        worker.index = None
        try:
            outcome: Success[R] | Failure = pickle.loads(message)  # noqa: S301 - as above
        except Exception as error:  # noqa: BLE001 - a result of the caller that does not unpickle
            return failure(index, self._seeds[index], "unsendable", error)
        return outcome

    def _lost(self, worker: _Worker) -> Failure | None:
        """Return the failure of the point that a dead worker held, if it held one."""
        self._workers.remove(worker)
        how = worker.bury()
        if worker.index is not None:
            index = worker.index
            point = repr(self._points[index])[:80]
            return Failure(
                index,
                self._seeds[index],
                "died",
                f"{how} while it computed point {index} ({point}): that point is lost",
            )
        if not worker.ready:
            self._failed_starts += 1
            if self._failed_starts >= _START_TRIES:
                raise ConfigError(
                    f"{how} before it was ready, {_START_TRIES} times. A script that starts a "
                    "sweep needs `if __name__ == '__main__':` around it, and the modules of the "
                    "function must be importable"
                )
        return None


def _started(function_bytes: bytes) -> _Worker:
    """Return a new worker process, not yet ready."""
    # Python's own helper for spawn unblocks SIGINT once it has started: let it do so before.
    resource_tracker.ensure_running()
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(theirs, function_bytes), daemon=True)
    # Ctrl-C must not reach it before it has left our process group: the mask is inherited.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
    return _Worker(process, ours)


def _function_bytes(function: Callable[[P, int], R]) -> bytes:
    """Return the pickled function.

    Raises:
        ConfigError: it cannot be pickled.
    """
    try:
        return pickle.dumps(function)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ConfigError(
            f"{function!r} cannot be sent to worker processes ({error}): use a function at the top "
            "level of a module, or backend='serial'"
        ) from error


def _check_start(problem: str | None) -> None:
    """Check a worker's first message.

    Raises:
        ConfigError: the worker could not load the function.
    """
    if problem is not None:
        raise ConfigError(f"a worker process could not load the function:\n{problem}")
