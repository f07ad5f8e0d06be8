"""Whose time it was: every class of the waterfall against a tick-by-tick count.

The jobs are recorded completely, a launcher with fault and notice included, so that nothing has to
be inferred but the ideal step time.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from job_oracle import View, classes, unambiguous
from job_simulator import Job
from job_strategies import jobs, tries
from job_writer import Recording, instant, write_job

from goodput.training.measure.ledger import Options, account
from goodput.training.measure.readers import read

pytestmark = pytest.mark.proof

windows = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 8)), max_size=3)
complete = st.builds(
    lambda commits, resumes, asides: Recording(commits=commits, resumes=resumes, asides=asides),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)


@tries(250)
@given(jobs(), complete, windows)
def test_every_class_is_what_a_count_of_ticks_finds(
    job: Job, how: Recording, exclude: list[tuple[int, int]]
) -> None:
    view = View(exclude=tuple((a, a + n) for a, n in exclude))
    assume(unambiguous(job, how, view))
    with TemporaryDirectory() as place:
        write_job(job, Path(place), how)
        log = read([place])
    windows_ns = tuple((instant(a, how), instant(b, how)) for a, b in view.exclude)
    ledger = account(log, Options(exclude=windows_ns, views=False))
    found = {x.name: x.amount for x in ledger.waterfall.losses}
    found |= {"useful": ledger.waterfall.useful, "excluded": ledger.excluded}
    expected = {k: v * how.tick_ns for k, v in classes(job, how, view).items()}
    assert {k: v for k, v in found.items() if v} == expected
