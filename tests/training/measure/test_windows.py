"""Step summaries: each step is in one record, sums are exact, outliers are written in full."""

from itertools import accumulate
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from goodput.core.events import Event, Span, Step, StepEnd, Window
from goodput.training.measure.windows import OUTLIER_RATIO, WINDOW_NS, StepWindows

MS = 1_000_000


class Told(NamedTuple):
    """One step as it happened."""

    n: int
    duration_ns: int
    data_ns: int
    comm_ns: int
    ended: bool


def tell(windows: StepWindows, steps: list[Told], at_ns: int = 0) -> list[Event]:
    """Feed steps one after the other and return all records, the last flush included."""
    out: list[Event] = []
    for step in steps:
        out += windows.begin(step.n, at_ns + 1, at_ns)
        if step.data_ns:
            span = Span(t=at_ns + 1, m=at_ns, name="data", d=step.data_ns)
            if not windows.part(span):
                out.append(span)
        at_ns += step.duration_ns
        if step.ended:
            windows.end(step.n, at_ns + 1, at_ns, step.comm_ns)
    return out + windows.flush()


def plain(count: int, duration_ns: int, first: int = 0) -> list[Told]:
    return [Told(first + i, duration_ns, 0, -1, ended=False) for i in range(count)]


def covered(record: Event) -> list[int]:
    """Steps that a record stands for."""
    if isinstance(record, Window):
        return list(range(record.first, record.last + 1))
    if isinstance(record, Step):
        return list(range(record.n, record.n + max(record.c, 1)))
    return []


def test_the_first_step_is_written_when_it_begins() -> None:
    assert StepWindows().begin(5, 10, 20, "long") == [Step(t=10, m=20, n=5, shape="long")]


def test_a_window_closes_at_the_first_step_boundary_after_ten_seconds() -> None:
    records = tell(StepWindows(), plain(30, 3_000 * MS))
    windows = [r for r in records if isinstance(r, Window)]
    assert [w.steps for w in windows] == [4] * 7
    assert all(WINDOW_NS <= w.d < WINDOW_NS + 3_000 * MS for w in windows)
    assert windows[0] == Window(
        t=3_000 * MS + 1, m=3_000 * MS, first=1, last=4, steps=4, d=12_000 * MS, longest=3_000 * MS
    )


def test_what_a_kill_can_cost_is_bounded_by_a_window_whatever_the_step_time() -> None:
    for duration_ns in (1 * MS, 700 * MS, 9_000 * MS, 60_000 * MS):
        windows, at_ns, unwritten = StepWindows(), 0, 0
        for n in range(200):
            written = windows.begin(n, at_ns, at_ns)
            unwritten = 0 if written else unwritten + duration_ns
            # The step under way is not over, the window before it is shorter than its limit.
            assert unwritten < WINDOW_NS + duration_ns
            at_ns += duration_ns


def test_an_outlier_is_written_in_full_with_its_waits_and_splits_the_window() -> None:
    steps = plain(40, 100 * MS)
    steps[20] = Told(20, 900 * MS, 700 * MS, 5 * MS, ended=True)
    records = tell(StepWindows(), steps)
    assert [type(r) for r in records] == [Step, Window, Step, Span, Window, Step]
    slow, wait = records[2], records[3]
    assert slow == Step(t=2_000 * MS + 1, m=2_000 * MS, n=20, d=900 * MS, c=1, comm=5 * MS)
    assert isinstance(wait, Span)
    assert wait.d == 700 * MS


def test_a_job_with_two_speeds_is_still_summarised() -> None:
    steps = [Told(i, 100 * MS if i % 3 else 300 * MS, 0, -1, ended=False) for i in range(1000)]
    records = tell(StepWindows(), steps)
    in_full = [r for r in records if isinstance(r, Step)]
    assert len(in_full) <= 1000 / 10 + 12
    longest = max(r.longest for r in records if isinstance(r, Window))
    assert longest == 300 * MS, "what is not written in full is visible in the window"


def test_a_step_that_raised_is_written_without_an_end_and_what_follows_counts_again() -> None:
    windows = StepWindows()
    out = []
    for n in range(4):
        out += windows.begin(n, n, n * MS)
    out += windows.abandon(3)
    out += windows.begin(3, 9, 9 * MS)
    out += windows.begin(4, 10, 10 * MS)
    out += windows.flush()
    assert [type(r) for r in out] == [Step, Window, Step, Window, Step]
    assert [covered(r) for r in out] == [[0], [1, 2], [3], [3], [4]]
    assert windows.abandon(77) == []


