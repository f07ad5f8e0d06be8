"""The injector's shell: watches the job, asks the machine, sends, and writes its truth log.

It signals only processes that the job's own event files name (target.py).
"""

import os
import signal
import threading
import time
from pathlib import Path
from typing import Final

from goodput.core.errors import InputError
from goodput.core.events import Process
from goodput.training.faults.machine import FaultMachine, Instruction, Observation, Worker
from goodput.training.faults.schedule import FaultSchedule
from goodput.training.faults.target import Victim, hold
from goodput.training.faults.truthlog import (
    SCHEMA,
    Closed,
    Gone,
    Opened,
    Refused,
    Sent,
    TruthLog,
    now,
)
from goodput.training.faults.watch import JobWatch

POLL_S: Final = 0.02
"""How often the job is looked at: the reaction time to a step, and the error of `Gone` times."""


class Injector:
    """Hits one running job with a schedule of faults. One thread drives it: `run`, or `poll`.

    Args:
        schedule: the faults.
        folder: where the job's event files are, or will be.
        log: the truth log to append to.
        job: the job's name, needed only if the folder holds several.
    """

    def __init__(self, schedule: FaultSchedule, folder: Path, *, log: Path, job: str = "") -> None:
        self.watch = JobWatch(folder, job=job)
        self.sent: list[Sent] = []
        self._schedule = schedule
        self._machine = FaultMachine(schedule)
        self._log = TruthLog(log)
        self._victims: dict[Process, Victim] = {}
        self._turned_away: set[Process] = set()
        wall_ns, mono_ns = now()
        self._log.write(
            Opened(
                t=wall_ns,
                m=mono_ns,
                schema=SCHEMA,
                pid=os.getpid(),
                folder=str(folder),
                schedule=schedule,
            )
        )

    def run(self, *, stop: threading.Event | None = None) -> None:
        """Watch until the schedule or the job is over or `stop` is set, then let go of everything.

        Args:
            stop: set by another thread to end the watch early.
        """
        stop = stop or threading.Event()
        try:
            while not (stop.is_set() or self._machine.finished or self.watch.outcome is not None):
                stop.wait(self.poll())
        finally:
            self.close()

    def poll(self) -> float:
        """Look once, send what is due, and return the seconds until the next look."""
        self.watch.poll()
        self._update_victims()
        for instruction in self._machine.observe(self._observation()):
            self._execute(instruction)
        now_s = time.monotonic()
        due_s = self._machine.next_due_s(now_s)
        return POLL_S if due_s is None else min(POLL_S, max(due_s - now_s, 0.0))

    def close(self) -> None:
        """Continue what was stopped for a time only, note what never happened, let go."""
        for instruction in self._machine.release():
            self._execute(instruction)
        wall_ns, mono_ns = now()
        self._log.write(Closed(t=wall_ns, m=mono_ns, missed=self._machine.waiting))
        for victim in self._victims.values():
            victim.close()
        self._victims.clear()
        self.watch.close()
        self._log.close()

    def wake(self) -> None:
        """Continue every worker: a job that is asked to end must be able to hear it."""
        for victim in self._victims.values():
            victim.send(signal.SIGCONT)

    def _update_victims(self) -> None:
        for record, victim in list(self._victims.items()):
            if victim.gone:
                wall_ns, mono_ns = now()
                self._log.write(
                    Gone(
                        t=wall_ns,
                        m=mono_ns,
                        rank=record.rank,
                        pid=record.pid,
                        attempt=record.attempt,
                    )
                )
                victim.close()
                del self._victims[record]
                self._turned_away.add(record)
        for record in self.watch.workers:
            if record not in self._victims and record not in self._turned_away:
                found = hold(record)
                if found is None:
                    self._turned_away.add(record)
                else:
                    self._victims[record] = found

    def _observation(self) -> Observation:
        launched, first_step = self.watch.launched_at_ns, self.watch.first_step_at_ns
        running = self.watch.workers
        return Observation(
            now_s=time.monotonic(),
            launched_s=None if launched is None else launched / 1e9,
            first_step_s=None if first_step is None else first_step / 1e9,
            step=self.watch.step,
            alive=tuple(_worker(record) for record in running if record in self._victims),
        )

    def _execute(self, instruction: Instruction) -> None:
        """Send one instruction's signal to its workers and log what came of it."""
        reached, final = False, bool(instruction.pid)
        reason = "the process is no part of the job" if final else "the process has just gone"
        for record, victim in list(self._victims.items()):
            if _worker(record) not in instruction.workers:
                continue
            try:
                pids = victim.send(instruction.signal, scope=instruction.scope, pid=instruction.pid)
            except InputError as error:
                reason, final = str(error), True
                continue
            if pids:
                reached = True
                self._note(instruction, record, pids)
        if not reached:
            wall_ns, mono_ns = now()
            self._log.write(Refused(t=wall_ns, m=mono_ns, fault=instruction.fault, reason=reason))
            self._machine.refused(instruction, final=final)

    def _note(self, instruction: Instruction, record: Process, pids: tuple[int, ...]) -> None:
        wall_ns, mono_ns = now()
        entry = Sent(
            t=wall_ns,
            m=mono_ns,
            fault=instruction.fault,
            kind=self._schedule.faults[instruction.fault].kind,
            signal=signal.Signals(instruction.signal).name,
            rank=record.rank,
            pids=pids,
            attempt=record.attempt,
            step=self.watch.step,
            late_s=round(mono_ns / 1e9 - instruction.due_s, 6),
        )
        self._log.write(entry)
        self.sent.append(entry)


def _worker(record: Process) -> Worker:
    return Worker(rank=record.rank, pid=record.pid, attempt=record.attempt)
