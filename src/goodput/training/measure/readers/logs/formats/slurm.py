"""Lines that Slurm puts into a job's output: why and when a step was cancelled."""

import re
from typing import Final

from goodput.training.measure.readers.logs.clock import iso_ns
from goodput.training.measure.readers.logs.story import Finish
from goodput.training.measure.readers.logs.text import Story

_CANCELLED: Final = re.compile(
    rb"slurmstepd: error: \*\*\* (JOB|STEP) (\S+) ON (\S+) CANCELLED AT (\S+)(?: DUE TO ([A-Z ]+))?"
)
_CAUSES: Final = {
    b"TIME LIMIT": ("time_limit", "failed"),
    b"PREEMPTION": ("preempted", "preempted"),
    b"NODE FAILURE": ("node_lost", "failed"),
    b"": ("cancelled", "stopped"),
}


class Slurm:
    """slurmstepd's last words."""

    name = "slurm"
    signs = (b"slurmstepd: error: ",)
    needles = (b"slurmstepd: error: *** ",)

    def line(self, line: bytes, story: Story) -> None:
        """Take one line of interest."""
        found = _CANCELLED.search(line)
        if found is None:
            return
        at = iso_ns(found[4])
        story.aliases.add("slurm:" + found[2].split(b".")[0].decode(errors="replace"))
        cause, outcome = _CAUSES.get((found[5] or b"").strip(), ("cancelled", "stopped"))
        story.clock.knows(at)
        story.settle()
        story.over(
            Finish(
                outcome=outcome,
                cause=cause,
                evidence=line.strip().decode(errors="replace"),
                at_ns=at,
                fault_at_ns=at,
            )
        )

    def flush(self, story: Story) -> None:
        """Nothing is held back."""
