"""Records SIGTERM and then lets it do what it would have done: end the process at once.

A Python signal handler runs only between two bytecodes of the main thread. A rank that waits in a
collective would not die of SIGTERM any more, and torchrun would need its 30 s time-out and SIGKILL.
So a daemon thread, woken by the interpreter's C handler, acts when the main thread does not.
docs/adr/0003-recorder-writes.md has the whole story.
"""

import contextlib
import fcntl
import os
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Final

_GRACE_S: Final = 0.1
"""The main thread's time to run its handler before the watcher acts (assumed)."""
_PATIENCE_S: Final = 5.0
"""How long the last records may take, on a disk that hangs, before the process ends anyway."""
_DESCRIPTOR_FLOOR: Final = 256
"""As in event_writer.py: above the numbers that a program's own files get."""


class SigtermWatch:
    """Calls `record` on SIGTERM, restores the default action and sends the signal again.

    It steps aside (nothing is installed) where a handler or a wake-up descriptor is in place, in a
    thread that is not the main one, and for process 1 (the kernel ignores its SIGTERM without a
    handler). A later handler that calls ours keeps its own meaning: ours returns at once.

    Args:
        record: writes the last records; gets the signal's number.
    """

    def __init__(self, record: Callable[[int], None]) -> None:
        self._record = record
        self._handler = self._on_sigterm
        self._reader = self._writer = -1
        self._dying = False
        self._masks: dict[int, set[int]] = {}

    def install(self) -> None:
        """Install the handler and start the watcher, if nobody else cares for SIGTERM."""
        if (
            threading.current_thread() is not threading.main_thread()
            or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
            or os.getpid() == 1
        ):
            return
        reader, writer = (_high(end) for end in os.pipe())
        os.set_blocking(writer, False)
        before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        if before != -1:
            signal.set_wakeup_fd(before, warn_on_full_buffer=False)
            os.close(reader)
            os.close(writer)
            return
        self._reader, self._writer = reader, writer
        signal.signal(signal.SIGTERM, self._handler)
        threading.Thread(
            target=self._watch, args=(reader,), name="goodput-sigterm", daemon=True
        ).start()

    def uninstall(self) -> None:
        """Restore the default action, unless somebody has installed another handler."""
        if self._writer < 0 or threading.current_thread() is not threading.main_thread():
            return
        if signal.getsignal(signal.SIGTERM) is self._handler:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        current = signal.set_wakeup_fd(-1)
        if current not in {-1, self._writer}:
            signal.set_wakeup_fd(current)
        writer, self._writer, self._reader = self._writer, -1, -1
        with contextlib.suppress(OSError):
            os.close(writer)  # the watcher reads the end of the pipe and returns

    def before_fork(self) -> None:
        """Hold SIGTERM back around a fork.

        Between the fork and `after_fork` the child has our handler and our pipe: a SIGTERM for the
        child would be lost there, and would look like one for the parent.
        """
        if self._writer >= 0:
            mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
            self._masks[threading.get_ident()] = mask

    def after_fork_in_parent(self) -> None:
        """Let SIGTERM through again."""
        mask = self._masks.pop(threading.get_ident(), None)
        if mask is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def after_fork(self) -> None:
        """In the child: default action, own mask, no part in the parent's pipe."""
        reader = self._reader
        self.uninstall()
        if reader >= 0:
            with contextlib.suppress(OSError):
                os.close(reader)  # the watcher, who would do it, does not exist here
        self.after_fork_in_parent()

    def _on_sigterm(self, number: int, _frame: FrameType | None) -> None:
        if signal.getsignal(signal.SIGTERM) is not self._handler:
            return
        self._dying = True
        self._record(number)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)

    def _watch(self, reader: int) -> None:
        """Wait for a SIGTERM that the main thread does not handle (it is inside C code)."""
        with contextlib.suppress(OSError):
            while numbers := os.read(reader, 64):
                if signal.SIGTERM in numbers:
                    self._act()
            os.close(reader)  # nobody writes to it any more: `uninstall`

    def _act(self) -> None:
        """End the process, unless the main thread does or somebody else decides about SIGTERM."""
        time.sleep(_GRACE_S)
        if signal.getsignal(signal.SIGTERM) is not self._handler:
            return
        if self._dying:
            time.sleep(_PATIENCE_S)
        else:
            self._record(signal.SIGTERM)
        _die()


def _die() -> None:
    """End by SIGTERM from a thread that is not the main one."""
    import ctypes

    # signal.signal works in the main thread only; the C function has no such rule.
    libc = ctypes.CDLL(None)
    libc.signal.argtypes = (ctypes.c_int, ctypes.c_void_p)
    libc.signal.restype = ctypes.c_void_p
    libc.signal(signal.SIGTERM, None)  # SIG_DFL is the null pointer
    os.kill(os.getpid(), signal.SIGTERM)


def _high(descriptor: int) -> int:
    """The same pipe end above the usual descriptors."""
    try:
        high = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _DESCRIPTOR_FLOOR)
    except OSError:  # a low limit on open files
        return descriptor
    os.close(descriptor)
    return high
