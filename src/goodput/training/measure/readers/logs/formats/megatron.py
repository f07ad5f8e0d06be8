"""Megatron-LM and Megatron-DeepSpeed standard output, with and without dates and rank prefixes."""

import re
from typing import Final

from goodput.training.measure.readers.logs.batch import Progress, StepBatch
from goodput.training.measure.readers.logs.clock import iso_ns
from goodput.training.measure.readers.logs.story import NS, UNKNOWN, Finish, Happening
from goodput.training.measure.readers.logs.text import Story

_STEP: Final = re.compile(
    rb"(?:\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?)\] )?"
    rb"\s*iteration +(\d+)/ *\d+ \|.*?elapsed time per iteration \((ms|s)\): ([\d.]+)"
)
_WASTED: Final = re.compile(rb"number of (?:skipped|nan) iterations: +(\d+)")
_TFLOPS: Final = re.compile(rb"throughput per GPU \(TFLOP/s/GPU\): *([\d.]+)")
"""Of the model; the `TFLOPs` of Megatron-DeepSpeed count recomputation and are left alone."""
_STAGE: Final = re.compile(rb"\[([a-z][^\]]*)\] datetime: (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")
_STAMP: Final = re.compile(rb"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?)\]")
_SAVING: Final = re.compile(rb"saving checkpoint at iteration +(\d+) to (\S+)")
_SAVED: Final = re.compile(rb"successfully saved checkpoint (?:from|at) iteration +(\d+) to (\S+)")
_LOADED: Final = re.compile(rb"successfully loaded checkpoint from (\S+).*? at iteration +(\d+)")
_WORLD: Final = re.compile(rb"using world size: (\d+)")
_TIMER: Final = re.compile(
    rb"\b(save-checkpoint|load-checkpoint|evaluate)[ .]*: \(?(?:[\d.]+, )?([\d.]+)"
)
_TIMED: Final = {b"save": "checkpoint", b"load": "restore", b"eval": "evaluation"}


class Megatron:
    """One file of Megatron output."""

    name = "megatron"
    signs = (b"elapsed time per iteration (", b"[after megatron is initialized]")
    needles = (b" iteration ", b"] datetime: ", b"-checkpoint", b"using world size: ")

    def __init__(self) -> None:
        self._steps = StepBatch()
        self._progress = Progress()
        self._dated = False

    def line(self, line: bytes, story: Story) -> None:
        """Take one line of interest."""
        found = _STEP.search(line) if b"elapsed time per it" in line else None
        if found is not None:
            self._step(line, found, story)
        elif b"datetime: " in line:
            self._stage(line, story)
        elif b"world size" in line:
            self._world(line, story)
        elif b"validation loss at iteration" in line:
            self._evaluation(story)
        elif b" checkpoint" in line:
            self._checkpoint(line, story)
        elif b"-checkpoint" in line:
            self._timer(line, story)

    def flush(self, story: Story) -> None:
        """Hand over the steps that are held back."""
        self._steps.flush(story.now)

    def _step(self, line: bytes, found: "re.Match[bytes]", story: Story) -> None:
        stamp, number, unit, elapsed = found.groups()
        iteration = int(number)
        covers = self._progress.reach(iteration, story, self._steps)
        if not covers:
            return
        seconds = float(elapsed) if unit == b"s" else float(elapsed) / 1000
        self._steps.add(
            iteration - covers + 1, covers=covers, seconds=seconds * covers, stamp=stamp or b""
        )
        self._dated = stamp is not None
        if b"skipped iterations:   0 |" not in line or b"nan iterations:   0 |" not in line:
            wasted = sum(int(count) for count in _WASTED.findall(line))
            if wasted:
                story.note("skipped or NaN iterations: they took time, no progress", wasted)
        launch = story.now
        if launch.world and not launch.flops_per_step:
            flops = _TFLOPS.search(line)
            if flops is not None:
                launch.flops_per_step = float(flops[1]) * 1e12 * seconds * launch.world

    def _stage(self, line: bytes, story: Story) -> None:
        found = _STAGE.search(line)
        if found is None:
            return
        at = iso_ns(found[2])
        story.clock.knows(at)
        stage = found[1].decode(errors="replace")
        if stage.startswith("after megatron is initialized"):
            story.starting(once="megatron initialized")
        story.settle()
        story.now.mark(at, stage)
        if stage.startswith("after training is done"):
            story.over(Finish("completed", evidence=stage, at_ns=at))
        elif stage.startswith("exiting program"):
            cause = "killed" if "SIGTERM" in stage else ""
            story.over(Finish("stopped", cause, evidence=stage, at_ns=at, fault_at_ns=at))

    def _world(self, line: bytes, story: Story) -> None:
        found = _WORLD.search(line)
        if found is not None:
            story.starting(once="megatron world size").world = int(found[1])

    def _evaluation(self, story: Story) -> None:
        story.settle()
        story.now.add(Happening("gap", "evaluation"))
        if not self._dated:
            story.note("evaluations: without stamps the log does not say how long they took")

    def _timer(self, line: bytes, story: Story) -> None:
        """Timers give the durations of what has no stamps."""
        if self._dated:
            return
        for name, milliseconds in _TIMER.findall(line):
            lasted = round(float(milliseconds) * NS / 1000)
            if lasted >= NS // 100:
                story.settle()
                story.now.add(Happening("span", _TIMED[name[:4]], duration_ns=lasted))

    def _checkpoint(self, line: bytes, story: Story) -> None:
        stamp = _STAMP.search(line)
        at = iso_ns(stamp[1]) if stamp is not None else UNKNOWN
        self._dated = self._dated or stamp is not None
        found = _SAVED.search(line)
        if found is not None:
            story.settle()
            step, path = int(found[1]), found[2].decode(errors="replace")
            if at != UNKNOWN:
                story.now.add(Happening("end", "checkpoint", at))
            story.now.add(Happening("saved", "", at, step=step, path=path))
            return
        if at != UNKNOWN and _SAVING.search(line) is not None:
            story.settle()
            story.now.add(Happening("begin", "checkpoint", at))
            return
        found = _LOADED.search(line)
        if found is not None:
            story.settle()
            path = found[1].decode(errors="replace")
            self._progress.resumed(int(found[2]) + 1)
            story.now.add(Happening("resumed", "", at, step=int(found[2]) + 1, path=path))
