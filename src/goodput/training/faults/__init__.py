"""The fault injector: a schedule in, signals out, and its own truth log of what it did.

Read schedule.py for what can go wrong, machine.py for when, target.py for why no stranger is hit.
"""

from goodput.training.faults.inject import Injector
from goodput.training.faults.machine import FaultMachine, Instruction, Observation, Worker
from goodput.training.faults.schedule import Fault, FaultSchedule, random_schedule, read_schedule
from goodput.training.faults.truthlog import AnyEntry, read_truth
from goodput.training.faults.watch import JobWatch

__all__ = [
    "AnyEntry",
    "Fault",
    "FaultMachine",
    "FaultSchedule",
    "Injector",
    "Instruction",
    "JobWatch",
    "Observation",
    "Worker",
    "random_schedule",
    "read_schedule",
    "read_truth",
]
