"""All hooks of one process, put together: who tells whom, what is installed, how it is taken out.

Read __init__.py for what the user calls, docs/instrument.md for what each hook can see.
"""

import atexit
import functools
import os
import threading
from collections.abc import Callable
from time import monotonic_ns, time_ns
from typing import Any, Final

import torch
import torch.distributed as dist

from goodput.core.hardware import match_chip
from goodput.training.measure import recorder
from goodput.training.measure.event_writer import say
from goodput.training.measure.instrument import checkpoints, communication, fetches, flops, steps
from goodput.training.measure.instrument.numbering import Numbering
from goodput.training.measure.instrument.options import Options
from goodput.training.measure.instrument.patches import Around, Patches
from goodput.training.measure.instrument.wall import Wall
from goodput.training.measure.run import Run

INIT: Final = "init"
HARDWARE: Final = "hardware"


class Session:
    """The hooks of this process, installed on creation.

    Args:
        run: where everything is recorded.
        options: what the user chose.
    """

    def __init__(self, run: Run, options: Options) -> None:
        self.run = run
        self.options = options
        self.wall = Wall(self._failed)
        self.numbering = Numbering()
        self.steps = steps.Steps(run, self.numbering, step_of=options.step_of, watcher=self)
        self.fetches = fetches.Fetches(run, started=lambda: self.steps.started)
        self.checkpoints = checkpoints.Checkpoints(
            run,
            self.numbering,
            resume=self.steps.resume,
            interrupt=self.fetches.interrupted,
            fetching=lambda: self.fetches.inside,
        )
        self.communication = communication.Communication(elsewhere=self._elsewhere)
        self.flops = flops.StepFlops(report=self._counted, disturbed=self._disturbed)
        self._chip = options.chip
        self._seen_disturbances = 0
        self.patches = Patches(self.wall)
        self._guard()
        self._install()

    def before_step(self, optimizer: torch.optim.Optimizer, *, first: bool) -> None:
        """The main optimizer is about to step (called by steps.py)."""
        if first:
            self._before_first(optimizer)
        self._training()
        if self.steps.several:
            self._several()
        if self.options.count_flops:
            self._count_ends()

    def after_step(self) -> None:
        """A step is complete (called by steps.py)."""
        if self.options.count_flops:
            self._count_begins()

    def take_communication(self) -> int:
        """Exposed communication since the last call, ns; -1 = not measured."""
        if not self.options.communication:
            return -1
        taken = self._take()
        return -1 if taken is None else taken

    def hand_over(self, *features: str) -> None:
        """Stop recording what somebody else records better; steps are followed in silence."""
        self.steps.silent = self.steps.silent or steps.FEATURE in features
        self.wall.switch_off(*(f for f in features if f != steps.FEATURE))

    def remove(self) -> None:
        """Take every hook out; the run stays open."""
        self._exit()
        self.wall.open = False
        self.steps.remove()
        self.checkpoints.remove()
        self.communication.remove()
        self.flops.remove()
        self.patches.restore()
        atexit.unregister(self._exit)

    def _install(self) -> None:
        wall, patches = self.wall, self.patches
        self._part(steps.FEATURE, lambda: self.steps.install(wall, patches))
        self._part(fetches.FEATURE, lambda: self.fetches.install(wall, patches))
        self._part(steps.FEATURE, self._wrap_backward)
        self._part(checkpoints.SAVES, lambda: self.checkpoints.install(wall, patches))
        if self.options.communication:
            self._part(communication.FEATURE, lambda: self.communication.install(wall, patches))
        if dist.is_available():
            start = Around(lambda _args, _kwargs: (time_ns(), monotonic_ns()), self._initialised)
            self._part(INIT, lambda: patches.around(INIT, dist, "init_process_group", start))
        self._exit = wall.guard(fetches.FEATURE, self.fetches.interrupted)
        # Registered after the run's own exit hook, so that it runs before the file is closed.
        atexit.register(self._exit)

    def _part(self, feature: str, install: Callable[[], None]) -> None:
        self.wall.guard(feature, install)()

    def _guard(self) -> None:
        """What others are told, each behind the wall of its own feature."""
        guard = self.wall.guard
        self._training = guard(fetches.FEATURE, self.fetches.trained)
        self._begin_first = guard(steps.FEATURE, self.steps.begin_first)
        self._chip_first = guard(HARDWARE, self._find_chip)
        self._count_begins = guard(flops.FEATURE, self.flops.after_step)
        self._count_ends = guard(flops.FEATURE, self.flops.before_step)
        collectives = self.communication
        self._take = guard(communication.FEATURE, collectives.take)
        self._several = guard(communication.FEATURE, collectives.several_optimizers)
        self._decide = guard(communication.FEATURE, collectives.before_first_step)
        self._waits_begin = guard(communication.FEATURE, collectives.backward_begins)
        self._waits_end = guard(communication.FEATURE, collectives.backward_ends)

    def _before_first(self, optimizer: torch.optim.Optimizer) -> None:
        self._chip_first(optimizer)
        if self.options.communication:
            self._decide(optimizer)

    def _wrap_backward(self) -> None:
        """One wrapper for all who follow the backward pass: it is called for every micro-batch."""
        original = torch.autograd.backward
        collectives = self.options.communication and dist.is_available()

        @functools.wraps(original)
        def backward(*args: Any, **kwargs: Any) -> None:
            self._training()
            self._begin_first()
            if not collectives:
                original(*args, **kwargs)
                return
            self._waits_begin()
            try:
                original(*args, **kwargs)
            except BaseException as error:
                self._waits_end(error)
                raise
            self._waits_end(None)

        self.patches.replace(torch.autograd, "backward", backward)

    def _elsewhere(self) -> bool:
        return self.checkpoints.busy or self.fetches.busy

    def _initialised(
        self, started: tuple[int, int], _result: object, error: BaseException | None
    ) -> None:
        wall_ns, mono_ns = started
        duration_ns = monotonic_ns() - mono_ns
        if error is None and self.run.identity.world == 1:
            self._learn_rank()
        failed = error is not None
        self.run.record_span("init", wall_ns, mono_ns, duration_ns, failed=failed)

    def _learn_rank(self) -> None:
        """The environment did not say which rank this is (mp.spawn): the process group does.

        A file has one rank, so the record moves to a new one; nothing but user records made before
        the group existed is lost.
        """
        rank, world = dist.get_rank(), dist.get_world_size()
        if world == 1:
            return
        before = self.run.path
        self.run.close()
        identity = self.run.identity
        moved = recorder.start(
            identity.job,
            dir=identity.folder.parent,
            rank=rank,
            world=world,
            attempt=identity.attempt,
            chips=self.options.chips,
            detail=self.options.detail,
            chip=self.options.chip,
        )
        before.unlink(missing_ok=True)
        for (
            slot
        ) in Run.__slots__:  # the caller holds the old object: both are one record from now on
            setattr(self.run, slot, getattr(moved, slot))

    def _find_chip(self, optimizer: torch.optim.Optimizer) -> None:
        """Once, when training runs on CUDA (so asking its name starts nothing): name the chip."""
        if self._chip:
            return
        device = optimizer.param_groups[0]["params"][0].device
        if device.type == "cuda":
            chip = match_chip(torch.cuda.get_device_name(device))
            if chip is not None:
                self._chip = chip.name
                self.run.work(chip=chip.name, dtype=self.options.dtype)

    def _counted(self, flops_per_step: float) -> None:
        self.run.work(
            flops_per_step=flops_per_step,
            chip=self._chip,
            dtype=self.options.dtype,
            source="counted",
        )

    def _disturbed(self) -> bool:
        """True if an evaluation or a save was recorded since the last call."""
        seen, now = self._seen_disturbances, self.fetches.evaluations + self.checkpoints.saves
        self._seen_disturbances = now
        return now != seen

    def _failed(self, feature: str, what: str) -> None:
        del what
        self.run.point(f"instrument() stopped recording {feature}", 1.0)


