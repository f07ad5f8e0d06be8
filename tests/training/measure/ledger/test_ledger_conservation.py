"""What must hold for every job, however it went and however it was recorded."""

import tempfile
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from job_oracle import (
    NEVER,
    View,
    capacity,
    chips_at,
    excluded,
    known_attempts,
    launcher_goes_on,
    span_of_time,
)
from job_simulator import Job
from job_strategies import jobs, recordings, tries
from job_writer import Recording, instant, write_job

from goodput.training.measure.eventlog import EventLog
from goodput.training.measure.ledger import LOSS_FACTORS, Ledger, Options, account, keep_books
from goodput.training.measure.readers import read

pytestmark = pytest.mark.proof

moments = st.integers(0, 40)
windows = st.lists(st.tuples(moments, st.integers(0, 8)), max_size=3)


def recorded(job: Job, how: Recording) -> EventLog:
    with tempfile.TemporaryDirectory() as place:
        write_job(job, Path(place), how)
        return read([place])


def options_of(view: View, how: Recording, **more: object) -> Options:
    return Options(
        as_of_ns=instant(view.as_of, how) if view.as_of < NEVER else None,
        exclude=tuple((instant(a, how), instant(b, how)) for a, b in view.exclude),
        **more,  # type: ignore[arg-type]
    )


def check_sums(ledger: Ledger) -> None:
    """Everything that a ledger says twice, it says alike."""
    waterfall, factors = ledger.waterfall, ledger.factors
    assert waterfall.capacity == waterfall.useful + sum(x.amount for x in waterfall.losses)
    assert [x.name for x in waterfall.losses] == list(LOSS_FACTORS)
    for factor in (factors.scheduling, factors.runtime, factors.program, factors.goodput):
        assert 0 <= factor <= 1
    product = factors.scheduling * factors.runtime * factors.program
    assert product == pytest.approx(factors.goodput, abs=1e-12)
    if waterfall.capacity:
        assert factors.goodput == pytest.approx(waterfall.useful / waterfall.capacity, abs=1e-12)
    steps, saved = ledger.steps, ledger.saved
    assert steps.executed == steps.kept + steps.lost
    assert min(steps.kept, steps.lost, steps.at_risk) >= 0
    assert steps.at_risk <= steps.kept
    assert 0 <= saved.useful <= waterfall.useful
    if saved.goodput_fraction is not None and saved.runtime_fraction is not None:
        assert 0 <= saved.goodput_fraction <= factors.goodput
        assert 0 <= saved.runtime_fraction <= factors.runtime + 1e-12
    assert sum(a.kept_steps for a in ledger.attempts) == steps.kept
    assert sum(a.lost_steps for a in ledger.attempts) == steps.lost
    series = ledger.series
    assert sum(series.capacity) == waterfall.capacity
    assert sum(series.classes.get("excluded", ())) == ledger.excluded
    assert sum(series.classes["useful"]) == waterfall.useful
    for loss in waterfall.losses:
        assert sum(series.classes.get(loss.name, ())) == loss.amount


def queued_at_the_instant_of_a_start(job: Job, how: Recording, view: View) -> bool:
    """Before any allocation is known, one instant cannot be both: the start is believed."""
    known = [h for h in job.holdings if h[0] < view.as_of]
    allocated = any(not queued for _, _, queued in known)
    starts = {a.start for a in job.attempts}
    return how.chips and not allocated and any(at in starts for at, _, _ in known)


@tries(150)
@given(jobs(), recordings, moments, windows)
def test_capacity_is_the_chips_over_time_and_every_part_of_it_has_one_class(
    job: Job, how: Recording, ago: int, exclude: list[tuple[int, int]]
) -> None:
    as_of = max(job.lived_until - ago, job.attempts[0].start) + 1 if ago else NEVER
    view = View(as_of, tuple((a, a + n) for a, n in exclude))
    assume(not launcher_goes_on(job, how, view))
    assume(not queued_at_the_instant_of_a_start(job, how, view))
    ledger = account(recorded(job, how), options_of(view, how))
    check_sums(ledger)
    assert ledger.waterfall.capacity == capacity(job, how, view) * how.tick_ns
    low, high = span_of_time(job, how, view)
    assert (ledger.started_at_ns, ledger.ended_at_ns) == (instant(low, how), instant(high, how))
    out = sum(chips_at(job, t, how, view) for t in range(low, high) if excluded(t, view))
    assert ledger.excluded == out * how.tick_ns


@tries(100)
@given(jobs(), recordings, st.lists(moments, max_size=6), windows)
def test_parts_of_time_add_up(
    job: Job, how: Recording, cuts: list[int], exclude: list[tuple[int, int]]
) -> None:
    view = View(exclude=tuple((a, a + n) for a, n in exclude))
    log = recorded(job, how)
    books = keep_books(log, options_of(view, how))
    low, high = books.plan.start_ns, books.plan.end_ns
    edges = sorted({low, high, *(min(max(instant(c, how) + 7, low), high) for c in cuts)})
    whole = books.totals(low, high)
    parts = books.windows(edges)
    assert len(parts) == len(edges) - 1
    assert summed(parts) == nonzero(whole)
    beyond = books.windows([low - 5, *edges, high + 5])
    assert summed(beyond) == nonzero(whole)
    for a, b in pairwise(edges):
        part = account(log, options_of(view, how, window=(a, b), views=False))
        assert part.waterfall.capacity + part.excluded == sum(books.totals(a, b).values())


@tries(100)
@given(jobs(), recordings)
def test_attempts_and_the_time_before_them_are_the_whole(job: Job, how: Recording) -> None:
    log = recorded(job, how)
    ledger = account(log)
    books = keep_books(log)
    before = books.totals(ledger.started_at_ns, books.plan.trials[0].started_at_ns)
    for name in ("capacity", "useful"):
        each = [getattr(a.waterfall, name) for a in ledger.attempts]
        first = sum(before.values()) if name == "capacity" else before.get("useful/", 0)
        assert first + sum(each) == getattr(ledger.waterfall, name)
    for loss in ledger.waterfall.losses:
        first = sum(v for k, v in before.items() if k.split("/")[0] == loss.name)
        assert first + sum(a.waterfall.loss(loss.name) for a in ledger.attempts) == loss.amount
    assert len(ledger.attempts) == len(known_attempts(job, View()))
    for attempt in ledger.attempts:
        assert account(log, Options(attempt=attempt.key)).waterfall == attempt.waterfall


@tries(100)
@given(jobs(), recordings)
def test_ranks_and_the_time_before_them_are_the_whole(job: Job, how: Recording) -> None:
    log = recorded(job, how)
    books = keep_books(log)
    low, high = books.plan.start_ns, books.plan.end_ns
    whole = books.totals(low, high)
    before = books.totals(low, books.plan.trials[0].started_at_ns)
    world = max(t.world for t in books.plan.trials)
    each = [books.totals(low, high, rank=rank) for rank in range(world)]
    assert summed([before, *each]) == nonzero(whole)
    ledger = account(log)
    for row in ledger.ranks:
        assert row.waterfall.capacity == sum(each[row.rank].values())
        alone = account(log, Options(rank=row.rank))
        assert alone.waterfall == row.waterfall


def summed(rows: list[dict[str, int]]) -> dict[str, int]:
    out: dict[str, int] = {}
    for row in rows:
        for name, amount in row.items():
            out[name] = out.get(name, 0) + amount
    return nonzero(out)


def nonzero(row: dict[str, int]) -> dict[str, int]:
    return {name: amount for name, amount in row.items() if amount}
