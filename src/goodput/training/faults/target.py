"""Processes that a fault may hit, held by pidfd: a recycled pid or a stranger is never signalled.

Linux only: a process is known by its pid and start time in /proc, and signalled through its pidfd.
"""

import os
import select
import signal
import socket
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple

from goodput.core.errors import InputError
from goodput.core.events import Process
from goodput.training.measure.identity import boot_id

_PROC: Final = Path("/proc")
_TICK_NS: Final = 20_000_000
"""/proc counts starts in ticks of 10 ms."""
_START_TOLERANCE_NS: Final = 1_500_000_000
"""The kernel publishes its boot time in whole seconds; a pid comes round far more slowly."""


class ProcessStat(NamedTuple):
    """What /proc/PID/stat says of a live process."""

    parent: int
    group: int
    started_at_ns: int
    """Since boot, to the clock tick."""
    state: str
    """One letter: R, S, D, T (stopped), Z (gone, not yet collected)."""


class Victim:
    """A worker of the job, held so that its pid cannot come to mean another process.

    Build it with `hold`; close it when done.
    """

    def __init__(self, record: Process, descriptor: int) -> None:
        self.record = record
        self._descriptor = descriptor

    @property
    def gone(self) -> bool:
        """True once the process has exited, even if its parent has not collected it."""
        return bool(select.select([self._descriptor], [], [], 0)[0])

    def send(self, signal_number: int, *, scope: str = "process", pid: int = 0) -> tuple[int, ...]:
        """Send a signal, and return the pids that got it; empty if the process has gone.

        Args:
            signal_number: what to send.
            scope: `group` sends it to every member of the process's group.
            pid: send it to this descendant of the process instead.

        Raises:
            InputError: the process group holds processes that are not part of this worker.
        """
        own = self.record.pid
        if scope != "group" and pid in {0, own}:
            return (own,) if not self.gone and _send(self._descriptor, signal_number) else ()
        with ExitStack() as stack:
            descriptors = _hold_all([pid] if pid else _group_members(own), stack)
            # Looked at once all are held: from here on no pid can change its meaning.
            strangers = sorted(set(descriptors) - _descendants(own))
            if self.gone:
                return ()
            if strangers and not pid:
                raise InputError(
                    f"the process group of pid {own} (rank {self.record.rank}) holds processes "
                    f"that are no part of this worker: {strangers}; use scope process or job"
                )
            if strangers:
                return ()
            return tuple(p for p, fd in descriptors.items() if _send(fd, signal_number))

    def close(self) -> None:
        """Let the process go."""
        os.close(self._descriptor)


def hold(record: Process) -> Victim | None:
    """Return the live process that wrote a `process` record, or None if it is not here or has gone.

    Args:
        record: first line of an event file. Its boot id must be this kernel's, and its process must
            be of the age that the record says: a pid that was given away since is younger.

    Raises:
        InputError: this system has no pidfd (not Linux).
    """
    if sys.platform != "linux":
        raise InputError(f"fault injection needs Linux (pidfd and /proc); this is {sys.platform}")
    if record.boot != boot_id() or record.host not in {"", socket.gethostname()}:
        return None
    if record.pid <= 1 or record.pid == os.getpid():
        return None
    try:
        descriptor = os.pidfd_open(record.pid)
    except ProcessLookupError:
        return None
    stat = process_stat(record.pid)
    if stat is None or stat.state == "Z" or not _is_writer(record, stat):
        os.close(descriptor)
        return None
    return Victim(record, descriptor)


def process_stat(pid: int) -> ProcessStat | None:
    """Return what /proc says of a process, None if it does not exist."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    # The command name is in parentheses and may hold blanks and parentheses itself.
    fields = text[text.rindex(")") + 2 :].split()
    started_ns = int(fields[19]) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    return ProcessStat(int(fields[1]), int(fields[2]), started_ns, fields[0])


def _is_writer(record: Process, stat: ProcessStat) -> bool:
    """Return whether a process began when a record's writer did; wall clock steps play no part."""
    # /proc counts from boot through suspends, the monotonic clock without them.
    suspended_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.monotonic_ns()
    age_ns = record.m + suspended_ns - stat.started_at_ns
    if not record.started:
        return age_ns >= -_TICK_NS
    return abs(age_ns - (record.t - record.started)) <= _START_TOLERANCE_NS


def _hold_all(pids: list[int], stack: ExitStack) -> dict[int, int]:
    """Return a pidfd for each process that exists; the stack closes them."""
    held = {}
    for pid in pids:
        try:
            held[pid] = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        stack.callback(os.close, held[pid])
    return held


def _send(descriptor: int, signal_number: int) -> bool:
    try:
        signal.pidfd_send_signal(descriptor, signal_number)
    except ProcessLookupError:
        return False
    return True


def _all_processes() -> dict[int, ProcessStat]:
    found = {}
    for entry in _PROC.iterdir():
        if entry.name.isdigit() and (stat := process_stat(int(entry.name))) is not None:
            found[int(entry.name)] = stat
    return found


def _group_members(pid: int) -> list[int]:
    processes = _all_processes()
    if pid not in processes:
        return []
    group = processes[pid].group
    return [member for member, stat in processes.items() if stat.group == group]


def _descendants(pid: int) -> set[int]:
    """Return a process and all that came from it and still have it as an ancestor."""
    processes = _all_processes()
    family = {pid}
    while more := {p for p, stat in processes.items() if stat.parent in family} - family:
        family |= more
    return family
