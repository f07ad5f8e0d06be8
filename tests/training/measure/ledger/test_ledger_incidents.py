"""The bill of every interruption: together they are what the waterfall lost to interruptions."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import assume, given
from job_simulator import Job
from job_strategies import PROGRESS, jobs, recordings, tries
from job_writer import Recording, instant, write_job

from goodput.training.measure.ledger import Ledger, account
from goodput.training.measure.readers import read

pytestmark = pytest.mark.proof


def ledger_of(job: Job, how: Recording) -> Ledger:
    with TemporaryDirectory() as place:
        write_job(job, Path(place), how)
        return account(read([place]))


def restarts(ledger: Ledger) -> int:
    startup = next(x for x in ledger.waterfall.losses if x.name == "startup")
    return sum(p.amount for p in startup.parts if "restart" in p.name)


@tries(150)
@given(jobs(worlds=(1,), what=(*PROGRESS, "evaluation", "over")), recordings)
def test_incidents_add_up_to_what_was_lost_to_them(job: Job, how: Recording) -> None:
    """One rank on one chip, so that time is chip-time."""
    last = job.attempts[-1]
    how = how._replace(chips=False, launcher=how.launcher or not last.clean)
    # A rollback in place is seen by the step that follows it.
    taken = max([0, *(e.begin for e in last.executions)])
    assume(all(tick <= taken for tick, _ in last.backs))
    ledger = ledger_of(job, how)
    bill = ledger.incidents
    loss = ledger.waterfall.loss
    assert sum(i.detection_ns for i in bill) == loss("detection")
    assert sum(i.recovery_ns for i in bill) == loss("recovery")
    assert sum(i.rework_ns for i in bill) == loss("rework")
    assert sum(i.restart_ns for i in bill) == restarts(ledger)
    assert sum(i.cost_chip_ns for i in bill) == sum(
        i.detection_ns + i.recovery_ns + i.restart_ns + i.rework_ns for i in bill
    )
    assert [i.number for i in bill] == list(range(1, len(bill) + 1))


@tries(100)
@given(jobs(what=PROGRESS), recordings)
def test_an_incident_says_when_and_of_what(job: Job, how: Recording) -> None:
    ledger = ledger_of(job, how._replace(launcher=True))
    ends = [i for i in ledger.incidents if i.cause != "rolled back"]
    expected = [a for a in job.attempts if not a.clean or a is not job.attempts[-1]]
    assert [i.attempt for i in ends] == [a.key for a in expected]
    for incident, attempt in zip(ends, expected, strict=True):
        assert incident.planned == attempt.clean
        if not attempt.clean:
            assert incident.noticed_at_ns == instant(attempt.noticed, how)
            assert incident.provenance == "recorded"
        following = [a.start for a in job.attempts if a.number == attempt.number + 1]
        assert incident.resumed_at_ns == (instant(following[0], how) if following else 0)
    inside = [i for i in ledger.incidents if i.cause == "rolled back"]
    taken = [b for a in job.attempts for b in a.backs]
    assert len(inside) <= len(taken)
