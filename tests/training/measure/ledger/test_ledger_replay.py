"""Which steps were kept: the ledger against a job that carried its own state along."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from job_oracle import NEVER, View, final_state, known_attempts, saved_state, unambiguous
from job_simulator import Job
from job_strategies import PROGRESS, jobs, recordings, tries
from job_writer import Recording, instant, write_job

from goodput.training.measure.ledger import Options, keep_books
from goodput.training.measure.ledger.account import account
from goodput.training.measure.ledger.books import Books
from goodput.training.measure.readers import read

pytestmark = pytest.mark.proof


def kept_executions(books: Books) -> set[tuple[str, int, int]]:
    """(attempt, step, Unix ns of its begin) of each step that the lead rank's record shows kept."""
    out = set()
    for trial, shares in zip(books.plan.trials, books.shares, strict=True):
        for share in shares:
            painted = share.measured.painted
            if share.rank != trial.lead or painted.stream is None:
                continue
            kept = painted.steps.kept > 0
            n = painted.stream.n[painted.steps.row][kept].tolist()
            start = painted.stream.start[painted.steps.row][kept].tolist()
            out |= {(trial.key, *pair) for pair in zip(n, start, strict=True)}
    return out


def in_state(job: Job, state: tuple[int, ...], how: Recording) -> set[tuple[str, int, int]]:
    runs = [job.executions[i] for i in state]
    return {(f"a{r.attempt}", r.n, instant(r.begin, how)) for r in runs}


@tries(200)
@given(jobs(), recordings, st.integers(0, 60))
def test_kept_steps_are_those_in_the_final_state(job: Job, how: Recording, ago: int) -> None:
    check(job, how, ago)


@tries(300)
@given(jobs(what=PROGRESS, worlds=(1,), at_most=6), recordings, st.integers(0, 60))
def test_long_histories_too(job: Job, how: Recording, ago: int) -> None:
    check(job, how, ago)


def check(job: Job, how: Recording, ago: int) -> None:
    """Compare with the replay, all of it or as it was known some ticks before the end."""
    view = View(as_of=max(job.lived_until - ago, job.attempts[0].start) + 1 if ago else NEVER)
    assume(unambiguous(job, how, view))
    with tempfile.TemporaryDirectory() as place:
        write_job(job, Path(place), how)
        as_of = instant(view.as_of, how) if ago else None
        log = read([place])
    books = keep_books(log, Options(as_of_ns=as_of))
    state = final_state(job, how, view)
    assert kept_executions(books) == in_state(job, state, how)
    ledger = account(log, Options(as_of_ns=as_of))
    assert ledger.steps.kept == len(state)
    assert ledger.steps.last_step == len(state) - 1
    assert ledger.steps.kept <= ledger.steps.executed
    if ledger.saved.persistence == "known" and (how.commits or took_a_step(job, view)):
        assert ledger.steps.at_risk == len(state) - len(saved_state(job, how, view))
    assert {a.key: a.kept_steps for a in ledger.attempts} == {
        a.key: sum(1 for i in state if job.executions[i].attempt == a.number)
        for a in known_attempts(job, view)
    }


def took_a_step(job: Job, view: View) -> bool:
    """Whether every state that was restored is shown by a step that a new process took from it."""
    attempts = known_attempts(job, view)
    begun = [min([NEVER, *(e.begin for e in a.executions)]) for a in attempts]
    return max(begun) < view.as_of and not any(a.backs for a in attempts)
