"""The typed events of a training job, one JSON object per line on disk (docs/formats/events.md).

`t` is wall time and `m` the monotonic clock, both integer nanoseconds; `m = 0` means that the
source had no monotonic clock. Durations are `d`, nanoseconds, with -1 for "not known". Formats grow
additively within a major version: the reader counts unknown fields and kinds and goes on without.
"""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

SCHEMA_MAJOR: Final = 1
SCHEMA_MINOR: Final = 0
SCHEMA: Final = f"goodput.events/{SCHEMA_MAJOR}.{SCHEMA_MINOR}"


Instant = Annotated[int, Meta(ge=0, le=2**62)]
"""Unix nanoseconds, 1970 to 2116: sums and differences of these fit an int64."""
Nanoseconds = Annotated[int, Meta(ge=-1, le=2**61)]
"""A duration or a monotonic instant; -1 = not known."""
StepNumber = Annotated[int, Meta(ge=-(2**53), le=2**53)]
Count = Annotated[int, Meta(ge=0, le=2**31)]
RankNumber = Annotated[int, Meta(ge=-1, le=2**20)]
"""-1 = not known."""
Amount = Annotated[float, Meta(ge=0.0, le=1e30)]


class Event(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    gc=False,
    tag_field="k",
):
    """What all events share: when they happened."""

    t: Instant
    """Wall time, nanoseconds since the Unix epoch (start of a span)."""
    m: Nanoseconds = 0
    """Monotonic clock of the same instant, nanoseconds; 0 = the source had none."""


class Process(Event, frozen=True, tag="process", gc=True):
    """First line of every file: who writes it. A file has one writer process, and one only."""

    schema: Annotated[str, Meta(max_length=64)]
    job: str
    role: str = "worker"
    """`worker` trains; `launcher` starts and watches workers (`goodput train record`)."""
    rank: Annotated[int, Meta(ge=0, le=2**20)] = 0
    world: Annotated[int, Meta(ge=1, le=2**20)] = 1
    attempt: str = ""
    """Key of the launch this process belongs to; empty = to be inferred from overlap in time."""
    pid: int = 0
    host: str = ""
    boot: str = ""
    """Kernel boot id: processes that share it share the monotonic clock."""
    started: Instant = 0
    """Wall time at which the operating system started the process, if known."""
    writer: str = ""
    """Program and version that wrote the file, e.g. `goodput-ml 0.1.0`."""
    origin: str = "recorded"
    """`recorded` by our recorder, `log` read from a foreign log, `simulated`."""
    detail: str = "steps"
    """`steps`: every step is in the file; `windows`: summaries and outliers only."""
    chip: str = ""
    """Name in the hardware table, e.g. `H100-SXM`, when known."""


class Submitted(Event, frozen=True, tag="submitted"):
    """The job entered a queue (again, after a fault, when it is requeued)."""

    chips: Count
    """Chips it asks for: the queue costs these."""


class Allocated(Event, frozen=True, tag="allocated"):
    """From now on the job holds this many chips; a new event is a change of size."""

    chips: Count
    requested: Count = 0
    """Chips it would like to hold (elastic); 0 = the same as `chips`."""
    available: Count = 0
    """Chips that were healthy and reachable (elastic); 0 = the same as `chips`."""


class Ended(Event, frozen=True, tag="ended"):
    """The job is over and will not be requeued."""

    outcome: str = "completed"
    """`completed`, `failed`, `cancelled`."""


class AttemptStart(Event, frozen=True, tag="attempt_start", gc=True):
    """A launch of the whole job, or a new generation of an elastic one."""

    attempt: str
    world: Annotated[int, Meta(ge=0, le=2**20)] = 0
    next_step: StepNumber = -1
    """First step this attempt will run, if the launcher knows; else the workers say (`resumed`)."""


class AttemptEnd(Event, frozen=True, tag="attempt_end", gc=True):
    """A launch is over. `t` is when its last process was gone."""

    attempt: str = ""
    outcome: str = "completed"
    """`completed`, `failed`, `preempted`, `stopped` (asked to, state saved)."""
    cause: str = ""
    """Leaf of the cause taxonomy (core/causes), when known."""
    evidence: str = ""
    exit_code: int = -1
    signal: int = 0
    rank: RankNumber = -1
    """The rank that failed first, when known."""
    fault_t: Instant = 0
    """Wall time of the fault itself (exit, last heartbeat), when known."""
    noticed_t: Instant = 0
    """Wall time at which the launcher noticed, when known."""


class Noticed(Event, frozen=True, tag="noticed", gc=True):
    """Somebody noticed a fault at `t`: a peer's failed collective, a watchdog, the launcher."""

    cause: str = ""
    evidence: str = ""
    rank: RankNumber = -1
    """The rank at fault, when known (not the one that noticed)."""
    fault_t: Instant = 0


