"""nanoGPT, llm.c and modded-nanogpt: step times without stamps; evaluations hide in steps."""

import re
from datetime import UTC, datetime
from typing import Final

from goodput.training.measure.readers.logs.batch import Progress, StepBatch
from goodput.training.measure.readers.logs.story import NS, UNKNOWN, Finish, Happening
from goodput.training.measure.readers.logs.text import Story

_NANO: Final = re.compile(rb"^iter (\d+): loss [^,]+, time ([\d.]+)ms")
_LLMC: Final = re.compile(rb"^step +(\d+)/(\d+) \| .*?\| +([\d.]+) ms \|")
_MAIN: Final = re.compile(rb"^s:(\d+) trl:")
_MODDED: Final = re.compile(
    rb"^step:(\d+)/(\d+) (?:(train|val)_loss:\S+ )?(?:train_)?time:([\d.]+)(ms|s)\b"
)
_DATE: Final = re.compile(rb"^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) (\w{3} +\d+ [\d:]{8} 20\d\d)\b")


class NanoGpt:
    """One file of output of nanoGPT or llm.c, or a log file of llm.c's training."""

    name = "nanogpt"
    signs = (b"iter 0: loss ", b", mfu ", b"(+nanz)| norm ", b"\ns:1 trl:")
    needles = (b": loss ", b" ms | ", b" trl:", b": train loss ", b"saving checkpoint to")

    def __init__(self) -> None:
        self._steps = StepBatch()
        self._nano = Progress(first_number=0)
        self._llmc = Progress()
        self._usual_s = 0.0
        self._evaluated = False

    def line(self, line: bytes, story: Story) -> None:
        """Take one line of interest."""
        found = _NANO.match(line)
        if found is not None:
            self._iteration(int(found[1]), float(found[2]) / 1000, story)
        elif (found := _LLMC.match(line)) is not None:
            last = int(found[1])
            covers = self._llmc.reach(last, story, self._steps)
            if covers:
                seconds = float(found[3]) / 1000 * covers
                self._steps.add(last - covers + 1, covers=covers, seconds=seconds)
                if last == int(found[2]):
                    story.over(Finish("completed", "", "the last step was done"))
        elif (found := _MAIN.match(line)) is not None:
            last = int(found[1])
            covers = self._nano.reach(last, story, self._steps)
            if covers:
                self._steps.add(last - covers + 1, covers=covers)
            if last == 1:
                story.note("the log holds no times: steps can be counted, nothing more")
        elif line.startswith(b"step ") and b"val loss" in line:
            self._evaluated = True
        elif b"saving checkpoint to" in line and self._nano.done >= 0:
            # Saved before the next step begins; its time is inside that step's.
            story.settle()
            story.now.add(Happening("saved", "", step=self._nano.done))

    def flush(self, story: Story) -> None:
        """Hand over the steps that are held back."""
        self._steps.flush(story.now)

    def _iteration(self, last: int, seconds: float, story: Story) -> None:
        """A line gives the time of one step; the steps between two lines are taken to equal it."""
        covers = self._nano.reach(last, story, self._steps)
        if not covers:
            return
        if self._evaluated and self._usual_s and seconds > self._usual_s:
            story.settle()
            extra = round((seconds - self._usual_s) * NS)
            story.now.add(Happening("span", "evaluation", duration_ns=extra))
            story.note("evaluations: what a step took over the one before, saves included")
            seconds = self._usual_s
        elif not self._evaluated:
            self._usual_s = seconds
        self._evaluated = False
        if covers > 1:
            story.note(
                "a line gives the time of one step of several: the others are taken as equal"
            )
        self._steps.add(last - covers + 1, covers=covers, seconds=seconds * covers)


class ModdedNanoGpt:
    """One log file of modded-nanogpt: the training clock stands still during evaluations."""

    name = "modded-nanogpt"
    signs = (b" step_avg:",)
    needles = (b"step:", b" 202")

    def __init__(self) -> None:
        self._steps = StepBatch()
        self._progress = Progress()
        self._clock_s = 0.0

    def line(self, line: bytes, story: Story) -> None:
        """Take one line of interest."""
        found = _MODDED.match(line)
        if found is not None:
            self._step(found, story)
            return
        date = _DATE.match(line)
        if date is not None:
            story.starting(once="modded-nanogpt date").mark(_ctime_ns(date[1]), "nvidia-smi")

    def flush(self, story: Story) -> None:
        """Hand over the steps that are held back."""
        self._steps.flush(story.now)

    def _step(self, found: "re.Match[bytes]", story: Story) -> None:
        last, total = int(found[1]), int(found[2])
        clock_s = float(found[4]) / (1000 if found[5] == b"ms" else 1)
        if found[3] == b"val":
            story.note("evaluations: the training clock stands still, the log does not time them")
        if last == 0:
            self._clock_s = clock_s
            return
        covers = self._progress.reach(last, story, self._steps)
        if covers:
            seconds = clock_s - self._clock_s
            # The clock starts anew after ten steps of warm-up, and with every launch.
            seconds = seconds if seconds >= 0 else clock_s
            self._steps.add(last - covers + 1, covers=covers, seconds=seconds)
            self._clock_s = clock_s
        if last == total and found[3] == b"val":
            story.settle()
            story.over(Finish("completed", "", "the last step was done and evaluated"))


def _ctime_ns(text: bytes) -> int:
    try:
        moment = datetime.strptime(text.decode(), "%b %d %H:%M:%S %Y").replace(tzinfo=UTC)
    except ValueError:
        return UNKNOWN
    return int(moment.timestamp()) * NS
