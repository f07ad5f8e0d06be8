"""Dated lines of Python loggers: they say nothing of steps, but when the others were written."""

import re
from typing import Final

from goodput.training.measure.readers.logs.clock import iso_ns
from goodput.training.measure.readers.logs.story import NS, UNKNOWN
from goodput.training.measure.readers.logs.text import Story

_STAMP: Final = re.compile(rb"\[(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?)\]")


class Stamps:
    """Anchors in time for logs whose step lines have none."""

    name = "logger stamps"
    signs = (b"] [INFO] [", b"] [WARNING] [")
    needles = (b"] [INFO] [", b"] [WARNING] [")

    def __init__(self) -> None:
        self._last = UNKNOWN

    def line(self, line: bytes, story: Story) -> None:
        """Take one line of interest; one a second is enough."""
        found = _STAMP.search(line)
        if found is None or b"[timer.py:" in line or b":log_dist]" in line:
            return  # DeepSpeed's step lines: its own format places them
        at = iso_ns(found[1])
        if at != UNKNOWN and (self._last == UNKNOWN or at - self._last >= NS):
            self._last = at
            story.clock.knows(at)
            story.settle()
            story.now.mark(at)

    def flush(self, story: Story) -> None:
        """Nothing is held back."""
