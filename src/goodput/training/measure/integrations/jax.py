"""Helpers for JAX: steps that end when the device is done, FLOPs, and Orbax's CheckpointManager.

There are no hooks here: JAX training loops are plain Python, so what is recorded is called by name.
"""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from time import monotonic_ns, sleep, time_ns
from typing import Any, Final, Literal

import jax

from goodput.training.measure.run import Run

_POLL_FIRST_S: Final = 0.02
_POLL_MOST_S: Final = 1.0
"""An asynchronous save is asked whether it is done after 20 ms, then at intervals that grow by half
up to 1 s (assumed): that is the error of the time of `committed`."""


class StepOutputs:
    """What the step in a `with step(...)` computes."""

    def __init__(self) -> None:
        self._outputs: list[object] = []

    def wait_for(self, *outputs: object) -> None:
        """Make the end of the step the moment at which these arrays are computed."""
        self._outputs.extend(outputs)

    def block(self) -> bool:
        """Wait; False when there is nothing to wait for."""
        jax.block_until_ready(self._outputs)
        return bool(self._outputs)


@contextmanager
def step(run: Run, n: int, *, shape: str = "") -> Generator[StepOutputs]:
    """A training step, for a `with` in which `wait_for(loss)` says what it computes.

    JAX returns before the device has computed. `wait_for` blocks at the end of the `with`, which
    keeps the device from running ahead; without it only the beginning of the step is recorded, and
    that is the time of its dispatch.

    Args:
        run: where to record.
        n: number of the step, counted over all restarts.
        shape: steps of one shape should take equal time.

    Yields:
        Where to name the arrays that the step computes.
    """
    run.step(n, shape=shape)
    outputs = StepOutputs()
    yield outputs
    if outputs.block():
        run.step_end(n)


def count_flops(function: Callable[..., object], *arguments: object) -> float:
    """Floating point operations of one call, by XLA's count of the graph before optimisation.

    Args:
        function: what to count; it is traced, not run.
        arguments: its arguments, or `jax.ShapeDtypeStruct`s.

    Returns:
        FLOPs over all devices that the call is partitioned over; 0 when the backend counts none.

    Source: as Google's ML Productivity Goodput, whose ideal time is that of the unoptimised HLO
    graph: fusion and rematerialisation do not change it (arXiv 2502.06982).
    """
    costs: Any = jax.jit(function).lower(*arguments).cost_analysis()
    return float((costs or {}).get("flops", 0.0))


class CheckpointManager:
    """An `orbax.checkpoint.CheckpointManager` whose saves and restores are recorded.

    Everything else of the manager is reached through it unchanged.

    Args:
        manager: the manager.
        run: where to record.
        label: what the step given to `save` means: `last`, the last step that was run (`save(n)`
            after step n), or `done`, the number of steps done.
    """

    def __init__(self, manager: Any, run: Run, *, label: Literal["last", "done"] = "last") -> None:
        self._manager = manager
        self._run = run
        self._done = int(label == "done")
        self._watches: list[threading.Thread] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._manager, name)

    def save(self, step: int, *args: Any, **kwargs: Any) -> bool:
        """Save as the manager does; a checkpoint is committed when its files are final.

        Args:
            step: label of the checkpoint.
            args: passed on.
            kwargs: passed on.

        Returns:
            Whether a save was made (or begun).
        """
        wall_ns, mono_ns = time_ns(), monotonic_ns()
        saved = bool(self._manager.save(step, *args, **kwargs))
        if saved:
            last_step = step - self._done
            blocked_ns = monotonic_ns() - mono_ns
            self._run.record_span("checkpoint", wall_ns, mono_ns, blocked_ns, step=last_step)
            if self._manager.is_saving_in_progress():
                begun = (step, wall_ns, mono_ns)
                watch = threading.Thread(target=self._watch, args=begun, daemon=True)
                self._watches = [*(w for w in self._watches if w.is_alive()), watch]
                watch.start()
            else:
                self._commit(step)
        return saved

    def restore(self, step: int | None = None, *args: Any, **kwargs: Any) -> Any:
        """Restore as the manager does, and record that training goes on after that step.

        Args:
            step: label of the checkpoint; None = the latest.
            args: passed on.
            kwargs: passed on.

        Returns:
            What the manager returns.
        """
        label = self._manager.latest_step() if step is None else step
        with self._run.span("restore"):
            restored = self._manager.restore(step, *args, **kwargs)
        self._run.resumed(int(label) + 1 - self._done, self._path(label))
        return restored

    def wait_until_finished(self) -> None:
        """Wait for a save that is under way: that blocks training, so it is checkpoint time."""
        if self._manager.is_saving_in_progress():
            with self._run.span("checkpoint"):
                self._manager.wait_until_finished()
        else:
            self._manager.wait_until_finished()
        for watch in self._watches:
            watch.join()

    def close(self) -> None:
        """Wait for a save that is under way, and close the manager."""
        self.wait_until_finished()
        self._manager.close()

    def _watch(self, step: int, wall_ns: int, mono_ns: int) -> None:
        """Record an asynchronous save when it is done."""
        poll_s = _POLL_FIRST_S
        while self._manager.is_saving_in_progress() and not self._path(step):
            sleep(poll_s)
            poll_s = min(1.5 * poll_s, _POLL_MOST_S)
        took_ns = monotonic_ns() - mono_ns
        self._run.record_span("checkpoint", wall_ns, mono_ns, took_ns, background=True)
        self._commit(step)

    def _commit(self, step: int) -> None:
        """Record a checkpoint as durable if its folder has its final name, which comes last."""
        path = self._path(step)
        if path and step >= self._done:
            self._run.committed(step - self._done, path)

    def _path(self, step: int) -> str:
        """The final folder of a checkpoint; empty when there is none."""
        from orbax.checkpoint.path import step as naming

        final = naming.checkpoint_steps_paths(self._manager.directory)
        found = {naming.step_from_checkpoint_name(path.name): str(path) for path in final}
        return found.get(step, "")
