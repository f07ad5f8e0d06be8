"""Where the demo's time really went: from the witness marks and the injector's log alone.

No event file and no ledger code is read here: the ledger is checked against this. Boundaries are
those of docs/concepts.md; amounts are chip-nanoseconds (one process = one chip).
"""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from goodput.core.errors import DataError
from goodput.demo.plan import Folder
from goodput.demo.witness import Mark, read_marks
from goodput.training.faults import read_truth
from goodput.training.faults.truthlog import Opened, Sent

CLASSES: Final = (
    "steps",
    "startup",
    "checkpoint",
    "detection",
    "recovery",
    "rework",
    "data",
    "evaluation",
    "teardown",
    "other",
)
"""`steps`: kept steps (the ledger's useful, slow, straggler and communication together); `startup`:
up to the first step and what that takes over the ideal; `teardown`: after the last phase; `other`:
between two phases."""

_CLOSING: Final = re.compile(
    r"^W(\d{4} \d\d:\d\d:\d\d\.\d+) .*Sending process \d+ closing signal", re.MULTILINE
)
"""torchrun's line when it ends the workers of a failed group (torch 2.13)."""

_PHASES: Final = {
    "data_begin": ("data_end", "data"),
    "step_begin": ("step_end", "step"),
    "evaluation_begin": ("evaluation_end", "evaluation"),
    "save_begin": ("save_end", "checkpoint"),
}


class Launch(NamedTuple):
    """One torchrun with its workers, by the monotonic clock."""

    start_ns: int
    exit_ns: int
    workers: dict[int, tuple[Mark, ...]]
    """Marks by rank."""
    notices: tuple[int, ...] = ()
    """When torchrun, having seen a worker fail, told the others to end."""


class Strike(msgspec.Struct, frozen=True):
    """A fault that took effect and what followed."""

    kind: str
    rank: int
    step: int
    """Step that rank 0 was in or had last begun."""
    at_ns: int
    noticed_ns: int
    """A peer's collective failed, or torchrun saw the exit; the first of the two."""
    relaunched_ns: int
    """0 = never."""
    rework_steps: int
    """Whole steps that were rolled back."""


class Truth(msgspec.Struct, frozen=True):
    """The account by the demo's own clocks."""

    start_ns: int
    """Monotonic: the first torchrun began."""
    end_ns: int
    """Monotonic: the last torchrun was gone."""
    chips: int
    classes: dict[str, int]
    """Chip-ns of each of CLASSES; they sum to (end - start) x chips."""
    kept_steps: int
    lost_steps: int
    ideal_step_ns: int
    """10th percentile of rank 0's kept steps, without the first one of each process."""
    strikes: tuple[Strike, ...]

    @property
    def capacity(self) -> int:
        """All chip-ns."""
        return (self.end_ns - self.start_ns) * self.chips


class _Stretch(NamedTuple):
    """A piece of one rank's time."""

    start_ns: int
    end_ns: int
    label: str
    step: int = -1
    """Of a step: its number."""
    is_first: bool = False
    """Of a step: the first one of its process, which warms up."""
    launch: int = 0
    rank: int = 0


def read(folder: Folder) -> Truth:
    """Return the account of a finished demo run.

    Raises:
        DataError: the witness files are missing or not those of a finished run.
    """
    entries = read_truth(folder.faults)
    faults = tuple(entry for entry in entries if isinstance(entry, Sent))
    clocks = next((entry for entry in entries if isinstance(entry, Opened)), None)
    notices = _notices(folder.log, clocks) if clocks and folder.log.exists() else ()
    launches = _launches(folder.truth, notices)
    if not launches:
        raise DataError("no witness marks of a launch", path=folder.truth)
    return account(launches, faults)


def account(launches: Sequence[Launch], faults: Sequence[Sent]) -> Truth:
    """Return the account of launches, in order of time, and the signals that hit them.

    Args:
        launches: every torchrun of the job; all have workers of the same ranks.
        faults: SIGKILLs and SIGSTOPs as the injector logged them.
    """
    strikes = [_strike(launches, number, faults) for number in range(len(launches))]
    starts = [launch.start_ns for launch in launches[1:]]
    pieces = [
        piece._replace(launch=number, rank=rank)
        for number, (launch, next_ns) in enumerate(zip(launches, [*starts, 0], strict=True))
        for rank in sorted(launches[0].workers)
        for piece in _timeline(launch, rank, strikes[number], next_ns)
    ]
    ceilings = [_first_step_after(launches, number) for number in range(len(launches))]
    steps = [piece for piece in pieces if piece.label == "step"]
    kept = [piece for piece in steps if piece.step < ceilings[piece.launch]]
    warm = [piece for piece in kept if piece.rank == 0 and not piece.is_first]
    ideal_ns = _tenth_percentile([piece.end_ns - piece.start_ns for piece in warm])
    amounts = dict.fromkeys(CLASSES, 0)
    for piece in pieces:
        duration_ns = piece.end_ns - piece.start_ns
        if piece.label != "step":
            amounts[piece.label] += duration_ns
            continue
        warm_up_ns = max(duration_ns - ideal_ns, 0) if piece.is_first else 0
        amounts["startup"] += warm_up_ns
        is_kept = piece.step < ceilings[piece.launch]
        amounts["steps" if is_kept else "rework"] += duration_ns - warm_up_ns
    return Truth(
        start_ns=launches[0].start_ns,
        end_ns=launches[-1].exit_ns,
        chips=len(launches[0].workers),
        classes=amounts,
        kept_steps=sum(piece.rank == 0 for piece in kept),
        lost_steps=sum(piece.rank == 0 for piece in steps) - sum(p.rank == 0 for p in kept),
        ideal_step_ns=ideal_ns,
        strikes=tuple(strike for strike in strikes if strike is not None),
    )


