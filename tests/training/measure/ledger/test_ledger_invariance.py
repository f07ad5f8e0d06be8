"""What must not change the account: names, order, clocks, units, records that say nothing new."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from job_simulator import Job
from job_strategies import jobs, recordings, tries
from job_writer import ORIGIN_NS, Recording, write_job

from goodput.training.measure.ledger import Ledger, Options, account
from goodput.training.measure.readers import read

pytestmark = pytest.mark.proof


def ledger_of(job: Job, how: Recording) -> Ledger:
    with TemporaryDirectory() as place:
        write_job(job, Path(place), how)
        return account(read([place]), Options(windows=7))


def numbers(ledger: Ledger) -> dict[str, object]:
    """All that a ledger says of the job, without names of files."""
    values = {name: getattr(ledger, name) for name in ledger.__struct_fields__}
    return {name: value for name, value in values.items() if name not in {"sources", "notes"}}


def amounts(ledger: Ledger) -> dict[str, int]:
    named = {x.name: x.amount for x in ledger.waterfall.losses}
    return named | {"useful": ledger.waterfall.useful, "excluded": ledger.excluded}


@tries(60)
@given(jobs(), recordings, st.integers(1, 99))
def test_names_of_files_mean_nothing(job: Job, how: Recording, seed: int) -> None:
    assert numbers(ledger_of(job, how)) == numbers(ledger_of(job, how._replace(rename=seed)))


@tries(60)
@given(jobs(wait=1), recordings, st.integers(1, 99))
def test_the_order_of_lines_means_nothing(job: Job, how: Recording, seed: int) -> None:
    """The clock orders them: what happened in one tick may be told either way."""
    assume(how.closed)
    straight, shuffled = ledger_of(job, how), ledger_of(job, how._replace(shuffle=seed))
    assert numbers(straight) == numbers(shuffled)


@tries(60)
@given(jobs(worlds=(3,)), recordings, st.permutations((0, 1, 2)))
def test_ranks_may_be_numbered_in_any_way(job: Job, how: Recording, order: list[int]) -> None:
    """Chips are a multiple of the ranks here, so that no rank holds one more than another.

    All record or only one: with two equal ones, the lower is asked for the silent one's time.
    """
    assume(len(how.ranks) != 2)
    assume(all(chips % 3 == 0 for _, chips, _ in job.holdings))
    one, two = ledger_of(job, how), ledger_of(job, how._replace(relabel=(*order, 3)))
    assert one.waterfall == two.waterfall
    assert one.factors == two.factors
    assert one.saved == two.saved
    for name in ("executed", "kept", "lost", "at_risk", "last_step", "ideal_step_ns"):
        assert getattr(one.steps, name) == getattr(two.steps, name)
    assert [(a.kept_steps, a.lost_steps, a.waterfall) for a in one.attempts] == [
        (a.kept_steps, a.lost_steps, a.waterfall) for a in two.attempts
    ]
    by_rank = {row.rank: row.waterfall for row in two.ranks}
    assert {order[row.rank]: row.waterfall for row in one.ranks} == by_rank


@tries(60)
@given(jobs(), recordings, st.integers(-(10**9), 10**9))
def test_when_a_job_runs_means_nothing(job: Job, how: Recording, shift: int) -> None:
    one, two = ledger_of(job, how), ledger_of(job, how._replace(origin_ns=ORIGIN_NS + shift))
    assert one.waterfall == two.waterfall
    assert one.steps == two.steps
    assert one.started_at_ns + shift == two.started_at_ns
    assert one.ended_at_ns + shift == two.ended_at_ns
    for a, b in zip(one.incidents, two.incidents, strict=True):
        assert a.at_ns + shift == b.at_ns
        assert (a.cost_chip_ns, a.rework_steps) == (b.cost_chip_ns, b.rework_steps)


@tries(60)
@given(jobs(), recordings, st.integers(2, 9))
def test_in_other_units_of_time_all_amounts_scale(job: Job, how: Recording, factor: int) -> None:
    one, two = ledger_of(job, how), ledger_of(job, how._replace(tick_ns=how.tick_ns * factor))
    assert one.waterfall.capacity * factor == two.waterfall.capacity
    assert one.waterfall.useful * factor == two.waterfall.useful
    for a, b in zip(one.waterfall.losses, two.waterfall.losses, strict=True):
        assert a.amount * factor == b.amount, a.name
    assert one.steps.ideal_step_ns * factor == two.steps.ideal_step_ns
    assert one.steps.kept == two.steps.kept
    assert one.saved.useful * factor == two.saved.useful


@tries(60)
@given(jobs(), recordings)
def test_what_runs_in_the_background_costs_nothing(job: Job, how: Recording) -> None:
    """A last sign of life apart: who writes more is known to live longer."""
    assume(job.ended_at is not None or job.attempts[-1].clean)
    one, two = ledger_of(job, how), ledger_of(job, how._replace(asides=False))
    assert amounts(one) == amounts(two)
    assert one.steps == two.steps


@tries(60)
@given(jobs(), recordings, st.lists(st.integers(0, 30), min_size=1, max_size=3))
def test_a_wall_clock_that_steps_back_changes_nothing(
    job: Job, how: Recording, steps: list[int]
) -> None:
    """All processes share a kernel, so the first to see the clock anchors the others."""
    how = how._replace(monotonic=True)
    first = min([job.attempts[0].start, *(t for t, _, _ in job.holdings)])
    at = tuple(t + first + 1 for t in steps)
    # The launcher's clock when the fault was is known only if it did not step before the notice.
    assume(not any(a.end < t <= a.noticed for a in job.attempts for t in at))
    stepped = how._replace(wall_steps=at)
    assert numbers(ledger_of(job, how)) == numbers(ledger_of(job, stepped))


@tries(60)
@given(jobs(), recordings)
def test_a_record_in_two_files_is_one_record(job: Job, how: Recording) -> None:
    """Steps that are closed: a bare mark is closed by the next one in its own file only."""
    how = how._replace(closed=True)
    one, two = ledger_of(job, how), ledger_of(job, how._replace(unsplit=False))
    assert amounts(one) == amounts(two)
    assert one.steps == two.steps


@tries(60)
@given(jobs(), recordings)
def test_unknown_fields_and_kinds_change_nothing(job: Job, how: Recording) -> None:
    with TemporaryDirectory() as place:
        folder = Path(place)
        write_job(job, folder, how)
        one = account(read([folder]))
        for file in folder.iterdir():
            lines = [json.loads(line) for line in file.read_text().splitlines()]
            richer = [line | {"colour": [1, {"x": None}]} for line in lines]
            alien = {"k": "hologram", "t": lines[-1]["t"], "depth": 3}
            text = "".join(json.dumps(line) + "\n" for line in [*richer, alien])
            file.write_text(text)
        two = account(read([folder]))
    assert numbers(one) == numbers(two)
    assert any("hologram" in note.text for note in two.notes)


@tries(60)
@given(jobs(wait=1), recordings)
def test_attempts_can_be_told_apart_without_keys(job: Job, how: Recording) -> None:
    """Rank 0 records in every attempt, so each begins where it starts again."""
    how = how._replace(launcher=False)
    one, two = ledger_of(job, how), ledger_of(job, how._replace(keys=False))
    assert [a.key for a in two.attempts] == [f"#{n}" for n in range(1, len(one.attempts) + 1)]
    assert one.waterfall == two.waterfall
    assert one.steps == two.steps
    assert [(i.at_ns, i.cost_chip_ns) for i in one.incidents] == [
        (i.at_ns, i.cost_chip_ns) for i in two.incidents
    ]
