"""What the demo does: sizes of the job, when it saves and evaluates, and which faults hit it."""

from pathlib import Path
from typing import Final

import msgspec

from goodput.training.faults import Fault, FaultSchedule

WORLD: Final = 2
JOB: Final = "demo"
TORCHRUN_GRACE_S: Final = 30.0
"""How long torchrun waits between SIGTERM and SIGKILL when a worker has failed.

Source: torch 2.13, torch/distributed/elastic/multiprocessing/api.py: `PContext.close(timeout=30)`
is called without a time-out on a failure; `--shutdown-timeout` does not reach that call.
"""


class Plan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One demo run. The defaults take about three minutes on two quiet cores."""

    steps: int = 300
    checkpoint_every: int = 20
    evaluate_every: int = 60
    batch: int = 16
    """Sequences per process and step."""
    context: int = 128
    """Bytes per sequence."""
    width: int = 192
    layers: int = 4
    heads: int = 4
    learning_rate: float = 2e-3
    group_timeout_s: float = 20.0
    """How long a collective waits for a peer: what finds a hang."""
    kill_step: int = 114
    """SIGKILL hits rank 1 in this step; -1 = never."""
    hang_step: int = 227
    """SIGSTOP hits rank 0 in this step; -1 = never."""
    seed: int = 1

    @property
    def faults(self) -> FaultSchedule:
        """The two faults, 0.1 s after the step has begun, so that they hit in its middle."""
        faults = []
        if self.kill_step >= 0:
            faults.append(Fault(kind="kill", at_step=self.kill_step, rank=1, after_s=0.1))
        if self.hang_step >= 0:
            faults.append(Fault(kind="hang", at_step=self.hang_step, rank=0, after_s=0.1))
        return FaultSchedule(faults=tuple(faults))


SHORT: Final = Plan(
    steps=24,
    checkpoint_every=4,
    evaluate_every=8,
    group_timeout_s=8.0,
    kill_step=6,
    hang_step=15,
)
"""The same story in about 70 s, for the ground-truth test."""


class Folder:
    """Where the parts of one demo run are.

    Args:
        root: the run's folder.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.events = root / "events"
        """Event files of the recorder and the launcher: what the ledger reads."""
        self.checkpoints = root / "checkpoints"
        self.truth = root / "truth"
        """Marks of the training processes and of the orchestrator."""
        self.faults = root / "truth" / "faults.jsonl"
        self.log = root / "train.log"
        """What torchrun and the training script print."""
        self.plan = root / "plan.json"
