"""Training steps from optimizer steps: one mark when a step begins, one when it is complete.

Registers torch's global optimizer hooks. Numbers come from numbering.py, times from the run.
"""

import traceback
import weakref
from collections.abc import Callable
from itertools import islice
from typing import Final, Protocol

import torch
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from goodput.training.measure.event_writer import say
from goodput.training.measure.instrument.evidence import steps_done
from goodput.training.measure.instrument.numbering import UNKNOWN, Evidence, Numbering
from goodput.training.measure.instrument.patches import Around, Patches
from goodput.training.measure.instrument.wall import Wall
from goodput.training.measure.run import Run

FEATURE: Final = "steps"
ABANDONED_AFTER: Final = 64
"""Steps of one other optimizer in a row after which it becomes the main one (assumed: more than any
number of critic steps per generator step)."""
_STATE_SET_UP: Final = "_init_optim_state"
"""torch.distributed.checkpoint.state_dict makes an optimizer step with learning rate 0 to create
the optimizer's state; it is recognised by this function on the stack."""
_STACK_DEPTH: Final = 12


class StepWatcher(Protocol):
    """What else wants to know that steps pass."""

    def before_step(self, optimizer: torch.optim.Optimizer, *, first: bool) -> None:
        """The main optimizer is about to step (for the first time); gradients are complete."""

    def after_step(self) -> None:
        """A step is complete."""

    def take_communication(self) -> int:
        """Exposed communication of the step that is complete, ns; -1 = not measured."""