def _notices(log: Path, clocks: Opened) -> tuple[int, ...]:
    """Return when torchrun sent closing signals, on the monotonic clock, to the millisecond."""
    year = datetime.fromtimestamp(clocks.t / 1e9).year  # noqa: DTZ006 - torchrun logs local time
    found = []
    for text in _CLOSING.findall(log.read_text(errors="replace")):
        at = datetime.strptime(f"{year}{text}", "%Y%m%d %H:%M:%S.%f")  # noqa: DTZ007
        if at.timestamp() * 1e9 < clocks.t - 86_400 * 10**9:
            at = at.replace(year=year + 1)  # a run over New Year
        found.append(round(at.timestamp() * 1e9) - clocks.t + clocks.m)
    return tuple(found)


def _launches(folder: Path, notices: Sequence[int]) -> tuple[Launch, ...]:
    workers: dict[int, dict[int, tuple[Mark, ...]]] = {}
    for path in sorted(folder.glob("worker-*.log")):
        marks = read_marks(path)
        numbers = {mark.what: mark.number for mark in marks}
        if {"rank", "parent"} <= set(numbers):
            workers.setdefault(numbers["parent"], {})[numbers["rank"]] = marks
    launches = []
    for path in folder.glob("torchrun-*.log"):
        marks = read_marks(path)
        times = {mark.what: mark for mark in marks}
        if not {"start", "exit"} <= set(times):
            raise DataError("no start and exit: the run was cut off", path=path)
        pid = int(path.stem.removeprefix("torchrun-"))
        start_ns, exit_ns = times["start"].number, times["exit"].at_ns
        mine = tuple(at for at in notices if start_ns <= at <= exit_ns)
        launches.append(Launch(start_ns, exit_ns, workers.get(pid, {}), mine))
    return tuple(sorted(launches, key=lambda launch: launch.start_ns))


def _strike(launches: Sequence[Launch], number: int, faults: Sequence[Sent]) -> Strike | None:
    """Return what ended a launch early, None if it ended by itself."""
    launch = launches[number]
    hits = [fault for fault in faults if launch.start_ns <= fault.m <= launch.exit_ns]
    failures = [m.at_ns for marks in launch.workers.values() for m in marks if m.what == "failed"]
    if not hits and not failures:
        return None
    at_ns = hits[0].m if hits else min(failures)
    noticed = [at for at in (*failures, *launch.notices) if at >= at_ns]
    noticed_ns = min(noticed, default=launch.exit_ns)
    lead = [mark for mark in launch.workers.get(0, ()) if mark.at_ns <= at_ns]
    begun = [mark.number for mark in lead if mark.what == "step_begin"]
    done = sum(mark.what == "step_end" for mark in lead)
    later = number + 1 < len(launches)
    first = _first_step(launch)
    kept = max(min(_first_step_after(launches, number) - first, done), 0) if first >= 0 else 0
    return Strike(
        kind=hits[0].kind if hits else "unplanned",
        rank=hits[0].rank if hits else -1,
        step=max(begun, default=-1),
        at_ns=at_ns,
        noticed_ns=noticed_ns,
        relaunched_ns=launches[number + 1].start_ns if later else 0,
        rework_steps=done - kept,
    )


def _timeline(launch: Launch, rank: int, strike: Strike | None, next_ns: int) -> Iterator[_Stretch]:
    """Yield one rank's time from the start of a launch to the start of the next, without a gap."""
    cut_ns = strike.at_ns if strike else launch.exit_ns
    cursor, before = launch.start_ns, "startup"
    open_phase: Mark | None = None
    stepped = False
    for mark in launch.workers.get(rank, ()):
        if mark.at_ns > cut_ns:
            break
        if mark.what == "data_begin" and not stepped:
            continue  # waiting for the first batch is a part of startup
        if mark.what in _PHASES:
            yield _Stretch(cursor, mark.at_ns, before)
            open_phase, cursor, before = mark, mark.at_ns, "other"
        elif open_phase is not None and mark.what == _PHASES[open_phase.what][0]:
            label, first = _PHASES[open_phase.what][1], not stepped
            yield _Stretch(cursor, mark.at_ns, label, mark.number, first)
            open_phase, cursor = None, mark.at_ns
            stepped = stepped or label == "step"
        elif mark.what == "trained":
            yield _Stretch(cursor, mark.at_ns, before)
            cursor, before = mark.at_ns, "teardown"
    if strike is None:
        yield _Stretch(cursor, launch.exit_ns, before)
        if next_ns:
            yield _Stretch(launch.exit_ns, next_ns, "recovery")
        return
    inside = _PHASES[open_phase.what][1] if open_phase else before
    yield _Stretch(cursor, cut_ns, "rework" if inside == "step" else inside)
    yield _Stretch(cut_ns, strike.noticed_ns, "detection")
    yield _Stretch(strike.noticed_ns, next_ns or launch.exit_ns, "recovery")


def _first_step(launch: Launch) -> int:
    """Return the step at which rank 0 began or would have begun, -1 if it did not get there."""
    lead = launch.workers.get(0, ())
    return next((mark.number for mark in lead if mark.what == "restore_end"), -1)


def _first_step_after(launches: Sequence[Launch], number: int) -> int:
    """Return the lowest step that a later launch began at: what is above it was rolled back."""
    later = [_first_step(launch) for launch in launches[number + 1 :]]
    return min((step for step in later if step >= 0), default=1 << 62)


def _tenth_percentile(durations: list[int]) -> int:
    """Return the 10th percentile, interpolated between the two nearest values."""
    if not durations:
        return 0
    ordered = sorted(durations)
    place = (len(ordered) - 1) / 10
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return round(ordered[low] + (ordered[high] - ordered[low]) * (place - low))
