"""Moving a process log in time, and finding by how many quarter hours two logs differ."""

from typing import Final

import numpy as np
from msgspec.structs import replace

from goodput.core.events import AttemptEnd, Event, Noticed
from goodput.core.timeline import Ints, as_ints
from goodput.training.measure.eventlog import ProcessLog

QUARTER_NS: Final = 900_000_000_000
"""Time zones differ by whole quarter hours."""
FARTHEST: Final = 56
"""Quarter hours between the zones of the earth that are farthest apart (UTC-12 and UTC+14), about
halved: a log differs from UTC by 14 h at most."""
NEAR_NS: Final = 60_000_000_000
"""A log begins and ends this far outside a scheduler's run at most: clocks of two hosts differ."""
_TOGETHER_NS: Final = 5_000_000_000
"""Two writers of one step are this close in time, once their zones agree. By chance two sessions
that repeat the same steps are that close to whole quarter hours apart in one of 90 cases."""
_ENOUGH: Final = 3


def shifted(log: ProcessLog, by_ns: int) -> ProcessLog:
    """Return a log with all its instants moved."""
    if not by_ns:
        return log
    header = log.header
    return replace(
        log,
        header=replace(
            header, t=header.t + by_ns, started=header.started + by_ns if header.started else 0
        ),
        steps=log.steps._replace(at_ns=log.steps.at_ns + by_ns),
        ends=log.ends._replace(at_ns=log.ends.at_ns + by_ns),
        spans=log.spans._replace(at_ns=log.spans.at_ns + by_ns),
        windows=tuple(replace(window, t=window.t + by_ns) for window in log.windows),
        events=tuple(_moved(event, by_ns) for event in log.events),
        last_at_ns=log.last_at_ns + by_ns,
    )


def _moved(event: Event, by_ns: int) -> Event:
    moved = replace(event, t=event.t + by_ns)
    if isinstance(moved, AttemptEnd | Noticed) and moved.fault_t:
        moved = replace(moved, fault_t=moved.fault_t + by_ns)
    if isinstance(moved, AttemptEnd) and moved.noticed_t:
        moved = replace(moved, noticed_t=moved.noticed_t + by_ns)
    return moved


def zone_between(mine: ProcessLog, other: ProcessLog) -> int | None:
    """Return what to add to `mine` so that steps of one number fall together, ns.

    It is a whole number of quarter hours, 0 included. None = the two do not tell of the same steps
    at the same time in any zone, or have too few in common to tell.
    """
    apart = _apart(mine, other)
    if apart is None:
        return None
    middle = int(np.median(apart))
    quarters = round(middle / QUARTER_NS)
    off = abs(middle - quarters * QUARTER_NS)
    spread = int(np.median(np.abs(apart - middle)))
    if abs(quarters) > FARTHEST or off > _TOGETHER_NS or spread > _TOGETHER_NS:
        return None
    return quarters * QUARTER_NS


def together(mine: ProcessLog, other: ProcessLog) -> bool | None:
    """Return whether steps of one number were done at one time; None = too few in common."""
    apart = _apart(mine, other)
    if apart is None:
        return None
    return abs(int(np.median(apart))) <= _TOGETHER_NS


def _apart(mine: ProcessLog, other: ProcessLog) -> Ints | None:
    """Time between the ends of the same steps in two logs; None = too few in common."""
    n, ended = _done(mine)
    m, others = _done(other)
    _, i, j = np.intersect1d(n, m, return_indices=True)
    if i.size < max(_ENOUGH, min(n.size, m.size) * 4 // 5):
        return None
    return others[j] - ended[i]


def zone_into(log: ProcessLog, low_ns: int, high_ns: int) -> int | None:
    """Return the fewest quarter hours (ns) that move a log into a window; None = none do."""
    begin, end = log.started_at_ns, log.last_at_ns
    low, high = low_ns - NEAR_NS, high_ns + NEAR_NS
    if low <= begin and end <= high:
        return 0
    fits = [
        quarters * QUARTER_NS
        for quarters in range(-FARTHEST, FARTHEST + 1)
        if low <= begin + quarters * QUARTER_NS and end + quarters * QUARTER_NS <= high
    ]
    # A job writes its first line soon after it starts, so the earliest place fits best.
    return min(fits) if fits else None


def _done(log: ProcessLog) -> tuple[Ints, Ints]:
    """(last step of each record, when it was done)."""
    steps = log.steps
    if steps.duration_ns is None:
        return as_ints([]), as_ints([])
    covers = steps.covers if steps.covers is not None else np.ones_like(steps.n)
    return steps.n + np.maximum(covers, 1) - 1, steps.at_ns + np.maximum(steps.duration_ns, 0)
