"""DLRover training event files: begin and end of steps, saves and other phases, as JSON lines."""

import re
from typing import Final

from goodput.training.measure.readers.logs.batch import StepBatch
from goodput.training.measure.readers.logs.clock import iso_ns
from goodput.training.measure.readers.logs.story import NS, UNKNOWN, Happening
from goodput.training.measure.readers.logs.text import Story

_LINE: Final = re.compile(
    rb"^\[(\d{4}-\d\d-\d\dT[\d:.]+)\] \[(\d+)\] \[(\w+)\] \[(\w+)\] \[#?(\w+)\] "
    rb"\[(BEGIN|END)\] \{(?:[^{}]*?\"global_step\": (\d{1,15}))?"
)
_SPANS: Final = {
    b"init": "init", b"load_ckpt": "restore", b"load": "restore", b"resume": "restore",
    b"evaluate": "evaluation", b"predict": "evaluation", b"save": "checkpoint",
}  # fmt: skip
_BETWEEN: Final = "steps that were not logged one by one: known from the step of the next record"


class DLRoverEvents:
    """One event file of a trainer."""

    name = "dlrover"
    signs = (b"] [#step] [", b"] [#train] [", b"] [#save] [")
    needles = (b"] [BEGIN] {", b"] [END] {")

    def __init__(self) -> None:
        self._steps = StepBatch()
        self._reached: int | None = None
        self._open: dict[bytes, tuple[int, int]] = {}
        self._pid = b""

    def line(self, line: bytes, story: Story) -> None:
        """Take one line of interest."""
        found = _LINE.match(line)
        if found is None:
            return
        stamp, pid, key, _, name, edge, number = found.groups()
        at = iso_ns(stamp)
        if not line.rstrip().endswith(b"}"):
            story.note("records whose JSON does not close; skipped")
            return
        step = int(number) if number is not None else None
        if at == UNKNOWN:
            return
        if pid != self._pid:
            self._enter(pid, at, story)
        if name == b"step":
            self._step(key, edge, at, step, story)
        elif name in _SPANS:
            self._phase(name, edge, at, step, story)

    def flush(self, story: Story) -> None:
        """Hand over the steps that are held back."""
        self._steps.flush(story.now)

    def _enter(self, pid: bytes, at: int, story: Story) -> None:
        """A new process writes: the trainer was started again."""
        if self._pid:
            story.starting(once="dlrover process")
            self._reached = None
            self._open.clear()
        self._pid = pid
        story.now.signs.add("dlrover process")
        story.now.mark(at)

    def _step(self, key: bytes, edge: bytes, at: int, step: int | None, story: Story) -> None:
        """A step begins with the count of steps done, and ends with the count after it."""
        if step is None:
            return
        if edge == b"BEGIN":
            self._until(step, at, story)
            self._open[key] = (at, step)
            return
        begun, before = self._open.pop(key, (UNKNOWN, step - 1))
        if step <= before or (self._reached is not None and step <= self._reached):
            return
        seconds = (at - begun) / NS if begun != UNKNOWN else -1.0
        self._steps.add(before + 1, covers=step - before, seconds=seconds, at_ns=at)
        self._reached = step

    def _phase(self, name: bytes, edge: bytes, at: int, step: int | None, story: Story) -> None:
        if step is not None:
            self._until(step, at, story)
        story.settle()
        kind = "begin" if edge == b"BEGIN" else "end"
        if kind == "end":
            story.now.add(Happening("end", _SPANS[name], at))
        else:
            story.now.add(Happening("begin", _SPANS[name], at))
        if kind == "end" and name == b"save" and step is not None:
            story.now.add(Happening("saved", "", at, step=step))

    def _until(self, step: int, at: int, story: Story) -> None:
        """Steps that were done by now, between what was logged."""
        if self._reached is None:
            self._reached = step
        if step <= self._reached:
            self._reached = min(self._reached, step)  # lower: rolled back
            return
        self._steps.add(self._reached + 1, covers=step - self._reached, at_ns=at)
        story.note(_BETWEEN, step - self._reached)
        self._reached = step
