"""torchtitan standard output: every line has a stamp; several ranks may write the same lines."""

import re
from typing import Final

from goodput.training.measure.readers.logs.batch import Progress, StepBatch
from goodput.training.measure.readers.logs.clock import stamp_ns
from goodput.training.measure.readers.logs.story import NS, UNKNOWN, Finish, Happening
from goodput.training.measure.readers.logs.text import Story

_STEP: Final = re.compile(
    rb"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.,]\d+) - [\w.]+ - INFO - +step: *(\d+) +loss: "
)
_SECONDS: Final = re.compile(rb" in ([\d.]+) seconds")
_START: Final = re.compile(rb"Training starts at step (\d+)")
_FROM: Final = re.compile(rb"Loading the checkpoint (?:from \S*?step-|at step )(\d+)")
LONGEST_START_NS: Final = 60 * NS
"""Ranks of one launch start within this of each other (assumed)."""


class TorchTitan:
    """One file of torchtitan output."""

    name = "torchtitan"
    signs = (b"[titan] ", b" - root - INFO - Training starts at step ")
    needles = (
        b" step: ",
        b"ing the checkpoint",
        b"inished saving",
        b"Training starts at step",
        b"Training completed",
        b"Starting job: ",
    )

    def __init__(self) -> None:
        self._steps = StepBatch()
        self._progress = Progress()
        self._saving = False
        self._loading = False
        self._started_ns = UNKNOWN

    def line(self, line: bytes, story: Story) -> None:
        """Take one line of interest."""
        found = _STEP.search(line)
        if found is not None:
            last = int(found[2])
            covers = self._progress.reach(last, story, self._steps)
            if covers:
                self._steps.add(last - covers + 1, covers=covers, stamp=found[1])
            return
        at = stamp_ns(line, story.clock)
        if b"aving the checkpoint" in line or b"inished saving" in line:
            self._save(line, at, story)
        elif b"oading the checkpoint" in line:
            self._load(line, at, story)
        elif b"validate step" in line:
            story.settle()
            story.now.add(Happening("since", "evaluation", at))
        else:
            self._stage(line, at, story)

    def flush(self, story: Story) -> None:
        """Hand over the steps that are held back."""
        self._steps.flush(story.now)

    def _stage(self, line: bytes, at: int, story: Story) -> None:
        found = _START.search(line)
        if found is not None:
            story.settle()
            self._progress.resumed(int(found[1]))
            story.now.mark(at, "training starts")
            story.now.add(Happening("resumed", "", at, step=int(found[1])))
        elif b"Starting job: " in line:
            # Every rank says so, within seconds.
            again = self._started_ns == UNKNOWN or at - self._started_ns > LONGEST_START_NS
            story.starting(once="torchtitan" if again else "").mark(at, "start")
            self._started_ns = at
        elif b"Training completed" in line:
            story.settle()
            story.over(Finish("completed", "", "Training completed", at))

    def _save(self, line: bytes, at: int, story: Story) -> None:
        """The line names no step: it is the last one logged, or up to an interval later."""
        seconds = _SECONDS.search(line)
        if b"inished" not in line:
            if not self._saving:
                story.settle()
                story.now.add(Happening("begin", "checkpoint", at))
            self._saving = True
        elif self._saving:
            self._saving = False
            story.settle()
            lasted = round(float(seconds[1]) * NS) if seconds is not None else -1
            story.now.add(
                Happening("end", "checkpoint", at, duration_ns=lasted),
                Happening("saved", "", at, step=self._progress.done),
            )
            story.note(
                "saves name no step: the last step logged before is taken, the least that they hold"
            )
            if b"async" in line:
                story.note("asynchronous saves: taken as durable when staged, the log says no more")

    def _load(self, line: bytes, at: int, story: Story) -> None:
        story.settle()
        found = _FROM.search(line)
        if found is not None:
            if not self._loading:
                story.now.add(Happening("begin", "restore", at))
            self._loading = True
            self._progress.resumed(int(found[1]) + 1)
        elif self._loading:
            self._loading = False
            story.now.add(Happening("end", "restore", at))
