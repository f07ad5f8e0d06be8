"""Whose time it was: records that meet in one instant, clocks that step, contradictions."""

from pathlib import Path

import pytest
from told import ORIGIN_NS, S, at, closed, done, event, header, ledger_of, marks, step, tell

from goodput.core.errors import ConfigError
from goodput.training.measure.ledger import keep_books
from goodput.training.measure.readers import read


def test_a_step_may_end_at_the_instant_at_which_the_next_begins(tmp_path: Path) -> None:
    for count in (1, 2, 3, 10):
        told = [header(), *closed(0, *range(count)), event("process_end", count)]
        ledger = ledger_of(tmp_path, told)
        assert ledger.steps.kept == count
        assert ledger.factors.goodput == 1


def test_a_step_may_be_run_again_at_the_instant_at_which_it_ended(tmp_path: Path) -> None:
    ledger = ledger_of(tmp_path, [header(), *closed(0, 0, 0, 1), event("process_end", 3)])
    assert ledger.waterfall.loss("rework") == S
    assert ledger.waterfall.useful == 2 * S


def test_an_end_that_comes_late_closes_its_step_where_the_next_begins(tmp_path: Path) -> None:
    """Steps are dispatched ahead: the end of one is known when the next is under way."""
    told = [header(), step(0, 0), step(1, 1), done(1.5, 0), step(2, 2), done(2.5, 1), done(3, 2)]
    ledger = ledger_of(tmp_path, [*told, event("process_end", 3)])
    assert ledger.steps.kept == 3
    assert ledger.waterfall.useful == 3 * S


def test_of_two_allocations_in_one_instant_the_later_line_counts(tmp_path: Path) -> None:
    told = [header(), event("allocated", 0, chips=4), event("allocated", 0, chips=2)]
    ledger = ledger_of(tmp_path, [*told, *marks(0, 0, 1, 2)])
    assert ledger.waterfall.capacity == 4 * S


def test_an_attempt_with_spans_and_no_step_is_an_attempt(tmp_path: Path) -> None:
    ledger = ledger_of(
        tmp_path,
        [header(pid=1), *marks(0, 0, 1)],
        [header(10, pid=2), event("span", 10, name="init", d=S)],
        [header(20, pid=3), *marks(20, 1, 2), event("process_end", 22)],
    )
    assert [a.kept_steps for a in ledger.attempts] == [1, 0, 2]


def test_spans_of_a_process_that_took_no_step_count_for_its_rank(tmp_path: Path) -> None:
    ledger = ledger_of(
        tmp_path,
        [header(0, pid=1, attempt="a"), event("span", 1, name="evaluation", d=3 * S)],
        [header(5, pid=2, attempt="a"), *marks(6, 0, 1), event("process_end", 8)],
    )
    assert ledger.waterfall.loss("evaluation") == 3 * S


def test_an_attempt_end_without_a_key_ends_the_open_attempt(tmp_path: Path) -> None:
    watcher = [header(0, role="launcher"), event("attempt_end", 3, outcome="completed")]
    ledger = ledger_of(tmp_path, [header(), *marks(0, 0, 1, 2)], watcher)
    assert [a.outcome for a in ledger.attempts] == ["completed"]


def test_two_processes_of_one_rank_at_once_are_not_counted_twice(tmp_path: Path) -> None:
    ledger = ledger_of(
        tmp_path,
        [header(pid=3, attempt="a"), *marks(0, *range(10)), event("process_end", 10)],
        [header(0.5, pid=4, attempt="a"), *marks(0.5, *range(10)), event("process_end", 10.5)],
    )
    assert ledger.waterfall.capacity == 10.5 * S
    assert ledger.waterfall.useful <= ledger.waterfall.capacity


def test_two_processes_of_one_rank_with_one_open_step_each(tmp_path: Path) -> None:
    ledger = ledger_of(
        tmp_path,
        [header(0, pid=1, attempt="a"), step(1, 0)],
        [header(2, pid=2, attempt="a"), step(3, 1, c=2), event("process_end", 9)],
    )
    assert ledger.waterfall.capacity == 9 * S


def test_the_rank_with_most_steps_speaks_for_the_job(tmp_path: Path) -> None:
    ledgers = []
    for place, lead in ((tmp_path / "0", 0), (tmp_path / "1", 1)):
        place.mkdir()
        long = [header(world=2, rank=lead), *marks(0, *range(10)), event("process_end", 10)]
        short = [header(world=2, rank=1 - lead), *marks(0, *range(5))]
        ledgers.append(ledger_of(place, long, short))
    one, two = (ledger.steps for ledger in ledgers)
    assert (one.executed, one.kept, one.last_step) == (10, 10, 9)
    assert one == two


