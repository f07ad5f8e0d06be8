"""`goodput train record`: runs a command, records the job around it, relaunches it."""

import os
import re
import time
from collections.abc import Sequence
from pathlib import Path
from signal import SIGINT, SIGTERM
from typing import Final, Literal

from goodput.core.causes import classify
from goodput.core.errors import ConfigError
from goodput.training.measure.event_writer import say
from goodput.training.measure.identity import identify
from goodput.training.measure.launch_facts import (
    Earlier,
    Shape,
    earlier_launches,
    shape_of,
    slurm_times,
)
from goodput.training.measure.launched import Forwarder, Launched, adopting_orphans
from goodput.training.measure.recorder import open_run
from goodput.training.measure.run import Run

INJECT_FOLDER: Final = Path(__file__).parent / "inject"
"""Holds the sitecustomize that instruments Python workers."""
_NOT_FOUND, _NOT_EXECUTABLE = 127, 126  # as a shell
_FAULTY_RANK: Final = re.compile(
    r"Root Cause \(first observed failure\).{0,400}?\brank\s*:\s*(\d+) \(local_rank", re.DOTALL
)
"""torchrun's summary of a failed group (torch/distributed/elastic/multiprocessing/errors)."""


def record(
    command: Sequence[str],
    *,
    job: str | None = None,
    dir: str | os.PathLike[str] | None = None,  # noqa: A002 - as in goodput.start
    chips: int | None = None,
    relaunch: int = 0,
    relaunch_delay_s: float = 1.0,
    instrument: bool = True,
    detail: Literal["auto", "steps", "windows"] = "auto",
) -> int:
    """The exit code of a training command, with its launches recorded in the job's folder.

    Args:
        command: program and arguments, e.g. ["torchrun", "--nproc_per_node=8", "train.py"].
        job: name of the job; else $GOODPUT_JOB, else `run`.
        dir: folder of all jobs; else $GOODPUT_DIR, else ./goodput-runs.
        chips: chips the job holds; else from the options of torchrun or accelerate, from Slurm, 1.
        relaunch: how often the whole command is started again after a failure.
        relaunch_delay_s: pause before each relaunch, seconds.
        instrument: instrument Python processes that train, without a change to their script.
        detail: how the workers record (see `goodput.start`).

    Returns:
        The command's exit code, that of its last launch; 128 + n if signal n ended it; 127 if there
        is no such command, 126 if it cannot be executed.

    Raises:
        ConfigError: there is no command, or a number is negative.

    On several nodes, start one launcher per node; that of node 0 (--node_rank, or SLURM_NODEID)
    records. SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 are passed on to the command's
    process group; after one of the first three nothing is relaunched.
    """
    if not command:
        raise ConfigError("there is no command to run: give it after --")
    if relaunch < 0 or relaunch_delay_s < 0 or (chips is not None and chips < 1):
        raise ConfigError(
            f"relaunch={relaunch}, relaunch_delay_s={relaunch_delay_s}, chips={chips}: "
            "the first two are 0 or more, chips 1 or more"
        )
    identity = identify(job=job, directory=dir, rank=0, world=1, attempt="")
    shape = shape_of(command, os.environ)
    environ = _environ(identity.job, identity.folder.parent, instrument=instrument, detail=detail)
    launcher = _Launcher(command, environ, shape, relaunches=relaunch, delay_s=relaunch_delay_s)
    with Forwarder() as forwarder, adopting_orphans(active=relaunch > 0):
        if shape.node_rank > 0:
            return launcher.run_silently(forwarder)
        earlier = earlier_launches(identity.folder)
        run = open_run(identity, role="launcher")
        say(f"goodput: recording into {identity.folder}")
        _announce(run, chips or shape.chips or 1, earlier)
        code = launcher.run(forwarder, run, first_attempt=earlier.last_attempt + 1)
        if SIGTERM not in forwarder.received:  # a scheduler that took the nodes may start it again
            run.ended(_job_outcome(code, forwarder))
        run.close("completed" if code == 0 else "stopped" if forwarder.received else "failed")
    return code


