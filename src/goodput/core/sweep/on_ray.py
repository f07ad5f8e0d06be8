"""The same sweep on Ray: one task for each point, a dead worker loses its point only."""

import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from goodput.core.errors import MissingExtraError
from goodput.core.sweep.interrupts import Interrupts
from goodput.core.sweep.types import Failure, Success
from goodput.core.sweep.worker import evaluate

if TYPE_CHECKING:
    from types import ModuleType

P = TypeVar("P")
R = TypeVar("R")

_LOOK_S: Final = 0.2  # how long Ctrl-C may go unseen
_QUEUED_PER_CPU: Final = 2  # enough to keep workers busy, few enough to cancel


def run_on_ray(
    function: Callable[[P, int], R],
    points: Sequence[P],
    seeds: Sequence[int],
    *,
    workers: int | None,
    interrupts: Interrupts,
) -> Iterator[Success[R] | Failure]:
    """Yield the outcome of each point as soon as it is over.

    Raises:
        MissingExtraError: Ray is not installed.
        KeyboardInterrupt: SIGINT came; running tasks were cancelled.
    """
    ray = _ray()
    ours = not ray.is_initialized()
    if ours:
        ray.init(log_to_driver=False, logging_level=logging.ERROR)
    task = ray.remote(max_retries=0, num_cpus=1)(evaluate)
    most = workers or _QUEUED_PER_CPU * max(1, int(ray.cluster_resources().get("CPU", 1)))
    waiting = deque(range(len(points)))
    running: dict[object, int] = {}
    try:
        while waiting or running:
            interrupts.raise_if_seen()
            while waiting and len(running) < most:
                index = waiting.popleft()
                running[task.remote(function, points[index], index, seeds[index])] = index
            over, _ = ray.wait(list(running), num_returns=1, timeout=_LOOK_S)
            for reference in over:
                yield _outcome(ray, reference, running.pop(reference), seeds)
    finally:
        for reference in running:
            ray.cancel(reference, force=True)
        if ours:
            ray.shutdown()


def _outcome(
    ray: "ModuleType", reference: object, index: int, seeds: Sequence[int]
) -> Success[R] | Failure:
    """Return what a finished task gave."""
    try:
        outcome: Success[R] | Failure = ray.get(reference)
    except ray.exceptions.RayError as error:
        first = (str(error).splitlines() or [""])[0]
        message = f"Ray lost point {index}: {type(error).__name__}: {first}"
        return Failure(index, seeds[index], "died", message, str(error))
    return outcome


def _ray() -> "ModuleType":
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError("a sweep on Ray", extra="ray") from error
    module: ModuleType = ray
    return module
