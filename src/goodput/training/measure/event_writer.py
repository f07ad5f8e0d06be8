"""One append-only file of one process: each line is one write, and no failure reaches the caller.

Why os.write and nothing in between: docs/adr/0003-recorder-writes.md. What is in the lines is the
business of recorder.py; reading them back is that of readers/.
"""

import contextlib
import errno
import fcntl
import os
import threading
from collections.abc import Callable
from os import write as _write
from pathlib import Path
from time import monotonic_ns
from typing import Final

_CHECK_EVERY_NS: Final = 1_000_000_000
"""How often a healthy file is checked for having been deleted under us (assumed: 1 s)."""
_RETRY_FIRST_NS: Final = 100_000_000
_RETRY_MOST_NS: Final = 5_000_000_000
"""A broken file is tried again after 0.1 s, then at doubling intervals up to 5 s (assumed)."""
_DESCRIPTOR_FLOOR: Final = 256
"""Our descriptor is kept above this: if a program closes all descriptors and opens its own files,
those get the lowest numbers, and a record can never land in one of them."""
_CLOSE_PATIENCE_S: Final = 2.0
_SIGNS_OF_TRAINING: Final = (b'{"k":"step"', b'{"k":"resumed"', b'{"k":"committed"')
_HELD_MOST: Final = 10_000
_NEVER_NS: Final = 1 << 63
_TAIL_CHUNK: Final = 1 << 20


