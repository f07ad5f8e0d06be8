"""Hugging Face Trainer's standard output: progress bars, dict lines, the final train_runtime."""

import re
from typing import Final

from goodput.training.measure.readers.logs.batch import StepBatch
from goodput.training.measure.readers.logs.clock import seconds_of_day, stamp_ns
from goodput.training.measure.readers.logs.story import NS, UNKNOWN, Finish, Happening, Launch
from goodput.training.measure.readers.logs.text import Story

_BAR: Final = re.compile(rb"^ *\d+%\|[^|]*\| +(\d+)/(\d+) \[([\d:]+)<")
_TOTAL: Final = re.compile(rb"Total optimization steps = ([\d,]+)")
_CONTINUE: Final = re.compile(rb"global step:? (\d+)")
_EVAL: Final = re.compile(rb"'eval_runtime': '?([\d.]+)")
_RUNTIME: Final = re.compile(rb"'?train_runtime'?(?:: '?| += )([\d.:]+)")
_RATE: Final = re.compile(rb"'train_steps_per_second': '?([\d.]+)")
_SAVED: Final = re.compile(rb"Saving model checkpoint to (\S*?checkpoint-(\d+)|\S+)")


class HfTrainer:
    """One file of output of a program that trains with transformers' Trainer."""

    name = "hf trainer"
    signs = (b"train_runtime", b"{'loss': ", b"[INFO|trainer.py", b">> ***** Running training")
    needles = (
        b"%|",
        b"_runtime",
        b"***** Running training",
        b"Total optimization steps = ",
        b"Continuing training from global step",
        b"Saving model checkpoint to ",
        b" saved in ",
    )

    def __init__(self) -> None:
        self._steps = StepBatch()
        self._launch: Launch | None = None
        self._total = 0
        self._done = 0
        self._elapsed_s = 0.0
        self._evaluated_s = 0.0
        self._seen: dict[int, float] = {}
        self._next: int | None = None
        self._saving_ns = UNKNOWN
        self._whole_s = 0.0
        self._runtime_s = 0.0

    def line(self, line: bytes, story: Story) -> None:
        """Take one line of interest."""
        found = _BAR.match(line)
        if found is not None:
            self._bar(found, story)
        if b"_runtime" in line:
            self._dict(line, story)
        elif b"Running training" in line:
            self._start(line, story)
        elif (total := _TOTAL.search(line)) is not None:
            self._total = int(total[1].replace(b",", b""))
        elif b"Continuing training from global step" in line:
            self._continue(line, story)
        elif b"Saving model checkpoint" in line or b" saved in " in line:
            self._save(line, story)

    def flush(self, story: Story) -> None:
        """Hand over the steps that are held back."""
        self._steps.flush(story.now)

    def _start(self, line: bytes, story: Story) -> None:
        """Every node's first process says so."""
        story.starting().mark(stamp_ns(line, story.clock), "training starts")

    def _continue(self, line: bytes, story: Story) -> None:
        found = _CONTINUE.search(line)
        if found is not None:
            story.starting()
            self._next = int(found[1]) + 1
            at = stamp_ns(line, story.clock)
            story.now.add(Happening("resumed", "", at, step=self._next))

    def _bar(self, found: "re.Match[bytes]", story: Story) -> None:
        """A bar without a title: the first one is the training's, others are evaluations'."""
        number, total = int(found[1]), int(found[2])
        self._total = self._total or total
        if total != self._total:
            return
        elapsed = seconds_of_day(found[3])
        if story.now is not self._launch:
            self._enter(story)
        if number <= self._done:
            if not self._restarted(number, elapsed):
                return
            story.starting(once="hf bar")
            story.now.signs.add("hf bar")
            self._enter(story)
        if number <= self._done:
            return  # where a resumed bar begins
        covers = number - self._done
        # The bar's clock runs on during evaluations.
        seconds = max(elapsed - self._elapsed_s - self._evaluated_s, 0.0)
        if self._done == 0 and self._next is None and covers > 1 and seconds < 1:
            self._done, self._elapsed_s = number, elapsed
            return  # a bar that begins beyond 0: steps of an earlier launch
        self._seen[number] = elapsed
        self._steps.add(self._done + 1, covers=covers, seconds=seconds)
        self._done, self._elapsed_s, self._evaluated_s = number, elapsed, 0.0

    def _enter(self, story: Story) -> None:
        self._launch = story.now
        self._done = 0 if self._next is None else self._next - 1
        self._next = None
        self._elapsed_s = self._evaluated_s = 0.0
        self._seen.clear()

    def _restarted(self, number: int, elapsed_s: float) -> bool:
        """Whether a bar that goes back is a new launch's: other nodes' copies show equal times."""
        if number in {0, self._done}:
            return False
        known = self._seen.get(number)
        return known is not None and abs(known - elapsed_s) > 1.5 and elapsed_s < self._elapsed_s

    def _dict(self, line: bytes, story: Story) -> None:
        evaluated = _EVAL.search(line)
        if evaluated is not None:
            story.settle()
            seconds = float(evaluated[1])
            self._evaluated_s += seconds
            self._whole_s += seconds
            story.now.add(Happening("span", "evaluation", duration_ns=round(seconds * NS)))
        runtime = _RUNTIME.search(line)
        if runtime is None:
            return
        seconds = seconds_of_day(runtime[1])
        if story.now.finish is not None:
            if b"'train_runtime'" not in line or abs(seconds - self._runtime_s) < 1:
                return  # the same again as a table, or by another node
            story.starting()  # its bars looked like a copy of those before
        self._runtime_s = seconds
        story.settle()
        rate = _RATE.search(line)
        if not story.now.worked and rate is not None:
            self._only_totals(seconds, float(rate[1]), story)
        elif self._whole_s > seconds + 1:
            story.note("evaluations longer than the whole run: the log contradicts itself")
        self._whole_s = 0.0
        evidence = line.strip()[:300].decode(errors="replace")
        story.over(Finish("completed", "", evidence, stamp_ns(line, story.clock)))

    def _only_totals(self, seconds: float, steps_per_s: float, story: Story) -> None:
        """Without bars there is one record: all steps and the time they took."""
        steps = self._total or round(seconds * steps_per_s)
        if steps:
            story.note("no progress bar: all steps of a launch are one record of equal steps")
            rest = max(seconds - self._whole_s, 0.0)
            self._steps.add(1, covers=steps, seconds=rest)
            self._steps.flush(story.now)

    def _save(self, line: bytes, story: Story) -> None:
        """Only the begin of a save is logged, and the files it writes."""
        at = stamp_ns(line, story.clock)
        found = _SAVED.search(line)
        if found is not None:
            story.settle()
            self._saving_ns = at
            if found[2] is not None:
                path = found[1].decode(errors="replace")
                story.now.add(Happening("saved", "", at, step=int(found[2]), path=path))
        elif UNKNOWN not in {at, self._saving_ns} and at > self._saving_ns:
            story.settle()
            lasted = at - self._saving_ns
            story.now.add(Happening("span", "checkpoint", at, duration_ns=lasted))
            self._saving_ns = at
