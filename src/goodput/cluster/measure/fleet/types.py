"""The fleet ledger: where the chip-time of many jobs went, as far as a table of jobs can tell."""

from typing import Final

import msgspec

from goodput.core.notes import Note
from goodput.core.waterfall import Waterfall

FLEET_SCHEMA: Final = "goodput.fleet-ledger/1.0"
DIMENSIONS: Final = ("state", "user", "queue", "kind", "size", "week")
"""What jobs are grouped by; `kind` is the workload type where a table has one."""


class Group(msgspec.Struct, frozen=True):
    """Jobs that share one key. Amounts are chip-ns of the jobs that the waterfall holds."""

    key: str
    jobs: int
    queue: int
    """Queue time at requested chips."""
    run: int
    """Time with chips, of every final state."""
    not_kept: int
    """Part of `run` that the waterfall does not call useful."""
    failed: int
    """Part of `run` in jobs whose last state is one of FAILED_STATES."""


class Dimension(msgspec.Struct, frozen=True):
    """The jobs grouped by one column; the groups sum to the whole fleet."""

    name: str
    groups: tuple[Group, ...]
    """Largest chip-time first; weeks by date, sizes by size."""
    others: int = 0
    """Groups that are summed in the last one because there are too many."""


class Jobs(msgspec.Struct, frozen=True):
    """How many jobs were read, and why some are not in the waterfall."""

    read: int
    """Rows of the tables that describe a job, good and bad."""
    accounted: int
    """Jobs in the waterfall."""
    without_chips: int
    """CPU jobs: in no amount."""
    open: int
    """Not over, or without a run time: in no amount."""
    bad: int
    """Rows that cannot be true or cannot be read: in no amount."""
    copies: int
    """Rows that say what another row says."""
    restarts: int
    """Attempts after the first, where the tables tell."""


class BadRows(msgspec.Struct, frozen=True):
    """Rows that were left out for one reason, and the first of them."""

    path: str
    column: str
    reason: str
    count: int
    row: int
    """First such row: 1 is the first after the header."""
    value: str


class Factor(msgspec.Struct, frozen=True):
    """One factor of goodput, or why it cannot be had."""

    value: float | None
    """0-1; None = not derivable from these tables."""
    because: str
    jobs: int = 0
    """Jobs that it is derived from."""


class FleetLedger(msgspec.Struct, frozen=True, kw_only=True):
    """The account of a fleet. All times Unix ns, all amounts chip-ns, all integers exact."""

    schema: str = FLEET_SCHEMA
    name: str
    begin_ns: int
    """First submission or start."""
    end_ns: int
    """Last end."""
    jobs: Jobs
    waterfall: Waterfall
    scheduling: Factor
    runtime: Factor
    failed: int
    """Chip-ns that ran in jobs whose last state is one of FAILED_STATES."""
    retried: int
    """Chip-ns of attempts before a job's last one, where the tables tell; never called lost."""
    dimensions: tuple[Dimension, ...]
    bad_rows: tuple[BadRows, ...]
    notes: tuple[Note, ...]
    sources: tuple[str, ...]

    @property
    def run(self) -> int:
        """Chip-ns with chips held."""
        return self.waterfall.capacity - self.waterfall.loss("queue")
