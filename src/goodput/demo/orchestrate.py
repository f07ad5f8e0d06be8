"""Runs the demo: starts the recorded job, injects its faults, tells how it goes, keeps a clock.

The job is what a user would type: `goodput train record --relaunch ... -- torchrun ... train.py`.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import msgspec

from goodput.core.errors import GoodputError, InputError, MissingExtraError
from goodput.demo.plan import JOB, WORLD, Folder, Plan
from goodput.demo.status import Snapshot, Struck
from goodput.demo.witness import Witness, read_marks
from goodput.training.faults import Injector
from goodput.training.faults.target import process_stat

LAUNCHES: Final = 4
"""Of torchrun: the first, one after each fault, and one to spare."""
LEAVE_S: Final = 45.0
"""After Ctrl-C: torchrun's 30 s for a stopped worker and some more."""

Watcher = Callable[[Snapshot], None]


class DemoFailedError(GoodputError):
    """The job did not come to its end; the message says where to look."""


def run(root: Path, *, plan: Plan | None = None, watcher: Watcher | None = None) -> Folder:
    """Train the demo's model through two faults and return the folder that holds the record.

    Args:
        root: a new or empty folder for the run.
        plan: sizes and faults; None = the defaults, about three minutes.
        watcher: called a few times a second with how it goes.

    Raises:
        MissingExtraError: torch is not installed.
        InputError: the folder is not empty, or this is not Linux.
        DemoFailedError: the job failed.
        KeyboardInterrupt: the user stopped it; the partial record is readable.
    """
    plan = plan or Plan()
    if find_spec("torch") is None:
        feature = "a real training run (torch: 0.9 GB as a CPU build, several GB with CUDA)"
        raise MissingExtraError(feature, extra="torch")
    if sys.platform != "linux":
        raise InputError(f"the demo injects faults, which needs Linux; this is {sys.platform}")
    if root.exists() and any(root.iterdir()):
        raise InputError(f"{root} is not empty: name a new folder")
    folder = Folder(root.absolute())
    for needed in (folder.root, folder.truth, folder.checkpoints):
        needed.mkdir(parents=True, exist_ok=True)
    folder.plan.write_bytes(msgspec.json.encode(plan))
    code = _Show(folder, plan, watcher or _nobody).play()
    if code:
        raise DemoFailedError(f"the job failed with exit code {code}: see {folder.log}")
    return folder


class _Show:
    """One run in progress."""

    def __init__(self, folder: Folder, plan: Plan, watcher: Watcher) -> None:
        self.folder, self.watcher = folder, watcher
        self.injector = Injector(plan.faults, folder.events, log=folder.faults, job=JOB)
        self.parents = _Parents(folder.truth)
        self.started_s = time.monotonic()
        self.restart_s = 0.0
        self.step_s = 0.0
        self.step = -1

    def play(self) -> int:
        """Run the job to its end and return its exit code."""
        with self.folder.log.open("wb") as log:
            job = subprocess.Popen(  # noqa: S603 - our own program
                _command(self.folder),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=_environment(),
                # Ctrl-C at the terminal is for this process, which then ends the job in order.
                start_new_session=True,
            )
            try:
                self._follow(job)
            except BaseException:
                _stop(job, self.injector)
                raise
            finally:
                self.parents.poll()
                self.parents.close()
                self.injector.close()
        return job.returncode

    def _follow(self, job: subprocess.Popen[bytes]) -> None:
        last_told_s = 0.0
        while job.poll() is None:
            pause_s = self.injector.poll()
            self.parents.poll()
            if time.monotonic() - last_told_s > 0.25:
                last_told_s = time.monotonic()
                self.watcher(self._snapshot())
            time.sleep(pause_s)
        self.injector.poll()
        self.watcher(self._snapshot())

    def _snapshot(self) -> Snapshot:
        watch, sent = self.injector.watch, self.injector.sent
        begun, done = watch.resumed.get(watch.attempt), watch.completed.get(watch.attempt)
        first = begun.next_step if begun else -1
        if begun and watch.launches:
            self.restart_s = (begun.t - watch.launches[-1].t) / 1e9
        if begun and done:
            self.step_s = (done.m - begun.m) / 1e9 / (done.n + 1 - first)
            self.step = done.n
        elif begun:
            self.step = first - 1
        return Snapshot(
            now_s=time.monotonic() - self.started_s,
            launches=len(watch.launches),
            step=self.step,
            resumed=first,
            step_s=self.step_s,
            restart_s=self.restart_s,
            loss=watch.losses[-1].value if watch.losses else None,
            faults=tuple(
                Struck(kind=s.kind, rank=s.rank, step=s.step, at_s=s.m / 1e9 - self.started_s)
                for s in sent
            ),
            fault_open=bool(sent) and sent[-1].attempt == watch.attempt,
        )


class _Parents:
    """Watches every torchrun from outside: when the kernel started it and when it was gone.

    Args:
        truth: folder of the witness files; workers name their parent there.
    """

    def __init__(self, truth: Path) -> None:
        self._truth = truth
        self._seen: set[Path] = set()
        self._living: dict[int, Witness] = {}

    def poll(self) -> None:
        """Look for new workers' parents and for parents that have gone."""
        for path in set(self._truth.glob("worker-*.log")) - self._seen:
            named = [mark.number for mark in read_marks(path) if mark.what == "parent"]
            if named:
                self._seen.add(path)
                self._meet(named[0])
        for pid in list(self._living):
            stat = process_stat(pid)
            if stat is None or stat.state == "Z":
                witness = self._living.pop(pid)
                witness.mark("exit")
                witness.close()

    def close(self) -> None:
        """Close the files; a parent that still lives gets no exit."""
        for witness in self._living.values():
            witness.close()
        self._living.clear()

    def _meet(self, pid: int) -> None:
        path = self._truth / f"torchrun-{pid}.log"
        stat = process_stat(pid)
        if path.exists() or stat is None:
            return
        suspended_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.monotonic_ns()
        start_ns = stat.started_at_ns - suspended_ns
        self._living[pid] = Witness(path)
        self._living[pid].mark("start", start_ns)


def _command(folder: Folder) -> list[str]:
    record = [sys.executable, "-m", "goodput", "train", "record"]
    record += ["--job", JOB, "--dir", str(folder.events)]
    record += ["--relaunch", str(LAUNCHES - 1), "--"]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    torchrun += ["--local-addr", "127.0.0.1", "--nproc-per-node", str(WORLD)]
    return [*record, *torchrun, "-m", "goodput.demo.train", str(folder.root)]


def _environment() -> dict[str, str]:
    """Return the environment of the job: one thread per process, and loopback only."""
    return {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "GLOO_SOCKET_IFNAME": "lo",
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
        "PYTHONUNBUFFERED": "1",
    }


def _stop(job: subprocess.Popen[bytes], injector: Injector) -> None:
    """End the job as Ctrl-C would, and by force if it does not go."""
    injector.wake()
    job.send_signal(signal.SIGINT)
    until = time.monotonic() + LEAVE_S
    while job.poll() is None and time.monotonic() < until:
        injector.poll()
        time.sleep(0.05)
    if job.poll() is None:
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()


def _nobody(_now: Snapshot) -> None:
    """Nobody watches."""
