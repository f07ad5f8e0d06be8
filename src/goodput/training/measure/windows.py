"""Step summaries for ranks above 0: a `window` record for about 10 s of steps, outliers in full.

Pure: step marks in, events out; no clock, no file. run.py drives it and writes what comes out.
"""

from typing import Final

import msgspec

from goodput.core.events import Event, Span, Step, StepEnd, Window

WINDOW_NS: Final = 10_000_000_000
"""A window closes at the first step boundary after this long: what a SIGKILL can cost a rank."""
OUTLIER_RATIO: Final = 1.5
"""A step this much longer than the running median is written in full (assumed)."""
OUTLIER_COST: Final = 10
"""On average at most one step in this many is written as an outlier; bursts of 10 are."""
MEDIAN_OVER: Final = 64
"""Steps that the running median looks back over; it is renewed at least every 16 steps."""
_ALLOWANCE_MOST: Final = 10 * OUTLIER_COST
_RENEW_EVERY: Final = 16
_WAITS_KEPT: Final = 16
_NO_LIMIT: Final = 1 << 63


class _Mark(msgspec.Struct, gc=False):
    """A step that has begun and is not accounted for yet."""

    n: int
    t: int
    m: int
    shape: str
    end_t: int = 0
    end_m: int = 0
    """Both clocks of its `step_end`; 0 = it had none."""
    comm: int = -1
    data: int = -1
    other: int = 0
    """Time in spans other than data and communication, ns."""
    waits: list[Span] | None = None
    """Its longest data spans, for the case that it turns out to be an outlier."""
    written: bool = False
    """Its `step` record is in the file already."""


class _Sums(msgspec.Struct, gc=False):
    """The open window. Its steps are first..last, without a gap, over [m, end_m)."""

    first: int
    t: int
    m: int
    last: int
    end_m: int
    work: int = -1
    comm: int = -1
    data: int = -1
    longest: int = 0


