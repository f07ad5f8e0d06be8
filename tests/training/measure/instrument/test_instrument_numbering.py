"""Numbers of steps from evidence: which source wins, and what holds for any order of evidence."""

from hypothesis import given
from hypothesis import strategies as st

from goodput.training.measure.instrument.numbering import (
    COUNTER,
    OPTIMIZER,
    RECORD,
    START,
    UNKNOWN,
    Evidence,
    Numbering,
)


def test_without_evidence_steps_start_at_0() -> None:
    numbering = Numbering()
    assert numbering.check(None) is None
    assert numbering.begun() == Evidence(0, START)
    assert (numbering.completed(), numbering.completed()) == (0, 1)
    assert numbering.last_step == 1


def test_a_record_of_this_job_beats_the_optimizers_count() -> None:
    numbering = Numbering()
    assert numbering.loaded(Evidence(12, RECORD, "a")) == Evidence(12, RECORD, "a")
    assert numbering.restored(10) is None
    assert numbering.check(10) is None
    assert numbering.begun().next_step == 12


def test_the_optimizers_count_beats_a_counter_in_the_checkpoint() -> None:
    numbering = Numbering()
    assert numbering.loaded(Evidence(12, COUNTER, "a")) == Evidence(12, COUNTER, "a")
    assert numbering.restored(10) == Evidence(10, OPTIMIZER, "a")
    assert numbering.begun().source == OPTIMIZER


def test_a_restart_that_is_not_recognised_is_known_as_such() -> None:
    numbering = Numbering()
    assert numbering.loaded(Evidence(0, UNKNOWN, "a")) is None
    assert numbering.restored(None) is None
    assert numbering.begun() == Evidence(0, UNKNOWN, "a")


def test_after_the_first_step_only_a_restored_optimizer_rolls_back() -> None:
    numbering = Numbering()
    for _ in range(5):
        numbering.completed()
    assert numbering.loaded(Evidence(2, RECORD, "a")) is None
    assert numbering.next_step == 5
    assert numbering.restored(None) == Evidence(2, RECORD, "a")
    assert numbering.completed() == 2


def test_a_load_counts_only_for_the_step_it_was_made_in() -> None:
    numbering = Numbering()
    numbering.completed()
    numbering.loaded(Evidence(0, RECORD, "a"))
    numbering.completed()
    assert numbering.restored(None) is None
    assert numbering.next_step == 2


def test_the_users_counter_is_not_overruled() -> None:
    numbering = Numbering()
    assert numbering.given(7) is None
    assert numbering.loaded(Evidence(2, RECORD, "a")) is None
    assert numbering.check(3) is None
    assert numbering.completed() == 7
    assert numbering.given(9) is None  # forward: no rollback
    assert numbering.given(4) is not None
    assert numbering.completed() == 4


evidence = st.builds(
    Evidence, st.integers(0, 50), st.sampled_from([RECORD, COUNTER, OPTIMIZER]), st.just("p")
)


@given(st.lists(evidence, max_size=5), st.integers(1, 5))
def test_before_the_first_step_the_most_trusted_evidence_decides(
    loads: list[Evidence], steps: int
) -> None:
    numbering = Numbering()
    for each in loads:
        numbering.loaded(each)
    belief = [COUNTER, OPTIMIZER, RECORD]
    best = max(loads, key=lambda e: (belief.index(e.source), loads.index(e)), default=None)
    if best is not None:
        trusted = [e for e in loads if e.source == best.source]
        assert numbering.next_step in {e.next_step for e in trusted}
    first = numbering.next_step
    assert [numbering.completed() for _ in range(steps)] == list(range(first, first + steps))
