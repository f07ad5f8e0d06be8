"""Prints the demo's progress: one line that renews itself on a terminal, plain lines elsewhere."""

from typing import Final, TextIO

from goodput.demo.plan import Plan
from goodput.demo.status import Snapshot, clock, news, status_line

PLAIN_EVERY_S: Final = 15.0
"""Without a terminal: a status line this often, so that a log shows life and stays short."""


class Progress:
    """Call it with each snapshot.

    Args:
        plan: of the run.
        out: where to print.
    """

    def __init__(self, plan: Plan, out: TextIO) -> None:
        self._plan, self._out = plan, out
        self._renews = out.isatty()
        self._before = Snapshot(now_s=0.0)
        self._told_s = 0.0

    def __call__(self, now: Snapshot) -> None:
        """Print what happened since the last snapshot, and where the run is."""
        for line in news(self._before, now, self._plan):
            self._print(f"[{clock(now.now_s)}] {line}")
        if self._renews:
            self._out.write("\r\x1b[K" + status_line(now, self._plan))
        elif now.now_s - self._told_s >= PLAIN_EVERY_S:
            self._told_s = now.now_s
            self._print(status_line(now, self._plan))
        self._out.flush()
        self._before = now

    def close(self) -> None:
        """Leave the cursor on a new line."""
        if self._renews:
            self._out.write("\r\x1b[K")
            self._out.flush()

    def _print(self, line: str) -> None:
        self._out.write(("\r\x1b[K" if self._renews else "") + line + "\n")
