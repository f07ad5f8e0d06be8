"""Exposed collective time on CPU (gloo), seen from Python: two places where the thread waits.

1. `Work.wait()`, which every blocking collective of torch.distributed ends in.
2. DistributedDataParallel waits in C++ at the end of the backward pass: the time from the last
   gradient to the return of `backward()`. The parameter that comes last carries a hook for it.

On an accelerator neither says what the device waited for, and asking would stop it: not measured.
"""

import threading
from collections.abc import Callable
from itertools import count
from time import monotonic_ns
from typing import Any, Final

import torch
import torch.distributed as dist

from goodput.training.measure.instrument.patches import Around, Patches
from goodput.training.measure.instrument.wall import Depth, Wall

FEATURE: Final = "communication"


class Communication:
    """Sums exposed communication between two calls of `take`.

    Args:
        elsewhere: whether the thread is in a checkpoint, an evaluation or a fetch: collectives
            there belong to that span.
    """

    def __init__(self, *, elsewhere: Callable[[], bool]) -> None:
        self._wall: Wall | None = None
        self._elsewhere = elsewhere
        self._thread = threading.get_ident()
        self._waiting = Depth()
        self._quiet = 0
        self._measuring = False
        self._total_ns = 0
        self._backward = 0
        self._last_gradient_ns = 0
        self._waited_at_last_ns = 0
        self._hooks: dict[int, Any] = {}
        self._last_index = -1

    def install(self, wall: Wall, patches: Patches) -> None:
        """Wrap what blocks: waits and barriers. The backward pass is told by session.py."""
        if not dist.is_available():
            return
        self._wall = wall
        waiting = Around(lambda _args, _kwargs: self._wait_begins(), self._wait_ends)
        patches.around(FEATURE, dist.Work, "wait", waiting)
        # A barrier waits for what another rank does meanwhile (a checkpoint): no exposed transfer.
        patches.around(FEATURE, dist, "barrier", Around(self._barrier_begins, self._barrier_ends))

    def remove(self) -> None:
        """Take the gradient hooks out."""
        for handle in self._hooks.values():
            handle.remove()
        self._hooks.clear()

    def several_optimizers(self) -> None:
        """Other optimizers step as well, so a backward pass is not of the main one alone."""
        if self._measuring:
            self.remove()
            self._measuring = False

    def before_first_step(self, optimizer: torch.optim.Optimizer) -> None:
        """The main optimizer steps for the first time: decide what can be measured."""
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        self._measuring = (
            dist.is_available()
            and dist.is_initialized()
            and dist.get_world_size() > 1
            and all(p.device.type == "cpu" for p in parameters)
        )
        if self._measuring:
            self._hook(parameters)

    def take(self) -> int:
        """Exposed communication since the last call, ns; -1 = not measured, as the first step."""
        total_ns, self._total_ns = self._total_ns, 0
        return total_ns if self._measuring and self._last_index >= 0 else -1

    def _hook(self, parameters: list[torch.nn.Parameter]) -> None:
        """Hook every parameter for one backward pass, to find out which gradient comes last."""
        assert self._wall is not None
        for index, parameter in zip(count(), parameters, strict=False):
            if parameter.requires_grad and parameter.is_leaf:
                ready = self._wall.guard(FEATURE, self._ready(index))
                self._hooks[index] = parameter.register_post_accumulate_grad_hook(ready)

    def _ready(self, index: int) -> Callable[[torch.Tensor], None]:
        def ready(_parameter: torch.Tensor) -> None:
            self._last_index = index
            self._last_gradient_ns = monotonic_ns()
            self._waited_at_last_ns = self._total_ns

        return ready

    def _keep_last(self) -> None:
        """Keep the hook of the parameter whose gradient came last, once one backward pass ran."""
        for index in [index for index in self._hooks if index != self._last_index]:
            self._hooks.pop(index).remove()

    def _wait_begins(self) -> int | None:
        if self._quiet or self._waiting.value or threading.get_ident() != self._thread:
            return None
        if self._elsewhere():
            return None
        self._waiting.value = 1
        return monotonic_ns()

    def _wait_ends(self, started_ns: int, _result: object, _error: BaseException | None) -> None:
        self._waiting.value = 0
        self._total_ns += monotonic_ns() - started_ns

    def _barrier_begins(self, _args: object, _kwargs: object) -> int | None:
        if threading.get_ident() != self._thread:
            return None
        self._quiet += 1
        return self._quiet

    def _barrier_ends(self, _depth: int, _result: object, _error: BaseException | None) -> None:
        self._quiet -= 1

    def backward_begins(self) -> None:
        """`backward()` is called, perhaps from inside another one (a reentrant checkpoint)."""
        if threading.get_ident() == self._thread:
            self._backward += 1
            if self._backward == 1:
                self._last_gradient_ns = 0

    def backward_ends(self, error: BaseException | None) -> None:
        """`backward()` returned or raised."""
        if threading.get_ident() != self._thread:
            return
        self._backward -= 1
        if self._backward or error is not None or not self._last_gradient_ns:
            return
        # Waits in this window (FSDP) are in the total already.
        waited_ns = self._total_ns - self._waited_at_last_ns
        self._total_ns += max(0, monotonic_ns() - self._last_gradient_ns - waited_ns)
        if len(self._hooks) > 1:
            self._keep_last()
