"""Many independent runs of one function over a list of points, in processes or on Ray.

run.py is the entry, types.py says what comes back, processes.py keeps the workers alive.
"""

from goodput.core.sweep.run import stream, sweep
from goodput.core.sweep.types import Failure, Outcome, Progress, Success, SweepResult, point_seed

__all__ = [
    "Failure",
    "Outcome",
    "Progress",
    "Success",
    "SweepResult",
    "point_seed",
    "stream",
    "sweep",
]
