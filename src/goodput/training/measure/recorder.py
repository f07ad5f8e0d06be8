"""`goodput.start`: the one Run of this process, shared by user code and hooks, safe across fork.

The record's methods are in run.py, the file in event_writer.py, the ways to end in farewell.py.
"""

import os
import threading
from pathlib import Path
from typing import Literal

from goodput import __version__
from goodput.core.errors import ConfigError
from goodput.training.measure.event_writer import say
from goodput.training.measure.farewell import Farewell
from goodput.training.measure.identity import Identity, identify
from goodput.training.measure.run import Detail, Run, describe

__all__ = ["Run", "current", "open_run", "start", "start_held"]


class _Process:
    """What this process records: one place, so that a forked child can let go of all of it."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.run: Run | None = None
        self.farewell: Farewell | None = None
        self.open: list[Run] = []


_process = _Process()


def start(
    job: str | None = None,
    *,
    dir: str | os.PathLike[str] | None = None,  # noqa: A002 - the word that users look for
    rank: int | None = None,
    world: int | None = None,
    attempt: str | None = None,
    chips: int | None = None,
    detail: Literal["auto", "steps", "windows"] = "auto",
    chip: str = "",
    role: Literal["worker", "launcher"] = "worker",
) -> Run:
    """The Run of this process: a new one, or the open one if it agrees with the arguments.

    Args:
        job: name of the job; else $GOODPUT_JOB, else `run`.
        dir: folder of all jobs; else $GOODPUT_DIR, else ./goodput-runs.
        rank: 0-based rank; else from RANK, SLURM_PROCID or OMPI_COMM_WORLD_RANK.
        world: number of ranks; else from the matching variables.
        attempt: key of this launch; empty = the ledger finds out.
        chips: chips that the job holds, recorded by rank 0; default: the ledger takes one per rank.
        detail: `steps` writes every step, `windows` a summary for each 10 s of steps and outliers
            in full; `auto` is `steps` for rank 0, else `windows`; $GOODPUT_DETAIL overrides `auto`.
        chip: name in the hardware table.
        role: `launcher` for a program that starts and watches workers.

    Returns:
        The Run. If its file cannot be written, it counts what is lost and tries again.

    Raises:
        ConfigError: `detail` is not one of the three words.
    """
    if detail not in {"auto", "steps", "windows"}:
        raise ConfigError(f"detail={detail!r}: it is auto, steps or windows")
    identity = identify(job=job, directory=dir, rank=rank, world=world, attempt=attempt)
    with _process.lock:
        run = _process.run
        if run is not None and run.enabled and _agrees(run, identity, role):
            run.release()
            return run
        run = open_run(identity, detail=_detail(detail, identity), role=role, chip=chip)
        _take_over(run)
    if chips is not None and identity.rank == 0:
        run.allocated(chips)
    return run


def start_held() -> Run:
    """The open Run of this process, else one that makes no file before a record shows training.

    For hooks that are put into every Python process of a job: most of them never train.
    """
    with _process.lock:
        run = _process.run
        if run is None or not run.enabled:
            identity = identify()
            run = open_run(identity, detail=_detail("auto", identity), held=True)
            _take_over(run, held=True)
        return run


def current() -> Run | None:
    """The Run of this process, open or not; None if `start` was never called.

    A forked child gets its parent's, disabled, until it calls `start` itself.
    """
    return _process.run


def open_run(
    identity: Identity,
    *,
    detail: Detail = "steps",
    role: str = "worker",
    chip: str = "",
    held: bool = False,
) -> Run:
    """A Run of its own, not `current` and without exit hooks: what a launcher writes into.

    Args:
        identity: who records.
        detail: `steps` or `windows`.
        role: `worker` or `launcher`.
        chip: name in the hardware table.
        held: make no file before a record shows that this process trains.
    """
    name = f"events-r{identity.rank}-{identity.host}-{identity.pid}-{os.urandom(4).hex()}.jsonl"
    run = Run(
        identity,
        path=Path(identity.folder, name),
        detail=detail,
        role=role,
        chip=chip,
        writer=f"goodput-ml {__version__}",
        held=held,
    )
    _process.open = [*(other for other in _process.open if other.enabled), run]
    return run


def _take_over(run: Run, *, held: bool = False) -> None:
    """Make `run` the one of this process."""
    if _process.run is not None:
        _process.run.close()
    _process.run = run
    _process.farewell = Farewell(run, describe=describe)
    # What SIGTERM means is left alone in a process that only might train.
    _process.farewell.install(sigterm=not held)
    run.when_released(_process.farewell.watch_sigterm)
    run.on_finish = _process.farewell.uninstall


def _agrees(run: Run, identity: Identity, role: str) -> bool:
    """True if the open run is what `start` was asked for."""
    mine = run.identity
    return run.role == role and (mine.folder, mine.rank, mine.world, mine.attempt) == (
        identity.folder,
        identity.rank,
        identity.world,
        identity.attempt,
    )


def _detail(asked: str, identity: Identity) -> Detail:
    chosen = os.environ.get("GOODPUT_DETAIL", "auto") if asked == "auto" else asked
    if chosen not in {"auto", "steps", "windows"}:
        say(f"goodput: GOODPUT_DETAIL={chosen!r} is not auto, steps or windows; auto is used")
        chosen = "auto"
    if chosen == "auto":
        chosen = "steps" if identity.rank == 0 else "windows"
    return "steps" if chosen == "steps" else "windows"


def _before_fork() -> None:
    if _process.farewell is not None:
        _process.farewell.before_fork()


def _after_fork_in_parent() -> None:
    if _process.farewell is not None:
        _process.farewell.after_fork_in_parent()


def _after_fork_in_child() -> None:
    """Let go of the parent's record: the child must not write as the parent."""
    _process.lock = threading.RLock()  # another thread of the parent may have held it
    for run in _process.open:
        run.disable()
    _process.open = []
    if _process.farewell is not None:
        _process.farewell.after_fork()
        _process.farewell = None


os.register_at_fork(
    before=_before_fork,
    after_in_parent=_after_fork_in_parent,
    after_in_child=_after_fork_in_child,
)
