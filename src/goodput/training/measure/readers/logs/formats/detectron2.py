"""detectron2's log.txt: stamps without a year, every launch appended to the same file."""

import re
from typing import Final

from goodput.training.measure.readers.logs.batch import Progress, StepBatch
from goodput.training.measure.readers.logs.clock import seconds_of_day
from goodput.training.measure.readers.logs.story import UNKNOWN, Finish, Happening
from goodput.training.measure.readers.logs.text import Story

_STAMP: Final = re.compile(rb"\[(\d\d)/(\d\d) (\d\d:\d\d:\d\d)[ \]]")
_STEP: Final = re.compile(rb" iter: (\d+) .*? data_time: ([\d.]+)| iter: (\d+) ")
_WORLD: Final = re.compile(rb"World size: (\d+)")
_START: Final = re.compile(rb"Starting training from iteration (\d+)")
_SAVING: Final = re.compile(rb"Saving checkpoint to (\S*?(\d+)?\.pth)")


class Detectron2:
    """One log.txt of detectron2 and its relatives."""

    name = "detectron2"
    signs = (
        b"d2.utils.events",
        b"detectron2.utils.events",
        b"d2.evaluation.evaluator",
        b"detectron2 INFO: Rank of current",
        b"detectron2]: Rank of current",
    )
    needles = (
        b" iter: ",
        b"Rank of current process: 0",
        b"Starting training from iteration",
        b"Saving checkpoint to ",
        b"tart inference on ",
        b"Total inference time: ",
        b"Total training time: ",
    )

    def __init__(self) -> None:
        self._steps = StepBatch()
        self._progress = Progress(first_number=0)
        self._saving: list[tuple[int, str]] = []
        self._evaluating = False
        self._named = -1
        """Highest step in the name of a checkpoint of this launch."""

    def line(self, line: bytes, story: Story) -> None:
        """Take one line of interest."""
        at = self._stamp(line, story)
        if self._saving and at != UNKNOWN:
            self._saved(at, story)
        found = _STEP.search(line)
        if found is not None:
            self._step(found, at, story)
        elif b"Rank of current process" in line:
            self._launch(line, at, story)
        elif (found := _START.search(line)) is not None:
            story.settle()
            first = int(found[1])
            self._progress.resumed(first)
            story.now.mark(at, "training starts")
            story.now.add(Happening("resumed", "", at, step=first))
        elif (found := _SAVING.search(line)) is not None:
            story.settle()
            step = int(found[2]) if found[2] is not None else -1
            self._named = max(self._named, step)
            self._saving.append((step, found[1].decode(errors="replace")))
            story.now.add(Happening("begin", "checkpoint", at))
        elif b"Total training time" in line:
            story.settle()
            evidence = line.strip().decode(errors="replace")
            story.over(Finish("completed", "", evidence, at))
        elif b"nference" in line:
            self._inference(line, at, story)

    def flush(self, story: Story) -> None:
        """Hand over the steps that are held back."""
        self._steps.flush(story.now)

    def _stamp(self, line: bytes, story: Story) -> int:
        found = _STAMP.search(line)
        if found is None:
            return UNKNOWN
        return story.clock.ns(int(found[1]), int(found[2]), seconds_of_day(found[3]))

    def _step(self, found: "re.Match[bytes]", at: int, story: Story) -> None:
        last = int(found[1] if found[1] is not None else found[3])
        covers = self._progress.reach(last, story, self._steps)
        if covers:
            data = float(found[2]) * covers if found[2] is not None else 0.0
            self._steps.add(last - covers + 1, covers=covers, at_ns=at, data_s=data)

    def _launch(self, line: bytes, at: int, story: Story) -> None:
        launch = story.starting(once="detectron2")
        launch.mark(at, "start")
        found = _WORLD.search(line)
        if found is not None:
            launch.world = int(found[1])
        self._evaluating = False
        self._named = -1

    def _saved(self, at: int, story: Story) -> None:
        """Only the begin of a save is logged: it was over by the next line."""
        story.settle()
        story.now.add(Happening("end", "checkpoint", at))
        for step, path in self._saving:
            known = step if step >= 0 else max(self._progress.done, self._named)
            if known >= 0:
                story.now.add(Happening("saved", "", at, step=known, path=path))
        self._saving.clear()

    def _inference(self, line: bytes, at: int, story: Story) -> None:
        story.settle()
        if b"tart inference on" in line:
            story.now.add(Happening("begin", "evaluation", at))
            self._evaluating = True
        elif self._evaluating:
            story.now.add(Happening("end", "evaluation", at))
            self._evaluating = False
