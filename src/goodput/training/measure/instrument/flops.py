"""Model FLOPs counted with torch's FlopCounterMode: of a call, or of one whole training step.

It counts what the operators do, so a recomputed activation counts twice, and operators without a
formula (custom kernels, most compiled graphs) count nothing.
"""

from collections.abc import Callable
from typing import Final

import torch.distributed as dist
from torch.utils.flop_counter import FlopCounterMode

from goodput.training.measure.event_writer import say

FEATURE: Final = "flops"
COUNTED_STEP: Final = 1
"""0-based step of this process that is counted: the first one is not typical."""


def count_flops(function: Callable[[], object]) -> int:
    """Floating point operations of one call on this process.

    Args:
        function: what to count; it is called once.

    Returns:
        FLOPs (a multiply-add counts 2) of the operators that torch has a formula for: matrix
        products, convolutions and attention, forward and backward.

    Source: torch.utils.flop_counter.
    """
    counter = FlopCounterMode(display=False)
    with counter:
        function()
    return int(counter.get_total_flops())


class StepFlops:
    """Counts one whole step of this process, from optimizer step to optimizer step.

    Args:
        report: gets FLOPs of one step of the whole job.
        disturbed: whether something that is no training happened since the last call.
    """

    def __init__(self, *, report: Callable[[float], None], disturbed: Callable[[], bool]) -> None:
        self._report = report
        self._disturbed = disturbed
        self._counter: FlopCounterMode | None = None
        self._steps = 0
        self._done = False

    def before_step(self) -> None:
        """The optimizer is about to step: the counted step's gradients are complete."""
        counter, self._counter = self._counter, None
        if counter is None:
            return
        counter.__exit__(None, None, None)
        if self._disturbed():
            return  # an evaluation or a save was counted too: try the next step
        self._done = True
        flops = int(counter.get_total_flops())
        if flops:
            world = dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1
            self._report(float(flops) * world)
        else:
            say("goodput: no FLOPs were counted: this model runs in operators without a formula.")

    def after_step(self) -> None:
        """A step is complete: the next one may be the one to count."""
        self._steps += 1
        if not self._done and self._steps >= COUNTED_STEP:
            self._disturbed()
            self._counter = FlopCounterMode(display=False)
            self._counter.__enter__()

    def remove(self) -> None:
        """Stop counting."""
        counter, self._counter = self._counter, None
        if counter is not None:
            counter.__exit__(None, None, None)
