"""DeepSpeed's own lines: throughput, saves, launcher; and what DeepSpeed-Chat says of phases."""

import re
from typing import Final, NamedTuple

from goodput.training.measure.readers.logs.batch import Progress, StepBatch
from goodput.training.measure.readers.logs.clock import stamp_ns
from goodput.training.measure.readers.logs.story import NS, UNKNOWN, Finish, Happening, Launch
from goodput.training.measure.readers.logs.text import Story

_TIMER: Final = re.compile(
    rb"(?:global_step=|\] \d+/)(\d+), (?:RunningAvg)?SamplesPerSec=[\d.]+"
    rb"(?:, CurrSamplesPerSec=([\d.]+))?"
)
_PLAIN: Final = re.compile(rb"\[Rank 0\] step=(\d+), skipped=(\d+), ")
_SAVE: Final = re.compile(rb"Checkpoint (\S+) is (about to be saved|ready now)!")
_LOAD: Final = re.compile(rb"Loading checkpoint from (\S*?global_step(\d+)\S*?)(?:\.\.\.|\s|$)")
_RETURN: Final = re.compile(rb"exits with return code = (-?\d+)")
_NUMBER: Final = re.compile(rb"(\d+)$")


class _Line(NamedTuple):
    """A throughput line that waits for the next one: only then the batch size is known."""

    last: int
    covers: int
    at_ns: int
    samples_per_s: float
    evaluated: bool
    """An evaluation lies between this line and the one before."""


class DeepSpeed:
    """One file of output of a program that trains with DeepSpeed."""

    name = "deepspeed"
    signs = (b"SamplesPerSec=", b"] [Rank 0] step=")
    needles = (
        b"SamplesPerSec=",
        b"[Rank 0] step=",
        b"***** Evaluating ",
        b"heckpoint ",
        b" exits ",
        b"***** Running training",
    )

    def __init__(self) -> None:
        self._steps = StepBatch()
        self._progress = Progress()
        self._timed = False
        self._skipped = 0
        self._waiting: _Line | None = None
        self._before_ns = UNKNOWN
        self._batch = 0.0
        self._evaluated = False
        self._saving = False
        self._loaded = False
        self._ended: Launch | None = None
        self._exits = 0

    def line(self, line: bytes, story: Story) -> None:
        """Take one line of interest."""
        found = _TIMER.search(line)
        if found is not None:
            self._timed = True
            self._step(int(found[1]), float(found[2] or 0), line, story)
            return
        found = _PLAIN.search(line)
        if found is not None:
            if not self._timed:
                self._step(int(found[1]), 0.0, line, story)
        elif b"***** Evaluating " in line:
            story.settle()
            story.now.add(Happening("gap", "evaluation"))
            self._evaluated = True
        elif b"***** Running training" in line:
            story.starting()
        elif b" exits " in line:
            self._exit(line, story)
        elif b"heckpoint " in line:
            self._checkpoint(line, story)

    def flush(self, story: Story) -> None:
        """Hand over the steps that are held back."""
        self._hand_over()
        self._steps.flush(story.now)

    def _step(self, last: int, samples_per_s: float, line: bytes, story: Story) -> None:
        covers = self._progress.reach(last, story, self._steps)
        if not covers:
            return
        if self._progress.resized and self._waiting is not None:
            self._waiting = self._waiting._replace(covers=self._progress.resized)
        at = stamp_ns(line, story.clock)
        if not self._evaluated and samples_per_s and UNKNOWN not in {at, self._before_ns}:
            # Samples a step: the least of what plain intervals say, for a stall only adds.
            batch = samples_per_s * (at - self._before_ns) / NS / covers
            self._batch = min(self._batch or batch, batch)
        self._hand_over()
        self._waiting = _Line(last, covers, at, samples_per_s, self._evaluated)
        self._evaluated = False
        self._before_ns = at

    def _hand_over(self) -> None:
        """An interval lasts from the line before, but for one with an evaluation or the first."""
        line = self._waiting
        if line is None:
            return
        self._waiting = None
        seconds = -1.0
        first = line.last == line.covers
        if (line.evaluated or first) and line.samples_per_s and self._batch:
            seconds = line.covers * self._batch / line.samples_per_s
        self._steps.add(
            line.last - line.covers + 1, covers=line.covers, seconds=seconds, at_ns=line.at_ns
        )

    def _checkpoint(self, line: bytes, story: Story) -> None:
        at = stamp_ns(line, story.clock)
        found = _SAVE.search(line)
        if found is None:
            loaded = _LOAD.search(line)
            if loaded is not None and not self._loaded:
                self._loaded = True
                story.settle()
                self._progress.resumed(int(loaded[2]) + 1)
                path = loaded[1].decode(errors="replace")
                story.now.add(Happening("resumed", "", at, step=int(loaded[2]) + 1, path=path))
            return
        story.settle()
        tag = found[1]
        if found[2].startswith(b"about"):
            if not self._saving:
                story.now.add(Happening("begin", "checkpoint", at))
            self._saving = True
        elif self._saving:  # other ranks say the same again
            self._saving = False
            number = _NUMBER.search(tag)
            step = int(number[1]) if number is not None else self._progress.done
            story.now.add(
                Happening("end", "checkpoint", at),
                Happening("saved", "", at, step=step, path=tag.decode(errors="replace")),
            )

    def _exit(self, line: bytes, story: Story) -> None:
        at = stamp_ns(line, story.clock)
        evidence = line.strip()[-300:].decode(errors="replace")
        failed = _RETURN.search(line)
        if failed is not None and int(failed[1]):
            story.settle()
            code = int(failed[1])
            story.over(
                Finish(
                    "failed", "", evidence, at, noticed_at_ns=at,
                    exit_code=max(code, -1), signal=max(-code, 0),
                )
            )  # fmt: skip
        elif b"exits successfully" in line:
            story.settle()
            story.over(Finish("completed", "", evidence, at))
            self._exits = self._exits + 1 if story.now is self._ended else 1
            self._ended = story.now
            story.now.world = max(story.now.world, self._exits)  # one line a process of this node
        self._loaded = False
