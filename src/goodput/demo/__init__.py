"""The demo: a small transformer, two processes, two faults, one report; and a recorded run of it.

`run` trains for three minutes and needs torch, `recorded_run` is there at once. Read
orchestrate.py first.
"""

from goodput.demo.orchestrate import DemoFailedError, run
from goodput.demo.plan import Folder, Plan
from goodput.demo.recorded import recorded_run

__all__ = ["DemoFailedError", "Folder", "Plan", "recorded_run", "run"]
