"""Whose steps are in the final state: histories in which an easier rule would be wrong."""

from pathlib import Path

from told import S, closed, event, header, kept, ledger_of, marks, step


def test_a_clean_end_counts_the_open_step_and_a_resume_below_it_loses_it(tmp_path: Path) -> None:
    ledger = ledger_of(
        tmp_path,
        [header(pid=1), *marks(0, *range(6)), event("process_end", 6)],
        [header(10, pid=2), step(10, 5), event("process_end", 11)],
    )
    assert kept(ledger) == [5, 1]
    assert ledger.waterfall.loss("rework") == S


def test_what_was_lost_stays_lost_while_the_next_attempt_starts(tmp_path: Path) -> None:
    first = [header(pid=1, attempt="a"), *marks(0, *range(9)), event("committed", 5, last_step=4)]
    watcher = [
        header(0, role="launcher"),
        event("attempt_end", 10, attempt="a", outcome="failed"),
    ]
    begun = header(20, pid=2, attempt="b")
    assert ledger_of(tmp_path, first, watcher).steps.kept == 5
    assert ledger_of(tmp_path, first, watcher, [begun]).steps.kept == 5
    assert ledger_of(tmp_path, first, watcher, [begun, *marks(25, 5, 6)]).steps.kept == 6


def test_a_checkpoint_proves_that_its_last_step_was_finished(tmp_path: Path) -> None:
    told = [header(), *marks(0, *range(10)), event("committed", 5, last_step=4)]
    told.append(event("committed", 11, last_step=9))
    running = ledger_of(tmp_path, told)
    assert (running.steps.kept, running.steps.at_risk) == (10, 0)
    failed = ledger_of(tmp_path, [*told, event("process_end", 12, outcome="failed")])
    assert (failed.steps.kept, failed.steps.last_step) == (10, 9)


def test_a_rollback_that_no_step_followed_counts(tmp_path: Path) -> None:
    told = [header(), *closed(0, *range(6)), event("committed", 3.5, last_step=2)]
    told += [event("resumed", 7, next_step=3), event("process_end", 8)]
    assert ledger_of(tmp_path, told).steps.kept == 3


def test_the_live_state_is_the_last_attempts_own(tmp_path: Path) -> None:
    """The first one saved the same step, but the second never loaded it."""
    first = [header(pid=1), *marks(0, *range(10)), event("committed", 10, last_step=9)]
    second = [header(20, pid=2), *marks(20, *range(10)), event("process_end", 30)]
    assert kept(ledger_of(tmp_path, [*first, step(11, 10)], second)) == [0, 10]


def test_a_declared_resume_reaches_back_over_a_branch(tmp_path: Path) -> None:
    ledger = ledger_of(
        tmp_path,
        [header(pid=1), *marks(0, *range(21)), event("committed", 20, last_step=19)],
        [header(30, pid=2), *marks(30, *range(7))],
        [header(40, pid=3), event("resumed", 41, next_step=20)],
    )
    assert kept(ledger) == [20, 0, 0]


def test_a_declared_resume_proves_the_open_step(tmp_path: Path) -> None:
    ledger = ledger_of(
        tmp_path,
        [header(pid=1), *marks(0, *range(10))],
        [header(40, pid=2), event("resumed", 41, next_step=10)],
    )
    assert ledger.steps.kept == 10


def test_a_clean_ends_state_outlives_a_failed_start(tmp_path: Path) -> None:
    first = [header(pid=1, attempt="a"), *marks(0, *range(8)), event("committed", 5, last_step=4)]
    first.append(event("process_end", 8))
    begun = [header(20, pid=2, attempt="b")]
    assert ledger_of(tmp_path, first, begun).steps.kept == 8
    failed = [*begun, event("process_end", 21, outcome="failed")]
    assert ledger_of(tmp_path, first, failed).steps.kept == 8


def test_a_checkpoint_from_before_a_rollback_does_not_save_what_came_after(tmp_path: Path) -> None:
    told = [header(), *marks(0, 0, 1, 2), event("committed", 3, last_step=2)]
    told += [*marks(3, 3, 4, 5, 6), event("committed", 6, last_step=5)]
    told += [event("resumed", 10, next_step=3), *marks(11, 3, 4, 5, 6, 7)]
    ledger = ledger_of(tmp_path, told)
    assert (ledger.steps.kept, ledger.steps.at_risk) == (7, 4)


def test_a_restored_state_saved_again_outside_the_line_saves_nothing_in_it(tmp_path: Path) -> None:
    ledger = ledger_of(
        tmp_path,
        [header(pid=1), *marks(0, *range(5)), event("committed", 5, last_step=4), step(5, 5)],
        [header(10, pid=2), step(11, 5), event("committed", 11, last_step=4), step(12, 6)],
        [header(20, pid=3), *marks(20, *range(6))],
    )
    assert kept(ledger) == [0, 0, 5]
    assert ledger.steps.at_risk == 5


def test_the_last_word_on_the_end_of_the_job_counts(tmp_path: Path) -> None:
    first = [header(pid=1), *marks(0, 0, 1), event("committed", 2, last_step=0)]
    first += [event("process_end", 2, outcome="failed"), event("ended", 2, outcome="failed")]
    second = [header(10, pid=2), *marks(10, 1, 2, 3), event("process_end", 13), event("ended", 13)]
    ledger = ledger_of(tmp_path, first, second)
    assert (ledger.state, ledger.steps.kept) == ("completed", 4)


def test_a_job_that_was_started_again_is_not_over(tmp_path: Path) -> None:
    first = [header(pid=1), *marks(0, 0, 1), event("process_end", 2), event("ended", 2)]
    ledger = ledger_of(tmp_path, first, [header(10, pid=2), *marks(10, 2, 3, 4)])
    assert ledger.state == "unknown"
    assert ledger.steps.kept == 4


def test_who_saved_a_state_is_where_it_came_from(tmp_path: Path) -> None:
    """The second attempt ran the same steps later, but only the first one saved step 4."""
    ledger = ledger_of(
        tmp_path,
        [header(pid=1), *marks(0, *range(8)), event("committed", 5, last_step=4)],
        [header(10, pid=2), *marks(10, *range(9))],
        [header(20, pid=3), *marks(20, 5, 6), event("process_end", 22)],
    )
    assert kept(ledger) == [5, 0, 2]


def test_every_rollback_is_on_the_bill_of_the_restart_that_made_it(tmp_path: Path) -> None:
    """Ten steps; back to 8, one step; back to 3: the first step 8 and 9 went first."""
    ledger = ledger_of(
        tmp_path,
        [header(pid=1), *closed(0, *range(10))],
        [header(20, pid=2), *closed(20, 8)],
        [header(30, pid=3), *closed(30, 3), event("process_end", 31)],
    )
    assert [i.rework_steps for i in ledger.incidents] == [2, 6]
    assert [i.rework_ns for i in ledger.incidents] == [2 * S, 6 * S]
    assert kept(ledger) == [3, 0, 1]


def test_a_restart_proves_what_it_restored(tmp_path: Path) -> None:
    """No checkpoint is on record: what was restored must have been saved, the rest may not be."""
    ledger = ledger_of(
        tmp_path,
        [header(pid=1), *closed(0, *range(10))],
        [header(20, pid=2), *closed(20, 8, 9, 10)],
    )
    assert (ledger.steps.kept, ledger.steps.at_risk) == (11, 3)
    assert ledger.saved.persistence == "known"
    assert ledger.saved.last_step == 7
