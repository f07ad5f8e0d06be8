"""What a training ledger says, as values: the schema of `goodput train report --json`.

Amounts are integer chip-nanoseconds, instants are Unix nanoseconds, fractions are 0-1.
Nothing here computes; read ledger.py for how a number comes about, docs/concepts.md for meaning.
"""

from typing import Final, Literal

import msgspec

from goodput.core.notes import Note
from goodput.core.waterfall import Provenance, Waterfall

LEDGER_SCHEMA: Final = "goodput.training-ledger/1.0"

LOSS_FACTORS: Final[dict[str, str]] = {
    "scheduling": "SG",
    "startup": "RG",
    "detection": "RG",
    "recovery": "RG",
    "rework": "RG",
    "checkpoint": "RG",
    "evaluation": "RG",
    "data": "RG",
    "unattributed": "RG",
    "straggler": "PG",
    "communication": "PG",
    "slow": "PG",
    "inefficiency": "PG",
}
"""Every loss class in the order of the waterfall, and the factor that it lowers."""

Persistence = Literal["known", "unknown"]
Outcome = Literal["completed", "failed", "preempted", "stopped", "running", "unknown"]


class Factors(msgspec.Struct, frozen=True):
    """scheduling x runtime x program goodput; their product is useful / capacity."""

    scheduling: float
    runtime: float
    program: float
    goodput: float


class Definition(msgspec.Struct, frozen=True):
    """One named number as others define it, printed side by side."""

    name: str
    value: float | None
    """0-1; None = cannot be known from this run."""
    meaning: str
    source: str


class StepStats(msgspec.Struct, frozen=True):
    """Steps of the job. `executed` counts work, `kept` counts progress."""

    executed: int
    kept: int
    lost: int
    at_risk: int
    """Kept, but in no committed checkpoint: lost if the job died now."""
    last_step: int
    """Highest step in the final state; -1 = none."""
    ideal_step_ns: int
    """Of the most frequent shape; 0 = no step completed."""
    ideal_source: str
    """`given` or `p10 of kept steps`."""
    median_ns: int
    """Of the steps' own time: without evaluations, saves and data waits inside them."""
    p90_ns: int
    p99_ns: int
    longest_ns: int


class ModelFlops(msgspec.Struct, frozen=True):
    """Model FLOPs utilisation and what it was computed from."""

    mfu: float | None
    """Over the time of kept steps: PG when FLOPs are known; None = refused or not known."""
    flops_per_step: float
    peak_flops_per_chip: float
    chip: str
    dtype: str
    source: str
    refused: str = ""
    """Why no MFU is printed (over 100 %, no peak known)."""


class Incident(msgspec.Struct, frozen=True):
    """One interruption of progress and what it cost."""

    number: int
    attempt: str
    at_ns: int
    """The fault itself (exit or last sign of life)."""
    noticed_at_ns: int
    resumed_at_ns: int
    """New process; 0 = never."""
    cause: str
    """Leaf of the taxonomy in core/causes; `unknown` when there is no evidence."""
    evidence: str
    rank: int
    """-1 = not known."""
    planned: bool
    detection_ns: int
    recovery_ns: int
    restart_ns: int
    """New process to its first step."""
    rework_ns: int
    """Wall time of the steps that it rolled back."""
    rework_steps: int
    cost_chip_ns: int
    """Detection, recovery, restart and rework, times the chips held."""
    provenance: Provenance


class Attempt(msgspec.Struct, frozen=True):
    """One launch of the job."""

    key: str
    started_at_ns: int
    first_step_at_ns: int
    """0 = reached no step."""
    ended_at_ns: int
    outcome: Outcome
    cause: str
    world: int
    chips: int
    next_step: int
    """First step it ran or would have run; -1 = not known."""
    last_step: int
    """Last step it completed; -1 = none."""
    kept_steps: int
    lost_steps: int
    waterfall: Waterfall
    """Of the window [started, next attempt's start or end of the job)."""


class Rank(msgspec.Struct, frozen=True):
    """One rank's own account over the whole job."""

    rank: int
    host: str
    detail: str
    """`steps` (own record), `windows` (summaries) or `none` (booked as the lead rank)."""
    steps: int
    median_step_ns: int
    mean_work_ns: int
    """Mean time outside collectives per step; -1 = not measured."""
    slowdown: float
    """mean work / median over ranks; 1.0 = typical, 0 = not measured."""
    waterfall: Waterfall


class Saved(msgspec.Struct, frozen=True):
    """Goodput that survives a fault now: kept steps in a committed checkpoint or a normal end."""

    persistence: Persistence
    useful: int
    goodput_fraction: float | None
    runtime_fraction: float | None
    """Google's RG: saved progress / allocated chip-time."""
    last_step: int


class Series(msgspec.Struct, frozen=True):
    """Amounts per window of time, for charts: `classes[name][i]` belongs to window i."""

    starts_ns: tuple[int, ...]
    width_ns: int
    capacity: tuple[int, ...]
    classes: dict[str, tuple[int, ...]]
    """Includes `useful` and `excluded`; without `excluded` they sum to `capacity`."""


class Band(msgspec.Struct, frozen=True):
    """A run of time on a timeline track in one class."""

    start_ns: int
    end_ns: int
    label: str
    """Loss class, `useful`, or `steps` (a stretch of kept steps)."""
    detail: str = ""


class Track(msgspec.Struct, frozen=True):
    """One row of the timeline."""

    name: str
    bands: tuple[Band, ...]


class StepTimes(msgspec.Struct, frozen=True):
    """Distribution of step time over the run, in bins of consecutive steps of the lead rank."""

    first_step: tuple[int, ...]
    at_ns: tuple[int, ...]
    p10_ns: tuple[int, ...]
    median_ns: tuple[int, ...]
    p90_ns: tuple[int, ...]
    longest_ns: tuple[int, ...]


class Ledger(msgspec.Struct, frozen=True):
    """The exact account of one job."""

    schema: str
    job: str
    state: Outcome
    started_at_ns: int
    """Submitted, or the first sign of life."""
    ended_at_ns: int
    """End of the account: job's end, last sign of life, or the instant asked for."""
    chips: int
    """Most chips held at once."""
    world: int
    waterfall: Waterfall
    """Executed goodput: useful = ideal time of kept steps."""
    excluded: int
    """Chip-ns in windows that the user named; not part of capacity."""
    factors: Factors
    saved: Saved
    definitions: tuple[Definition, ...]
    steps: StepStats
    flops: ModelFlops | None
    elastic: tuple[float, float] | None
    """(held, available) / requested chip-time, when the job asked for more than it held."""
    incidents: tuple[Incident, ...]
    attempts: tuple[Attempt, ...]
    ranks: tuple[Rank, ...]
    series: Series
    timeline: tuple[Track, ...]
    step_times: StepTimes
    notes: tuple[Note, ...]
    sources: tuple[str, ...]
    """Files that were read, relative to the folder."""
