"""Decides which signal is due: observations of a job in, signals out; no clock, no process.

The shell that watches and sends is inject.py; the same observations always give the same signals.
"""

import signal
from typing import Final, Literal

import msgspec

from goodput.training.faults.schedule import Fault, FaultSchedule, Kind

CYCLE_S: Final = 0.1
"""Period of a `slow` fault's duty cycle, assumed: below a usual step time."""

_FIRST_SIGNAL: Final[dict[Kind, int]] = {
    "kill": signal.SIGKILL,
    "segfault": signal.SIGSEGV,
    "terminate": signal.SIGTERM,
    "hang": signal.SIGSTOP,
    "slow": signal.SIGSTOP,
}


class Worker(msgspec.Struct, frozen=True):
    """A worker process of the running attempt, alive when it was looked at."""

    rank: int
    pid: int
    attempt: str = ""


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """What the shell sees at one instant. Seconds are of one monotonic clock."""

    now_s: float
    launched_s: float | None = None
    """The job's first sign of life; None = not yet."""
    first_step_s: float | None = None
    step: int = -1
    """Highest step that a worker of the running attempt has begun; -1 = none."""
    alive: tuple[Worker, ...] = ()


class Instruction(msgspec.Struct, frozen=True):
    """Send one signal because of fault number `fault` of the schedule."""

    fault: int
    signal: int
    workers: tuple[Worker, ...]
    scope: Literal["process", "group", "job"]
    pid: int
    """0 = the workers themselves; else a process that must belong to one of them."""
    due_s: float
    """When it fell due; it is sent later by the shell's reaction time."""


class _Course(msgspec.Struct):
    """How far one fault has come."""

    fault: Fault
    state: Literal["waiting", "running", "done"] = "waiting"
    due_s: float | None = None
    began_s: float = 0.0
    victims: tuple[Worker, ...] = ()
    stopped: bool = False
    signals: int = 0


class FaultMachine:
    """Turns a schedule and observations into signals.

    Args:
        schedule: the faults.
    """

    def __init__(self, schedule: FaultSchedule) -> None:
        self._origin = schedule.origin
        self._courses = [_Course(fault=fault) for fault in schedule.faults]

    def observe(self, seen: Observation) -> tuple[Instruction, ...]:
        """Return the signals that are due now, in the order of the schedule."""
        due = (self._advance(number, seen) for number in range(len(self._courses)))
        return tuple(instruction for instruction in due if instruction is not None)

    def refused(self, instruction: Instruction, *, final: bool) -> None:
        """Take note that nobody got a signal.

        Args:
            instruction: the one that failed.
            final: it would fail again; else a fault that has not begun is due once more.
        """
        course = self._courses[instruction.fault]
        again = course.signals == 1 and not final
        course.state = "waiting" if again else "done"
        course.stopped, course.signals, course.victims = False, 0, ()

    def release(self) -> tuple[Instruction, ...]:
        """Return the SIGCONTs that temporary faults still owe: the injector is leaving early."""
        owed = []
        for number, course in enumerate(self._courses):
            if course.state == "running" and course.stopped:
                owed.append(self._order(number, signal.SIGCONT, course.began_s))
            if course.state == "running":
                course.state = "done"
        return tuple(owed)

    @property
    def waiting(self) -> tuple[int, ...]:
        """Numbers of the faults that have not happened yet."""
        return tuple(i for i, course in enumerate(self._courses) if course.state == "waiting")

    @property
    def finished(self) -> bool:
        """True when no signal will come any more."""
        return all(course.state == "done" for course in self._courses)

    def next_due_s(self, now_s: float) -> float | None:
        """Return the next known instant of a signal, after now; None = it depends on the job."""
        known = []
        for course in self._courses:
            if course.state == "waiting" and course.due_s is not None:
                known.append(course.due_s)
            elif course.state == "running":
                known.append(_next_change_s(course, now_s))
        return min((due_s for due_s in known if due_s > now_s), default=None)

    def _advance(self, number: int, seen: Observation) -> Instruction | None:
        course = self._courses[number]
        if course.state == "waiting":
            return self._begin(number, seen)
        if course.state == "running":
            return self._continue(number, seen)
        return None

    def _begin(self, number: int, seen: Observation) -> Instruction | None:
        course = self._courses[number]
        if course.due_s is None:
            course.due_s = self._due_s(course.fault, seen)
        if course.due_s is None or seen.now_s < course.due_s:
            return None
        course.victims = _victims(course.fault, seen.alive)
        if not course.victims:
            return None
        course.began_s = seen.now_s
        course.state = "running" if course.fault.for_s else "done"
        course.stopped = course.fault.kind in {"hang", "slow"}
        return self._order(number, _FIRST_SIGNAL[course.fault.kind], course.due_s)

    def _continue(self, number: int, seen: Observation) -> Instruction | None:
        course = self._courses[number]
        if not set(course.victims) & set(seen.alive):
            course.state = "done"
            return None
        over = seen.now_s >= course.began_s + course.fault.for_s
        if over:
            course.state = "done"
        want_stopped = not over and _stopped_at(course, seen.now_s)
        if want_stopped == course.stopped:
            return None
        course.stopped = want_stopped
        return self._order(number, signal.SIGSTOP if want_stopped else signal.SIGCONT, seen.now_s)

    def _due_s(self, fault: Fault, seen: Observation) -> float | None:
        if fault.at_step is not None:
            return seen.now_s + fault.after_s if seen.step >= fault.at_step else None
        origin_s = seen.launched_s if self._origin == "launch" else seen.first_step_s
        assert fault.at_s is not None
        return None if origin_s is None else origin_s + fault.at_s + fault.after_s

    def _order(self, number: int, signal_number: int, due_s: float) -> Instruction:
        course = self._courses[number]
        course.signals += 1
        return Instruction(
            fault=number,
            signal=signal_number,
            workers=course.victims,
            scope=course.fault.scope,
            pid=course.fault.pid,
            due_s=due_s,
        )


def _victims(fault: Fault, alive: tuple[Worker, ...]) -> tuple[Worker, ...]:
    if fault.scope == "job" or fault.pid:
        return alive
    return tuple(worker for worker in alive if worker.rank == fault.rank)


def _stopped_at(course: _Course, now_s: float) -> bool:
    """Return whether the victim stands still now: always in a hang, part of each cycle if slow."""
    if course.fault.kind == "hang":
        return True
    return (now_s - course.began_s) % CYCLE_S < _stop_s(course.fault)


def _stop_s(fault: Fault) -> float:
    # Work runs for 1/slowdown of the time.
    return CYCLE_S * (1 - 1 / fault.slowdown)


def _next_change_s(course: _Course, now_s: float) -> float:
    end_s = course.began_s + course.fault.for_s
    if course.fault.kind == "hang":
        return end_s
    cycle_s = now_s - (now_s - course.began_s) % CYCLE_S
    change_s = cycle_s + (_stop_s(course.fault) if course.stopped else CYCLE_S)
    return min(change_s, end_s)
