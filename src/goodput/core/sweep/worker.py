"""What runs inside a worker process: receive a point, compute it, send the outcome."""

import os
import pickle
import signal
import threading
import time
import traceback
from collections.abc import Callable
from multiprocessing import parent_process
from multiprocessing.connection import Connection, wait
from typing import TypeVar

from goodput.core.sweep.types import Failure, FailureKind, Success

P = TypeVar("P")
R = TypeVar("R")


def evaluate(
    function: Callable[[P, int], R], point: P, index: int, seed: int
) -> Success[R] | Failure:
    """Return the outcome of one point: an exception of the function becomes a `Failure`."""
    started = time.perf_counter()
    try:
        value = function(point, seed)
    except Exception as error:  # noqa: BLE001 - the caller's code: each is kept, counted and shown
        return failure(index, seed, "raised", error)
    return Success(index, seed, value, time.perf_counter() - started)


def failure(index: int, seed: int, kind: FailureKind, error: BaseException) -> Failure:
    """Return an exception as a value that can be sent."""
    lines = str(error).splitlines() or [""]
    return Failure(
        index,
        seed,
        kind,
        f"{type(error).__name__}: {lines[0]}",
        "".join(traceback.format_exception(error)),
    )


def serve(connection: Connection, function_bytes: bytes) -> None:
    """Compute points until the connection closes. First message: None, or why it cannot start."""
    _stand_alone()
    try:
        function = pickle.loads(function_bytes)  # noqa: S301 - written by our own parent
    except Exception:  # noqa: BLE001 - anything may happen on import: the parent reports it
        connection.send(traceback.format_exc())
        return
    connection.send(None)
    while True:
        try:
            index, seed, point_bytes = connection.recv()
        except (EOFError, OSError):
            return
        connection.send_bytes(_outcome_bytes(function, point_bytes, index, seed))


def _outcome_bytes(
    function: Callable[[object, int], object], point_bytes: bytes, index: int, seed: int
) -> bytes:
    """Return the pickled outcome of one pickled point."""
    try:
        point = pickle.loads(point_bytes)  # noqa: S301 - written by our own parent
    except Exception as error:  # noqa: BLE001 - a class of the caller that does not unpickle
        return pickle.dumps(failure(index, seed, "unsendable", error))
    outcome = evaluate(function, point, index, seed)
    try:
        return pickle.dumps(outcome)
    except Exception as error:  # noqa: BLE001 - a result of the caller that does not pickle
        return pickle.dumps(failure(index, seed, "unsendable", error))


def _stand_alone() -> None:
    """Leave the terminal's process group and die with the parent, whatever kills it.

    Ctrl-C is for the parent, which then ends this group: the worker and all that the function
    started.
    """
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # blocked by the parent at start
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os.killpg(0, signal.SIGKILL)