def test_a_rollback_inside_the_process_starts_a_new_window() -> None:
    steps = [*plain(6, 10 * MS), *plain(4, 10 * MS, first=3)]
    windows = [r for r in tell(StepWindows(), steps) if isinstance(r, Window)]
    assert [(w.first, w.last) for w in windows] == [(1, 5), (3, 5)]


def test_marks_at_every_tenth_step_stand_for_the_steps_up_to_the_next() -> None:
    steps = [Told(n, 100 * MS, 0, -1, ended=False) for n in range(0, 100, 10)]
    (window,) = [r for r in tell(StepWindows(), steps) if isinstance(r, Window)]
    assert (window.first, window.last, window.steps) == (10, 89, 80)
    assert window.longest == 10 * MS


def test_what_was_not_measured_is_not_zero() -> None:
    (window,) = [r for r in tell(StepWindows(), plain(5, MS)) if isinstance(r, Window)]
    assert (window.work, window.comm, window.data) == (-1, -1, -1)


def test_background_and_other_spans_are_left_to_the_file() -> None:
    windows = StepWindows()
    windows.begin(0, 0, 0)
    assert not windows.part(Span(t=0, m=0, name="data", d=5, background=True))
    assert not windows.part(Span(t=0, m=0, name="checkpoint", d=5))
    assert windows.part(Span(t=0, m=0, name="communication", d=5))


steps_strategy = st.lists(
    st.builds(
        lambda jump, duration, data, comm, ended: (jump, duration, data, comm, ended),
        st.sampled_from([1] * 12 + [2, 10, -3, 0]),
        st.sampled_from([MS, 2 * MS, 100 * MS, 4_000 * MS, 25_000 * MS]),
        st.integers(0, MS),
        st.sampled_from([-1, 0, 1000]),
        st.booleans(),
    ),
    min_size=1,
    max_size=120,
)


@given(steps_strategy)
def test_every_step_is_in_exactly_one_record_and_the_sums_are_exact(
    raw: list[tuple[int, int, int, int, bool]],
) -> None:
    steps: list[Told] = []
    n = 0
    for jump, duration, data, comm, ended in raw:
        n = max(n + jump, 0) if steps else 0
        steps.append(Told(n, duration, data, comm, ended))
    records = tell(StepWindows(), steps)
    told = []
    for step, after in zip(steps, [*steps[1:], None], strict=True):
        gap = 1 if after is None or after.n <= step.n else after.n - step.n
        told += list(range(step.n, step.n + gap))
    starts_m = list(accumulate((step.duration_ns for step in steps), initial=0))
    got: list[int] = []
    for record in records:
        got += covered(record)
        if isinstance(record, Step) and record.c == 0:  # open, or first: up to the next mark
            following = steps[starts_m.index(record.m) + 1 :][:1]
            got += [n for step in following for n in range(record.n + 1, step.n)]
    assert sorted(got) == sorted(told)
    for window in (r for r in records if isinstance(r, Window)):
        assert window.steps == window.last - window.first + 1
        assert 0 < window.longest <= window.d
        assert window.work <= window.d
    data = sum(max(r.data, 0) for r in records if isinstance(r, Window))
    data += sum(r.d for r in records if isinstance(r, Span))
    assert data == sum(s.data_ns for s in steps)
    times = [r.m for r in records if isinstance(r, Step | Window)]
    assert times == sorted(times)


@given(steps_strategy)
def test_a_flush_at_any_point_and_again_writes_nothing_twice(
    raw: list[tuple[int, int, int, int, bool]],
) -> None:
    windows, at_ns, out = StepWindows(), 0, []
    for n, (_, duration, _, _, ended) in enumerate(raw):
        out += windows.begin(n, at_ns, at_ns)
        at_ns += duration
        if ended:
            windows.end(n, at_ns, at_ns, -1)
            out += windows.flush()
            assert windows.flush() == []
    out += windows.flush()
    steps = [x for record in out for x in covered(record)]
    assert sorted(steps) == list(range(len(raw)))


def test_the_first_steps_end_is_written_and_the_ratio_is_what_it_says() -> None:
    windows = StepWindows()
    windows.begin(0, 1, 0)
    windows.end(0, 6, 5, 3)
    assert windows.begin(1, 7, 6) == [StepEnd(t=6, m=5, n=0, comm=3)]
    assert OUTLIER_RATIO == 1.5
