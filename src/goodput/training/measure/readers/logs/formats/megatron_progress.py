"""Megatron-LM `progress.txt` (--log-progress): starts and checkpoints of a whole campaign."""

import re
from typing import Final

from goodput.core.timeline import as_ints
from goodput.training.measure.readers.logs.batch import LARGEST_JUMP
from goodput.training.measure.readers.logs.clock import iso_ns
from goodput.training.measure.readers.logs.story import UNKNOWN, Happening, Steps, check
from goodput.training.measure.readers.logs.text import Story

_LINE: Final = re.compile(
    rb"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?)\tJob ID: ([^\t]*)\t# GPUs: (\d{1,7})\t(.*)$"
)
_SAVED: Final = re.compile(rb"Sav(?:ed|ing)( async)? checkpoint\tIteration: (\d{1,15})")
_FLOPS: Final = re.compile(rb"Floating-point operations: ([\d.]+(?:[eE][+-]?\d+)?)")
_HIDDEN: Final = (
    "checkpoints are all that this file tells: where each launch resumed, and what happened "
    "between two checkpoints, is not in it"
)


class MegatronProgress:
    """One progress file."""

    name = "megatron progress"
    signs = (b"\t# GPUs: ",)
    needles = (b"\tJob ID: ",)

    def __init__(self) -> None:
        self._reached = 0
        self._flops = 0.0

    def line(self, line: bytes, story: Story) -> None:
        """Take one line of interest."""
        found = _LINE.match(line)
        if found is None:
            return
        at, job, gpus, what = (
            iso_ns(found[1]),
            found[2].decode(errors="replace"),
            found[3],
            found[4],
        )
        if at == UNKNOWN:
            return
        if what.startswith(b"Starting job"):
            self._start(at, job, int(gpus), story)
            return
        saved = _SAVED.match(what)
        if saved is not None:
            self._save(at, int(saved[2]), what, story)

    def flush(self, story: Story) -> None:
        """Nothing is held back."""

    def _start(self, at: int, job: str, gpus: int, story: Story) -> None:
        launch = story.starting(once="megatron progress")
        launch.mark(at, "Starting job")
        launch.world = launch.chips = gpus
        if job.strip().isdigit():
            story.aliases.add(f"slurm:{job.strip()}")
        story.note(_HIDDEN, 0 if _HIDDEN in story.notes else 1)

    def _save(self, at: int, iteration: int, what: bytes, story: Story) -> None:
        """Iterations since the checkpoint before; a lower one was saved by a rolled back launch."""
        if what.startswith(b"Saving"):
            return  # an asynchronous save that begins: only its end counts
        flops = _FLOPS.search(what)
        check(step=iteration)
        if iteration > self._reached:
            covers = iteration - self._reached
            if covers > LARGEST_JUMP:
                raise ValueError(f"{covers} steps between two checkpoints")
            story.now.add(
                Steps(as_ints([self._reached + 1]), as_ints([covers]), as_ints([at]), as_ints([-1]))
            )
            if flops is not None:
                self._work(float(flops[1]), covers, story)
        story.now.add(Happening("saved", "", at, step=iteration))
        self._reached = iteration

    def _work(self, total: float, covers: int, story: Story) -> None:
        if self._flops and total > self._flops and total < 1e40:
            story.now.flops_per_step = (total - self._flops) / covers
        self._flops = total
