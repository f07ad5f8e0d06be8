"""One launch of a command in its own process group: stderr passed through, signals passed on.

What the launch means for the job is launch.py's business.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Final, Self

EVIDENCE_BYTES: Final = 64 << 10
"""How much of the end of stderr is kept to find the cause in."""
_PUMP_PATIENCE_S: Final = 1.0
"""How long stderr is waited for after the command's end (a daemon it left may hold it open)."""
_TERMINATE_PATIENCE_S: Final = 5.0
_PR_SET_CHILD_SUBREAPER: Final = 36  # linux/prctl.h
_PASSED_ON: Final = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)


class Forwarder:
    """Passes the signals that this process gets on to the group of the running command.

    Works in the main thread only; elsewhere nothing is installed. Use it in a `with`.
    """

    def __init__(self) -> None:
        self.received: list[int] = []
        """SIGINT, SIGTERM and SIGHUP so far: somebody wants the job to stop."""
        self.group = 0
        """Process group of the running command; 0 = none."""
        self._before: dict[signal.Signals, signal._HANDLER] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in _PASSED_ON:
                self._before[number] = signal.signal(number, self._pass_on)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _pass_on(self, number: int, _frame: FrameType | None) -> None:
        if number in {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}:
            self.received.append(number)
        if self.group:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.group, number)


class Launched:
    """A running command.

    Args:
        command: program and arguments.
        environ: its environment.
        forwarder: gets the command's process group while it runs.

    Raises:
        OSError: the program cannot be started.
    """

    def __init__(
        self, command: Sequence[str], environ: Mapping[str, str], forwarder: Forwarder
    ) -> None:
        # Its own group cannot read the terminal: an end of input is clearer than a stopped process.
        stdin = subprocess.DEVNULL if os.isatty(0) else None
        self._others = _children()  # the caller's own, none of our business
        self._process = subprocess.Popen(  # noqa: S603 - the command is the user's own
            list(command), env=dict(environ), process_group=0, stdin=stdin, stderr=subprocess.PIPE
        )
        self._forwarder = forwarder
        self._tail: deque[bytes] = deque()
        forwarder.group = self._process.pid
        self._pump = threading.Thread(target=self._copy_stderr, name="goodput-stderr", daemon=True)
        self._pump.start()

    def wait(self) -> int:
        """The command's exit status; negative = the signal that ended it."""
        status = self._process.wait()
        self._pump.join(_PUMP_PATIENCE_S)
        self._forwarder.group = 0
        return status

    def evidence(self) -> str:
        """The last 64 KiB of its stderr."""
        return b"".join(self._tail)[-EVIDENCE_BYTES:].decode(errors="replace")

    def terminate_rest(self) -> None:
        """End what the command left behind: its group, and orphans that came to us."""
        group = self._process.pid
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(group, number)
            for orphan in _children() - self._others:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(orphan, number)
            until = time.monotonic() + _TERMINATE_PATIENCE_S
            while time.monotonic() < until:
                orphans = {pid for pid in _children() - self._others if not _reaped(pid)}
                if not orphans and _group_gone(group):
                    return
                time.sleep(0.02)

    def _copy_stderr(self) -> None:
        pipe = self._process.stderr
        if pipe is None:
            return
        kept = 0
        while chunk := os.read(pipe.fileno(), EVIDENCE_BYTES):
            _write_all(2, chunk)
            self._tail.append(chunk)
            kept += len(chunk)
            while kept - len(self._tail[0]) >= EVIDENCE_BYTES:
                kept -= len(self._tail.popleft())
        pipe.close()


@contextlib.contextmanager
def adopting_orphans(*, active: bool) -> Generator[None]:
    """Be the parent of orphaned descendants, so that `terminate_rest` finds them (Linux only).

    torchrun gives each worker a session of its own: if the agent dies, nothing else leads there.
    """
    if not active or sys.platform != "linux":
        yield
        return
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def _children() -> set[int]:
    """Processes whose parent is this one, dead ones included."""
    found: set[int] = set()
    for task in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found.update(int(pid) for pid in task.read_text(encoding="ascii").split())
    return found


def _reaped(pid: int) -> bool:
    """True if this child is dead; its entry in the process table is gone then."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True


def _group_gone(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return True
    return False


def _write_all(descriptor: int, data: bytes) -> None:
    """Write everything; if nobody reads any more, the command must not be blocked by it."""
    with contextlib.suppress(OSError):
        while data:
            data = data[os.write(descriptor, data) :]
