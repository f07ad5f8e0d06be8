"""NCCL's watchdog: a collective did not end; the stall began when it was enqueued."""

import re
from typing import Final

from goodput.training.measure.readers.logs.clock import stamp_ns
from goodput.training.measure.readers.logs.story import UNKNOWN, Finish
from goodput.training.measure.readers.logs.text import Story

_RAN: Final = re.compile(rb"ran for (\d+) milliseconds")


class NcclWatchdog:
    """Lines of ProcessGroupNCCL's watchdog."""

    name = "nccl watchdog"
    signs = (b"Watchdog caught collective operation timeout",)
    needles = (b"Watchdog caught collective operation timeout",)

    def line(self, line: bytes, story: Story) -> None:
        """Take one line of interest: every rank that waited writes one."""
        ran = _RAN.search(line)
        at = stamp_ns(line, story.clock)
        fault = UNKNOWN if at == UNKNOWN or ran is None else at - int(ran[1]) * 1_000_000
        story.settle()
        if at == UNKNOWN:
            story.note("a watchdog line without a stamp: when the stall began is not known")
        story.over(
            Finish(
                "failed",
                "collective_timeout",
                evidence=line.strip()[:500].decode(errors="replace"),
                at_ns=at,
                fault_at_ns=fault,
                noticed_at_ns=at,
            )
        )

    def flush(self, story: Story) -> None:
        """Nothing is held back."""
