"""How many chips the job held, and when it stood in a queue: piecewise constant over time."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

import msgspec

from goodput.core.events import Allocated, Submitted
from goodput.training.measure.eventlog import ProcessLog


class Holding(msgspec.Struct, frozen=True):
    """Chips from `at_ns` on."""

    at_ns: int
    chips: int
    queued: bool
    """The job waits in a queue; `chips` is what it asked for."""
    requested: int
    available: int


class Chips(msgspec.Struct, frozen=True):
    """The whole history, in order of time."""

    holdings: tuple[Holding, ...]
    recorded: bool
    """From events; else one chip a rank, or what the user said."""

    def at(self, at_ns: int) -> int:
        """Return the chips that are booked at an instant (requested ones while queued)."""
        return self._holding(at_ns).chips

    def edges(self, low_ns: int, high_ns: int) -> list[int]:
        """Return the instants inside (low, high) at which the number changes."""
        return [h.at_ns for h in self.holdings if low_ns < h.at_ns < high_ns]

    def queues(self, high_ns: int) -> list[tuple[int, int]]:
        """Return [from, to) of every stay in a queue."""
        after = [*(h.at_ns for h in self.holdings[1:]), high_ns]
        return [
            (h.at_ns, until)
            for h, until in zip(self.holdings, after, strict=True)
            if h.queued and until > h.at_ns
        ]

    def elastic(self, low_ns: int, high_ns: int) -> tuple[float, float] | None:
        """Return (held, available) chip-time / requested chip-time; None = never asked for more."""
        if not any(h.requested > h.chips for h in self.holdings):
            return None
        held = available = requested = 0
        edges = [low_ns, *self.edges(low_ns, high_ns), high_ns]
        for start, end in pairwise(edges):
            now = self._holding(start)
            held += now.chips * (end - start)
            available += now.available * (end - start)
            requested += now.requested * (end - start)
        return (held / requested, available / requested) if requested else None

    def _holding(self, at_ns: int) -> Holding:
        index = bisect_right(self.holdings, at_ns, key=lambda h: h.at_ns) - 1
        return self.holdings[max(index, 0)]


def chips_of(
    processes: Sequence[ProcessLog],
    *,
    worlds: Sequence[tuple[int, int]],
    override: int | None,
) -> Chips:
    """Return the history of chips.

    Args:
        processes: all processes of the job: any of them may record the allocation.
        worlds: (start of attempt, ranks) of every attempt: what is assumed without a record.
        override: chips as given by the user.
    """
    found: list[Holding] = []
    for process in processes:
        for event in process.events:
            at = process.at_ns(event)
            if isinstance(event, Submitted):
                found.append(
                    Holding(
                        at_ns=at,
                        chips=event.chips,
                        queued=True,
                        requested=event.chips,
                        available=0,
                    )
                )
            elif isinstance(event, Allocated):
                wanted = max(event.requested or event.chips, event.chips)
                found.append(
                    Holding(
                        at_ns=at,
                        chips=event.chips,
                        queued=False,
                        requested=wanted,
                        available=event.available or event.chips,
                    )
                )
    history = sorted(found, key=lambda h: h.at_ns)  # of one instant the last said holds
    recorded = any(not h.queued for h in history)
    if override is not None:
        history = [_plain(at, override, queued=False) for at, _ in worlds[:1]] or [
            _plain(0, override, queued=False)
        ]
        queued = [h for h in found if h.queued]
        if queued and worlds and min(h.at_ns for h in queued) < worlds[0][0]:
            first = min(h.at_ns for h in queued)
            history = [_plain(first, override, queued=True), *history]
    elif not recorded:
        history.extend(_plain(at, world, queued=False) for at, world in worlds)
        history.sort(key=lambda h: (h.at_ns, not h.queued))  # of one instant, the start holds
    if not history:
        history = [_plain(0, 1, queued=False)]
    return Chips(holdings=tuple(history), recorded=recorded or override is not None)


def _plain(at_ns: int, chips: int, *, queued: bool) -> Holding:
    return Holding(at_ns=at_ns, chips=chips, queued=queued, requested=chips, available=chips)