class EventWriter:
    """Appends whole lines to one file and never raises.

    Args:
        path: the file; its folder is created, also again when somebody deleted it.
        header: makes the first line of the file, with the clocks of that moment.
        dropped: makes the line that says how many records were lost, and why.
        held: keep the lines in memory, and make no file, until a `step`, `resumed` or `committed`
            record shows that this process trains (or `release` is called).
        clock: monotonic clock, ns (tests inject one).
    """

    __slots__ = (
        "_busy",
        "_clock",
        "_descriptor",
        "_disabled",
        "_dropped_line",
        "_header",
        "_header_done",
        "_held",
        "_lock",
        "_nested",
        "_pending",
        "_reason",
        "_retry_at",
        "_retry_ns",
        "_size",
        "_torn",
        "_warned",
        "check_at",
        "dropped",
        "fd",
        "on_release",
        "path",
    )

    def __init__(
        self,
        path: Path,
        *,
        header: Callable[[], bytes],
        dropped: Callable[[int, str], bytes],
        held: bool = False,
        clock: Callable[[], int] = monotonic_ns,
    ) -> None:
        self.path = path
        self.fd = -1
        """Where records go; -1 sends each of them to the slow path."""
        self.check_at = _NEVER_NS
        """Monotonic time after which a writer should call `check`."""
        self.dropped = 0
        """Records lost so far."""
        self.on_release: Callable[[], None] | None = None
        """Called when a held file is made."""
        self._header = header
        self._dropped_line = dropped
        self._clock = clock
        self._descriptor = -1
        self._disabled = False
        self._header_done = False
        self._torn = False
        self._pending = 0
        self._reason = ""
        self._retry_at = 0
        self._retry_ns = _RETRY_FIRST_NS
        self._size = 0
        self._warned = False
        self._busy = False
        self._nested = 0
        # Reentrant, because a signal handler may record while this very thread is in the slow path.
        self._lock = threading.RLock()
        self._held: list[bytes] | None = [header()] if held else None
        if not held:
            with self._lock:
                self._recover()

    @property
    def disabled(self) -> bool:
        """True after `close` and in a forked child: records are ignored, not counted as lost."""
        return self._disabled

    def append(self, line: bytes, at_ns: int) -> None:
        """Write one line, or count it as dropped; `at_ns` is the monotonic clock of the record."""
        try:
            done = _write(self.fd, line)
        except OSError as error:
            self.failed(line, error)
        else:
            if done != len(line):
                self.torn(done)
        if at_ns > self.check_at:
            self.check()

    def failed(self, line: bytes, error: OSError) -> None:
        """A write of `line` raised: put the line into a file that works, or count it."""
        if self._disabled:
            return
        with self._lock:
            if self._busy:  # a signal handler interrupted this thread in the slow path
                self._nested += 1
                return
            self._busy = True
            try:
                if self._held is not None:
                    self._hold(line)
                    return
                if self.fd >= 0:
                    self._break(error)
                if self._clock() >= self._retry_at and self._recover() and self._put(line):
                    return
                self._lost(1)
            finally:
                self._busy = False

    def release(self) -> None:
        """Make the file and write what was held back; nothing if nothing is."""
        with self._lock:
            if self._held is None or self._disabled:
                return
            (first, *lines), self._held = self._held, None
            self._header = lambda: first
            self._recover()
        for line in lines:
            self.append(line, 0)
        if self.on_release is not None:
            self.on_release()

    def torn(self, done: int) -> None:
        """A write stopped short (disk full in mid-line): end the torn line before the next record.

        Args:
            done: bytes that did arrive, 0 or more.
        """
        with self._lock:
            self._torn = self._torn or done > 0
            self._break(OSError("the disk took only a part of a line"))
            self._lost(1)

    def refuse(self, error: Exception) -> None:
        """Count a record that could not be built (a value of a wrong type); the file is fine."""
        if self._disabled:
            return
        with self._lock:
            self._reason = f"{type(error).__name__}: {error}"
            self._lost(1)

    def check(self) -> None:
        """Notice a file that was deleted under us, and write what is pending."""
        with self._lock:
            if self._disabled or self._busy or self.fd < 0:
                return
            self._busy = True
            try:
                if self._deleted():
                    self._recover()
                elif self._pending:
                    self._put_dropped()
                self.check_at = self._clock() + _CHECK_EVERY_NS
            finally:
                self._busy = False

    def close(self, last: bytes = b"") -> None:
        """Write what is pending and the last line, say on stderr what was lost, ignore the rest.

        Args:
            last: the last line of the file, if any; tried even where a retry would not be due.
        """
        # Not for ever: a thread may be stuck in a write, and the process is about to end.
        if self._disabled or not self._lock.acquire(timeout=_CLOSE_PATIENCE_S):
            return
        try:
            self._busy = True
            if self._held is not None:
                self.disable()
                return
            if self.fd < 0 or self._deleted():
                self._recover()
            elif self._pending or self._nested:
                self._put_dropped()
            if last and (self.fd < 0 or not self._put(last)):
                self._lost(1)
            self.disable()
        finally:
            self._busy = False
            self._lock.release()
        if self.dropped:
            say(f"goodput: {self.dropped} record(s) were lost: {self._reason}, {self.path}")

    def size_bytes(self) -> int:
        """Size of the file now; 0 when there is none."""
        try:
            return os.fstat(self._descriptor).st_size
        except OSError:
            return 0

    def disable(self) -> None:
        """Ignore all later records; what a forked child does with its parent's file."""
        self._disabled = True
        self.fd = -1
        self.check_at = _NEVER_NS
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def _hold(self, line: bytes) -> None:
        """Keep a line until it is known whether this process trains."""
        if self._held is None:
            return
        self._held.append(line)
        if line.startswith(_SIGNS_OF_TRAINING) or len(self._held) > _HELD_MOST:
            self._busy = False  # what follows is ordinary writing
            self.release()

    def _break(self, error: OSError) -> None:
        """Send all records to the slow path until a retry works."""
        self.fd = -1
        self.check_at = _NEVER_NS
        if error.errno == errno.EBADF:
            self._descriptor = -1  # closed by somebody else: the number is not ours any more
        self._reason = error.strerror or str(error)
        self._retry_at = self._clock() + self._retry_ns
        self._retry_ns = min(2 * self._retry_ns, _RETRY_MOST_NS)

    def _recover(self) -> bool:
        """Open the file if needed and write what must come before the next record."""
        try:
            if self._descriptor < 0:
                self._descriptor = _open(self.path)
        except OSError as error:
            self._break(error)
            return False
        if not (self._header_done or self._put_header()):
            return False
        if (self._pending or self._nested) and not self._put_dropped():
            return False
        self._retry_ns = _RETRY_FIRST_NS
        self._size = self.size_bytes()
        self.check_at = self._clock() + _CHECK_EVERY_NS
        self.fd = self._descriptor  # from here on, other threads write past this lock
        return True

    def _put_header(self) -> bool:
        """Write the first line; a torn one is taken back, since readers trust a file by it."""
        self._header_done = self._put(self._header())
        if self._torn:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, 0)
                self._torn = False
        return self._header_done

    def _put_dropped(self) -> bool:
        self.dropped += self._nested
        self._pending += self._nested
        self._nested = 0
        if self._put(self._dropped_line(self._pending, self._reason)):
            self._pending = 0
            return True
        return False

    def _put(self, line: bytes) -> bool:
        """Write one line in the slow path, after ending a torn one."""
        whole = b"\n" + line if self._torn else line
        try:
            done = _write(self._descriptor, whole)
        except OSError as error:
            self._break(error)
            return False
        if done != len(whole):
            self._torn = self._torn or done > 0
            self._break(OSError("the disk took only a part of a line"))
            return False
        self._torn = False
        return True

    def _deleted(self) -> bool:
        """True if the file has no name any more; counts what went into it since the last look."""
        try:
            status = os.fstat(self._descriptor)
            if status.st_nlink > 0:
                self._size = status.st_size
                return False
            lost = _lines_after(self._descriptor, self._size)
            os.close(self._descriptor)
        except OSError:
            lost = 0
        self._descriptor = self.fd = -1
        self._header_done = self._torn = False
        self._size = 0
        self._reason = "the file was deleted"
        self._lost(lost)
        return True

    def _lost(self, count: int) -> None:
        self.dropped += count
        self._pending += count
        if count and not self._warned:
            self._warned = True
            say(
                f"goodput: {self.dropped} record(s) lost, {self.path}: {self._reason}; "
                "training goes on, later losses are counted in the file"
            )


def _open(path: Path) -> int:
    """Open for appending (and reading, to count what was lost) above the usual descriptors."""
    path.parent.mkdir(parents=True, exist_ok=True)
    low = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        high = fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, _DESCRIPTOR_FLOOR)
    except OSError:  # a low limit on open files
        return low
    os.close(low)
    return high


def _lines_after(descriptor: int, start: int) -> int:
    """Lines in the file behind byte `start`."""
    lines = 0
    while chunk := os.pread(descriptor, _TAIL_CHUNK, start):
        lines += chunk.count(b"\n")
        start += len(chunk)
    return lines


def say(text: str) -> None:
    """One line on stderr, past Python's buffers: those may be in use by the code we interrupted."""
    with contextlib.suppress(OSError):
        _write(2, text.encode(errors="replace") + b"\n")