class Step(Event, frozen=True, tag="step"):
    """Step `n` begins at `t`; it covers steps n .. n+c-1 and lasts `d`, or until the next one."""

    n: StepNumber
    d: Nanoseconds = -1
    c: Count = 0
    """Steps covered; 0 = up to the next record's number (logs that write every k-th step)."""
    shape: str = ""
    """Steps of one shape should take equal time: an ideal step time is found for each shape."""
    comm: Nanoseconds = 0
    """Exposed communication inside the step, ns, when written with the duration."""


class StepEnd(Event, frozen=True, tag="step_end"):
    """Step `n` is complete at `t` (its result is in the model)."""

    n: StepNumber
    comm: Nanoseconds = -1
    """Exposed communication inside the step, ns; -1 = not measured."""


class Begin(Event, frozen=True, tag="begin"):
    """A span opened; its `span` record follows unless the process died inside."""

    name: str
    id: int
    step: StepNumber = -1
    counts_as: str = ""


class Span(Event, frozen=True, tag="span"):
    """A finished span: [t, t + d)."""

    name: str
    d: Nanoseconds
    id: int = 0
    """The id of its `begin` record; 0 = it had none."""
    step: StepNumber = -1
    counts_as: str = ""
    """Loss class for a user-named span (docs/concepts.md); empty = by name."""
    background: bool = False
    """Ran beside training (an asynchronous save): shown, never booked as a loss."""
    failed: bool = False
    """The body raised."""


class Committed(Event, frozen=True, tag="committed", gc=True):
    """A checkpoint that holds every step up to and including `last_step` is durable."""

    last_step: StepNumber
    path: str = ""


class Resumed(Event, frozen=True, tag="resumed", gc=True):
    """State was restored (or initialised): `next_step` is the first step that will run."""

    next_step: StepNumber
    path: str = ""


class Window(Event, frozen=True, tag="window"):
    """Summary of steps `first`..`last` of one rank over [t, t + d): the default above rank 0."""

    first: StepNumber
    last: StepNumber
    steps: Count
    d: Nanoseconds
    work: Nanoseconds = -1
    """Sum over the steps of time outside collectives and spans, ns; -1 = not measured."""
    comm: Nanoseconds = -1
    data: Nanoseconds = -1
    longest: Nanoseconds = 0
    """Longest single step, ns."""


class Work(Event, frozen=True, tag="work", gc=True):
    """What one step costs, for the ideal step time and MFU. The last one before a step holds."""

    flops_per_step: Amount = 0.0
    """Model FLOPs of one optimizer step of the whole job (not hardware FLOPs); 0 = not known."""
    ideal_step_s: Annotated[float, Meta(ge=0.0, le=1e9)] = 0.0
    """Ideal step time given by the user, seconds; 0 = not given."""
    peak_flops_per_chip: Amount = 0.0
    """Peak dense FLOP/s of one chip; 0 = look up `chip` and `dtype`."""
    chip: str = ""
    dtype: str = ""
    shape: str = ""
    """The shape these FLOPs are for; empty = all."""
    source: str = ""
    """`given`, `counted` (torch FlopCounterMode)."""


class Point(Event, frozen=True, tag="point", gc=True):
    """A named number: loss, tokens per second, anything the user wants on the timeline."""

    name: str
    value: float
    step: StepNumber = -1


class ProcessEnd(Event, frozen=True, tag="process_end", gc=True):
    """The process said goodbye: it returned, raised, or got a signal that it could handle."""

    outcome: str = "completed"
    error: str = ""
    """Type and first line of the exception."""
    signal: int = 0


class Dropped(Event, frozen=True, tag="dropped"):
    """`count` records were lost since the last such line (disk full, folder gone)."""

    count: Count
    reason: str = ""


AnyEvent = (
    Process
    | Submitted
    | Allocated
    | Ended
    | AttemptStart
    | AttemptEnd
    | Noticed
    | Step
    | StepEnd
    | Begin
    | Span
    | Committed
    | Resumed
    | Window
    | Work
    | Point
    | ProcessEnd
    | Dropped
)
"""One line of an event file."""

SPAN_CLASSES: Final[dict[str, str]] = {
    "init": "startup",
    "compile": "startup",
    "restore": "startup",
    "data": "data",
    "evaluation": "evaluation",
    "checkpoint": "checkpoint",
    "communication": "communication",
    "recovery": "recovery",
    "detection": "detection",
    "scheduling": "scheduling",
}
"""Span names with a meaning, and the loss class each is booked under. Any other name is the user's:
outside a step it labels unattributed time, inside a step it only annotates, unless `counts_as`."""
