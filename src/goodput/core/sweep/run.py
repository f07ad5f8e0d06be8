"""The entry to a sweep: `sweep` for the whole list, `stream` for outcomes as they come."""

import os
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from typing import Literal, TypeVar

from goodput.core.errors import ConfigError
from goodput.core.sweep.interrupts import Interrupts
from goodput.core.sweep.processes import run_in_processes
from goodput.core.sweep.types import Failure, Progress, Success, SweepResult, point_seed
from goodput.core.sweep.worker import evaluate

P = TypeVar("P")
R = TypeVar("R")

Backend = Literal["processes", "serial", "ray"]


def sweep(
    function: Callable[[P, int], R],
    points: Iterable[P],
    *,
    seed: int = 0,
    backend: Backend = "processes",
    workers: int | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> SweepResult[R]:
    """Return the outcome of every point, in the order of the points.

    A point whose function raises, or whose process dies, is a `Failure` in the result; the others
    go on. Ctrl-C ends the workers and returns what is done, with `complete` False.

    Args:
        function: called with a point and its seed. Must be importable (top level of a module)
            unless the backend is serial.
        points: what to compute.
        seed: seeds of points are `point_seed(seed, index)` on every backend.
        backend: `processes` on this machine, `serial` in this process, or `ray`: on the cluster
            that RAY_ADDRESS names, else on this machine.
        workers: points computed at once; None = as many as there are CPUs. Serial has one.
        on_progress: called at the start and after each point, in this process.

    Raises:
        ConfigError: an option or the function cannot be used.
        MissingExtraError: Ray was asked for and is not installed.
    """
    listed = list(points)
    started = time.monotonic()
    over: list[Success[R] | Failure] = []
    failed = 0

    def report() -> None:
        if on_progress is not None:
            elapsed_s = time.monotonic() - started
            on_progress(
                Progress.at(done=len(over), failed=failed, total=len(listed), elapsed_s=elapsed_s)
            )

    try:
        report()
        with closing(
            stream(function, listed, seed=seed, backend=backend, workers=workers)
        ) as outcomes:
            for outcome in outcomes:
                over.append(outcome)
                failed += isinstance(outcome, Failure)
                report()
    except KeyboardInterrupt:
        pass  # the result says that it is not complete
    return SweepResult(tuple(sorted(over, key=lambda each: each.index)), len(listed))


def stream(
    function: Callable[[P, int], R],
    points: Iterable[P],
    *,
    seed: int = 0,
    backend: Backend = "processes",
    workers: int | None = None,
) -> Generator[Success[R] | Failure, None, None]:
    """Yield each outcome as soon as it is there, in no particular order.

    Arguments as for `sweep`. Ctrl-C while it runs ends the workers and raises KeyboardInterrupt at
    the next outcome asked for. Use it under `contextlib.closing` when you may stop early.

    Raises:
        ConfigError: an option or the function cannot be used.
        MissingExtraError: Ray was asked for and is not installed.
        KeyboardInterrupt: SIGINT came.
    """
    listed = list(points)
    seeds = [point_seed(seed, index) for index in range(len(listed))]
    if workers is not None and workers < 1:
        raise ConfigError(f"workers = {workers} must be 1 or more")
    if backend not in ("processes", "serial", "ray"):
        raise ConfigError(f"backend = {backend!r} must be processes, serial or ray")
    return _stream(function, listed, seeds, backend, workers)


def _stream(
    function: Callable[[P, int], R],
    points: Sequence[P],
    seeds: Sequence[int],
    backend: Backend,
    workers: int | None,
) -> Generator[Success[R] | Failure, None, None]:
    if not points:
        return
    if backend == "serial":
        for index, (point, seed) in enumerate(zip(points, seeds, strict=True)):
            yield evaluate(function, point, index, seed)
        return
    with Interrupts() as interrupts:
        if backend == "ray":
            from goodput.core.sweep.on_ray import run_on_ray

            yield from run_on_ray(function, points, seeds, workers=workers, interrupts=interrupts)
        else:
            most = min(workers or _cpus(), len(points))
            yield from run_in_processes(
                function, points, seeds, workers=most, interrupts=interrupts
            )


def _cpus() -> int:
    """Return the CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # Linux: containers and taskset may allow fewer
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
