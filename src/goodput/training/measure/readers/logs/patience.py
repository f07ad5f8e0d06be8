"""A bound on how long one pattern may work on one line: Python's `re` has none of its own.

A timer looks once a second whether the same match is still being tried. It needs the main thread
and a system with SIGALRM; elsewhere only the limit on the length of a line holds.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from goodput.core.errors import ConfigError

LONGEST_LINE_BYTES: Final = 8192
"""Longer lines are not tried: time of a careless pattern grows with the square of the line."""
LONGEST_MATCH_S: Final = 5
_LOOK_EVERY_S: Final = 1.0


class Tries:
    """What is being matched just now; whoever matches counts up `number` first.

    Args:
        where: the file that holds the rules.
    """

    def __init__(self, where: str) -> None:
        self.where = where
        self.number = 0
        self.rule = ""
        self.line = b""
        """Empty = none."""


class _StuckError(Exception):
    """Raised inside the match; no reader may take it for a damaged line."""


@contextmanager
def bounded(*tries: Tries, longest_s: int | None = None) -> Iterator[None]:
    """Raise if one match takes longer than `longest_s` seconds, to within a second.

    Args:
        tries: they count the matches that are tried inside; none = nothing is bounded.
        longest_s: seconds, >= 1; None = LONGEST_MATCH_S.

    Raises:
        ConfigError: a pattern takes too long on a line; the message names both.
    """
    in_main = threading.current_thread() is threading.main_thread()
    if not tries or not in_main or not hasattr(signal, "setitimer"):
        yield
        return
    most_s = LONGEST_MATCH_S if longest_s is None else longest_s
    seen, looks = _sum(tries), 0

    def look(_number: int, _frame: object) -> None:
        nonlocal seen, looks
        number = _sum(tries)
        looks = looks + 1 if number == seen and any(one.line for one in tries) else 0
        seen = number
        if looks * _LOOK_EVERY_S >= most_s:
            raise _StuckError

    before = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, _LOOK_EVERY_S, _LOOK_EVERY_S)
    try:
        yield
    except _StuckError as error:
        stuck = next(one for one in tries if one.line)
        line = stuck.line[:60].decode(errors="replace")
        raise ConfigError(
            f"{stuck.where}: {stuck.rule}: the pattern takes more than {most_s} s for one line "
            f"({line!r}...). "
            "Repeats inside repeats, as in (a+)+, do that: write it without"
        ) from error
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before or signal.SIG_DFL)


def _sum(tries: tuple[Tries, ...]) -> int:
    return sum(one.number for one in tries)


__all__ = ["LONGEST_LINE_BYTES", "LONGEST_MATCH_S", "Tries", "bounded"]
