"""How a recording process says goodbye: normal exit, exception, sys.exit with a code, SIGTERM.

Every hook chains to what was there, and a program that is hit by a signal ends as it would have
without us. SIGTERM has its own file (sigterm.py), because of the traps in it.
"""

import atexit
import os
import sys
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import NoReturn, Protocol

from goodput.training.measure.sigterm import SigtermWatch


class Departing(Protocol):
    """The run that wants to say goodbye."""

    def finish(self, outcome: str, *, error: str = "", signal: int = 0) -> None:
        """Write the last records."""

    def progress(self) -> tuple[int, int]:
        """A value that changes when anything was recorded since."""


class Farewell:
    """Hooks that call `run.finish` once when the process ends.

    Args:
        run: whose record to end.
        describe: outcome and first line for an exception.
    """

    def __init__(
        self, run: Departing, *, describe: Callable[[BaseException], tuple[str, str]]
    ) -> None:
        self._run = run
        self._describe = describe
        self._pid = os.getpid()
        self._installed = False
        self._sigterm = SigtermWatch(self._terminated)
        self._hook_before = sys.excepthook
        self._exit_before = sys.exit
        # Bound once, so that `is` tells whether the hook in place is still ours.
        self._hook, self._exit = self._on_exception, self._on_exit_call
        self._exit_status: object = None
        self._exit_progress: tuple[int, int] | None = None

    def install(self, *, sigterm: bool) -> None:
        """Put the hooks in place.

        Args:
            sigterm: that of SIGTERM too; else only when `watch_sigterm` is called.
        """
        self._installed = True
        self._hook_before, sys.excepthook = sys.excepthook, self._hook
        self._exit_before, sys.exit = sys.exit, self._exit
        atexit.register(self._at_exit)
        _at_worker_exit(self._at_worker_exit)
        if sigterm:
            self.watch_sigterm()

    def watch_sigterm(self) -> None:
        """Record SIGTERM as well: the process turned out to train."""
        self._sigterm.install()

    def uninstall(self) -> None:
        """Take back every hook that nobody has replaced or wrapped since."""
        self._installed = False
        if sys.excepthook is self._hook:
            sys.excepthook = self._hook_before
        if sys.exit is self._exit:
            sys.exit = self._exit_before
        atexit.unregister(self._at_exit)
        self._sigterm.uninstall()

    def before_fork(self) -> None:
        """Just before a fork, in the forking thread."""
        self._sigterm.before_fork()

    def after_fork_in_parent(self) -> None:
        """Just after a fork, in the same thread."""
        self._sigterm.after_fork_in_parent()

    def after_fork(self) -> None:
        """In a forked child: none of this is about it."""
        self._sigterm.after_fork()
        self.uninstall()

    def _on_exception(
        self,
        kind: type[BaseException],
        error: BaseException,
        trace: TracebackType | None,
    ) -> None:
        # At an interactive prompt an exception ends a line, not the process.
        if self._installed and not hasattr(sys, "ps1"):
            outcome, text = self._describe(error)
            self._run.finish(outcome, error=text)
        self._hook_before(kind, error, trace)

    def _on_exit_call(self, status: object = None, /) -> NoReturn:
        """sys.exit, noting the status: nothing else tells an atexit hook that it is not 0."""
        if self._installed:
            self._exit_status, self._exit_progress = status, self._run.progress()
        raise SystemExit(status)

    def _at_exit(self) -> None:
        if not self._installed or os.getpid() != self._pid:
            return
        # Set by the interpreter before it calls the exception hook, which others may have replaced.
        error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
        # A SystemExit that was caught is none: then the program went on recording.
        if error is None and self._exit_progress == self._run.progress():
            error = SystemExit(self._exit_status)
        if error is None and (code := _forked_exit_code()):
            error = SystemExit(code)
        outcome, text = ("completed", "") if error is None else self._describe(error)
        self._run.finish(outcome, error=text)

    def _at_worker_exit(self) -> None:
        """The end of a multiprocessing child, which catches its exceptions itself."""
        error = sys.exc_info()[1]
        if error is not None and self._installed:
            outcome, text = self._describe(error)
            self._run.finish(outcome, error=text)
        else:
            self._at_exit()

    def _terminated(self, signal: int) -> None:
        self._run.finish("stopped", signal=signal)


def _at_worker_exit(function: Callable[[], None]) -> None:
    """Call `function` at the end of this process if it is a child of multiprocessing.

    Such a child leaves by os._exit and runs no atexit hook.
    """
    process = sys.modules.get("multiprocessing.process")
    if process is not None and process.parent_process() is not None:
        from multiprocessing.util import Finalize

        Finalize(None, function, exitpriority=0)


def _forked_exit_code() -> int:
    """Exit code of a forked child of multiprocessing that runs its exit hooks (Python 3.13).

    By then its exception is printed and gone; the code is a local variable of the caller.
    """
    frame: FrameType | None = sys._getframe()  # noqa: SLF001 - there is no public way
    while frame is not None:
        where = (frame.f_globals.get("__name__"), frame.f_code.co_name)
        if where == ("multiprocessing.process", "_bootstrap"):
            return 0  # older Pythons: still inside, the exception is at hand
        if where == ("multiprocessing.popen_fork", "_launch"):
            return int(frame.f_locals.get("code") or 0)
        frame = frame.f_back
    return 0
