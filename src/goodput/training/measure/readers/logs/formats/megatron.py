"""Megatron-LM and Megatron-DeepSpeed standard output, with and without dates, with rank prefixes."""

import re
from typing import Final

from goodput.training.measure.readers.logs.batch import StepBatch
from goodput.training.measure.readers.logs.clock import iso_ns
from goodput.training.measure.readers.logs.story import UNKNOWN, Happening
from goodput.training.measure.readers.logs.text import Story

_STEP: Final = re.compile(
    rb"(?:\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?)\] )?"
    rb"\s*iteration\s+(\d+)/\s*(\d+) \|.*?elapsed time per iteration \((ms|s)\): ([\d.]+)"
)
_SKIPPED: Final = re.compile(rb"number of (skipped|nan) iterations:\s+(\d+)")
_TFLOPS: Final = re.compile(rb"(?:throughput per GPU \(TFLOP/s/GPU\)|TFLOPs):\s*([\d.]+)")
_STAGE: Final = re.compile(rb"\[([a-z][^\]]*)\] datetime: (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")
_STAMP: Final = re.compile(rb"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?)\]")
_SAVING: Final = re.compile(rb"saving checkpoint at iteration\s+(\d+) to (\S+)")
_SAVED: Final = re.compile(rb"successfully saved checkpoint (?:from|at) iteration\s+(\d+) to (\S+)")
_LOADED: Final = re.compile(rb"successfully loaded checkpoint from (\S+).*?at iteration\s+(\d+)")
_WORLD: Final = re.compile(rb"using world size: (\d+)")


class Megatron:
    """One file of Megatron output."""

    name = "megatron"
    needles = (
        b"iteration ",
        b"] datetime: ",
        b"checkpoint",
        b"using world size: ",
    )

    def __init__(self) -> None:
        self._steps = StepBatch()
        self._reached = 0
        self._skipped_reached = 0

    def line(self, line: bytes, story: Story) -> None:
        """Take one line of interest."""
        found = _STEP.search(line)
        if found is not None:
            self._step(line, found, story)
        elif b"datetime: " in line:
            self._stage(line, story)
        elif b"world size" in line:
            self._start(line, story)
        elif b"checkpoint" in line:
            self._checkpoint(line, story)

    def flush(self, story: Story) -> None:
        """Hand over the steps that are held back."""
        self._steps.flush(story.now)

    def _step(self, line: bytes, found: "re.Match[bytes]", story: Story) -> None:
        iteration = int(found[2])
        if iteration == self._reached:
            return  # another rank's copy of the same line
        if iteration < self._reached:
            self.flush(story)
            self._reached = max(iteration - max(self._stride, 1), 0)
        covers = iteration - self._reached
        seconds = float(found[5]) / (1000.0 if found[4] == b"ms" else 1.0)
        self._steps.add(
            self._reached + 1, covers=covers, seconds=seconds * covers, stamp=found[1] or b""
        )
        self._stride = covers
        self._reached = iteration
        for kind, count in _SKIPPED.findall(line):
            if int(count):
                story.note(f"{kind.decode()} iterations: they took time and made no progress")
        flops = _TFLOPS.search(line)
        if flops is not None:
            story.now.tflops_per_chip.append(float(flops[1]))

    _stride = 1

    def _stage(self, line: bytes, story: Story) -> None:
        found = _STAGE.search(line)
        if found is None:
            return
        at = iso_ns(found[2])
        if found[1].startswith(b"after megatron is initialized"):
            self.flush(story)
            if story.now.items and any(not isinstance(i, Happening) for i in story.now.items):
                story.launch()
                self._reached = 0
        self.flush(story)
        story.clock.knows(at)
        story.now.mark(at, found[1].decode())

    def _start(self, line: bytes, story: Story) -> None:
        found = _WORLD.search(line)
        if found is None:
            return
        self.flush(story)
        if any(not isinstance(item, Happening) for item in story.now.items):
            story.launch()
            self._reached = 0
        story.now.world = int(found[1])

    def _checkpoint(self, line: bytes, story: Story) -> None:
        stamp = _STAMP.search(line)
        at = iso_ns(stamp[1]) if stamp is not None else UNKNOWN
        found = _SAVED.search(line)
        if found is not None:
            self.flush(story)
            story.now.add(
                Happening("end", "checkpoint", at),
                Happening("saved", "", at, step=int(found[1]), path=found[2].decode(errors="replace")),
            )
            return
        found = _SAVING.search(line)
        if found is not None:
            self.flush(story)
            story.now.add(Happening("begin", "checkpoint", at))
            return
        found = _LOADED.search(line)
        if found is not None:
            self.flush(story)
            self._reached = int(found[2])
            story.now.add(
                Happening("resumed", "", at, step=int(found[2]) + 1, path=found[1].decode(errors="replace"))
            )