class Steps:
    """Turns steps of the main optimizer, the first one that steps, into marks.

    Args:
        run: where marks go.
        numbering: what number they get.
        step_of: the user's own counter of the step that is running, if given.
        watcher: told before and after each step.
    """

    def __init__(
        self,
        run: Run,
        numbering: Numbering,
        *,
        step_of: Callable[[], int] | None,
        watcher: StepWatcher,
    ) -> None:
        self.numbering = numbering
        self.several = False
        """More than one optimizer steps, in turns (a GAN)."""
        self.silent = False
        """Somebody else marks the steps; this only follows the optimizer."""
        self._run = run
        self._step_of = step_of
        self._watcher = watcher
        self._main: weakref.ref[torch.optim.Optimizer] | None = None
        self._other: weakref.ref[torch.optim.Optimizer] | None = None
        self._other_steps = 0
        self._in_main = False
        """Between the pre and the post hook of the main optimizer: one inside it may step too."""
        self._open = False
        self._stepped = False
        self._resumed = False
        self._handles: list[torch.utils.hooks.RemovableHandle] = []

    def install(self, wall: Wall, patches: Patches) -> None:
        """Register the hooks."""
        self._handles = [
            register_optimizer_step_pre_hook(wall.guard(FEATURE, self._before)),
            register_optimizer_step_post_hook(wall.guard(FEATURE, self._after)),
        ]
        load = Around(lambda args, _: args[0], self._restored)
        patches.around(FEATURE, torch.optim.Optimizer, "load_state_dict", load)

    def remove(self) -> None:
        """Take the hooks out."""
        for handle in self._handles:
            handle.remove()

    @property
    def started(self) -> bool:
        """True once a step is complete."""
        return self._stepped

    def begin_first(self) -> None:
        """A backward pass or an optimizer step begins: with it the first step, if none has."""
        if not self._open and not self.silent:
            if self._step_of is not None:
                self.numbering.given(int(self._step_of()))
            begun = self.numbering.begun()
            self._tell_source(begun)
            if not self._resumed:
                self.resume(begun)
            self._open = True
            self._run.step(begun.next_step)

    def resume(self, evidence: Evidence | None) -> None:
        """Record that state was restored, and begin the step again that was under way."""
        if evidence is None or self.silent:
            return
        self._run.resumed(evidence.next_step, evidence.path)
        self._resumed = True
        if self._open:
            self._run.step(evidence.next_step)

    def _before(self, optimizer: torch.optim.Optimizer, _args: object, _kwargs: object) -> None:
        if _sets_up_state(optimizer):
            return
        if self._main is None or self._main() is None:
            self._main = weakref.ref(optimizer)
        if self._main() is not optimizer:
            return
        self._in_main = True
        if not self._stepped:
            self.resume(self.numbering.check(_steps_of(optimizer)))
        self.begin_first()
        self._follow_user()
        self._watcher.before_step(optimizer, first=not self._stepped)

    def _after(self, optimizer: torch.optim.Optimizer, _args: object, _kwargs: object) -> None:
        if _sets_up_state(optimizer):
            return
        if self._main is None or self._main() is not optimizer:
            if not self._in_main:
                self._count_other(optimizer)
            return
        self._in_main = False
        self._other_steps = 0
        if _skipped(optimizer):
            return
        self._stepped = True
        number = self.numbering.completed()
        if self.silent:
            self._watcher.after_step()
            return
        comm_ns = self._watcher.take_communication()
        self._watcher.after_step()
        self._run.step_end(number, comm_ns=comm_ns)
        self._run.step(number + 1)

    def _follow_user(self) -> None:
        """Take the number of the running step from `step_of`; mark it anew if that differs."""
        if self._step_of is None or self.silent:
            return
        expected, number = self.numbering.next_step, int(self._step_of())
        if number != expected:
            rollback = self.numbering.given(number)
            if rollback is None:
                self._run.step(number)
            else:
                self.resume(rollback)

    def _restored(self, optimizer: object, _result: object, error: BaseException | None) -> None:
        main = None if self._main is None else self._main()
        if error is None and (main is None or main is optimizer):
            assert isinstance(optimizer, torch.optim.Optimizer)
            self.resume(self.numbering.restored(_steps_of(optimizer)))

    def _count_other(self, optimizer: torch.optim.Optimizer) -> None:
        """Follow a second phase of training, whose optimizer is another than the first."""
        if self._other is None or self._other() is not optimizer:
            self._other, self._other_steps = weakref.ref(optimizer), 0
            self.several = True
        self._other_steps += 1
        if self._other_steps >= ABANDONED_AFTER:
            self._main, self._other = self._other, None

    def _tell_source(self, begun: Evidence) -> None:
        self._run.point(f"steps numbered by {begun.source}", begun.next_step)
        if begun.source == UNKNOWN:
            say(
                "goodput: this job has checkpoints and one was loaded, but its step is not known; "
                "steps are numbered from 0. goodput.instrument(step_of=...) can say the step."
            )


def _steps_of(optimizer: torch.optim.Optimizer) -> int | None:
    return steps_done({"state": optimizer.state, "param_groups": optimizer.param_groups})


def _skipped(optimizer: torch.optim.Optimizer) -> bool:
    """True if a gradient scaler made a fused optimizer skip this step.

    Other optimizers are not called at all then. A flag on an accelerator is not read, because that
    would wait for the device: such a step counts.
    """
    found = getattr(optimizer, "found_inf", None)
    return isinstance(found, torch.Tensor) and found.device.type == "cpu" and bool(found.item())


def _sets_up_state(optimizer: torch.optim.Optimizer) -> bool:
    """True for the step that only creates the optimizer's state before a checkpoint is loaded."""
    groups = optimizer.param_groups
    # Nearly always the first rate says no, and this runs twice a step.
    if not _is_zero(groups[0].get("lr")) or not all(_is_zero(g.get("lr")) for g in groups):
        return False
    frames = islice(traceback.walk_stack(None), _STACK_DEPTH)
    return any(frame.f_code.co_name == _STATE_SET_UP for frame, _ in frames)


def _is_zero(rate: object) -> bool:
    """True for a learning rate of 0 that can be read without waiting for an accelerator."""
    if isinstance(rate, torch.Tensor):
        return rate.device.type == "cpu" and bool(rate.item() == 0)
    return rate == 0
