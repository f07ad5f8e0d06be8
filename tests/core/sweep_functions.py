"""Functions that worker processes import: light, so that workers start fast."""

import os
import signal
import subprocess
import time
from pathlib import Path


def square(point: int, seed: int) -> tuple[int, int]:
    return point * point, seed


def scaled(factor: int, point: int, seed: int) -> int:
    return factor * point


def fail_on_odd(point: int, seed: int) -> int:
    if point % 2:
        raise ValueError(f"point {point} is odd\nsecond line")
    return point


def die_on(point: tuple[int, str], seed: int) -> int:
    number, how = point
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "exit":
        os._exit(7)
    if how == "segfault":
        os.kill(os.getpid(), signal.SIGSEGV)
    time.sleep(0.05)
    return number


def sleep_for(point: float, seed: int) -> float:
    time.sleep(point)
    return point


def big(point: int, seed: int) -> bytes:
    return bytes(point)


def unsendable(point: int, seed: int) -> object:
    return (lambda: point) if point else 0


def write_pid_and_wait(point: str, seed: int) -> int:
    Path(point).write_text(str(os.getpid()))
    time.sleep(60)
    return 0


def with_grandchild(point: float, seed: int) -> float:
    """Start a program of its own, as simulators do, and wait for it."""
    subprocess.run(["sleep", str(point)], check=True)
    return point


class NoUnpickle:
    """Pickles, but does not come back."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (_refuse, ("no way back",))


def _refuse(reason: str) -> None:
    raise RuntimeError(reason)


def gives_no_way_back(point: int, seed: int) -> object:
    return NoUnpickle() if point else 0
