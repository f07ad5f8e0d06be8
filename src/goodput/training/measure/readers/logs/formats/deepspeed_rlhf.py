"""DeepSpeed-Chat step 3: one latency line a step, divided into generation and training."""

import re
from typing import Final

from goodput.training.measure.readers.logs.batch import Progress, StepBatch
from goodput.training.measure.readers.logs.clock import stamp_ns
from goodput.training.measure.readers.logs.story import Finish
from goodput.training.measure.readers.logs.text import Story

_NUMBER: Final = re.compile(rb"epoch: *(\d+) *\| *step: *(\d+) *\|")
_TIMES: Final = re.compile(
    rb"E2E latency=([\d.]+)s \|Gather latency=([\d.]+)s [^|]*\|Generate time=([\d.]+)s"
)


class DeepSpeedRlhf:
    """One file of DeepSpeed-Chat's reinforcement learning step."""

    name = "deepspeed-chat rlhf"
    signs = (b"|E2E latency=",)
    needles = (b"E2E latency=", b"|ppo_ep:", b"***** Running training", b" exits successfully")

    def __init__(self) -> None:
        self._steps = StepBatch()
        self._progress = Progress(first_number=0)
        self._pending = -1

    def line(self, line: bytes, story: Story) -> None:
        """Take one line of interest."""
        found = _TIMES.search(line)
        if found is not None:
            self._step(found, story)
            return
        number = _NUMBER.search(line)
        if number is not None:
            self._name(int(number[2]))
        elif b"Running training" in line:
            story.starting()
        elif b" exits successfully" in line:
            story.settle()
            at = stamp_ns(line, story.clock)
            evidence = line.strip()[-300:].decode(errors="replace")
            story.over(Finish("completed", "", evidence, at))

    def flush(self, story: Story) -> None:
        """Hand over the steps that are held back."""
        self._steps.flush(story.now)

    def _name(self, step: int) -> None:
        """The losses name the step, before or after its latencies; epochs number them anew."""
        self._pending = step

    def _step(self, found: "re.Match[bytes]", story: Story) -> None:
        whole, gather, generate = (float(found[i]) for i in (1, 2, 3))
        if generate + gather > whole + 0.02:
            story.note("generation longer than the whole step: the log contradicts itself")
        last = max(self._progress.done, -1) + 1
        covers = self._progress.reach(last, story, self._steps)
        if covers:
            parts = (("gather", gather), ("generate", generate))
            self._steps.add(last, seconds=whole, parts=parts)
