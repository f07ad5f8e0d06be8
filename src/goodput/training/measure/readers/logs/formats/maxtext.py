"""MaxText standard output: `completed step:` lines, with or without absl's stamps."""

import re
from typing import Final

from goodput.training.measure.readers.logs.batch import Progress, StepBatch
from goodput.training.measure.readers.logs.clock import stamp_ns
from goodput.training.measure.readers.logs.story import Happening
from goodput.training.measure.readers.logs.text import Story

_STEP: Final = re.compile(rb"completed step: (\d+), seconds: ([\d.]+)")
_STARTED: Final = re.compile(rb"Started an asynchronous checkpoint save for step (\d+)")
_SAVED: Final = re.compile(rb"Saved a checkpoint at step (\d+)")
_FROM: Final = re.compile(rb"restoring from this run's directory step (\d+)")
_DEVICES: Final = re.compile(rb"Num_devices: (\d+)")
_FLOPS: Final = re.compile(rb"^(?:.*\] )?\s*Total TFLOPs: ([\d.]+)")


class MaxText:
    """One file of MaxText output."""

    name = "maxtext"
    signs = (b"completed step: ", b"Num_devices: ")
    needles = (
        b"completed step: ",
        b" checkpoint ",
        b"restoring from this run's directory",
        b"Num_devices: ",
        b"Total TFLOPs: ",
        b"eval metrics after step",
    )

    def __init__(self) -> None:
        self._steps = StepBatch()
        self._progress = Progress(first_number=0)
        self._tflops = 0.0

    def line(self, line: bytes, story: Story) -> None:
        """Take one line of interest."""
        found = _STEP.search(line)
        if found is not None:
            last = int(found[1])
            covers = self._progress.reach(last, story, self._steps)
            if covers:
                at = stamp_ns(line[: found.start()], story.clock)
                self._steps.add(
                    last - covers + 1, covers=covers, seconds=float(found[2]) * covers, at_ns=at
                )
        elif b"checkpoint" in line:
            self._save(line, story)
        elif (found := _FROM.search(line)) is not None:
            story.starting(once="maxtext restore")
            following = int(found[1]) + 1
            self._progress.resumed(following)
            at = stamp_ns(line[: found.start()], story.clock)
            story.now.add(Happening("resumed", "", at, step=following))
        elif (found := _DEVICES.search(line)) is not None:
            launch = story.starting(once="maxtext devices")
            launch.mark(stamp_ns(line, story.clock), "devices known")
            launch.world = launch.chips = int(found[1])
        elif (found := _FLOPS.search(line)) is not None:
            # TFLOPs of one step on one device, the model's own (without recomputation).
            story.now.flops_per_step = float(found[1]) * 1e12 * max(story.now.chips, 1)
        elif b"eval metrics after step" in line:
            story.settle()
            story.now.add(Happening("gap", "evaluation"))

    def flush(self, story: Story) -> None:
        """Hand over the steps that are held back."""
        self._steps.flush(story.now)

    def _save(self, line: bytes, story: Story) -> None:
        found = _STARTED.search(line)
        if found is not None:
            story.note("asynchronous saves: taken as durable when started, the log says no more")
        else:
            found = _SAVED.search(line)
        if found is not None:
            story.settle()
            at = stamp_ns(line[: found.start()], story.clock)
            story.now.add(Happening("saved", "", at, step=int(found[1])))
