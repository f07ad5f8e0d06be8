"""Step summaries for ranks above 0: a `window` record for about 10 s of steps, outliers in full.

Pure: step marks in, events out; no clock, no file. recorder.py drives it and writes what comes out.
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


class _Mark(msgspec.Struct, gc=False):
    """A step that has begun and is not accounted for yet."""

    n: int
    t: int
    m: int
    shape: str
    written: bool
    """Its `step` record is in the file already."""
    end_t: int = 0
    end_m: int = 0
    """Both clocks of its `step_end`; 0 = it had none."""
    comm: int = -1
    data: int = -1
    other: int = 0
    """Time in spans other than data and communication, ns."""
    waits: list[Span] = []
    """Its longest data spans, for the case that it turns out to be an outlier."""


class _State(msgspec.Struct, frozen=True):
    """All that is pending. Replaced in one assignment: a signal handler may flush at any point."""

    mark: _Mark | None = None
    window: Window | None = None


class StepWindows:
    """Turns step marks of one rank into `window` records and full records of outliers.

    The records partition the steps: each is in one window or has one `step` record. The first step
    is written when it begins, and a step that is cut off is written without an end.
    """

    def __init__(self) -> None:
        self._state = _State()
        self._durations: list[int] = []
        self._seen = 0
        self._median = 0
        self._allowance = OUTLIER_COST

    @property
    def seen(self) -> int:
        """Steps accounted for so far."""
        return self._seen

    def begin(self, n: int, t: int, m: int, shape: str = "") -> list[Event]:
        """What to write now that step `n` begins (both clocks, ns) and ends the one before."""
        state = self._state
        first = state.mark is None and self._seen == 0
        window, out = self._account(state, n, m)
        self._state = _State(_Mark(n, t, m, shape, first), window)
        if first:
            out.append(Step(t=t, m=m, n=n, shape=shape))
        return out

    def end(self, n: int, t: int, m: int, comm: int) -> None:
        """Step `n` is complete; the next mark, or `flush`, accounts for it.

        Args:
            n: its number; ignored if another step is under way.
            t: wall clock, ns.
            m: monotonic clock, ns.
            comm: exposed communication inside it, ns; -1 = not measured.
        """
        mark = self._state.mark
        if mark is not None and mark.n == n:
            mark.end_t, mark.end_m = t, m
            if comm >= 0:
                mark.comm = comm

    def part(self, span: Span) -> bool:
        """Add a span to the step under way.

        Returns:
            True if the windows account for it, False if it must be written in full.
        """
        mark = self._state.mark
        if mark is None or span.background:
            return False
        if span.name == "data":
            mark.data = max(mark.data, 0) + span.d
            mark.waits.append(span)
            if len(mark.waits) > _WAITS_KEPT:
                mark.waits.remove(min(mark.waits, key=_length))
            return True
        if span.name == "communication":
            mark.comm = max(mark.comm, 0) + span.d
            return True
        mark.other += span.d
        return False

    def abandon(self, n: int) -> list[Event]:
        """What to write now that step `n` raised: it counts in no window and gets no end."""
        mark = self._state.mark
        return self.flush() if mark is not None and mark.n == n else []

    def flush(self) -> list[Event]:
        """Everything that is not written yet; a step whose end is not known as a bare `step`."""
        state = self._state
        self._state = _State()
        self._seen = max(self._seen, 1)  # the next step is not the first of the process
        mark = state.mark
        if mark is not None and mark.end_m:
            window, out = self._account(state, mark.n + 1, mark.end_m)
            return [*out, *_take(window)]
        out = _take(state.window)
        if mark is not None:
            if not mark.written:
                out.append(Step(t=mark.t, m=mark.m, n=mark.n, shape=mark.shape))
            out += mark.waits
        return out

    def _account(
        self, state: _State, following: int, now_m: int
    ) -> tuple[Window | None, list[Event]]:
        """Book the step under way, which lasted until its end or until now."""
        mark, window = state.mark, state.window
        if mark is None:
            return window, []
        covered = max(following - mark.n, 1)
        duration = (mark.end_m or now_m) - mark.m
        if mark.written:
            self._seen += 1
            ended = [StepEnd(t=mark.end_t, m=mark.end_m, n=mark.n)] if mark.end_m else []
            return None, [*_take(window), *mark.waits, *ended]
        if self._is_outlier(duration // covered):
            step = Step(
                t=mark.t,
                m=mark.m,
                n=mark.n,
                d=duration,
                c=covered,
                shape=mark.shape,
                comm=max(mark.comm, 0),
            )
            return None, [*_take(window), step, *mark.waits]
        out: list[Event] = []
        if window is not None and window.last + 1 != mark.n:
            window, out = None, _take(window)
        window = _extended(window, mark, covered, duration)
        if window.d >= WINDOW_NS:
            return None, [*out, *_take(window)]
        return window, out

    def _is_outlier(self, duration: int) -> bool:
        """Compare with the running median, then let it learn from this step."""
        outlier = 0 < OUTLIER_RATIO * self._median < duration and self._allowance >= OUTLIER_COST
        self._allowance = min(self._allowance + 1, _ALLOWANCE_MOST)
        if outlier:
            self._allowance -= OUTLIER_COST
        recent = self._durations
        if len(recent) < MEDIAN_OVER:
            recent.append(duration)
        else:
            recent[self._seen % MEDIAN_OVER] = duration
        self._seen += 1
        count = len(recent)
        if count in {4, 8} or self._seen % _RENEW_EVERY == 0:
            self._median = sorted(recent)[count // 2]
        return outlier


def _extended(window: Window | None, mark: _Mark, covered: int, duration: int) -> Window:
    """The window with one more step; work is known where communication is."""
    inside = mark.comm + max(mark.data, 0) + mark.other
    work = max(duration - inside, 0) if mark.comm >= 0 else -1
    longest = duration // covered
    if window is None:
        return Window(
            t=mark.t,
            m=mark.m,
            first=mark.n,
            last=mark.n + covered - 1,
            steps=covered,
            d=duration,
            work=work,
            comm=mark.comm,
            data=mark.data,
            longest=longest,
        )
    return Window(
        t=window.t,
        m=window.m,
        first=window.first,
        last=mark.n + covered - 1,
        steps=window.steps + covered,
        d=mark.m + duration - window.m,
        work=_plus(window.work, work),
        comm=_plus(window.comm, mark.comm),
        data=_plus(window.data, mark.data),
        longest=max(window.longest, longest),
    )


def _plus(total: int, more: int) -> int:
    """Sum of two amounts of which -1 means "not measured"."""
    return total if more < 0 else more if total < 0 else total + more


def _take(window: Window | None) -> list[Event]:
    return [] if window is None else [window]


def _length(span: Span) -> int:
    return span.d
