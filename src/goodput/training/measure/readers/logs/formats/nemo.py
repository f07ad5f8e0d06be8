"""NeMo 2 standard output: step lines without stamps between `[NeMo I ...]` lines that have one."""

import re
from typing import Final

from goodput.training.measure.readers.logs.batch import Progress, StepBatch
from goodput.training.measure.readers.logs.clock import iso_ns
from goodput.training.measure.readers.logs.story import NS, UNKNOWN, Finish, Happening
from goodput.training.measure.readers.logs.text import Story

_STEP: Final = re.compile(
    rb"Training epoch \d+, iteration (\d+)/\d+ \|(?:.*global_step: (\d+) )?"
    rb".*train_step_timing in s: ([\d.]+)"
)
_STAMP: Final = re.compile(rb"\[NeMo [A-Z] (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")
_FINAL: Final = re.compile(rb"heckpoint save for step (\d+) (?:\((\S+)\) )?finalized")
_WRITTEN: Final = re.compile(rb"Global Checkpoint Save .*Save duration: ([\d.]+)")
_READ: Final = re.compile(rb"Global Checkpoint Load .*load_checkpoint: ([\d.]+)")
_FROM: Final = re.compile(rb"(?:Restor|Resum)(?:ing|ed) .*?(\S*step=(\d+)\S*)")
_WORLD: Final = re.compile(rb"Starting with (\d+) processes")


class NeMo:
    """One file of NeMo 2 output."""

    name = "nemo"
    signs = (b"train_step_timing in s: ", b"All distributed processes registered. Starting with ")
    needles = (
        b"train_step_timing in s: ",
        b"[NeMo ",
        b"Validation: iteration 1/",
        b" processes registered. ",
        b"Trainer.fit` stopped: ",
        b"ing states from ",
    )

    def __init__(self) -> None:
        self._steps = StepBatch()
        self._progress = Progress(first_number=0)
        self._marked = UNKNOWN

    def line(self, line: bytes, story: Story) -> None:
        """Take one line of interest."""
        found = _STEP.search(line)
        if found is not None:
            self._step(found, story)
            return
        stamp = _STAMP.search(line)
        at = UNKNOWN
        if stamp is not None:
            at = iso_ns(stamp[1])
            story.clock.knows(at)
            if b"Experiments will be logged at" in line:
                story.starting(once="nemo logger")
            self._mark(at, story)
        if b"heckpoint" in line or b"step=" in line:
            self._checkpoint(line, at, story)
        elif b"Validation: iteration 1/" in line:
            story.settle()
            story.now.add(Happening("gap", "evaluation"))
        elif b"Trainer.fit` stopped: " in line:
            story.settle()
            story.over(Finish("completed", evidence=line.strip().decode(errors="replace")))
        else:
            world = _WORLD.search(line)
            if world is not None:
                story.starting(once="nemo world").world = int(world[1])

    def flush(self, story: Story) -> None:
        """Hand over the steps that are held back."""
        self._steps.flush(story.now)

    def _step(self, found: "re.Match[bytes]", story: Story) -> None:
        last = int(found[2] if found[2] is not None else found[1])
        covers = self._progress.reach(last, story, self._steps)
        if covers:
            self._steps.add(last - covers + 1, covers=covers, seconds=float(found[3]) * covers)

    def _mark(self, at: int, story: Story) -> None:
        """One instant a second is enough."""
        if at != UNKNOWN and (self._marked == UNKNOWN or abs(at - self._marked) >= NS):
            self._marked = at
            story.settle()
            story.now.mark(at)

    def _checkpoint(self, line: bytes, at: int, story: Story) -> None:
        """Saves are numbered by the steps done; step numbers begin with 0."""
        found = _FINAL.search(line)
        if found is not None:
            path = (found[2] or b"").decode(errors="replace")
            story.now.add(Happening("saved", "", at, step=int(found[1]) - 1, path=path))
        elif b"Scheduled async checkpoint save" in line:
            story.now.add(Happening("since", "checkpoint", at))
        elif (found := _WRITTEN.search(line)) is not None:
            lasted = round(float(found[1]) * NS)
            story.now.add(Happening("span", "checkpoint", at, duration_ns=lasted))
        elif (found := _READ.search(line)) is not None:
            lasted = round(float(found[1]) * NS)
            story.now.add(Happening("span", "restore", at, duration_ns=lasted))
        elif (found := _FROM.search(line)) is not None:
            following = int(found[2]) + 1
            self._progress.resumed(following)
            path = found[1].decode(errors="replace")
            story.now.add(Happening("resumed", "", at, step=following, path=path))