class StepWindows:
    """Turns step marks of one rank into `window` records and full records of outliers.

    The records partition the steps: each is in one window or has one `step` record. The first step
    is written when it begins, and a step that is cut off is written without an end. `flush` may be
    called from a signal handler in the middle of any other call.
    """

    def __init__(self) -> None:
        self.seen = 0
        """Steps accounted for so far."""
        self._mark: _Mark | None = None
        self._sums: _Sums | None = None
        self._durations: list[int] = []
        self._limit = _NO_LIMIT
        self._allowance = OUTLIER_COST

    def begin(self, n: int, t: int, m: int, shape: str = "") -> list[Event]:
        """What to write now that step `n` begins (both clocks, ns) and ends the one before."""
        before = self._mark
        out = [] if before is None else self._account(before, n, m)
        mark = _Mark(n, t, m, shape)
        if before is None and self.seen == 0:
            mark.written = True
            out.append(Step(t=t, m=m, n=n, shape=shape))
        self._mark = mark
        return out

    def end(self, n: int, t: int, m: int, comm: int) -> None:
        """Step `n` is complete; the next mark, or `flush`, accounts for it.

        Args:
            n: its number; ignored if another step is under way.
            t: wall clock, ns.
            m: monotonic clock, ns.
            comm: exposed communication inside it, ns; -1 = not measured.
        """
        mark = self._mark
        if mark is not None and mark.n == n:
            mark.end_t, mark.end_m = t, m
            if comm >= 0:
                mark.comm = comm

    def part(self, span: Span) -> bool:
        """Add a span to the step under way.

        Returns:
            True if the windows account for it, False if it must be written in full.
        """
        mark = self._mark
        if mark is None or span.background:
            return False
        if span.name == "data":
            mark.data = max(mark.data, 0) + span.d
            mark.waits = _longest([*(mark.waits or []), span])
            return True
        if span.name == "communication":
            mark.comm = max(mark.comm, 0) + span.d
            return True
        mark.other += span.d
        return False

    def abandon(self, n: int) -> list[Event]:
        """What to write now that step `n` raised: it counts in no window and gets no end."""
        mark = self._mark
        return self.flush() if mark is not None and mark.n == n else []

    def flush(self) -> list[Event]:
        """Everything that is not written yet; a step whose end is not known as a bare `step`."""
        mark, self._mark = self._mark, None
        out: list[Event] = []
        if mark is not None and mark.end_m:
            out = self._account(mark, mark.n + 1, mark.end_m)
            mark = None
        # A signal handler may come between a step's way into the window and the next mark.
        if mark is not None and self._sums is not None and self._sums.end_m > mark.m:
            mark = None
        out += self._take()
        if mark is not None:
            if not mark.written:
                out.append(Step(t=mark.t, m=mark.m, n=mark.n, shape=mark.shape))
            out += mark.waits or []
        self.seen = max(self.seen, 1)  # the next step is not the first of the process
        return out

    def _account(self, mark: _Mark, following: int, now_m: int) -> list[Event]:
        """Book the step under way, which lasted until its end or until now."""
        end_m = mark.end_m or now_m
        duration = end_m - mark.m
        covered = following - mark.n if following > mark.n else 1
        single = duration if covered == 1 else duration // covered
        self.seen += 1
        if mark.written or self._is_outlier(single):
            return self._in_full(mark, covered, duration)
        sums, out = self._sums, []
        if sums is not None and sums.last + 1 != mark.n:
            out, sums = self._take(), None
        if sums is None:
            last = mark.n + covered - 1
            sums = self._sums = _Sums(mark.n, mark.t, mark.m, last, end_m)
        else:
            sums.last, sums.end_m = mark.n + covered - 1, end_m
        sums.longest = max(sums.longest, single)
        if mark.comm >= 0:
            work = duration - mark.comm - max(mark.data, 0) - mark.other
            sums.work = max(sums.work, 0) + max(work, 0)
            sums.comm = max(sums.comm, 0) + mark.comm
        if mark.data >= 0:
            sums.data = max(sums.data, 0) + mark.data
        if end_m - sums.m >= WINDOW_NS:
            out += self._take()
        return out

    def _in_full(self, mark: _Mark, covered: int, duration: int) -> list[Event]:
        """The records of one step that is in no window."""
        out = self._take()
        if not mark.written:
            out.append(
                Step(
                    t=mark.t,
                    m=mark.m,
                    n=mark.n,
                    d=duration,
                    c=covered,
                    shape=mark.shape,
                    comm=max(mark.comm, 0),
                )
            )
        out += mark.waits or []
        if mark.written and mark.end_m:
            out.append(StepEnd(t=mark.end_t, m=mark.end_m, n=mark.n, comm=mark.comm))
        return out

    def _take(self) -> list[Event]:
        """Close the open window."""
        sums, self._sums = self._sums, None
        if sums is None:
            return []
        return [
            Window(
                t=sums.t,
                m=sums.m,
                first=sums.first,
                last=sums.last,
                steps=sums.last - sums.first + 1,
                d=sums.end_m - sums.m,
                work=sums.work,
                comm=sums.comm,
                data=sums.data,
                longest=sums.longest,
            )
        ]

    def _is_outlier(self, duration: int) -> bool:
        """Compare with the running median, then let it learn from this step."""
        recent = self._durations
        if len(recent) < MEDIAN_OVER:
            recent.append(duration)
            renew = len(recent) in {4, 8, 16, 32, 64}
        else:
            recent[self.seen % MEDIAN_OVER] = duration
            renew = self.seen % _RENEW_EVERY == 0
        outlier = duration > self._limit and self._allowance >= OUTLIER_COST
        if outlier:
            self._allowance -= OUTLIER_COST
        elif self._allowance < _ALLOWANCE_MOST:
            self._allowance += 1
        if renew:
            self._limit = int(OUTLIER_RATIO * sorted(recent)[len(recent) // 2])
        return outlier


def _longest(waits: list[Span]) -> list[Span]:
    """At most 16 spans, the longest ones."""
    if len(waits) > _WAITS_KEPT:
        waits.remove(min(waits, key=lambda span: span.d))
    return waits