def _forked() -> None:
    """A forked child (a data loader worker) records nothing and counts no FLOPs."""
    if _current is not None and _current.wall.open:
        _current.wall.open = False
        _current.flops.remove()


_lock = threading.Lock()
_current: Session | None = None


def install(run: Run | None, options: Options) -> Session:
    """The session of this process: a new one, or the one that records into the same open run."""
    global _current  # noqa: PLW0603 - hooks are global to the process, and so is their owner
    with _lock:
        if _current is not None and _current.wall.open and _current.run.enabled:
            if run is None or run is _current.run:
                return _current
            _current.remove()
        elif _current is not None:
            _current.remove()
        _current = Session(run or _open_run(options), options)
        return _current


def current() -> Session:
    """The session of this process.

    Raises:
        LookupError: no hooks are installed.
    """
    if _current is None:
        raise LookupError("instrument() was not called in this process")
    return _current


def uninstall() -> None:
    """Take every hook out, if there are any."""
    global _current  # noqa: PLW0603 - as above
    with _lock:
        if _current is not None:
            _current.remove()
            _current = None


def _open_run(options: Options) -> Run:
    """The open run of this process, else a new one, with the rank that torch knows by now."""
    running = recorder.current()
    if running is not None and running.enabled:
        return running
    rank = world = None
    if dist.is_available() and dist.is_initialized():
        rank, world = dist.get_rank(), dist.get_world_size()
    run = recorder.start(
        options.job,
        dir=options.dir,
        rank=rank,
        world=world,
        chips=options.chips,
        detail=options.detail,
        chip=options.chip,
    )
    if not run.enabled:
        say("goodput: instrument() records into a run that is closed already")
    return run


os.register_at_fork(after_in_child=_forked)