def test_a_finished_job_does_not_decay(tmp_path: Path) -> None:
    told = [header(), *marks(0, *range(10)), event("process_end", 10)]
    now, later = (ledger_of(tmp_path, told, as_of_ns=at(s)) for s in (11, 10_000))
    assert now.state == "completed"
    assert now.waterfall == later.waterfall


def test_a_fault_is_dated_by_a_clock_that_was_stepped(tmp_path: Path) -> None:
    """The launcher's wall clock jumps an hour: its monotonic clock tells by how much."""
    first = [header(pid=1, attempt="a"), *marks(0, *range(10))]
    second = [header(40, pid=2, attempt="b"), *marks(40, *range(9, 19)), event("process_end", 50)]

    def lost(jump_s: int) -> list[int]:
        known = {"fault_t": at(10 + jump_s), "noticed_t": at(12 + jump_s)}
        end = event("attempt_end", 15, attempt="a", outcome="failed", **known)
        end["t"] += jump_s * S
        ledger = ledger_of(tmp_path, first, second, [header(0, role="launcher"), end])
        return [ledger.waterfall.loss(name) for name in ("detection", "recovery")]

    assert lost(0) == [2 * S, 28 * S]
    assert lost(3600) == lost(0)


def test_windows_wider_than_the_job_hold_the_job(tmp_path: Path) -> None:
    watcher = [header(0, role="launcher"), event("submitted", 0, chips=1)]
    tell(
        tmp_path,
        [header(10), *marks(10, *range(10)), event("process_end", 20)],
        [*watcher, event("allocated", 5, chips=1)],
    )
    books = keep_books(read([tmp_path]))
    low, high = books.plan.start_ns, books.plan.end_ns
    assert books.totals(low - S, high + S) == books.totals(low, high)


def test_a_record_of_very_many_steps_does_not_overflow(tmp_path: Path) -> None:
    hour = 3600
    ledger = ledger_of(
        tmp_path,
        [header(pid=1), step(0, 0, c=20_000_000, d=10 * hour * S)],
        [
            header(11 * hour, pid=2),
            step(11 * hour, 15_000_000, c=5_000_000, d=3 * hour * S),
            event("process_end", 14 * hour),
        ],
    )
    assert ledger.steps.kept == 20_000_000
    assert ledger.waterfall.loss("rework") == pytest.approx(2.5 * hour * S, rel=1e-6)


def test_a_shape_of_which_nothing_ordinary_is_known_is_its_own_ideal(tmp_path: Path) -> None:
    told = [header(), *marks(0, *range(8)), step(8, 8, shape="long"), step(18, 9)]
    ledger = ledger_of(tmp_path, [*told, event("process_end", 19)], exclude=((at(9), at(10)),))
    assert ledger.waterfall.loss("slow") == 0


def test_flops_without_chips_give_no_mfu(tmp_path: Path) -> None:
    told = [header(), event("work", 0, flops_per_step=1e9, peak_flops_per_chip=1e12)]
    ledger = ledger_of(tmp_path, [*told, event("allocated", 0, chips=0), *marks(0, 0, 1, 2)])
    assert ledger.waterfall.capacity == 0
    assert ledger.factors.goodput == 0


@pytest.mark.parametrize("value", [1e12, float("inf"), float("nan"), 0.0, -1.0])
def test_an_ideal_out_of_range_is_named(tmp_path: Path, value: float) -> None:
    with pytest.raises(ConfigError, match="ideal_step_s"):
        ledger_of(tmp_path, [header(), *marks(0, 0, 1)], ideal_step_s=value)


def test_the_largest_ideal_does_not_overflow(tmp_path: Path) -> None:
    told = [header(), *(step(n, 10 * n) for n in range(5)), event("process_end", 5)]
    ledger = ledger_of(tmp_path, told, ideal_step_s=1e9)
    assert ledger.waterfall.useful == ledger.waterfall.capacity == 5 * S


def test_a_world_of_a_million_ranks_is_accounted_for_at_once(tmp_path: Path) -> None:
    ledger = ledger_of(tmp_path, [header(world=2**20), *marks(0, 0, 1, 2)])
    assert ledger.waterfall.capacity == 2 * S * 2**20
    assert ledger.started_at_ns == ORIGIN_NS