class _Launcher:
    """Launches one command until it succeeds, is stopped, or has failed too often."""

    def __init__(
        self,
        command: Sequence[str],
        environ: dict[str, str],
        shape: Shape,
        *,
        relaunches: int,
        delay_s: float,
    ) -> None:
        self._command = command
        self._environ = environ
        self._shape = shape
        self._relaunches = relaunches
        self._delay_s = delay_s

    def run(self, forwarder: Forwarder, run: Run, *, first_attempt: int) -> int:
        """Launch and record; the exit code of the last launch."""
        code = 0
        for number in range(self._relaunches + 1):
            attempt = str(first_attempt + number)
            # One launcher per node: their counters may differ, so the ledger pairs by time instead.
            if self._shape.nodes == 1:
                self._environ["GOODPUT_ATTEMPT"] = attempt
            run.attempt_start(attempt, world=self._shape.chips)
            status, text = self._launch(forwarder)
            code = _exit_code(status)
            self._record_end(run, attempt, status, text, forwarder)
            if code in {0, _NOT_FOUND, _NOT_EXECUTABLE} or number == self._relaunches:
                break
            if not self._pause(forwarder, f"attempt {attempt} ended with exit code {code}", number):
                break
        return code

    def run_silently(self, forwarder: Forwarder) -> int:
        """Launch without recording: another node's launcher does."""
        code = 0
        for number in range(self._relaunches + 1):
            code = _exit_code(self._launch(forwarder)[0])
            if code == 0 or number == self._relaunches:
                break
            if not self._pause(forwarder, f"ended with exit code {code}", number):
                break
        return code

    def _launch(self, forwarder: Forwarder) -> tuple[int, str]:
        """One launch: its status (negative = signal) and the end of its stderr."""
        try:
            launched = Launched(self._command, self._environ, forwarder)
        except OSError as error:
            text = f"cannot run {self._command[0]!r}: {error.strerror}"
            say(f"goodput: {text}")
            return (_NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_EXECUTABLE), text
        status = launched.wait()
        if status != 0 and self._relaunches:
            launched.terminate_rest()
        return status, launched.evidence()

    def _record_end(
        self, run: Run, attempt: str, status: int, text: str, forwarder: Forwarder
    ) -> None:
        now_ns = time.time_ns()
        if status == 0:
            outcome = "stopped" if forwarder.received else "completed"
            run.attempt_end(attempt, outcome=outcome, exit_code=0)
            return
        number = -status if status < 0 else 0
        verdict = classify(exit_code=_exit_code(status), signal=number or None, text=text or None)
        rank = _FAULTY_RANK.search(text)
        run.attempt_end(
            attempt,
            outcome=_attempt_outcome(verdict.cause, forwarder),
            cause=verdict.cause,
            evidence=verdict.evidence,
            exit_code=_exit_code(status),
            signal=number,
            rank=int(rank[1]) if rank else -1,
            noticed_at_ns=now_ns,
        )

    def _pause(self, forwarder: Forwarder, what: str, number: int) -> bool:
        """Wait before a relaunch; False if somebody asked us to stop."""
        if not forwarder.received:
            say(f"goodput: {what}, relaunch {number + 1} of {self._relaunches}")
        until = time.monotonic() + self._delay_s
        # In slices: a signal handler cannot end a sleep.
        while not forwarder.received and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, 0.05))
        return not forwarder.received


def _announce(run: Run, chips: int, earlier: Earlier) -> None:
    """Record when the job was submitted and what it holds; Slurm knows the first better than we."""
    times = slurm_times(os.environ)
    submitted = times.submitted_at_ns if times is not None else 0
    if submitted not in earlier.submitted_at_ns:
        run.submitted(chips, at_ns=submitted or None)
        run.allocated(chips, at_ns=(times.started_at_ns or None) if times is not None else None)
    else:  # a second launcher inside one allocation: nothing was queued again
        run.allocated(chips)


def _environ(job: str, directory: Path, *, instrument: bool, detail: str) -> dict[str, str]:
    environ = dict(os.environ)
    environ["GOODPUT_JOB"] = job
    environ["GOODPUT_DIR"] = str(directory)
    environ.pop("GOODPUT_ATTEMPT", None)
    if detail != "auto":
        environ["GOODPUT_DETAIL"] = detail
    if instrument:
        before = environ.get("PYTHONPATH")
        environ["PYTHONPATH"] = (
            f"{INJECT_FOLDER}{os.pathsep}{before}" if before else str(INJECT_FOLDER)
        )
    return environ


def _exit_code(status: int) -> int:
    return 128 - status if status < 0 else status


def _attempt_outcome(cause: str, forwarder: Forwarder) -> str:
    if not forwarder.received:
        return "preempted" if cause == "preempted" else "failed"
    return "preempted" if cause == "preempted" else "stopped"


def _job_outcome(code: int, forwarder: Forwarder) -> str:
    if SIGINT in forwarder.received:
        return "cancelled"
    return "completed" if code == 0 else "failed"
