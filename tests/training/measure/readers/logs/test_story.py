"""Placing what a log tells in time, and joining the words on how a launch ended."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import NS

from goodput.core.events import AttemptEnd
from goodput.core.timeline import as_ints
from goodput.training.measure.readers.logs.story import (
    UNKNOWN,
    Finish,
    Happening,
    Launch,
    Placed,
    Steps,
    anchored,
    length_ns,
    place,
    process_log,
)


def steps(*rows: tuple[int, float | None, float | None], first: int = 1) -> Steps:
    """Rows of (steps covered, end in s, duration in s)."""
    covers = [row[0] for row in rows]
    begins = [first + sum(covers[:i]) for i in range(len(covers))]
    ends = [UNKNOWN if row[1] is None else round(row[1] * NS) for row in rows]
    lasted = [-1 if row[2] is None else round(row[2] * NS) for row in rows]
    return Steps(as_ints(begins), as_ints(covers), as_ints(ends), as_ints(lasted))


def placed(*items: Steps | Happening, started: float | None = None, origin: float = 0) -> Placed:
    launch = Launch()
    launch.started_at_ns = UNKNOWN if started is None else round(started * NS)
    launch.add(*items)
    return place(launch, origin_ns=round(origin * NS))


def rows(where: Placed) -> list[tuple[float, float]]:
    """(start, end) of the steps, s."""
    lasted = where.steps.duration_ns
    assert lasted is not None
    return [
        (at / NS, (at + d) / NS)
        for at, d in zip(where.steps.at_ns.tolist(), lasted.tolist(), strict=True)
    ]


def spans(where: Placed) -> list[tuple[str, float, float]]:
    """(name, start, end), s; end -1 = never closed."""
    columns = where.spans
    return [
        (where.labels[name].name, at / NS, (at + lasted) / NS if lasted >= 0 else -1)
        for name, at, lasted in zip(
            columns.name.tolist(), columns.at_ns.tolist(), columns.duration_ns.tolist(), strict=True
        )
    ]


def mark(seconds: float) -> Happening:
    return Happening("mark", "", round(seconds * NS))


def test_known_ends_stand() -> None:
    assert rows(placed(steps((1, 10, 2), (1, 13, 3)))) == [(8, 10), (10, 13)]


def test_without_stamps_steps_follow_the_instant_before_them() -> None:
    where = placed(mark(100), steps((1, None, 5), (1, None, 6)), mark(120))
    assert rows(where) == [(100, 105), (105, 111)]
    assert where.inferred == 2


def test_steps_that_would_pass_the_next_instant_are_counted_back_from_it() -> None:
    """The line at 100 s was written in the middle of the first step."""
    where = placed(mark(100), steps((1, None, 10), (1, None, 6)), mark(112))
    assert rows(where) == [(96, 106), (106, 112)]


def test_before_the_first_instant_steps_are_counted_back() -> None:
    assert rows(placed(steps((1, None, 5), (1, None, 6)), mark(50))) == [(39, 44), (44, 50)]


def test_a_known_start_is_counted_forward_from() -> None:
    where = placed(steps((1, None, 5), (1, None, 6)), mark(50), started=20)
    assert rows(where) == [(20, 25), (25, 31)]


def test_without_any_instant_the_origin_is_the_start() -> None:
    where = placed(steps((1, None, 5), (1, None, 6)), origin=1000)
    assert rows(where) == [(1000, 1005), (1005, 1011)]


def test_a_record_without_duration_lasts_from_the_step_before() -> None:
    """Even when something else was reported between the two."""
    where = placed(
        mark(0),
        steps((1, 4, None)),
        Happening("begin", "checkpoint", 5 * NS),
        Happening("end", "checkpoint", 7 * NS),
        steps((10, 30, None), first=2),
    )
    assert rows(where) == [(0, 4), (4, 30)]
    assert spans(where) == [("checkpoint", 5, 7)]


def test_a_gap_reaches_from_the_step_before_to_the_start_of_the_next() -> None:
    where = placed(steps((1, 10, 2)), Happening("gap", "evaluation"), steps((1, 17, 3), first=2))
    assert spans(where) == [("evaluation", 10, 14)]


def test_a_gap_that_no_step_follows_is_not_guessed() -> None:
    where = placed(steps((1, 10, 2)), Happening("gap", "evaluation"), mark(60))
    assert spans(where) == []


def test_since_reaches_from_the_step_before_to_its_own_instant() -> None:
    where = placed(steps((1, 10, 2)), Happening("since", "checkpoint", 13 * NS))
    assert spans(where) == [("checkpoint", 10, 13)]


def test_an_end_without_a_begin_uses_its_duration() -> None:
    where = placed(mark(0), Happening("end", "checkpoint", 13 * NS, duration_ns=4 * NS))
    assert spans(where) == [("checkpoint", 9, 13)]


def test_a_span_that_never_ends_stays_open() -> None:
    assert spans(placed(Happening("begin", "evaluation", 5 * NS))) == [("evaluation", 5, -1)]


def test_parts_of_steps_follow_each_other_and_never_outgrow_the_step() -> None:
    item = steps((1, 10, 4), (1, 14, 4))._replace(
        data_ns=as_ints([NS, 0]), parts=(("generate", as_ints([2 * NS, 9 * NS])),)
    )
    assert spans(placed(item)) == [
        ("data", 6, 7),
        ("generate", 7, 9),
        ("generate", 10, 14),
    ]


def test_a_clock_that_steps_back_far_is_kept_and_a_rounding_is_smoothed() -> None:
    far = placed(steps((1, 100, 1), (1, 40, 1)))
    assert rows(far) == [(99, 100), (39, 40)]
    near = placed(steps((1, 100.5, 1), (1, 100, 1)))
    assert rows(near)[1][1] == 100.5


@given(
    st.lists(
        st.tuples(st.integers(0, 50), st.one_of(st.none(), st.integers(0, 60))),
        min_size=1,
        max_size=40,
    )
)
def test_placing_keeps_order_durations_and_known_instants(
    given_rows: list[tuple[int, int | None]],
) -> None:
    """A row with a second number is a line with a stamp, that much after the work before it."""
    clock, table = 1000.0, list[tuple[int, float | None, float | None]]()
    for lasted, slack in given_rows:
        clock += lasted + (slack or 0)
        table.append((1, clock if slack is not None else None, float(lasted)))
    where = placed(steps(*table), origin=1000)
    ends = [end for _, end in rows(where)]
    assert ends == sorted(ends)
    assert where.inferred == sum(end is None for _, end, _ in table)
    for (_, known, lasted_s), (start, end) in zip(table, rows(where), strict=True):
        assert known is None or end == known
        assert lasted_s is not None
        assert end - start == pytest.approx(lasted_s)


def test_lengths_and_anchors() -> None:
    launch = Launch()
    launch.add(steps((1, None, 5), (2, None, 6)), Happening("span", "checkpoint", duration_ns=NS))
    assert length_ns(launch) == 12 * NS
    assert not anchored(launch)
    launch.finish = Finish("completed", at_ns=5)
    assert anchored(launch)


def test_placing_twice_gives_the_same() -> None:
    launch = Launch()
    launch.add(steps((1, None, 5)))
    launch.finish = Finish("failed", at_ns=100 * NS)
    first, second = place(launch, origin_ns=0), place(launch, origin_ns=0)
    assert first.last_at_ns == second.last_at_ns == 100 * NS
    assert np.array_equal(first.steps.at_ns, second.steps.at_ns)


def test_the_first_word_on_an_end_stands_and_later_ones_add_to_it() -> None:
    stall = Finish("failed", "collective_timeout", "watchdog", 50, fault_at_ns=10, noticed_at_ns=50)
    both = stall.joined(Finish("failed", "cancelled", "slurm", 90, exit_code=1, rank=3))
    assert both == stall._replace(at_ns=90, exit_code=1, rank=3)
    vague = Finish("failed", evidence="exit code 1", exit_code=1)
    assert vague.joined(Finish("stopped", "time_limit", "slurm")).cause == "time_limit"
    assert vague.joined(Finish("stopped", "time_limit", "slurm")).evidence == "slurm"


def test_a_stall_begins_no_earlier_than_the_last_step_that_was_logged() -> None:
    launch = Launch()
    launch.add(steps((1, 100, 1), (1, 101, 1)))
    launch.finish = Finish(
        "failed", "collective_timeout", at_ns=700 * NS, fault_at_ns=90 * NS, noticed_at_ns=700 * NS
    )
    log = process_log(launch, place(launch, origin_ns=0), job="j", path="p", number=1, attempt="p")
    (end,) = (event for event in log.events if isinstance(event, AttemptEnd))
    assert end.fault_t == 101 * NS
    assert end.noticed_t == 700 * NS
